/**
 * The API as the program asks it: one call, one understood answer or one `ApiFault`.
 *
 * Promises: every attempt, retries included, passes the rate limiter and is booked before it is sent; only
 * `GET` is sent, only to the base URL; no wait that the server asked for is shortened; the key is in the header of the
 * request and nowhere else. A new endpoint is a target (`urls.ts`), a parser (`parse.ts`) and a line here.
 */
import { ApiFault, type ApiFaultKind, TransportError } from '../core/faults.ts';
import type { Api, HttpAnswer, Purpose, Reply, Transport } from '../core/ports.ts';
import type { Cursor, TelemetryPage } from '../core/records.ts';
import { type BackoffPolicy, backoffMs, verdictOf } from '../core/retry.ts';
import { type EpochNs, SECOND_MS } from '../core/time.ts';
import { type Classified, classifyAnswer, readDate, readRateLimit } from './classify.ts';
import { parseAccount, parseAlert, parseAlertPage, parseDevicePage, parseTelemetryPage } from './parse.ts';
import type { RateLimiter, RateLimiterOptions } from './rate-limiter.ts';
import {
  ACCOUNT,
  alertsTarget,
  alertTarget,
  createUrls,
  devicesTarget,
  hasCursor,
  nameRequest,
  type Target,
  telemetryTarget,
} from './urls.ts';

export interface ApiClientOptions extends Pick<RateLimiterOptions, 'serverClock' | 'clock' | 'random' | 'observe'> {
  readonly transport: Transport;
  /** Ends in `/external/v1`. */
  readonly baseUrl: string;
  /** Asked for each request, so that a key can be replaced while the program runs. */
  readonly key: () => string;
  readonly limiter: RateLimiter;
  /** Called with what became of each attempt, before it is reported; `null` where there was no fault. */
  readonly onDone?: ((fault: ApiFaultKind | null) => void) | undefined;
  /** Called before each wait for another attempt, with its length in ms. */
  readonly onRetry?: ((waitMs: number) => void) | undefined;
  /** The largest page by the plan, as known now; `null` where it is not. */
  readonly pageSize: () => number | null;
  /** How often a request is tried again after a fault that may pass. */
  readonly retries?: number;
  /** Of this program, for the `User-Agent`. */
  readonly version?: string;
}

const DEFAULT_RETRIES = 4;
const BACKOFF: BackoffPolicy = { baseMs: SECOND_MS, maxMs: 30 * SECOND_MS };

/** What an answer is turned into. @throws ApiFault where it is not what was promised. */
type Parse<T> = (body: unknown, request: string) => T;

interface Ask<T> {
  readonly target: Target;
  readonly parse: Parse<T>;
  readonly purpose: Purpose;
}

/**
 * The client.
 *
 * @throws UserError where the base URL is not that of this API.
 */
