/**
 * Safety scenarios about quiet faults: clocks and cursors that are not what they seem. Part of `scenarios.ts`.
 */

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import type { Bench } from './bench.ts';
import { falselyEmpty, onPath } from './faults.ts';
import { complaints } from './judge.ts';
import { liveFor } from './live.ts';
import { NOW_MS, openRig, type Program, type Rig, type RigOptions } from './rig.ts';
import type { Scenario } from './scenarios.ts';
import { createWorld, type DeviceSpec } from './trait-world.ts';
import { withWallOffset } from './virtual-clock.ts';

const HISTORY_MS = 3 * HOUR_MS;

/** More readings an hour than a page holds: readings that a run has missed are not found by chance in the next one. */
const OFTEN: DeviceSpec = { deviceId: 'often', intervalMs: 5 * SECOND_MS };

async function rigFor(
  bench: Bench,
  program: Program,
  { devices = [OFTEN], ...changes }: Partial<RigOptions> & { readonly devices?: readonly DeviceSpec[] } = {},
): Promise<Rig> {
  const world = (originMs: number) => createWorld({ seed: 23, originMs, historyMs: 6 * HOUR_MS, devices, alerts: [] });
  return await openRig(bench, { world, historyMs: HISTORY_MS, program, ...changes });
}

/**
 * @param fromMs from when on everything has to be there, up to the coverage limit of a run that began at `startedMs`
 */
async function finish(rig: Rig, startedMs: number, fromMs = NOW_MS - HISTORY_MS + 10 * MINUTE_MS): Promise<string[]> {
  return complaints(await rig.verdict(startedMs, { fromNs: BigInt(fromMs) * 1_000_000n }), 1000);
}

/** Answers that take half a minute, of a service that shows readings up to 25 s after their time. */
export const slowAnswers: Scenario = async (bench, program) => {
  using rig = await rigFor(bench, program, {
    devices: [{ ...OFTEN, intervalMs: 2 * SECOND_MS }],
    gracePeriodMs: 30 * SECOND_MS,
    settings: { lateness: { share: 0.7, maxMs: 25 * SECOND_MS, devices: null } },
  });
  rig.simulator.faults = onPath(/telemetry/, (_, { query }) =>
    query.has('before') ? null : { kind: 'slow', delayMs: 28 * SECOND_MS, part: 'headers' },
  );
  await rig.once();
  await rig.clock.sleep(HOUR_MS);
  const startedMs = rig.clock.nowMs();
  await rig.once();
  return await finish(rig, startedMs);
};

/** In the middle of a run `Date` jumps an hour ahead; in the next one it is right again. */
export const dateJumps: Scenario = async (bench, program) => {
  using rig = await rigFor(bench, program);
  const { time } = rig.simulator.settings;
  rig.simulator.faults = (number) => {
    time.jumpMs = number > 1 ? HOUR_MS : 0;
    return null;
  };
  await rig.once();
  rig.simulator.faults = null;
  time.jumpMs = 0;
  await rig.clock.sleep(2 * HOUR_MS);
  const startedMs = rig.clock.nowMs();
  await rig.once();
  return await finish(rig, startedMs);
};

/** In the middle of a run `Date` jumps two hours ahead, as far as the local clock is all the time. */
export const dateJumpsToLocalClock: Scenario = async (bench, program) => {
  using rig = await rigFor(bench, program, { devices: [{ deviceId: 'steady', intervalMs: 20 * SECOND_MS }] });
  const { time } = rig.simulator.settings;
  const beyond: string[] = [];
  await rig.once();
  await liveFor(rig, 60, {
    clock: withWallOffset(rig.clock, () => 2 * HOUR_MS),
    each: (minute, { sync }) => {
      time.jumpMs = minute >= 10 && minute < 50 ? 2 * HOUR_MS : 0;
      const presentNs = BigInt(Math.ceil(rig.clock.nowMs())) * 1_000_000n;
      const { covered } = sync.context.store.telemetry('steady');
      if (covered.some(({ to }) => to > presentNs)) beyond.push(`minute ${minute}: covered beyond the present`);
    },
  });
  const startedMs = rig.clock.nowMs();
  await rig.once();
  return [...beyond.slice(0, 1), ...(await finish(rig, startedMs))];
};

/** A server whose clock was an hour ahead, and has fallen back by the second of three runs. */
export const dateFallsBack: Scenario = async (bench, program) => {
  using rig = await rigFor(bench, program);
  const { time } = rig.simulator.settings;
  time.jumpMs = HOUR_MS;
  await rig.once();
  time.jumpMs = 0;
  await rig.clock.sleep(10 * MINUTE_MS);
  // The first run has counted the wanted range from an hour ahead.
  const fromMs = NOW_MS - HISTORY_MS + HOUR_MS + 10 * MINUTE_MS;
  const fallenMs = rig.clock.nowMs();
  await rig.once();
  const early = await finish(rig, fallenMs, fromMs);
  await rig.clock.sleep(2 * HOUR_MS);
  const startedMs = rig.clock.nowMs();
  await rig.once();
  return [...early, ...(await finish(rig, startedMs, fromMs))];
};

