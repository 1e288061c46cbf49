/**
 * `--verify` against a real InfluxDB: what is deleted, changed and added behind the program's back is found by device
 * and day, and repaired from the archive without a request to the API.
 */
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { comparisonWork } from '../../../src/commands/verify/command.ts';
import type { Progress } from '../../../src/commands/verify/compare.ts';
import { verifyText } from '../../../src/commands/verify/text.ts';
import type { Sink } from '../../../src/core/ports.ts';
import { Secret } from '../../../src/core/secret.ts';
import { missingChangeOf } from '../../../src/core/state/job-args.ts';
import type { PointSource } from '../../../src/core/state/verify.ts';
import { HOUR_MS, MINUTE_MS } from '../../../src/core/time.ts';
import { sensorsOf } from '../../../src/sim/devices.ts';
import type { World } from '../../../src/sim/world.ts';
import { openStore } from '../../../src/store/store.ts';
import { influxdAvailable } from '../../support/influxd.ts';
import { startInfluxdb3 } from '../../support/influxdb3.ts';
import { NOW_MS, openBench, openRig, type Rig } from '../../support/rig.ts';
import { sharedBench } from '../../support/shared-bench.ts';
import { createWorld, type DeviceSpec } from '../../support/trait-world.ts';
import {
  clearArchive,
  destinationAt,
  influxPlace,
  inState,
  type Place,
  requestsOf,
  type Verified,
  verifyAt,
} from './support.ts';

const HISTORY_MS = 40 * HOUR_MS;

const bench = sharedBench(openBench);

const DEVICES: DeviceSpec[] = [
  { deviceId: 'tied', intervalMs: 2 * MINUTE_MS, traits: ['ties'], sensors: sensorsOf(2) },
  {
    deviceId: 'od,d =d"e\\vi\'ce',
    intervalMs: 4 * MINUTE_MS,
    traits: ['hostile', 'oddValues', 'ties'],
    sensors: sensorsOf(1),
  },
  { deviceId: 'fast', intervalMs: 30_000, jitter: 0.9, sensors: sensorsOf(1) },
];

function worldOf(precision: World['precision'] = 'ns'): (nowMs: number) => World {
  return (originMs) => createWorld({ seed: 71, originMs, historyMs: 2 * HISTORY_MS, devices: DEVICES, precision });
}

/** A rig that has archived and delivered two days. */
async function filled(precision: World['precision'] = 'ns'): Promise<{ rig: Rig; place: Place }> {
  const rig = await openRig(bench, { world: worldOf(precision), historyMs: HISTORY_MS });
  const place = influxPlace(bench, rig.database);
  const { summary } = await rig.once({ destinations: [destinationAt(rig, place)] });
  expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0 });
  return { rig, place };
}

/** One that its tests leave as they find it: equal, with nothing in its state but what its run has written. */
let whole: { readonly rig: Rig; readonly place: Place };
beforeAll(async () => {
  if (influxdAvailable()) whole = await filled();
});
afterAll(() => whole?.rig[Symbol.dispose]());

const EQUAL = { outcome: 'equal', missing: 0, different: 0, extra: 0, unverifiable: 0, differences: [] };
const ns = (ms: number): string => `${BigInt(ms) * 1_000_000n}`;

/** A progress by the day, not only by the device, that never goes back and ends with all devices and points. */
function expectGradual(shown: readonly Progress[], points: number): void {
  expect(shown.length, 'by the day, not only by the device').toBeGreaterThan(2 * DEVICES.length);
  expect(shown.map(({ share }) => share)).toEqual(shown.map(({ share }) => share).toSorted((a, b) => a - b));
  expect(shown[0]?.points).toBeGreaterThan(0);
  expect(shown.at(-1)).toMatchObject({ share: 1, devices: DEVICES.length, points: points });
}

