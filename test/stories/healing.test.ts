/**
 * The daemon left alone after a fault: half an hour later every gap is closed and nothing is in quarantine, and each
 * gap that was named meanwhile is of the device that the fault was of.
 */
import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS, msToNs } from '../../src/core/time.ts';
import { sensorsOf } from '../../src/sim/devices.ts';
import { type DaemonLife, DEVICES, eventsOf, liveAsDaemon, worldOf } from '../support/daemon-rig.ts';
import { cron } from '../support/defaults.ts';
import { always, anyOf, atRate, falselyEmpty, onPath, twoExchanged, upsideDown } from '../support/faults.ts';
import type { Fault, FaultPlan } from '../support/faulty-simulator.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { NOW_MS, openBench, openRig, type Rig } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';

const bench = sharedBench(openBench);

const often = (plan: FaultPlan): FaultPlan => onPath(/\/often\/telemetry/, plan);
const halfOf = (fault: Fault): FaultPlan => often(atRate(0.5, [fault], 3));

const ofAnother: Fault = { kind: 'mangle', change: (page) => ({ ...page, deviceId: 'another' }) };

/** The judge's cache is filled once. */
const WORLD = worldOf(DEVICES);

/** The fault of one device for an hour. */
const FAULTS: readonly [string, FaultPlan][] = [
  ['every second answer is empty', halfOf(falselyEmpty)],
  ['two readings are exchanged', halfOf(twoExchanged)],
  ['pages are of another device', often(always(ofAnother))],
  ['pages are cut off', often(always({ kind: 'truncated' }))],
  ['a device is answered with 500', often(always({ kind: 'server-error' }))],
  ['several at once', anyOf(halfOf(falselyEmpty), often(atRate(0.3, [upsideDown, { kind: 'html' }], 4)))],
];

const SELDOM = [{ deviceId: 'often', intervalMs: 5 * MINUTE_MS, sensors: sensorsOf(2) }];
const HOURLY = cron('0 * * * *');
/** Schedules that leave out half of a run, and most of a long one. */
const LESS_ASKED = { telemetry: cron('*/2 * * * *'), alerts: HOURLY, devices: cron('*/10 * * * *') };
const SELDOM_ASKED = { telemetry: cron('*/10 * * * *'), alerts: HOURLY, devices: HOURLY };

/** The run in which the history is read. */
const FIRST = { forMs: 5 * MINUTE_MS, schedules: LESS_ASKED };