/** A `Date` two days ahead for the first seconds of the first run. */
export const firstDateWrong: Scenario = async (bench, program) => {
  using rig = await rigFor(bench, program);
  const { time } = rig.simulator.settings;
  time.jumpMs = 48 * HOUR_MS;
  const rightAgain = rig.clock.sleep(14 * SECOND_MS).then(() => {
    time.jumpMs = 0;
  });
  await rig.once();
  const found = await finish(rig, NOW_MS);
  await rightAgain;
  return found;
};

/** More readings of the year 2100 than a page holds lie on top of every page without an upper bound. */
export const farFuture: Scenario = async (bench, program) => {
  using rig = await rigFor(bench, program, { devices: [OFTEN, { deviceId: 'calm', intervalMs: 5 * MINUTE_MS }] });
  const record = (index: number): string =>
    `{"recorded_at":"2100-01-01T00:00:${String(59 - (index % 60)).padStart(2, '0')}Z","values":{"temperature":${index}}}`;
  const records = Array.from({ length: 200 }, (_, index) => record(Math.floor(index / 4)));
  rig.simulator.faults = onPath(/often\/telemetry/, (_, { query }) =>
    query.has('before') ? null : { kind: 'mangle', change: (page) => ({ ...page, records, nextCursor: 'further' }) },
  );
  const { summary } = await rig.once();
  const end = summary.exit_code === 0 ? [] : [`exit ${summary.exit_code}: ${JSON.stringify(summary.gaps)}`];
  return [...end, ...(await finish(rig, NOW_MS))];
};

/** How far, and for how long, the clock of `clockFallsForSeconds` falls back, with the stamps of its readings. */
const FALL_MS = 2 * HOUR_MS;
const FALLEN_FOR_MS = 18 * SECOND_MS;

/**
 * The server's clock falls back for some seconds, and readings are stamped by it meanwhile; two devices of three are
 * polled then.
 */
export const clockFallsForSeconds: Scenario = async (bench, program) => {
  const fallsMs = NOW_MS + 10 * MINUTE_MS;
  const stampedMs = fallsMs - FALL_MS;
  const isStampedThen = (atNs: bigint): boolean => {
    const sinceMs = Number(atNs / 1_000_000n) - stampedMs;
    return sinceMs >= 0 && sinceMs < FALLEN_FOR_MS;
  };
  const everyMs = 3 * SECOND_MS;
  const times = Array.from({ length: 5000 }, (_, index) => NOW_MS - 3 * HOUR_MS + index * everyMs);
  const readings = times.map((ms, index) => ({
    recordedAtNs: BigInt(ms) * 1_000_000n,
    values: [['level', String(index)] as const],
  }));
  const devices = ['first', 'second', 'third'].map((deviceId): DeviceSpec => ({ deviceId, readings }));
  using rig = await rigFor(bench, program, { devices });
  const { time } = rig.simulator.settings;
  rig.hides = (_, { recordedAtNs }) => isStampedThen(recordedAtNs) && rig.clock.nowMs() < fallsMs;
  await rig.once();
  const lastMs = rig.clock.nowMs();
  await liveFor(rig, Math.ceil((fallsMs - lastMs) / MINUTE_MS) + 20, {
    each: async (_, { sync }) => {
      if (time.offsetMs !== 0 || rig.clock.nowMs() < fallsMs || rig.clock.nowMs() >= fallsMs + MINUTE_MS) return;
      time.offsetMs = -FALL_MS;
      for (const deviceId of ['first', 'second']) await sync.scanner.peek(deviceId, new AbortController().signal);
      await rig.clock.sleep(FALLEN_FOR_MS);
      time.offsetMs = 0;
    },
  });
  const startedMs = rig.clock.nowMs();
  await rig.once();
  return await finish(rig, startedMs);
};

/** Cursors that leave out the readings of the instant at a page's end, of a device that has two at every instant. */
export const cursorsThatSkip: Scenario = async (bench, program) => {
  const times = Array.from({ length: 1000 }, (_, index) => BigInt(NOW_MS - index * 10 * SECOND_MS) * 1_000_000n);
  const readings = times.flatMap((recordedAtNs) =>
    ['left', 'right'].map((sensor) => ({ recordedAtNs, values: [[sensor, '1'] as const] })),
  );
  const tied: DeviceSpec = { deviceId: 'tied', readings };
  using rig = await rigFor(bench, program, {
    devices: [tied],
    settings: { paging: { cursorDuplicates: 'skips' }, plan: { maxDevicesPerPage: 21 } },
  });
  await rig.once();
  return await finish(rig, NOW_MS);
};

