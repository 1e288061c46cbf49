/**
 * A real InfluxDB in which another program has written the field of the readings as a text, in some shards: only those
 * readings go to quarantine, and everything else arrives.
 */
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import { worldOf } from '../support/daemon-rig.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { NOW_MS, openBench, openRig, type Rig } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';

const DEVICES = [
  { deviceId: 'often', intervalMs: 5 * MINUTE_MS },
  { deviceId: 'seldom', intervalMs: HOUR_MS },
];

const dayOf = (ms: number): number => Math.floor(ms / DAY_MS);

describe.runIf(influxdAvailable())('a field of another type in the bucket', () => {
  const bench = sharedBench(openBench);

  /** A rig whose bucket has a shard for each day, and texts in some of them. */
  const rigOf = async (days: readonly number[]): Promise<Rig> => {
    const rig = await openRig(bench, { world: worldOf(DEVICES, 6 * DAY_MS), historyMs: 4 * DAY_MS });
    const policy = 'SHARD DURATION 1d DEFAULT';
    await bench.influxd.query('', `ALTER RETENTION POLICY autogen ON ${rig.database} ${policy}`);
    for (const day of days) {
      const at = BigInt(day * DAY_MS + HOUR_MS) * 1_000_000n;
      await bench.influxd.write(rig.database, `telemetry,device_id=other value="text" ${at}`);
    }
    return rig;
  };

  const quarantinedDays = (rig: Rig): Record<number, number> => {
    const db = new Database(`${rig.dataDir}/tidemark.db`);
    try {
      const lines = db.prepare("SELECT content FROM quarantine WHERE source = 'destination'").pluck().all() as string[];
      const counts: Record<number, number> = {};
      for (const line of lines) {
        expect(line).toMatch(/^telemetry,.* value=/);
        const day = dayOf(Number(BigInt(line.slice(line.lastIndexOf(' ') + 1)) / 1_000_000n));
        counts[day] = (counts[day] ?? 0) + 1;
      }
      return counts;
    } finally {
      db.close();
    }
  };

  const countsOf = async (rig: Rig): Promise<Record<string, number>> => {
    const names = ['device', 'workspace', 'coverage_hour'];
    const rows = await Promise.all(names.map((name) => bench.influxd.query(rig.database, `SELECT * FROM ${name}`)));
    return Object.fromEntries(names.map((name, nth) => [name, rows[nth]?.length ?? 0]));
  };

  test('of one day sets the readings of that day aside, and no others', async () => {
    const bad = dayOf(NOW_MS) - 2;
    using rig = await rigOf([bad]);
    const { summary } = await rig.once();
    expect(summary.destinations).toMatchObject([{ pending_points: 0, blocked_reason: null }]);
    const counts = quarantinedDays(rig);
    expect(Object.keys(counts)).toEqual([String(bad)]);
    const verdict = await rig.verdict(NOW_MS);
    expect(verdict.invented).toEqual([]);
    expect(verdict.missing).toHaveLength(counts[bad] ?? 0);
    expect(verdict.expected).toBeGreaterThan(2 * verdict.missing.length);
    expect((await countsOf(rig))['coverage_hour']).toBeGreaterThan(2 * 94);
  });

  test('of today, met after a restart, lets the days before and all other points pass', async () => {
    const today = dayOf(NOW_MS);
    using rig = await rigOf([today]);
    // Nothing is delivered yet, so that the next process has accepted lines of no kind.
    bench.proxy.setFaults(() => ({ kind: 'answer', status: 503, body: '{"code":"unavailable","message":"busy"}' }));
    await rig.once();
    bench.proxy.setFaults(null);
    const { summary } = await rig.once();
    expect(summary.destinations).toMatchObject([{ pending_points: 0, blocked_reason: null }]);
    expect(Object.keys(quarantinedDays(rig))).toEqual([String(today)]);
    expect((await rig.verdict(NOW_MS, { toNs: BigInt(today * DAY_MS) * 1_000_000n })).missing).toEqual([]);
  });

  test('of all days sets all readings aside, and the other points arrive', async () => {
    using rig = await rigOf([0, 1, 2, 3, 4].map((back) => dayOf(NOW_MS) - back));
    const { summary } = await rig.once();
    expect(summary.destinations).toMatchObject([{ pending_points: 0, blocked_reason: null }]);
    expect(summary.destinations[0]?.quarantined).toBeGreaterThan(1000);
    const counts = await countsOf(rig);
    expect(counts).toMatchObject({ device: 2, workspace: 1 });
    expect(counts['coverage_hour']).toBeGreaterThan(2 * 94);
  });
});
