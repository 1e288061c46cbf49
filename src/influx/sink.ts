/**
 * A destination: it sends lines in one request and returns one answer (port `Sink`).
 *
 * It does not retry, buffer, split or log; the caller decides what to do with the lines. If no answer comes within the
 * deadline, the result is unknown and reported as "later": sending the same bytes again does no harm.
 */
import { linkAbort } from '../core/async.ts';
import type { DestinationKind } from '../core/lines/dialect.ts';
import type { Sink, WriteAnswer } from '../core/ports.ts';
import type { Secret } from '../core/secret.ts';
import {
  type Conceal,
  concealing,
  describeFailure,
  readAnswer,
  type ServerAnswer,
  type SettingNames,
  settingNames,
} from './answers.ts';
import { createConnection, type DatabaseCall, packText, type Send } from './connection.ts';

/** How to connect to a database. */
export interface InfluxSinkOptions {
  /** The name of the destination in the configuration. */
  readonly name: string;
  readonly url: string;
  /** `null` if the database needs none; `user:password` for InfluxDB 1.8. */
  readonly token: Secret | null;
  /** Reads the token from its file again. Called while the database rejects the current token. */
  readonly renewToken?: (() => Secret | null) | undefined;
  /** Empty if the database has no organisations. */
  readonly org: string;
  readonly bucket: string;
  /** The time limit of a request, from its start to the last byte of the answer. */
  readonly timeoutMs: number;
  /** Certificates to trust instead of the usual ones, in PEM. */
  readonly ca?: string | undefined;
  /** The proxy variables; absent: no proxy is used. */
  readonly proxies?: Readonly<Record<string, string | undefined>>;
  /** The names of the settings in messages; by default the keys of the section. */
  readonly settings?: SettingNames;
  /** Opens the connection that sends the token; over HTTP unless given. */
  readonly connect?: (token: string) => Send;
}

/**
 * Creates the sink of a database.
 *
 * @param kind the dialect of its lines: nanoseconds for InfluxDB, milliseconds for VictoriaMetrics
 * @throws TypeError if the URL is invalid or the token is not allowed in a header; the message contains neither
 */
export function createInfluxSink(options: InfluxSinkOptions, kind: DestinationKind = 'influxdb'): Sink {
  const client = createDatabaseClient(options, kind);
  const path = writePath(options, kind);
  const send = async (body: DatabaseCall['body'], signal: AbortSignal): Promise<WriteAnswer> => {
    const answer = await client.request({ method: 'POST', path, body }, signal);
    return 'kind' in answer ? answer : client.read(answer, signal);
  };
  return {
    name: options.name,
    writeText: send,
    pack: packText,
    async write(lines, signal) {
      const result = await send(`${lines.join('\n')}\n`, signal);
      return lines.length === 1 && result.kind === 'rejected' && result.isUnexplained
        ? await withReason(client, { bucket: options.bucket, line: lines[0] ?? '', rejection: result }, signal)
        : result;
    },
  };
}

type Rejection = Extract<WriteAnswer, { readonly kind: 'rejected' }>;

/**
 * Sends a line that an InfluxDB 3 rejected once more, to its own path, whose answer names the column and the reason.
 * This changes only the words of the rejection, not its meaning.
 */
async function withReason(
  client: DatabaseClient,
  { bucket, line, rejection }: { readonly bucket: string; readonly line: string; readonly rejection: Rejection },
  signal: AbortSignal,
): Promise<Rejection> {
  const path = `/api/v3/write_lp?${new URLSearchParams({ db: bucket, precision: 'nanosecond' })}`;
  const answer = await client.request({ method: 'POST', path, body: `${line}\n` }, signal);
  if ('kind' in answer) return rejection;
  const result = client.read(answer, signal);
  if (result.kind !== 'rejected') return rejection;
  const { isUnexplained: _, ...explained } = rejection;
  return { ...explained, message: result.message };
}