describe.runIf(influxdAvailable())('half an hour after the last fault nothing is open', () => {
  test.each(FAULTS)('%s', async (_, plan) => {
    using rig = await openRig(bench, { world: WORLD, historyMs: DAY_MS });
    await liveAsDaemon(rig, FIRST);
    const life = await liveAsDaemon(rig, {
      forMs: 1.5 * HOUR_MS,
      schedules: LESS_ASKED,
      meanwhile: async () => {
        rig.simulator.faults = plan;
        await rig.clock.sleep(HOUR_MS);
        rig.simulator.faults = null;
      },
    });
    expect(eventsOf(life, 'gap-recorded').filter(({ deviceId }) => deviceId !== 'often')).toEqual([]);
    await expectHealed(rig, life);
  });

  test.each([
    ['that speaks often', DEVICES],
    ['that speaks seldom', SELDOM],
  ])('though every answer of a device %s is empty meanwhile: stored readings were not shown', async (_, devices) => {
    using rig = await openRig(bench, { world: worldOf(devices), historyMs: 2 * DAY_MS });
    await liveAsDaemon(rig, FIRST);
    const life = await liveEmptyFor(rig, 2 * HOUR_MS, { thenMs: 30 * MINUTE_MS });
    expect(eventsOf(life, 'restatement')).toEqual([]);
    expect(new Set(eventsOf(life, 'gap-recorded').map(({ deviceId, reason }) => `${deviceId}: ${reason}`))).toEqual(
      new Set(['often: page_rejected']),
    );
    await expectHealed(rig, life, NOW_MS - 2 * DAY_MS + 4 * HOUR_MS);
  });

  test('though every answer is empty over restarts for most of a day', async () => {
    using rig = await openRig(bench, { world: worldOf(SELDOM), historyMs: 2 * DAY_MS });
    await liveAsDaemon(rig, FIRST);
    rig.simulator.faults = often(always(falselyEmpty));
    for (let life = 1; life <= 4; life += 1) {
      expect(eventsOf(await liveAsDaemon(rig, { forMs: 5 * HOUR_MS, schedules: SELDOM_ASKED }), 'restatement')).toEqual(
        [],
      );
    }
    rig.simulator.faults = null;
    const last = await liveAsDaemon(rig, { forMs: 30 * MINUTE_MS, schedules: LESS_ASKED });
    await expectHealed(rig, last, NOW_MS - 2 * DAY_MS + 4 * HOUR_MS);
  });

  test('though every answer is empty while its history is fetched for the first time', async () => {
    using rig = await openRig(bench, {
      world: worldOf([{ deviceId: 'often', intervalMs: 10 * MINUTE_MS }], 22 * DAY_MS),
      historyMs: 20 * DAY_MS,
    });
    rig.simulator.settings.plan.historyMaxDays = 3;
    // Its newest page is true, all that lies below is not.
    let calls = 0;
    rig.simulator.faults = onPath(/often\/telemetry/, () => {
      calls += 1;
      return calls === 1 ? null : falselyEmpty;
    });
    await liveAsDaemon(rig, { forMs: 2 * HOUR_MS });
    expect(calls).toBeGreaterThan(5);
    expect(calls, 'seldom asked').toBeLessThan(100);
    rig.simulator.faults = null;
    const life = await liveAsDaemon(rig, { forMs: 30 * MINUTE_MS });
    await expectHealed(rig, life, NOW_MS - 20 * DAY_MS + 4 * HOUR_MS);
  });

  test('though every answer is empty from the very first one on', async () => {
    using rig = await openRig(bench, { world: WORLD, historyMs: DAY_MS });
    rig.simulator.faults = onPath(/telemetry/, always(falselyEmpty));
    await liveAsDaemon(rig, { forMs: 2 * HOUR_MS, schedules: LESS_ASKED });
    rig.simulator.faults = null;
    await expectHealed(rig, await liveAsDaemon(rig, { forMs: 30 * MINUTE_MS, schedules: LESS_ASKED }));
  });

  test('though its first answers were empty, and the first true one is of its history', async () => {
    using rig = await openRig(bench, { world: worldOf(DEVICES, 8 * DAY_MS), historyMs: 6 * DAY_MS });
    rig.simulator.faults = often(firstOnes([1, 2]));
    const life = await liveAsDaemon(rig, { forMs: HOUR_MS, schedules: LESS_ASKED });
    expect(eventsOf(life, 'readings-late')).toEqual([]);
    await expectHealed(rig, life, NOW_MS - 6 * DAY_MS + 4 * HOUR_MS);
  });
});

describe.runIf(influxdAvailable())('a plan that shows nothing older than its days', () => {
  test('hides covered ranges: these are not gone, and empty answers are not in doubt for it', async () => {
    const readings = spokenFrom(NOW_MS - 2 * DAY_MS, 280);
    using rig = await openRig(bench, { world: worldOf([{ deviceId: 'often', readings }]), historyMs: 10 * DAY_MS });
    rig.simulator.settings.plan.historyMaxDays = 3;
    rig.simulator.settings.bounds.age = 'empty';
    await liveAsDaemon(rig, { forMs: 20 * MINUTE_MS });
    await rig.clock.sleep(5 * DAY_MS);
    const { log } = rig.simulator;
    const before = log.total;
    const life = await liveAsDaemon(rig, { forMs: 3 * HOUR_MS });
    expect(eventsOf(life, 'restatement')).toEqual([]);
    expect(new Set(eventsOf(life, 'gap-recorded').map(({ reason }) => reason))).toEqual(new Set(['beyond_plan']));
    const asked = log.requests.filter(({ number, path }) => number > before && path.includes('telemetry'));
    expect(asked.length, 'seldom asked').toBeLessThan(20);
  });
});

