/**
 * Quiet faults, whole program: false answers with 200, wrong clocks, other clients that spend the quota. In the end
 * nothing is missing or duplicated, and the log names the fault, and nothing else.
 */
import { describe, expect, test } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, msToNs, SECOND_MS } from '../../src/core/time.ts';
import { rereadDay } from '../../src/ingest/reread.ts';
import { sensorsOf } from '../../src/sim/devices.ts';
import type { SettingsOverrides, SimSettings } from '../../src/sim/settings.ts';
import type { World } from '../../src/sim/world.ts';
import { MUTANTS } from '../safety/mutants.ts';
import { breed } from '../safety/variants.ts';
import { liveAsDaemon } from '../support/daemon-rig.ts';
import { falselyEmpty, lagging, onPath, outsideWindow, twoExchanged, upsideDown } from '../support/faults.ts';
import type { Fault, FaultPlan } from '../support/faulty-simulator.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { liveFor } from '../support/live.ts';
import { NOW_MS, openBench, openRig, type Program, type Rig } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { createWorld, type DeviceSpec } from '../support/trait-world.ts';

const bench = sharedBench(openBench);

const OFTEN: DeviceSpec = { deviceId: 'often', intervalMs: 30 * SECOND_MS, jitter: 0.5, sensors: sensorsOf(1) };
const TIED: DeviceSpec = { deviceId: 'tied', intervalMs: MINUTE_MS, traits: ['ties'], sensors: sensorsOf(2) };

interface Story {
  readonly devices?: readonly DeviceSpec[];
  readonly historyMs?: number;
  readonly settings?: SettingsOverrides;
  readonly share?: number;
  readonly program?: Program;
}

const HISTORY_MS = 4 * HOUR_MS;

const worldOf = (devices: readonly DeviceSpec[]): World =>
  createWorld({ seed: 11, originMs: NOW_MS, historyMs: DAY_MS, devices, alerts: [] });

/** The one that most stories share: it is the same for ever, so what a verdict makes of it is made once. */
const WORLD = worldOf([OFTEN, TIED]);

async function rigOf({ devices, ...rest }: Story = {}): Promise<Rig> {
  return await openRig(bench, {
    world: () => (devices === undefined ? WORLD : worldOf(devices)),
    historyMs: HISTORY_MS,
    ...rest,
  });
}

const eventsOf = (events: readonly AppEvent[], ...types: AppEvent['type'][]): AppEvent[] =>
  events.filter(({ type }) => types.includes(type));

const PROBLEM: readonly AppEvent['type'][] = [
  'page-rejected',
  'restatement',
  'gap-recorded',
  'readings-late',
  'coverage-withdrawn',
  'records-rejected',
];

/** One more run without any fault; everything up to the coverage limit has to be there, and no gap is left. */
async function finish(
  rig: Rig,
  { invented = () => false, wantedMs = HISTORY_MS }: { invented?: (point: string) => boolean; wantedMs?: number } = {},
): Promise<void> {
  rig.simulator.faults = null;
  rig.hides = null;
  await rig.clock.sleep(30 * MINUTE_MS);
  const startedMs = rig.clock.nowMs();
  const { summary } = await rig.once();
  expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0, gaps: [] });
  expect(summary.destinations[0]).toMatchObject({ pending_points: 0, quarantined: 0 });
  const verdict = await rig.verdict(startedMs, { fromNs: msToNs(NOW_MS - wantedMs + 5 * MINUTE_MS) });
  expect([verdict.missing, verdict.invented.filter((point) => !invented(point))]).toEqual([[], []]);
  expect(verdict.expected).toBeGreaterThan(500);
}

/** Every nth telemetry request of a device. */
function everyNth(nth: number, fault: Fault, deviceId = 'often'): FaultPlan {
  let calls = 0;
  return onPath(new RegExp(`/devices/${deviceId}/telemetry`), () => {
    calls += 1;
    return calls % nth === 0 ? fault : null;
  });
}

