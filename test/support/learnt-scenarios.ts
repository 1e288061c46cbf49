/**
 * Safety scenarios about what answers show beside readings: the days of the plan, rejected ranges, how late readings come,
 * whether a device was ever seen. Part of `scenarios.ts`.
 */

import { DAY_MS, formatMs, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import type { Bench } from './bench.ts';
import { liveAsDaemon } from './daemon-rig.ts';
import { anyOf, falselyEmpty, onPath } from './faults.ts';
import { complaints } from './judge.ts';
import { type Life, NOW_MS, openRig, type Program, type Rig, type RigOptions } from './rig.ts';
import type { Scenario } from './scenarios.ts';
import { createWorld } from './trait-world.ts';
import { withWallOffset } from './virtual-clock.ts';

interface World extends Pick<RigOptions, 'historyMs' | 'settings'> {
  readonly everyMs: number;
  readonly reportsToMs?: number;
}

/** A workspace of one device. */
async function rigFor(bench: Bench, program: Program, { everyMs, reportsToMs, ...options }: World): Promise<Rig> {
  const silences = reportsToMs === undefined ? [] : [{ fromMs: reportsToMs, toMs: Number.POSITIVE_INFINITY }];
  const devices = [{ deviceId: 'one', intervalMs: everyMs, silences }];
  const world = (originMs: number) => createWorld({ seed: 43, originMs, historyMs: 10 * DAY_MS, devices, alerts: [] });
  return await openRig(bench, { world, program, ...options });
}

function unlessComplete({ summary: { exit_code, gaps } }: Life): string[] {
  return exit_code === 0 && gaps.length === 0 ? [] : [`exit ${exit_code}: ${JSON.stringify(gaps)}`];
}

/** The plan shrinks for a while and an age is rejected; the account, which shows that it has grown, is not read meanwhile. */
export const rejectedForAWhile: Scenario = async (bench, program) => {
  const settings: RigOptions['settings'] = { plan: { historyMaxDays: 30 }, bounds: { age: 'rejected' } };
  using rig = await rigFor(bench, program, { everyMs: 10 * MINUTE_MS, historyMs: 9 * DAY_MS, settings });
  const { plan } = rig.simulator.settings;
  rig.simulator.faults = (_, { path }) => {
    if (path.endsWith('/telemetry')) plan.historyMaxDays = 3;
    return path.endsWith('/account') && plan.historyMaxDays === 3 ? { kind: 'server-error' } : null;
  };
  const { summary } = await rig.once();
  const isRejected = summary.gaps.some(({ reason }) => reason === 'beyond_plan');
  rig.simulator.faults = null;
  plan.historyMaxDays = 30;
  await rig.clock.sleep(HOUR_MS);
  return [...(isRejected ? [] : ['no age was rejected']), ...unlessComplete(await rig.once())];
};

/** The key may not read the account: how far back the plan shows readings is known from a rejection alone. */
export const daysOfARejection: Scenario = async (bench, program) => {
  const settings: RigOptions['settings'] = {
    plan: { historyMaxDays: 3 },
    bounds: { age: 'empty' },
    key: { scopes: ['devices:read', 'telemetry:read', 'alerts:read'] },
  };
  using rig = await rigFor(bench, program, { everyMs: 10 * MINUTE_MS, historyMs: 3 * DAY_MS, settings });
  await rig.once();
  // Longer than these days: the stored reading that pages would have to show is hidden by now.
  await rig.clock.sleep(4 * DAY_MS);
  return unlessComplete(await rig.once());
};

/** The service's clock runs ahead once the time is known: it counts a range without an end up to its own present. */
export const endsCountedAhead: Scenario = async (bench, program) => {
  const settings: RigOptions['settings'] = { plan: { historyMaxDays: 1 } };
  using rig = await rigFor(bench, program, { everyMs: 10 * MINUTE_MS, historyMs: 9 * DAY_MS, settings });
  const { log, settings: served } = rig.simulator;
  rig.simulator.faults = onPath(/telemetry/, () => {
    served.time.offsetMs = 23 * HOUR_MS;
    return null;
  });
  const life = await rig.once();
  const many = log.total < 100 ? [] : [`${log.total} requests`];
  return [...many, ...unlessComplete(life)];
};

/**
 * No answer has a `Date`, and the local clock is an hour and a half behind: readings an hour late are that late, however
 * early it calls them.
 */
export const lateUnderAClockBehind: Scenario = async (bench, program) => {
  const hiddenFromMs = NOW_MS - 9 * MINUTE_MS;
  const hiddenToMs = NOW_MS - 4 * MINUTE_MS;
  const settings: RigOptions['settings'] = { time: { date: 'absent' } };
  using rig = await rigFor(bench, program, { everyMs: MINUTE_MS, historyMs: 3 * HOUR_MS, settings });
  rig.hides = (_, { recordedAtNs }, atMs) => {
    const readingMs = Number(recordedAtNs / 1_000_000n);
    return hiddenFromMs <= readingMs && readingMs < hiddenToMs && atMs < readingMs + HOUR_MS;
  };
  await rig.once();
  await rig.clock.sleep(100 * MINUTE_MS);
  const { events } = await rig.once({ clock: withWallOffset(rig.clock, () => -90 * MINUTE_MS) });
  const late = events.flatMap((event) => (event.type === 'readings-late' ? [event.gracePeriodMs] : []));
  // A grace period does not grow for readings that no grace period could have awaited.
  const grown = late.length === 1 && late[0] === 2 * MINUTE_MS ? [] : [`grace periods ${late.join(', ')}`];
  const startedMs = rig.clock.nowMs();
  await rig.once();
  const fromNs = BigInt(NOW_MS - 2 * HOUR_MS) * 1_000_000n;
  return [...grown, ...complaints(await rig.verdict(startedMs, { fromNs }), 200)];
};

/**
 * A hub without readings beside a device that reports.
 *
 * @param seenAt the last-seen time of the hub in the device list, at a time
 * @param reportsFromMs when the hub begins to report.
 */
async function rigWithHub(
  bench: Bench,
  program: Program,
  seenAt: (nowMs: number) => string | null,
  reportsFromMs = Number.POSITIVE_INFINITY,
): Promise<Rig> {
  const devices = [
    { deviceId: 'calm', intervalMs: 10 * MINUTE_MS },
    { deviceId: 'hub', intervalMs: MINUTE_MS, silences: [{ fromMs: 0, toMs: reportsFromMs }] },
  ];
  const world = (originMs: number) => createWorld({ seed: 43, originMs, historyMs: DAY_MS, devices, alerts: [] });
  const rig = await openRig(bench, { world, historyMs: 6 * HOUR_MS, program });
  const seen = (record: string): string =>
    record.includes('"hub"')
      ? JSON.stringify({ ...JSON.parse(record), last_seen_at: seenAt(rig.clock.nowMs()) })
      : record;
  rig.simulator.faults = onPath(/\/devices$/, () => ({
    kind: 'mangle',
    change: (page) => ({ ...page, records: page.records.map(seen) }),
  }));
  return rig;
}

/** A hub is seen all the time and never reports: after three confirmations it is left to the idle poll. */
export const hubWithoutReadings: Scenario = async (bench, program) => {
  using rig = await rigWithHub(bench, program, (nowMs) => formatMs(nowMs - SECOND_MS));
  for (const restMs of [HOUR_MS + MINUTE_MS, DAY_MS, 0]) {
    await rig.once();
    await rig.clock.sleep(restMs);
  }
  const before = rig.simulator.log.total;
  const { lastReady } = await liveAsDaemon(rig, { forMs: HOUR_MS / 2, program });
  const polls = rig.simulator.log.requests.filter(
    ({ number, path, query }) =>
      number > before && path.includes('/hub/telemetry') && !new URLSearchParams(query).has('before'),
  ).length;
  return [...(lastReady.ready ? [] : ['it is not ready']), ...(polls === 0 ? [] : [`${polls} polls in half an hour`])];
};

/** A hub was never seen and never reports: the time since its last idle poll keeps nothing incomplete. */
export const hubNeverSeen: Scenario = async (bench, program) => {
  using rig = await rigWithHub(bench, program, () => null);
  const { lastReady, lastReport } = await liveAsDaemon(rig, { forMs: 2 * HOUR_MS, program });
  const { devices, devices_complete } = lastReport.totals;
  const isTold = devices_complete === devices && lastReport.gaps.length === 0;
  return [...lastReady.reasons, ...(isTold ? [] : [lastReport.summary])];
};

/** A hub begins to report, and the device list still has no last-seen time: its readings are missing. */
export const hubBeginsUnseen: Scenario = async (bench, program) => {
  using rig = await rigWithHub(bench, program, () => null, NOW_MS + 2 * HOUR_MS);
  const { lastReady, lastReport } = await liveAsDaemon(rig, { forMs: 4 * HOUR_MS, program });
  const newest = lastReport.devices.find(({ device_id }) => device_id === 'hub')?.newest_reading_at ?? null;
  const isMissing = newest === null || Date.parse(newest) < rig.clock.nowMs() - HOUR_MS;
  return isMissing && lastReady.ready ? ['it is ready while an hour of readings is missing'] : [];
};

/** The device list never has the last-seen time of the device, and its first answers are empty: they are not final. */
export const emptyAndNeverSeen: Scenario = async (bench, program) => {
  using rig = await rigFor(bench, program, {
    everyMs: 5 * MINUTE_MS,
    historyMs: 6 * HOUR_MS,
    reportsToMs: NOW_MS - HOUR_MS,
  });
  const unseen = (record: string): string => JSON.stringify({ ...JSON.parse(record), last_seen_at: undefined });
  const list = onPath(/\/devices$/, () => ({
    kind: 'mangle',
    change: (page) => ({ ...page, records: page.records.map(unseen) }),
  }));
  const empty = onPath(/telemetry/, () => falselyEmpty);
  rig.simulator.faults = anyOf(list, empty);
  const early = unlessComplete(await rig.once());
  rig.simulator.faults = list;
  await rig.clock.sleep(HOUR_MS + MINUTE_MS);
  await rig.once();
  const fromNs = BigInt(NOW_MS - 5 * HOUR_MS) * 1_000_000n;
  return [...early, ...complaints(await rig.verdict(NOW_MS, { fromNs }), 40)];
};