describe.runIf(influxdAvailable())('readings that are gone from the API, all there were of a device', () => {
  test('count as gone after a day, once; later readings are there', async () => {
    using rig = await openRig(bench, { world: worldOf(SELDOM), historyMs: 2 * DAY_MS });
    await liveAsDaemon(rig, FIRST);
    const goneMs = rig.clock.nowMs();
    const backMs = goneMs + 30 * HOUR_MS;
    rig.hides = (deviceId, { recordedAtNs }) => deviceId === 'often' && recordedAtNs < msToNs(backMs);
    const silent = await liveAsDaemon(rig, { forMs: 29 * HOUR_MS, schedules: SELDOM_ASKED });
    expect(eventsOf(silent, 'restatement')).toHaveLength(1);
    const reasons = silent.lastReport.devices.flatMap(({ gaps }) => gaps.map(({ reason }) => reason));
    // Readings that a silent device may have since its last poll.
    expect(new Set(reasons).size === 0 || [...reasons].join() === 'pending', reasons.join()).toBe(true);
    const distrusted = eventsOf(silent, 'page-rejected').length;
    expect(distrusted, 'seldom asked').toBeLessThan(100);
    expect(distrusted).toBeGreaterThan(20);
    const after = await liveAsDaemon(rig, { forMs: 3 * HOUR_MS, schedules: LESS_ASKED });
    expect(eventsOf(after, 'restatement')).toEqual([]);
    const endMs = rig.clock.nowMs() - 5 * MINUTE_MS;
    const { missing, expected } = await rig.verdict(endMs, { fromNs: msToNs(backMs) });
    expect(missing).toEqual([]);
    expect(expected).toBeGreaterThan(20);
  });

  test('are waited for again where they come back', async () => {
    using rig = await openRig(bench, { world: worldOf(SELDOM), historyMs: 4 * DAY_MS });
    await liveAsDaemon(rig, FIRST);
    rig.simulator.faults = often(always(falselyEmpty));
    expect(
      eventsOf(await liveAsDaemon(rig, { forMs: 26 * HOUR_MS, schedules: SELDOM_ASKED }), 'restatement'),
    ).toHaveLength(1);
    rig.simulator.faults = null;
    await liveAsDaemon(rig, { forMs: 20 * MINUTE_MS, schedules: LESS_ASKED });
    const life = await liveEmptyFor(rig, 2 * HOUR_MS, { thenMs: 30 * MINUTE_MS });
    expect(eventsOf(life, 'restatement')).toEqual([]);
  });
});

describe.runIf(influxdAvailable())('--once, where every answer of a device is empty', () => {
  test('names the gap, and the next one fills it', async () => {
    using rig = await openRig(bench, { world: worldOf(SELDOM), historyMs: 2 * DAY_MS });
    await rig.once();
    await rig.clock.sleep(HOUR_MS);
    rig.simulator.faults = often(always(falselyEmpty));
    const { summary, events } = await rig.once();
    expect(summary.exit_code).toBe(3);
    expect(summary.gaps).toMatchObject([{ device_id: 'often', reason: 'page_rejected' }]);
    expect(eventsOf({ events }, 'restatement')).toEqual([]);
    rig.simulator.faults = null;
    await rig.clock.sleep(HOUR_MS);
    const startedMs = rig.clock.nowMs();
    expect((await rig.once()).summary).toMatchObject({ outcome: 'complete', exit_code: 0, gaps: [] });
    const { missing, invented } = await rig.verdict(startedMs, { fromNs: msToNs(NOW_MS - 2 * DAY_MS + 4 * HOUR_MS) });
    expect([missing, invented]).toEqual([[], []]);
  });
});

