/**
 * Draws an API: every choice that its document leaves open, and the facts of plan and key.
 */
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import type { ApiScope, SettingsOverrides } from '../../src/sim/settings.ts';
import type { Dice } from './dice.ts';

/** The part of the plan that the rest of a story depends on. */
export interface DrawnPlan {
  readonly historyMaxDays: number | null;
  readonly pageSize: number;
  readonly gracePeriodMs: number;
}

const SCOPES: readonly ApiScope[] = ['devices:read', 'telemetry:read', 'alerts:read', 'account:read'];

/** Draws the settings of the service. */
export function drawApi(dice: Dice, plan: DrawnPlan): SettingsOverrides {
  const isDateAbsent = dice.chance(0.1);
  const missingFields = dice.pick([0, 0, 0, 0.3]);
  const lacked = dice.chance(0.1) ? dice.pick(['alerts:read', 'account:read'] as const) : null;
  // Where no account has the page size, the program requests 200, which the document allows, and then fewer. An account
  // that has it only at times would have every second page refused.
  const isSizeUntold = missingFields > 0 || lacked === 'account:read';
  const untold = missingFields > 0 ? 'clamped' : 'rejected';
  const foreignPerMinute = dice.pick([0, 0, 0, 5, 20]);
  // Others spend at most a third of a day.
  const leastPerDay = foreignPerMinute * 3 * (DAY_MS / MINUTE_MS);
  return {
    bounds: drawBounds(dice),
    paging: {
      cursorParameters: dice.pick(['checked', 'ignored']),
      cursorAlphabet: dice.pick(['base64', 'base64url']),
      limitOutside: isSizeUntold ? untold : dice.pick(['rejected', 'clamped']),
      unknownParameters: dice.pick(['ignored', 'rejected']),
      cursorLifeMs: dice.pick([null, null, 10 * MINUTE_MS]),
    },
    quota: {
      window: dice.pick(['fixed', 'first-request', 'sliding', 'bucket']),
      // Where neither the account nor a header has it, the limit of a minute is unknown.
      headers: isSizeUntold ? 'minute' : dice.pick(['minute', 'day', 'tightest']),
      rejections: dice.pick(['free', 'counted']),
      foreign: { perMinute: foreignPerMinute, everyMs: dice.pick([1000, 20_000]) },
    },
    headerNames: {
      wait: dice.pick(['Retry-After', 'X-RateLimit-Reset', 'X-Retry-In', 'X-Wait']),
      challenge: dice.pick(['WWW-Authenticate', 'X-Challenge']),
    },
    time: {
      offsetMs: isDateAbsent ? 0 : dice.pick([0, 0, 0, HOUR_MS, -HOUR_MS, 12_345, -987]),
      dateSkewMs: dice.pick([0, 0, 0, -1500]),
      date: isDateAbsent ? 'absent' : 'sent',
      latencyMs: dice.pick([
        { min: 0, max: 0 },
        { min: 20, max: 200 },
        { min: 200, max: 5000 },
      ]),
    },
    lateness: dice.chance(0.3)
      ? { share: 0.4, maxMs: Math.max(1000, plan.gracePeriodMs - 5 * SECOND_MS), devices: null }
      : { share: 0, maxMs: 0, devices: null },
    surprises: { unknownMembers: dice.pick([0, 0.3]), missingFields },
    codes: dice.chance(0.5)
      ? {
          unauthorized: 'nope',
          notFound: 'no_such_thing',
          quotaSpent: 'slow_down',
          internal: 'oops',
          withMaxDays: [],
        }
      : {},
    plan: {
      historyMaxDays: plan.historyMaxDays,
      maxDevicesPerPage: plan.pageSize,
      // Others spend at most half of a minute.
      requestsPerMinute: Math.max(dice.pick([20, 60, 120, 120, 600]), foreignPerMinute * 2),
      requestsPerDay: Math.max(dice.pick([5000, 20_000, 100_000]), leastPerDay),
    },
    key: { scopes: SCOPES.filter((scope) => scope !== lacked) },
  };
}

function drawBounds(dice: Dice): SettingsOverrides['bounds'] & object {
  return {
    after: dice.pick(['inclusive', 'exclusive']),
    before: dice.pick(['inclusive', 'exclusive']),
    resolution: dice.pick(['exact', 'exact', 'seconds']),
    formats: dice.pick(['any', 'utc', 'utc-seconds']),
    reversed: dice.pick(['empty', 'rejected']),
    rejectedShapes: dice.pick([[], [], [], ['after'], ['before'], ['after', 'before', 'none']] as const).slice(),
    age: dice.pick(['unlimited', 'unlimited', 'empty', 'rejected']),
  };
}
