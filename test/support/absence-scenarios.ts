/**
 * Safety scenarios about readings that are missing from answers for a while although there is evidence of them: a
 * stored reading, a sign of life, or readings that are newer. Part of `scenarios.ts`.
 */

import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import type { SimPage } from '../../src/sim/answers.ts';
import type { Bench } from './bench.ts';
import { liveAsDaemon } from './daemon-rig.ts';
import { falselyEmpty, onPath } from './faults.ts';
import type { FaultPlan } from './faulty-simulator.ts';
import { complaints } from './judge.ts';
import { NOW_MS, openRig, type Program, type Rig } from './rig.ts';
import type { Scenario } from './scenarios.ts';
import { createWorld } from './trait-world.ts';

/** How long the first lies of a kind are followed by others. */
const LIES_MS = 60 * SECOND_MS;

const timeOf = (record: string): number => Date.parse(/"recorded_at":"([^"]*)"/.exec(record)?.[1] ?? '');

/** Changes the pages for a minute, from the first one on that is changed by it. */
function changedForAMinute(rig: Rig, change: (page: SimPage) => SimPage): FaultPlan {
  let sinceMs: number | null = null;
  return onPath(/telemetry/, () => ({
    kind: 'mangle',
    change: (page) => {
      const changed = change(page);
      if (changed.records.length === page.records.length) return page;
      sinceMs ??= rig.clock.nowMs();
      return rig.clock.nowMs() - sinceMs > LIES_MS ? page : changed;
    },
  }));
}

/** A week that was not read, in which pages end above the reading that is stored below it, or begin below the one above. */
async function gapCutShort(
  bench: Bench,
  program: Program,
  change: (page: SimPage) => SimPage,
): Promise<readonly string[]> {
  const devices = [{ deviceId: 'ten', intervalMs: 10 * MINUTE_MS }];
  const world = (originMs: number) => createWorld({ seed: 5, originMs, historyMs: 2 * DAY_MS, devices, alerts: [] });
  using rig = await openRig(bench, { world, historyMs: 6 * HOUR_MS, program });
  await rig.once();
  await rig.clock.sleep(12 * HOUR_MS);
  const settings = { ...rig.settings, history: { kind: 'age', ageMs: 2 * DAY_MS } } as const;
  rig.simulator.faults = changedForAMinute(rig, change);
  await rig.once({ settings });
  rig.simulator.faults = null;
  await rig.clock.sleep(DAY_MS);
  const startedMs = rig.clock.nowMs();
  await rig.once({ settings });
  return complaints(await rig.verdict(startedMs, { fromNs: BigInt(NOW_MS - 12 * HOUR_MS) * 1_000_000n }), 100);
}

/** A partition of the service does not answer for a minute: pages end above the newest stored reading. */
export const endsAboveStored: Scenario = async (bench, program) =>
  await gapCutShort(bench, program, (page) => {
    const records = page.records.filter((record) => timeOf(record) >= NOW_MS + 4 * HOUR_MS);
    return { ...page, records, nextCursor: null };
  });

/** The same of the partition before: pages of the past begin below the oldest stored reading. */
export const beginsBelowStored: Scenario = async (bench, program) =>
  await gapCutShort(bench, program, (page) => {
    const isPast = timeOf(page.records.at(0) ?? '') < NOW_MS - 5 * HOUR_MS;
    return isPast ? { ...page, records: page.records.filter((record) => timeOf(record) < NOW_MS - 8 * HOUR_MS) } : page;
  });

/**
 * The same for an hour: readings that such pages hid are read again, although the pages were accepted after half an
 * hour.
 */
export const beginsBelowForAnHour: Scenario = async (bench, program) => {
  const devices = [{ deviceId: 'one', intervalMs: MINUTE_MS }];
  const world = (originMs: number) => createWorld({ seed: 5, originMs, historyMs: DAY_MS, devices, alerts: [] });
  using rig = await openRig(bench, { world, historyMs: 6 * HOUR_MS, program });
  await rig.once();
  const settings = { ...rig.settings, history: { kind: 'age', ageMs: 14 * HOUR_MS } } as const;
  rig.simulator.faults = onPath(/telemetry/, (_, { query }) => {
    const isPast = Date.parse(query.get('before') ?? '') < NOW_MS - 5 * HOUR_MS;
    const change = (page: SimPage): SimPage => ({
      ...page,
      records: page.records.filter((record) => timeOf(record) < NOW_MS - 8 * HOUR_MS),
    });
    return isPast && rig.clock.nowMs() < NOW_MS + HOUR_MS ? { kind: 'mangle', change } : null;
  });
  await liveAsDaemon(rig, { forMs: 2.5 * HOUR_MS, changes: { settings }, program });
  return complaints(await rig.verdict(NOW_MS, { fromNs: BigInt(NOW_MS - 12 * HOUR_MS) * 1_000_000n }), 900);
};

/**
 * Pages of the past come without their newest three readings. The last week is given up, because they do not contain
 * the stored reading above it; older ranges have no such reading to show, and must not be covered up to the gap above.
 */
