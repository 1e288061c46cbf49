/**
 * The safety scenarios: short stories that a right program survives with nothing missing and nothing twice, and that a
 * program which is wrong in the one way does not. The tests run them with the real program, and with each mutant.
 */

import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import type { World } from '../../src/sim/world.ts';
import {
  beginsBelowForAnHour,
  beginsBelowStored,
  behindItsSign,
  belowGivenUp,
  emptyUnderSmallQuota,
  endsAboveStored,
} from './absence-scenarios.ts';
import type { Bench } from './bench.ts';
import {
  emptyAboveHistory,
  emptyBehindCursor,
  emptyBelowSilence,
  emptyBesideOthers,
  emptyForHours,
  emptyFromTheFirst,
  emptyFurtherDown,
  emptyNextToEach,
  emptyOnceMore,
  returnsWithItsBuffer,
  silentAtFirstContact,
  silentBelowWanted,
  silentWhileCovered,
} from './empty-scenarios.ts';
import { onPath } from './faults.ts';
import type { FaultPlan } from './faulty-simulator.ts';
import { lateInTheirHour } from './hour-scenarios.ts';
import { allHistoryThroughAnOutage } from './job-scenarios.ts';
import { complaints } from './judge.ts';
import {
  daysOfARejection,
  emptyAndNeverSeen,
  endsCountedAhead,
  hubBeginsUnseen,
  hubNeverSeen,
  hubWithoutReadings,
  lateUnderAClockBehind,
  rejectedForAWhile,
} from './learnt-scenarios.ts';
import {
  countEffects,
  diesAtEffect,
  liveOn,
  mortalCommits,
  mortalSink,
  mortalTransport,
  writeEffects,
} from './mortality.ts';
import {
  behindTheTime,
  clockFallsForSeconds,
  cursorsInACircle,
  cursorsThatSkip,
  dateFallsBack,
  dateJumps,
  dateJumpsToLocalClock,
  farFuture,
  firstDateWrong,
  lockDeleted,
  namedByAClockAhead,
  namedUnderALocalClockAhead,
  slowAnswers,
} from './quiet-scenarios.ts';
import { generousHeaders, restartedWithinAMinute } from './quota-scenarios.ts';
import { recheckAfterKills } from './recheck-scenarios.ts';
import { fullDisk, linkedToNowhere, quotaSpent, refusedAlerts, shortOutage } from './refusal-scenarios.ts';
import { destinationOf, NOW_MS, openRig, type Program, type Rig, type RigOptions } from './rig.ts';
import { transportOf } from './sim-transport.ts';
import { createWorld, type DeviceSpec } from './trait-world.ts';
import { listedByAClockAhead, unlistedComesBack, unlistedStalls, unlistedStaysReady } from './unlisted-scenarios.ts';
import { committedInParts, killedBetweenParts } from './wide-scenarios.ts';

/** Returns the errors at the end; an empty list where there are none. */
export type Scenario = (bench: Bench, program: Program) => Promise<readonly string[]>;

const HISTORY_MS = 3 * HOUR_MS;

/**
 * Scans of several pages, duplicate timestamps over page edges, bursts that fill pages, renames in the middle of
 * history.
 */
function smallWorld(extra: readonly DeviceSpec[] = []): (nowMs: number) => World {
  const devices: DeviceSpec[] = [
    { deviceId: 'walk', intervalMs: 20 * SECOND_MS, jitter: 0.5 },
    { deviceId: 'tied', intervalMs: MINUTE_MS, traits: ['ties'] },
    { deviceId: 'burst', intervalMs: 5 * MINUTE_MS, traits: ['burst'], burst: { every: 12, size: 230 } },
    ...extra,
  ];
  return (originMs) => createWorld({ seed: 21, originMs, historyMs: 6 * HOUR_MS, devices });
}

/** The one that most scenarios share: it is the same for ever, so what a verdict makes of it is made once. */
const SMALL_WORLD = smallWorld()(NOW_MS);

async function rigFor(bench: Bench, program: Program, changes: Partial<RigOptions> = {}): Promise<Rig> {
  return await openRig(bench, { world: () => SMALL_WORLD, historyMs: HISTORY_MS, program, ...changes });
}

/** The wanted range is counted from the first answer: repeated runs move it by a few minutes. */
const FROM_NS = BigInt(NOW_MS - HISTORY_MS + 10 * MINUTE_MS) * 1_000_000n;

