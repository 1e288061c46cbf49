/**
 * Devices that leave while they are being asked and have history open: gone by their 404, or excluded from then on.
 */
import { describe, expect, test } from 'vitest';
import { DAY_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import { liveAsDaemon, told, worldOf } from '../support/daemon-rig.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { NOW_MS, openBench, openRig, type Rig } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';

/** When it leaves: its history is being filled. */
const LEAVES_MS = NOW_MS + 10 * SECOND_MS;

function askedAfter(rig: Rig, path: RegExp, fromMs: number): number {
  return rig.simulator.log.requests.filter((request) => request.atMs > fromMs && path.test(request.path)).length;
}

describe.runIf(influxdAvailable())('a device that leaves while its history is open', () => {
  const bench = sharedBench(openBench);

  test('is asked no more once it has answered 404, and told to be gone once', async () => {
    const devices = [
      { deviceId: 'lost', intervalMs: MINUTE_MS, vanishesAtMs: LEAVES_MS },
      { deviceId: 'stays', intervalMs: MINUTE_MS },
    ];
    using rig = await openRig(bench, { world: worldOf(devices, 32 * DAY_MS), historyMs: 30 * DAY_MS });
    const life = await liveAsDaemon(rig, { forMs: 30 * MINUTE_MS });
    expect(life.error).toBeNull();
    expect(life.lastReport.devices.map(({ state }) => state)).toContain('unreachable');
    // Those that were under way, of each lane.
    expect(askedAfter(rig, /lost.telemetry/, LEAVES_MS)).toBeLessThanOrEqual(4);
    expect(told(life, 'device-gone').length).toBeLessThanOrEqual(2);
  });

  test('is asked no more once it is excluded', async () => {
    const renames = [{ atMs: LEAVES_MS, value: 'private' }];
    const devices = [
      ...['x', 'y', 'z'].map((deviceId) => ({ deviceId, intervalMs: 20 * SECOND_MS, renames })),
      { deviceId: 'stays', intervalMs: 20 * SECOND_MS },
    ];
    const filter = { exclude: ['private'] };
    using rig = await openRig(bench, { world: worldOf(devices, 32 * DAY_MS), historyMs: 30 * DAY_MS, filter });
    const life = await liveAsDaemon(rig, { forMs: 30 * MINUTE_MS });
    expect(life.lastReport.devices.filter(({ state }) => state === 'excluded')).toHaveLength(3);
    // The next listing tells of it.
    expect(askedAfter(rig, /[xyz].telemetry/, LEAVES_MS + 6 * MINUTE_MS)).toBe(0);
  });
});
