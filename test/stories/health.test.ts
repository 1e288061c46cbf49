/**
 * `/healthz` over real loops on a virtual clock: a condition that a restart cannot repair is healthy for as long as it
 * lasts, and a loop that waits forever is not.
 */
import { describe, expect, test } from 'vitest';
import type { Sync, SyncOptions } from '../../src/app/open-sync.ts';
import { healthOf } from '../../src/core/heartbeats.ts';
import type { HealthReport } from '../../src/core/status.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import { wrapWrites } from '../../src/delivery/destination.ts';
import { DEVICES, liveAsDaemon, worldOf } from '../support/daemon-rig.ts';
import { always } from '../support/faults.ts';
import type { FaultPlan } from '../support/faulty-simulator.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { destinationOf, openBench, openRig, type Rig, type RigOptions } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { transportOf } from '../support/sim-transport.ts';

/** Looks at the health every ten seconds. */
function watchHealth(rig: Rig, seen: HealthReport[]): (sync: Sync) => ((signal: AbortSignal) => Promise<never>)[] {
  return (sync) => [
    sync.fleet.run,
    async (signal) => {
      for (;;) {
        sync.heartbeats.tick();
        seen.push(healthOf(sync.heartbeats.loops()));
        await rig.clock.sleep(4 * SECOND_MS, signal);
      }
    },
  ];
}

/** A call that never returns until it is aborted. */
function never(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

describe.runIf(influxdAvailable())('the health of a daemon', () => {
  const bench = sharedBench(openBench);

  const rigOf = async (options: Partial<RigOptions> = {}): Promise<Rig> =>
    await openRig(bench, { world: worldOf(DEVICES), historyMs: 24 * HOUR_MS, ...options });

  test.each<[string, Partial<RigOptions>, FaultPlan | null, RegExp]>([
    ['all is well', {}, null, /^$/],
    [
      'the quota of the day is spent',
      { settings: { plan: { requestsPerMinute: 60, requestsPerDay: 60 } } },
      null,
      /^(last_day_missing)?$/,
    ],
    ['the API is down', {}, always({ kind: 'reset', when: 'before-headers' }), /^(api_unreachable)/],
    ['the key is rejected', { settings: { key: { secret: 'x', revoked: true } } as object }, null, /^(key_refused|)/],
  ])('is good while %s', async (_what, options, faults, codes) => {
    using rig = await rigOf(options);
    if (faults !== null) rig.simulator.faults = faults;
    const seen: HealthReport[] = [];
    const life = await liveAsDaemon(rig, { forMs: 2 * HOUR_MS, beside: watchHealth(rig, seen) });
    expect(life.error).toBeNull();
    expect(seen.length).toBeGreaterThan(1500);
    expect(seen.filter(({ healthy }) => !healthy).slice(0, 3)).toEqual([]);
    expect(life.lastReady.codes.join()).toMatch(codes);
  });

  test('is good while the database is down, which is a reason of not being ready', async () => {
    using rig = await rigOf();
    const seen: HealthReport[] = [];
    const to = destinationOf(bench, rig.database, rig.clock);
    const down = wrapWrites(to.sink, () => Promise.resolve({ kind: 'later', message: 'down', waitMs: null }));
    const changes: Partial<SyncOptions> = { destinations: [{ ...to, sink: down }] };
    const life = await liveAsDaemon(rig, { forMs: HOUR_MS, changes, beside: watchHealth(rig, seen) });
    expect(seen.filter(({ healthy }) => !healthy).slice(0, 3)).toEqual([]);
    expect(life.lastReady).toMatchObject({ ready: false, codes: ['destination_blocked'] });
  });

  test('is not when requests never end, and names the loop', async () => {
    using rig = await rigOf();
    const seen: HealthReport[] = [];
    let isHung = false;
    const hungAfterMs = 20 * MINUTE_MS;
    const transport = transportOf(rig.simulator);
    const changes: Partial<SyncOptions> = {
      transport: async (request, signal) => (isHung ? await never(signal) : await transport(request, signal)),
    };
    await liveAsDaemon(rig, {
      forMs: HOUR_MS,
      changes,
      beside: watchHealth(rig, seen),
      meanwhile: async () => {
        await rig.clock.sleep(hungAfterMs);
        isHung = true;
      },
    });
    const bad = seen.findIndex(({ healthy }) => !healthy);
    // A request may take ten minutes at most, and a minute is granted.
    expect(bad * 4 * SECOND_MS).toBeGreaterThan(hungAfterMs + 10 * MINUTE_MS);
    expect(bad * 4 * SECOND_MS).toBeLessThan(hungAfterMs + 14 * MINUTE_MS);
    expect(seen.at(-1)).toMatchObject({
      healthy: false,
      reasons: [expect.stringMatching(/^the loop "requests" has made no progress for \d+ s$/)],
      codes: ['loop_stalled'],
    });
  });

  test('is not when a write never ends, while everything else continues', async () => {
    using rig = await rigOf();
    const seen: HealthReport[] = [];
    const to = destinationOf(bench, rig.database, rig.clock);
    const hung = wrapWrites(to.sink, async (_write, signal) => await never(signal));
    const changes: Partial<SyncOptions> = { destinations: [{ ...to, sink: hung, timeoutMs: 30 * SECOND_MS }] };
    await liveAsDaemon(rig, { forMs: 20 * MINUTE_MS, changes, beside: watchHealth(rig, seen) });
    const bad = seen.findIndex(({ healthy }) => !healthy);
    expect(bad * 4 * SECOND_MS).toBeLessThan(4 * MINUTE_MS);
    expect(seen.at(-1)?.reasons).toEqual([expect.stringMatching(/^the loop "delivery influx" has made no progress/)]);
  });
});
