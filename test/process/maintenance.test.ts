/**
 * `--quarantine`, `--backup` and `--forget` as real processes: alone and beside a running daemon, against a real
 * InfluxDB.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { HOUR_MS } from '../../src/core/time.ts';
import { MIGRATIONS } from '../../src/store/open/migrations.ts';
import { openStore } from '../../src/store/store.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { refuse } from './refuse.ts';
import { type Ended, MAIN, openBench, openStage, type Run, type Stage, until } from './support.ts';

const ANY_PORT = { TIDEMARK_LISTEN: '127.0.0.1:0' };
/** These commands need no key and no address of the API. */
const KEYLESS = { TIDEMARK_API_URL: undefined, TIDEMARK_API_KEY: undefined };

const bench = sharedBench(openBench);

function rows<T>(file: string, sql: string): T[] {
  const db = new Database(file, { readonly: true });
  try {
    return db.prepare<[], T>(sql).all();
  } finally {
    db.close();
  }
}

const stateOf = (stage: Stage): string => join(stage.dataDir, 'tidemark.db');

async function startDaemon(stage: Stage, env: Readonly<Record<string, string>> = {}): Promise<Run> {
  const run = stage.start([], { env: { ...ANY_PORT, ...env } });
  await until('the daemon runs', () => run.stderr().includes('"status_page"') || run.child.exitCode !== null);
  expect(run.child.exitCode, run.stderr()).toBeNull();
  return run;
}

async function stop(run: Run): Promise<void> {
  run.child.kill('SIGTERM');
  expect((await run.ended).code, run.stderr()).toBe(0);
}

function expectTold({ code, stdout, stderr }: Ended, exitCode: number, words: RegExp): void {
  expect([code, stdout], stderr).toEqual([exitCode, '']);
  expect(stderr).toMatch(words);
  expect(stderr).not.toMatch(/\n\s+at |internal error/);
}

/** Each at a time of its own. */
const STARTED_MS = Date.now();
const lineAt = (n: number, device = 'walk'): string =>
  `telemetry,device_id=${device},device_name=${device},sensor=refused,workspace_id=ws value=${n} ${STARTED_MS - n}000000`;

describe('without a state, and with wrong arguments', () => {
  test('each has its own message, and nothing is created', async () => {
    await using stage = await openStage();
    const env = KEYLESS;
    const none = /There is no state in .*data_dir/;
    for (const args of [
      ['--quarantine'],
      ['--quarantine', 'retry'],
      ['--backup', 'x.db'],
      ['--forget', '--device', 'x'],
    ]) {
      expectTold(await stage.run(args, { env }), 1, none);
    }
    expect(existsSync(stage.dataDir)).toBe(false);
    const mistakes: readonly (readonly [readonly string[], RegExp])[] = [
      [['--quarantine', 'lst'], /--quarantine takes list, retry or drop\. Did you mean list\?/],
      [['--quarantine', '--from', 'soon'], /--from: expected a date/],
      [['--quarantine', '--from', '1d', '--to', '2d'], /--from: expected a time before --to/],
      [['--backup'], /--backup needs a value/],
      [['--backup', '-'], /--backup needs a value/],
      [['--backup', 'x', '--device', 'y'], /--device cannot be used with --backup/],
      [['--forget'], /--forget needs a device/],
      [['--forget', '--device', 'a', '--device', 'b'], /one device at a time/],
    ];
    for (const [args, words] of mistakes) expectTold(await stage.run(args, { env }), 2, words);
    expect((await stage.run(['--once'])).code).toBe(0);
    expectTold(await stage.run(['--quarantine', '--destination', 'sk_4242'], { env }), 2, /no database of that name/);
    const unknown = await stage.run(['--forget', '--device', 'wlak'], { env });
    expectTold(unknown, 2, /the state has no device with that id or name\. Similar: walk\./);
    expectTold(
      await stage.run(['--quarantine', 'drop'], { env }),
      2,
      /removes entries permanently, so it needs a filter/,
    );
    const { stdout } = await stage.run(['--quarantine'], { env });
    expect(stdout).toBe('The quarantine is empty.\n');
  });
});

