/**
 * A destination: lines in, one request, one answer out (port `Sink`).
 *
 * It never retries, buffers, splits or logs: what becomes of the lines is decided by who calls it. An answer that did
 * not come within the deadline is unknown, and said as "later": the same bytes again do no harm.
 */
import type { DestinationKind } from '../core/lines/dialect.ts';
import type { Sink, WriteAnswer } from '../core/ports.ts';
import type { Secret } from '../core/secret.ts';
import { type Conceal, readAnswer, type ServerAnswer } from './answers.ts';
import { type Call, createConnection, type Send } from './connection.ts';
import { concealing, inSectionOf, readFailure } from './trouble.ts';

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
  const talk = createTalk(options, kind);
  const path = writePath(options, kind);
  return {
    name: options.name,
    async write(lines, signal) {
      signal.throwIfAborted();
      const call: Call = { method: 'POST', path, body: `${lines.join('\n')}\n` };
      const answer = await talk.ask(call, signal);
      return 'kind' in answer ? answer : talk.read(answer, signal);
    },
  };
}

/** Where lines are posted. VictoriaMetrics knows neither organisations nor buckets. */
export function writePath({ org, bucket }: InfluxSinkOptions, kind: DestinationKind): string {
  const query = kind === 'influxdb' ? { org, bucket, precision: 'ns' } : { precision: 'ms' };
  return `/api/v2/write?${new URLSearchParams(query)}`;
}

/** Requests to one database, each with its deadline, and what is to be told of them. */
export interface Talk {
  /** @returns what it answered, or why no answer came. Throws only the signal's reason, when that aborts. */
  ask(call: Call, signal: AbortSignal): Promise<ServerAnswer | Extract<WriteAnswer, { readonly kind: 'later' }>>;
  /** What an answer to a write means. */
  read(answer: ServerAnswer, signal: AbortSignal): WriteAnswer;
}

/** @throws TypeError as {@link createInfluxSink} does. */
export function createTalk(options: InfluxSinkOptions, kind: DestinationKind): Talk {
  const { name, timeoutMs } = options;
  const line = createLine(options, kind);
  return {
    ask: async (call, signal) => {
      signal.throwIfAborted();
      // Not `AbortSignal.any`: joined signals stay as long as their sources, and with them what was sent.
      const whole = new AbortController();
      const onAbort = (): void => whole.abort(signal.reason);
      const deadline = AbortSignal.timeout(timeoutMs);
      const onLate = (): void => whole.abort();
      deadline.addEventListener('abort', onLate, { once: true });
      signal.addEventListener('abort', onAbort, { once: true });
      try {
        return await line.send(call, whole.signal);
      } catch (error) {
        signal.throwIfAborted();
        const words = deadline.aborted ? 'no answer within influx.timeout' : readFailure(error).words;
        return { kind: 'later', words: inSectionOf(name, words), waitMs: null };
      } finally {
        deadline.removeEventListener('abort', onLate);
        signal.removeEventListener('abort', onAbort);
      }
    },
    read: (answer, signal) => {
      const said = readAnswer(answer, line.conceal, kind);
      // An abort may have cut an answer short; one that says all in its status stands.
      if (said.kind !== 'accepted') signal.throwIfAborted();
      return 'hint' in said ? { ...said, hint: inSectionOf(name, said.hint) } : said;
    },
  };
}

/** The connection with the token in use, and what keeps every token that was out of the words. */
interface Line {
  readonly send: Send;
  readonly conceal: Conceal;
}

/** What a header can carry. */
const SENDABLE = /^[\x20-\x7e]*$/;

/** While the database refuses the token, it is read again before every request: another one is taken, and the line is new. */
function createLine({ name, url, token, renewToken, ca, proxies }: InfluxSinkOptions, kind: DestinationKind): Line {
  let inUse = token?.reveal() ?? '';
  if (!SENDABLE.test(inUse)) {
    throw new TypeError(inSectionOf(name, 'influx.token: it has characters that no header can carry'));
  }
  const connect = (): Send => createConnection({ url, token: inUse, basic: kind === 'victoriametrics', ca, proxies });
  const concealers = [concealing(inUse)];
  let send = connect();
  let isRefused = false;
  const renew = (): void => {
    const next = renewToken?.()?.reveal() ?? inUse;
    if (next === inUse || !SENDABLE.test(next)) return;
    inUse = next;
    concealers.push(concealing(next));
    send = connect();
  };
  return {
    send: async (call, signal) => {
      if (isRefused) renew();
      const answer = await send(call, signal);
      isRefused = answer.status === 401 || answer.status === 403;
      return answer;
    },
    conceal: (text) => concealers.reduce((left, conceal) => conceal(left), text),
  };
}
