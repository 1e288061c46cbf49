/**
 * Readings that come late, whole program: delivered, counted, and the reason for a longer grace period from then on.
 */

import { describe, expect, test } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, minNs, msToNs, SECOND_MS } from '../../src/core/time.ts';
import { limitFor } from '../../src/ingest/coverage-rules.ts';
import { openPageScanner } from '../../src/ingest/page-scan.ts';
import { rereadableDay, rereadDay, rereadDue } from '../../src/ingest/reread.ts';
import { wantedNow } from '../../src/ingest/wanted-range.ts';
import type { SettingsOverrides } from '../../src/sim/settings.ts';
import type { SimReading } from '../../src/sim/spec.ts';
import { always, falselyEmpty, onPath, outsideWindow, upsideDown } from '../support/faults.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { liveFor } from '../support/live.ts';
import { NOW_MS, openBench, openRig, type Rig } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { createWorld, type DeviceSpec } from '../support/trait-world.ts';

const bench = sharedBench(openBench);

const OFTEN: DeviceSpec = { deviceId: 'often', intervalMs: MINUTE_MS, jitter: 0.5 };
const CALM: DeviceSpec = { deviceId: 'calm', intervalMs: 7 * MINUTE_MS, jitter: 0.5 };

async function rigOf({
  devices = [OFTEN, CALM],
  historyMs = 3 * HOUR_MS,
  settings = {},
  gracePeriodMs = 2 * MINUTE_MS,
}: {
  devices?: readonly DeviceSpec[];
  historyMs?: number;
  settings?: SettingsOverrides;
  gracePeriodMs?: number;
} = {}): Promise<Rig> {
  return await openRig(bench, {
    world: (originMs) => createWorld({ seed: 9, originMs, historyMs: 4 * DAY_MS, devices, alerts: [] }),
    historyMs,
    settings,
    gracePeriodMs,
  });
}

type Late = Extract<AppEvent, { type: 'readings-late' }>;
const lateOf = (events: readonly AppEvent[]): Late[] => events.filter((event) => event.type === 'readings-late');

/** The readings of `often` with `fromMs <= time < toMs` come so late. */
function delay(rig: Rig, span: { fromMs: number; toMs: number }, byMs: number): void {
  const isDelayed = ({ recordedAtNs }: SimReading): boolean => {
    const atMs = Number(recordedAtNs / 1_000_000n);
    return span.fromMs <= atMs && atMs < span.toMs;
  };
  rig.hides = (deviceId, reading, atMs) =>
    deviceId === 'often' && isDelayed(reading) && atMs < Number(reading.recordedAtNs / 1_000_000n) + byMs;
}

const telemetryRequests = (rig: Rig): number =>
  rig.simulator.log.requests.filter(({ path }) => path.endsWith('/telemetry')).length;

/** One run that delivers all, then the judge's verdict on everything up to the coverage limit. */
async function finish(rig: Rig, fromMs = NOW_MS - 3 * HOUR_MS + MINUTE_MS): Promise<void> {
  const startedMs = rig.clock.nowMs();
  const { summary } = await rig.once();
  expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0, gaps: [] });
  expect(summary.destinations[0]).toMatchObject({ pending_points: 0, quarantined: 0 });
  const { missing, invented, expected } = await rig.verdict(startedMs, { fromNs: BigInt(fromMs) * 1_000_000n });
  expect([missing, invented]).toEqual([[], []]);
  expect(expected).toBeGreaterThan(200);
}