describe.runIf(influxdAvailable())('a filled InfluxDB', () => {
  test('is equal, with ties, flags, texts and names that need every escape', async () => {
    const { rig, place } = whole;
    const before = requestsOf(rig);
    const shown: Progress[] = [];
    const { verdict } = await verifyAt(rig, place, { onProgress: (far) => shown.push(far) });
    expectGradual(shown, verdict.points_compared);
    expect(verdict).toMatchObject({ ...EQUAL, devices_compared: 3, unknown_devices: [], kind: 'influxdb' });
    expect(verdict.points_compared).toBeGreaterThan(8000);
    expect(verdict.days_partly_covered).toBeGreaterThan(0);
    const stored = await bench.influxd.query(rig.database, 'SELECT count(*) FROM telemetry');
    const counted = ['count_value', 'count_flag', 'count_text'].reduce(
      (sum, key) => sum + Number(stored[0]?.[key] ?? 0),
      0,
    );
    expect(verdict.points_compared).toBe(counted);
    expect(requestsOf(rig)).toBe(before);
  });

  test('the progress of a comparison of some devices counts these alone', async () => {
    const { rig, place } = whole;
    const shown: Progress[] = [];
    const { verdict } = await verifyAt(rig, place, {
      deviceIds: ['fast', 'tied'],
      onProgress: (far) => shown.push(far),
    });
    const last = shown.map((each) => comparisonWork('influx', each)).at(-1);
    const points = verdict.points_compared.toLocaleString('en-US');
    expect(last).toMatchObject({ share: 1, text: `2/2 devices of influx, ${points} points` });
  });

  test('deleted points are found by device and day, and repaired from the archive without a request', async () => {
    const { rig, place } = whole;
    const before = requestsOf(rig);
    const { influxd } = bench;
    const cut = ns(NOW_MS - 20 * HOUR_MS);
    const [count] = await influxd.query(
      rig.database,
      `SELECT count(value) FROM telemetry WHERE device_id = 'fast' AND time < ${cut}`,
    );
    await influxd.query(rig.database, `DELETE FROM telemetry WHERE device_id = 'fast' AND time < ${cut}`);
    await influxd.query(
      rig.database,
      `DELETE FROM telemetry WHERE device_id = 'tied' AND time > ${ns(NOW_MS - HOUR_MS)}`,
    );
    const shown: Progress[] = [];
    const { verdict } = await verifyAt(rig, place, { onProgress: (far) => shown.push(far) });
    expectGradual(shown, verdict.points_compared);
    expect(verdict).toMatchObject({ outcome: 'different', different: 0, extra: 0, pending: 0, repaired: 0 });
    const ofFast = verdict.differences.filter(({ device_id }) => device_id === 'fast');
    expect(ofFast.reduce((sum, { missing }) => sum + missing, 0)).toBe(Number(count?.count));
    expect(new Set(verdict.differences.map(({ device_id }) => device_id))).toEqual(new Set(['fast', 'tied']));
    expect(new Set(ofFast.map(({ day }) => day))).toEqual(new Set(['2026-06-13', '2026-06-14']));
    expect(verdict.differences.every(({ not_in_archive }) => not_in_archive === 0)).toBe(true);

    const repaired = await verifyAt(rig, place, { repair: true });
    expect(repaired.verdict).toMatchObject({ ...EQUAL, repaired: verdict.missing });
    expect((await verifyAt(rig, place)).verdict).toMatchObject(EQUAL);
    const { missing, invented } = await rig.verdict(NOW_MS);
    expect([missing.slice(0, 3), invented.slice(0, 3)]).toEqual([[], []]);
    expect(requestsOf(rig)).toBe(before);
  });

  /** As InfluxDB 3 does: whatever is older than the retention is accepted, and not shown. */
  const hiding = (hours: number, also: (stamp: bigint) => boolean = () => false) => ({
    source: (source: PointSource): PointSource => ({
      ...source,
      points: (of, take, signal) => {
        const from = BigInt(ns(NOW_MS - hours * HOUR_MS));
        const shown: typeof take = (stamp, sensor, field) => {
          if (BigInt(stamp) >= from && !also(BigInt(stamp))) take(stamp, sensor, field);
        };
        return source.points(of, shown, signal);
      },
    }),
  });
  const record = (rig: Rig, { hidden, estimate }: Pick<Verified, 'hidden' | 'estimate'>) => {
    const open = openStore(rig.dataDir);
    const args = { windows: [], destination: 'influx', found: [], missed: [], hidden, estimate };
    open.store.amendMissing(1, missingChangeOf(args));
    const sums = open.store.missingSums(1);
    open.close();
    return sums;
  };

  test('points that a database hides for their age are known after two comparisons an hour apart', async () => {
    const { rig, place } = await filled();
    using _ = rig;
    const first = await verifyAt(rig, place, hiding(24));
    expect(first).toMatchObject({ hidden: [], estimate: expect.anything() });
    expect(record(rig, first)).toEqual([]);
    await rig.clock.sleep(2 * HOUR_MS, new AbortController().signal);
    // The database hides two hours more by now; one that has lost the points shows the same as before.
    const lost = await verifyAt(rig, place, hiding(24));
    expect(lost.verdict).toMatchObject({ outcome: 'different', known_missing: 0, missing: first.verdict.missing });
    const { verdict, ...second } = await verifyAt(rig, place, hiding(22));
    expect(verdict).toMatchObject({ ...EQUAL, hidden_before: expect.any(String) });
    expect(verdict.known_missing).toBeGreaterThan(first.verdict.missing);
    expect(record(rig, second)).toMatchObject([{ reason: 'beyond_retention', points: verdict.known_missing }]);
    expect(await verifyAt(rig, place, hiding(22))).toMatchObject({ verdict: EQUAL, hidden: [], estimate: null });
  });

  test('points that a database accepts and hides for their age are distinguished from lost ones, and a repair ends', async () => {
    const { rig, place } = await filled();
    using _ = rig;
    const first = await verifyAt(rig, place, hiding(24));
    expect(first.verdict).toMatchObject({ outcome: 'different', known_missing: 0, hidden_before: expect.any(String) });
    expect(first.verdict.missing).toBeGreaterThan(1000);
    const report = { from: null, to: null, repair: false, destinations: [first.verdict], sample: null };
    expect(verifyText(report).replaceAll(/\s+/g, ' ')).toContain('probably shows nothing older than its retention.');

    // One newer point is missing as well: then it is no retention, and everything stays a difference.
    const newer = BigInt(ns(NOW_MS - 12 * HOUR_MS));
    const lost = hiding(24, (stamp) => stamp > newer && stamp < newer + 600_000_000_000n);
    const unclear = await verifyAt(rig, place, { ...lost, repair: true });
    expect(unclear.verdict).toMatchObject({ outcome: 'different', known_missing: 0, hidden_before: null });
    expect(unclear.hidden).toEqual([]);

    const { verdict, hidden, estimate } = await verifyAt(rig, place, { ...hiding(24), repair: true });
    expect(verdict).toMatchObject({ ...EQUAL, repaired: 0, known_missing: first.verdict.missing });
    expect(hidden.reduce((sum, [, , , points]) => sum + points, 0)).toBe(first.verdict.missing);
    const [sum] = record(rig, { hidden, estimate });
    expect(sum).toMatchObject({ reason: 'beyond_retention', points: first.verdict.missing, devices: 3 });

    // From now on it is known; what has become too old since is no loss either.
    for (const hours of [24, 22]) {
      const again = await verifyAt(rig, place, hiding(hours));
      expect(again.verdict, `${hours} h`).toMatchObject({
        ...EQUAL,
        hidden_before: hours === 24 ? null : expect.any(String),
      });
    }
  });

  test('where all points are older than the retention of an InfluxDB 3, a repair records them as missing and ends', async () => {
    await using server = await startInfluxdb3({ databases: ['home'] });
    const { url, token } = server;
    const options = { name: 'influx', url, token: new Secret(token), org: '', bucket: 'home', timeoutMs: 10_000 };
    const place: Place = { kind: 'influxdb', options };
    using rig = await openRig(bench, { world: worldOf(), historyMs: HISTORY_MS });
    await rig.once({ destinations: [destinationAt(rig, place)] });
    // It has accepted them all and shows none; right after the sync that is no evidence.
    const young = await verifyAt(rig, place, { repair: true });
    expect(young).toMatchObject({ hidden: [], verdict: { outcome: 'different', known_missing: 0 } });
    await rig.clock.sleep(2 * HOUR_MS, new AbortController().signal);
    const looked = await verifyAt(rig, place);
    expect(looked).toMatchObject({ hidden: [], estimate: null, verdict: { outcome: 'different', known_missing: 0 } });

    // A point that is rejected for another reason than its age shows nothing about the others.
    const bad = server.stored.find((line) => line.startsWith('telemetry,')) ?? '';
    const refused = { kind: 'rejected', message: 'HTTP 400: bad', retention: false } as const;
    const refusing = (sink: Sink): Sink => ({
      name: sink.name,
      write: async (lines, signal) => (lines.includes(bad) ? refused : await sink.write(lines, signal)),
    });
    const rejected = await verifyAt(rig, place, { repair: true, sink: refusing });
    expect(rejected).toMatchObject({ hidden: [], verdict: { rejected_again: 1, known_missing: 0 } });

    const { verdict, hidden, estimate } = await verifyAt(rig, place, { repair: true });
    expect(verdict).toMatchObject({ ...EQUAL, repaired: 0, known_missing: looked.verdict.missing });
    const report = { from: null, to: null, repair: true, destinations: [verdict], sample: null };
    expect(verifyText(report).replaceAll(/\s+/g, ' ')).toContain(
      'The database accepts the points and shows none of them',
    );
    const [sum] = record(rig, { hidden, estimate });
    expect(sum).toMatchObject({ reason: 'beyond_retention', points: looked.verdict.missing, devices: 3 });
    expect((await verifyAt(rig, place)).verdict).toMatchObject({ ...EQUAL, known_missing: looked.verdict.missing });
  });

  test('a changed value is reported as different, though the counts agree, and corrected', async () => {
    const { rig, place } = whole;
    const [row] = await bench.influxd.query(
      rig.database,
      `SELECT * FROM telemetry WHERE device_id = 'fast' AND time > ${ns(NOW_MS - 3 * HOUR_MS)} LIMIT 1`,
    );
    const { sensor, device_name, workspace_id, time, value } = row ?? {};
    const series = `telemetry,device_id=fast,sensor=${sensor},device_name=${device_name},workspace_id=${workspace_id}`;
    expect(await bench.influxd.write(rig.database, `${series} value=${Number(value) + 1e-9} ${time}`)).toBe(204);
    const shown: Progress[] = [];
    const { verdict } = await verifyAt(rig, place, { onProgress: (far) => shown.push(far) });
    expectGradual(shown, verdict.points_compared);
    expect(verdict).toMatchObject({ outcome: 'different', missing: 0, different: 1, extra: 0 });
    expect(verdict.differences).toMatchObject([{ device_id: 'fast', day: '2026-06-15', different: 1 }]);
    expect((await verifyAt(rig, place, { repair: true })).verdict).toMatchObject({ ...EQUAL, repaired: 1 });
  });

  test('points that are not ours are reported as extra and never deleted; an unknown device is named', async () => {
    const { rig, place } = await filled();
    using _ = rig;
    const [row] = await bench.influxd.query(rig.database, `SELECT * FROM telemetry WHERE device_id = 'fast' LIMIT 1`);
    const tags = `sensor=t,device_name=x,workspace_id=${row?.workspace_id}`;
    const at = ns(NOW_MS - 5 * HOUR_MS);
    const old = ns(NOW_MS - 30 * 24 * HOUR_MS);
    const lines = [
      `telemetry,device_id=fast,${tags} value=1 ${at}`,
      `telemetry,device_id=stranger,${tags} value=1 ${at}`,
      `telemetry,device_id=fast,sensor=t,device_name=x,workspace_id=another value=1 ${at}`,
      `telemetry,device_id=fast,${tags} text="left" ${old}`,
    ];
    expect(await bench.influxd.write(rig.database, lines.join('\n'))).toBe(204);
    const { verdict } = await verifyAt(rig, place, { repair: true });
    expect(verdict).toMatchObject({
      outcome: 'different',
      missing: 0,
      different: 0,
      extra: 1,
      extra_in_gaps: 0,
      repaired: 0,
    });
    expect(verdict.unknown_devices).toEqual(['stranger']);
    expect(verdict.differences).toMatchObject([{ device_id: 'fast', day: '2026-06-15', extra: 1 }]);
    // With a requested range, days without archived points are compared too.
    const wide = await verifyAt(rig, place, { from: BigInt(old), deviceIds: ['fast'] });
    expect(wide.verdict).toMatchObject({ extra: 2, extra_in_gaps: 1, unknown_devices: [] });
    expect(verifyText({ from: null, to: null, repair: false, destinations: [wide.verdict], sample: null })).toContain(
      '1 of them lies in ranges that are not covered yet',
    );
  });

  test('days that the archive keeps no more are proven by their sums alone', async () => {
    const { rig, place } = await filled();
    using _ = rig;
    clearArchive(rig);
    expect((await verifyAt(rig, place)).verdict).toMatchObject(EQUAL);
    const [row] = await bench.influxd.query(
      rig.database,
      `SELECT * FROM telemetry WHERE device_id = 'fast' AND time > ${ns(NOW_MS - 30 * HOUR_MS)} LIMIT 1`,
    );
    const { sensor, device_name, workspace_id, time } = row ?? {};
    const series = `telemetry,device_id=fast,sensor=${sensor},device_name=${device_name},workspace_id=${workspace_id}`;
    await bench.influxd.write(rig.database, `${series} value=-4242 ${time}`);
    await bench.influxd.query(rig.database, `DELETE FROM telemetry WHERE device_id = 'tied'`);
    const { verdict, sums } = await verifyAt(rig, place, { repair: true });
    expect(verdict.differences.filter(({ device_id }) => device_id === 'fast')).toMatchObject([
      { day: '2026-06-14', missing: 0, different: 1, not_in_archive: 1 },
    ]);
    const ofTied = verdict.differences.filter(({ device_id }) => device_id === 'tied');
    expect(ofTied.length).toBeGreaterThan(1);
    // The offset beside its instant is remembered for ever, and was sent again.
    expect(verdict.repaired).toBeGreaterThan(0);
    expect(ofTied.reduce((sum, { archived_points }) => sum + archived_points, 0)).toBe(
      verdict.repaired + ofTied.reduce((sum, { missing }) => sum + missing, 0),
    );
    expect(ofTied.every(({ missing, not_in_archive }) => missing === not_in_archive)).toBe(true);
    expect(new Set(sums.cleared.map(({ deviceId }) => deviceId))).toEqual(new Set(['fast', 'tied']));
  });

  test('pending, quarantined and missing points are reported as such and are no difference', async () => {
    const { rig, place } = await filled();
    using _ = rig;
    const { influxd } = bench;
    const line = `telemetry,device_id=fast,sensor=t,device_name=fast,workspace_id=w value=1 ${ns(NOW_MS - HOUR_MS)}`;
    expect(line).toContain('fast');
    const [quarantined] = await influxd.query(
      rig.database,
      `SELECT * FROM telemetry WHERE device_id = 'fast' AND time > ${ns(NOW_MS - 2 * HOUR_MS)} LIMIT 1`,
    );
    const { sensor, device_name, workspace_id, time, value } = quarantined ?? {};
    const refused = `telemetry,device_id=fast,sensor=${sensor},device_name=${device_name},workspace_id=${workspace_id} value=${value} ${time}`;
    await influxd.query(rig.database, `DELETE FROM telemetry WHERE device_id = 'fast' AND time = ${time}`);
    const [lost] = await influxd.query(
      rig.database,
      `SELECT count(*) FROM telemetry WHERE device_id = 'tied' AND time < ${ns(NOW_MS - 30 * HOUR_MS)}`,
    );
    await influxd.query(
      rig.database,
      `DELETE FROM telemetry WHERE device_id = 'tied' AND time < ${ns(NOW_MS - 30 * HOUR_MS)}`,
    );
    inState(
      rig,
      `INSERT INTO quarantine (destination_id, source, content, reason, at_ms) VALUES (1, 'destination', '${refused}', 'no', 1);
       INSERT INTO missing VALUES (1, 'tied', 'beyond_retention', 0, ${ns(NOW_MS - 30 * HOUR_MS)}, 100000);`,
    );
    const shown: Progress[] = [];
    const { verdict } = await verifyAt(rig, place, { onProgress: (far) => shown.push(far) });
    expectGradual(shown, verdict.points_compared);
    const others = verdict.differences.reduce((sum, { missing }) => sum + missing, 0);
    const gone = ['count_value', 'count_flag', 'count_text'].reduce((sum, key) => sum + Number(lost?.[key] ?? 0), 0);
    expect(verdict).toMatchObject({ quarantined: 1, known_missing: gone });
    // The other sensors of that instant.
    expect(verdict.missing).toBe(others);
    await verifyAt(rig, place, { repair: true });
    expect((await verifyAt(rig, place)).verdict).toMatchObject({ ...EQUAL, quarantined: 1, known_missing: gone });

    inState(rig, 'DELETE FROM quarantine; DELETE FROM missing; DELETE FROM position');
    const pending = await verifyAt(rig, place);
    expect(pending.verdict).toMatchObject({ ...EQUAL, pending: gone + 1 });
  });

  test.each(['s', 'ms', 'us'] as const)('times served in %s are compared exactly', async (precision) => {
    const { rig, place } = await filled(precision);
    using _ = rig;
    expect((await verifyAt(rig, place)).verdict).toMatchObject(EQUAL);
  });

  test('points that a daemon delivers during the comparison are no difference', async () => {
    const { rig, place } = await filled();
    using _ = rig;
    const db = new Database(join(rig.dataDir, 'tidemark.db'));
    const places = db.prepare('SELECT destination_id, lane, block, line FROM position').all();
    db.prepare('DELETE FROM position').run();
    await bench.influxd.query(rig.database, `DELETE FROM telemetry WHERE device_id = 'tied'`);
    const restore = db.prepare('INSERT OR REPLACE INTO position VALUES (@destination_id, @lane, @block, @line)');
    let asked = 0;
    const { verdict } = await verifyAt(rig, place, {
      source: (source) => ({
        ...source,
        points: async (of, take, signal) => {
          const problem = await source.points(of, take, signal);
          asked += 1;
          // Delivered at the very moment after the answer to the first look at single points.
          if (asked === 2) for (const each of places) restore.run(each);
          return problem;
        },
      }),
      deviceIds: ['tied'],
    });
    db.close();
    expect(asked).toBeGreaterThan(2);
    const { missing, pending } = verdict;
    expect(pending).toBeGreaterThan(100);
    // The days that were looked at after that are truly missing.
    expect(missing).toBeGreaterThan(100);
  });

  test('stopped at any query it reports that, and run again it finds the same', async () => {
    const { rig, place } = whole;
    await bench.influxd.query(rig.database, `DELETE FROM telemetry WHERE time > ${ns(NOW_MS - 10 * HOUR_MS)}`);
    const found = await verifyAt(rig, place);
    for (const nth of [1, 3, 5]) {
      const stop = new AbortController();
      let asked = 0;
      const { verdict } = await verifyAt(rig, place, {
        signal: stop.signal,
        source: (source) => ({
          ...source,
          points: async (of, take, signal) => {
            asked += 1;
            if (asked === nth) stop.abort(new Error('stopped'));
            return await source.points(of, take, signal);
          },
        }),
      });
      expect(verdict).toMatchObject({ outcome: 'unfinished', reason: 'interrupted' });
    }
    for (const nth of [1, 2]) {
      const stop = new AbortController();
      let sent = 0;
      const { verdict } = await verifyAt(rig, place, {
        repair: true,
        signal: stop.signal,
        sink: (sink) => ({
          ...sink,
          write: async (lines, signal) => {
            sent += 1;
            const answer = await sink.write(lines, signal);
            // Written, and killed before the answer.
            if (sent === nth) stop.abort(new Error('stopped'));
            return answer;
          },
        }),
      });
      expect(verdict).toMatchObject({ outcome: 'unfinished', repaired: 0 });
    }
    const repaired = await verifyAt(rig, place, { repair: true });
    expect(repaired.verdict).toMatchObject({ ...EQUAL });
    expect(repaired.verdict.repaired).toBeLessThan(found.verdict.missing);
    const { missing, invented } = await rig.verdict(NOW_MS);
    expect([missing.slice(0, 3), invented.slice(0, 3)]).toEqual([[], []]);
  });

  test('a query is repeated while a database fails for a moment; one that stays away ends it', async () => {
    const { rig, place } = whole;
    const failing = (fails: (nth: number) => boolean) => {
      let nth = 0;
      return (source: PointSource): PointSource => ({
        ...source,
        points: async (of, take, signal) => {
          nth += 1;
          const problem = await source.points(of, take, signal);
          return fails(nth) ? { kind: 'down', message: 'gone away', hint: '' } : problem;
        },
      });
    };
    expect((await verifyAt(rig, place, { source: failing((nth) => nth === 2) })).verdict).toMatchObject(EQUAL);
    const away = await verifyAt(rig, place, { source: failing((nth) => nth > 1), sleeps: false });
    expect(away.verdict).toMatchObject({ outcome: 'unfinished', reason: 'gone away', devices_compared: 1 });
  });
});
