/**
 * `--backfill --recheck` on the virtual clock: readings that the API has left out of covered ranges are brought,
 * exactly once, and nothing else changes.
 */
import { describe, expect, test } from 'vitest';
import { backfillEndText } from '../../../src/commands/backfill/result.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../src/core/time.ts';
import { sensorsOf } from '../../../src/sim/devices.ts';
import type { SimReading } from '../../../src/sim/spec.ts';
import { liveAsDaemon, worldOf } from '../../support/daemon-rig.ts';
import { always, anyOf, falselyEmpty, onPath, withoutLastSeen } from '../../support/faults.ts';
import { influxdAvailable } from '../../support/influxd.ts';
import { NOW_MS, openBench, openRig, type Rig } from '../../support/rig.ts';
import { sharedBench } from '../../support/shared-bench.ts';
import {
  type AloneLife,
  backfillAlone,
  coverageOf,
  followBackfill,
  inState,
  summaryOf,
  takingJobs,
  telemetryRequests,
} from './support.ts';

const DEVICES = [
  { deviceId: 'often', intervalMs: 2 * MINUTE_MS, jitter: 0.5, sensors: sensorsOf(2) },
  { deviceId: 'tied', intervalMs: 10 * MINUTE_MS, traits: ['ties' as const] },
  {
    deviceId: 'silent',
    intervalMs: 10 * MINUTE_MS,
    silences: [{ fromMs: NOW_MS - 3 * DAY_MS, toMs: Number.POSITIVE_INFINITY }],
  },
];

const ASKED = { fromMs: NOW_MS - 12 * DAY_MS, recheck: true };
const SHOWN_MS = NOW_MS + HOUR_MS;

const timeOf = ({ recordedAtNs }: SimReading): number => Number(recordedAtNs / 1_000_000n);

