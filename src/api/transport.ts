/**
 * Sends HTTP requests to the API over undici with kept-alive connections, and returns complete answers.
 *
 * Promises: an answer larger than `MAX_ANSWER_BYTES` is never kept in memory, neither compressed nor decompressed. No
 * request outlives its deadline. Redirects are returned and not followed (the key must not travel). Each failure
 * becomes one of a few kinds that a person can act on, with a message of this program, because messages of undici and
 * Node may contain an address, a proxy's password or a header.
 */
import { Buffer } from 'node:buffer';
import { promisify } from 'node:util';
import {
  brotliDecompress,
  brotliDecompressSync,
  gunzip,
  gunzipSync,
  inflate,
  inflateSync,
  type ZlibOptions,
} from 'node:zlib';
import { type Dispatcher, EnvHttpProxyAgent, request as send } from 'undici';
import { linkAbort } from '../core/async.ts';
import {
  type ApiRemedy,
  type ConnectionProblem,
  codeOf,
  connectionProblem,
  proxyNotUrl,
  TransportError,
  type TransportFailure,
} from '../core/faults.ts';
import type { HttpAnswer, HttpRequest, Transport } from '../core/ports.ts';
import { byteSize, plainText } from '../core/text.ts';

/**
 * The largest answer that is read: a full page is about 100 KiB. It is parsed in one turn, and may take ten times as
 * much memory.
 */
export const MAX_ANSWER_BYTES = 2 * 1024 * 1024;
const MAX_HEADER_BYTES = 16 * 1024;
const CONNECT_TIMEOUT_MS = 10_000;

/** The time limit, the certificates and the connections of a transport. */
export interface HttpTransportOptions {
  /** The time limit of a request, from connecting to the last byte. */
  readonly timeoutMs: number;
  /** Certificates (PEM) to trust instead of the usual authorities. */
  readonly ca?: string;
  /** How many connections may be open at once. */
  readonly connections?: number;
  /** Whether to use no proxy: for a service on this machine. */
  readonly direct?: boolean;
}

interface HttpTransport {
  readonly transport: Transport;
  /** Closes all connections; pending requests fail. */
  close(): Promise<void>;
}

/**
 * Opens a transport. It uses `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`.
 *
 * @throws UserError if a proxy variable is not a URL
 */
export function createHttpTransport(options: HttpTransportOptions): HttpTransport {
  const dispatcher = openDispatcher(options);
  const transport: Transport = async (request, signal) => {
    signal.throwIfAborted();
    const whole = linkAbort(signal);
    const deadline = setTimeout(() => {
      whole.abort(new TransportError('timeout', `no complete response within ${options.timeoutMs} ms`));
    }, options.timeoutMs);
    try {
      return await exchange(dispatcher, request, whole.signal);
    } catch (error) {
      signal.throwIfAborted();
      throw whole.signal.aborted ? whole.signal.reason : toTransportError(error);
    } finally {
      clearTimeout(deadline);
      whole.release();
    }
  };
  return { transport, close: () => dispatcher.destroy() };
}

function openDispatcher({ timeoutMs, ca, connections = 4, direct = false }: HttpTransportOptions): Dispatcher {
  const connect = {
    timeout: Math.min(CONNECT_TIMEOUT_MS, timeoutMs),
    // HTTP/1.1 is sufficient: pages are few and large, so HTTP/2 would not be faster.
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
    throw proxyNotUrl();
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
  const body = await unpackBody(packed, headers['content-encoding']);
  return { status: answer.statusCode, headers, body, ...(body === packed ? {} : { wireBytes: packed.length }) };
}

/** Headers by lower-case name. Repeated ones are joined, as HTTP defines. */
function flatten(headers: Dispatcher.ResponseData['headers']): Record<string, string> {
  // Entries, not assignments: a header may be called `__proto__`.
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name.toLowerCase(), Array.isArray(value) ? value.join(', ') : value]],
    ),
  );
}

/**
 * Reads a body up to the limit. It counts here because undici's own limit does not apply to connections through a
 * proxy.
 */
async function readCapped(body: Dispatcher.ResponseData['body'], announcedBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  if (announcedBytes > MAX_ANSWER_BYTES) {
    body.on('error', () => {}).destroy();
    throw tooLarge();
  }
  // Leaving the loop destroys the body and its connection, so the rest is never read.
  for await (const chunk of body) {
    const part: Buffer = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk);
    bytes += part.length;
    if (bytes > MAX_ANSWER_BYTES) throw tooLarge();
    chunks.push(part);
  }
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, bytes);
}

