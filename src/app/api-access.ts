/**
 * Connects the program to the API: one rate limiter for all requests, one key, and one record of what the answers have
 * shown. The file also watches that requests make progress, and derives the quota figures for the status, the metrics
 * and the points.
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
    Pick<ApiClientOptions, 'onDone' | 'onRetry'> {
  /** Sends requests: over HTTP, or in-process in simulations. */
  readonly transport: Transport;
  readonly access: ApiAccess;
  readonly store: Store;
}

export interface ApiConnection {
  readonly api: Api;
  readonly limiter: RateLimiter;
  /** What the API's answers have shown so far. */
  readonly learnt: () => Learnt;
  /** Called when requests begin to wait for long, whichever part sends them. */
  readonly waits: LongWaits;
  /** Creates a client for a limited number of requests through the same rate limiter, without retries. */
  readonly limitedApi: (requests: number) => { readonly api: Api; readonly spent: () => number };
}

/** The name of the stored fact about what answers have shown. */
const LEARNT = 'learnt';

/** Connects to the API, with the ledger and the facts of a state. */
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

/** Receivers for the progress of requests: in the queue, at booking and at the answer. */
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

/** The limits that the rate limiter uses; `null` while the plan is unknown. */
function planFigures(store: Store): { perMinute: number | null; perDay: number | null } | null {
  const plan = store.account()?.plan;
  return plan === undefined ? null : { perMinute: plan.requestsPerMinute, perDay: plan.requestsPerDay };
}

/** A shorter wait is ordinary spacing and is not shown. */
const REPORTED_FROM_MS = 3000;

/** The usage of both windows, and the wait, as they are shown. */
type QuotaFigures = Omit<RateLimiterFigures, 'waitingFor'>;

/** Returns the usage of both windows, and until when requests wait if that is long enough to be shown. */
export function quotaNow(limiter: RateLimiter, { nowMs, rest }: { nowMs: number; rest: Rest | null }): QuotaFigures {
  const { minute, day, waitingUntilMs: limitedUntilMs } = limiter.figures();
  // The scheduler spreads the day's budget over the day, which is a wait as well.
  const untilMs = limitedUntilMs ?? (rest?.reason === 'day' ? rest.untilMs : null);
  return { minute, day, waitingUntilMs: untilMs !== null && untilMs - nowMs >= REPORTED_FROM_MS ? untilMs : null };
}

/**
 * The quota in the form of the status.
 *
 * @param share `api.share`
 */
export function quotaStatus({ minute, day, waitingUntilMs }: QuotaFigures, share: number): Omit<QuotaStatus, 'lanes'> {
  return { share, minute, day, waiting_until: waitingUntilMs === null ? null : formatExact(msToNs(waitingUntilMs)) };
}

/** The quota in the form of the points about the workspace. */
export function quotaUse(limiter: RateLimiter): QuotaUse {
  const { minute, day } = limiter.figures();
  const left = ({ limit, spent, others }: typeof minute): number | null =>
    limit === null ? null : Math.max(0, limit - spent - (others ?? 0));
  return { spentMinute: minute.spent, leftMinute: left(minute), spentDay: day.spent, leftDay: left(day) };
}