describe.runIf(influxdAvailable())('readings that arrive after the grace period', () => {
  test('are delivered, counted and reported, and extend the grace period of their device', async () => {
    using rig = await rigOf();
    await rig.once();
    const fromMs = NOW_MS + 20 * MINUTE_MS;
    delay(rig, { fromMs, toMs: fromMs + 10 * MINUTE_MS }, 11 * MINUTE_MS);
    const before = telemetryRequests(rig);
    const events = await liveFor(rig, 60, {
      use: ({ sync }) => {
        const { store } = sync.context;
        const wantedRange = wantedNow(sync.context);
        if (wantedRange === null) throw new Error('no horizon');
        const { late, covered } = store.telemetry('often');
        // The first of them has extended the grace period for the others.
        expect(late).toMatchObject({ readings: 1, gracePeriodMs: 12 * MINUTE_MS });
        expect(limitFor(wantedRange, { late })).toBe(wantedRange.limit - 600_000_000_000n);
        expect(covered).toHaveLength(1);
        expect(covered[0]?.to).toBeLessThanOrEqual(limitFor(wantedRange, { late }));
        expect(store.telemetry('calm').late.readings).toBe(0);
        const { devices, totals } = sync.report();
        expect(devices.map(({ lag_seconds }) => (lag_seconds ?? 1e9) < 200)).toEqual([true, true]);
        expect(totals.devices_complete).toBe(2);
      },
    });
    expect(lateOf(events)).toMatchObject([{ deviceId: 'often', count: 1, gracePeriodMs: 12 * MINUTE_MS }]);
    // In the list the device was seen before its readings are served: such a page is requested again, twice, and
    // what lies above its newest reading is unverified until the other device has readings that are as new.
    const gaps = events.flatMap((event) => (event.type === 'gap-recorded' ? [event.reason] : []));
    expect(new Set(gaps)).toEqual(new Set(['unverified']));
    expect(gaps.length).toBeLessThanOrEqual(2);
    const rejected = events.flatMap((event) => (event.type === 'page-rejected' ? [event.reason] : []));
    expect(new Set(rejected).size).toBeLessThanOrEqual(1);
    expect(rejected.length).toBeLessThanOrEqual(2);
    // A look a minute at each of two devices: late readings cost nothing else.
    expect(telemetryRequests(rig) - before).toBeLessThanOrEqual(2 * 60 + rejected.length + gaps.length);
    await finish(rig);
    const { sync } = { sync: rig.open() };
    expect(sync.context.store.telemetry('often').late).toMatchObject({ readings: 1, gracePeriodMs: 12 * MINUTE_MS });
    sync.close();
  });

  test('are none with a longer sync.grace_period', async () => {
    using rig = await rigOf({ gracePeriodMs: 12 * MINUTE_MS });
    await rig.once();
    const fromMs = NOW_MS + 20 * MINUTE_MS;
    delay(rig, { fromMs, toMs: fromMs + 10 * MINUTE_MS }, 11 * MINUTE_MS);
    expect(lateOf(await liveFor(rig, 60))).toEqual([]);
    await finish(rig);
  });

  test('much later come by the room that live pages have, and change nothing but the count', async () => {
    using rig = await rigOf();
    await rig.once();
    const fromMs = NOW_MS + 5 * MINUTE_MS;
    delay(rig, { fromMs, toMs: fromMs + 5 * MINUTE_MS }, 2 * HOUR_MS);
    const events = await liveFor(rig, 150, {
      use: ({ sync }) => {
        const { late } = sync.context.store.telemetry('often');
        expect(late.gracePeriodMs).toBe(0);
        expect(late.readings).toBeGreaterThanOrEqual(4);
        expect(late.worstMs).toBeGreaterThanOrEqual(2 * HOUR_MS);
      },
    });
    const reported = lateOf(events);
    expect(reported.length).toBeGreaterThan(0);
    for (const { gracePeriodMs, worstMs } of reported)
      expect([gracePeriodMs, worstMs >= 2 * HOUR_MS]).toEqual([2 * MINUTE_MS, true]);
    await finish(rig);
  });

  test.each([
    [15 * MINUTE_MS, 4],
    [HOUR_MS, 1],
  ])(
    'are looked for ten minutes back by every poll, and by a full page every `sync.full_poll` (%i ms)',
    async (fullPollMs, full) => {
      using rig = await rigOf({ devices: [OFTEN] });
      await rig.once();
      const fromMs = NOW_MS + 10 * MINUTE_MS;
      const settings = { ...rig.settings, polls: { ...rig.settings.polls, fullPollMs } };
      await liveFor(rig, 70, { settings });
      const polls = rig.simulator.log.requests.filter(({ path, atMs }) => path.endsWith('/telemetry') && atMs > fromMs);
      const lookbacksMs = polls.map(
        ({ atMs, query }) => atMs - Date.parse(new URLSearchParams(query).get('after') ?? ''),
      );
      // The newest stored reading is two intervals and the grace period old at most.
      const short = lookbacksMs.filter((backMs) => backMs < 16 * MINUTE_MS);
      expect(Math.min(...lookbacksMs)).toBeGreaterThanOrEqual(10 * MINUTE_MS);
      expect([lookbacksMs.length - short.length, short.length > 40]).toEqual([full, true]);
      await finish(rig);
    },
  );

  test('arrive in every process: those that a restart finds count as well', async () => {
    using rig = await rigOf();
    await rig.once();
    delay(rig, { fromMs: NOW_MS + 2 * MINUTE_MS, toMs: NOW_MS + 6 * MINUTE_MS }, 12 * MINUTE_MS);
    await rig.clock.sleep(10 * MINUTE_MS);
    expect(lateOf((await rig.once()).events)).toEqual([]);
    await rig.clock.sleep(20 * MINUTE_MS);
    const { events } = await rig.once();
    const [reported] = lateOf(events);
    expect(reported).toMatchObject({ deviceId: 'often' });
    expect(reported?.gracePeriodMs).toBeGreaterThanOrEqual(12 * MINUTE_MS);
    await finish(rig);
  });

  test('are no reason to distrust anything where the service just loses them again', async () => {
    using rig = await rigOf();
    await rig.once();
    rig.hides = (deviceId, reading) => deviceId === 'often' && reading.position % 5 === 0;
    const events = await liveFor(rig, 30);
    expect(lateOf(events)).toEqual([]);
    rig.hides = null;
    const found = await liveFor(rig, 10);
    expect(lateOf(found).length).toBeGreaterThan(0);
    await finish(rig);
  });
});

