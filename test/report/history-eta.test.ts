/**
 * The estimated duration of the initial sync, once the load is known: compared with its real end on simulated fleets,
 * in virtual time; and the same from the state alone.
 */
import { describe, expect, test } from 'vitest';
import type { NextStatus } from '../../src/core/status.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import { configOf, reportOf } from '../commands/status/support.ts';
import { liveAsDaemon, worldOf } from '../support/daemon-rig.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { NOW_MS, openBench, openRig } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';
import type { DeviceSpec } from '../support/trait-world.ts';

interface Fleet {
  readonly devices: readonly DeviceSpec[];
  readonly perMinute: number;
  readonly perDay: number;
  /** How far back the wanted range goes, in days. */
  readonly days: number;
  /** How often somebody looks. */
  readonly lookMs: number;
  /** Readings per page at most; 200. With fewer, a day of history costs as many requests as several. */
  readonly page?: number;
}

/** Devices that report at an interval. @param ageDays the age of the first one; each next one is a bit older. */
function devices(count: number, intervalMs: number, ageDays?: number): DeviceSpec[] {
  return Array.from({ length: count }, (_, n) => ({
    ...{ deviceId: `d${intervalMs / MINUTE_MS}-${n}`, intervalMs, jitter: 0.2 },
    ...(ageDays === undefined ? {} : { appearsAtMs: NOW_MS - (ageDays + n / 50) * DAY_MS }),
  }));
}

/** The report at a moment. */
interface Reported {
  readonly atMs: number;
  readonly etaMs: number;
  readonly fromStateMs: number;
  readonly assumesFullHistory: boolean;
}

/** The estimates of the daemon and of the state alone; `null` where it is not known. */
function etaOf(atMs: number, next: NextStatus, state: NextStatus): Reported[] {
  if (next.eta_seconds === null) return [];
  const [etaMs, fromStateMs] = [next.eta_seconds * SECOND_MS, (state.eta_seconds ?? 0) * SECOND_MS];
  return [{ atMs, etaMs, fromStateMs, assumesFullHistory: next.eta_assumes_full_history }];
}

describe.runIf(influxdAvailable())('the ETA of the initial sync', () => {
  const bench = sharedBench(openBench);

  /** Runs until no history is left. */
  async function live({ devices: fleet, perMinute, perDay, days, lookMs, page = 200 }: Fleet) {
    using rig = await openRig(bench, {
      // No older than it has to be: the list of alerts is as old as the simulation.
      world: worldOf(fleet, Math.min(60, 2 * days) * DAY_MS),
      historyMs: days * DAY_MS,
      settings: {
        plan: { requestsPerMinute: perMinute, requestsPerDay: perDay, historyMaxDays: 100, maxDevicesPerPage: page },
      },
    });
    const config = configOf(rig);
    const reported: Reported[] = [];
    const sentences = new Set<string>();
    const startMs = rig.clock.nowMs();
    await liveAsDaemon(rig, {
      forMs: MINUTE_MS,
      meanwhile: async (watch) => {
        await rig.clock.sleep(MINUTE_MS);
        for (;;) {
          await rig.clock.sleep(lookMs);
          const { next, summary } = watch.report();
          if (next.initial_devices === 0) break;
          sentences.add(summary);
          // A state is opened for a look at it: every fourth time.
          const state = reported.length % 4 === 0 ? reportOf(config, rig.clock).next : next;
          expect(state.eta_assumes_full_history).toBe(next.eta_assumes_full_history);
          reported.push(...etaOf(rig.clock.nowMs(), next, state));
          if (rig.clock.nowMs() > startMs + 9 * HOUR_MS) throw new Error('it does not end');
        }
      },
    });
    return { reported, sentences: [...sentences], startMs, endMs: rig.clock.nowMs() };
  }

  /** By how many times the worst of them is too long or too short. */
  function worst(reported: readonly Reported[], endMs: number): number {
    const ratios = reported.flatMap(({ atMs, etaMs, fromStateMs }) =>
      [etaMs, fromStateMs].map((each) => each / (endMs - atMs)),
    );
    return Math.max(...ratios.map((ratio) => Math.max(ratio, 1 / ratio)));
  }

  test.each<[string, Fleet]>([
    [
      'the day decides',
      { devices: devices(3, 5 * MINUTE_MS), perMinute: 300, perDay: 8000, days: 7.2, lookMs: 2 * MINUTE_MS },
    ],
    [
      'the minute decides',
      { devices: devices(3, 4 * MINUTE_MS), perMinute: 20, perDay: 60_000, days: 6, lookMs: 30_000 },
    ],
    [
      'live polls in bursts',
      { devices: devices(12, 5 * MINUTE_MS), perMinute: 20, perDay: 60_000, days: 3.2, lookMs: MINUTE_MS },
    ],
    ['much live work', { devices: devices(6, MINUTE_MS), perMinute: 20, perDay: 30_000, days: 1.2, lookMs: MINUTE_MS }],
  ])('is right within a factor of 1.5 once the load of live work is known: %s', async (_, fleet) => {
    const { reported, sentences, endMs } = await live({ ...fleet, page: 40 });
    // The rest at the very end is a matter of single requests.
    const early = reported.filter(({ atMs }) => endMs - atMs > 5 * MINUTE_MS);
    expect(early.length).toBeGreaterThan(5);
    expect(worst(early, endMs)).toBeLessThan(1.5);
    expect(sentences.filter((text) => !text.startsWith('Initial sync: '))).toEqual([]);
  });

  test.each<[string, Fleet]>([
    [
      'weeks old',
      {
        devices: [...devices(6, 4 * MINUTE_MS, 20), ...devices(6, 15 * MINUTE_MS, 20)],
        ...{ perMinute: 20, perDay: 60_000, days: 60, lookMs: 20_000 },
      },
    ],
    ['three days old', { devices: devices(12, MINUTE_MS, 3), perMinute: 60, perDay: 90_000, days: 60, lookMs: 10_000 }],
  ])(
    'says that it assumes full histories until two devices of a young fleet were read down to their beginning, and then is right: %s',
    async (_, fleet) => {
      const { reported, sentences, endMs } = await live(fleet);
      const [before, after] = [true, false].map((assumes) =>
        reported.filter(({ assumesFullHistory, atMs }) => assumesFullHistory === assumes && endMs - atMs > MINUTE_MS),
      );
      // Far too long as yet, and shown as a maximum.
      expect(before?.every(({ atMs, etaMs }) => etaMs > 1.5 * (endMs - atMs))).toBe(true);
      expect(sentences.some((text) => / \(less if devices are younger than the range\)\./.test(text))).toBe(true);
      expect(before?.length).toBeGreaterThan(5);
      expect(worst(after ?? [], endMs)).toBeLessThan(1.5);
    },
  );

  test('is there within a quarter of a minute where the plan is ample', async () => {
    using rig = await openRig(bench, {
      world: worldOf(devices(12, 4 * MINUTE_MS), 40 * DAY_MS),
      historyMs: 30 * DAY_MS,
      settings: { plan: { requestsPerMinute: 900, requestsPerDay: 200_000, historyMaxDays: 100 } },
    });
    const reported: (number | null)[] = [];
    await liveAsDaemon(rig, {
      forMs: 16 * SECOND_MS,
      meanwhile: async (watch) => {
        for (let second = 0; second < 15; second += 3) {
          reported.push(watch.report().next.eta_seconds);
          await rig.clock.sleep(3 * SECOND_MS);
        }
      },
    });
    expect(reported.at(-1)).not.toBeNull();
  });
});
