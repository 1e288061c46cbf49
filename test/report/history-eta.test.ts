/**
 * How long the initial sync takes, as the status says it once two minutes have shown the load: held against its real end on
 * simulated fleets, in virtual time; and the same from the state alone.
 */
import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import { configOf, reportOf } from '../commands/status/support.ts';
import { liveAsDaemon, worldOf } from '../support/daemon-rig.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { NOW_MS, openBench, openRig } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';

const FLEETS = [
  { name: 'the day decides', devices: 3, everyMs: 5 * MINUTE_MS, perMinute: 300, perDay: 8000, days: 36 },
  { name: 'the minute decides', devices: 3, everyMs: 4 * MINUTE_MS, perMinute: 20, perDay: 60_000, days: 30 },
  { name: 'live polls in bursts', devices: 12, everyMs: 5 * MINUTE_MS, perMinute: 20, perDay: 60_000, days: 16 },
  { name: 'much live work', devices: 6, everyMs: MINUTE_MS, perMinute: 20, perDay: 30_000, days: 6 },
] as const;

describe.runIf(influxdAvailable())('the ETA of the initial sync', () => {
  const bench = sharedBench(openBench);

  test.each(FLEETS)(
    'is right within a factor of 1.5 once the load of live work is known: $name',
    async ({ devices, everyMs, perMinute, perDay, days }) => {
      const fleet = Array.from({ length: devices }, (_, n) => ({
        deviceId: `d${n}`,
        intervalMs: everyMs,
        jitter: 0.2,
      }));
      using rig = await openRig(bench, {
        world: worldOf(fleet, 60 * DAY_MS),
        historyMs: days * DAY_MS,
        settings: { plan: { requestsPerMinute: perMinute, requestsPerDay: perDay, historyMaxDays: 100 } },
      });
      const config = configOf(rig);
      const told: { atMs: number; eta: number; fromState: number | null }[] = [];
      // A state is opened for a look at it: every fourth time.
      const toldOf = (seconds: number, nth: number) => ({
        atMs: rig.clock.nowMs(),
        eta: seconds * SECOND_MS,
        fromState: nth % 4 === 0 ? reportOf(config, rig.clock).next.eta_seconds : seconds,
      });
      const sentences = new Set<string>();
      let endMs = 0;
      const startMs = rig.clock.nowMs();
      await liveAsDaemon(rig, {
        forMs: MINUTE_MS,
        meanwhile: async (watch) => {
          await rig.clock.sleep(MINUTE_MS);
          for (;;) {
            await rig.clock.sleep(30 * SECOND_MS);
            const { next, summary } = watch.report();
            if (next.initial_devices === 0) break;
            sentences.add(summary.replace(/:.*/, ''));
            if (next.eta_seconds !== null) told.push(toldOf(next.eta_seconds, told.length));
            if (rig.clock.nowMs() > startMs + 9 * HOUR_MS) throw new Error('it does not end');
          }
          endMs = rig.clock.nowMs();
        },
      });
      // What is left at the very end is a matter of single requests.
      const early = told.filter(({ atMs }) => endMs - atMs > 5 * MINUTE_MS);
      expect(early.length).toBeGreaterThan(5);
      // By how many times each is too long or too short.
      const off = early
        .flatMap(({ atMs, eta, fromState }) => [eta, (fromState ?? 0) * SECOND_MS].map((each) => each / (endMs - atMs)))
        .map((ratio) => Math.max(ratio, 1 / ratio))
        .toSorted((one, other) => one - other);
      expect(off.at(-1), 'the worst').toBeLessThan(1.5);
      expect([...sentences]).toEqual(['Initial sync']);
    },
  );

  test('follows the devices whose history begins later than asked, once some were read down to it', async () => {
    const fleet = [4, 15].flatMap((minutes) =>
      Array.from({ length: 3 }, (_, n) => ({
        ...{ deviceId: `d${minutes}-${n}`, intervalMs: minutes * MINUTE_MS, jitter: 0.2 },
        appearsAtMs: NOW_MS - (20 + n / 10) * DAY_MS,
      })),
    );
    using rig = await openRig(bench, {
      world: worldOf(fleet, 60 * DAY_MS),
      historyMs: 60 * DAY_MS,
      settings: { plan: { requestsPerMinute: 20, requestsPerDay: 60_000, historyMaxDays: 100 } },
    });
    const told: { atMs: number; eta: number }[] = [];
    let endMs = 0;
    await liveAsDaemon(rig, {
      forMs: MINUTE_MS,
      meanwhile: async (watch) => {
        for (;;) {
          await rig.clock.sleep(15 * SECOND_MS);
          const { next, totals } = watch.report();
          if (next.initial_devices === 0) break;
          if (totals.devices - next.initial_devices < 3 || next.eta_seconds === null) continue;
          told.push({ atMs: rig.clock.nowMs(), eta: next.eta_seconds * SECOND_MS });
        }
        endMs = rig.clock.nowMs();
      },
    });
    const early = told.filter(({ atMs }) => endMs - atMs > MINUTE_MS);
    expect(early.length).toBeGreaterThan(5);
    for (const { atMs, eta } of early) {
      expect(eta / (endMs - atMs)).toBeGreaterThan(1 / 1.5);
      expect(eta / (endMs - atMs)).toBeLessThan(1.5);
    }
  });

  test('is there within the first half minute where the plan is ample', async () => {
    const fleet = Array.from({ length: 12 }, (_, n) => ({ deviceId: `d${n}`, intervalMs: MINUTE_MS, jitter: 0.2 }));
    using rig = await openRig(bench, {
      world: worldOf(fleet, 40 * DAY_MS),
      historyMs: 30 * DAY_MS,
      settings: { plan: { requestsPerMinute: 900, requestsPerDay: 200_000, historyMaxDays: 100 } },
    });
    const told: (number | null)[] = [];
    await liveAsDaemon(rig, {
      forMs: 31 * SECOND_MS,
      meanwhile: async (watch) => {
        for (let second = 0; second < 30; second += 3) {
          told.push(watch.report().next.eta_seconds);
          await rig.clock.sleep(3 * SECOND_MS);
        }
      },
    });
    expect(told.at(-1)).not.toBeNull();
  });
});