describe.runIf(influxdAvailable())('pages that are not true', () => {
  const stray = outsideWindow(msToNs(NOW_MS - 10 * DAY_MS));
  const LIES: readonly [string, Fault, RegExp][] = [
    ['empty', falselyEmpty, /does not contain the overlap reading/],
    ['out of order', upsideDown, /not newest first/],
    ['two readings exchanged', twoExchanged, /not newest first/],
    ['readings outside the window', stray, /not newest first|outside the requested range/],
  ];

  test.each(LIES)('now and then: %s', async (_, fault, reason) => {
    using rig = await rigOf();
    await rig.once();
    rig.simulator.faults = everyNth(3, fault);
    const events = await liveFor(rig, 40);
    const distrusted = eventsOf(events, 'page-rejected');
    expect(distrusted.length).toBeGreaterThan(5);
    for (const event of distrusted)
      expect(event).toMatchObject({ deviceId: 'often', reason: expect.stringMatching(reason) });
    expect(eventsOf(events, 'gap-recorded', 'restatement', 'readings-late', 'coverage-withdrawn')).toEqual([]);
    await finish(rig, { invented: (point) => point.includes('stray') });
  });

  test('for ten minutes: the gap gets a reason, and is closed when the answers are right again', async () => {
    using rig = await rigOf();
    await rig.once();
    rig.simulator.faults = everyNth(1, upsideDown);
    const events = await liveFor(rig, 10);
    expect(eventsOf(events, 'gap-recorded')).not.toEqual([]);
    for (const event of eventsOf(events, 'gap-recorded')) {
      expect(event).toMatchObject({ deviceId: 'often', reason: 'page_rejected' });
    }
    rig.simulator.faults = null;
    expect(eventsOf(await liveFor(rig, 10), ...PROBLEM)).toEqual([]);
    await finish(rig);
  });

  test('a replica that lags behind covers nothing that it does not have', async () => {
    using rig = await rigOf();
    await rig.once();
    rig.simulator.faults = everyNth(2, lagging(3));
    await liveFor(rig, 40);
    await finish(rig);
  });
});

describe.runIf(influxdAvailable())('cursors', () => {
  const dense: DeviceSpec = { deviceId: 'often', intervalMs: 8 * SECOND_MS, traits: ['ties'], sensors: sensorsOf(2) };
  const CURSORS: readonly [string, Partial<SimSettings['paging']>][] = [
    ['that leave out readings of the instant at a page’s end', { cursorDuplicates: 'skips' }],
    ['that repeat readings of the instant at a page’s end', { cursorDuplicates: 'repeats' }],
    ['that are refused as soon as they are a second old', { cursorLifeMs: 1 }],
  ];

  test.each(CURSORS)('%s lose nothing: page scans continue by time', async (_, paging) => {
    using rig = await rigOf({ devices: [dense], settings: { paging } });
    const { events } = await rig.once();
    expect(eventsOf(events, ...PROBLEM)).toEqual([]);
    await finish(rig);
  });

  test('that leave some out where one instant fills pages: the rest comes when the day is read again rightly', async () => {
    const burst: DeviceSpec = {
      deviceId: 'often',
      intervalMs: 5 * MINUTE_MS,
      traits: ['burst'],
      burst: { every: 12, size: 230 },
    };
    using rig = await rigOf({ devices: [burst, TIED], settings: { paging: { cursorDuplicates: 'skips' } } });
    const seen = { fromNs: msToNs(NOW_MS - HISTORY_MS + 5 * MINUTE_MS), toNs: msToNs(NOW_MS - 5 * MINUTE_MS) };
    await rig.once();
    const { missingAt, invented } = await rig.verdict(NOW_MS, seen);
    // Only instants that fill a page are missing, and no answer shows it.
    expect([invented, missingAt.length > 0]).toEqual([[], true]);
    for (const { at } of missingAt) {
      expect([...rig.simulator.world.readings('often', at, at + 1n)].length).toBeGreaterThan(200);
    }
    rig.simulator.settings.paging.cursorDuplicates = 'exact';
    const day = Math.floor(NOW_MS / DAY_MS);
    await rig.clock.sleep((day + 1) * DAY_MS + HOUR_MS - rig.clock.nowMs());
    const sync = rig.open();
    expect(await rereadDay(sync.context, { deviceId: 'often', day }, new AbortController().signal)).toBe(true);
    sync.close();
    await rig.once();
    expect((await rig.verdict(NOW_MS, seen)).missing).toEqual([]);
  });

  const crowdOf = (size: number, valueAt: (index: number) => string): DeviceSpec => ({
    deviceId: 'crowd',
    readings: Array.from({ length: size }, (_, index) => ({
      recordedAtNs: msToNs(NOW_MS - HOUR_MS),
      values: [['level', valueAt(index)] as const],
    })),
  });

  test('that were followed without an end would still end a one-off after ten minutes', async () => {
    const broken = MUTANTS.find(({ name }) => name === 'chains of cursors without an end followed');
    if (broken === undefined) throw new Error('there is no such variant');
    const latencyMs = { min: 4 * SECOND_MS, max: 4 * SECOND_MS };
    using rig = await rigOf({
      devices: [crowdOf(250, String)],
      settings: { paging: { cursorDuplicates: 'loops' }, time: { latencyMs } },
      program: await breed(broken),
    });
    const stop = new AbortController();
    rig.simulator.faults = (number) => {
      if (number > 400) stop.abort();
      return null;
    };
    expect((await rig.once({}, stop.signal)).summary.outcome).toBe('stalled');
  });

  test('that lead over pages of readings that are alike are followed to the end', async () => {
    using rig = await rigOf({ devices: [crowdOf(300, () => '5')], settings: { plan: { maxDevicesPerPage: 20 } } });
    expect((await rig.once()).summary).toMatchObject({ outcome: 'complete', exit_code: 0, gaps: [] });
  });

  test('that lead over many pages of one instant leave the other devices their turns', async () => {
    const plan = { maxDevicesPerPage: 10, requestsPerMinute: 60, requestsPerDay: 50_000 };
    using rig = await rigOf({ devices: [crowdOf(1200, String), TIED], settings: { plan } });
    await liveAsDaemon(rig, { forMs: 5 * MINUTE_MS });
    const atMs = rig.simulator.log.requests.flatMap((sent) => (sent.path.includes('tied') ? [sent.atMs] : []));
    const longestMs = Math.max(...atMs.map((ms, index) => ms - (atMs[index - 1] ?? NOW_MS)));
    expect(longestMs).toBeLessThan(1.5 * MINUTE_MS);
  });

  test('that change how they misbehave during a run lose nothing', async () => {
    using rig = await rigOf({ devices: [dense] });
    const { paging } = rig.simulator.settings;
    const kinds = ['exact', 'skips', 'repeats'] as const;
    let calls = 0;
    rig.simulator.faults = () => {
      calls += 1;
      paging.cursorDuplicates = kinds[calls % 3] ?? 'exact';
      paging.cursorLifeMs = calls % 4 === 0 ? 1 : null;
      return null;
    };
    await rig.once();
    await liveFor(rig, 30);
    await finish(rig);
  });
});

