/**
 * Sends one HTTP request to a database through the public transport of InfluxDB's client, and returns the status, the
 * headers and a limited part of the body.
 *
 * The client's `WriteApi` is not used: its acknowledgement is not reliable, it retries from memory, and it reads
 * `Retry-After` as milliseconds. Its transport sends once, and the limit for the body is added here. It follows no
 * redirect. Its own `proxyUrl` is not used either (it supports neither CONNECT nor NO_PROXY); Node's agents handle
 * proxies. Bodies are compressed here: the client compresses at level 6, which takes four times the time of level 1 to
 * save a fifth of the bytes.
 */
import type { ClientRequest, Agent as HttpAgent, IncomingMessage, RequestOptions } from 'node:http';
import { createRequire } from 'node:module';
import { Writable } from 'node:stream';
import { promisify } from 'node:util';
import { gunzip, gunzipSync, gzip } from 'node:zlib';
import { proxyNotUrl } from '../core/faults.ts';
import type { PackedText } from '../core/ports.ts';
import type { ServerAnswer } from './answers.ts';

// `require` instead of an import, also for modules that import `node:http`: an import reads every member of the module,
// and one of them loads a second HTTP client that is not used here, which takes a tenth of the time of a start. All of
// these modules are loaded with the first connection, because they take a fifth of the start of a command that only
// reads the state.
const require = createRequire(import.meta.url);

const http = (): typeof import('node:http') => require('node:http');
const https = (): typeof import('node:https') => require('node:https');
const client = (): typeof import('@influxdata/influxdb-client') => require('@influxdata/influxdb-client');

/** Returns `request` of `node:https` or `node:http`, by the scheme of the URL. */
export function requestFunctionFor(url: string): typeof import('node:http').request {
  return url.startsWith('https:') ? https().request : http().request;
}

/** Enough for every message that is shown, and for the errors of a hundred lines. */
const MAX_BODY_BYTES = 64 * 1024;

/** A shorter body is sent without compression. */
const GZIP_FROM_LENGTH = 1000;

/** A packed batch fits, so that packing it does not wait for this thread between chunks. */
const GZIP_CHUNK_BYTES = 128 * 1024;

/** Compresses a text into one gzip member: InfluxDB 3 reads only the first member of a body, and answers 204. */
const compress = (text: string | Uint8Array): Promise<Uint8Array> =>
  promisify<string | Uint8Array, { level: number; chunkSize: number }, Buffer>(gzip)(text, {
    level: 1,
    chunkSize: GZIP_CHUNK_BYTES,
  });

/** Starts to compress a text, on another thread. */
export function packText(text: Uint8Array): PackedText {
  const gzip = compress(text);
  // The request that sends the text reports the error. A text that is never sent needs no report.
  gzip.catch(() => {});
  return { gzip, unpack: async () => await promisify<Uint8Array, Buffer>(gunzip)(await gzip) };
}

interface ConnectionOptions {
  /** The base URL; query, fragment and credentials are ignored. */
  readonly url: string;
  /** Sent as `Authorization: Token …`; empty if the database needs none. */
  readonly token: string;
  /** Sends `user:password` by HTTP basic authentication (`Basic`) instead. */
  readonly basic?: boolean | undefined;
  /** Certificates to trust instead of the usual ones, in PEM. */
  readonly ca?: string | undefined;
  /** `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, in upper or lower case; without them no proxy is used. */
  readonly proxies?: Readonly<Record<string, string | undefined>> | undefined;
}

/** A request to a database, without the address and the credentials. */
export interface DatabaseCall {
  readonly method: 'GET' | 'POST';
  /** The path below the base URL, with its query. */
  readonly path: string;
  /** The body as text, in UTF-8, or packed; empty for no body. */
  readonly body: string | Uint8Array | PackedText;
}

/** Sends a request and returns the answer, whatever its status. Rejects if no answer came or the signal aborts. */
export type Send = (call: DatabaseCall, signal: AbortSignal) => Promise<ServerAnswer>;

/** The header for a token that is `user:password`; `null` for another one. */
export function basicAuthorization(token: string): string | null {
  return token.includes(':') ? `Basic ${btoa(token)}` : null;
}

/**
 * Opens a connection. It is kept alive between requests; an idle one does not keep the process running.
 *
 * @throws UserError (exit code 78) if a proxy variable is not a URL
 */
