/**
 * Short problems of the service: seconds without an answer, a page size that shrinks in the midst, alerts alone that
 * are refused. They cost the time that they last, and leave nothing against a device.
 */
import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import type { SimPage } from '../../src/sim/answers.ts';
import { eventsOf, liveAsDaemon, worldOf } from '../support/daemon-rig.ts';
import { always, betweenTimes, onPath } from '../support/faults.ts';
import type { FaultPlan } from '../support/faulty-simulator.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { NOW_MS, openBench, openRig, type Rig, type RigOptions } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';
import type { DeviceSpec } from '../support/trait-world.ts';

const DEVICES: readonly DeviceSpec[] = ['a', 'b', 'c'].map((deviceId) => ({ deviceId, intervalMs: 30 * SECOND_MS }));

describe.runIf(influxdAvailable())('a short outage', () => {
  const bench = sharedBench(openBench);

  const rigOf = async (options: Partial<RigOptions> = {}): Promise<Rig> =>
    await openRig(bench, { world: worldOf(DEVICES), historyMs: DAY_MS, ...options });

  const downFrom = (fromMs: number, forMs: number): FaultPlan =>
    betweenTimes(fromMs, fromMs + forMs, { kind: 'reset', when: 'before-headers' });

  test.each([5, 12, 20])('of 20 s costs a --once less than a minute, from second %i on', async (second) => {
    const settings = { time: { latencyMs: { min: 200, max: 800 } } };
    using rig = await rigOf({ settings, faults: downFrom(NOW_MS + second * SECOND_MS, 20 * SECOND_MS) });
    const { summary, events } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0, gaps: [] });
    // All devices that were left failed, and only they were left to poll.
    expect(eventsOf({ events }, 'gap-recorded').length).toBeGreaterThan(1);
    expect(rig.clock.monoMs()).toBeLessThan(MINUTE_MS);
    expect(rig.simulator.log.requests.filter(({ path }) => path === '/devices')).toHaveLength(1);
  });

  test('keeps no device of the daemon waiting once the first answer is back', async () => {
    const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
    const devices = ids.map((deviceId) => ({ deviceId, intervalMs: 20 * SECOND_MS }));
    using rig = await rigOf({ world: worldOf(devices, 3 * HOUR_MS), historyMs: 2 * HOUR_MS });
    const lateMs: number[] = [];
    await liveAsDaemon(rig, {
      forMs: 16 * MINUTE_MS,
      meanwhile: async () => {
        await rig.clock.sleep(10 * MINUTE_MS);
        const downMs = rig.clock.nowMs();
        const upMs = downMs + 65 * SECOND_MS;
        rig.simulator.faults = downFrom(downMs, upMs - downMs);
        await rig.clock.sleep(5 * MINUTE_MS);
        const answered = rig.simulator.log.requests.filter(({ atMs }) => atMs >= upMs);
        const firstMs = answered[0]?.atMs ?? 0;
        for (const id of ids) {
          const found = answered.find(({ path }) => path.includes(`/${id}/telemetry`));
          lateMs.push((found?.atMs ?? Number.POSITIVE_INFINITY) - firstMs);
        }
      },
    });
    expect(Math.max(...lateMs)).toBeLessThan(15 * SECOND_MS);
  });

  test('does not include a device that alone fails: it is polled a few times more, and the run ends', async () => {
    using rig = await rigOf({ faults: onPath(/a.telemetry/, always({ kind: 'reset', when: 'before-headers' })) });
    const { summary } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'stalled', exit_code: 3 });
    // Five requests a try: at the beginning, and after five minutes with two more because no other device is polled
    // then.
    const asked = rig.simulator.log.requests.filter(({ path }) => path.includes('/a/telemetry'));
    expect(asked.length).toBeLessThanOrEqual(40);
  });

  test.each([
    [20, 10, 200],
    [200, 40, 60],
  ])(
    'by pages that shrink from %i to %i records costs a --once nothing but the longer way',
    async (before, after, longestS) => {
      const world = worldOf(DEVICES.map((device) => ({ ...device, intervalMs: 2 * MINUTE_MS })));
      const settings = { plan: { maxDevicesPerPage: before }, time: { latencyMs: { min: 100, max: 300 } } };
      using rig = await rigOf({ world, settings });
      const shrink = rig.clock.sleep(3 * SECOND_MS).then(() => {
        rig.simulator.settings.plan.maxDevicesPerPage = after;
      });
      const { summary, events } = await rig.once();
      await shrink;
      expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0, gaps: [] });
      expect(eventsOf({ events }, 'plan-changed')).toHaveLength(1);
      expect(eventsOf({ events }, 'gap-recorded')).toEqual([]);
      expect(rig.clock.monoMs()).toBeLessThan(longestS * SECOND_MS);
    },
  );

  test('of the alerts alone, which are refused for the quota for ever, ends a --once after ten minutes', async () => {
    const refused = { kind: 'server-error', status: 429, waitSeconds: 30 } as const;
    using rig = await rigOf({ faults: onPath(/alerts/, always(refused)) });
    const { summary } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'stalled', exit_code: 3, gaps: [] });
    expect(rig.clock.monoMs()).toBeGreaterThan(10 * MINUTE_MS);
    expect(rig.clock.monoMs()).toBeLessThan(30 * MINUTE_MS);
    const asked = rig.simulator.log.requests.filter(({ path }) => path === '/alerts').map(({ atMs }) => atMs);
    const wait = asked.slice(1).map((atMs, index) => atMs - (asked[index] ?? 0));
    expect(Math.min(...wait)).toBeGreaterThan(30 * SECOND_MS);
  });

  test('by cursors of any length keeps no page from being understood', async () => {
    const long = (page: SimPage): SimPage =>
      page.nextCursor === null ? page : { ...page, nextCursor: page.nextCursor.padEnd(100_000, '=') };
    using rig = await rigOf({ faults: onPath(/telemetry/, always({ kind: 'mangle', change: long })) });
    const { summary, events } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0, gaps: [] });
    expect(eventsOf({ events }, 'page-rejected')).toEqual([]);
  });
});
