/**
 * Empty answers that were accepted, and silences that end: which ranges are requested again, when, and with how many
 * requests.
 */
import { describe, expect, test } from 'vitest';
import { CONFIRMED_FOR_GOOD } from '../../src/core/state/telemetry.ts';
import { DAY_MS, formatMs, HOUR_MS, MINUTE_MS, msToNs, parseTimestamp } from '../../src/core/time.ts';
import { createEmptyChecks } from '../../src/ingest/reread.ts';
import { sensorsOf } from '../../src/sim/devices.ts';
import { eventsOf, liveAsDaemon, worldOf } from '../support/daemon-rig.ts';
import { always, anyOf, falselyEmpty, onPath } from '../support/faults.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { complaints } from '../support/judge.ts';
import { NOW_MS, openBench, openRig, type Rig, type RigOptions } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';
import type { DeviceSpec } from '../support/trait-world.ts';

const CALM: DeviceSpec = { deviceId: 'calm', intervalMs: 10 * MINUTE_MS };
/** A device that is seen all the time and never has a reading. */
const HUB: DeviceSpec = { deviceId: 'hub', readings: [] };

const { signal } = new AbortController();

/** The requests of the checks of empty answers about a device so long after now. */
function checksOf(rig: Rig, deviceId: string): (ms: number) => Promise<ReturnType<typeof windowsOf>> {
  const believedMs = rig.clock.nowMs();
  return async (ms) => {
    await rig.clock.sleep(believedMs + ms - rig.clock.nowMs());
    const sync = rig.open();
    const before = rig.simulator.log.total;
    const checks = createEmptyChecks(sync.context);
    checks.refresh(false);
    while (checks.isDue()) await checks.next(signal);
    sync.close();
    return windowsOf(rig, deviceId, before);
  };
}

/** The windows that were requested of a device since the nth request, in their order. */
const windowsOf = (rig: Rig, deviceId: string, since = 0): { after: bigint | null; before: bigint | null }[] =>
  rig.simulator.log.requests
    .filter(({ number, path }) => number > since && path.endsWith(`/${deviceId}/telemetry`))
    .map(({ query }) => new URLSearchParams(query))
    .map((query) => ({
      after: parseTimestamp(query.get('after') ?? ''),
      before: parseTimestamp(query.get('before') ?? ''),
    }));

