/**
 * A destination: lines in, one request, one answer out (port `Sink`).
 *
 * It never retries, buffers, splits or logs: what becomes of the lines is decided by who calls it. An answer that did
 * not come within the deadline is unknown, and said as "later": the same bytes again do no harm.
 */
import type { Sink, WriteAnswer } from '../core/ports.ts';
import { SECRET_MARK, type Secret } from '../core/secret.ts';
import { plainText } from '../core/text.ts';
import { type Conceal, readAnswer } from './answers.ts';
import { createConnection, type Post } from './connection.ts';

export interface InfluxSinkOptions {
  /** The destination's name in the configuration. */
  readonly name: string;
  readonly url: string;
  /** `null` where the database wants none; `user:password` for InfluxDB 1.8. */
  readonly token: Secret | null;
  /** Empty where the database knows no organisations. */
  readonly org: string;
  readonly bucket: string;
  /** For one request, from its start to the last byte of the answer. */
  readonly timeoutMs: number;
  /** Certificates to trust, in PEM, instead of the usual ones. */
  readonly ca?: string | undefined;
}

/**
 * @throws TypeError where the URL cannot be read, or the token cannot stand in a header; its message holds neither.
 */
export function createInfluxSink({ name, url, token, org, bucket, timeoutMs, ca }: InfluxSinkOptions): Sink {
  const secret = token?.reveal() ?? '';
  if (!/^[\x20-\x7e]*$/.test(secret)) throw new TypeError('influx.token: it has characters that no header can carry');
  const post = createConnection({ url, token: secret, ca });
  const path = `/api/v2/write?${new URLSearchParams({ org, bucket, precision: 'ns' })}`;
  const conceal = concealing(secret);
  return {
    name,
    async write(lines, signal) {
      signal.throwIfAborted();
      const deadline = AbortSignal.timeout(timeoutMs);
      return await send(post, { path, body: `${lines.join('\n')}\n`, deadline, conceal }, signal);
    },
  };
}

interface Write {
  readonly path: string;
  readonly body: string;
  readonly deadline: AbortSignal;
  readonly conceal: Conceal;
}

async function send(post: Post, { path, body, deadline, conceal }: Write, signal: AbortSignal): Promise<WriteAnswer> {
  try {
    const answer = readAnswer(await post(path, body, AbortSignal.any([signal, deadline])), conceal);
    // An abort may have cut an answer short; one that says all in its status stands.
    if (answer.kind !== 'accepted') signal.throwIfAborted();
    return answer;
  } catch (error) {
    signal.throwIfAborted();
    if (deadline.aborted) return { kind: 'later', words: 'no answer within influx.timeout', waitMs: null };
    return readFailure(error);
  }
}

/** What to tell of a request that got no answer, by the code of the error: its message may quote anything. */
const FAILURES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the database refuses the connection: is it running, and is influx.url right?',
  ECONNRESET: 'the connection was cut before an answer came',
  EPIPE: 'the connection was cut before an answer came',
  ENOTFOUND: 'the host of influx.url is not known',
  EAI_AGAIN: 'the host of influx.url cannot be looked up just now',
  ETIMEDOUT: 'the host of influx.url does not answer',
  EHOSTUNREACH: 'the host of influx.url cannot be reached',
  ENETUNREACH: 'the network of influx.url cannot be reached',
  EPROTO: 'influx.url: what answers there does not speak TLS; http instead of https?',
  ERR_SSL_WRONG_VERSION_NUMBER: 'influx.url: what answers there does not speak TLS; http instead of https?',
  SELF_SIGNED_CERT_IN_CHAIN: 'the certificate of the database is not trusted: set influx.ca_file',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate of the database is not trusted: set influx.ca_file',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'the certificate of the database is not trusted: set influx.ca_file',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'the certificate of the database is not trusted: set influx.ca_file',
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate of the database is for another host than that of influx.url',
  CERT_HAS_EXPIRED: 'the certificate of the database has expired',
};

function readFailure(error: unknown): WriteAnswer {
  const code = typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
  const words = FAILURES[code] ?? `the request failed${code === '' ? '' : ` (${plainText(code, 60)})`}`;
  return { kind: 'later', words, waitMs: null };
}

/** The token, and of `user:password` the password, never reach a message, whoever quotes them. */
function concealing(secret: string): Conceal {
  const password = secret.slice(secret.indexOf(':') + 1);
  const hidden = [secret, password].filter((text) => text.length >= 4);
  return (text) => hidden.reduce((left, part) => left.replaceAll(part, SECRET_MARK), text);
}
