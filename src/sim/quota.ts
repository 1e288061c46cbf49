/**
 * The quota of the simulated workspace: requests per minute and per day, counted together for all its clients.
 *
 * The API document does not define the length of a window or its beginning ("Length and reset behaviour: not shown"),
 * so all common kinds are available. Times are those of a clock that never jumps. Other clients use the same quota, at
 * a rate that may change while the simulator runs; when it is used up, they are rejected like any other client.
 */
import { DAY_MS, type EpochMs, MINUTE_MS } from '../core/time.ts';
import type { SimSettings } from './settings.ts';

export type WindowKind = SimSettings['quota']['window'];

/** The state of one window: requests allowed and left, and how long until one more is allowed (0: at once). */
export interface WindowState {
  readonly limit: number;
  readonly left: number;
  readonly waitMs: number;
}

/** The windows of the simulated quota. */
export interface SimQuotaState {
  readonly minute: WindowState;
  readonly day: WindowState;
}

interface SimQuota {
  state(atMs: EpochMs): SimQuotaState;
  /** Counts requests, even beyond the remaining quota. */
  spend(count: number, atMs: EpochMs): void;
}

/** A window that counts requests. Limits are read again each time, because plans change. */
interface Window {
  state(limit: number, atMs: EpochMs): WindowState;
  spend(count: number, limit: number, atMs: EpochMs): void;
}

/** Both windows of a workspace. `settings` are read at every call. */
export function createSimQuota(settings: Pick<SimSettings, 'quota' | 'plan'>): SimQuota {
  let kind = settings.quota.window;
  let windows = createWindows(kind);
  const current = (): typeof windows => {
    if (kind !== settings.quota.window) {
      kind = settings.quota.window;
      windows = createWindows(kind);
    }
    return windows;
  };
  return {
    state(atMs) {
      const { minute, day } = current();
      return {
        minute: minute.state(settings.plan.requestsPerMinute, atMs),
        day: day.state(settings.plan.requestsPerDay, atMs),
      };
    },
    spend(count, atMs) {
      const { minute, day } = current();
      minute.spend(count, settings.plan.requestsPerMinute, atMs);
      day.spend(count, settings.plan.requestsPerDay, atMs);
    },
  };
}

function createWindows(kind: WindowKind): { minute: Window; day: Window } {
  return { minute: createWindow(kind, MINUTE_MS), day: createWindow(kind, DAY_MS) };
}

function createWindow(kind: WindowKind, lengthMs: number): Window {
  switch (kind) {
    case 'fixed':
      return countingWindow(lengthMs, (atMs) => Math.floor(atMs / lengthMs) * lengthMs);
    case 'first-request':
      return countingWindow(lengthMs, (atMs) => atMs);
    case 'sliding':
      return slidingWindow(lengthMs);
    case 'bucket':
      return bucketWindow(lengthMs);
  }
}

/** Counts within a fixed window, then begins at zero; `beginOf` returns the beginning of a window that opens now. */
function countingWindow(lengthMs: number, beginOf: (atMs: EpochMs) => EpochMs): Window {
  let beginMs = -Infinity;
  let spent = 0;
  const isOver = (atMs: EpochMs): boolean => atMs >= beginMs + lengthMs;
  return {
    state(limit, atMs) {
      const left = Math.max(0, limit - (isOver(atMs) ? 0 : spent));
      return { limit, left, waitMs: left > 0 ? 0 : isOver(atMs) ? lengthMs : beginMs + lengthMs - atMs };
    },
    spend(count, _limit, atMs) {
      if (isOver(atMs)) {
        beginMs = beginOf(atMs);
        spent = 0;
      }
      spent += count;
    },
  };
}

/** Counts the requests within the last `lengthMs`. */
function slidingWindow(lengthMs: number): Window {
  const spends: { readonly atMs: EpochMs; readonly count: number }[] = [];
  let first = 0;
  let spent = 0;
  const forget = (atMs: EpochMs): void => {
    for (let next = spends[first]; next !== undefined && next.atMs <= atMs - lengthMs; next = spends[first]) {
      spent -= next.count;
      first += 1;
    }
    if (first > 4096) spends.splice(0, first);
    if (first > 4096) first = 0;
  };
  /** When enough of the oldest requests have left the window, so that one more is allowed. */
  const waitMs = (limit: number, atMs: EpochMs): number => {
    let excess = spent - limit + 1;
    for (let at = first; excess > 0; at += 1) {
      const next = spends[at];
      if (next === undefined) return lengthMs;
      excess -= next.count;
      if (excess <= 0) return next.atMs + lengthMs - atMs;
    }
    return 0;
  };
  return {
    state(limit, atMs) {
      forget(atMs);
      const left = Math.max(0, limit - spent);
      return { limit, left, waitMs: left > 0 ? 0 : waitMs(limit, atMs) };
    },
    spend(count, _limit, atMs) {
      forget(atMs);
      spends.push({ atMs, count });
      spent += count;
    },
  };
}

/** A bucket of requests that is refilled evenly, completely within `lengthMs`. */
function bucketWindow(lengthMs: number): Window {
  let filledAtMs = -Infinity;
  let tokens = Infinity;
  const fill = (limit: number, atMs: EpochMs): void => {
    const gain = filledAtMs === -Infinity ? limit : (Math.max(0, atMs - filledAtMs) * limit) / lengthMs;
    tokens = Math.min(limit, tokens === Infinity ? limit : tokens + gain);
    filledAtMs = atMs;
  };
  return {
    state(limit, atMs) {
      fill(limit, atMs);
      const left = Math.max(0, Math.floor(tokens + 1e-9));
      const waitMs = limit > 0 ? Math.ceil(((1 - tokens) * lengthMs) / limit) : lengthMs;
      return { limit, left, waitMs: left > 0 ? 0 : Math.max(1, waitMs) };
    },
    spend(count, limit, atMs) {
      fill(limit, atMs);
      tokens -= count;
    },
  };
}

/** How many portions are counted one by one after a pause. Older portions have already left every minute window. */
const MOST_PORTIONS = 5000;

/** The quota that is shared with other clients, whose use follows the current settings. */
export function shareSimQuota(quota: SimQuota, settings: Pick<SimSettings, 'quota'>): SimQuota {
  let countedToMs: EpochMs | null = null;
  let rest = 0;
  const spendTo = (atMs: EpochMs): void => {
    const { perMinute, everyMs } = settings.quota.foreign;
    if (countedToMs === null || perMinute <= 0 || everyMs <= 0) {
      countedToMs = atMs;
      return;
    }
    countedToMs = Math.max(countedToMs, atMs - MOST_PORTIONS * everyMs);
    for (let next = nextPortion(countedToMs, everyMs); next <= atMs; next += everyMs) {
      rest += (perMinute * everyMs) / MINUTE_MS;
      const count = Math.min(Math.floor(rest), leftOf(quota.state(next)));
      rest -= Math.floor(rest);
      if (count > 0) quota.spend(count, next);
    }
    countedToMs = atMs;
  };
  return {
    state: (atMs) => {
      spendTo(atMs);
      return quota.state(atMs);
    },
    spend: (count, atMs) => {
      spendTo(atMs);
      quota.spend(count, atMs);
    },
  };
}

/** The next moment at which the other clients spend a portion. */
function nextPortion(afterMs: EpochMs, everyMs: number): EpochMs {
  return (Math.floor(afterMs / everyMs) + 1) * everyMs;
}

function leftOf({ minute, day }: SimQuotaState): number {
  return Math.min(minute.left, day.left);
}
