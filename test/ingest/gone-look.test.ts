/**
 * The daily look at a device that is gone, met with a fault of the service for that device alone.
 */
import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS } from '../../src/core/time.ts';
import { liveAsDaemon, told, worldOf } from '../support/daemon-rig.ts';
import { always, onPath } from '../support/faults.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { cron, NOW_MS, openBench, openRig } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';

describe.runIf(influxdAvailable())('the daily look at a device that is gone', () => {
  const bench = sharedBench(openBench);

  test('keeps no listing from being taken in where that device alone is met with a fault', async () => {
    const devices = [
      { deviceId: 'lost', intervalMs: HOUR_MS, vanishesAtMs: NOW_MS + 2 * HOUR_MS },
      { deviceId: 'stays', intervalMs: HOUR_MS },
      { deviceId: 'new', intervalMs: HOUR_MS, appearsAtMs: NOW_MS + 26 * HOUR_MS },
    ];
    using rig = await openRig(bench, { world: worldOf(devices, DAY_MS), historyMs: DAY_MS / 4 });
    const hourly = cron('0 * * * *');
    const life = await liveAsDaemon(rig, {
      forMs: 29 * HOUR_MS,
      schedules: { telemetry: cron('*/20 * * * *'), alerts: hourly, devices: hourly },
      meanwhile: async () => {
        await rig.clock.sleep(6 * HOUR_MS);
        rig.simulator.faults = onPath(/lost.telemetry/, always({ kind: 'html' }));
      },
    });
    expect(life.error).toBeNull();
    const asked = (path: RegExp) => rig.simulator.log.requests.filter((request) => path.test(request.path));
    expect(asked(/new.telemetry/).length).toBeGreaterThan(0);
    expect(told(life, 'stream-failed')).toEqual([]);
    const looks = asked(/lost.telemetry/).filter(({ atMs }) => atMs > NOW_MS + 6 * HOUR_MS);
    expect(looks.length).toBeGreaterThan(0);
    // A look is five tries at most, and it is made again hourly.
    expect(looks.length).toBeLessThanOrEqual(5 * 6);
  });
});