describe.runIf(influxdAvailable())('--quarantine', () => {
  test('is listed, sent again and given up: alone, and beside a daemon as its job', async () => {
    await using stage = await openStage({ bench });
    expect((await stage.run(['--once'])).code).toBe(0);
    refuse(stage, [lineAt(1), lineAt(2), lineAt(3, 'tied')]);
    const { TIDEMARK_INFLUX_URL: url } = stage.env;
    const listed = await stage.run(['--quarantine', '--json'], { env: KEYLESS });
    expect(JSON.parse(listed.stdout)).toMatchObject({
      points: 3,
      groups: [
        {
          destination: 'influx',
          is_configured: true,
          count: 3,
          retry: expect.stringContaining('--destination influx'),
        },
      ],
    });
    // A database that is not there: nothing changes.
    const dead = { env: { ...KEYLESS, TIDEMARK_INFLUX_URL: url } };
    bench.proxy.setFaults(() => ({ kind: 'answer', status: 503, body: '{"code":"unavailable","message":"down"}' }));
    const down = await stage.run(['--quarantine', 'retry'], dead);
    expect([down.code, down.stdout], down.stderr).toEqual([
      3,
      expect.stringMatching(/influx: not sent, still in quarantine/),
    ]);
    bench.proxy.setFaults(null);
    const alone = await stage.run(['--quarantine', 'retry', '--device', 'tied'], { env: KEYLESS });
    expect([alone.code, alone.stdout], alone.stderr).toEqual([0, 'influx: 1 point accepted\n']);

    const daemon = await startDaemon(stage);
    const beside = await stage.run(['--quarantine', '--json'], { env: KEYLESS });
    expect(JSON.parse(beside.stdout)).toMatchObject({ points: 2 });
    const again = await stage.run(['--quarantine', 'retry', '--json'], { env: KEYLESS });
    expect([again.code, JSON.parse(again.stdout)], again.stderr).toMatchObject([
      0,
      { destinations: [{ accepted: 2 }] },
    ]);
    const found = await bench.influxd.query(
      stage.database,
      "SELECT count(value) FROM telemetry WHERE sensor = 'refused'",
    );
    expect(found).toMatchObject([{ count: 3 }]);
    expect(rows(stateOf(stage), 'SELECT kind, state FROM job')).toEqual([{ kind: 'quarantine-retry', state: 'done' }]);
    await stop(daemon);

    refuse(stage, [lineAt(4), lineAt(5)]);
    const second = await startDaemon(stage);
    const dropped = await stage.run(['--quarantine', 'drop', '--reason', 'as it was then'], { env: KEYLESS });
    expect([dropped.code, dropped.stdout], dropped.stderr).toEqual([
      0,
      expect.stringMatching(/influx: 2 points dropped/),
    ]);
    const status = /"status_page":"([^"]+)"/.exec(second.stderr())?.[1] ?? '';
    const report = (await (await fetch(`${status}status.json`)).json()) as { destinations: unknown };
    expect(report.destinations).toMatchObject([
      { quarantined: 0, missing: [{ reason: 'dropped', points: 2, devices: 1 }] },
    ]);
    await stop(second);
  });
});

