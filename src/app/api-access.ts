/**
 * The way to the API, put together: one rate limiter that every request passes, one key, one memory of what the answers have shown.
 */
import { type ApiClientOptions, createApiClient } from '../api/client.ts';
import { createLearning } from '../api/learning.ts';
import { createRateLimiter, limitedTo, type RateLimiter, type RateLimiterOptions } from '../api/rate-limiter.ts';
import type { Api, Transport } from '../core/ports.ts';
import type { Learnt, LongWaits } from '../core/quota.ts';
import type { Store } from '../core/state/state.ts';
import { planFigures } from './allowance.ts';
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

interface AskingParts
  extends Omit<RateLimiterOptions, 'plan' | 'share' | 'concurrency' | 'onWait'>,
    Pick<ApiClientOptions, 'onDone' | 'onRetry'> {
  /** How requests travel: over HTTP, or in-process in simulations. */
  readonly transport: Transport;
  readonly access: ApiAccess;
  readonly store: Store;
}

export interface Asking {
  readonly api: Api;
  readonly limiter: RateLimiter;
  /** What the API's answers have shown so far. */
  readonly learnt: () => Learnt;
  /** Called where requests begin to wait for long, whoever makes them. */
  readonly waits: LongWaits;
  /** Asks through the same rate limiter, each thing once, and no more often than is allowed. */
  readonly askerOf: (requests: number) => { readonly api: Api; readonly spent: () => number };
}

/** The fact that holds what was learnt of the API. */
const LEARNT = 'learnt';

/** Opens it over a state. */
export function createAsking({ transport, access, store, onDone, onRetry, ...limits }: AskingParts): Asking {
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
    keep: (text) => store.keepFact(LEARNT, text),
  });
  const { serverClock, clock, random, observe } = limits;
  const asking = {
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
    api: createApiClient(asking),
    limiter,
    learnt: learning.learnt,
    waits,
    askerOf: (requests) => {
      const limited = limitedTo(limiter, requests);
      return { api: createApiClient({ ...asking, limiter: limited.limiter, retries: 0 }), spent: limited.spent };
    },
  };
}