describe.runIf(influxdAvailable())('a server’s clock', () => {
  const jump = (rig: Rig, ms: number): void => {
    rig.simulator.settings.time.jumpMs = ms;
  };

  test('that jumps an hour ahead, and back an hour later, is not followed', async () => {
    using rig = await rigOf();
    await rig.once();
    const events = await liveFor(rig, 90, {
      each: (minute) => jump(rig, minute >= 10 && minute < 70 ? HOUR_MS : 0),
      use: ({ sync }) => {
        const nowNs = msToNs(rig.clock.nowMs());
        for (const { record } of sync.context.store.devices()) {
          expect(sync.context.store.telemetry(record.deviceId).covered.at(-1)?.to).toBeLessThan(nowNs);
        }
      },
    });
    expect(eventsOf(events, ...PROBLEM)).toEqual([]);
    await finish(rig);
  });

  test('that is stamped late by slow answers is not trusted then', async () => {
    using rig = await rigOf();
    await rig.once();
    rig.simulator.faults = everyNth(2, { kind: 'slow', delayMs: 25 * SECOND_MS, part: 'headers' });
    expect(eventsOf(await liveFor(rig, 40), ...PROBLEM)).toEqual([]);
    await finish(rig);
  });

  test('that was an hour ahead from the start and falls back: the range beyond it is read again', async () => {
    using rig = await rigOf();
    // By some seconds more: a device whose reading came just within the hour would be waited for that long from then
    // on.
    jump(rig, HOUR_MS + 5 * SECOND_MS);
    await rig.once();
    let mended = 0;
    const events = await liveFor(rig, 100, {
      each: (minute, { events: soFar, sync }) => {
        const newest = ['often', 'tied'].map((id) => sync.context.store.telemetry(id).covered.at(-1)?.to ?? 0n);
        if (minute === 30) {
          for (const to of newest) expect(to).toBeGreaterThan(msToNs(rig.clock.nowMs() + 50 * MINUTE_MS));
          jump(rig, 0);
        }
        if (minute !== 45) return;
        mended = soFar.length;
        // Fresh again long before the hour is over.
        expect(eventsOf(soFar, 'coverage-withdrawn').length).toBe(2);
        for (const to of newest) {
          expect(to).toBeLessThan(msToNs(rig.clock.nowMs() - MINUTE_MS));
          expect(to).toBeGreaterThan(msToNs(rig.clock.nowMs() - 8 * MINUTE_MS));
        }
      },
    });
    // By the clock that was ahead every reading came an hour late; by the true one none does.
    expect(eventsOf(events.slice(mended), ...PROBLEM)).toEqual([]);
    expect(eventsOf(events, 'gap-recorded', 'restatement', 'page-rejected')).toEqual([]);
    // The wanted range was counted from the hour ahead.
    await finish(rig, { wantedMs: HISTORY_MS - HOUR_MS });
  });

  test('that falls back between two processes is noticed by the second', async () => {
    using rig = await rigOf();
    jump(rig, HOUR_MS);
    await rig.once();
    jump(rig, 0);
    await rig.clock.sleep(10 * MINUTE_MS);
    const { events } = await rig.once();
    expect(eventsOf(events, 'coverage-withdrawn').map((event) => 'deviceId' in event && event.deviceId)).toEqual(
      expect.arrayContaining(['often', 'tied']),
    );
    await rig.clock.sleep(20 * MINUTE_MS);
    expect(eventsOf((await rig.once()).events, ...PROBLEM)).toEqual([]);
    // The wanted range was counted from the hour ahead.
    await finish(rig, { wantedMs: HISTORY_MS - HOUR_MS });
  });

  test('that was an hour behind and is put right is followed after ten minutes', async () => {
    using rig = await rigOf();
    jump(rig, -HOUR_MS);
    await rig.once();
    const behind: number[] = [];
    const events = await liveFor(rig, 40, {
      each: (minute, { sync }) => {
        if (minute === 10) jump(rig, 0);
        behind.push(rig.clock.nowMs() - (sync.context.serverClock.highestPassedMs() ?? 0));
      },
    });
    expect(behind[18]).toBeGreaterThan(59 * MINUTE_MS);
    expect(behind[25]).toBeLessThan(5 * SECOND_MS);
    expect(eventsOf(events, ...PROBLEM)).toEqual([]);
    await finish(rig);
  });

  test('that moves the readings with it for an hour, and back, loses none of them', async () => {
    using rig = await rigOf();
    await rig.once();
    const { time } = rig.simulator.settings;
    await liveFor(rig, 110, {
      each: (minute) => {
        time.offsetMs = minute >= 20 && minute < 80 ? HOUR_MS : 0;
      },
    });
    await finish(rig);
  });
});