describe.runIf(influxdAvailable())('--backup', () => {
  test('in the midst of a sync continues elsewhere: nothing missing, nothing twice', async () => {
    await using stage = await openStage({ bench, settings: { time: { latencyMs: { min: 20, max: 40 } } } });
    const daemon = await startDaemon(stage);
    await until(
      'some is committed',
      () => rows(stateOf(stage), 'SELECT 1 FROM block WHERE first_ns IS NOT NULL').length > 2,
    );
    const file = join(stage.directory, 'copy.db');
    const backup = await stage.run(['--backup', file, '--json'], { env: KEYLESS });
    expect(backup.code, backup.stderr).toBe(0);
    expect(JSON.parse(backup.stdout)).toMatchObject({
      file,
      bytes: statSync(file).size,
      state_version: MIGRATIONS.length,
    });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(daemon.child.exitCode, 'the daemon goes on').toBeNull();
    expectTold(await stage.run(['--backup', file], { env: KEYLESS }), 1, /is not overwritten/);
    // The host is lost with all that came after the copy; the bucket is not.
    daemon.child.kill('SIGKILL');
    await daemon.ended;
    const before = rows<{ n: number }>(stateOf(stage), 'SELECT sum(readings) AS n FROM day_sum')[0]?.n ?? 0;
    expect(rows<{ n: number }>(file, 'SELECT sum(readings) AS n FROM day_sum')[0]?.n).toBeLessThanOrEqual(before);
    const elsewhere = join(stage.directory, 'elsewhere');
    mkdirSync(elsewhere);
    copyFileSync(file, join(elsewhere, 'tidemark.db'));
    const startedMs = Date.now();
    const once = await stage.run(['--once'], { env: { TIDEMARK_DATA_DIR: elsewhere } });
    expect(once.code, once.stderr).toBe(0);
    const verdict = await stage.verdict(startedMs);
    expect([verdict.missing.slice(0, 5), verdict.invented.slice(0, 5)]).toEqual([[], []]);
    expect(verdict.expected).toBeGreaterThan(300);
  });

  test('leaves nothing behind where there is no room, and reports that', async () => {
    await using stage = await openStage();
    expect((await stage.run(['--once'])).code).toBe(0);
    const script = 'trap "" XFSZ; ulimit -f 100; exec "$@"';
    const env = { PATH: process.env['PATH'], TIDEMARK_DATA_DIR: stage.dataDir };
    const before = readdirSync(stage.directory);
    const run = (): unknown =>
      execFileSync('sh', ['-c', script, 'sh', process.execPath, MAIN, '--backup', 'copy.db'], {
        cwd: stage.directory,
        env,
        stdio: 'pipe',
      });
    let reported = '';
    try {
      run();
    } catch (error) {
      reported = String((error as { stderr?: unknown }).stderr);
    }
    expect(reported).toMatch(/copy\.db could not be written|no room in/);
    expect(reported).toContain('Nothing is left of it');
    expect(readdirSync(stage.directory)).toEqual(before);
  });
});

