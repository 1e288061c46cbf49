/**
 * The list of devices after hours of downtime: read on its schedule as before, where there is allowance to spare.
 */
import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import { liveAsDaemon, worldOf } from '../support/daemon-rig.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { NOW_MS, openBench, openRig } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';

describe.runIf(influxdAvailable())('the list of devices after hours of downtime', () => {
  const bench = sharedBench(openBench);

  test('is read on its schedule, so that a new device is noticed within minutes', async () => {
    const appearsAtMs = NOW_MS + 15 * HOUR_MS + 20 * MINUTE_MS;
    const devices = [
      // Far behind when it is asked again, page after page; then it has nothing to say.
      { deviceId: 'old', intervalMs: MINUTE_MS, silences: [{ fromMs: NOW_MS + 15 * HOUR_MS, toMs: NOW_MS + DAY_MS }] },
      { deviceId: 'steady', intervalMs: 5 * MINUTE_MS },
      { deviceId: 'new', intervalMs: 5 * MINUTE_MS, appearsAtMs },
    ];
    using rig = await openRig(bench, { world: worldOf(devices, DAY_MS), historyMs: DAY_MS / 2 });
    await liveAsDaemon(rig, { forMs: HOUR_MS });
    await rig.clock.sleep(14 * HOUR_MS);
    const upMs = rig.clock.nowMs();
    const life = await liveAsDaemon(rig, { forMs: 2 * HOUR_MS });
    expect(life.error).toBeNull();
    const listedMs = rig.simulator.log.requests
      .filter(({ path, atMs }) => atMs >= upMs && path.endsWith('/devices'))
      .map(({ atMs }) => atMs);
    const restsMs = listedMs.slice(1).map((atMs, index) => atMs - (listedMs[index] ?? 0));
    // Every five minutes by the schedule.
    expect(Math.max(...restsMs)).toBeLessThan(7 * MINUTE_MS);
    const first = rig.simulator.log.requests.find(({ path }) => path.includes('/new/telemetry'));
    expect((first?.atMs ?? Number.POSITIVE_INFINITY) - appearsAtMs).toBeLessThan(12 * MINUTE_MS);
  });
});