export function createConnection({ url, token, basic = false, ca, proxies }: ConnectionOptions): Send {
  const { InfluxDB, setLogger } = client();
  // Without this the client writes to the console.
  setLogger({ error() {}, warn() {} });
  const base = clientUrl(url);
  const agent = openAgent(base, { ca, proxies });
  const pair = basic ? basicAuthorization(token) : null;
  const authorization = pair === null ? {} : { authorization: pair };
  return async ({ method, path, body }, signal) => {
    const recorded: RecordedAnswer = { answer: null, isPacked: false, chunks: [], bytes: 0 };
    const { text, packed } = await encode(body);
    const { transport } = new InfluxDB({
      url: base,
      token,
      // This timeout would apply to an idle socket and would not end the request. The signal carries the deadline.
      timeout: 0,
      transportOptions: {
        agent,
        // The option through which the client accepts other functions for sending. It does not make them follow
        // redirects.
        'follow-redirects': {
          http: { request: recordAnswer(recorded, sendPacked(packed, http().request)) },
          https: { request: recordAnswer(recorded, sendPacked(packed, https().request)) },
        },
      },
    });
    try {
      await transport.request(path, text, {
        method,
        headers: { 'content-type': 'text/plain; charset=utf-8', ...authorization },
        signal,
      });
    } catch (error) {
      return answerDespite(recorded, error);
    }
    return answerDespite(recorded, null);
  };
}

/** The body in the form in which it is sent: packed, or a short one as text. */
async function encode(
  body: DatabaseCall['body'],
): Promise<{ readonly text: string; readonly packed: Uint8Array | null }> {
  if (typeof body !== 'string' && 'gzip' in body) return { text: '', packed: await body.gzip };
  if (body.length >= GZIP_FROM_LENGTH) return { text: '', packed: await compress(body) };
  return { text: typeof body === 'string' ? body : Buffer.from(body).toString('utf8'), packed: null };
}

/** An agent that keeps connections alive, through the proxy that the variables name. */
export function openAgent(base: string, { ca, proxies }: Pick<ConnectionOptions, 'ca' | 'proxies'>): HttpAgent {
  try {
    const options = { keepAlive: true, proxyEnv: proxies };
    return base.startsWith('https:') ? new (https().Agent)({ ...options, ca }) : new (http().Agent)(options);
  } catch {
    throw proxyNotUrl();
  }
}

/**
 * Origin and path, without the parts that the client cannot handle: query, fragment and credentials, and without the
 * path of a write at the end: `/api/v2`, `/api/v2/write` or `/write`.
 */
export function clientUrl(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname.replace(/\/+$/, '').replace(/(?:\/api\/v2)?(?:\/write)?$/, '');
}

type HttpSend = (options: RequestOptions, onAnswer: (answer: IncomingMessage) => void) => ClientRequest;

/**
 * The answer to one request. It is recorded outside the client, which drops a part of it and keeps the rest too long.
 */
interface RecordedAnswer {
  answer: IncomingMessage | null;
  isPacked: boolean;
  readonly chunks: Buffer[];
  bytes: number;
}

/** Wraps a function for sending: it sends this compressed body instead of an empty one. */
function sendPacked(packed: Uint8Array | null, send: HttpSend): HttpSend {
  if (packed === null) return send;
  return (options, onAnswer) => {
    const packing = { 'content-encoding': 'gzip', 'content-length': packed.length };
    const request = send({ ...options, headers: { ...options.headers, ...packing } }, onAnswer);
    request.write(packed);
    return request;
  };
}

/** Wraps a function for sending: it records the answer and truncates the body at the limit. */
function recordAnswer(recorded: RecordedAnswer, send: HttpSend) {
  return (options: RequestOptions, onAnswer: (answer: IncomingMessage) => void): Writable => {
    try {
      return send(options, (answer) => {
        recorded.answer = answer;
        // The client would decompress a body of any size.
        recorded.isPacked = answer.headers['content-encoding'] === 'gzip';
        delete answer.headers['content-encoding'];
        onAnswer(answer);
        answer.on('data', (chunk: Buffer) => {
          if (recorded.bytes < MAX_BODY_BYTES) recorded.chunks.push(chunk.subarray(0, MAX_BODY_BYTES - recorded.bytes));
          recorded.bytes += chunk.length;
          if (recorded.bytes > MAX_BODY_BYTES) answer.destroy();
        });
      });
    } catch (error) {
      // The client calls this from a callback, in which a throw would end the process.
      return new Writable().destroy(error instanceof Error ? error : new Error('the request could not be sent'));
    }
  };
}

/**
 * Returns the recorded answer although the client failed.
 *
 * @throws the error, if no answer was recorded
 */
function answerDespite(recorded: RecordedAnswer, error: unknown): ServerAnswer {
  if (recorded.answer?.statusCode === undefined) throw error ?? new Error('the client returned without an answer');
  const { statusCode: status, headers } = recorded.answer;
  const body = Buffer.concat(recorded.chunks);
  return { status, headers, body: recorded.isPacked ? unpack(body) : body.toString('utf8') };
}

/**
 * Decompresses a body that the server compressed although no request allowed it. A damaged or too large body counts as
 * empty.
 */
function unpack(body: Buffer): string {
  try {
    return gunzipSync(body, { maxOutputLength: MAX_BODY_BYTES }).toString('utf8');
  } catch {
    return '';
  }
}
