/**
 * The estimated duration of a backfill, compared with its real end on simulated fleets, in virtual time.
 */
import { describe, expect, test } from 'vitest';
import { computePlan, type PlanParts } from '../../../src/commands/plan/command.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../src/core/time.ts';
import { besideFinishMs } from '../../../src/scheduler/estimate.ts';
import { StateInUseError } from '../../../src/store/open/lock.ts';
import { liveAsDaemon, worldOf } from '../../support/daemon-rig.ts';
import { SCHEDULES } from '../../support/defaults.ts';
import { influxdAvailable } from '../../support/influxd.ts';
import { NOW_MS, openBench, openRig, type Rig } from '../../support/rig.ts';
import { sharedBench } from '../../support/shared-bench.ts';
import { type Asked, backfillAlone, followBackfill, takingJobs } from './support.ts';

interface Fleet {
  readonly name: string;
  readonly devices: number;
  readonly everyMs: number;
  readonly perMinute: number;
  readonly perDay: number;
  readonly asked: Omit<Asked, 'fromMs'> & { readonly days: number };
  /** The other client. */
  readonly foreignPerMinute?: number;
}

/** Readings per page: a fifth of the usual, so that a day of history costs as many requests as five. */
const PAGE = 40;

const FLEETS: readonly Fleet[] = [
  { name: 'the day decides', devices: 3, everyMs: 5 * MINUTE_MS, perMinute: 300, perDay: 8000, asked: { days: 8 } },
  {
    name: 'the minute decides',
    devices: 3,
    everyMs: 4 * MINUTE_MS,
    perMinute: 20,
    perDay: 60_000,
    asked: { days: 6 },
  },
  { name: 'much live work', devices: 6, everyMs: MINUTE_MS, perMinute: 20, perDay: 30_000, asked: { days: 0.8 } },
  {
    name: 'a part of the share',
    devices: 3,
    everyMs: 5 * MINUTE_MS,
    perMinute: 100,
    perDay: 60_000,
    asked: { days: 3.5, maxShare: 0.05 },
  },
];

describe.runIf(influxdAvailable())('the ETA of a backfill', () => {
  const bench = sharedBench(openBench);

  const rigOf = async ({ devices, everyMs, perMinute, perDay }: Fleet): Promise<Rig> => {
    const fleet = Array.from({ length: devices }, (_, n) => ({ deviceId: `d${n}`, intervalMs: everyMs, jitter: 0.2 }));
    return await openRig(bench, {
      world: worldOf(fleet, 12 * DAY_MS),
      historyMs: HOUR_MS,
      settings: {
        plan: { requestsPerMinute: perMinute, requestsPerDay: perDay, historyMaxDays: 100, maxDevicesPerPage: PAGE },
      },
    });
  };

  /** The estimate of `--backfill --dry-run` beside the daemon, in seconds. */
  const forecastOf = async (rig: Rig, fromMs: number, maxShare: number | null): Promise<number | null> => {
    const { history, gracePeriodMs, filter, polls } = rig.settings;
    const sync = { history, gracePeriodMs, schedules: SCHEDULES, leftOut: filter.spec, polls };
    const config = { api: { share: 0.8 }, sync, dataDir: rig.dataDir };
    const from = new Date(fromMs).toISOString();
    const command = { from, to: null, devices: [], whatIf: [], finishBy: null, maxShare: maxShare?.toString() ?? null };
    const open = async (): Promise<never> => await Promise.reject(new StateInUseError('the daemon has it'));
    const parts = { command, config, open, clock: rig.clock } as unknown as PlanParts;
    const { backfill } = await computePlan(parts, new AbortController().signal);
    return (backfill.rate ?? backfill).beside_daemon.seconds;
  };

  /** Each ETA that was reported, as a part of the time that it really took from then. */
  const ratios = (reported: readonly { atMs: number; eta: number }[], endMs: number): number[] =>
    reported.map(({ atMs, eta }) => (eta * SECOND_MS) / (endMs - atMs));

  test.each(FLEETS)('beside the daemon is right within a factor of 1.5 after a minute: $name', async (fleet) => {
    using rig = await rigOf(fleet);
    const reported: { atMs: number; eta: number }[] = [];
    let endMs = 0;
    await liveAsDaemon(rig, {
      forMs: MINUTE_MS,
      beside: takingJobs(rig),
      meanwhile: async (watch) => {
        await rig.clock.sleep(20 * MINUTE_MS);
        const startMs = rig.clock.nowMs();
        const { days, ...asked } = fleet.asked;
        const forecast = await forecastOf(rig, NOW_MS - days * DAY_MS, asked.maxShare ?? null);
        const follow = followBackfill(rig, { fromMs: NOW_MS - days * DAY_MS, ...asked }).then(() => {
          endMs = rig.clock.nowMs();
        });
        while (endMs === 0 && rig.clock.nowMs() < startMs + 9 * HOUR_MS) {
          await rig.clock.sleep(30 * SECOND_MS);
          const eta = watch.report().jobs[0]?.eta_seconds ?? null;
          if (eta !== null && rig.clock.nowMs() >= startMs + MINUTE_MS) reported.push({ atMs: rig.clock.nowMs(), eta });
        }
        await follow;
        const took = (endMs - startMs) / SECOND_MS;
        expect((forecast ?? 0) / took, 'the forecast of the dry run').toBeGreaterThan(1 / 1.5);
        expect((forecast ?? 0) / took, 'the forecast of the dry run').toBeLessThan(1.5);
      },
    });
    // The rest at the very end is a matter of single requests.
    const early = reported.filter(({ atMs }) => endMs - atMs > 5 * MINUTE_MS);
    expect(early.length).toBeGreaterThan(10);
    for (const ratio of ratios(early, endMs)) {
      expect(ratio).toBeGreaterThan(1 / 1.5);
      expect(ratio).toBeLessThan(1.5);
    }
  });

  test('alone is right as well', async () => {
    const [fleet] = FLEETS.filter(({ name }) => name === 'the minute decides');
    if (fleet === undefined) throw new Error('no fleet');
    using rig = await rigOf(fleet);
    const everyMs = 20 * SECOND_MS;
    const { progress } = await backfillAlone(rig, { fromMs: NOW_MS - 6 * DAY_MS }, { everyMs });
    const reported = progress.flatMap(({ eta }, n) => (eta == null ? [] : [{ atMs: n * everyMs, eta: eta.seconds }]));
    const early = reported.filter(({ atMs }) => atMs > MINUTE_MS && atMs < progress.length * everyMs - 2 * MINUTE_MS);
    expect(early.length).toBeGreaterThan(5);
    for (const ratio of ratios(early, progress.length * everyMs)) {
      expect(ratio).toBeGreaterThan(1 / 1.5);
      expect(ratio).toBeLessThan(1.5);
    }
  });
});

