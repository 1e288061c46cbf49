/**
 * The daily look at a device that is gone, met with a fault of the service for that device alone.
 */
import { describe, expect, test } from 'vitest';
import { always, onPath } from '../../src/sim/faults.ts';
import { liveAsDaemon, told, worldOf } from '../support/daemon-rig.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { cron, NOW_MS, openBench, openRig } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describe.runIf(influxdAvailable())('the daily look at a device that is gone', () => {
  const bench = sharedBench(openBench);

  test('keeps no listing from being taken in where that device alone is met with a fault', async () => {
    const devices = [
      { deviceId: 'lost', intervalMs: HOUR, vanishesAtMs: NOW_MS + 2 * HOUR },
      { deviceId: 'stays', intervalMs: HOUR },
      { deviceId: 'new', intervalMs: HOUR, appearsAtMs: NOW_MS + 26 * HOUR },
    ];
    using rig = await openRig(bench, { world: worldOf(devices, DAY), historyMs: DAY / 4 });
    const hourly = cron('0 * * * *');
    const life = await liveAsDaemon(rig, {
      forMs: 29 * HOUR,
      schedules: { telemetry: cron('*/20 * * * *'), alerts: hourly, devices: hourly },
      meanwhile: async () => {
        await rig.clock.sleep(6 * HOUR);
        rig.simulator.faults = onPath(/lost.telemetry/, always({ kind: 'html' }));
      },
    });
    expect(life.error).toBeNull();
    const asked = (path: RegExp) => rig.simulator.log.requests.filter((request) => path.test(request.path));
    expect(asked(/new.telemetry/).length).toBeGreaterThan(0);
    expect(told(life, 'stream-failed')).toEqual([]);
    const looks = asked(/lost.telemetry/).filter(({ atMs }) => atMs > NOW_MS + 6 * HOUR);
    expect(looks.length).toBeGreaterThan(0);
    // A look is five tries at most, and it is made again hourly.
    expect(looks.length).toBeLessThanOrEqual(5 * 6);
  });
});
