/**
 * A day of many devices on a small plan, through the complete program in virtual time: planner, rate limiter, page
 * scans, commits, delivery to a real InfluxDB.
 */
import { describe, expect, test } from 'vitest';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import { sensorsOf } from '../../src/sim/devices.ts';
import { eventsOf, liveAsDaemon } from '../support/daemon-rig.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { openBench, openRig } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { createWorld, type DeviceSpec } from '../support/trait-world.ts';

const DEVICES = 100;
const SHARE = 0.8;
const PLAN = { requestsPerMinute: 60, requestsPerDay: 500, maxDevicesPerPage: 50 };

/** From 5 minutes to 1 hour, evenly by their logarithm. */
const FLEET: readonly DeviceSpec[] = Array.from({ length: DEVICES }, (_, index) => ({
  deviceId: `d${String(index).padStart(4, '0')}`,
  sensors: sensorsOf(1 + (index % 2)),
  intervalMs: Math.round((5 * MINUTE_MS * 12 ** ((index * 0.618_034) % 1)) / SECOND_MS) * SECOND_MS,
}));

/**
 * The most requests in any range of that length.
 *
 * @param atMs ascending.
 */
function mostWithin(atMs: readonly number[], lengthMs: number): number {
  let most = 0;
  let from = 0;
  for (let to = 0; to < atMs.length; to += 1) {
    while ((atMs[to] ?? 0) - (atMs[from] ?? 0) >= lengthMs) from += 1;
    most = Math.max(most, to - from + 1);
  }
  return most;
}

describe.runIf(influxdAvailable())('a hundred devices on 500 requests a day', () => {
  const bench = sharedBench(openBench);

  test('all stay fresh for a day within the budget, and demand beyond it is reported', async () => {
    using rig = await openRig(bench, {
      world: (originMs) => createWorld({ seed: 7, originMs, historyMs: 2 * HOUR_MS, devices: FLEET }),
      historyMs: HOUR_MS,
      settings: { plan: PLAN },
      share: SHARE,
    });
    const life = await liveAsDaemon(rig, { forMs: 24 * HOUR_MS });
    expect(life.error).toBeNull();
    const { requests, count } = rig.simulator.log;
    const atMs = requests.map((request) => request.atMs);
    expect(count(429)).toBe(0);
    expect(mostWithin(atMs, MINUTE_MS)).toBeLessThanOrEqual(PLAN.requestsPerMinute * SHARE);
    expect(atMs.length).toBeLessThanOrEqual(PLAN.requestsPerDay * SHARE);
    // Every request is useful: the demand exceeds the budget.
    expect(atMs.length).toBeGreaterThanOrEqual(0.9 * PLAN.requestsPerDay * SHARE);
    expect(eventsOf(life, 'quota-short').slice(0, 2), 'assumed at the start, then measured').toMatchObject([
      { unmet: 'readings', message: expect.stringContaining(' if 100 devices have a reading every 60 s, but ') },
      { unmet: 'schedules' },
    ]);
    const verdict = await rig.verdict(rig.clock.nowMs() - 17 * HOUR_MS);
    expect(verdict.missing.slice(0, 5)).toEqual([]);
    expect(verdict.invented.slice(0, 5)).toEqual([]);
    // Waiting its turn is no fault.
    expect(life.lastReady).toEqual({ ready: true, reasons: [], codes: [], names: [] });
    const lags = life.lastReport.devices.map((device) => device.lag_seconds ?? Number.POSITIVE_INFINITY);
    // Four requests a day for each: polled in turn, none is left out.
    expect(lags.reduce((sum, lag) => sum + lag, 0) / lags.length).toBeLessThanOrEqual(5 * 3600);
    expect(Math.max(...lags)).toBeLessThanOrEqual(17 * 3600);
  });
});
