/**
 * The state is full in the moment in which a device that does not answer is to be named.
 */
import { describe, expect, test } from 'vitest';
import { StateFullError } from '../../src/core/archive-room.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import { liveAsDaemon, worldOf } from '../support/daemon-rig.ts';
import { always, onPath } from '../support/faults.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { openBench, openRig } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';

describe.runIf(influxdAvailable())('a state that is full', () => {
  const bench = sharedBench(openBench);

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
          throw new StateFullError('the state is full', 1);
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