describe.runIf(influxdAvailable())('--forget', () => {
  const exclude = { TIDEMARK_SYNC_EXCLUDE: 'walk' };

  test('refuses a device that would come back at once, then removes it: beside a daemon, and alone', async () => {
    await using stage = await openStage({ bench, historyMs: 2 * HOUR_MS });
    expect((await stage.run(['--once'])).code).toBe(0);
    refuse(stage, [lineAt(1), lineAt(2, 'tied')]);
    const forget = ['--forget', '--device', 'walk'];
    const still = /still in the workspace and not excluded, so it would be synced again.*\(walk\) to sync\.exclude/;
    expectTold(await stage.run(forget, { env: KEYLESS }), 1, still);
    const daemon = await startDaemon(stage);
    expectTold(await stage.run(forget, { env: { ...KEYLESS, ...exclude } }), 1, still);
    await stop(daemon);

    const next = await startDaemon(stage, exclude);
    const asked = stage.simulator.log.requests.length;
    const inDatabase = await bench.influxd.query(
      stage.database,
      "SELECT count(value) FROM telemetry WHERE device_id = 'walk'",
    );
    // Points that the daemon writes about itself at that moment may wait for the database: then the command reports
    // that, and runs again.
    const runs: Ended[] = [];
    await until('it is removed', async () => {
      runs.push(await stage.run([...forget, '--json'], { env: KEYLESS }));
      return runs.at(-1)?.code !== 3;
    });
    const done = runs.at(-1) as Ended;
    for (const { stderr } of runs.slice(0, -1)) expect(stderr).toContain('not delivered yet');
    expect(done.code, done.stderr).toBe(0);
    const summary = JSON.parse(done.stdout);
    expect(summary).toMatchObject({ device_id: 'walk', outcome: 'complete', quarantined: 1, is_log_empty: true });
    expect(summary.points).toBeGreaterThan(300);
    // The command has followed the job to its end: what it looks at is what the daemon works with.
    const tables = ['coverage', 'day_sum', 'hour_readings', 'time_offset', 'gap', 'cleared', 'missing', 'block'];
    for (const table of tables) {
      expect(rows(stateOf(stage), `SELECT * FROM ${table} WHERE device_id = 'walk'`), table).toEqual([]);
    }
    await until('the devices were listed again', async () => {
      const status = /"status_page":"([^"]+)"/.exec(next.stderr())?.[1] ?? '';
      const report = (await (await fetch(`${status}status.json`)).json()) as { devices: { device_id: string }[] };
      return report.devices.length >= 2;
    });
    const since = stage.simulator.log.requests.slice(asked).filter(({ path }) => path.includes('/walk/'));
    expect(since, 'it is not asked for again').toEqual([]);
    // Databases belong to the owner: the printed statement removes it there.
    expect(
      await bench.influxd.query(stage.database, "SELECT count(value) FROM telemetry WHERE device_id = 'walk'"),
    ).toEqual(inDatabase);
    await stop(next);

    const alone = await stage.run(['--forget', '--device', 'tied'], {
      env: { ...KEYLESS, TIDEMARK_SYNC_EXCLUDE: 'tied' },
    });
    expect(alone.code, alone.stderr).toBe(0);
    const statement = /^ {2}(DELETE WHERE .*)$/m.exec(alone.stdout)?.[1] ?? '';
    const series = async (): Promise<number> =>
      (await bench.influxd.query(stage.database, "SHOW SERIES WHERE device_id = 'tied'")).length;
    expect(await series()).toBeGreaterThan(0);
    await bench.influxd.query(stage.database, statement);
    expect(await bench.influxd.query(stage.database, "SELECT * FROM /.*/ WHERE device_id = 'tied' LIMIT 1")).toEqual(
      [],
    );
  });

  test('waits for the database first', async () => {
    await using stage = await openStage({ bench });
    expect((await stage.run(['--once'])).code).toBe(0);
    const open = openStore(stage.dataDir);
    open.store.append(['coverage,device_id=walk state="live" 1'], 'live');
    open.close();
    const env = { ...KEYLESS, ...exclude };
    expectTold(
      await stage.run(['--forget', '--device', 'walk'], { env }),
      3,
      /not delivered yet: 1 point for influx\. .*If that database no longer exists, remove it from the configuration first/,
    );
    expect(rows(stateOf(stage), "SELECT 1 FROM coverage WHERE device_id = 'walk'").length).toBeGreaterThan(0);
    const gone = {
      ...env,
      TIDEMARK_INFLUX_URL: undefined,
      TIDEMARK_INFLUX_TOKEN: undefined,
      TIDEMARK_INFLUX_BUCKET: undefined,
      TIDEMARK_INFLUX_BATCH_LINES: undefined,
    };
    expect((await stage.run(['--forget', '--device', 'walk'], { env: gone })).code).toBe(0);
  });
});

test('the help of each fits 80 columns and needs no configuration', async () => {
  await using stage = await openStage();
  for (const mode of ['--quarantine', '--backup', '--forget']) {
    const { code, stdout } = await stage.run([mode, '--help'], { env: KEYLESS });
    expect(code).toBe(0);
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(stdout).toContain('Exit codes:');
  }
});