type UnpackOptions = Pick<ZlibOptions, 'maxOutputLength' | 'chunkSize'>;

/** Two decompressors for each encoding: one that runs on another thread, and a synchronous one. */
const UNPACKERS = new Map([
  ['gzip', { later: promisify<Buffer, UnpackOptions, Buffer>(gunzip), now: gunzipSync }],
  ['x-gzip', { later: promisify<Buffer, UnpackOptions, Buffer>(gunzip), now: gunzipSync }],
  ['deflate', { later: promisify<Buffer, UnpackOptions, Buffer>(inflate), now: inflateSync }],
  ['br', { later: promisify<Buffer, UnpackOptions, Buffer>(brotliDecompress), now: brotliDecompressSync }],
]);

/** A smaller body, such as that of a poll, is decompressed faster than another thread wakes up. */
const LATER_FROM_BYTES = 4096;

/** The sizes of the pieces that an answer is decompressed into, in bytes. */
const PIECE = { least: 1024, most: 128 * 1024 };

/**
 * The size of one piece that a body fits into: gzip ends with the length of its content. Node's usual 16 KB per body
 * would stay outside of the heap until the garbage collector runs.
 */
function pieceBytes(packed: Buffer): number {
  const length = packed.length < 4 ? 0 : packed.readUInt32LE(packed.length - 4);
  return Math.min(Math.max(length + 1, PIECE.least), PIECE.most);
}

async function unpackBody(packed: Buffer, encoding = 'identity'): Promise<Buffer> {
  const name = encoding.trim().toLowerCase();
  if (name === 'identity' || name === '' || packed.length === 0) return packed;
  const unpacker = UNPACKERS.get(name);
  if (unpacker === undefined)
    throw new TransportError('other', 'the response has a content encoding that was not requested');
  try {
    const options = { maxOutputLength: MAX_ANSWER_BYTES, chunkSize: pieceBytes(packed) };
    return packed.length < LATER_FROM_BYTES ? unpacker.now(packed, options) : await unpacker.later(packed, options);
  } catch (error) {
    if (codeOf(error) === 'ERR_BUFFER_TOO_LARGE') throw tooLarge();
    throw new TransportError('other', 'the compressed response is damaged');
  }
}

function tooLarge(): TransportError {
  return new TransportError('too-large', `the response is larger than ${byteSize(MAX_ANSWER_BYTES)}`);
}

/** `host` in the text is a space and the name of the host, or empty if the error does not name it. */
type Finding = readonly [failure: TransportFailure, what: string | ((host: string) => string), remedy?: ApiRemedy];

const RESET: Finding = ['reset', 'the connection was closed before the response was complete'];
const NO_ROUTE: Finding = ['refused', 'there is no route to the server', 'Check the network of this machine'];
const NOT_CONNECTED: Finding = ['timeout', 'the server did not accept the connection in time'];
const TIMEOUT: Finding = ['timeout', 'the server did not answer in time'];

/** The fault of a server that did not answer in time. */
export function timedOut(): TransportError {
  return findingError(TIMEOUT, null, undefined);
}

const TLS: Finding = ['tls', 'no secure connection (TLS)'];
const PROXY_AUTH: Finding = ['other', 'the proxy requires a user name and a password'];
const NOT_HTTP: Finding = ['other', 'the response is not HTTP'];

const BY_PROBLEM: Readonly<Record<ConnectionProblem, Finding>> = {
  refused: ['refused', 'connection refused', (api) => `Check ${api.url} and that the server is up`],
  'no-route': NO_ROUTE,
  'no-network': NO_ROUTE,
  closed: RESET,
  'no-answer': NOT_CONNECTED,
  'no-name': [
    'name',
    (host) => `the host name${host} was not found`,
    (api) => `Check ${api.url} and the name servers of this machine`,
  ],
  'no-resolver': [
    'name',
    (host) => `the host name${host} could not be resolved`,
    'Check the name servers of this machine',
  ],
  'no-tls': ['tls', 'the server does not speak TLS', (api) => `If that is intended, write ${api.url} with http://`],
  'self-signed': ['tls', 'the certificate is self-signed', 'To trust it, add it to the PEM file of api.ca_file'],
  'unknown-authority': [
    'tls',
    'the certificate was issued by an unknown authority',
    'To trust that authority, add its certificate to the PEM file of api.ca_file',
  ],
  'wrong-name': ['tls', 'the certificate does not match the host', (api) => `Correct ${api.url}`],
  expired: [
    'tls',
    'the certificate has expired',
    'Check the clock of this machine, or ask the operator of the API to renew it',
  ],
  'not-yet-valid': ['tls', 'the certificate is not valid yet', 'Check the clock of this machine'],
};

