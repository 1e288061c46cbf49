/**
 * Tests the connection to the API step by step without a request: name resolution, connection, TLS. It costs no quota,
 * and shows which step fails, unlike a request.
 */
import { lookup } from 'node:dns/promises';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { linkAbort, waitOrAbort } from '../core/async.ts';
import type { TransportError } from '../core/faults.ts';
import { SECOND_MS } from '../core/time.ts';
import { timedOut, toTransportError } from './transport.ts';

/** The result of a step. A step that does not apply or follows a failed one is `null`. */
export type ReachStep<T> =
  | { readonly ok: true; readonly found: T }
  | { readonly ok: false; readonly why: TransportError };

/** The time limit for connecting. */
export const CONNECT_WITHIN_MS = 10 * SECOND_MS;

/** The steps of a connection that were tried; `null` for a step that was not. */
export interface Reached {
  readonly host: string;
  readonly port: number;
  /** The addresses of the name; `null` if the URL contains an address. */
  readonly name: ReachStep<readonly string[]> | null;
  /** The address that accepted the connection. */
  readonly connection: ReachStep<string> | null;
  /** The certificate of the server and the protocol. `null` for http. */
  readonly tls: ReachStep<Certificate> | null;
}

interface Certificate {
  readonly protocol: string;
  /** The end of its validity in ms since 1970; `null` if it has none. */
  readonly endsMs: number | null;
  /** `false` only if the environment makes Node accept any certificate. */
  readonly isTrusted: boolean;
}

interface ReachOptions {
  readonly url: string;
  readonly ca: string | null;
  /** The time limit of all steps together. */
  readonly timeoutMs: number;
}

/** The proxy variable for this address; `null` for none. It does not show whether NO_PROXY names the host. */
export function proxyVariable(url: string, proxies: Readonly<Record<string, string | undefined>>): string | null {
  const wanted = url.startsWith('https:') ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  return Object.keys(proxies).find((name) => name.toUpperCase() === wanted) ?? null;
}

/**
 * Tests the steps in order until one fails.
 *
 * @throws the signal's reason when that aborts
 */
export async function probeConnection({ url, ca, timeoutMs }: ReachOptions, signal: AbortSignal): Promise<Reached> {
  const { hostname, port: given, protocol } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  const isTls = protocol === 'https:';
  const port = given === '' ? (isTls ? 443 : 80) : Number(given);
  const whole = linkAbort(signal, AbortSignal.timeout(timeoutMs));
  const step = async <T>(work: (signal: AbortSignal) => Promise<T>): Promise<ReachStep<T>> => {
    try {
      whole.signal.throwIfAborted();
      return { ok: true, found: await work(whole.signal) };
    } catch (error) {
      signal.throwIfAborted();
      const isLate = whole.signal.aborted;
      return {
        ok: false,
        why: isLate ? timedOut() : toTransportError(error),
      };
    }
  };
  try {
    const name = isIP(host) === 0 ? await step((until) => waitOrAbort(resolveAddresses(host), until)) : null;
    if (name?.ok === false) return { host, port, name, connection: null, tls: null };
    const connection = await step(async (until) => {
      const socket = connectTcp({ host, port });
      return await whenConnected(socket, 'connect', until, () => socket.remoteAddress ?? '');
    });
    if (!connection.ok || !isTls) return { host, port, name, connection, tls: null };
    const options = { host, port, ...(isIP(host) === 0 ? { servername: host } : {}), ...(ca === null ? {} : { ca }) };
    const tls = await step(async (until) => {
      const socket = connectTls(options);
      return await whenConnected(socket, 'secureConnect', until, () => certificateOf(socket));
    });
    return { host, port, name, connection, tls };
  } finally {
    whole.release();
  }
}

async function resolveAddresses(host: string): Promise<string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

/** Reads a value from a socket at the event that shows that it is connected. The socket is closed in any case. */
async function whenConnected<T>(socket: Socket, event: string, signal: AbortSignal, read: () => T): Promise<T> {
  const connected = new Promise<T>((resolve, reject) => {
    socket.once('error', reject);
    socket.once(event, () => resolve(read()));
  });
  try {
    return await waitOrAbort(connected, signal);
  } finally {
    // Errors after the answer do not matter.
    socket.on('error', () => {});
    socket.destroy();
  }
}

function certificateOf(socket: TLSSocket): Certificate {
  const endsMs = Date.parse(socket.getPeerCertificate().valid_to ?? '');
  return {
    protocol: socket.getProtocol() ?? 'TLS',
    endsMs: Number.isNaN(endsMs) ? null : endsMs,
    isTrusted: socket.authorized,
  };
}
