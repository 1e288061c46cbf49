/**
 * What undici and Node say when a request gets no whole answer, as the few kinds that a person can act on.
 *
 * Promise: the words are our own, never the library's: those may quote an address, a proxy's password or a header.
 */
import { TransportError, type TransportFailure } from '../core/faults.ts';

type Finding = readonly [failure: TransportFailure, words: string];

const REFUSED: Finding = ['refused', 'the connection was refused; is api.url right and the server up?'];
const NO_ROUTE: Finding = ['refused', 'there is no route to the server'];
const RESET: Finding = ['reset', 'the connection was closed before the whole answer had come'];
const NOT_CONNECTED: Finding = ['timeout', 'the server did not take the connection in time'];
const TIMEOUT: Finding = ['timeout', 'the server did not answer in time'];
const NO_NAME: Finding = ['name', 'the name of the server was not found'];
const NO_RESOLVER: Finding = ['name', 'the name of the server could not be looked up'];
const TLS: Finding = [
  'tls',
  'no secure connection; is the certificate valid for this name, and its authority trusted?',
];
const PROXY_AUTH: Finding = ['other', 'the proxy asks for a user and a password'];
const NOT_HTTP: Finding = ['other', 'the answer is not HTTP'];

/** By the `code` of the error or of one of its causes. */
const BY_CODE: ReadonlyMap<string, Finding> = new Map([
  ['ECONNREFUSED', REFUSED],
  ['EHOSTUNREACH', NO_ROUTE],
  ['ENETUNREACH', NO_ROUTE],
  ['EHOSTDOWN', NO_ROUTE],
  ['ENETDOWN', NO_ROUTE],
  ['ECONNRESET', RESET],
  ['ECONNABORTED', RESET],
  ['EPIPE', RESET],
  ['UND_ERR_SOCKET', RESET],
  ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', RESET],
  ['UND_ERR_DESTROYED', ['reset', 'the connections were closed from this side']],
  ['UND_ERR_CLOSED', ['reset', 'the connections were closed from this side']],
  ['ETIMEDOUT', NOT_CONNECTED],
  ['UND_ERR_CONNECT_TIMEOUT', NOT_CONNECTED],
  ['UND_ERR_HEADERS_TIMEOUT', TIMEOUT],
  ['UND_ERR_BODY_TIMEOUT', ['timeout', 'the answer stopped coming']],
  ['ENOTFOUND', NO_NAME],
  ['EAI_AGAIN', NO_RESOLVER],
  ['EAI_FAIL', NO_RESOLVER],
  ['EPROTO', TLS],
  ['UND_ERR_PRX_TLS', ['tls', 'no secure connection to the proxy']],
  ['UND_ERR_ABORTED', ['other', 'the proxy did not open a way to the server']],
  ['UND_ERR_PRX_CONN', ['reset', 'the proxy closed the connection']],
  ['UND_ERR_HEADERS_OVERFLOW', ['too-large', 'the headers of the answer are too large']],
  ['HPE_HEADER_OVERFLOW', ['too-large', 'the headers of the answer are too large']],
  ['UND_ERR_RES_EXCEEDED_MAX_SIZE', ['too-large', 'the answer is too large']],
]);

/** Families of codes; OpenSSL's verdicts on certificates have no prefix in common. */
const BY_PATTERN: readonly (readonly [RegExp, Finding])[] = [
  [
    /^(ERR_TLS_|ERR_SSL_|CERT_|CRL_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|INVALID_CA|INVALID_PURPOSE|HOSTNAME_MISMATCH)/,
    TLS,
  ],
  [/^HPE_/, NOT_HTTP],
];

/** The kind of failure behind an error of undici. A `TransportError` is handed through. */
export function toTransportError(error: unknown): TransportError {
  if (error instanceof TransportError) return error;
  for (const code of codesOf(error)) {
    const [failure, words] = findingOf(code) ?? [];
    if (failure !== undefined && words !== undefined) return new TransportError(failure, `${words} (${code})`);
  }
  const code = codesOf(error)[0];
  const [failure, words] = findingWithoutCode(error);
  return new TransportError(failure, code === undefined ? words : `${words} (${code})`);
}

/** What undici says in other ways than by a code of its own. */
function findingWithoutCode(error: unknown): Finding {
  if (error instanceof Error && error.name === 'HTTPParserError') return NOT_HTTP;
  if (error instanceof Error && error.message.includes('(407)')) return PROXY_AUTH;
  return ['other', 'the request failed'];
}

function findingOf(code: string): Finding | undefined {
  return BY_CODE.get(code) ?? BY_PATTERN.find(([pattern]) => pattern.test(code))?.[1];
}

/** The codes of an error and of what caused it, the outermost first; only what looks like a code. */
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
