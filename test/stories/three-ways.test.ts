/**
 * One story in three ways: by the daemon, by `--once` alone, and by a `--once` that a daemon does as its job. All
 * three are one engine, so what is stored is the same.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { UserError } from '../../src/core/faults.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import { eventsOf, expectExact, keyFile, liveAsDaemon, MEASURING_DEVICES, worldOf } from '../support/daemon-rig.ts';
import { type Followed, follow, summaryOf, takingJobs } from '../support/follow-job.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { openBench, openRig, type Rig } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { createWorld } from '../support/trait-world.ts';

/** The run of one way on a workspace, and the error that ends it. */
interface Way {
  /** Reads the complete history once, and checks the report of this way. */
  readonly fill: (rig: Rig) => Promise<void>;
  /** Goes on after `change`; returns the error that it ends with, and whether it noticed the device `stranger`. */
  readonly goOn: (rig: Rig, change: () => void) => Promise<{ readonly error: unknown; readonly strangers: number }>;
}

const WAYS: Readonly<Record<string, Way>> = {
  'the daemon': {
    fill: async (rig) => {
      const life = await liveAsDaemon(rig, { forMs: HOUR_MS });
      expect(life.error).toBeNull();
      expect(life.lastReady).toEqual({ ready: true, reasons: [], codes: [], names: [] });
      // It does not wait for devices of which the list reports nothing.
      for (const device of life.lastReport.devices) {
        expect(device.lag_seconds, device.device_id).toBeLessThanOrEqual(70);
      }
      expect(life.lastReport.devices.find(({ device_id }) => device_id === 'seldom')?.state).toBe('live');
      expect(eventsOf(life, 'gap-recorded')).toEqual([]);
      expect(life.lastReport.destinations[0]).toMatchObject({ quarantined: 0, blocked_reason: null });
    },
    goOn: async (rig, change) => {
      const file = keyFile('old');
      const life = await liveAsDaemon(rig, {
        forMs: HOUR_MS,
        key: file,
        meanwhile: async () => {
          await rig.clock.sleep(20 * MINUTE_MS);
          file.write('new');
          change();
        },
      });
      return { error: life.error, strangers: eventsOf(life, 'device-appeared').length };
    },
  },
  '--once alone': {
    fill: async (rig) => {
      const { summary } = await rig.once();
      expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0, gaps: [], devices: 3 });
      expect(summary.destinations[0]).toMatchObject({ pending_points: 0, quarantined: 0, blocked_reason: null });
    },
    goOn: async (rig, change) => {
      change();
      const error = await rig.once().then(
        () => null,
        (thrown: unknown) => thrown,
      );
      return { error, strangers: 0 };
    },
  },
  '--once as a job of the daemon': {
    fill: async (rig) => {
      const all: Followed[] = [];
      const life = await liveAsDaemon(rig, {
        forMs: MINUTE_MS,
        beside: takingJobs,
        meanwhile: async () => {
          await rig.clock.sleep(2 * SECOND_MS);
          all.push(await follow(rig));
        },
      });
      expect(life.error).toBeNull();
      const [{ end, progress } = { end: null, progress: [] }] = all;
      expect(end).toMatchObject({ state: 'done', exitCode: 0, message: null });
      expect(summaryOf({ end })).toMatchObject({ outcome: 'complete', gaps: [], devices: 3 });
      expect(progress.length).toBeGreaterThan(3);
      expect(Math.max(...progress.map(({ totals }) => totals.covered_share ?? 0))).toBeGreaterThan(0.9);
      expect(eventsOf(life, 'job-started')).toMatchObject([{ kind: 'once', requestedBy: '--once' }]);
      expect(eventsOf(life, 'job-ended')).toMatchObject([{ kind: 'once', state: 'done', exitCode: 0 }]);
    },
    goOn: async (rig, change) => {
      const all: Followed[] = [];
      const life = await liveAsDaemon(rig, {
        forMs: 30 * MINUTE_MS,
        beside: takingJobs,
        meanwhile: async () => {
          await rig.clock.sleep(10 * MINUTE_MS);
          change();
          all.push(await follow(rig));
        },
      });
      const message = expect.stringContaining('"ws_other"');
      expect(all[0]?.end).toMatchObject({ state: 'failed', exitCode: 1, message });
      return { error: life.error, strangers: eventsOf(life, 'device-appeared').length };
    },
  },
};

describe.runIf(influxdAvailable()).each(Object.keys(WAYS))('%s', (name) => {
  const bench = sharedBench(openBench);
  const { fill, goOn } = WAYS[name] as Way;
  let rig: Rig;
  beforeAll(async () => {
    rig = await openRig(bench, { world: worldOf(MEASURING_DEVICES), historyMs: 2 * DAY_MS });
    await fill(rig);
  });
  afterAll(() => rig[Symbol.dispose]());

  test('stores exactly the seed, and leaves no gap', async () => {
    await expectExact(rig, 8000);
  });

  test('ends before it writes anything of another workspace behind the key', async () => {
    const { error, strangers } = await goOn(rig, () => {
      rig.simulator.world = createWorld({
        seed: 99,
        originMs: rig.clock.nowMs(),
        historyMs: DAY_MS,
        workspaceId: 'ws_other',
        devices: [{ deviceId: 'stranger', intervalMs: MINUTE_MS }],
      });
    });
    expect(error).toBeInstanceOf(UserError);
    expect(error).toMatchObject({ exitCode: 1, message: expect.stringContaining('ws_other') });
    expect(strangers).toBe(0);
    const rows = await bench.influxd.query(rig.database, "SELECT * FROM telemetry WHERE device_id = 'stranger'");
    expect(rows).toEqual([]);
  });
});
