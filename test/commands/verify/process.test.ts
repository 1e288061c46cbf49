/**
 * `--verify` as a process, with a real InfluxDB: its output and exit codes, alone and beside a daemon, and the requests
 * for points that the archive no longer has.
 */
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HOUR_MS } from '../../../src/core/time.ts';
import { openStore } from '../../../src/store/store.ts';
import { KEY, openBench, openStage, type Stage, TOKEN, until } from '../../process/support.ts';
import type { Bench } from '../../support/bench.ts';
import { influxdAvailable } from '../../support/influxd.ts';
import { sharedBench } from '../../support/shared-bench.ts';

const bench = sharedBench(openBench);

const NO_API = { TIDEMARK_API_URL: undefined, TIDEMARK_API_KEY: undefined };

async function filled(on: Bench = bench, historyMs = 2 * HOUR_MS): Promise<Stage> {
  const stage = await openStage({ bench: on, historyMs });
  const { code, stderr } = await stage.run(['--once']);
  expect(code, stderr).toBe(0);
  return stage;
}

async function countOf({ database }: Stage, where = ''): Promise<number> {
  const [row] = await bench.influxd.query(database, `SELECT count(value) FROM telemetry ${where}`);
  return Number(row?.count ?? 0);
}

/** Clears every acknowledged block away, as maintenance does once they are old. */
function clearArchive({ dataDir }: Stage): void {
  const { maintenance, close } = openStore(dataDir);
  while (maintenance.clear({ active: [1], configured: [1], beforeMs: Number.MAX_SAFE_INTEGER }).blocks > 0);
  close();
}

function lacksIn({ dataDir }: Stage, reason = 'cleared'): unknown[] {
  const db = new Database(`${dataDir}/tidemark.db`, { readonly: true });
  try {
    return db.prepare('SELECT device_id, sum(points) AS points FROM missing WHERE reason = ? GROUP BY 1').all(reason);
  } finally {
    db.close();
  }
}

const asideIn = (stage: Stage): unknown[] => lacksIn(stage, 'skipped_destination');

/** Changes the state behind the program's back. */
function inState({ dataDir }: Stage, sql: string): void {
  const db = new Database(`${dataDir}/tidemark.db`);
  try {
    db.exec(sql);
  } finally {
    db.close();
  }
}

const requestsOf = ({ simulator }: Stage): number => simulator.log.requests.length;