export function createApiClient(options: ApiClientOptions): Api {
  const { clock, random, observe, retries = DEFAULT_RETRIES } = options;
  const attempt = createAttempt(options);
  const pageSize = createPageSize(options.pageSize);

  /** Makes way for another try, or throws the fault where none can help. */
  const beforeRetry = async (fault: ApiFault, failures: number, signal: AbortSignal): Promise<void> => {
    const verdict = verdictOf(fault.kind);
    if (verdict === 'stop' || failures > retries) throw fault;
    const askedMs = fault.facts.waitMs ?? 0;
    // The rate limiter holds back what the quota refused, for all requests alike.
    const waitMs = verdict === 'wait' ? askedMs : backoffMs({ failures, policy: BACKOFF, random, askedMs });
    const { kind, message, facts } = fault;
    options.onRetry?.(waitMs);
    observe({ type: 'request-retried', request: facts.request, fault: kind, attempt: failures, waitMs, message });
    if (verdict === 'retry') await clock.sleep(waitMs, signal);
  };
  const ask = async <T>(asked: Ask<T>, signal: AbortSignal): Promise<Reply<T>> => {
    for (let failures = 1; ; failures += 1) {
      const outcome = await attempt(asked, signal);
      if (!(outcome instanceof ApiFault)) return outcome;
      await beforeRetry(outcome, failures, signal);
    }
  };

  const askPage = async <T>(
    page: PageAsked,
    asked: (limit: number) => Ask<T>,
    signal: AbortSignal,
  ): Promise<Reply<T>> => {
    for (;;) {
      const limit = pageSize.limitFor(page);
      try {
        const reply = await ask(asked(limit), signal);
        pageSize.answered(limit);
        return reply;
      } catch (error) {
        if (!isBadRequest(error) || !pageSize.refused(page, limit)) throw error;
      }
    }
  };

  return {
    account: async (purpose, signal) => await ask({ target: ACCOUNT, parse: parseAccount, purpose }, signal),
    devices: async (cursor, purpose, signal) => {
      const asked = (limit: number) => ({ target: devicesTarget(limit, cursor), parse: parseDevicePage, purpose });
      return await askPage({ list: 'devices', cursor }, asked, signal);
    },
    alerts: async (cursor, purpose, signal) => {
      const asked = (limit: number) => ({ target: alertsTarget(limit, cursor), parse: parseAlertPage, purpose });
      return await askPage({ list: 'alerts', cursor }, asked, signal);
    },
    alert: async (alertId, purpose, signal) =>
      await ask({ target: alertTarget(alertId), parse: parseAlert, purpose }, signal),
    telemetry: async (query, purpose, signal) => {
      const { deviceId, cursor } = query;
      const asked = (limit: number) => ({ target: telemetryTarget(limit, query), parse: parseTelemetryPage, purpose });
      const reply = await askPage({ list: `telemetry ${deviceId} ${purpose.lane}`, cursor }, asked, signal);
      const newest = newestOf(reply.value);
      if (newest !== null) options.serverClock.heardReading(newest);
      return reply;
    },
  };
}

function isBadRequest(error: unknown): boolean {
  return error instanceof ApiFault && error.kind === 'invalid-request' && error.facts.status === 400;
}

function newestOf({ readings }: TelemetryPage): EpochNs | null {
  let newest: EpochNs | null = null;
  for (const { recordedAt } of readings) if (newest === null || recordedAt > newest) newest = recordedAt;
  return newest;
}

type Attempt = <T>(asked: Ask<T>, signal: AbortSignal) => Promise<Reply<T> | ApiFault>;

/** One attempt: through the rate limiter, over the wire, understood and completed. */
function createAttempt(options: ApiClientOptions): Attempt {
  const { limiter, serverClock, clock, observe, transport } = options;
  const urlOf = createUrls(options.baseUrl);
  const userAgent = options.version === undefined ? 'tidemark' : `tidemark/${options.version}`;

  return async ({ target, parse, purpose }, signal) => {
    const request = nameRequest(target);
    const url = urlOf(target);
    const key = readKey(options.key(), request);
    const requestId = await limiter.acquire(purpose, signal);
    const sentMonoMs = clock.monoMs();
    let status: number | null = null;
    let headers: HttpAnswer['headers'] = {};
    let fault: ApiFault | null = null;
    try {
      const sent = { authorization: `Bearer ${key}`, accept: 'application/json', 'user-agent': userAgent };
      const answer = await transport({ method: 'GET', url, headers: sent }, signal);
      const receivedMonoMs = clock.monoMs();
      ({ status, headers } = answer);
      const nowMs = readDate(headers) ?? serverClock.nowMs();
      const meaning = classifyAnswer(answer, { request, hasCursor: hasCursor(target), nowMs, secret: key });
      // A gateway's clock is not the server's.
      if (isFromApi(meaning)) serverClock.heard({ dateMs: readDate(headers), sentMonoMs, receivedMonoMs });
      const answeredAtMs = serverClock.nowMs();
      if (meaning.kind === 'fault') throw meaning.fault;
      return { value: parse(meaning.body, request), answeredAtMs, requestId };
    } catch (error) {
      fault = toFault(error, request, status);
      if (fault === null) throw error;
      return fault;
    } finally {
      const kind: ApiFaultKind | null = fault?.kind ?? null;
      const waitMs = fault?.facts.waitMs ?? null;
      limiter.answered({ requestId, status, fault: kind, ...readRateLimit(headers), waitMs });
      const durationMs = clock.monoMs() - sentMonoMs;
      const { stream, lane } = purpose;
      options.onDone?.(kind);
      observe({ type: 'request-done', request, stream, lane, status, durationMs, fault: kind });
    }
  };
}

