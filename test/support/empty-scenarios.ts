/**
 * Safety scenarios about answers that are empty, with 200, for as long as a fault lasts. Part of `scenarios.ts`.
 */

import { DAY_MS, HOUR_MS, MINUTE_MS, msToNs, SECOND_MS } from '../../src/core/time.ts';
import type { Bench } from './bench.ts';
import { always, anyOf, falselyEmpty, onPath, withoutLastSeen } from './faults.ts';
import type { FaultPlan } from './faulty-simulator.ts';
import { complaints } from './judge.ts';
import { NOW_MS, openRig, type Program, type Rig } from './rig.ts';
import type { Scenario } from './scenarios.ts';
import { createWorld, type DeviceSpec } from './trait-world.ts';

const HISTORY_MS = 12 * HOUR_MS;
/** The wanted range moves with the duration of the runs. */
const FROM_MS = NOW_MS - 6 * HOUR_MS;

/** More readings an hour than a page holds: readings that a run has missed are not found by chance in the next one. */
const OFTEN: DeviceSpec = { deviceId: 'often', intervalMs: 10 * SECOND_MS };

const EMPTY: FaultPlan = onPath(/telemetry/, always(falselyEmpty));

/** With no sign of life in the list: the only evidence against the answers is the reading that each must show. */
const EMPTY_AND_UNSEEN: FaultPlan = anyOf(EMPTY, onPath(/devices$/, always(withoutLastSeen)));

interface World {
  readonly device: DeviceSpec;
  readonly historyMs: number;
}

async function rigFor(bench: Bench, program: Program, { device, historyMs }: World): Promise<Rig> {
  const world = (originMs: number) =>
    createWorld({ seed: 29, originMs, historyMs: historyMs + 3 * HOUR_MS, devices: [device], alerts: [] });
  return await openRig(bench, { world, historyMs, program });
}

/** A last run, an hour later, in which all answers are true. */
async function finish(rig: Rig, { fromMs, least }: { fromMs: number; least: number }): Promise<string[]> {
  rig.simulator.faults = null;
  await rig.clock.sleep(HOUR_MS);
  const startedMs = rig.clock.nowMs();
  await rig.once();
  return complaints(await rig.verdict(startedMs, { fromNs: BigInt(fromMs) * 1_000_000n }), least);
}

/** Three runs in which every answer is empty, though readings are stored that each must show. */
export const emptyForHours: Scenario = async (bench, program) => {
  using rig = await rigFor(bench, program, { device: OFTEN, historyMs: HISTORY_MS });
  await rig.once();
  rig.simulator.faults = EMPTY_AND_UNSEEN;
  const found: string[] = [];
  for (let life = 1; life <= 3; life += 1) {
    await rig.clock.sleep(HOUR_MS);
    const { summary } = await rig.once();
    if (summary.exit_code !== 3) found.push(`life ${life} ends with ${summary.exit_code}, and readings are missing`);
  }
  return [...found, ...(await finish(rig, { fromMs: FROM_MS, least: 1000 }))];
};

/** A first run in which every answer is empty, so that no reading is stored that could be missed. */
export const emptyFromTheFirst: Scenario = async (bench, program) => {
  using rig = await rigFor(bench, program, { device: OFTEN, historyMs: HISTORY_MS });
  rig.simulator.faults = EMPTY;
  await rig.once();
  return await finish(rig, { fromMs: FROM_MS, least: 1000 });
};

/**
 * The wanted range grows by several windows, and every answer is empty: the deeper windows include no stored reading.
 */
export const emptyFurtherDown: Scenario = async (bench, program) => {
  const device: DeviceSpec = { deviceId: 'ten', intervalMs: 10 * MINUTE_MS };
  using rig = await rigFor(bench, program, { device, historyMs: 12 * DAY_MS });
  rig.simulator.settings.plan.historyMaxDays = 3;
  const { settings } = rig;
  await rig.once({ settings: { ...settings, history: { kind: 'age', ageMs: 4 * DAY_MS } } });
  rig.simulator.faults = EMPTY;
  await rig.clock.sleep(HOUR_MS);
  await rig.once();
  return await finish(rig, { fromMs: NOW_MS - 11 * DAY_MS, least: 1000 });
};