/** The findings about undici and its parser, by the `code` of the error or of one of its causes. */
const BY_CODE: ReadonlyMap<string, Finding> = new Map([
  ['UND_ERR_SOCKET', RESET],
  ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', RESET],
  ['UND_ERR_DESTROYED', ['reset', 'Tidemark closed the connection']],
  ['UND_ERR_CLOSED', ['reset', 'Tidemark closed the connection']],
  ['UND_ERR_CONNECT_TIMEOUT', NOT_CONNECTED],
  ['UND_ERR_HEADERS_TIMEOUT', TIMEOUT],
  ['UND_ERR_BODY_TIMEOUT', ['timeout', 'the response was cut off']],
  ['UND_ERR_PRX_TLS', ['tls', 'no secure connection to the proxy']],
  ['UND_ERR_ABORTED', ['other', 'the proxy did not connect to the server']],
  // A 407 to a request without a tunnel. No other invalid argument in undici's sense comes from outside.
  ['UND_ERR_INVALID_ARG', PROXY_AUTH],
  ['UND_ERR_PRX_CONN', ['reset', 'the proxy closed the connection']],
  ['UND_ERR_HEADERS_OVERFLOW', ['too-large', 'the headers of the response are too large']],
  ['HPE_HEADER_OVERFLOW', ['too-large', 'the headers of the response are too large']],
  ['UND_ERR_RES_EXCEEDED_MAX_SIZE', ['too-large', 'the response is too large']],
]);

/** Families of codes. OpenSSL's codes for certificates have no common prefix. */
const BY_PATTERN: readonly (readonly [RegExp, Finding])[] = [
  [
    /^(ERR_TLS_|ERR_SSL_|CERT_|CRL_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|INVALID_CA|INVALID_PURPOSE|HOSTNAME_MISMATCH)/,
    TLS,
  ],
  [/^HPE_/, NOT_HTTP],
];

function findingOf(code: string): Finding | undefined {
  const problem = connectionProblem(code);
  if (problem !== null) return BY_PROBLEM[problem];
  return BY_CODE.get(code) ?? BY_PATTERN.find(([pattern]) => pattern.test(code))?.[1];
}

/** The kind of failure of an undici error. A `TransportError` is returned as it is. */
export function toTransportError(error: unknown): TransportError {
  if (error instanceof TransportError) return error;
  for (const code of codesOf(error)) {
    const finding = findingOf(code);
    if (finding !== undefined) return findingError(finding, error, code);
  }
  return findingError(findingWithoutCode(error), error, codesOf(error)[0]);
}

function findingError([failure, what, remedy]: Finding, error: unknown, code: string | undefined): TransportError {
  const text = typeof what === 'string' ? what : what(hostText(error));
  return new TransportError(failure, code === undefined ? text : `${text} (${code})`, remedy);
}

/** The failures that undici reports without a code of their own. */
function findingWithoutCode(error: unknown): Finding {
  if (error instanceof Error && error.name === 'HTTPParserError') return NOT_HTTP;
  return ['other', 'the request failed'];
}

/** The host that could not be found, with a space before it; empty if no error of the name service names it. */
function hostText(error: unknown): string {
  let current: unknown = error;
  for (let depth = 0; depth < 5 && current instanceof Error; depth += 1) {
    if ('hostname' in current && typeof current.hostname === 'string') return ` ${plainText(current.hostname, 100)}`;
    current = current.cause ?? (current instanceof AggregateError ? current.errors[0] : undefined);
  }
  return '';
}

/** The codes of an error and its causes, the outermost first; other values are left out. */
function codesOf(error: unknown): string[] {
  const codes: string[] = [];
  let current: unknown = error;
  for (let depth = 0; depth < 5 && current instanceof Error; depth += 1) {
    if ('code' in current && typeof current.code === 'string' && /^[A-Z][A-Z0-9_]{1,60}$/.test(current.code)) {
      codes.push(current.code);
    }
    current = current.cause ?? (current instanceof AggregateError ? current.errors[0] : undefined);
  }
  return codes;
}