async function finish(rig: Rig, startedMs = NOW_MS): Promise<string[]> {
  const verdict = await rig.verdict(startedMs, { fromNs: FROM_NS });
  return complaints(verdict, 1000);
}

/** No fault at all: what every mutant has to pass. */
export const undisturbed: Scenario = async (bench, program) => {
  using rig = await rigFor(bench, program);
  const { summary } = await rig.once();
  return [...(summary.exit_code === 0 ? [] : [`exit ${summary.exit_code}`]), ...(await finish(rig))];
};

/**
 * One run that ends at the nth effect.
 *
 * @returns whether it was killed.
 */
async function liveAndDie(rig: Rig, bench: Bench, nth: number): Promise<boolean> {
  const to = destinationOf(bench, rig.database, rig.clock);
  return await diesAtEffect(
    nth,
    async () =>
      await rig.once({
        transport: mortalTransport(transportOf(rig.simulator)),
        destinations: [{ ...to, sink: mortalSink(to.sink), batchLines: 400 }],
      }),
  );
}

/** Killed at effects spread over a complete run, each time in a state of its own; the next run must repair it. */
export const killedAtAnyEffect: Scenario = async (bench, program) => {
  using _mortal = mortalCommits();
  const total = await countLife(bench, program);
  const found: string[] = [];
  for (const nth of deathsOf(total, writeEffects())) {
    if (found.length > 0) break;
    using rig = await rigFor(bench, program);
    await liveAndDie(rig, bench, nth);
    await rig.once();
    found.push(...(await finish(rig)).map((text) => `killed at effect ${nth} of ${total}: ${text}`));
  }
  return found;
};

/** Killed again and again in one state, each run a little longer than the one before. */
export const killedAgainAndAgain: Scenario = async (bench, program) => {
  using _mortal = mortalCommits();
  using rig = await rigFor(bench, program);
  let nth = 1;
  while (await liveAndDie(rig, bench, nth)) nth += 7;
  return await finish(rig);
};

/** How many deaths are tried, and up to which effect every single one is. */
const KILLS = 36;
const EVERY_EFFECT = 12;
const WRITES = 9;
const AMIDST = 20;

/**
 * The first effects one by one, those of a few pages in the midst of it, then evenly over the run, and some of the
 * writes: an even step alone may miss dangerous ones. The midst comes first, where a broken program shows soonest.
 */
function deathsOf(total: number, writes: readonly number[]): readonly number[] {
  const step = Math.max(1, Math.floor(total / KILLS));
  const even = Array.from({ length: KILLS }, (_, index) => EVERY_EFFECT + index * step);
  const first = Array.from({ length: EVERY_EFFECT - 1 }, (_, index) => index + 1);
  const apart = Math.max(1, Math.floor(writes.length / WRITES));
  const written = writes.filter((_, index) => index % apart === 0).slice(0, WRITES);
  const amidst = Array.from({ length: AMIDST }, (_, index) => Math.floor(total / 2) + index);
  const fromMidst = (nth: number): number => Math.abs(nth - total / 2);
  const deaths = [...new Set([...first, ...amidst, ...even, ...written])].filter((nth) => nth <= total);
  return deaths.sort((a, b) => fromMidst(a) - fromMidst(b));
}

async function countLife(bench: Bench, program: Program): Promise<number> {
  using rig = await rigFor(bench, program);
  const to = destinationOf(bench, rig.database, rig.clock);
  countEffects();
  await rig.once({
    transport: mortalTransport(transportOf(rig.simulator)),
    destinations: [{ ...to, sink: mortalSink(to.sink), batchLines: 400 }],
  });
  return liveOn();
}

/** For a while the service answers as if it had nothing new, or nothing at all, with 200. */
export const falseEmpties: Scenario = async (bench, program) => {
  using rig = await rigFor(bench, program);
  await rig.once();
  await rig.clock.sleep(HOUR_MS);
  const startedMs = rig.clock.nowMs();
  rig.simulator.faults = lying(2, () => []);
  await rig.once();
  return await finish(rig, startedMs);
};

