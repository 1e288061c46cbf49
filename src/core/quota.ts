/**
 * What is known of the quota: the plan's limits, what an answer tells of them, when a request may go, how many have
 * gone; and what answers have shown of what the API's document leaves open.
 */
import type { EpochMs } from './time.ts';

/** The plan's limits; `null` where the account does not tell one. */
export interface PlanFigures {
  readonly perMinute: number | null;
  readonly perDay: number | null;
}

/** What holds a request back: the even pace, a ceiling or what others use, or a wait that was asked for. */
export type WaitReason = 'pace' | 'minute' | 'day' | 'asked';

/** Who is called where requests begin to wait for longer than the pace makes them. */
export interface LongWaits {
  /** `untilMs` in server time; `null`: nobody. */
  onWait: ((untilMs: EpochMs, reason: WaitReason) => void) | null;
}

/** When the next request may go; a time that has passed means now. */
export interface Turn {
  readonly atMs: number;
  readonly reason: WaitReason;
}

/** One window, in requests. `null`: not known. */
export interface WindowFigures {
  /** The server's limit: the plan's, or what the headers corrected it down to. */
  readonly limit: number | null;
  /** The share of it. */
  readonly budget: number | null;
  /** Sent in the last minute or day. */
  readonly spent: number;
  /** What other clients have used, as of the last answer that told of this window. */
  readonly others: number | null;
}

/**
 * The times of the requests of the last day, oldest first: what the limits of the quota count. Made for a day of a
 * large plan (some hundred thousand entries): adding costs nothing, counting is a binary search.
 */
export interface SendLog {
  /** Adds a request. Times must not fall. */
  add(atMs: number): void;
  /** Replaces all entries; `times` ascending. */
  load(times: readonly number[]): void;
  /** How many requests are younger than `windowMs`. */
  count(nowMs: number, windowMs: number): number;
  /**
   * From when on fewer than `cap` requests are younger than `windowMs`; negative infinity where that is so at any time.
   */
  freeAtMs(cap: number, windowMs: number): number;
}

/** Entries that nobody counts any more are dropped in bulk, so that dropping costs next to nothing. */
const DROP_AT_ONCE = 4096;

/** An empty log that keeps entries for `keepMs`. */
export function createSendLog(keepMs: number): SendLog {
  let times: number[] = [];
  let oldest = 0;

  const drop = (nowMs: number): void => {
    while (oldest < times.length && (times[oldest] ?? 0) <= nowMs - keepMs) oldest += 1;
    if (oldest < DROP_AT_ONCE || oldest * 2 < times.length) return;
    times = times.slice(oldest);
    oldest = 0;
  };

  return {
    add(atMs) {
      drop(atMs);
      times.push(Math.max(atMs, times.at(-1) ?? atMs));
    },
    load(loaded) {
      times = [...loaded];
      oldest = 0;
    },
    count: (nowMs, windowMs) => times.length - firstAfter(times, nowMs - windowMs, oldest),
    freeAtMs(cap, windowMs) {
      const blocking = times.length - cap;
      const atMs = blocking < oldest ? undefined : times[blocking];
      return atMs === undefined ? Number.NEGATIVE_INFINITY : atMs + windowMs;
    },
  };
}

/** The index of the first entry later than `atMs`, from index `low` on. */
function firstAfter(times: readonly number[], atMs: number, low: number): number {
  let from = low;
  let to = times.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((times[middle] ?? 0) <= atMs) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** What shows itself only now and then, and is worth remembering. */
export interface RareSights {
  /** Headers of a 429 that speak of a wait, by name. */
  readonly waitHeaders: readonly string[];
  /** Headers of a 401 that challenge, by name. */
  readonly challengeHeaders: readonly string[];
}

export interface Learnt extends RareSights {
  /** Whether answers carry `X-RateLimit-Limit` and `-Remaining`; `null`: no answer yet. */
  readonly rateLimit: 'all' | 'some' | 'none' | null;
  /** The largest `limit` that was answered with 200, and the smallest that was refused with 400. */
  readonly pageTaken: number | null;
  readonly pageRefused: number | null;
}

/** More names than this tell nothing more. */
const MOST_NAMES = 5;

/** Adds names; those that are known already stay where they are. */
export function withNames(known: readonly string[], names: readonly string[]): readonly string[] {
  return [...new Set([...known, ...names.filter(isName)])].slice(0, MOST_NAMES);
}

/** Reads what was remembered. What cannot be read is as good as nothing. */
export function readRareSights(text: string | null): RareSights {
  let value: unknown = null;
  try {
    value = text === null ? null : JSON.parse(text);
  } catch {
    // Learnt anew.
  }
  const { waitHeaders, challengeHeaders } = { ...(value as Readonly<Record<string, unknown>> | null) };
  return { waitHeaders: names(waitHeaders), challengeHeaders: names(challengeHeaders) };
}

function names(value: unknown): readonly string[] {
  return Array.isArray(value)
    ? withNames(
        [],
        value.filter((name) => typeof name === 'string'),
      )
    : [];
}

/** What a header can be called. */
function isName(name: string): boolean {
  return /^[a-z0-9-]{1,60}$/i.test(name);
}