/** More readings at one instant than a page holds, and from the first cursor on every answer is empty. */
export const emptyBehindCursor: Scenario = async (bench, program) => {
  const readingsAt = (fromMs: number, stepMs: number, count: number) =>
    Array.from({ length: count }, (_, index) => ({
      recordedAtNs: BigInt(fromMs + index * stepMs) * 1_000_000n,
      values: [['level', String(index)] as const],
    }));
  const readings = [
    ...readingsAt(NOW_MS - 5 * HOUR_MS, 10 * SECOND_MS, 300),
    ...readingsAt(NOW_MS - 2 * HOUR_MS, 0, 230),
    ...readingsAt(NOW_MS - HOUR_MS, 10 * SECOND_MS, 60),
  ];
  using rig = await rigFor(bench, program, { device: { deviceId: 'crowd', readings }, historyMs: HISTORY_MS });
  rig.simulator.settings.plan.maxDevicesPerPage = 100;
  let isOut = false;
  rig.simulator.faults = onPath(/telemetry/, (_, { query }) => {
    isOut ||= query.has('cursor');
    return isOut ? falselyEmpty : null;
  });
  const { summary } = await rig.once();
  const found = await finish(rig, { fromMs: FROM_MS, least: 500 });
  return summary.exit_code === 3 ? found : [`the first run ends with ${summary.exit_code}`, ...found];
};

/** Empty answers twice, more than a day apart, and true ones between: what was shown meanwhile is not gone. */
export const emptyOnceMore: Scenario = async (bench, program) => {
  const spoken = (fromMs: number) =>
    Array.from({ length: 300 }, (_, index) => ({
      recordedAtNs: BigInt(fromMs + index * 10 * SECOND_MS) * 1_000_000n,
      values: [['level', String(index)] as const],
    }));
  const readings = [...spoken(NOW_MS - 2 * HOUR_MS), ...spoken(NOW_MS + 26 * HOUR_MS)];
  using rig = await rigFor(bench, program, { device: { deviceId: 'quiet', readings }, historyMs: 2 * DAY_MS });
  await rig.once();
  const found: string[] = [];
  for (const waitMs of [HOUR_MS, 26 * HOUR_MS]) {
    await rig.clock.sleep(waitMs);
    rig.simulator.faults = EMPTY_AND_UNSEEN;
    const { summary } = await rig.once();
    if (summary.exit_code !== 3) found.push(`a run with empty answers ends with ${summary.exit_code}`);
    rig.simulator.faults = null;
    await rig.clock.sleep(HOUR_MS);
    if (waitMs === HOUR_MS) await rig.once();
  }
  return [...found, ...(await finish(rig, { fromMs: FROM_MS, least: 500 }))];
};

/** A device that has been silent for an hour, and every answer of the first run is empty. */
export const silentAtFirstContact: Scenario = async (bench, program) => {
  const device: DeviceSpec = {
    deviceId: 'silent',
    intervalMs: MINUTE_MS,
    silences: [{ fromMs: NOW_MS - HOUR_MS, toMs: Number.POSITIVE_INFINITY }],
  };
  using rig = await rigFor(bench, program, { device, historyMs: HISTORY_MS });
  rig.simulator.faults = EMPTY;
  const { summary } = await rig.once();
  const tookMs = rig.clock.nowMs() - NOW_MS;
  const named = summary.gaps.map(({ device_id, reason }) => `${device_id} ${reason}`).join();
  const end = summary.exit_code === 3 && named === 'silent unverified' && tookMs < MINUTE_MS;
  const found = await finish(rig, { fromMs: FROM_MS, least: 300 });
  return end ? found : [`the first run ends with ${summary.exit_code} after ${tookMs} ms (${named})`, ...found];
};

/**
 * The same, while another device is answered about: the empty answers are accepted, and requested again an hour later.
 */
