/**
 * The reserve of each lane, and whether the quota can carry all readings.
 *
 * The answer to the second question selects the rules by which devices are polled. The reserves guarantee each lane
 * below live work its part of the requests, so that no lane waits forever.
 */
import type { Purpose } from '../core/ports.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../core/time.ts';
import type { QuotaRules } from './device-queue.ts';

/** The kinds of work below the live lane, in their order. */
export const RESERVED_LANES = ['account', 'alerts', 'devices', 'first-history', 'backfill', 'idle-poll'] as const;

export type ReservedLane = (typeof RESERVED_LANES)[number];

/** The smallest part of all requests that each lane gets while it has work. */
export type Reserves = Readonly<Record<ReservedLane, number>>;

/** The reserves if all readings fit the quota: history advances, and quiet devices are checked. */
export const USUAL_RESERVES: Reserves = {
  account: 0.002,
  alerts: 0.01,
  devices: 0.01,
  'first-history': 0.1,
  backfill: 0.05,
  'idle-poll': 0.02,
};

/** The reserves if not even the readings fit the quota: requests without readings are rare then. */
export const NARROW_RESERVES: Reserves = {
  account: 0.001,
  alerts: 0.004,
  devices: 0.005,
  'first-history': 0.05,
  backfill: 0.02,
  'idle-poll': 0.0025,
};

/** The largest debt of a lane for requests beyond its reserve. A listing of many pages is one unit. */
const MOST_AHEAD: Reserves = {
  account: 1,
  alerts: 5,
  devices: 200,
  'first-history': 5,
  backfill: 5,
  'idle-poll': 5,
};

/**
 * The credit of each lane, in requests.
 *
 * A lane with work earns a fraction of a request with every request that is sent, and pays one for each of its own;
 * with a credit of one its request is due. So it waits for at most the reciprocal of its reserve, in requests, and the
 * reserves together leave the rest to live work. A lane also pays, up to a limit, for requests beyond its reserve: so
 * its reserve does not cause a second listing right after one that saved more than it cost.
 */
export type Credit = Record<ReservedLane, number>;

/** Creates the credit of all lanes, without a request that is due. */
export function createCredit(): Credit {
  return { account: 0, alerts: 0, devices: 0, 'first-history': 0, backfill: 0, 'idle-poll': 0 };
}

/**
 * Books a request.
 *
 * @param hasWork whether a lane has work at that time.
 */
export function bookRequest(
  credit: Credit,
  purpose: Pick<Purpose, 'lane' | 'stream'>,
  hasWork: (lane: ReservedLane) => boolean,
  reserves: Reserves,
): void {
  const funded = reservedLaneOf(purpose);
  for (const lane of RESERVED_LANES) {
    const isFunded = lane === funded;
    // A lane without work earns no credit. A lane whose request was sent had work.
    const most = isFunded || hasWork(lane) ? 1 + reserves[lane] : 0;
    const next = Math.min(most, credit[lane] + reserves[lane]) - (isFunded ? 1 : 0);
    credit[lane] = Math.max(-MOST_AHEAD[lane], next);
  }
}

/** The first lane that is owed a request and has work for it. */
export function dueLane(credit: Credit, hasWork: (lane: ReservedLane) => boolean): ReservedLane | null {
  return RESERVED_LANES.find((lane) => credit[lane] >= 1 && hasWork(lane)) ?? null;
}

/** The reserved lane of a request; `null` for live work, which has no reserve. */
function reservedLaneOf({ lane, stream }: Pick<Purpose, 'lane' | 'stream'>): ReservedLane | null {
  if (lane === 'live') return null;
  if (lane !== 'inventory') return lane;
  return stream === 'account' ? 'account' : 'devices';
}

/** The fullest that pages get on average, because they are requested before they overflow. */
export const FULL_PAGE = 0.97;
/** The part of the requests that may go to pages that are not full yet, while full pages are short of quota. */
export const UNFULL_PART = 0.012;
const LONGEST_STALE_MS = 30 * DAY_MS;
const STEPS = 24;

/**
 * The lag at which a device is polled although its page is not full, while not all full pages can be read: just large
 * enough to waste few requests.
 *
 * @param intervalsMs the intervals of the devices that report.
 * @returns milliseconds, at most 30 days.
 */