export const belowGivenUp: Scenario = async (bench, program) => {
  const readings = Array.from({ length: 1000 }, (_, index) => ({
    recordedAtNs: BigInt(NOW_MS - Math.floor(index / 2) * 40 * MINUTE_MS) * 1_000_000n,
    values: [['level', String(index)] as const],
  }));
  const devices = [
    { deviceId: 'ten', intervalMs: 30 * MINUTE_MS },
    { deviceId: 'pairs', readings },
  ];
  const world = (originMs: number) => createWorld({ seed: 5, originMs, historyMs: 14 * DAY_MS, devices, alerts: [] });
  using rig = await openRig(bench, { world, historyMs: 12 * DAY_MS, program });
  rig.simulator.faults = onPath(/telemetry/, (_, { query }) => ({
    kind: 'mangle',
    change: (page) => {
      const isPast = Date.parse(query.get('before') ?? '') < NOW_MS - 2 * HOUR_MS;
      return isPast ? { ...page, records: page.records.slice(3) } : page;
    },
  }));
  const { summary } = await rig.once();
  const { missingAt } = await rig.verdict(NOW_MS);
  const sync = rig.open();
  const covered = new Map(devices.map(({ deviceId }) => [deviceId, sync.context.store.telemetry(deviceId).covered]));
  sync.close();
  const claimed = missingAt.filter(({ deviceId, at }) =>
    covered.get(deviceId)?.some(({ from, to }) => from <= at && at < to),
  );
  rig.simulator.faults = null;
  await rig.clock.sleep(HOUR_MS);
  const startedMs = rig.clock.nowMs();
  await rig.once();
  return [
    ...(summary.exit_code === 3 ? [] : [`the first run ends with ${summary.exit_code}`]),
    ...(claimed.length === 0 ? [] : [`${claimed.length} values are called covered and are not there`]),
    ...complaints(await rig.verdict(startedMs), 1000),
  ];
};

/**
 * A replica is behind for half an hour: it has the newest stored reading, or not even that, and nothing newer, although
 * the device list has seen the device since. A run that is answered by it must not end with 0.
 */
export const behindItsSign: Scenario = async (bench, program) => {
  const readings = Array.from({ length: 200 }, (_, index) => ({
    recordedAtNs: BigInt(NOW_MS + 40 * MINUTE_MS - index * MINUTE_MS) * 1_000_000n,
    values: [['level', String(index)] as const],
  }));
  const devices = [
    { deviceId: 'stopped', readings },
    { deviceId: 'seldom', intervalMs: 3 * HOUR_MS },
  ];
  const world = (originMs: number) => createWorld({ seed: 5, originMs, historyMs: DAY_MS, devices, alerts: [] });
  const found: string[] = [];
  for (const behindMs of [0, 30 * MINUTE_MS]) {
    using rig = await openRig(bench, { world, historyMs: 2 * HOUR_MS, program });
    await rig.once();
    await rig.clock.sleep(HOUR_MS);
    rig.simulator.faults = onPath(/telemetry/, () => ({
      kind: 'mangle',
      change: (page) => ({ ...page, records: page.records.filter((record) => timeOf(record) <= NOW_MS - behindMs) }),
    }));
    const { summary } = await rig.once();
    if (summary.exit_code !== 3) found.push(`a run that is ${behindMs} ms behind ends with ${summary.exit_code}`);
    rig.simulator.faults = null;
    const startedMs = rig.clock.nowMs();
    await rig.once();
    found.push(...complaints(await rig.verdict(startedMs, { fromNs: BigInt(NOW_MS - HOUR_MS) * 1_000_000n }), 50));
  }
  return found;
};

/**
 * A daemon whose plan is small against its fleet, and empty answers that others supported: their ranges are requested
 * again.
 */
export const emptyUnderSmallQuota: Scenario = async (bench, program) => {
  const silences = [{ fromMs: NOW_MS - HOUR_MS, toMs: Number.POSITIVE_INFINITY }];
  const devices = [
    { deviceId: 'silent', intervalMs: MINUTE_MS, silences },
    ...['a', 'b', 'c', 'd'].map((deviceId) => ({ deviceId, intervalMs: MINUTE_MS })),
  ];
  const world = (originMs: number) => createWorld({ seed: 37, originMs, historyMs: DAY_MS, devices, alerts: [] });
  using rig = await openRig(bench, { world, historyMs: 6 * HOUR_MS, program });
  rig.simulator.settings.plan.requestsPerDay = 600;
  rig.simulator.faults = onPath(/silent\/telemetry/, () =>
    rig.clock.nowMs() - NOW_MS < 10 * MINUTE_MS ? falselyEmpty : null,
  );
  await liveAsDaemon(rig, { forMs: 4 * HOUR_MS, program });
  const fromNs = BigInt(NOW_MS - 5 * HOUR_MS) * 1_000_000n;
  const verdict = await rig.verdict(NOW_MS, { fromNs });
  // The plan does not carry the history of the others.
  return complaints({ ...verdict, missing: verdict.missing.filter((text) => text.startsWith('silent')) }, 500);
};