describe.runIf(influxdAvailable())('--backfill --recheck', () => {
  const bench = sharedBench(openBench);

  const world = worldOf(DEVICES, 15 * DAY_MS);

  const rigOf = async (): Promise<Rig> => await openRig(bench, { world, historyMs: 13 * DAY_MS });

  /** A run that has covered everything, without the readings that the API shows an hour later only. */
  const coveredWithout = async (rig: Rig, isHidden: (deviceId: string, reading: SimReading) => boolean) => {
    rig.hides = (deviceId, reading, atMs) => atMs < SHOWN_MS && isHidden(deviceId, reading);
    expect((await rig.once()).summary).toMatchObject({ exit_code: 0, gaps: [] });
    await rig.clock.sleep(2 * HOUR_MS);
    expect((await rig.once()).summary).toMatchObject({ exit_code: 0, gaps: [] });
  };

  const verdictOf = async (rig: Rig) => {
    const { missing, invented, expected } = await rig.verdict(NOW_MS, {
      fromNs: BigInt(ASKED.fromMs) * 1_000_000n,
    });
    return { missing: missing.length, invented: invented.length, expected };
  };

  const recheckOf = ({ summary }: Pick<AloneLife, 'summary'>) => {
    if (summary.recheck === null) throw new Error('nothing was read again');
    return summary.recheck;
  };

  const lateOf = (rig: Rig): unknown => inState(rig, (db) => db.prepare('SELECT * FROM lateness').all());

  test('brings readings that were 30 hours late, and corrects their hours', async () => {
    using rig = await rigOf();
    const isLate = (_: string, reading: SimReading): boolean => {
      const atMs = timeOf(reading);
      return atMs > NOW_MS - 30 * HOUR_MS && atMs < NOW_MS - 28 * HOUR_MS && Math.floor(atMs / MINUTE_MS) % 4 < 2;
    };
    await coveredWithout(rig, isLate);
    const before = await verdictOf(rig);
    expect(before.missing).toBeGreaterThan(50);
    const covered = DEVICES.map(({ deviceId }) => coverageOf(rig, deviceId));
    const late = lateOf(rig);
    const life = await backfillAlone(rig, ASKED);
    expect(life.summary).toMatchObject({ outcome: 'complete', exit_code: 0, devices_complete: 3 });
    expect(life.summary.readings).toBeGreaterThanOrEqual(recheckOf(life).new_readings);
    expect(recheckOf(life)).toMatchObject({ ranges: 3, unread: [] });
    expect(recheckOf(life).new_readings).toBeGreaterThan(30);
    expect(backfillEndText(life.summary)).toContain(
      `Read again: 3 covered ranges, with ${recheckOf(life).new_readings} new readings.`,
    );
    expect(await verdictOf(rig)).toMatchObject({ missing: 0, invented: 0 });
    // No coverage is withdrawn, and no device counts as one with late readings.
    for (const [index, { deviceId }] of DEVICES.entries()) {
      const [first, ...more] = coverageOf(rig, deviceId);
      expect([first?.[0], more]).toEqual([covered[index]?.[0]?.[0], []]);
    }
    expect(lateOf(rig)).toEqual(late);
    await expectHours(rig, 'often', NOW_MS - 31 * HOUR_MS, NOW_MS - 27 * HOUR_MS);
  });

  /** The hourly counts of a device show how many readings the database has. */
  const expectHours = async (rig: Rig, deviceId: string, fromMs: number, toMs: number): Promise<void> => {
    const [from, to] = [Math.ceil(fromMs / HOUR_MS) * HOUR_MS, Math.floor(toMs / HOUR_MS) * HOUR_MS];
    const where = `device_id = '${deviceId}' AND time >= ${from}ms AND time < ${to}ms`;
    const hourOf = (time: unknown): number => Number(BigInt(String(time)) / 3_600_000_000_000n);
    const hours = await bench.influxd.query(rig.database, `SELECT readings FROM coverage_hour WHERE ${where}`);
    const values = await bench.influxd.query(rig.database, `SELECT value FROM telemetry WHERE ${where}`);
    const instants = [...new Set(values.map(({ time }) => String(time)))];
    expect(hours.length).toBe((to - from) / HOUR_MS);
    for (const { time, readings } of hours) {
      expect(readings).toBe(instants.filter((instant) => hourOf(instant) === hourOf(time)).length);
    }
  };

  test('brings the readings that a device had buffered for ten days, and duplicates nothing when it is run again', async () => {
    using rig = await rigOf();
    const isBuffered = (deviceId: string, reading: SimReading): boolean =>
      deviceId === 'tied' && timeOf(reading) > NOW_MS - 11 * DAY_MS && timeOf(reading) < NOW_MS - 2 * DAY_MS;
    await coveredWithout(rig, isBuffered);
    expect((await verdictOf(rig)).missing).toBeGreaterThan(1000);
    const first = await backfillAlone(rig, { ...ASKED, devices: ['tied'] });
    expect(recheckOf(first).new_readings).toBeGreaterThan(1200);
    expect(telemetryRequests(rig, 'silent')).toBeLessThan(20);
    expect(await verdictOf(rig)).toMatchObject({ missing: 0, invented: 0 });
    const again = await backfillAlone(rig, { ...ASKED, devices: ['tied'] });
    expect(recheckOf(again)).toMatchObject({ ranges: 1, new_readings: 0 });
    expect(again.summary).toMatchObject({ readings: 0, points: 0 });
    expect(await verdictOf(rig)).toMatchObject({ missing: 0, invented: 0 });
  });

  test('brings a device that was called empty by mistake', async () => {
    using rig = await rigOf();
    rig.simulator.faults = anyOf(
      onPath(/silent\/telemetry/, always(falselyEmpty)),
      onPath(/devices$/, always(withoutLastSeen)),
    );
    expect((await rig.once()).summary).toMatchObject({ exit_code: 0, gaps: [] });
    rig.simulator.faults = null;
    await rig.clock.sleep(MINUTE_MS);
    expect((await verdictOf(rig)).missing).toBeGreaterThan(1000);
    const life = await backfillAlone(rig, ASKED);
    expect(life.summary).toMatchObject({ outcome: 'complete', exit_code: 0, devices_complete: 3, devices_empty: 0 });
    expect(life.summary.readings).toBeGreaterThan(1200);
    expect(await verdictOf(rig)).toMatchObject({ missing: 0, invented: 0 });
  });

  test('continues where it was stopped, and begins anew after a week', async () => {
    const stopped = async (rig: Rig, afterMs: number): Promise<AloneLife> => {
      const stop = new AbortController();
      const timer = rig.clock.sleep(afterMs, stop.signal).then(
        () => stop.abort(new Error('Stopped')),
        () => {},
      );
      const life = await backfillAlone(rig, ASKED, { signal: stop.signal }).finally(() => stop.abort());
      await timer;
      return life;
    };
    using rig = await rigOf();
    await rig.once();
    const whole = (await backfillAlone(rig, ASKED)).summary.requests;
    expect(whole).toBeGreaterThan(50);
    const lives: AloneLife[] = [];
    for (let afterMs = 6 * SECOND_MS; lives.at(-1)?.summary.outcome !== 'complete'; afterMs += 3 * SECOND_MS) {
      lives.push(await stopped(rig, afterMs));
    }
    expect(lives.length).toBeGreaterThan(2);
    expect(recheckOf(lives[0] as AloneLife).unread.map(({ reason }) => reason)).toContain('pending');
    const requests = lives.reduce((sum, { summary }) => sum + summary.requests, 0);
    expect(requests).toBeLessThanOrEqual(whole + 5 * lives.length);
    // The record of the completed part is dropped: the next one reads all of it again.
    const half = await stopped(rig, 8 * SECOND_MS);
    expect(half.summary.outcome).toBe('interrupted');
    await rig.clock.sleep(8 * DAY_MS);
    const later = await backfillAlone(rig, { ...ASKED, toMs: NOW_MS - HOUR_MS });
    expect(later.summary.requests).toBeGreaterThanOrEqual(whole * 0.85);
  });

  test('does not take empty answers about archived readings for an end', async () => {
    using rig = await rigOf();
    await rig.once();
    rig.simulator.faults = onPath(/often\/telemetry/, always(falselyEmpty));
    const asked = { ...ASKED, toMs: NOW_MS - HOUR_MS };
    const life = await backfillAlone(rig, asked);
    expect(life.summary).toMatchObject({ outcome: 'stalled', exit_code: 3, missing: [] });
    expect(recheckOf(life)).toMatchObject({ ranges: 2, unread: [{ device_id: 'often', reason: 'page_rejected' }] });
    expect(backfillEndText(life.summary)).toContain(': invalid responses.');
    rig.simulator.faults = null;
    const next = await backfillAlone(rig, asked);
    expect(next.summary).toMatchObject({ outcome: 'complete', exit_code: 0 });
    // The other devices are not read another time.
    expect(recheckOf(next).unread).toEqual([]);
    expect(next.summary.requests).toBeLessThan(60);
  });

  test('leaves out the ranges that the archive has cleared, and reports that', async () => {
    using rig = await rigOf();
    await rig.once();
    const [fromNs, toNs] = [NOW_MS - 12 * DAY_MS, NOW_MS - 6 * DAY_MS].map((ms) => BigInt(ms) * 1_000_000n);
    inState(rig, (db) => db.prepare("INSERT INTO cleared VALUES ('often', 'telemetry', ?, ?, 1000)").run(fromNs, toNs));
    const before = rig.simulator.log.total;
    const life = await backfillAlone(rig, { ...ASKED, devices: ['often'] });
    expect(life.summary).toMatchObject({ outcome: 'complete', exit_code: 0, points: 0 });
    expect(recheckOf(life)).toMatchObject({ ranges: 1, unread: [{ device_id: 'often', reason: 'cleared' }] });
    expect(backfillEndText(life.summary)).toContain(
      'Not read again: 6 days: the archive has already removed these points',
    );
    const oldest = rig.simulator.log.requests.slice(before).flatMap(({ query }) => {
      const after = new URLSearchParams(query).get('after');
      return after === null ? [] : [Date.parse(after)];
    });
    expect(Math.min(...oldest)).toBeGreaterThan(NOW_MS - 6 * DAY_MS - MINUTE_MS);
  });

  test('is a job of the daemon that continues after a restart of it', async () => {
    using rig = await rigOf();
    const isHidden = (_: string, reading: SimReading): boolean => Math.floor(timeOf(reading) / HOUR_MS) % 5 === 0;
    rig.hides = (deviceId, reading, atMs) =>
      atMs < SHOWN_MS && timeOf(reading) < NOW_MS - 2 * DAY_MS && isHidden(deviceId, reading);
    await rig.once();
    await rig.clock.sleep(2 * HOUR_MS);
    const asked = { ...ASKED, maxShare: 0.1 };
    const ends: unknown[] = [];
    const first = new AbortController();
    await liveAsDaemon(rig, {
      forMs: 3 * MINUTE_MS,
      beside: takingJobs(rig),
      meanwhile: async () => {
        await rig.clock.sleep(30 * SECOND_MS);
        void followBackfill(rig, asked, first.signal).catch(() => {});
      },
    });
    const unread = (): unknown => inState(rig, (db) => db.prepare('SELECT count(*) FROM recheck').pluck().get());
    expect(unread()).toBe(3);
    await liveAsDaemon(rig, {
      forMs: MINUTE_MS,
      beside: takingJobs(rig, (_, end) => ends.push(end)),
      meanwhile: async () => {
        while (ends.length === 0) await rig.clock.sleep(10 * SECOND_MS);
      },
    });
    expect(ends).toMatchObject([{ state: 'done', exitCode: 0 }]);
    const summary = summaryOf({ end: ends[0] as Parameters<typeof summaryOf>[0]['end'] });
    expect(summary.recheck).toMatchObject({ unread: [] });
    expect(unread()).toBe(0);
    expect(await verdictOf(rig)).toMatchObject({ missing: 0, invented: 0 });
  });
});
