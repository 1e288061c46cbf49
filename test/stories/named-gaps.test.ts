/**
 * Gaps that get a name, over real loops on a virtual clock: one that is tried again at the time in its name, and one
 * that cannot be named because the state is full.
 */
import { describe, expect, test } from 'vitest';
import { StateFullError } from '../../src/core/archive-room.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import { eventsOf, liveAsDaemon, worldOf } from '../support/daemon-rig.ts';
import { always, onPath } from '../support/faults.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { NOW_MS, openBench, openRig } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';

const bench = sharedBench(openBench);

describe.runIf(influxdAvailable())('a state that is full', () => {
  test('does not end the daemon where a gap cannot be named for it', async () => {
    const devices = ['broken', 'a', 'b'].map((deviceId) => ({ deviceId, intervalMs: MINUTE_MS }));
    using rig = await openRig(bench, { world: worldOf(devices, DAY_MS), historyMs: DAY_MS / 4 });
    rig.simulator.faults = onPath(/broken.telemetry/, always({ kind: 'server-error' }));
    let refused = 0;
    const life = await liveAsDaemon(rig, {
      forMs: HOUR_MS,
      beside: ({ context }) => {
        const { nameGap } = context.store;
        const full: typeof nameGap = (gap) => {
          refused += 1;
          if (refused > 1) return nameGap(gap);
          throw new StateFullError('the state is full', null, 1);
        };
        Object.assign(context.store, { nameGap: full });
        return [];
      },
    });
    expect(refused).toBeGreaterThan(0);
    expect(life.error).toBeNull();
    expect(life.lastReport.devices.find((device) => device.device_id === 'a')?.lag_seconds).toBeLessThan(5 * 60);
  });
});

describe.runIf(influxdAvailable())('a gap that has a name', () => {
  test('because its age was refused is requested again a day later', async () => {
    const world = worldOf([{ deviceId: 'a', intervalMs: 10 * MINUTE_MS }], 10 * DAY_MS);
    const settings = { plan: { historyMaxDays: 3 }, bounds: { age: 'rejected' } } as const;
    using rig = await openRig(bench, { world, historyMs: 9 * DAY_MS, settings });
    const { summary: refused } = await rig.once();
    expect(refused.gaps.map(({ reason }) => reason)).toEqual(['beyond_plan']);
    rig.simulator.settings.bounds.age = 'unlimited';
    await rig.clock.sleep(DAY_MS + HOUR_MS);
    expect((await rig.once()).summary).toMatchObject({ outcome: 'complete', gaps: [] });
  });

  test('is requested again when its reason is due, and not at the next idle poll of its device', async () => {
    const silences = [{ fromMs: NOW_MS + 15 * HOUR_MS, toMs: NOW_MS + 3 * DAY_MS }];
    const devices = [
      { deviceId: 'quiet', intervalMs: MINUTE_MS, silences },
      { deviceId: 'steady', intervalMs: 5 * MINUTE_MS },
    ];
    using rig = await openRig(bench, { world: worldOf(devices, DAY_MS), historyMs: DAY_MS / 2 });
    await liveAsDaemon(rig, { forMs: HOUR_MS });
    await rig.clock.sleep(14 * HOUR_MS + 5 * MINUTE_MS);
    let asked = 0;
    // The newest page comes, the next one does not.
    rig.simulator.faults = (_, { path }) => {
      if (!path.includes('/quiet/telemetry')) return null;
      asked += 1;
      return asked > 1 && asked <= 6 ? { kind: 'server-error' } : null;
    };
    const life = await liveAsDaemon(rig, { forMs: 30 * MINUTE_MS });
    expect(eventsOf(life, 'gap-recorded').map(({ reason }) => reason)).toContain('unreachable');
    expect(life.lastReport.devices.find((device) => device.device_id === 'quiet')?.covered).toHaveLength(1);
  });
});
