/**
 * Random cases for the fuzz of the whole program: a world, a service with its habits, and a life with its misfortunes.
 *
 * Everything follows from one number, so that a case can be run again by it alone. What is drawn stays within what the
 * design promises to survive: lies of the service never come twice in a row, and readings are late within `settle` only.
 */

import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import type { Fault, FaultPlan, SimPage } from '../../src/sim/faults.ts';
import type { SettingsOverrides } from '../../src/sim/settings.ts';
import type { DeviceSpec, Trait } from '../../src/sim/spec.ts';
import { createWorld, type World } from '../../src/sim/world.ts';
import { createDice, type Dice } from './fuzz-dice.ts';

/** One run of the program in the life of a case. */
export interface DrawnRun {
  /** What passes before it begins. */
  readonly pauseMs: number;
  /** The effect at which it is killed; `null`: never. */
  readonly killAt: number | null;
  readonly faults: FaultPlan | null;
  /** Of the writes to the database, this share goes wrong. */
  readonly badWrites: number;
  readonly historyMs: number;
  readonly gracePeriodMs: number;
  /** Whether it delivers to a database that is new to it. */
  readonly movesHouse: boolean;
  /** Changes of the plan that take hold before it begins. */
  readonly plan: SettingsOverrides['plan'];
}

export interface FuzzCase {
  readonly seed: number;
  readonly devices: readonly DeviceSpec[];
  readonly world: (originMs: number) => World;
  readonly settings: SettingsOverrides;
  readonly concurrency: number;
  readonly share: number;
  /** The last one is undisturbed. */
  readonly runs: readonly DrawnRun[];
}

/** Draws a case. @param nowMs when its clock begins. */
export function drawCase(seed: number, nowMs: number): FuzzCase {
  const dice = createDice(seed);
  const historyMaxDays = dice.pick([null, 365, 365, 30, 3, 1]);
  const historyMs = drawHistory(dice, historyMaxDays);
  const pageSize = dice.pick([1, 2, 3, 7, 20, 50, 100, 200, 200, 200]);
  const most = pageSize < 7 ? 150 : pageSize < 50 ? 700 : 2500;
  const worldMs = Math.floor(historyMs * dice.pick([0.3, 1.2, 1.5, 2.5])) + HOUR_MS;
  const devices = Array.from({ length: dice.whole(1, 5) }, (_, index) =>
    drawDevice(dice, index, { nowMs, worldMs, most }),
  );
  const precision = dice.pick(['s', 'ms', 'ms', 'us', 'ns'] as const);
  const gracePeriodMs = dice.pick([30 * SECOND_MS, 2 * MINUTE_MS, 2 * MINUTE_MS, 10 * MINUTE_MS]);
  const settings = drawSettings(dice, { historyMaxDays, pageSize, gracePeriodMs });
  const runs = drawRuns(dice, { historyMs, gracePeriodMs });
  return {
    seed,
    devices,
    world: (originMs) => createWorld({ seed, originMs, historyMs: worldMs, devices, precision, alerts: [] }),
    settings,
    concurrency: dice.pick([1, 2, 4, 4, 8]),
    share: dice.pick([0.2, 0.8, 1]),
    runs,
  };
}

function drawHistory(dice: Dice, historyMaxDays: number | null): number {
  const short = [30 * MINUTE_MS, 3 * HOUR_MS, 12 * HOUR_MS, 2 * DAY_MS];
  if (historyMaxDays === null || historyMaxDays > 30) return dice.pick([...short, 9 * DAY_MS]) + dice.whole(0, 1000);
  return dice.pick([...short, historyMaxDays * DAY_MS, Math.floor(historyMaxDays * DAY_MS * (0.5 + dice.unit() * 2))]);
}

const TRAITS: readonly Trait[] = ['ties', 'burst', 'hostile', 'oddValues', 'empty'];