/** Now and then the service answers from a replica without the newest readings of the requested range. */
export const laggingReplica: Scenario = async (bench, program) => {
  using rig = await rigFor(bench, program);
  let calls = 0;
  // Every other page that continues from a stored reading comes without its first half, and so without that reading.
  rig.simulator.faults = onPath(/telemetry/, (_, { query }) => {
    if (!query.has('before') || query.has('cursor')) return null;
    calls += 1;
    if (calls % 2 !== 0) return null;
    return { kind: 'mangle', change: (page) => ({ ...page, records: page.records.slice(page.records.length >> 1) }) };
  });
  await rig.once();
  return await finish(rig);
};

/** Now and then a page comes oldest first, cut at its end and without a next one: the newest readings are missing. */
export const oldestFirst: Scenario = async (bench, program) => {
  using rig = await rigFor(bench, program);
  await rig.once();
  await rig.clock.sleep(HOUR_MS);
  const startedMs = rig.clock.nowMs();
  rig.simulator.faults = lying(2, (records) => records.toReversed().slice(0, -20));
  await rig.once();
  return await finish(rig, startedMs);
};

/** A replica is behind: its pages stop short of the time at which the device list has seen the device. */
export const behindTheList: Scenario = async (bench, program) => {
  const lastMs = NOW_MS + 40 * MINUTE_MS;
  const readings = Array.from({ length: 150 }, (_, index) => ({
    recordedAtNs: BigInt(lastMs - index * 30 * SECOND_MS) * 1_000_000n,
    values: [['level', String(index)] as const],
  }));
  using rig = await rigFor(bench, program, { world: smallWorld([{ deviceId: 'stopped', readings }]) });
  await rig.once();
  await rig.clock.sleep(HOUR_MS);
  const startedMs = rig.clock.nowMs();
  rig.simulator.faults = onPath(
    /stopped/,
    lying(2, (records) => records.slice(20)),
  );
  await rig.once();
  return await finish(rig, startedMs);
};

function lying(times: number, change: (records: readonly string[]) => readonly string[]): FaultPlan {
  const left = new Map<string, number>();
  return onPath(/telemetry/, (_, { path }) => {
    const rest = left.get(path) ?? times;
    if (rest === 0) return null;
    left.set(path, rest - 1);
    return { kind: 'mangle', change: (page) => ({ ...page, records: change(page.records), nextCursor: null }) };
  });
}

/** A reading that appears after its time was covered, where a later request happens to see it. */
export const lateReading: Scenario = async (bench, program) => {
  const lateAt = BigInt(NOW_MS - 10 * MINUTE_MS);
  const at = (ms: bigint) => ({ recordedAtNs: ms * 1_000_000n, values: [['level', String(ms % 1000n)] as const] });
  const times = Array.from({ length: 100 }, (_, index) => lateAt - BigInt(index * 30 * SECOND_MS));
  const device: DeviceSpec = { deviceId: 'late', readings: [...times.map(at), at(lateAt - 500n)] };
  using rig = await rigFor(bench, program, { world: smallWorld([device]) });
  rig.hides = (deviceId, reading) =>
    deviceId === 'late' &&
    reading.recordedAtNs === (lateAt - 500n) * 1_000_000n &&
    rig.clock.nowMs() < NOW_MS + HOUR_MS;
  await rig.once();
  await rig.clock.sleep(2 * HOUR_MS);
  const startedMs = rig.clock.nowMs();
  await rig.once();
  return await finish(rig, startedMs);
};

/** Older history is brought in after a rename: its readings carry the name that their device was first seen under. */
export const renamed: Scenario = async (bench, program) => {
  const device: DeviceSpec = {
    deviceId: 'renamed',
    name: 'before',
    intervalMs: MINUTE_MS,
    renames: [{ atMs: NOW_MS + 10 * MINUTE_MS, value: 'after' }],
  };
  using rig = await rigFor(bench, program, { world: smallWorld([device]), historyMs: HOUR_MS });
  await rig.once();
  await rig.clock.sleep(HOUR_MS);
  const startedMs = rig.clock.nowMs();
  const { settings } = rig;
  await rig.once({ settings: { ...settings, history: { kind: 'age', ageMs: HISTORY_MS + HOUR_MS } } });
  await rig.clock.sleep(HOUR_MS);
  await rig.once();
  const rows = await bench.influxd.query(rig.database, "SELECT * FROM telemetry WHERE device_id = 'renamed'");
  const firstRunNs = BigInt(NOW_MS) * 1_000_000n;
  const wrong = rows.filter((row) => BigInt(row.time ?? 0) < firstRunNs && row.device_name !== 'before');
  const after = rows.filter((row) => row.device_name === 'after');
  return [
    ...(wrong.length === 0 ? [] : [`${wrong.length} old readings under the new name`]),
    ...(after.length > 0 ? [] : ['no reading has the new name']),
    ...(await finish(rig, startedMs)),
  ];
};