/** A key as it can stand in a header. One that cannot is never sent, and never quoted. */
function readKey(key: string, request: string): string {
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  const words = key === '' ? 'there is no key' : 'the key has characters that no key has';
  throw new ApiFault('unauthorized', `${request}: not sent, ${words}`, { request });
}

function isFromApi(meaning: Classified): boolean {
  return meaning.kind === 'ok' || meaning.fault.kind !== 'server-fault';
}

/** The fault behind an error; `null` for an abort or a mistake of this program. */
function toFault(error: unknown, request: string, status: number | null): ApiFault | null {
  if (error instanceof ApiFault) return error;
  if (!(error instanceof TransportError)) return null;
  const kind: ApiFaultKind = error.failure === 'too-large' ? 'malformed' : 'unreachable';
  return new ApiFault(kind, `${request}: ${error.message}`, { request, ...(status === null ? {} : { status }) });
}

/** The default of the API (document, "Pagination"), and the most that it accepts. */
const DEFAULT_SIZE = 50;
const MAX_SIZE = 200;

/** After so many answers the large pages are tried again; doubled each time that they are refused once more. */
const TRY_AGAIN_AFTER = 5;
const TRY_AGAIN_AT_MOST = 2000;

/** A page to be asked for: of which list, and whether it goes on from an earlier one. */
interface PageAsked {
  /** One chain of cursors at a time is read by each name. */
  readonly list: string;
  readonly cursor: Cursor | null;
}

interface PageSize {
  /** The `limit` to ask with. */
  limitFor(page: PageAsked): number;
  /** Takes in that a request with this `limit` was answered. */
  answered(limit: number): void;
  /** Takes in that it was refused as a bad request. @returns whether a smaller page is worth a try. */
  refused(page: PageAsked, limit: number): boolean;
}

/**
 * How many records to ask for in a page: as many as the plan allows, and fewer where the service refuses that.
 *
 * The plan publishes the largest page, but a key may not be allowed to read it, and it may have shrunk since it was
 * read; what becomes of a larger `limit` is not documented ("refused or clamped"). So a first page that is refused is
 * asked for once more with the documented default. The limit may not have been at fault: larger pages are tried again
 * after a while. Within a chain of cursors the limit stays what it was on the first page ("the other parameters must be
 * kept the same from page to page").
 *
 * @param planned the largest page by the plan, as known now; `null` where it is not.
 */
export function createPageSize(planned: () => number | null): PageSize {
  let smallFor = 0;
  let patience = TRY_AGAIN_AFTER;
  /** The limit of the chain that each list is read by. */
  const chains = new Map<string, number>();
  const largest = (): number => Math.max(1, Math.min(MAX_SIZE, Math.trunc(planned() ?? MAX_SIZE) || 1));
  const first = (): number => (smallFor > 0 ? Math.min(DEFAULT_SIZE, largest()) : largest());
  return {
    limitFor: ({ list, cursor }) => {
      const limit = cursor === null ? first() : (chains.get(list) ?? first());
      chains.set(list, limit);
      return limit;
    },
    answered: (limit) => {
      if (limit > DEFAULT_SIZE) patience = TRY_AGAIN_AFTER;
      else if (smallFor > 0) smallFor -= 1;
    },
    refused: ({ cursor }, limit) => {
      if (cursor !== null) return false;
      if (limit <= DEFAULT_SIZE) {
        // Refused all the same: the size was not at fault.
        smallFor = 0;
        patience = TRY_AGAIN_AFTER;
        return false;
      }
      smallFor = patience;
      patience = Math.min(TRY_AGAIN_AT_MOST, patience * 2);
      return true;
    },
  };
}