function drawDevice(
  dice: Dice,
  index: number,
  { nowMs, worldMs, most }: { nowMs: number; worldMs: number; most: number },
): DeviceSpec {
  const some = (): number => nowMs - Math.floor(dice.unit() * worldMs) + (dice.chance(0.3) ? 3 * HOUR_MS : 0);
  const traits = TRAITS.filter(() => dice.chance(0.2));
  const least = worldMs / most;
  const rare = dice.chance(0.08) ? 7 * DAY_MS : 0;
  const intervalMs = Math.ceil(
    Math.max(least, rare, dice.pick([5 * SECOND_MS, 20 * SECOND_MS, MINUTE_MS, 5 * MINUTE_MS, HOUR_MS, 6 * HOUR_MS])),
  );
  const silences = Array.from({ length: dice.chance(0.4) ? dice.whole(1, 3) : 0 }, () => {
    const fromMs = some();
    return { fromMs, toMs: fromMs + Math.floor(dice.unit() * worldMs * 0.5) };
  });
  const burstSize = dice.whole(2, Math.min(260, most));
  const vanishesAtMs = nowMs + Math.floor((dice.unit() - 0.3) * 6 * HOUR_MS);
  return {
    deviceId: `d${index}`,
    name: `name ${index}`,
    intervalMs,
    jitter: dice.pick([0, 0, 0.5, 0.95]),
    traits: dice.chance(0.06) && worldMs < 5 * HOUR_MS ? [...traits, 'dense'] : traits,
    burst: { every: Math.max(dice.whole(5, 60), Math.ceil(burstSize / 4)), size: burstSize },
    ...(dice.chance(0.02) ? { readings: [] } : {}),
    silences,
    ...(dice.chance(0.15) ? { appearsAtMs: some() } : {}),
    ...(dice.chance(0.2) ? { renames: [{ atMs: some(), value: `renamed ${index}` }] } : {}),
    ...(dice.chance(0.15)
      ? {
          vanishesAtMs,
          ...(dice.chance(0.6) ? { returnsAtMs: vanishesAtMs + Math.floor(dice.unit() * 4 * HOUR_MS) } : {}),
        }
      : {}),
  };
}

function drawSettings(
  dice: Dice,
  plan: { historyMaxDays: number | null; pageSize: number; gracePeriodMs: number },
): SettingsOverrides {
  const dateAbsent = dice.chance(0.12);
  const missingFields = dice.pick([0, 0, 0.3]);
  return {
    bounds: {
      after: dice.pick(['inclusive', 'exclusive']),
      before: dice.pick(['inclusive', 'exclusive']),
      resolution: dice.pick(['exact', 'seconds']),
      formats: dice.pick(['any', 'utc', 'utc-seconds']),
      reversed: dice.pick(['empty', 'refused']),
      refusedShapes: dice.pick([[], [], [], ['after'], ['before'], ['after', 'before', 'none']] as const).slice(),
      age: dice.pick(['unlimited', 'unlimited', 'empty', 'refused']),
    },
    paging: {
      cursorParameters: dice.pick(['checked', 'ignored']),
      cursorAlphabet: dice.pick(['base64', 'base64url']),
      // A plan that does not tell its page size: 200 is asked, which the document allows.
      limitOutside: missingFields > 0 ? 'clamped' : dice.pick(['refused', 'clamped']),
      unknownParameters: dice.pick(['ignored', 'refused']),
      cursorLifeMs: dice.pick([null, null, 10 * MINUTE_MS]),
    },
    allowance: {
      window: dice.pick(['fixed', 'first-request', 'sliding', 'bucket']),
      headers: dice.pick(['minute', 'day', 'tightest']),
      refusals: dice.pick(['free', 'counted']),
    },
    headerNames: {
      wait: dice.pick(['Retry-After', 'X-RateLimit-Reset', 'X-Retry-In', 'X-Wait']),
      challenge: 'WWW-Authenticate',
    },
    time: {
      offsetMs: dateAbsent ? 0 : dice.pick([0, 0, 0, HOUR_MS, -HOUR_MS, 12_345, -987]),
      dateSkewMs: dice.pick([0, 0, 0, -1500]),
      date: dateAbsent ? 'absent' : 'sent',
      latencyMs: dice.pick([
        { min: 0, max: 0 },
        { min: 20, max: 200 },
        { min: 200, max: 5000 },
      ]),
    },
    lateness: dice.chance(0.3)
      ? { share: 0.4, maxMs: Math.max(1000, plan.gracePeriodMs - 5 * SECOND_MS), devices: null }
      : { share: 0, maxMs: 0, devices: null },
    surprises: {
      unknownMembers: dice.pick([0, 0.3]),
      missingFields,
    },
    plan: {
      historyMaxDays: plan.historyMaxDays,
      maxDevicesPerPage: plan.pageSize,
      requestsPerMinute: dice.pick([20, 120, 120, 600]),
      requestsPerDay: dice.pick([20_000, 100_000]),
    },
  };
}