export function staleLimitMs(
  intervalsMs: readonly number[],
  { pageSize, requestsPerMs }: { pageSize: number; requestsPerMs: number },
): number {
  const wasted = (staleMs: number): number => {
    let sum = 0;
    for (const intervalMs of intervalsMs) {
      const fillMs = pageSize * FULL_PAGE * intervalMs;
      if (fillMs > staleMs) sum += (1 - staleMs / fillMs) / staleMs;
    }
    return sum;
  };
  const range = { from: MINUTE_MS, to: LONGEST_STALE_MS };
  return findLeast(range, (staleMs) => wasted(staleMs) <= UNFULL_PART * requestsPerMs);
}

/**
 * The smallest value that satisfies a condition which all larger values satisfy too, to a few millionths; the end of
 * the range if none does.
 *
 * @param range above 0.
 */
export function findLeast(range: { from: number; to: number }, satisfies: (value: number) => boolean): number {
  let { from, to } = range;
  if (satisfies(from)) return from;
  for (let step = 0; step < STEPS; step += 1) {
    const middle = Math.sqrt(from * to);
    if (satisfies(middle)) to = middle;
    else from = middle;
  }
  return to;
}

/**
 * Above this ratio of readings to capacity only the newest pages are kept. The second ratio is the one below which all
 * are kept again.
 */
const OVERCOMMITTED = 0.97;
const CARRIED_ENOUGH = 0.9;
/** If readings that exceed a page are lost anyway, the request waits until the page is certainly full. */
const OVERFULL_PAGE = 1.03;
const RENEW_MS = HOUR_MS;
/** By how much the limit has to change before all devices are reordered for it. */
const WORTH_MOVING = 1.2;
/** How many requests a full page may have to wait for its turn. */
const SLACK_REQUESTS = 4;

/**
 * Whether the readings fit the quota, by the last check. Rates and quota change slowly, so the check is repeated only
 * now and then.
 */
export interface Commitment {
  /** Whether not even the readings fit, so that only the newest page of each device is kept. */
  isOver: boolean;
  renewedMs: number;
  /** The largest lag of readings while they do not fit, and how early full pages are requested while they do, in ms. */
  staleMs: number;
  slackMs: number;
}

/** The initial state: all readings fit. */
export function createCommitment(): Commitment {
  return { isOver: false, renewedMs: Number.NEGATIVE_INFINITY, staleMs: 0, slackMs: 0 };
}

/**
 * The current rules.
 *
 * @param usual the rules that do not depend on the commitment.
 */
export function rulesInForce({ isOver, staleMs, slackMs }: Commitment, usual: UsualRules): QuotaRules {
  return isOver
    ? { ...usual, fill: OVERFULL_PAGE, slackMs: 0, isInTurn: true, staleMs }
    : { ...usual, fill: FULL_PAGE, slackMs, isInTurn: false, staleMs: Number.POSITIVE_INFINITY };
}

/** The rules that do not depend on whether the readings fit. */
type UsualRules = Omit<QuotaRules, 'fill' | 'slackMs' | 'isInTurn' | 'staleMs'>;

/** The readings of the devices, and the capacity. */
export interface Load {
  readonly pageSize: number;
  readonly readingsPerMs: number;
  /** The intervals between readings of the devices that report. */
  readonly intervalsMs: () => readonly number[];
  /** The requests that the budget allows, per ms. */
  readonly carriedPerMs: number;
}

/**
 * Judges whether the readings still fit the budget.
 *
 * @returns whether the rules have changed.
 */
export function renewCommitment(commitment: Commitment, load: Load, nowMs: number): boolean {
  const { isOver: was } = commitment;
  const needed = load.readingsPerMs / (load.pageSize * FULL_PAGE);
  const isOver = needed > load.carriedPerMs * (was ? CARRIED_ENOUGH : OVERCOMMITTED);
  commitment.isOver = isOver;
  if (was === isOver && nowMs - commitment.renewedMs < RENEW_MS) return false;
  commitment.renewedMs = nowMs;
  const next = isOver
    ? staleLimitMs(load.intervalsMs(), { pageSize: load.pageSize, requestsPerMs: load.carriedPerMs })
    : SLACK_REQUESTS / load.carriedPerMs;
  // A small change is compared with the applied value, not with the value of the last check.
  if (was === isOver && !isWorthMoving(isOver ? commitment.staleMs : commitment.slackMs, next)) return false;
  if (isOver) commitment.staleMs = next;
  else commitment.slackMs = next;
  return true;
}

function isWorthMoving(before: number, after: number): boolean {
  return before !== after && !(Math.max(before / after, after / before) < WORTH_MOVING);
}
