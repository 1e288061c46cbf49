/**
 * The client of the vendor's API. Each call returns one parsed answer or throws one `ApiFault`.
 *
 * Promises: every attempt, retries included, passes the rate limiter and is booked before it is sent. The client sends
 * only `GET`, and only to the base URL. It never shortens a wait that the server requested. The key appears in the
 * header of the request and nowhere else. A new endpoint needs a target (`urls.ts`), a parser (`parse.ts`) and a line
 * here.
 */
import type { AnswerBytes } from '../core/events.ts';
import { ApiFault, type ApiFaultKind, TransportError } from '../core/faults.ts';
import type { Api, HttpAnswer, Purpose, Reply, Transport } from '../core/ports.ts';
import type { Cursor, DevicePage, TelemetryPage } from '../core/records.ts';
import { type BackoffPolicy, backoffMs, retryVerdict } from '../core/retry.ts';
import type { ServerClock } from '../core/server-clock.ts';
import { SECOND_MS } from '../core/time.ts';
import { type Classified, classifyAnswer, readDate, readRateLimit } from './classify.ts';
import { createPageSize, isBadRequest, limitOf, type PageKey, type PageLimits, takeSmaller } from './page-size.ts';
import { parseAccount, parseAlert, parseAlertPage, parseDevicePage, type TimeLimit, telemetrySteps } from './parse.ts';
import type { RateLimiter, RateLimiterOptions } from './rate-limiter.ts';
import {
  ACCOUNT_TARGET,
  alertsTarget,
  alertTarget,
  createUrls,
  devicesTarget,
  hasCursor,
  nameRequest,
  type Target,
  telemetryTarget,
} from './urls.ts';

/** The address, the key and the limits of a client. */
export interface ApiClientOptions extends Pick<RateLimiterOptions, 'serverClock' | 'clock' | 'random' | 'observe'> {
  readonly transport: Transport;
  /** Ends in `/external/v1`. */
  readonly baseUrl: string;
  /** Called for each request, so that a key can be replaced while the program runs. */
  readonly key: () => string;
  readonly limiter: RateLimiter;
  /** Called with the fault of each attempt before the attempt is reported; `null` if there was none. */
  readonly onDone?: ((fault: ApiFaultKind | null, purpose: Purpose) => void) | undefined;
  /** Called before each wait for another attempt, with its length in ms. */
  readonly onRetry?: ((waitMs: number, fault: ApiFault) => void) | undefined;
  /** Called when the service rejects a page as a bad request, before the second try: the plan may have changed. */
  readonly onRejected?: ((signal: AbortSignal) => Promise<void>) | undefined;
  /** The largest page that the plan allows; `null` while it is unknown. */
  readonly pageSize: () => number | null;
  /** How often a request is retried after a fault that may pass. */
  readonly retries?: number;
  /** The version of this program, for the `User-Agent` header. */
  readonly version?: string;
}

const DEFAULT_RETRIES = 4;
const BACKOFF: BackoffPolicy = { baseMs: SECOND_MS, maxMs: 30 * SECOND_MS };

/**
 * Converts a body to a value.
 *
 * @throws ApiFault if the body is not as documented
 */
type Parse<T> = (body: unknown, request: string, help: ParseHelp) => T | Promise<T>;

interface ParseHelp extends TimeLimit {
  /** Yields to other work of the process in the middle of a long body. */
  readonly turn: () => Promise<void>;
}

type TimesServed = Parameters<ServerClock['noteTimes']>;

interface RequestSpec<T> {
  readonly target: Target;
  readonly parse: Parse<T>;
  readonly purpose: Purpose;
  /** Returns the times in the value that the server's clock has passed. */
  readonly timesOf?: (value: T) => TimesServed;
}

/** A client's options with its page sizes. */
interface Requester extends PageLimits {
  readonly options: ApiClientOptions;
  readonly attempt: Attempt;
}

/**
 * Creates the client.
 *
 * @throws UserError if the base URL is not that of this API
 */
