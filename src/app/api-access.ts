/**
 * Connects the program to the API: one rate limiter for all requests, one key, and one record of the observations in
 * answers. The file also watches that requests make progress, and derives the quota figures for the status, the metrics
 * and the points.
 */

import { readRateLimit, WAIT_HEADER } from '../api/classify.ts';
import { type ApiClientOptions, createApiClient } from '../api/client.ts';
import {
  createRateLimiter,
  limitRequests,
  type RateLimiter,
  type RateLimiterFigures,
  type RateLimiterOptions,
} from '../api/rate-limiter.ts';
import { LONGEST_TIMEOUT_MS } from '../config/schema.ts';
import type { Heartbeats, Pulse } from '../core/heartbeats.ts';
import {
  type Api,
  HISTORY_LANES,
  type HttpAnswer,
  type HttpRequest,
  type Ledger,
  REQUEST_LANES,
  type Transport,
} from '../core/ports.ts';
import {
  type Learnt,
  type LongWaits,
  type QuotaUse,
  type RareSights,
  REPORTED_FROM_MS,
  readRareSights,
  requestsLeft,
  withNames,
} from '../core/quota.ts';
import type { ServerClock } from '../core/server-clock.ts';
import type { Store } from '../core/state/state.ts';
import { type QuotaStatus, VERSION } from '../core/status.ts';
import { DAY_MS, type EpochMs, timeText } from '../core/time.ts';
import type { BackfillSettings } from '../scheduler/backfill.ts';
import type { Rest } from '../scheduler/planner-types.ts';

/** The address of the API, and the limits for using it. */
export interface ApiAccess {
  readonly url: string;
  readonly key: () => string;
  readonly share: number;
  readonly concurrency: number;
  /** How long one request may take, in ms. */
  readonly timeoutMs?: number;
}

interface ConnectionParts
  extends Omit<RateLimiterOptions, 'plan' | 'share' | 'concurrency' | 'onWait'>,
    Pick<ApiClientOptions, 'onDone' | 'onRetry' | 'onRejected'> {
  /** Sends requests: over HTTP, or in-process in simulations. */
  readonly transport: Transport;
  readonly access: ApiAccess;
  readonly store: Store;
}

/** The client of the API with its rate limiter, and the facts about their work. */
export interface ApiConnection {
  readonly api: Api;
  readonly limiter: RateLimiter;
  /** The observations in the API's answers so far. */
  readonly learnt: () => Learnt;
  /** Called when requests begin to wait for long, whichever part sends them. */
  readonly waits: LongWaits;
  /** Creates a client for a limited number of requests through the same rate limiter, without retries. */
  readonly limitedApi: (requests: number) => { readonly api: Api; readonly spent: () => number };
}

/** The name of the stored fact with the observations in answers. */
const LEARNT = 'learnt';

/** Connects to the API, with the ledger and the facts of a state. */
export function connectApi(parts: ConnectionParts): ApiConnection {
  const { transport, access, store, onDone, onRetry, onRejected, ...limits } = parts;
  const waits: LongWaits = { onWait: null };
  const limiter = createRateLimiter({
    ...limits,
    plan: () => planFigures(store),
    share: access.share,
    concurrency: access.concurrency,
    onWait: (untilMs, reason) => waits.onWait?.(untilMs, reason),
  });
  const learning = createLearning({
    transport,
    stored: store.fact(LEARNT),
    save: (text) => store.saveFact(LEARNT, text),
  });
  const { serverClock, clock, random, observe } = limits;
  const connection = {
    transport: learning.transport,
    baseUrl: access.url,
    key: access.key,
    limiter,
    serverClock,
    clock,
    random,
    observe,
    onDone,
    onRetry,
    pageSize: () => store.account()?.plan.maxDevicesPerPage ?? null,
    version: VERSION,
  };
  return {
    api: createApiClient({ ...connection, onRejected }),
    limiter,
    learnt: learning.learnt,
    waits,
    limitedApi: (requests) => {
      const limited = limitRequests(limiter, requests);
      return { api: createApiClient({ ...connection, limiter: limited.limiter, retries: 0 }), spent: limited.spent };
    },
  };
}

