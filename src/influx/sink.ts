/**
 * A destination: lines in, one request, one answer out (port `Sink`).
 *
 * It never retries, buffers, splits or logs: what becomes of the lines is decided by who calls it. An answer that did
 * not come within the deadline is unknown, and said as "later": the same bytes again do no harm.
 */
import { linkAbort } from '../core/async.ts';
import type { DestinationKind } from '../core/lines/dialect.ts';
import type { Sink, WriteAnswer } from '../core/ports.ts';
import type { Secret } from '../core/secret.ts';
import { type Conceal, concealing, failureWords, inSectionOf, readAnswer, type ServerAnswer } from './answers.ts';
import { type Call, createConnection, type Send } from './connection.ts';

export interface InfluxSinkOptions {
  /** The destination's name in the configuration. */
  readonly name: string;
  readonly url: string;
  /** `null` where the database wants none; `user:password` for InfluxDB 1.8. */
  readonly token: Secret | null;
  /** Reads the token again, where it came from a file: asked while the database refuses the one in use. */
  readonly renewToken?: (() => Secret | null) | undefined;
  /** Empty where the database knows no organisations. */
  readonly org: string;
  readonly bucket: string;
  /** For one request, from its start to the last byte of the answer. */
  readonly timeoutMs: number;
  /** Certificates to trust, in PEM, instead of the usual ones. */
  readonly ca?: string | undefined;
  /** `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, where they are to be honoured. */
  readonly proxies?: Readonly<Record<string, string | undefined>>;
}

/**
 * @param kind what its lines are for: InfluxDB takes nanoseconds, VictoriaMetrics is sent milliseconds.
 * @throws TypeError where the URL cannot be read, or the token cannot stand in a header; its message holds neither.
 */
export function createInfluxSink(options: InfluxSinkOptions, kind: DestinationKind = 'influxdb'): Sink {
  const client = createDatabaseClient(options, kind);
  const path = writePath(options, kind);
  return {
    name: options.name,
    async write(lines, signal) {
      const answer = await client.ask({ method: 'POST', path, body: `${lines.join('\n')}\n` }, signal);
      return 'kind' in answer ? answer : client.read(answer, signal);
    },
  };
}

/** Where lines are posted. VictoriaMetrics knows neither organisations nor buckets. */
export function writePath({ org, bucket }: InfluxSinkOptions, kind: DestinationKind): string {
  const query = kind === 'influxdb' ? { org, bucket, precision: 'ns' } : { precision: 'ms' };
  return `/api/v2/write?${new URLSearchParams(query)}`;
}

/** Requests to one database, each with its deadline, and what its answers to writes mean. */
export interface DatabaseClient {
  /** @returns what it answered, or why no answer came. Throws only the signal's reason, when that aborts. */
  ask(call: Call, signal: AbortSignal): Promise<ServerAnswer | Extract<WriteAnswer, { readonly kind: 'later' }>>;
  /** What an answer to a write means. */
  read(answer: ServerAnswer, signal: AbortSignal): WriteAnswer;
}

/** @throws TypeError as {@link createInfluxSink} does. */
export function createDatabaseClient(options: InfluxSinkOptions, kind: DestinationKind): DatabaseClient {
  const { name, timeoutMs } = options;
  const access = openAccess(options, kind);
  return {
    ask: async (call, signal) => {
      signal.throwIfAborted();
      const deadline = AbortSignal.timeout(timeoutMs);
      const whole = linkAbort(signal, deadline);
      try {
        return await send(access, call, whole.signal);
      } catch (error) {
        signal.throwIfAborted();
        const words = deadline.aborted ? 'no answer within influx.timeout' : failureWords(error);
        return { kind: 'later', words: inSectionOf(name, words), waitMs: null };
      } finally {
        whole.release();
      }
    },
    read: (answer, signal) => {
      const conceal: Conceal = (text) => access.concealers.reduce((left, each) => each(left), text);
      const said = readAnswer(answer, conceal, kind);
      // An abort may have cut an answer short; one that says all in its status stands.
      if (said.kind !== 'accepted') signal.throwIfAborted();
      return 'hint' in said ? { ...said, hint: inSectionOf(name, said.hint) } : said;
    },
  };
}

/** The connection with the token in use. */
interface Access {
  readonly connect: (token: string) => Send;
  readonly renewToken: InfluxSinkOptions['renewToken'];
  /** What keeps every token that was in use out of the words. */
  readonly concealers: Conceal[];
  token: string;
  connection: Send;
  /** Whether the database refused the token at the last request. */
  isRefused: boolean;
}

/** What a header can carry. */
const SENDABLE = /^[\x20-\x7e]*$/;

function openAccess(options: InfluxSinkOptions, kind: DestinationKind): Access {
  const { name, url, renewToken, ca, proxies } = options;
  const token = options.token?.reveal() ?? '';
  if (!SENDABLE.test(token)) {
    throw new TypeError(inSectionOf(name, 'influx.token: it has characters that no header can carry'));
  }
  const basic = kind === 'victoriametrics';
  const connect = (own: string): Send => createConnection({ url, token: own, basic, ca, proxies });
  const concealers = [concealing(token)];
  return { connect, renewToken, concealers, token, connection: connect(token), isRefused: false };
}

/** While the database refuses the token, it is read again before every request: another one needs another connection. */
async function send(access: Access, call: Call, signal: AbortSignal): Promise<ServerAnswer> {
  if (access.isRefused) renew(access);
  const answer = await access.connection(call, signal);
  access.isRefused = answer.status === 401 || answer.status === 403;
  return answer;
}

function renew(access: Access): void {
  const next = access.renewToken?.()?.reveal() ?? access.token;
  if (next === access.token || !SENDABLE.test(next)) return;
  access.token = next;
  access.concealers.push(concealing(next));
  access.connection = access.connect(next);
}