describe.runIf(influxdAvailable())('plans and others', () => {
  test.each(['empty', 'rejected'] as const)(
    'old windows that are %s do not spoil live requests that reach back',
    async (age) => {
      using rig = await rigOf({ settings: { bounds: { age }, plan: { historyMaxDays: 1 } } });
      await rig.once();
      const before = rig.simulator.log.total;
      expect(eventsOf(await liveFor(rig, 40), ...PROBLEM)).toEqual([]);
      const refused = rig.simulator.log.requests.filter(({ number, status }) => number > before && status !== 200);
      expect(refused).toEqual([]);
      await finish(rig);
    },
  );

  test.each([
    ['steadily', { perMinute: 60, everyMs: SECOND_MS }],
    ['in bursts', { perMinute: 60, everyMs: 5 * MINUTE_MS }],
  ] as const)('others that spend %s are yielded to, and nothing is lost', async (_, foreign) => {
    for (const window of ['fixed', 'bucket'] as const) {
      using rig = await rigOf({
        settings: { quota: { window, foreign: { ...foreign } }, plan: { requestsPerMinute: 80 } },
      });
      await rig.once();
      const events = await liveFor(rig, 30);
      expect(eventsOf(events, ...PROBLEM)).toEqual([]);
      rig.simulator.settings.quota.foreign.perMinute = 0;
      await finish(rig);
    }
  });

  test('readings that vanish and come back are neither lost nor there twice', async () => {
    using rig = await rigOf();
    await rig.once();
    const events = await liveFor(rig, 40, {
      each: (minute) => {
        const hidden = minute % 20 >= 10;
        rig.hides = hidden ? (deviceId, { position }) => deviceId === 'often' && position % 3 === 0 : null;
      },
    });
    for (const event of eventsOf(events, ...PROBLEM)) expect(event).toMatchObject({ deviceId: 'often' });
    await finish(rig);
  });
});