/** Callbacks for the progress of requests: in the queue, at booking and at the answer. */
interface WatchedRequests {
  readonly onCheck: (restMs: number | null) => void;
  readonly onBooked: () => void;
  readonly onDone: () => void;
  readonly onRetry: (waitMs: number) => void;
}

/**
 * Reports the progress of requests as heartbeats.
 *
 * @param pulse the heartbeat of the loop that makes the requests
 * @param timeoutMs how long one request may take, in ms
 */
export function watchRequests(heartbeats: Heartbeats, pulse: Pulse, timeoutMs = LONGEST_TIMEOUT_MS): WatchedRequests {
  const queue = heartbeats.openPulse('rate limiter');
  return {
    onCheck: (restMs) => {
      if (restMs === null) return queue.rest();
      queue.beat(restMs);
      pulse.sign(restMs);
    },
    onBooked: () => pulse.sign(timeoutMs),
    onDone: () => pulse.sign(),
    onRetry: (waitMs) => pulse.sign(waitMs),
  };
}

/** The limits that the rate limiter uses; `null` while the plan is unknown. */
function planFigures(store: Store): { perMinute: number | null; perDay: number | null } | null {
  const plan = store.account()?.plan;
  return plan === undefined ? null : { perMinute: plan.requestsPerMinute, perDay: plan.requestsPerDay };
}

/** The windows of the quota and the waits, for reports. */
interface QuotaFigures extends Omit<RateLimiterFigures, 'waitingFor' | 'isRejectedRepeatedly'> {
  /** Until when history and backfill wait; `null` while they may send. */
  readonly historyWaitsUntilMs: EpochMs | null;
}

/**
 * Both windows, and until when no request, or no request for history and backfill, may be sent, if that is long enough
 * to be shown.
 */
export function quotaNow(limiter: RateLimiter, { nowMs, rest }: { nowMs: number; rest: Rest | null }): QuotaFigures {
  const { minute, day, waitingUntilMs: limitedUntilMs, waitingFor } = limiter.figures();
  // The rate before any limit is known is an assumption, so the quota is not used up.
  const isAssumed = waitingFor === 'rate' && minute.limit === null;
  const limiterWaitsUntilMs = isAssumed ? null : limitedUntilMs;
  const shown = (untilMs: EpochMs | null): EpochMs | null =>
    untilMs !== null && untilMs - nowMs >= REPORTED_FROM_MS ? untilMs : null;
  // The day's budget is spread over the day, for all lanes or for those below live work.
  const waitingUntilMs = shown(limiterWaitsUntilMs ?? (rest?.reason === 'day' ? rest.untilMs : null));
  const spareUntilMs = rest?.reason === 'spare' ? (rest.spareMs ?? rest.untilMs) : null;
  return { minute, day, waitingUntilMs, historyWaitsUntilMs: waitingUntilMs ?? shown(spareUntilMs) };
}

/**
 * The quota for the status.
 *
 * @param share `api.share`.
 */
export function quotaStatus(
  { minute, day, waitingUntilMs, historyWaitsUntilMs }: QuotaFigures,
  share: number,
): Omit<QuotaStatus, 'lanes'> {
  return {
    share,
    minute,
    day,
    waiting_until: timeText(waitingUntilMs),
    history_waiting_until: timeText(historyWaitsUntilMs),
  };
}

/** The quota, for the points about the workspace and for `--check`. */
export function quotaUse(limiter: RateLimiter): QuotaUse {
  const { minute, day } = limiter.figures();
  const left = { minute: requestsLeft(minute), day: requestsLeft(day) };
  return {
    spentMinute: minute.spent,
    leftMinute: left.minute.ofPlan,
    budgetLeftMinute: left.minute.ofBudget,
    spentDay: day.spent,
    leftDay: left.day.ofPlan,
    budgetLeftDay: left.day.ofBudget,
  };
}