describe.runIf(influxdAvailable())('empty answers that were accepted', () => {
  const bench = sharedBench(openBench);

  /** A workspace whose hub was seen a second ago, whenever the devices are listed. */
  async function rigWithHub(changes: Partial<RigOptions> = {}): Promise<Rig> {
    const world = worldOf([CALM, HUB], 20 * DAY_MS);
    const rig = await openRig(bench, { world, historyMs: 15 * DAY_MS, ...changes });
    const seen = (record: string): string =>
      record.includes('"hub"')
        ? JSON.stringify({ ...JSON.parse(record), last_seen_at: formatMs(rig.clock.nowMs() - 1000) })
        : record;
    rig.simulator.faults = onPath(/\/devices$/, () => ({
      kind: 'mangle',
      change: (page) => ({ ...page, records: page.records.map(seen) }),
    }));
    return rig;
  }

  test('are requested after an hour and after a day, all ranges of a device in one window, and then no more', async () => {
    using rig = await rigWithHub();
    expect((await rig.once()).summary).toMatchObject({ exit_code: 0, gaps: [] });
    const ranges = windowsOf(rig, 'hub');
    expect(new Set(ranges.map(({ after }) => after)).size, 'several ranges were found empty').toBeGreaterThan(1);
    const askedAfter = checksOf(rig, 'hub');
    expect(await askedAfter(59 * MINUTE_MS)).toEqual([]);
    for (const dueMs of [HOUR_MS + MINUTE_MS, DAY_MS + 2 * MINUTE_MS]) {
      const asked = await askedAfter(dueMs);
      // One empty answer alone shows nothing, so the request is made twice.
      expect(asked).toHaveLength(2);
      for (const { after, before } of asked) {
        expect(after).toBeLessThanOrEqual(msToNs(NOW_MS - 15 * DAY_MS + MINUTE_MS));
        expect(before).toBeGreaterThanOrEqual(msToNs(NOW_MS - 3 * MINUTE_MS));
      }
      expect(await askedAfter(dueMs + 10 * HOUR_MS)).toEqual([]);
    }
    expect(await askedAfter(5 * DAY_MS)).toEqual([]);
  });

  /** A device that has reported for four days, under a plan of three, after its first run. */
  async function rigWithNewDevice(historyMs: number): Promise<Rig> {
    const silences = [{ fromMs: 0, toMs: NOW_MS - 4 * DAY_MS }];
    const world = worldOf([{ ...CALM, silences }], historyMs + DAY_MS);
    const rig = await openRig(bench, { world, historyMs });
    rig.simulator.settings.plan.historyMaxDays = 3;
    expect((await rig.once()).summary).toMatchObject({ exit_code: 0, gaps: [] });
    return rig;
  }

  test('of history below a long silence are requested after an hour at doubling distances, and all after a day', async () => {
    using rig = await rigWithNewDevice(30 * DAY_MS);
    const windows = windowsOf(rig, 'calm');
    const empty = windows.filter(({ after }, index) => after === windows[index - 1]?.after);
    expect(empty).toHaveLength(9);
    const askedAfter = checksOf(rig, 'calm');
    expect(await askedAfter(59 * MINUTE_MS)).toEqual([]);
    expect(await askedAfter(HOUR_MS + MINUTE_MS)).toEqual([0, 1, 3, 7].map((index) => empty[index]));
    expect(await askedAfter(22 * HOUR_MS)).toEqual([]);
    expect(await askedAfter(DAY_MS + 2 * MINUTE_MS)).toEqual(empty);
    expect(await askedAfter(5 * DAY_MS)).toEqual([]);
  });

  test('of history that hid readings have the windows next to them requested, and these arrive', async () => {
    using rig = await openRig(bench, {
      world: worldOf(
        [{ ...CALM, sensors: sensorsOf(2), silences: [{ fromMs: NOW_MS - 9 * DAY_MS, toMs: NOW_MS - 4 * DAY_MS }] }],
        30 * DAY_MS,
      ),
      historyMs: 28 * DAY_MS,
    });
    rig.simulator.settings.plan.historyMaxDays = 3;
    rig.simulator.faults = onPath(/telemetry/, (_, { query }) =>
      Date.parse(query.get('before') ?? '') < NOW_MS - 6 * DAY_MS ? falselyEmpty : null,
    );
    await rig.once();
    rig.simulator.faults = null;
    await rig.clock.sleep(HOUR_MS + MINUTE_MS);
    const before = rig.simulator.log.total;
    const { summary, events } = await rig.once();
    expect(summary).toMatchObject({ exit_code: 0, gaps: [] });
    expect(eventsOf({ events }, 'readings-late'), 'they are no late readings').toEqual([]);
    expect(complaints(await rig.verdict(NOW_MS, { fromNs: msToNs(NOW_MS - 27 * DAY_MS) }), 6000)).toEqual([]);
    expect(windowsOf(rig, 'calm', before).length).toBeLessThan(40);
  });

  test('next to each other, and with readings by now, are requested once or twice', async () => {
    using rig = await openRig(bench, { world: worldOf([CALM], 10 * DAY_MS), historyMs: 9 * DAY_MS });
    rig.simulator.settings.plan.historyMaxDays = 3;
    await rig.once();
    const sync = rig.open();
    for (const days of [8, 6]) {
      const range = { from: msToNs(NOW_MS - days * DAY_MS), to: msToNs(NOW_MS - (days - 2) * DAY_MS) };
      sync.context.store.saveEmptyWindow('calm', { ...range, sinceMs: NOW_MS, dueMs: NOW_MS });
    }
    const before = rig.simulator.log.total;
    const checks = createEmptyChecks(sync.context);
    checks.refresh(false);
    for (let turn = 0; turn < 20 && checks.isDue(); turn += 1) await checks.next(signal);
    sync.close();
    expect(windowsOf(rig, 'calm', before).length).toBeLessThanOrEqual(6);
    expect(checks.isDue()).toBe(false);
  });

  test('are requested at once when another device has readings, though these arrive later', async () => {
    using rig = await rigWithHub({ historyMs: 2 * HOUR_MS });
    const { faults } = rig.simulator;
    rig.simulator.faults = anyOf(faults ?? (() => null), onPath(/calm/, always({ kind: 'slow', delayMs: 9000 })));
    const { summary, events } = await rig.once();
    expect(eventsOf({ events }, 'gap-recorded')).toMatchObject([{ deviceId: 'hub', reason: 'unverified' }]);
    expect(summary).toMatchObject({ exit_code: 0, gaps: [] });
    expect(rig.clock.nowMs() - NOW_MS).toBeLessThan(MINUTE_MS);
  });

  /** The records of the empty answers about the hub. */
  const rememberedOf = (rig: Rig) => {
    const sync = rig.open();
    try {
      return sync.context.store.emptyRange('hub');
    } finally {
      sync.close();
    }
  };

  test.each(['a run', 'the check of an hour later'])(
    'are forgotten with the first reading that %s finds',
    async (by) => {
      using rig = await openRig(bench, {
        world: worldOf([CALM, { deviceId: 'hub', intervalMs: 10 * MINUTE_MS }]),
        historyMs: DAY_MS,
      });
      rig.simulator.faults = onPath(/hub\/telemetry/, always(falselyEmpty));
      expect((await rig.once()).summary).toMatchObject({ exit_code: 0, gaps: [] });
      expect(rememberedOf(rig)).toMatchObject({ confirmed: 1 });
      rig.simulator.faults = null;
      await rig.clock.sleep(by === 'a run' ? HOUR_MS / 2 : 2 * HOUR_MS);
      if (by === 'a run') await rig.once();
      else {
        const sync = rig.open();
        const checks = createEmptyChecks(sync.context);
        checks.refresh(false);
        while (checks.isDue()) await checks.next(signal);
        sync.close();
      }
      expect(rememberedOf(rig)).toBeNull();
    },
  );

  test('three times leave the device to the idle poll, however often it is seen', async () => {
    const pollsWith = async (confirmed: number): Promise<number> => {
      using rig = await rigWithHub();
      await rig.once();
      const sync = rig.open();
      const { store } = sync.context;
      const known = store.emptyRange('hub');
      if (known === null) throw new Error('no empty range is known');
      store.saveEmptyRange('hub', { ...known, confirmed, dueMs: null });
      sync.close();
      await rig.clock.sleep(10 * MINUTE_MS);
      const before = rig.simulator.log.total;
      await liveAsDaemon(rig, { forMs: 2 * HOUR_MS });
      // Yesterday is read again of every device; that has an end.
      return windowsOf(rig, 'hub', before).filter((window) => window.before === null).length;
    };
    expect(await pollsWith(CONFIRMED_FOR_GOOD - 1)).toBeGreaterThan(0);
    expect(await pollsWith(CONFIRMED_FOR_GOOD)).toBe(0);
  });
});