/** A device whose first answer is empty, though it has readings, with no stored reading that could show it. */
export const firstAnswerEmpty: Scenario = async (bench, program) => {
  using rig = await rigFor(bench, program);
  rig.simulator.faults = lying(1, () => []);
  await rig.once();
  return await finish(rig);
};

/** Readings that the service shows up to a minute after their time: newer ones cannot be covered. */
export const lateInsideGracePeriod: Scenario = async (bench, program) => {
  using rig = await rigFor(bench, program, {
    world: smallWorld([{ deviceId: 'often', intervalMs: 5 * SECOND_MS }]),
    settings: { lateness: { share: 0.7, maxMs: 100 * SECOND_MS, devices: null } },
  });
  await rig.once();
  await rig.clock.sleep(HOUR_MS);
  const startedMs = rig.clock.nowMs();
  await rig.once();
  return await finish(rig, startedMs);
};

/** The database applies a write and the answer is lost, or it is down before it applies anything. */
export const brokenDeliveries: Scenario = async (bench, program) => {
  using rig = await rigFor(bench, program);
  bench.proxy.setFaults(({ nth }) => {
    if (nth % 3 === 0) return { kind: 'cut' };
    return nth % 3 === 1 ? { kind: 'answer', status: 503 } : null;
  });
  try {
    await rig.once();
  } finally {
    bench.proxy.setFaults(null);
  }
  return await finish(rig);
};

/** The same in many small batches, of which the next one is prepared while one is written and fails. */
export const brokenBesidePrepared: Scenario = async (bench, program) => {
  using rig = await rigFor(bench, program);
  const to = destinationOf(bench, rig.database, rig.clock);
  bench.proxy.setFaults(({ nth }) => (nth % 4 === 3 ? { kind: 'answer', status: 503 } : null));
  try {
    await rig.once({ destinations: [{ ...to, batchLines: 25 }] });
  } finally {
    bench.proxy.setFaults(null);
  }
  return await finish(rig);
};

export const SCENARIOS = {
  undisturbed,
  killedAtAnyEffect,
  killedAgainAndAgain,
  killedBetweenParts,
  committedInParts,
  falseEmpties,
  laggingReplica,
  endsAboveStored,
  beginsBelowStored,
  belowGivenUp,
  beginsBelowForAnHour,
  oldestFirst,
  behindTheList,
  behindItsSign,
  behindTheTime,
  lateReading,
  lateInTheirHour,
  renamed,
  firstAnswerEmpty,
  lateInsideGracePeriod,
  brokenDeliveries,
  brokenBesidePrepared,
  slowAnswers,
  dateJumps,
  dateJumpsToLocalClock,
  dateFallsBack,
  farFuture,
  firstDateWrong,
  lockDeleted,
  namedByAClockAhead,
  namedUnderALocalClockAhead,
  clockFallsForSeconds,
  cursorsInACircle,
  cursorsThatSkip,
  emptyForHours,
  emptyFromTheFirst,
  silentAtFirstContact,
  silentWhileCovered,
  silentBelowWanted,
  emptyBesideOthers,
  emptyUnderSmallQuota,
  emptyAboveHistory,
  returnsWithItsBuffer,
  emptyBehindCursor,
  emptyFurtherDown,
  emptyBelowSilence,
  emptyNextToEach,
  emptyOnceMore,
  emptyAndNeverSeen,
  rejectedForAWhile,
  daysOfARejection,
  endsCountedAhead,
  lateUnderAClockBehind,
  hubNeverSeen,
  hubBeginsUnseen,
  hubWithoutReadings,
  unlistedStaysReady,
  unlistedStalls,
  unlistedComesBack,
  listedByAClockAhead,
  recheckAfterKills,
  allHistoryThroughAnOutage,
  fullDisk,
  refusedAlerts,
  shortOutage,
  quotaSpent,
  linkedToNowhere,
  restartedWithinAMinute,
  generousHeaders,
} as const;

export type ScenarioName = keyof typeof SCENARIOS;