describe.runIf(influxdAvailable())('--once, where a reading is gone at the edge of the coverage', () => {
  test('other answers without the reading do not make an empty answer accepted', async () => {
    using rig = await openRig(bench, {
      world: worldOf([{ deviceId: 'often', intervalMs: MINUTE_MS }], 6 * DAY_MS),
      historyMs: 4 * DAY_MS,
    });
    const isGone = (at: bigint): boolean =>
      at > msToNs(NOW_MS - 2 * DAY_MS - MINUTE_MS) && at < msToNs(NOW_MS - 2 * DAY_MS + 2 * MINUTE_MS);
    await rig.once({ settings: { ...rig.settings, history: { kind: 'age', ageMs: 2 * DAY_MS } } });
    rig.hides = (_, { recordedAtNs }) => isGone(recordedAtNs);
    await rig.clock.sleep(30_000);
    const { summary, events } = await rig.once();
    expect([summary.exit_code, eventsOf({ events }, 'restatement')]).toEqual([3, []]);
    expect(summary.gaps).toMatchObject([{ device_id: 'often', reason: 'page_rejected' }]);
    await rig.clock.sleep(30 * MINUTE_MS);
    // Empty, without the reading three times, and empty again; live requests have no `before`.
    const plan = firstOnes([1, 5]);
    rig.simulator.faults = often((number, request) => (request.query.has('before') ? plan(number, request) : null));
    expect(eventsOf(await rig.once(), 'restatement').length).toBeGreaterThan(0);
    const startedMs = rig.clock.nowMs();
    expect((await rig.once()).summary).toMatchObject({ outcome: 'complete', gaps: [] });
    const { missingAt, expected } = await rig.verdict(startedMs, { fromNs: msToNs(NOW_MS - 4 * DAY_MS + HOUR_MS) });
    expect(missingAt.filter(({ at }) => !isGone(at))).toEqual([]);
    expect(expected).toBeGreaterThan(1000);
  });

  test('a reading that is missing from answers with other readings puts nothing in doubt any more', async () => {
    const [first, later] = [spokenFrom(NOW_MS - 12 * HOUR_MS, 60), spokenFrom(NOW_MS + 3 * HOUR_MS, 60)];
    const spoken = { deviceId: 'often', readings: [...first, ...later] };
    using rig = await openRig(bench, { world: worldOf([spoken]), historyMs: 12 * DAY_MS });
    rig.simulator.settings.plan.historyMaxDays = 3;
    rig.simulator.settings.bounds.age = 'unlimited';
    const aDay = { ...rig.settings, history: { kind: 'age', ageMs: DAY_MS } } as const;
    await rig.once({ settings: aDay });
    await rig.clock.sleep(HOUR_MS);
    rig.simulator.faults = often(always(falselyEmpty));
    expect((await rig.once({ settings: aDay })).summary.exit_code).toBe(3);
    rig.simulator.faults = null;
    const lastNs = first.at(-1)?.recordedAtNs;
    rig.hides = (_, { recordedAtNs }) => recordedAtNs === lastNs;
    await rig.clock.sleep(6 * HOUR_MS);
    expect(eventsOf(await rig.once({ settings: aDay }), 'restatement')).toHaveLength(1);
    const { summary, events } = await rig.once();
    expect(eventsOf({ events }, 'page-rejected')).toEqual([]);
    expect(new Set(summary.gaps.map(({ reason }) => reason))).toEqual(new Set(['beyond_plan']));
  });
});

/** The answers of these numbers are empty. */
function firstOnes(numbers: readonly number[]): FaultPlan {
  let answers = 0;
  return () => {
    answers += 1;
    return numbers.includes(answers) ? falselyEmpty : null;
  };
}

/** A reading every ten minutes. */
function spokenFrom(fromMs: number, readings: number) {
  return Array.from({ length: readings }, (_, index) => ({
    recordedAtNs: msToNs(fromMs + index * 10 * MINUTE_MS),
    values: [['level', String(index)] as const],
  }));
}

/** Every answer of one device is empty for a while, and then none any more. */
async function liveEmptyFor(rig: Rig, forMs: number, { thenMs }: { thenMs: number }): Promise<DaemonLife> {
  return await liveAsDaemon(rig, {
    forMs: forMs + thenMs,
    schedules: LESS_ASKED,
    meanwhile: async () => {
      rig.simulator.faults = often(always(falselyEmpty));
      await rig.clock.sleep(forMs);
      rig.simulator.faults = null;
    },
  });
}

/** No gap is left, nothing is in quarantine, and the database holds what there was. */
async function expectHealed(
  rig: Rig,
  { lastReport, error }: DaemonLife,
  fromMs = NOW_MS - DAY_MS + 4 * HOUR_MS,
): Promise<void> {
  expect(error).toBeNull();
  // Younger readings may be on their way.
  const endMs = rig.clock.nowMs() - 5 * MINUTE_MS;
  expect(lastReport.devices.flatMap(({ gaps }) => gaps).filter(({ from }) => Date.parse(from) < endMs)).toEqual([]);
  expect(lastReport.destinations).toMatchObject([{ quarantined: 0 }]);
  const { missing, invented, expected } = await rig.verdict(endMs, { fromNs: msToNs(fromMs) });
  expect([missing.slice(0, 5), invented.slice(0, 5)]).toEqual([[], []]);
  expect(expected).toBeGreaterThan(1000);
}