describe.runIf(influxdAvailable())('a silence that ends', () => {
  const bench = sharedBench(openBench);

  /** How many requests about a device a run needs after a silence of 22.5 hours, and how many the run after it. */
  async function requestsAfter(historyMaxDays: number): Promise<number[]> {
    const silentMs = 22.5 * HOUR_MS;
    const silences = [{ fromMs: NOW_MS - MINUTE_MS, toMs: NOW_MS + silentMs }];
    const device: DeviceSpec = { deviceId: 'back', intervalMs: 10 * MINUTE_MS, silences };
    using rig = await openRig(bench, { world: worldOf([device, CALM], 3 * DAY_MS), historyMs: 20 * HOUR_MS });
    rig.simulator.settings.plan.historyMaxDays = historyMaxDays;
    await rig.once();
    await rig.clock.sleep(silentMs - HOUR_MS / 2);
    await rig.once();
    const found: number[] = [];
    for (const _ of ['first', 'second']) {
      await rig.clock.sleep(HOUR_MS);
      const before = rig.simulator.log.total;
      expect((await rig.once()).summary).toMatchObject({ exit_code: 0, gaps: [] });
      found.push(windowsOf(rig, 'back', before).length);
    }
    return found;
  }

  test('is checked once, with one request, where the window of the page does not reach over it', async () => {
    expect(await requestsAfter(1)).toEqual([2, 1]);
  });

  test('is not checked where the page has reached over it', async () => {
    expect(await requestsAfter(30)).toEqual([1, 1]);
  });
});