export const emptyBesideOthers: Scenario = async (bench, program) => {
  const silent: DeviceSpec = {
    deviceId: 'silent',
    intervalMs: MINUTE_MS,
    silences: [{ fromMs: NOW_MS - HOUR_MS, toMs: Number.POSITIVE_INFINITY }],
  };
  const devices = [silent, { deviceId: 'often', intervalMs: 10 * MINUTE_MS }];
  const world = (originMs: number) =>
    createWorld({ seed: 37, originMs, historyMs: HISTORY_MS + 3 * HOUR_MS, devices, alerts: [] });
  using rig = await openRig(bench, { world, historyMs: HISTORY_MS, program });
  rig.simulator.faults = onPath(/silent\/telemetry/, always(falselyEmpty));
  const { summary } = await rig.once();
  const found = await finish(rig, { fromMs: FROM_MS, least: 300 });
  return summary.exit_code === 0 ? found : [`the first run ends with ${summary.exit_code}`, ...found];
};

/**
 * Empty answers that others supported, and then true ones of older history: the newer range is requested again at once.
 */
export const emptyAboveHistory: Scenario = async (bench, program) => {
  const silent: DeviceSpec = {
    deviceId: 'silent',
    intervalMs: 10 * MINUTE_MS,
    silences: [{ fromMs: NOW_MS - HOUR_MS, toMs: Number.POSITIVE_INFINITY }],
  };
  const devices = [silent, { deviceId: 'often', intervalMs: 10 * MINUTE_MS }];
  const world = (originMs: number) => createWorld({ seed: 41, originMs, historyMs: 8 * DAY_MS, devices, alerts: [] });
  using rig = await openRig(bench, { world, historyMs: 6 * DAY_MS, program });
  let calls = 0;
  rig.simulator.faults = onPath(/silent\/telemetry/, () => {
    calls += 1;
    return calls <= 2 ? falselyEmpty : null;
  });
  const startedMs = rig.clock.nowMs();
  await rig.once();
  return complaints(await rig.verdict(startedMs), 700);
};

/**
 * A device that was silent for a week, under a plan of three days: no answer about what is older has to show a stored
 * reading. In the first minute all such answers are empty, and the device has readings only in the last window of them.
 */
export const emptyBelowSilence: Scenario = async (bench, program) => {
  const silences = [{ fromMs: NOW_MS - 12 * DAY_MS, toMs: NOW_MS - 4 * DAY_MS }];
  const devices = [{ deviceId: 'ten', intervalMs: 10 * MINUTE_MS, silences }];
  const world = (originMs: number) => createWorld({ seed: 47, originMs, historyMs: 16 * DAY_MS, devices, alerts: [] });
  using rig = await openRig(bench, { world, historyMs: 15 * DAY_MS, program });
  rig.simulator.settings.plan.historyMaxDays = 3;
  rig.simulator.faults = onPath(/telemetry/, (_, { query, atMs }) => {
    const isOld = Date.parse(query.get('before') ?? '') < NOW_MS - 5 * DAY_MS;
    return isOld && atMs < NOW_MS + MINUTE_MS ? falselyEmpty : null;
  });
  const { summary } = await rig.once();
  await rig.clock.sleep(DAY_MS);
  const found = await finish(rig, { fromMs: NOW_MS - 13.5 * DAY_MS, least: 850 });
  return summary.exit_code === 0 ? found : [`the first run ends with ${summary.exit_code}`, ...found];
};

/**
 * Two windows next to each other that were called empty, while the readings of both are stored by now: they do not make
 * each other due for ever.
 */
export const emptyNextToEach: Scenario = async (bench, program) => {
  const devices = [{ deviceId: 'ten', intervalMs: 10 * MINUTE_MS }];
  const world = (originMs: number) => createWorld({ seed: 53, originMs, historyMs: 10 * DAY_MS, devices, alerts: [] });
  using rig = await openRig(bench, { world, historyMs: 9 * DAY_MS, program });
  rig.simulator.settings.plan.historyMaxDays = 3;
  await rig.once();
  const sync = rig.open();
  for (const days of [8, 6]) {
    const [from, to] = [days, days - 2].map((each) => msToNs(NOW_MS - each * DAY_MS)) as [bigint, bigint];
    sync.context.store.saveEmptyWindow('ten', { from, to, sinceMs: NOW_MS, dueMs: NOW_MS });
  }
  sync.close();
  const before = rig.simulator.log.total;
  await rig.once();
  const requests = rig.simulator.log.total - before;
  return requests < 20 ? [] : [`${requests} requests for two windows`];
};

