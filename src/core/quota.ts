/**
 * The types of the quota: the plan's limits, when a request may be sent, how many were sent, and what answers have
 * shown about points that the API document leaves open.
 */
import { type JsonRecord, parseJson } from './json.ts';
import { counted, grouped, plainText } from './text.ts';
import { type EpochMs, firstAfter } from './time.ts';

/** The limit per minute that is assumed while neither the account nor a header contains one. */
export const ASSUMED_PER_MINUTE = 10;

/** Our share of a limit: at least one request. */
export function budgetOf(limit: number, share: number): number {
  return Math.max(1, Math.floor(limit * share));
}

/** The plan's limits; `null` if the account does not contain one. */
export interface PlanFigures {
  readonly perMinute: number | null;
  readonly perDay: number | null;
}

/** Why a request has to wait: even spacing, a limit, other clients of a window, or a wait that the server requested. */
export const WAIT_REASONS = ['rate', 'minute', 'day', 'retry_after'] as const;
export type WaitReason = (typeof WAIT_REASONS)[number];

/** The reasons in words. They follow "Waiting:". */
export const WAIT_TEXTS: Readonly<Record<WaitReason, string>> = {
  rate: 'to spread the requests evenly',
  minute: "this minute's budget is used up",
  day: "this day's budget is used up",
  retry_after: 'the API asked to wait (Retry-After)',
};

/** Called when requests begin to wait for longer than even spacing explains. */
export interface LongWaits {
  /** `untilMs` is in server time; `null`: no one is notified. */
  onWait: ((untilMs: EpochMs, reason: WaitReason) => void) | null;
}

/** When the next request may be sent; a time in the past means now. */
export interface Turn {
  readonly atMs: number;
  readonly reason: WaitReason;
}

/** One window of the quota, in requests; `null` if unknown. */
export interface QuotaWindowFigures {
  /** The server's limit: the plan's, or a lower one from the headers. */
  readonly limit: number | null;
  /** The part of the limit that Tidemark may use (`api.share`). */
  readonly budget: number | null;
  /** How many requests were sent in the last minute or day. */
  readonly spent: number;
  /** The use by other clients, from the last answer that showed this window. */
  readonly others: number | null;
}

/**
 * The times of the last day's requests, oldest first. The limits of the quota count them. It is made for a day of a
 * large plan (some hundred thousand entries): adding is cheap, and counting is a binary search.
 */
export interface SendLog {
  /** Adds a request. Times must not decrease. */
  add(atMs: number): void;
  /** Replaces all entries; `times` ascending. */
  load(times: readonly number[]): void;
  /** How many requests are younger than `windowMs`. */
  count(nowMs: number, windowMs: number): number;
  /**
   * The time from which fewer than `cap` requests are younger than `windowMs`; negative infinity if that is always so.
   */
  freeAtMs(cap: number, windowMs: number): number;
}

/** A shorter wait is ordinary spacing of requests and is not reported. */
export const REPORTED_FROM_MS = 3000;

/** Old entries are dropped in bulk, so that dropping is cheap. */
const DROP_AT_ONCE = 4096;