export function createApiClient(options: ApiClientOptions): Api {
  const client: Requester = {
    options,
    attempt: createAttempt(options),
    pageSize: createPageSize(options.pageSize),
    smaller: new Map(),
  };
  return {
    account: async (purpose, signal) =>
      await send(client, { target: ACCOUNT_TARGET, parse: parseAccount, purpose }, signal),
    devices: async (cursor, purpose, signal) => {
      const buildSpec = (limit: number) => ({
        target: devicesTarget(limit, cursor),
        parse: parseDevicePage,
        purpose,
        timesOf: ({ devices, hasFuture }: DevicePage): TimesServed => [
          devices.flatMap(({ lastSeenAt }) => lastSeenAt ?? []),
          hasFuture,
        ],
      });
      return await sendPage(client, { list: 'devices', cursor }, buildSpec, signal);
    },
    alerts: async (cursor, purpose, signal) => {
      const buildSpec = (limit: number) => ({ target: alertsTarget(limit, cursor), parse: parseAlertPage, purpose });
      return await sendPage(client, { list: 'alerts', cursor }, buildSpec, signal);
    },
    alert: async (alertId, purpose, signal) =>
      await send(client, { target: alertTarget(alertId), parse: parseAlert, purpose }, signal),
    telemetry: async (query, purpose, signal) => {
      const { deviceId, cursor } = query;
      const buildSpec = (limit: number) => ({
        target: telemetryTarget(limit, query),
        parse: parseTelemetryInTurns,
        purpose,
        timesOf: ({ readings, hasFuture }: TelemetryPage): TimesServed => [
          readings.map(({ recordedAt }) => recordedAt),
          hasFuture,
        ],
      });
      return await sendPage(client, { list: `telemetry ${deviceId} ${purpose.lane}`, cursor }, buildSpec, signal);
    },
  };
}

/**
 * Sends a request, and sends it again after faults that may pass.
 *
 * @throws ApiFault if none of the attempts succeeds
 */
async function send<T>({ options, attempt }: Requester, spec: RequestSpec<T>, signal: AbortSignal): Promise<Reply<T>> {
  const { clock } = options;
  let failingSinceMs = Number.POSITIVE_INFINITY;
  for (let failures = 1; ; failures += 1) {
    const outcome = await attempt(spec, signal);
    if (!(outcome instanceof ApiFault)) return outcome;
    failingSinceMs = Math.min(failingSinceMs, clock.monoMs());
    const { kind, what, facts, remedy } = outcome;
    const fault = new ApiFault(kind, what, { ...facts, retriedMs: clock.monoMs() - failingSinceMs }, remedy);
    await beforeRetry(options, fault, failures, signal);
  }
}

/**
 * Reports a fault and waits until the request may be sent again.
 *
 * @throws ApiFault the fault, if no retry can help
 */
async function beforeRetry(
  { clock, random, observe, onRetry, retries = DEFAULT_RETRIES }: ApiClientOptions,
  fault: ApiFault,
  failures: number,
  signal: AbortSignal,
): Promise<void> {
  const verdict = retryVerdict(fault.kind);
  // The same request gets the same answer.
  if (verdict === 'stop' || fault.facts.isTooLarge === true || failures > retries) throw fault;
  const requestedMs = fault.facts.waitMs ?? 0;
  // After the quota is exceeded, the rate limiter makes all requests wait, so this one need not wait here.
  const waitMs =
    verdict === 'wait' ? requestedMs : backoffMs({ failures, policy: BACKOFF, random, leastMs: requestedMs });
  const { kind, message, facts } = fault;
  onRetry?.(waitMs, fault);
  observe({ type: 'request-retried', request: facts.request, fault: kind, attempt: failures, waitMs, message });
  if (verdict === 'retry') await clock.sleep(waitMs, signal);
}

/**
 * Requests a page, and requests it again with a smaller `limit` if the service rejects the larger one, or if the answer
 * is too large to read.
 */
async function sendPage<T extends { readonly nextCursor: Cursor | null }>(
  client: Requester,
  page: PageKey,
  buildSpec: (limit: number) => RequestSpec<T>,
  signal: AbortSignal,
): Promise<Reply<T>> {
  const { pageSize, options } = client;
  for (;;) {
    const usual = pageSize.limitFor(page.cursor);
    const limit = limitOf(client, page);
    try {
      const reply = await send(client, buildSpec(limit), signal);
      if (limit === usual) pageSize.noteAnswered(limit);
      pageSize.noteCursor(reply.value.nextCursor, limit);
      return reply;
    } catch (error) {
      if (isBadRequest(error)) await options.onRejected?.(signal);
      const hasShrunk = isBadRequest(error) && limitOf(client, page) < limit;
      if (!hasShrunk && !takeSmaller(client, page, limit, error)) throw error;
    }
  }
}

/** Parses a page of telemetry, with turns for other work in between. */
async function parseTelemetryInTurns(
  body: unknown,
  request: string,
  { turn, ...limit }: ParseHelp,
): Promise<TelemetryPage> {
  const steps = telemetrySteps(body, request, limit);
  let step = steps.next();
  while (step.done !== true) {
    await turn();
    step = steps.next();
  }
  return step.value;
}