/** Cursors that repeat the readings of an instant that fills pages, each with a text of its own: no chain has an end. */
export const cursorsInACircle: Scenario = async (bench, program) => {
  const crowd = Array.from({ length: 250 }, (_, index) => ({
    recordedAtNs: BigInt(NOW_MS - HOUR_MS) * 1_000_000n,
    values: [['level', String(index)] as const],
  }));
  using rig = await rigFor(bench, program, {
    devices: [OFTEN, { deviceId: 'crowd', readings: crowd }],
    settings: { paging: { cursorDuplicates: 'loops' } },
  });
  const stop = new AbortController();
  rig.simulator.faults = (number) => {
    if (number > 500) stop.abort();
    return null;
  };
  const { summary } = await rig.once({}, stop.signal);
  const found = summary.outcome === 'stalled' ? [] : [`${summary.outcome} after 500 requests`];
  rig.simulator.faults = null;
  rig.simulator.settings.paging.cursorDuplicates = 'exact';
  await rig.clock.sleep(HOUR_MS);
  const startedMs = rig.clock.nowMs();
  await rig.once();
  return [...found, ...(await finish(rig, startedMs))];
};

/** Gaps that were named while the clock was two hours ahead: the right clock tries them at once. */
export const namedByAClockAhead: Scenario = async (bench, program) => {
  using rig = await rigFor(bench, program);
  const { time } = rig.simulator.settings;
  time.jumpMs = 2 * HOUR_MS;
  rig.simulator.faults = onPath(/telemetry/, () => ({ kind: 'malformed' }));
  await rig.once();
  time.jumpMs = 0;
  rig.simulator.faults = null;
  await rig.clock.sleep(10 * MINUTE_MS);
  const startedMs = rig.clock.nowMs();
  const { summary } = await rig.once();
  const fromMs = startedMs - HISTORY_MS + 10 * MINUTE_MS;
  const end = summary.exit_code === 0 ? [] : [`exit ${summary.exit_code}: ${JSON.stringify(summary.gaps)}`];
  return [...end, ...(await finish(rig, startedMs, Math.ceil(fromMs)))];
};

/**
 * No answer has a `Date`, telemetry is empty, and by the local clock, which is as far ahead as the plan reaches back,
 * the plan hides the wanted range: its gap still has a name.
 */
export const namedUnderALocalClockAhead: Scenario = async (bench, program) => {
  const devices = [OFTEN, { deviceId: 'seldom', intervalMs: 7 * MINUTE_MS }];
  const settings: RigOptions['settings'] = { plan: { historyMaxDays: 2 }, time: { date: 'absent' } };
  using rig = await rigFor(bench, program, { devices, settings });
  rig.simulator.faults = onPath(/telemetry/, () => falselyEmpty);
  const { summary } = await rig.once({ clock: withWallOffset(rig.clock, () => 2 * DAY_MS) });
  const named = new Set(summary.gaps.map(({ device_id }) => device_id));
  return devices.filter(({ deviceId }) => !named.has(deviceId)).map(({ deviceId }) => `no gap of ${deviceId}`);
};

/** The lock of a running program is deleted: another one could open the state now, so that this one must not write. */
export const lockDeleted: Scenario = async (bench, program) => {
  using rig = await rigFor(bench, program);
  const { context, close } = rig.open();
  rmSync(join(rig.dataDir, 'tidemark.lock'));
  try {
    context.store.saveFact('probe', '1');
    return ['it writes without its lock'];
  } catch {
    return [];
  } finally {
    close();
  }
};

/**
 * No answer has a `Date`, and the only device has stopped: its last sign of life is all that is known of the time. A
 * replica that is behind serves its newest page then.
 */
export const behindTheTime: Scenario = async (bench, program) => {
  const lastMs = NOW_MS + 40 * MINUTE_MS;
  const readings = Array.from({ length: 150 }, (_, index) => ({
    recordedAtNs: BigInt(lastMs - index * 30 * SECOND_MS) * 1_000_000n,
    values: [['level', String(index)] as const],
  }));
  using rig = await rigFor(bench, program, {
    devices: [{ deviceId: 'stopped', readings }],
    settings: { time: { date: 'absent' } },
  });
  await rig.once();
  await rig.clock.sleep(HOUR_MS);
  let isBehind = true;
  rig.simulator.faults = onPath(/telemetry/, () => {
    if (!isBehind) return null;
    isBehind = false;
    return { kind: 'mangle', change: (page) => ({ ...page, records: page.records.slice(20) }) };
  });
  const startedMs = rig.clock.nowMs();
  await rig.once();
  const toNs = BigInt(lastMs - 3 * MINUTE_MS) * 1_000_000n;
  return complaints(await rig.verdict(startedMs, { fromNs: BigInt(NOW_MS - HOUR_MS / 2) * 1_000_000n, toNs }), 100);
};