/** An empty log that keeps entries for `retentionMs`. */
export function createSendLog(retentionMs: number): SendLog {
  let times: number[] = [];
  let oldest = 0;

  const drop = (nowMs: number): void => {
    while (oldest < times.length && (times[oldest] ?? 0) <= nowMs - retentionMs) oldest += 1;
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

/** Rare observations, which are therefore stored. */
export interface RareSights {
  /** The names of the headers of a 429 that request a wait. */
  readonly waitHeaders: readonly string[];
  /** The names of the headers of a 401 that contain a challenge. */
  readonly challengeHeaders: readonly string[];
}

/** The limits of the API as far as its answers have shown them. */
export interface Learnt extends RareSights {
  /** Whether answers carry `X-RateLimit-Limit` and `-Remaining`; `null`: no answer yet. */
  readonly rateLimit: 'all' | 'some' | 'none' | null;
  /** The largest `limit` that was answered with 200, and the smallest that was rejected with 400. */
  readonly pageTaken: number | null;
  readonly pageRejected: number | null;
}

/** The most names that are stored. */
const MOST_NAMES = 5;

/** Adds names. Known ones keep their place. */
export function withNames(known: readonly string[], names: readonly string[]): readonly string[] {
  return [...new Set([...known, ...names.filter(isName)])].slice(0, MOST_NAMES);
}

/** Reads the stored observations. Unreadable text counts as empty: the observations will be made again. */
export function readRareSights(text: string | null): RareSights {
  const { waitHeaders, challengeHeaders } = { ...(parseJson(text) as JsonRecord | null) };
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

/** Whether a text can be the name of a header. */
function isName(name: string): boolean {
  return /^[a-z0-9-]{1,60}$/i.test(name);
}

const LANES: ReadonlyMap<string, string> = new Map([
  ['live', 'newest readings'],
  ['inventory', 'device list and account'],
  ['first-history', 'history'],
  ['idle-poll', 'idle polls'],
]);

/**
 * The purpose of requests in words.
 *
 * @param lane as stored, maybe by another version.
 */
export function laneText(lane: string): string {
  return LANES.get(lane) ?? plainText(lane, 20);
}

/** One window of the quota as the status report has it. */
type ShownWindow = Omit<QuotaWindowFigures, 'others'> & Partial<Pick<QuotaWindowFigures, 'others'>>;

/** The requests that are left in a window. */
interface LeftRequests {
  /** The requests left to all clients of the workspace, by the server's limit; `null` while the limit is unknown. */
  readonly ofPlan: number | null;
  /**
   * The requests left to this program: the rest of its budget, at most what the plan leaves; `null` while the budget is
   * unknown.
   */
  readonly ofBudget: number | null;
}

/** Returns how many requests are left in a window. The use by other clients counts as 0 until an answer shows it. */
export function requestsLeft({ limit, budget, spent, others }: ShownWindow): LeftRequests {
  const ofPlan = limit === null ? null : Math.max(0, limit - spent - (others ?? 0));
  return { ofPlan, ofBudget: budget === null ? null : Math.max(0, Math.min(budget - spent, ofPlan ?? Infinity)) };
}

/** The used quota, and the requests that the plan leaves to all clients of the workspace; `null`: not known. */
export interface PlanUse {
  readonly spentMinute: number;
  readonly leftMinute: number | null;
  readonly spentDay: number;
  readonly leftDay: number | null;
}

/** The same, and the requests that the budget leaves to this program. */
export interface QuotaUse extends PlanUse {
  readonly budgetLeftMinute: number | null;
  readonly budgetLeftDay: number | null;
}

/**
 * A window in words: `312 of 720 (plan 900, other clients about 40), 568 left`. Without a running process other clients
 * are unknown: `at most 568 left`.
 */
export function windowText(window: ShownWindow): string {
  const { limit, budget, spent, others } = window;
  const left = requestsLeft(window).ofBudget;
  if (budget === null || left === null) return `${counted(spent, 'request')}; the limit is not known yet`;
  const beside = [
    ...(limit === null ? [] : [`plan ${grouped(limit)}`]),
    // Each answer of the API reports one of the windows. Absent: this process has seen no answer.
    ...(others === undefined || others === 0
      ? []
      : [others === null ? 'other clients not reported' : `other clients about ${grouped(others)}`]),
  ];
  const aside = beside.length === 0 ? '' : ` (${beside.join(', ')})`;
  const atMost = others === undefined ? 'at most ' : '';
  return `${grouped(spent)} of ${grouped(budget)}${aside}, ${atMost}${grouped(left)} left`;
}

/** The requests that wait for quota, as a sentence without the time at its end; `null` while nothing waits. */
export function quotaWaitText({
  waiting_until,
  history_waiting_until,
}: {
  readonly waiting_until: string | null;
  readonly history_waiting_until: string | null;
}): { readonly text: string; readonly at: string } | null {
  if (waiting_until !== null) return { text: 'Quota used up: requests resume at', at: waiting_until };
  if (history_waiting_until === null) return null;
  const text = 'History and backfill spread the budget over the day: they resume at';
  return { text, at: history_waiting_until };
}