describe('the budget of a backfill beside live work', () => {
  const perMinute = (count: number): number => count / MINUTE_MS;
  const supply = {
    spare: 480,
    deficit: 0,
    fillPerMs: perMinute(21),
    backfillReserve: 0.05,
    minutePerMs: perMinute(720),
    othersPerMs: perMinute(6),
  };

  test('goes fast while the day has something to spare, then by what is left of the fill', () => {
    // 699 a minute drain 480 in 41 s, of which 714 a minute are the backfill's.
    expect((besideFinishMs(400, supply) ?? 0) / SECOND_MS).toBeCloseTo(33.6, 1);
    expect((besideFinishMs(633, supply) ?? 0) / MINUTE_MS).toBeCloseTo(0.69 + (633 - 490) / 15, 0);
  });

  test('waits until the day has something to spare again, and has its reserve meanwhile', () => {
    // The bucket gains 15 a minute: 20 minutes, in which the reserve sends 6 requests.
    const spent = { ...supply, spare: 0, deficit: 300 };
    expect((besideFinishMs(3, spent) ?? 0) / MINUTE_MS).toBeCloseTo(10, 5);
    expect((besideFinishMs(6 + 150, spent) ?? 0) / MINUTE_MS).toBeCloseTo(20 + 10, 5);
    // Where live work uses the full refill, only the reserve is left.
    const busy = { ...spent, othersPerMs: perMinute(50) };
    expect((besideFinishMs(21, busy) ?? 0) / MINUTE_MS).toBeCloseTo(20, 5);
  });

  test('has its reserve where live work uses the rest, and no end where there is none', () => {
    const busy = { ...supply, spare: 0, othersPerMs: perMinute(50) };
    expect((besideFinishMs(21, busy) ?? 0) / MINUTE_MS).toBeCloseTo(20, 5);
    expect(besideFinishMs(1, { ...busy, backfillReserve: 0 })).toBeNull();
    expect(besideFinishMs(0, busy)).toBe(0);
  });

  test('has no limit of the day where the plan has none', () => {
    const endless = { ...supply, spare: Number.POSITIVE_INFINITY, fillPerMs: Number.POSITIVE_INFINITY };
    expect((besideFinishMs(714, endless) ?? 0) / MINUTE_MS).toBeCloseTo(1, 5);
  });
});
