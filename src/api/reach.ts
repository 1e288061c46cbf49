/**
 * The way to the API, step by step, without a request: its name, a connection, TLS. It costs no quota, and shows
 * which step fails, which a request alone does not.
 */
import { lookup } from 'node:dns/promises';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { linkAbort, orAborted } from '../core/async.ts';
import { TransportError } from '../core/faults.ts';
import { toTransportError } from './transport.ts';

/** What came of a step; `null` where there is none such, or an earlier one has failed. */
export type Step<T> = { readonly ok: true; readonly found: T } | { readonly ok: false; readonly why: TransportError };

export interface Reached {
  readonly host: string;
  readonly port: number;
  /** The addresses of the name; `null` where the URL has an address. */
  readonly name: Step<readonly string[]> | null;
  /** The address that took the connection. */
  readonly connection: Step<string> | null;
  /** When the certificate ends, as an epoch in ms (`null`: it does not say), and the protocol. `null` for http. */
  readonly tls: Step<{ readonly protocol: string; readonly endsMs: number | null }> | null;
}

interface ReachOptions {
  readonly url: string;
  readonly ca: string | null;
  /** For all steps together. */
  readonly timeoutMs: number;
}

/** Goes as far as it can. Throws only the signal's reason, when that aborts. */
export async function reach({ url, ca, timeoutMs }: ReachOptions, signal: AbortSignal): Promise<Reached> {
  const { hostname, port: given, protocol } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  const isTls = protocol === 'https:';
  const port = given === '' ? (isTls ? 443 : 80) : Number(given);
  const whole = linkAbort(signal, AbortSignal.timeout(timeoutMs));
  const step = async <T>(work: (signal: AbortSignal) => Promise<T>): Promise<Step<T>> => {
    try {
      whole.signal.throwIfAborted();
      return { ok: true, found: await work(whole.signal) };
    } catch (error) {
      signal.throwIfAborted();
      const isLate = whole.signal.aborted;
      return { ok: false, why: isLate ? new TransportError('timeout', 'no answer in time') : toTransportError(error) };
    }
  };
  try {
    const name = isIP(host) === 0 ? await step((until) => orAborted(addressesOf(host), until)) : null;
    if (name?.ok === false) return { host, port, name, connection: null, tls: null };
    const connection = await step(async (until) => {
      const socket = connectTcp({ host, port });
      return await whenStanding(socket, 'connect', until, () => socket.remoteAddress ?? '');
    });
    if (!connection.ok || !isTls) return { host, port, name, connection, tls: null };
    const options = { host, port, ...(isIP(host) === 0 ? { servername: host } : {}), ...(ca === null ? {} : { ca }) };
    const tls = await step(async (until) => {
      const socket = connectTls(options);
      return await whenStanding(socket, 'secureConnect', until, () => certificateOf(socket));
    });
    return { host, port, name, connection, tls };
  } finally {
    whole.release();
  }
}

async function addressesOf(host: string): Promise<string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

/** Reads something off a socket at an event that says that it stands; the socket is ended in any case. */
async function whenStanding<T>(socket: Socket, event: string, signal: AbortSignal, read: () => T): Promise<T> {
  const standing = new Promise<T>((resolve, reject) => {
    socket.once('error', reject);
    socket.once(event, () => resolve(read()));
  });
  try {
    return await orAborted(standing, signal);
  } finally {
    // Whatever comes after the answer is of no interest.
    socket.on('error', () => {});
    socket.destroy();
  }
}

function certificateOf(socket: TLSSocket): { protocol: string; endsMs: number | null } {
  const endsMs = Date.parse(socket.getPeerCertificate().valid_to ?? '');
  return { protocol: socket.getProtocol() ?? 'TLS', endsMs: Number.isNaN(endsMs) ? null : endsMs };
}