/** When the day after the tests' day has lasted so long. */
const NEXT_DAY_MS = Math.ceil(NOW_MS / DAY_MS) * DAY_MS;
const TODAY = Math.floor(NOW_MS / DAY_MS);

describe.runIf(influxdAvailable())('yesterday, read again', () => {
  const { signal } = new AbortController();

  test('is due once a day from one in the morning on, of devices that are there and hold some of it', async () => {
    const gone: DeviceSpec = { ...CALM, deviceId: 'gone', vanishesAtMs: NOW_MS + HOUR_MS };
    using rig = await rigOf({ devices: [OFTEN, CALM, gone], historyMs: 20 * HOUR_MS });
    await rig.once();
    await rig.clock.sleep(2 * HOUR_MS);
    await rig.once();
    await rig.once();
    const sync = rig.open();
    const { store } = sync.context;
    expect(rereadableDay(NEXT_DAY_MS + 59 * MINUTE_MS)).toBeNull();
    expect(rereadDue(store, NEXT_DAY_MS + 59 * MINUTE_MS)).toEqual([]);
    expect(rereadableDay(NEXT_DAY_MS + HOUR_MS)).toBe(TODAY);
    expect(rereadDue(store, NEXT_DAY_MS + HOUR_MS)).toEqual(['calm', 'often']);
    expect(await rereadDay(sync.context, { deviceId: 'calm', day: TODAY }, signal)).toBe(true);
    expect(rereadDue(store, NEXT_DAY_MS + 23 * HOUR_MS)).toEqual(['often']);
    // Nothing of the day after is covered.
    expect(rereadDue(store, NEXT_DAY_MS + DAY_MS + HOUR_MS)).toEqual([]);
    sync.close();
  });

  test('brings readings that no live request could see, one request per page, and covers nothing', async () => {
    const dense: DeviceSpec = { deviceId: 'often', intervalMs: 20 * SECOND_MS, jitter: 0.5 };
    using rig = await rigOf({ devices: [dense, CALM], historyMs: 20 * HOUR_MS });
    delay(rig, { fromMs: NOW_MS - 2 * HOUR_MS, toMs: NOW_MS - 110 * MINUTE_MS }, 4 * HOUR_MS);
    await rig.once();
    await rig.clock.sleep(NEXT_DAY_MS - rig.clock.nowMs() + HOUR_MS);
    const sync = rig.open();
    const { store } = sync.context;
    const { covered } = store.telemetry('often');
    const before = telemetryRequests(rig);
    expect(await rereadDay(sync.context, { deviceId: 'often', day: TODAY }, signal)).toBe(true);
    const readings = [...rig.simulator.world.readings('often', covered[0]?.from ?? 0n, covered[0]?.to ?? 0n)].length;
    expect(telemetryRequests(rig) - before).toBeLessThanOrEqual(Math.ceil(readings / 190) + 1);
    const { late, covered: after } = store.telemetry('often');
    expect(late.readings).toBeGreaterThanOrEqual(25);
    expect(late.gracePeriodMs).toBe(0);
    expect(after).toEqual(covered);
    expect(store.rereadDays()).toEqual(new Map([['often', TODAY]]));
    sync.close();
    await finish(rig);
  });

  test('closes no gap inside the day: its readings are delivered, and it stays a gap', async () => {
    using rig = await rigOf({ historyMs: HOUR_MS });
    await rig.once();
    await rig.clock.sleep(4 * HOUR_MS);
    await rig.once();
    const sync = rig.open();
    const { store } = sync.context;
    const { covered } = store.telemetry('often');
    expect(covered).toHaveLength(2);
    expect(await rereadDay(sync.context, { deviceId: 'often', day: TODAY }, signal)).toBe(true);
    expect(store.telemetry('often').covered).toEqual(covered);
    expect(store.telemetry('often').late.readings).toBe(0);
    sync.close();
    await rig.once();
    const { missing } = await rig.verdict(NOW_MS, {
      fromNs: msToNs(NOW_MS - 55 * MINUTE_MS),
      toNs: msToNs(NOW_MS + 4 * HOUR_MS - 5 * MINUTE_MS),
    });
    expect(missing.filter((point) => point.startsWith('often'))).toEqual([]);
  });

  test('leaves cleared ranges alone, as live requests do', async () => {
    using rig = await rigOf({ historyMs: 10 * HOUR_MS });
    await rig.once();
    await rig.clock.sleep(10 * MINUTE_MS);
    const sync = rig.open();
    const { context } = sync;
    const { store, serverClock } = context;
    const clearedTo = msToNs(NOW_MS - HOUR_MS);
    const cleared: typeof store.cleared = (_, from, to) =>
      from < clearedTo ? [{ from, to: minNs(clearedTo, to) }] : [];
    const forgetful = { ...context, store: { ...store, cleared } };
    expect(rereadDue(store, NEXT_DAY_MS + HOUR_MS)).toEqual(['calm', 'often']);
    expect(rereadDue(forgetful.store, NEXT_DAY_MS + HOUR_MS)).toEqual([]);
    await context.api.account({ lane: 'inventory', stream: 'account' }, signal);
    const limit = msToNs((serverClock.passedMs() ?? 0) - 121 * SECOND_MS);
    const span = { from: limit - msToNs(9 * HOUR_MS), to: limit };
    for (const parts of [context, forgetful]) {
      const task = {
        deviceId: parts === context ? 'often' : 'calm',
        range: span,
        limit,
        lane: 'live',
        until: 'closed',
      } as const;
      await openPageScanner(parts).scan(task, signal);
      const query = new URLSearchParams(rig.simulator.log.requests.at(-1)?.query);
      const afterMs = Date.parse(query.get('after') ?? '');
      if (parts === context) expect(afterMs).toBeLessThan(NOW_MS - 9 * HOUR_MS);
      else expect(Math.abs(afterMs - (NOW_MS - HOUR_MS))).toBeLessThan(2 * SECOND_MS);
    }
    sync.close();
  });

  test('stays due where it was broken off, or was answered oddly, and is cheap to begin again', async () => {
    using rig = await rigOf({ historyMs: 10 * HOUR_MS });
    await rig.once();
    await rig.clock.sleep(NEXT_DAY_MS - rig.clock.nowMs() + HOUR_MS);
    const sync = rig.open();
    const { store } = sync.context;
    const due = (): readonly string[] => rereadDue(store, rig.clock.nowMs());
    const day = { deviceId: 'often', day: TODAY };
    const stopping = new AbortController();
    rig.simulator.faults = onPath(/telemetry/, () => {
      stopping.abort(new Error('stopped'));
      return null;
    });
    await expect(rereadDay(sync.context, day, stopping.signal)).rejects.toThrow('stopped');
    expect(due()).toContain('often');
    for (const fault of [falselyEmpty, upsideDown, outsideWindow(msToNs(NOW_MS + DAY_MS))]) {
      rig.simulator.faults = onPath(/telemetry/, always(fault));
      const isWhole = await rereadDay(sync.context, day, signal);
      // Two empty answers cover nothing here.
      expect([isWhole, due().includes('often')]).toEqual(fault === falselyEmpty ? [true, false] : [false, true]);
      store.saveReread('often', TODAY - 1);
    }
    rig.simulator.faults = null;
    expect(await rereadDay(sync.context, day, signal)).toBe(true);
    expect(due()).not.toContain('often');
    expect(store.telemetry('often').late.readings).toBe(0);
    sync.close();
  });
});
