/**
 * A catch-up hole that got a name, of a device that is quiet by the time at which it is worth another try.
 */
import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import { liveAsDaemon, told, worldOf } from '../support/daemon-rig.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { NOW_MS, openBench, openRig } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';

describe.runIf(influxdAvailable())('a hole that has a name', () => {
  const bench = sharedBench(openBench);

  test('is tried again when its name says so, and not at the next sweep of a device that is quiet', async () => {
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
    expect(told(life, 'gap-named').map(({ reason }) => reason)).toContain('device unreachable');
    expect(life.lastReport.devices.find((device) => device.device_id === 'quiet')?.covered).toHaveLength(1);
  });
});