/** The path for writing. VictoriaMetrics has neither organisations nor buckets. */
export function writePath({ org, bucket }: InfluxSinkOptions, kind: DestinationKind): string {
  const query = kind === 'influxdb' ? { org, bucket, precision: 'ns' } : { precision: 'ms' };
  return `/api/v2/write?${new URLSearchParams(query)}`;
}

/** The names of the settings of a database in messages. */
export function namesOf({ name, settings }: Pick<InfluxSinkOptions, 'name' | 'settings'>): SettingNames {
  return settings ?? settingNames(name);
}

/** Sends requests to one database, each with its deadline, and reads the answers to writes. */
export interface DatabaseClient {
  /**
   * Sends a request.
   *
   * @returns the answer, or why none came
   * @throws the signal's reason when that aborts
   */
  request(
    call: DatabaseCall,
    signal: AbortSignal,
  ): Promise<ServerAnswer | Extract<WriteAnswer, { readonly kind: 'later' }>>;
  /** Decides from an answer whether the lines were accepted. */
  read(answer: ServerAnswer, signal: AbortSignal): WriteAnswer;
}

/** Creates the client of a database. @throws TypeError as {@link createInfluxSink} does. */
export function createDatabaseClient(options: InfluxSinkOptions, kind: DestinationKind): DatabaseClient {
  const { timeoutMs } = options;
  const influx = namesOf(options);
  const access = openAccess(options, kind);
  return {
    request: async (call, signal) => {
      signal.throwIfAborted();
      const deadline = AbortSignal.timeout(timeoutMs);
      const whole = linkAbort(signal, deadline);
      try {
        return await send(access, call, whole.signal);
      } catch (error) {
        signal.throwIfAborted();
        const why = deadline.aborted
          ? { message: `no answer within ${influx.timeout}` }
          : describeFailure(error, influx);
        return { kind: 'later', ...why, waitMs: null };
      } finally {
        whole.release();
      }
    },
    read: (answer, signal) => {
      const conceal: Conceal = (text) => access.concealers.reduce((left, each) => each(left), text);
      const answered = readAnswer(answer, conceal, kind, influx);
      // An abort may have truncated the answer. The answer still counts if its status alone is enough.
      if (answered.kind !== 'accepted') signal.throwIfAborted();
      return answered;
    },
  };
}

/** The connection with the token in use. */
interface Access {
  readonly connect: (token: string) => Send;
  readonly renewToken: InfluxSinkOptions['renewToken'];
  /** Functions that hide every token that has been in use. */
  readonly concealers: Conceal[];
  token: string;
  connection: Send;
  /** Whether the database rejected the token of the last request. */
  isTokenRejected: boolean;
}

/** The characters that a header may contain. */
const SENDABLE = /^[\x20-\x7e]*$/;

function openAccess(options: InfluxSinkOptions, kind: DestinationKind): Access {
  const { url, renewToken, ca, proxies } = options;
  const token = options.token?.reveal() ?? '';
  if (!SENDABLE.test(token)) {
    const influx = namesOf(options);
    throw new TypeError(`${influx.token}: it contains characters that no HTTP header can carry`);
  }
  const basic = kind === 'victoriametrics';
  const connect = options.connect ?? ((own: string): Send => createConnection({ url, token: own, basic, ca, proxies }));
  const concealers = [concealing(token)];
  return { connect, renewToken, concealers, token, connection: connect(token), isTokenRejected: false };
}

/**
 * Sends a request. While the database rejects the token, the token is read again before each request; a new token needs
 * a new connection.
 */
async function send(access: Access, call: DatabaseCall, signal: AbortSignal): Promise<ServerAnswer> {
  if (access.isTokenRejected) renew(access);
  const answer = await access.connection(call, signal);
  access.isTokenRejected = answer.status === 401 || answer.status === 403;
  return answer;
}

function renew(access: Access): void {
  const next = access.renewToken?.()?.reveal() ?? access.token;
  if (next === access.token || !SENDABLE.test(next)) return;
  access.token = next;
  access.concealers.push(concealing(next));
  access.connection = access.connect(next);
}