function drawRuns(dice: Dice, { historyMs, gracePeriodMs }: { historyMs: number; gracePeriodMs: number }): DrawnRun[] {
  const calm = { killAt: null, faults: null, badWrites: 0, movesHouse: false, plan: undefined };
  const span = (): number =>
    dice.chance(0.6) ? historyMs : Math.max(10 * MINUTE_MS, Math.floor(historyMs * (0.2 + dice.unit())));
  const settle = (): number => (dice.chance(0.9) ? gracePeriodMs : gracePeriodMs + dice.whole(0, 60) * MINUTE_MS);
  const pause = (): number =>
    dice.pick([0, 0, SECOND_MS, 20 * SECOND_MS, 5 * MINUTE_MS, HOUR_MS, Math.floor(dice.unit() * historyMs * 0.5)]);
  const disturbed = Array.from(
    { length: dice.whole(0, 4) },
    (): DrawnRun => ({
      ...calm,
      pauseMs: pause(),
      killAt: dice.chance(0.6) ? Math.floor(2 ** (1 + dice.unit() * 8)) : null,
      faults: dice.chance(0.6) ? drawFaults(dice) : null,
      badWrites: dice.chance(0.3) ? 0.4 : 0,
      historyMs: span(),
      gracePeriodMs: settle(),
      movesHouse: dice.chance(0.05),
      plan: dice.chance(0.1)
        ? { historyMaxDays: dice.pick([null, 365, 30, 7]), maxDevicesPerPage: dice.pick([10, 50, 200]) }
        : undefined,
    }),
  );
  return [...disturbed, { ...calm, pauseMs: pause(), historyMs: span(), gracePeriodMs, movesHouse: dice.chance(0.05) }];
}

const FAULTS: readonly Fault[] = [
  { kind: 'server-error' },
  { kind: 'server-error', status: 503, waitSeconds: 7 },
  { kind: 'html' },
  { kind: 'reset', when: 'before-headers' },
  { kind: 'reset', when: 'after-headers' },
  { kind: 'reset', when: 'in-body' },
  { kind: 'truncated' },
  { kind: 'malformed' },
  { kind: 'slow', delayMs: 20 * SECOND_MS },
  { kind: 'slow', delayMs: 3 * SECOND_MS, part: 'body' },
  { kind: 'hang' },
  { kind: 'empty' },
];

/** Pages that are wrong with 200, each of which must be seen through. */
const LIES: readonly ((page: SimPage) => SimPage)[] = [
  (page) => ({ ...page, records: [], nextCursor: null }),
  (page) => ({ ...page, deviceId: 'another' }),
  (page) => ({ ...page, deviceId: null }),
];

/** Faults at a rate, in bursts, and lies that never come twice in a row to one path. */
function drawFaults(dice: Dice): FaultPlan {
  const own = createDice(dice.whole(0, 1e9));
  const kinds = dice.chance(0.5) ? FAULTS : [dice.pick(FAULTS), dice.pick(FAULTS)];
  const rate = dice.pick([0, 0.05, 0.2, 0.4]);
  const lieRate = dice.pick([0, 0, 0.1, 0.3]);
  const lied = new Set<string>();
  let burst = 0;
  return (_, { path }) => {
    if (burst > 0) {
      burst -= 1;
      return own.pick(kinds);
    }
    if (own.chance(rate * 0.05)) burst = own.whole(2, 25);
    if (own.chance(rate)) return own.pick(kinds);
    if (path.endsWith('/telemetry') && !lied.delete(path) && own.chance(lieRate)) {
      lied.add(path);
      return { kind: 'mangle', change: own.pick(LIES) };
    }
    return null;
  };
}