function bytesOf({ body, wireBytes = body.length }: HttpAnswer): AnswerBytes {
  return { wire: wireBytes, decoded: body.length };
}

type Attempt = <T>(spec: RequestSpec<T>, signal: AbortSignal) => Promise<Reply<T> | ApiFault>;

/**
 * Prepares single attempts: each waits for the rate limiter, sends the request, parses the answer and completes the
 * booking.
 */
function createAttempt(options: ApiClientOptions): Attempt {
  const { limiter, serverClock, clock, observe, transport } = options;
  const urlOf = createUrls(options.baseUrl);
  const userAgent = options.version === undefined ? 'tidemark' : `tidemark/${options.version}`;

  return async ({ target, parse, purpose, timesOf }, signal) => {
    const request = nameRequest(target);
    const url = urlOf(target);
    const key = readKey(options.key(), request);
    const requestId = await limiter.acquire(purpose, signal);
    const sentMonoMs = clock.monoMs();
    let status: number | null = null;
    let headers: HttpAnswer['headers'] = {};
    let bytes: AnswerBytes | null = null;
    let fault: ApiFault | null = null;
    try {
      const sent = { authorization: `Bearer ${key}`, accept: 'application/json', 'user-agent': userAgent };
      const answer = await transport({ method: 'GET', url, headers: sent }, signal);
      const receivedMonoMs = clock.monoMs();
      ({ status, headers } = answer);
      bytes = bytesOf(answer);
      const nowMs = readDate(headers) ?? serverClock.nowMs();
      const meaning = classifyAnswer(answer, { request, hasCursor: hasCursor(target), nowMs, secret: key });
      // A gateway's clock is not the server's.
      if (isFromApi(meaning)) serverClock.noteDate({ dateMs: readDate(headers), sentMonoMs, receivedMonoMs });
      if (meaning.kind === 'fault') throw meaning.fault;
      const turn = async (): Promise<void> => await clock.sleep(0, signal);
      const value = await parse(meaning.body, request, { turn, latestNs: serverClock.latestNs() });
      // The times in the answer may show that its `Date` is right.
      if (timesOf !== undefined) serverClock.noteTimes(...timesOf(value));
      const answeredAtMs = Math.floor(serverClock.nowMs() - (clock.monoMs() - receivedMonoMs));
      return { value, answeredAtMs, requestId };
    } catch (error) {
      fault = toFault(error, { request, status, signal });
      if (fault === null) throw error;
      return fault;
    } finally {
      const kind: ApiFaultKind | null = fault?.kind ?? null;
      const waitMs = fault?.facts.waitMs ?? null;
      limiter.noteAnswered({ requestId, status, fault: kind, ...readRateLimit(headers), waitMs });
      const durationMs = clock.monoMs() - sentMonoMs;
      const { stream, lane } = purpose;
      options.onDone?.(kind, purpose);
      observe({ type: 'request-done', request, stream, lane, status, durationMs, fault: kind, bytes });
    }
  };
}

/**
 * Checks that a key is usable in a header. Another key is neither sent nor quoted.
 *
 * @throws ApiFault `unauthorized`
 */
function readKey(key: string, request: string): string {
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  const [problem, remedy] =
    key === ''
      ? ['the API key is missing', 'Set api.key_file or api.key']
      : [
          'the API key contains characters that no HTTP header can carry, such as a line break',
          'Correct api.key or the file of api.key_file',
        ];
  throw new ApiFault('unauthorized', `${request}: not sent, ${problem}`, { request }, remedy);
}

function isFromApi(meaning: Classified): boolean {
  return meaning.kind === 'ok' || meaning.fault.kind !== 'server-fault';
}

/** The attempt that an error has ended. */
interface Attempted {
  readonly request: string;
  readonly status: number | null;
  readonly signal: AbortSignal;
}

/** The fault of an error; `null` for an abort or a bug of this program. */
function toFault(error: unknown, { request, status, signal }: Attempted): ApiFault | null {
  // A request may be aborted with the fault of another one.
  if (error === signal.reason) return null;
  if (error instanceof ApiFault) return error;
  if (!(error instanceof TransportError)) return null;
  const kind: ApiFaultKind = error.failure === 'too-large' ? 'malformed' : 'unreachable';
  const more = error.failure === 'too-large' ? { isTooLarge: true } : {};
  const facts = { request, ...(status === null ? {} : { status }), ...more };
  return new ApiFault(kind, `${request}: ${error.what}`, facts, error.remedy);
}