describe.runIf(influxdAvailable())('--verify', () => {
  /** For tests that leave it equal, or change nothing but what no other one of them looks at. */
  let whole: Stage;
  beforeAll(async () => {
    whole = await filled();
  });
  afterAll(async () => await whole?.[Symbol.asyncDispose]());

  test('points that a database hides for their age are kept for the next run, recorded by that, and shown by --status', async () => {
    await using stage = await filled();
    const cut = BigInt(Date.now() - 90 * 60_000) * 1_000_000n;
    await bench.influxd.query(stage.database, `DELETE FROM telemetry WHERE time < ${cut}`);
    const first = await stage.run(['--verify'], { env: NO_API });
    expect([first.code, first.stderr]).toEqual([1, '']);
    expect(first.stdout.replaceAll(/\s+/g, ' ')).toContain('Run --verify again in an hour to confirm that');
    // As if it had been an hour ago.
    const hour = `json_extract(value, '$.endedMs') - 3601000`;
    const moved = ['beganMs', 'endedMs'].map((key) => `'$.${key}', ${hour}`).join(', ');
    inState(stage, `UPDATE fact SET value = json_set(value, ${moved}, '$.shortestMs', 0) WHERE key LIKE 'retention_%'`);
    const second = await stage.run(['--verify'], { env: NO_API });
    expect([second.code, second.stderr]).toEqual([0, '']);
    expect(second.stdout).toMatch(/points already recorded as missing there/);
    expect(lacksIn(stage, 'beyond_retention')).toHaveLength(3);
    const { stdout } = await stage.run(['--status']);
    expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(
      /[\d,]+ points of [\d,]+ devices? missing in influx: beyond its retention/,
    );
  });

  test('alone: equal, then different, then repaired, without a key and without a request', async () => {
    const stage = whole;
    const before = requestsOf(stage);
    const equal = await stage.run(['--verify'], { env: NO_API });
    expect([equal.code, equal.stderr]).toEqual([0, '']);
    expect(equal.stdout).toMatch(/^Telemetry: [\d-]{10}(?: to [\d-]{10} \(whole days| \(whole day), UTC\)\n/);
    expect(equal.stdout).toMatch(/\ninflux \(InfluxDB\): no differences\n/);
    const held = await countOf(stage);
    await bench.influxd.query(stage.database, `DELETE FROM telemetry WHERE device_id = 'walk'`);
    const lost = held - (await countOf(stage));
    expect(lost).toBeGreaterThan(100);

    const reported = await stage.run(['--verify'], { env: NO_API });
    expect([reported.code, reported.stderr]).toEqual([1, '']);
    expect(reported.stdout).toContain(`influx (InfluxDB): ${lost.toLocaleString('en-US')} missing\n`);
    expect(reported.stdout).toMatch(/\n {2}\d{4}-\d\d-\d\d +[\d,]+ +0 +0 {2}walk\n/);
    expect(reported.stdout.replaceAll(/\s+/g, ' ')).toContain(
      '--verify --repair sends the missing and different points again',
    );
    expect(Math.max(...reported.stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
    const json = await stage.run(['--verify', '--json', '--device', 'walk'], { env: NO_API });
    expect(json.code).toBe(1);
    expect(JSON.parse(json.stdout)).toMatchObject({
      exit_code: 1,
      sample: null,
      destinations: [{ name: 'influx', outcome: 'different', missing: lost, devices_compared: 1, to_fetch: null }],
    });
    const other = await stage.run(['--verify', '--device', 'tied', '--device', 'burst'], { env: NO_API });
    expect(other.code, other.stdout).toBe(0);

    const repaired = await stage.run(['--verify', '--repair', '--destination', 'influx'], { env: NO_API });
    expect(repaired.code, repaired.stdout + repaired.stderr).toBe(0);
    expect(repaired.stdout).toContain(`repaired: ${lost.toLocaleString('en-US')} points sent again`);
    expect(await countOf(stage)).toBe(held);
    expect((await stage.run(['--verify'], { env: NO_API })).code).toBe(0);
    expect(requestsOf(stage)).toBe(before);
    for (const { stdout, stderr } of [equal, reported, json, repaired]) expect(stdout + stderr).not.toContain(TOKEN);
  });

  test('cleared points are reported with their cost and are fetched again only with a key', async () => {
    await using stage = await filled();
    clearArchive(stage);
    const held = await countOf(stage);
    await bench.influxd.query(stage.database, `DELETE FROM telemetry WHERE device_id = 'walk' OR device_id = 'tied'`);
    const before = requestsOf(stage);
    const reported = await stage.run(['--verify'], { env: NO_API });
    expect(reported.code).toBe(1);
    expect(reported.stdout.replaceAll(/\s+/g, ' ')).toMatch(
      /points of 2 devices are no longer in the archive: requesting them again takes about \d+ requests \([\d,]+ readings\)/,
    );
    const without = await stage.run(['--verify', '--repair'], { env: NO_API });
    expect(without.code).toBe(1);
    expect(without.stderr).toMatch(/the missing points cannot be requested again: api\.url and api\.key are not set/);
    expect(requestsOf(stage)).toBe(before);
    expect(lacksIn(stage)).toHaveLength(2);
    // A point that is known to be missing is no difference any more, and is named.
    const lacking = await stage.run(['--verify'], { env: NO_API });
    expect([lacking.code, lacking.stdout]).toEqual([
      0,
      expect.stringMatching(/points already recorded as missing there/),
    ]);

    const fetched = await stage.run(['--verify', '--repair', '--destination', 'influx']);
    expect(fetched.code, fetched.stdout + fetched.stderr).toBe(0);
    expect(fetched.stderr).toMatch(/requesting them again from the API/);
    expect(requestsOf(stage)).toBeGreaterThan(before);
    expect(await countOf(stage)).toBe(held);
    expect(lacksIn(stage)).toEqual([]);
    expect(JSON.parse((await stage.run(['--verify', '--json'])).stdout)).toMatchObject({
      destinations: [{ outcome: 'equal', known_missing: 0, missing: 0, extra: 0, unverifiable: 0 }],
    });
    expect(fetched.stdout + fetched.stderr).not.toContain(KEY);
  });

  test('hours of a skipped range are sent too, and stay missing where the archive was cleared', async () => {
    // In the first minutes of an hour the last one is not completely covered.
    await using stage = await filled(bench, 3 * HOUR_MS);
    const hours = async (): Promise<number> => {
      const query = "SELECT count(readings) FROM coverage_hour WHERE device_id = 'walk'";
      return Number((await bench.influxd.query(stage.database, query))[0]?.count ?? 0);
    };
    const had = await hours();
    expect(had).toBeGreaterThan(0);
    const whole = `${Date.now() - 3 * HOUR_MS}000000, ${Date.now()}000000`;
    const aside = (): void =>
      inState(
        stage,
        `INSERT INTO missing (destination_id, device_id, reason, from_ns, to_ns, points)
        VALUES (1, 'walk', 'skipped_destination', ${whole}, 5000)`,
      );
    for (const measurement of ['telemetry', 'coverage_hour']) {
      await bench.influxd.query(stage.database, `DELETE FROM ${measurement} WHERE device_id = 'walk'`);
    }
    aside();
    expect((await stage.run(['--verify', '--repair'], { env: NO_API })).code).toBe(0);
    expect([await hours(), asideIn(stage)]).toEqual([had, []]);

    await bench.influxd.query(stage.database, "DELETE FROM coverage_hour WHERE device_id = 'walk'");
    aside();
    inState(
      stage,
      `INSERT INTO cleared (device_id, kind, from_ns, to_ns, points) VALUES ('walk', 'other', ${whole}, 7)`,
    );
    for (let run = 0; run < 2; run += 1) {
      expect((await stage.run(['--verify', '--repair'], { env: NO_API })).code).toBe(0);
      expect(asideIn(stage)).toEqual([{ device_id: 'walk', points: 7 }]);
    }
  });

  test('beside a daemon it compares, repairs, and has the daemon fetch', async () => {
    await using stage = await filled();
    clearArchive(stage);
    // More history than before: something that the archive still keeps.
    const more = { TIDEMARK_LISTEN: '127.0.0.1:0', TIDEMARK_SYNC_HISTORY: '4h' };
    const before = requestsOf(stage);
    const daemon = stage.start([], { env: more });
    await until('it is there', () => /status page|Tidemark started/i.test(daemon.stderr()));
    await until('it has read further back', () => requestsOf(stage) > before + 8);
    const equal = await stage.run(['--verify'], { env: NO_API });
    expect(equal.code, equal.stdout + equal.stderr).toBe(0);
    await bench.influxd.query(stage.database, `DELETE FROM telemetry WHERE device_id = 'tied'`);
    const repaired = await stage.run(['--verify', '--repair'], { env: NO_API });
    expect(repaired.code, repaired.stdout + repaired.stderr).toBe(0);
    expect(repaired.stderr).toMatch(/A daemon uses this state; it runs the job/);
    const sampled = await stage.run(['--verify', '--sample', '3']);
    expect(sampled.code, sampled.stdout + sampled.stderr).toBe(0);
    expect(sampled.stdout).toMatch(/Sample: 3 ranges read again from the API/);
    expect((await stage.run(['--verify'])).code).toBe(0);
    daemon.child.kill('SIGTERM');
    expect((await daemon.ended).code).toBe(0);
  });

  test('a sample reports served readings that are not archived, and commits them with --repair', async () => {
    const stage = whole;
    const same = await stage.run(['--verify', '--sample', '4']);
    expect(same.code, same.stdout + same.stderr).toBe(0);
    expect(same.stdout.replaceAll(/\s+/g, ' ')).toMatch(
      /Sample: 4 ranges read again from the API \(.*\): the same as archived/,
    );
    const db = new Database(`${stage.dataDir}/tidemark.db`);
    const rows = db.prepare("SELECT seq, data FROM block WHERE device_id = 'walk' AND first_ns IS NOT NULL").all() as {
      seq: number;
      data: Buffer;
    }[];
    for (const { seq, data } of rows) {
      const lines = zstdDecompressSync(data).toString().split('\n');
      const archived = lines.filter((line, index) => !line.startsWith('telemetry') || index % 10 !== 3);
      db.prepare('UPDATE block SET data = ?, lines = ? WHERE seq = ?').run(
        zstdCompressSync(archived.join('\n')),
        archived.length,
        seq,
      );
    }
    db.close();
    const args = ['--verify', '--sample', '5', '--device', 'walk', '--json'];
    const reported = await stage.run(args);
    expect(reported.code).toBe(1);
    const { sample } = JSON.parse(reported.stdout);
    expect(sample).toMatchObject({ windows: 5, gone: 0, late_readings: 0, reason: null });
    expect(sample.missing).toBeGreaterThan(0);
    const taken = await stage.run([...args, '--repair']);
    expect(JSON.parse(taken.stdout).sample.late_readings).toBeGreaterThan(0);
  });

  test('every mistake has its own message and exit code', async () => {
    const stage = whole;
    await using empty = await openStage({ bench });
    const ends: [Stage, string[], Record<string, string | undefined>, number, RegExp][] = [
      [stage, ['--verify', '--from', 'once'], {}, 2, /--from: expected a date/],
      [stage, ['--verify', '--device', 'nobody'], {}, 2, /--device: the state has no device with that id/],
      [
        stage,
        ['--verify', '--destination', 'other'],
        {},
        2,
        /--destination: there is no database of that name\. There is influx\./,
      ],
      [stage, ['--verify', '--sample', '0'], {}, 2, /--sample: expected the number of ranges/],
      [stage, ['--verify', '--sample', 'ten'], {}, 2, /--sample: expected the number of ranges/],
      [stage, ['--verify', '--sample', '2'], NO_API, 78, /api\.key: is missing/],
      [stage, ['--verify', '--sample', '2'], { TIDEMARK_API_KEY: 'tmk_other' }, 77, /the API rejects the key/],
      [
        stage,
        ['--verify'],
        {
          TIDEMARK_INFLUX_URL: undefined,
          TIDEMARK_INFLUX_TOKEN: undefined,
          TIDEMARK_INFLUX_BUCKET: undefined,
          TIDEMARK_INFLUX_BATCH_LINES: undefined,
        },
        78,
        /nothing to compare: set influx\.url, and influx\.bucket or influx\.kind: victoriametrics/,
      ],
      [empty, ['--verify'], {}, 1, /There is no state in .* yet/],
    ];
    for (const [on, args, env, exitCode, words] of ends) {
      const { code, stdout, stderr } = await on.run(args, { env });
      expect([code, stdout], stderr).toEqual([exitCode, '']);
      expect(stderr).toMatch(words);
      expect(stderr).not.toMatch(/\n\s+at |internal error/);
    }
  });

  test('a token that may not read, a bucket that is not there, a database that is down', async () => {
    // Its proxy is closed below.
    await using own = await openBench();
    await using stage = await filled(own);
    const refused = await stage.run(['--verify'], { env: { TIDEMARK_INFLUX_TOKEN: 'another-token' } });
    expect(refused.code).toBe(1);
    expect(refused.stdout.replaceAll(/\s+/g, ' ')).toMatch(
      /could not be compared: HTTP 401.*needs read permission for influx\.bucket/,
    );
    expect(refused.stdout).not.toContain('another-token');
    await own.influxd.query('', `DROP DATABASE ${stage.database}`);
    const gone = await stage.run(['--verify']);
    expect(gone.code).toBe(1);
    expect(gone.stdout.replaceAll(/\s+/g, ' ')).toMatch(
      /could not be compared: database not found: \S+\. influx\.token/,
    );
    const never = await stage.run(['--verify'], { env: { TIDEMARK_INFLUX_BUCKET: 'elsewhere' } });
    expect([never.code, never.stdout.replaceAll(/\s+/g, ' ')]).toEqual([
      3,
      expect.stringMatching(/no point was sent to this database yet/),
    ]);
    await own.proxy.close();
    const down = await stage.run(['--verify']);
    expect(down.code, down.stdout + down.stderr).toBe(3);
    expect(down.stdout.replaceAll(/\s+/g, ' ')).toMatch(/could not be compared: the database refuses the connection/);
  });
});
