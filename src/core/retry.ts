/**
 * Which failures of the API are worth a retry, and how long to wait before it.
 *
 * The table is total: a new kind of fault does not compile without a decision. No wait is shorter than the server
 * requested.
 */
import { ApiFault, type ApiFaultKind } from './faults.ts';
import type { Random } from './ports.ts';
import { durationInWords } from './text.ts';
import { HOUR_MS, MINUTE_MS } from './time.ts';

/**
 * - `retry`: the same request may succeed after a backoff.
 * - `wait`: it will succeed once there is quota again; the rate limiter waits for that.
 * - `stop`: the same request will fail again until something else changes.
 */
type Verdict = 'retry' | 'wait' | 'stop';

const VERDICTS: Readonly<Record<ApiFaultKind, Verdict>> = {
  unreachable: 'retry',
  'server-fault': 'retry',
  malformed: 'retry',
  throttled: 'wait',
  unauthorized: 'stop',
  'scope-missing': 'stop',
  'no-api-access': 'stop',
  'not-found': 'stop',
  'bad-cursor': 'stop',
  'range-too-large': 'stop',
  'invalid-request': 'stop',
};

/** Decides from the kind of a fault whether the same request is sent again. */
export function retryVerdict(kind: ApiFaultKind): Verdict {
  return VERDICTS[kind];
}

/** How often a listing is started before it counts as failed. */
export const LISTING_STARTS = 3;

/**
 * Whether a failed listing starts again from its first page because its cursor was rejected.
 *
 * @param starts how often it was started: 1 or more
 */
export function isListedAgain(error: unknown, starts: number): boolean {
  return error instanceof ApiFault && error.kind === 'bad-cursor' && starts < LISTING_STARTS;
}

/** After this long without progress, work that a person waits for ends incomplete. */
export const STALLED_AFTER_MS = 10 * MINUTE_MS;

/** The same time in words. */
export const STALLED_AFTER = durationInWords(STALLED_AFTER_MS);

/** How often a stream that is off is tried again: the key may have been given its scope. */
export const OFF_STREAM_REST_MS = HOUR_MS;

/** The first wait and the longest one, before the jitter. */
export interface BackoffPolicy {
  readonly baseMs: number;
  readonly maxMs: number;
}

interface BackoffCase {
  /** How many tries in a row have failed: 1 or more. */
  readonly failures: number;
  readonly policy: BackoffPolicy;
  readonly random: Random;
  /** The wait that the server requested; 0 or absent for none. */
  readonly leastMs?: number;
}

/**
 * The wait before the next attempt, in milliseconds. It doubles with every failure up to the policy's maximum, and half
 * of it is random ("equal jitter"; full jitter can retry at once, which a limit per minute punishes). A wait that the
 * server requested is only extended by the random half.
 */
export function backoffMs({ failures, policy, random, leastMs = 0 }: BackoffCase): number {
  const ceilingMs = Math.min(policy.maxMs, policy.baseMs * 2 ** (Math.max(1, failures) - 1));
  const jitterMs = (random() * ceilingMs) / 2;
  return Math.max(ceilingMs / 2, leastMs) + jitterMs;
}
