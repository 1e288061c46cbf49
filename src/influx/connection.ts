/**
 * One HTTP request to a database, through the public transport of InfluxDB's client: status, headers and a bounded
 * part of the body of whatever answered.
 *
 * The client's `WriteApi` is not used: its acknowledgement cannot be relied on, it retries from memory, and it reads
 * `Retry-After` as milliseconds. Its transport sends once; a cap on what it reads is added here.
 * It follows no redirect. Its own `proxyUrl` is not used (no CONNECT, no NO_PROXY): Node's agents know proxies.
 */
import type { ClientRequest, Agent as HttpAgent, IncomingMessage, RequestOptions } from 'node:http';
import { createRequire } from 'node:module';
import { Writable } from 'node:stream';
import { HttpError, InfluxDB, setLogger } from '@influxdata/influxdb-client';
import { UserError } from '../core/faults.ts';
import type { ServerAnswer } from './answers.ts';

// By `require`: an import reads every member of the module, and one of them loads a second HTTP client that nobody here
// uses, which is a tenth of a start.
const require = createRequire(import.meta.url);

export const http: typeof import('node:http') = require('node:http');
export const https: typeof import('node:https') = require('node:https');

/** Enough for every word that is shown, and for the errors of a hundred lines. */
const MAX_BODY_BYTES = 64 * 1024;

/** Below this a body is sent as it is. */
const GZIP_FROM_BYTES = 1000;

interface ConnectionOptions {
  /** Base URL; what follows its path is ignored. */
  readonly url: string;
  /** Sent as `Authorization: Token …`; empty where the database wants none. */
  readonly token: string;
  /** Sends `user:password` the way that web servers know (`Basic`) instead. */
  readonly basic?: boolean | undefined;
  /** Certificates to trust beside nothing else, in PEM; the usual ones where undefined. */
  readonly ca?: string | undefined;
  /** `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, in either case of letters; none where undefined. */
  readonly proxies?: Readonly<Record<string, string | undefined>> | undefined;
}

/** One request. */
export interface Call {
  readonly method: 'GET' | 'POST';
  /** With its query, below the base URL. */
  readonly path: string;
  /** Text; empty for none. */
  readonly body: string;
}

/** Sends a request. Resolves to the answer, whatever its status; rejects where no answer came, or the signal aborts. */
export type Send = (call: Call, signal: AbortSignal) => Promise<ServerAnswer>;

/**
 * Connections are kept alive between requests; idle ones do not keep the process running.
 *
 * @throws UserError (exit 78) where a proxy is named that is none.
 */
export function createConnection({ url, token, basic = false, ca, proxies }: ConnectionOptions): Send {
  // The client would otherwise write to the console on its own.
  setLogger({ error() {}, warn() {} });
  const base = baseUrl(url);
  const agent = openAgent(base, { ca, proxies });
  const authorization = basic && token.includes(':') ? { authorization: `Basic ${btoa(token)}` } : {};
  return async ({ method, path, body }, signal) => {
    const seen: Seen = { answer: null, chunks: [], bytes: 0 };
    const { transport } = new InfluxDB({
      url: base,
      token,
      // Of the socket's idleness, and it does not end the request: the signal carries the deadline.
      timeout: 0,
      transportOptions: {
        agent,
        // The client's own way to name the functions that send; nothing here follows anything.
        'follow-redirects': {
          http: { request: watch(seen, http.request) },
          https: { request: watch(seen, https.request) },
        },
      },
    });
    try {
      await transport.request(path, body, {
        method,
        headers: { 'content-type': 'text/plain; charset=utf-8', ...authorization },
        gzipThreshold: GZIP_FROM_BYTES,
        signal,
      });
    } catch (error) {
      return answerDespite(seen, error);
    }
    return answerDespite(seen, null);
  };
}

export function openAgent(base: string, { ca, proxies }: Pick<ConnectionOptions, 'ca' | 'proxies'>): HttpAgent {
  try {
    const options = { keepAlive: true, proxyEnv: proxies };
    return base.startsWith('https:') ? new https.Agent({ ...options, ca }) : new http.Agent(options);
  } catch {
    // The error quotes the URL, and a proxy's URL may hold a password.
    throw new UserError('HTTPS_PROXY or HTTP_PROXY: not a URL. Set it as http://host:port, or unset it.', 78);
  }
}

/** Origin and path, without what the client would trip over: query, fragment, credentials, `/api/v2` at the end. */
export function baseUrl(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname.replace(/\/+$/, '').replace(/\/api\/v2(?:\/write)?$/, '');
}

type HttpSend = (options: RequestOptions, onAnswer: (answer: IncomingMessage) => void) => ClientRequest;

/** What came back for one request, noted beside the client, which drops some of it and hoards the rest. */
interface Seen {
  answer: IncomingMessage | null;
  readonly chunks: Buffer[];
  bytes: number;
}

/** Wraps a function that sends: notes the answer, and cuts its body off at the cap. */
function watch(seen: Seen, send: HttpSend) {
  return (options: RequestOptions, onAnswer: (answer: IncomingMessage) => void): Writable => {
    try {
      return send(options, (answer) => {
        seen.answer = answer;
        onAnswer(answer);
        answer.on('data', (chunk: Buffer) => {
          if (seen.bytes < MAX_BODY_BYTES) seen.chunks.push(chunk.subarray(0, MAX_BODY_BYTES - seen.bytes));
          seen.bytes += chunk.length;
          if (seen.bytes > MAX_BODY_BYTES) answer.destroy();
        });
      });
    } catch (error) {
      // The client calls this from a callback, where a throw would end the process.
      return new Writable().destroy(error instanceof Error ? error : new Error('the request could not be made'));
    }
  };
}

/** @throws the error, where it left no answer behind. */
function answerDespite(seen: Seen, error: unknown): ServerAnswer {
  if (seen.answer?.statusCode === undefined) throw error ?? new Error('the client returned without an answer');
  const { statusCode: status, headers } = seen.answer;
  const isCut = seen.bytes > MAX_BODY_BYTES;
  // The client unpacks a compressed error; what it gives whole is better than the bytes.
  const whole = !isCut && error instanceof HttpError ? error.body : undefined;
  return { status, headers, body: whole ?? Buffer.concat(seen.chunks).toString('utf8') };
}
