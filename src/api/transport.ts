/**
 * HTTP as the API is spoken: one request, one whole answer, over undici with kept-alive connections.
 *
 * Promises: no answer larger than `MAX_ANSWER_BYTES` is ever held, neither as it comes over the wire nor unpacked; no
 * request outlives its deadline; redirects are handed back, not followed (the key must not travel); no error names a
 * header, a body, a query or the proxy's address, which may hold credentials.
 */
import { Buffer } from 'node:buffer';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate } from 'node:zlib';
import { type Dispatcher, EnvHttpProxyAgent, request as send } from 'undici';
import { codeOf, TransportError, UserError } from '../core/faults.ts';
import type { HttpAnswer, HttpRequest, Transport } from '../core/ports.ts';
import { toTransportError } from './transport-error.ts';

/** The largest answer that is read: a full page is about 100 KiB. */
export const MAX_ANSWER_BYTES = 8 * 1024 * 1024;
const MAX_HEADER_BYTES = 16 * 1024;
const CONNECT_TIMEOUT_MS = 10_000;

export interface HttpTransportOptions {
  /** How long a whole request may take, from connecting to the last byte. */
  readonly timeoutMs: number;
  /** Certificates (PEM) that are trusted instead of the usual authorities. */
  readonly ca?: string;
  /** How many connections may be open at once. */
  readonly connections?: number;
  /** Past every proxy: for a service on this machine. */
  readonly direct?: boolean;
}

export interface HttpTransport {
  readonly transport: Transport;
  /** Drops all connections; requests that are under way fail. */
  close(): Promise<void>;
}

/**
 * Opens a transport. Honours `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`.
 *
 * @throws UserError where a proxy variable holds no URL.
 */
export function createHttpTransport(options: HttpTransportOptions): HttpTransport {
  const dispatcher = openDispatcher(options);
  const transport: Transport = async (request, signal) => {
    signal.throwIfAborted();
    // Not `AbortSignal.any`: joined signals stay registered with a signal that lives as long as the process.
    const whole = new AbortController();
    const onAbort = (): void => whole.abort(signal.reason);
    const deadline = setTimeout(() => {
      whole.abort(new TransportError('timeout', `no whole answer within ${options.timeoutMs} ms`));
    }, options.timeoutMs);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      return await exchange(dispatcher, request, whole.signal);
    } catch (error) {
      signal.throwIfAborted();
      throw whole.signal.aborted ? whole.signal.reason : toTransportError(error);
    } finally {
      clearTimeout(deadline);
      signal.removeEventListener('abort', onAbort);
    }
  };
  return { transport, close: () => dispatcher.destroy() };
}

function openDispatcher({ timeoutMs, ca, connections = 4, direct = false }: HttpTransportOptions): Dispatcher {
  const connect = {
    timeout: Math.min(CONNECT_TIMEOUT_MS, timeoutMs),
    // One protocol that is well trodden; pages are few and large, so HTTP/2 would win nothing.
    allowH2: false,
    ...(ca === undefined ? {} : { ca }),
  };
  try {
    return new EnvHttpProxyAgent({
      connections,
      ...(direct ? { noProxy: '*' } : {}),
      connect,
      requestTls: connect,
      proxyTls: connect,
      allowH2: false,
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      maxHeaderSize: MAX_HEADER_BYTES,
    });
  } catch {
    // The error quotes the URL, and a proxy's URL may hold a password.
    throw new UserError('HTTPS_PROXY or HTTP_PROXY: not a URL. Set it as http://host:port, or unset it.', 78);
  }
}

async function exchange(dispatcher: Dispatcher, request: HttpRequest, signal: AbortSignal): Promise<HttpAnswer> {
  const answer = await send(request.url, {
    dispatcher,
    method: request.method,
    headers: { ...request.headers, 'accept-encoding': 'gzip, deflate, br' },
    signal,
  });
  const headers = flatten(answer.headers);
  const packed = await readCapped(answer.body, Number(headers['content-length'] ?? 0));
  const body = await unpack(packed, headers['content-encoding']);
  return { status: answer.statusCode, headers, body };
}

/** Headers by lower-case name; those that came more than once are joined, as HTTP defines. */
function flatten(headers: Dispatcher.ResponseData['headers']): Record<string, string> {
  // Entries, not assignments: a header may be called `__proto__`.
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name.toLowerCase(), Array.isArray(value) ? value.join(', ') : value]],
    ),
  );
}

/** Reads a body as far as it may go. Counted here: undici's own limit does not reach connections through a proxy. */
async function readCapped(body: Dispatcher.ResponseData['body'], announcedBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  if (announcedBytes > MAX_ANSWER_BYTES) {
    body.on('error', () => {}).destroy();
    throw tooLarge();
  }
  // Leaving the loop destroys the body, and with it the connection: the rest is never read.
  for await (const chunk of body) {
    const part: Buffer = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk);
    bytes += part.length;
    if (bytes > MAX_ANSWER_BYTES) throw tooLarge();
    chunks.push(part);
  }
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, bytes);
}

const UNPACKERS = new Map([
  ['gzip', promisify<Buffer, { maxOutputLength: number }, Buffer>(gunzip)],
  ['x-gzip', promisify<Buffer, { maxOutputLength: number }, Buffer>(gunzip)],
  ['deflate', promisify<Buffer, { maxOutputLength: number }, Buffer>(inflate)],
  ['br', promisify<Buffer, { maxOutputLength: number }, Buffer>(brotliDecompress)],
]);

async function unpack(packed: Buffer, encoding = 'identity'): Promise<Buffer> {
  const name = encoding.trim().toLowerCase();
  if (name === 'identity' || name === '' || packed.length === 0) return packed;
  const unpacker = UNPACKERS.get(name);
  if (unpacker === undefined) throw new TransportError('other', 'the answer is packed in a way that was not asked for');
  try {
    return await unpacker(packed, { maxOutputLength: MAX_ANSWER_BYTES });
  } catch (error) {
    if (codeOf(error) === 'ERR_BUFFER_TOO_LARGE') throw tooLarge();
    throw new TransportError('other', 'the packed answer is damaged');
  }
}

function tooLarge(): TransportError {
  return new TransportError('too-large', `the answer is larger than ${MAX_ANSWER_BYTES / 1024 / 1024} MiB`);
}
