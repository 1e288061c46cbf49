/**
 * Whether all readings fit into the allowance, and by which rules devices are asked where they do and where they do not
 * (issue 4, "When it cannot fit"). Rates and allowance change slowly, so this is looked at now and then only.
 */

import { HOUR_MS } from '../core/time.ts';
import type { StandingRules } from './device-outlook.ts';
import type { Tails } from './device-queue.ts';
import { FULL_PAGE, staleLimitMs } from './page-fill.ts';

/** How much the readings may come to of what is carried before only the newest pages are kept; and to come back. */
const OVERCOMMITTED = 0.97;
const CARRIED_AGAIN = 0.9;
/** Where what runs over is lost in any case, a page is waited for until it is full for certain. */
const OVERFULL_PAGE = 1.03;
const RENEW_MS = HOUR_MS;
/** By how much the limit has to move before all devices are put in order anew for it. */
const WORTH_MOVING = 1.2;

/** How many requests the turn of a page that is full may take to come. */
const SLACK_REQUESTS = 4;

export interface Commitment {
  isOver(): boolean;
  /** The rules as they stand. */
  rules(): StandingRules;
  /** Looks again. @returns whether the rules are others now. */
  renew(tails: Pick<Tails, 'readingsPerMs' | 'speakingMs'>, carriedPerMs: number, nowMs: number): boolean;
}

/** @param usual what does not depend on it; asked again and again, as a plan may change. */
export function createCommitment(usual: () => Pick<StandingRules, 'freshnessMs' | 'sweepMs' | 'pageSize'>): Commitment {
  let isOver = false;
  let renewedMs = Number.NEGATIVE_INFINITY;
  let staleMs = 0;
  let slackMs = 0;
  const measure = (tails: Pick<Tails, 'speakingMs'>, carriedPerMs: number): number =>
    isOver
      ? staleLimitMs(tails.speakingMs(), { pageSize: usual().pageSize, requestsPerMs: carriedPerMs })
      : SLACK_REQUESTS / carriedPerMs;
  return {
    isOver: () => isOver,
    rules: () =>
      isOver
        ? { ...usual(), fill: OVERFULL_PAGE, slackMs: 0, isInTurn: true, staleMs }
        : { ...usual(), fill: FULL_PAGE, slackMs, isInTurn: false, staleMs: Number.POSITIVE_INFINITY },
    renew(tails, carriedPerMs, nowMs) {
      const needed = tails.readingsPerMs() / (usual().pageSize * FULL_PAGE);
      const was = isOver;
      isOver = needed > carriedPerMs * (was ? CARRIED_AGAIN : OVERCOMMITTED);
      if (was === isOver && nowMs - renewedMs < RENEW_MS) return false;
      renewedMs = nowMs;
      const next = measure(tails, carriedPerMs);
      // What has moved a little is compared with what all go by, not with the last look.
      if (was === isOver && !isWorthMoving(isOver ? staleMs : slackMs, next)) return false;
      if (isOver) staleMs = next;
      else slackMs = next;
      return true;
    },
  };
}

function isWorthMoving(before: number, after: number): boolean {
  return before !== after && !(Math.max(before / after, after / before) < WORTH_MOVING);
}