/** The backfill requests that were sent, and those that may be sent. */
export interface BackfillQuota extends Pick<BackfillSettings, 'budgets'> {
  /** The backfill requests of the last day, in server time, ascending. */
  sentMs(): EpochMs[];
  /** The number of requests since a time in all lanes except history and backfill. */
  othersSince(sinceMs: EpochMs): number;
  /** The number of requests of the last day. */
  spentDay(): number;
}

/** The lanes whose load continues during a backfill. */
const OTHER_LANES = REQUEST_LANES.filter((lane) => !HISTORY_LANES.some((history) => history === lane));

/** Returns the requests that backfills have sent, by the ledger, and may send. */
export function backfillQuota(limiter: RateLimiter, ledger: Ledger, serverClock: ServerClock): BackfillQuota {
  return {
    budgets: () => {
      const { minute, day } = limiter.figures();
      return { perMinute: minute.budget, perDay: day.budget };
    },
    sentMs: () => ledger.sentSince(serverClock.nowMs() - DAY_MS, 'backfill'),
    othersSince: (sinceMs) => ledger.sentSince(sinceMs, ...OTHER_LANES).length,
    spentDay: () => limiter.figures().day.spent,
  };
}

interface Learning {
  readonly transport: Transport;
  learnt(): Learnt;
}

interface LearningOptions {
  readonly transport: Transport;
  /** The stored value; `null` for none. */
  readonly stored: string | null;
  /** Stores rare observations. Called when they change; if it throws, the answer is still returned. */
  readonly save: (text: string) => void;
}

/**
 * Wraps a transport: its answers pass unchanged, and `learnt` returns what they have shown about points that the API's
 * document leaves open (`core/quota.ts`). It keeps only names and numbers.
 */
export function createLearning({ transport, stored, save }: LearningOptions): Learning {
  let rare: RareSights = readRareSights(stored);
  let pages: Pick<Learnt, 'pageTaken' | 'pageRejected'> = { pageTaken: null, pageRejected: null };
  let rateLimit: Learnt['rateLimit'] = null;
  const noteRare = (next: RareSights): void => {
    if (JSON.stringify(next) === JSON.stringify(rare)) return;
    rare = next;
    try {
      save(JSON.stringify(next));
    } catch {
      // For example, the state is full. The observation will be made again.
    }
  };
  return {
    transport: async (request, signal) => {
      const answer = await transport(request, signal);
      if (answer.status === 429 || answer.status === 401) noteRare(withRare(rare, answer));
      pages = withPage(pages, request, answer);
      if (answer.status === 200) rateLimit = withRateLimit(rateLimit, answer);
      return answer;
    },
    learnt: () => ({ ...rare, ...pages, rateLimit }),
  };
}

function withRare({ waitHeaders, challengeHeaders }: RareSights, { status, headers }: HttpAnswer): RareSights {
  const named = (pattern: RegExp): string[] => Object.keys(headers).filter((name) => pattern.test(name));
  return status === 429
    ? { waitHeaders: withNames(waitHeaders, named(WAIT_HEADER)), challengeHeaders }
    : { waitHeaders, challengeHeaders: withNames(challengeHeaders, named(/authenticate|challenge/i)) };
}

type Pages = Pick<Learnt, 'pageTaken' | 'pageRejected'>;

/** Only first pages count: a later page may be rejected because of its cursor. */
function withPage(pages: Pages, { url }: HttpRequest, { status }: HttpAnswer): Pages {
  if (status !== 200 && status !== 400) return pages;
  const { searchParams: query } = new URL(url);
  const limit = Number(query.get('limit') ?? '');
  if (limit < 1 || query.has('cursor')) return pages;
  const { pageTaken, pageRejected } = pages;
  return status === 200
    ? { pageTaken: Math.max(limit, pageTaken ?? limit), pageRejected }
    : { pageTaken, pageRejected: Math.min(limit, pageRejected ?? limit) };
}

function withRateLimit(before: Learnt['rateLimit'], { headers }: HttpAnswer): Learnt['rateLimit'] {
  const { limit, remaining } = readRateLimit(headers);
  const now = limit !== null && remaining !== null ? 'all' : limit === null && remaining === null ? 'none' : 'some';
  return before === null || before === now ? now : 'some';
}
