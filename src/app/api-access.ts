/**
 * The way to the API, put together: one gate that every request passes, one key, one memory of what the answers have shown.
 */
import { createBudget } from '../api/budget.ts';
import { createApiClient } from '../api/client.ts';
import { createLearning } from '../api/learning.ts';
import { createPacer, type Pacer, type PacerOptions } from '../api/pacer.ts';
import type { Learnt } from '../core/learnt.ts';
import type { Api, Transport } from '../core/ports.ts';
import type { ServerClock } from '../core/server-clock.ts';
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

export interface AskingParts extends Omit<PacerOptions, 'plan' | 'share' | 'concurrency' | 'serverClock'> {
  /** How requests travel: over HTTP, or in-process in simulations. */
  readonly transport: Transport;
  readonly access: ApiAccess;
  readonly store: Store;
  readonly serverClock: ServerClock;
}

export interface Asking {
  readonly api: Api;
  readonly pacer: Pacer;
  /** What the API's answers have shown so far. */
  readonly learnt: () => Learnt;
  /** Asks through the same gate, each thing once, and no more often than is allowed. */
  readonly askerOf: (requests: number) => { readonly api: Api; readonly spent: () => number };
}

/** The fact that holds what was learnt of the API. */
const LEARNT = 'learnt';

/** Opens it over a state. */
export function createAsking({ transport, access, store, ...gate }: AskingParts): Asking {
  const pacer = createPacer({
    ...gate,
    plan: () => planFigures(store),
    share: access.share,
    concurrency: access.concurrency,
  });
  const learning = createLearning({
    transport,
    kept: store.fact(LEARNT),
    keep: (text) => store.keepFact(LEARNT, text),
  });
  const { serverClock, clock, random, observe } = gate;
  const asking = {
    transport: learning.transport,
    baseUrl: access.url,
    key: access.key,
    pacer,
    serverClock,
    clock,
    random,
    observe,
    pageSize: () => store.account()?.plan.maxDevicesPerPage ?? null,
    version: VERSION,
  };
  return {
    api: createApiClient(asking),
    pacer,
    learnt: learning.learnt,
    askerOf: (requests) => {
      const budget = createBudget(pacer, requests);
      return { api: createApiClient({ ...asking, pacer: budget.pacer, retries: 0 }), spent: budget.spent };
    },
  };
}