/** A device that is silent for days, returns, and hands in what it has recorded meanwhile. */
export const returnsWithItsBuffer: Scenario = async (bench, program) => {
  const returnMs = NOW_MS + 5 * DAY_MS;
  const at = (ms: number, visibleAtMs = ms) => ({
    recordedAtNs: BigInt(ms) * 1_000_000n,
    values: [['level', String(ms % 97)] as const],
    visibleAtMs,
  });
  const every = (fromMs: number, toMs: number) =>
    Array.from({ length: Math.floor((toMs - fromMs) / (10 * MINUTE_MS)) }, (_, i) => fromMs + i * 10 * MINUTE_MS);
  const readings = [
    ...every(NOW_MS - 4 * HOUR_MS, NOW_MS).map((ms) => at(ms)),
    ...every(NOW_MS + HOUR_MS, returnMs).map((ms) => at(ms, returnMs)),
    ...every(returnMs, returnMs + 3 * HOUR_MS).map((ms) => at(ms)),
  ];
  const often: DeviceSpec = { deviceId: 'often', intervalMs: 10 * MINUTE_MS };
  const world = (originMs: number) =>
    createWorld({
      seed: 31,
      originMs,
      historyMs: 3 * DAY_MS,
      devices: [{ deviceId: 'returns', readings }, often],
      alerts: [],
    });
  using rig = await openRig(bench, { world, historyMs: 2 * DAY_MS, program });
  await rig.once();
  for (let day = 1; day <= 5; day += 1) {
    await rig.clock.sleep(DAY_MS - HOUR_MS);
    await rig.once();
  }
  await rig.clock.sleep(7 * HOUR_MS);
  return await finish(rig, { fromMs: FROM_MS, least: 700 });
};

/**
 * A device is cut off while a run with a short history finds nothing, and covers that. It hands in what it has recorded
 * before a later run.
 *
 * @param lastMs from when the device is cut off until its last reading.
 * @param laterMs from the run that finds nothing to the later one.
 */
async function cutOffWhileCovered(
  bench: Bench,
  program: Program,
  { lastMs, laterMs }: { readonly lastMs: number; readonly laterMs: number },
): Promise<readonly string[]> {
  const returnMs = NOW_MS + 2 * DAY_MS;
  const readings = Array.from({ length: 24 + lastMs / (10 * MINUTE_MS) }, (_, index) => {
    const ms = NOW_MS - 4 * HOUR_MS + index * 10 * MINUTE_MS;
    return {
      recordedAtNs: BigInt(ms) * 1_000_000n,
      values: [['level', String(ms % 97)] as const],
      visibleAtMs: ms < NOW_MS ? ms : Math.max(ms, returnMs),
    };
  });
  const devices = [{ deviceId: 'cut-off', readings }];
  const world = (originMs: number) => createWorld({ seed: 43, originMs, historyMs: DAY_MS, devices, alerts: [] });
  using rig = await openRig(bench, { world, historyMs: 3 * HOUR_MS, program });
  await rig.once();
  await rig.clock.sleep(DAY_MS);
  const coveredMs = Math.floor(rig.clock.nowMs());
  await rig.once();
  await rig.clock.sleep(laterMs);
  const startedMs = rig.clock.nowMs();
  await rig.once();
  const covered = {
    fromNs: BigInt(coveredMs - 2 * HOUR_MS) * 1_000_000n,
    toNs: BigInt(coveredMs - HOUR_MS) * 1_000_000n,
  };
  return complaints(await rig.verdict(startedMs, covered), 5);
}

/** A device that hands in what it recorded while a run with a short history found nothing, and covered that. */
export const silentWhileCovered: Scenario = async (bench, program) =>
  await cutOffWhileCovered(bench, program, { lastMs: 376 * 10 * MINUTE_MS, laterMs: 36 * HOUR_MS });

/** The same, and its last reading is older than all that the later run wants: a page shows it below that. */
export const silentBelowWanted: Scenario = async (bench, program) =>
  await cutOffWhileCovered(bench, program, { lastMs: 58 * HOUR_MS, laterMs: 38 * HOUR_MS });
