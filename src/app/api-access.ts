/**
 * The way to the API, put together: one rate limiter that every request passes, one key, one memory of what the answers have
 * shown. Beside it the signs of life of its requests, and the quota in the words of those who look at it: the status, metrics,
 * points.
 */

import { type ApiClientOptions, createApiClient } from '../api/client.ts';
import { createLearning } from '../api/learning.ts';
import {
  createRateLimiter,
  limitedTo,
  type RateLimiter,
  type RateLimiterFigures,
  type RateLimiterOptions,
} from '../api/rate-limiter.ts';
import type { Heartbeats, Pulse } from '../core/heartbeats.ts';
import type { QuotaUse } from '../core/lines/fact-lines.ts';
import type { Api, Transport } from '../core/ports.ts';
import type { Learnt, LongWaits } from '../core/quota.ts';
import type { Store } from '../core/state/state.ts';
import type { QuotaStatus } from '../core/status.ts';
import { formatExact, MINUTE_MS, msToNs } from '../core/time.ts';
import type { Rest } from '../scheduler/planner-types.ts';
import { VERSION } from './version.ts';

/** Where the API is, and how it may be asked. */
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
    Pick<ApiClientOptions, 'onDone' | 'onRetry'> {
  /** How requests travel: over HTTP, or in-process in simulations. */
  readonly transport: Transport;
  readonly access: ApiAccess;
  readonly store: Store;
}

export interface ApiConnection {
  readonly api: Api;
  readonly limiter: RateLimiter;
  /** What the API's answers have shown so far. */
  readonly learnt: () => Learnt;
  /** Called where requests begin to wait for long, whoever makes them. */
  readonly waits: LongWaits;
  /** Asks through the same rate limiter, each thing once, and no more often than is allowed. */
  readonly limitedApi: (requests: number) => { readonly api: Api; readonly spent: () => number };
}

/** The fact that holds what was learnt of the API. */
const LEARNT = 'learnt';

/** Opens it over a state. */
export function connectApi({ transport, access, store, onDone, onRetry, ...limits }: ConnectionParts): ApiConnection {
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
    kept: store.fact(LEARNT),
    keep: (text) => store.saveFact(LEARNT, text),
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
    api: createApiClient(connection),
    limiter,
    learnt: learning.learnt,
    waits,
    limitedApi: (requests) => {
      const limited = limitedTo(limiter, requests);
      return { api: createApiClient({ ...connection, limiter: limited.limiter, retries: 0 }), spent: limited.spent };
    },
  };
}

/** The longest that `api.timeout` allows. */
const LONGEST_TIMEOUT_MS = 10 * MINUTE_MS;

/** The requests to the API, as their gate, their bookings and their answers show them. */
interface WatchedRequests {
  readonly onCheck: (restMs: number | null) => void;
  readonly onBooked: () => void;
  readonly onDone: () => void;
  readonly onRetry: (waitMs: number) => void;
}

/** @param pulse of the loop that makes the requests. @param timeoutMs how long one may take. */
export function watchRequests(heartbeats: Heartbeats, pulse: Pulse, timeoutMs = LONGEST_TIMEOUT_MS): WatchedRequests {
  const queue = heartbeats.pulse('allowance gate');
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

/** What the rate limiter goes by; `null` while the plan is not known. */
function planFigures(store: Store): { perMinute: number | null; perDay: number | null } | null {
  const plan = store.account()?.plan;
  return plan === undefined ? null : { perMinute: plan.requestsPerMinute, perDay: plan.requestsPerDay };
}

/** Shorter waits are the even pace, and no waiting that anybody needs to know of. */
const REPORTED_FROM_MS = 3000;

/** The windows and the wait, as they are shown. */
type QuotaFigures = Omit<RateLimiterFigures, 'waitingFor'>;

/** Both windows, and until when the program waits, where that is worth telling. */
export function quotaNow(limiter: RateLimiter, { nowMs, rest }: { nowMs: number; rest: Rest | null }): QuotaFigures {
  const { minute, day, waitingUntilMs: limitedUntilMs } = limiter.figures();
  // The day's budget is spread over the day.
  const untilMs = limitedUntilMs ?? (rest?.reason === 'day' ? rest.untilMs : null);
  return { minute, day, waitingUntilMs: untilMs !== null && untilMs - nowMs >= REPORTED_FROM_MS ? untilMs : null };
}

/** The allowance as the status shows it. @param share `api.share`. */
export function quotaStatus({ minute, day, waitingUntilMs }: QuotaFigures, share: number): Omit<QuotaStatus, 'lanes'> {
  return { share, minute, day, waiting_until: waitingUntilMs === null ? null : formatExact(msToNs(waitingUntilMs)) };
}

/** The allowance as points tell of it. */
export function quotaUse(limiter: RateLimiter): QuotaUse {
  const { minute, day } = limiter.figures();
  const left = ({ limit, spent, others }: typeof minute): number | null =>
    limit === null ? null : Math.max(0, limit - spent - (others ?? 0));
  return { spentMinute: minute.spent, leftMinute: left(minute), spentDay: day.spent, leftDay: left(day) };
}
