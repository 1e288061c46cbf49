/**
 * The list of devices after hours of downtime: read on its schedule as before, where there is allowance to spare.
 */
import { describe, expect, test } from 'vitest';
import { liveAsDaemon, worldOf } from '../support/daemon-rig.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { NOW_MS, openBench, openRig } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describe.runIf(influxdAvailable())('the list of devices after hours of downtime', () => {
  const bench = sharedBench(openBench);

  test('is read on its schedule, so that a new device is noticed within minutes', async () => {
    const appearsAtMs = NOW_MS + 15 * HOUR + 20 * MINUTE;
    const devices = [
      // Far behind when it is asked again, page after page; then it has nothing to say.
      { deviceId: 'old', intervalMs: MINUTE, silences: [{ fromMs: NOW_MS + 15 * HOUR, toMs: NOW_MS + DAY }] },
      { deviceId: 'steady', intervalMs: 5 * MINUTE },
      { deviceId: 'new', intervalMs: 5 * MINUTE, appearsAtMs },
    ];
    using rig = await openRig(bench, { world: worldOf(devices, DAY), historyMs: DAY / 2 });
    await liveAsDaemon(rig, { forMs: HOUR });
    await rig.clock.sleep(14 * HOUR);
    const upMs = rig.clock.nowMs();
    const life = await liveAsDaemon(rig, { forMs: 2 * HOUR });
    expect(life.error).toBeNull();
    const listedMs = rig.simulator.log.requests
      .filter(({ path, atMs }) => atMs >= upMs && path.endsWith('/devices'))
      .map(({ atMs }) => atMs);
    const restsMs = listedMs.slice(1).map((atMs, index) => atMs - (listedMs[index] ?? 0));
    // Every five minutes by the schedule.
    expect(Math.max(...restsMs)).toBeLessThan(7 * MINUTE);
    const first = rig.simulator.log.requests.find(({ path }) => path.includes('/new/telemetry'));
    expect((first?.atMs ?? Number.POSITIVE_INFINITY) - appearsAtMs).toBeLessThan(12 * MINUTE);
  });
});
