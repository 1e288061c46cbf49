/**
 * `--once` as a process: what it prints where, and how it ends, whatever is wrong with what it is given.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HOUR_MS } from '../../src/core/time.ts';
import { always, onPath } from '../support/faults.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { patient } from '../support/patience.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { createWorld } from '../support/trait-world.ts';
import { type Ended, KEY, openBench, openStage, type Stage, start, TOKEN, until } from './support.ts';

const bench = sharedBench(openBench);

/** Everything in the state but the bookings of requests, which are made before anything can be known. */
function contentOf(stage: Stage): unknown {
  const db = new Database(join(stage.dataDir, 'tidemark.db'));
  try {
    const tables = db
      .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'request'")
      .pluck()
      .all();
    return tables.map((table) => [table, db.prepare(`SELECT * FROM "${table}"`).all()]);
  } finally {
    db.close();
  }
}

/** A message for people is one `tidemark:` line, without a stack trace. */
function expectTold({ code, stdout, stderr }: Ended, exitCode: number, words: RegExp): void {
  expect([code, stdout], stderr).toEqual([exitCode, '']);
  expect(stderr).toMatch(words);
  expect(stderr).toMatch(/^tidemark: /m);
  expect(stderr).not.toMatch(/\n\s+at |internal error/);
}

const slow = (latencyMs: number) => ({ time: { latencyMs: { min: latencyMs, max: latencyMs } } });

describe.runIf(influxdAvailable())('a run that comes to its end', () => {
  test('exits 0 with one summary on standard output and its log on standard error', async () => {
    await using stage = await openStage({ bench, historyMs: 2 * HOUR_MS });
    const startedMs = Date.now();
    const { code, stdout, stderr } = await stage.run(['--once', '--json']);
    expect(code, stderr).toBe(0);
    expect(stdout.trim().split('\n')).toHaveLength(1);
    expect(JSON.parse(stdout)).toMatchObject({
      outcome: 'complete',
      exit_code: 0,
      workspace_id: 'ws-simulated',
      devices: 3,
      gaps: [],
      streams_off: [],
      destinations: [{ name: 'influx', pending_points: 0, quarantined: 0, blocked_reason: null }],
    });
    for (const line of stderr.trim().split('\n')) expect(Object.keys(JSON.parse(line))).toContain('level');
    const verdict = await stage.verdict(startedMs);
    expect([verdict.missing, verdict.invented]).toEqual([[], []]);
    expect(verdict.expected).toBeGreaterThan(1000);
  });

  test('prints nothing at all without --json', async () => {
    await using stage = await openStage({ bench });
    const { code, stdout } = await stage.run(['--once', '--log-level', 'debug']);
    expect([code, stdout]).toEqual([0, '']);
  });

  test('goes by secrets from files, and keeps them out of its environment, arguments and title', async () => {
    await using stage = await openStage({ bench });
    const dump = join(stage.directory, 'dump.json');
    const script = `import { writeFileSync } from 'node:fs';
      process.on('exit', () => writeFileSync(${JSON.stringify(dump)}, JSON.stringify([process.env, process.argv, process.execArgv, process.title])));`;
    const nodeArgs = ['--import', `data:text/javascript,${encodeURIComponent(script)}`];
    expect((await stage.run(['--once'], { nodeArgs })).code).toBe(0);
    const given = readFileSync(dump, 'utf8');
    expect(given).toContain('TIDEMARK_API_URL');
    expect(given).not.toContain('TIDEMARK_API_KEY');
    expect([given.includes('CANARY')]).toEqual([false]);

    writeFileSync(join(stage.directory, 'key'), `${KEY}\n`);
    writeFileSync(join(stage.directory, 'token'), TOKEN);
    const env = {
      TIDEMARK_API_KEY: undefined,
      TIDEMARK_API_KEY_FILE: 'key',
      TIDEMARK_INFLUX_TOKEN: undefined,
      TIDEMARK_INFLUX_TOKEN_FILE: 'token',
    };
    const run = stage.start(['--once'], { env, nodeArgs });
    await until('it runs', () => stage.simulator.log.total > 0);
    const shown = ['cmdline', 'environ', 'comm'].map((name) => readFileSync(`/proc/${run.child.pid}/${name}`, 'utf8'));
    expect(shown.join('')).not.toContain('CANARY');
    expect((await run.ended).code).toBe(0);
    expect(readFileSync(dump, 'utf8')).not.toContain('CANARY');
  });

  test('fills the archive alone where there is no database', async () => {
    await using stage = await openStage({ historyMs: 2 * HOUR_MS });
    const { code, stdout } = await stage.run(['--once', '--json']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ outcome: 'complete', destinations: [] });
    expect(JSON.parse(stdout).points_archived).toBeGreaterThan(1000);
  });
});

describe('a reader that closes the pipe', () => {
  test.each([['stdout'], ['stderr']] as const)('is no failure on %s', async (name) => {
    await using stage = await openStage();
    const run = stage.start(['--once', '--json', '--log-level', 'debug']);
    run.child[name]?.destroy();
    const { code, signal } = await run.ended;
    expect([code, signal]).toEqual([0, null]);
  });

  test('is no failure of --help either', async () => {
    const run = start(['--help']);
    run.child.stdout?.destroy();
    expect((await run.ended).code).toBe(0);
  });
});

describe('refusals of the API', () => {
  test.each([
    ['a key that is revoked', { key: { revoked: true } }, /^tidemark: api\.key: the API rejects the key/m],
    [
      'a plan without API access',
      { plan: { apiAccess: false } },
      /^tidemark: The plan of this workspace has no API access/m,
    ],
    [
      'a key without devices:read',
      { key: { scopes: ['telemetry:read', 'account:read', 'alerts:read'] } },
      /^tidemark: api\.key: the key lacks the scope devices:read/m,
    ],
  ])('%s ends it with 77 and the remedy', async (_what, settings, words) => {
    await using stage = await openStage({ settings });
    expectTold(await stage.run(['--once', '--json']), 77, words);
    // A refusal is no reason for another request.
    expect(stage.simulator.log.total).toBeLessThanOrEqual(2);
  });

  test('a wrong key ends it with 77', async () => {
    await using stage = await openStage();
    expectTold(await stage.run(['--once'], { env: { TIDEMARK_API_KEY: 'tmk_wrong' } }), 77, /rejects the key/);
  });

  test.each([
    ['telemetry', ['devices:read', 'account:read', 'alerts:read'], { streams_off: ['telemetry'], points_archived: 0 }],
    [
      'account',
      ['devices:read', 'telemetry:read', 'alerts:read'],
      { streams_off: ['account'], workspace_id: 'default' },
    ],
  ])('the stream %s without its scope is named, and the others are done', async (stream, scopes, summary) => {
    // Without the account the limits are unknown, so the run uses small ones.
    const devices = [{ deviceId: 'one', intervalMs: 300_000 }];
    await using stage = await openStage({ settings: { key: { scopes } }, devices });
    const { code, stdout, stderr } = await stage.run(['--once', '--json']);
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ outcome: 'complete', devices: 1, ...summary });
    expect(stderr).toContain(`The key lacks the scope ${stream}:read`);
  });
});

describe('its arguments', () => {
  test('a configuration with mistakes ends it with 78, reports all of them at once and starts nothing', async () => {
    await using stage = await openStage();
    const env = {
      TIDEMARK_API_URL: 'monitoring.example',
      TIDEMARK_API_KEY: undefined,
      TIDEMARK_API_SHARE: '1.5',
      TIDEMARK_SYNC_HISTROY: '30d',
      TIDEMARK_SYNC_GRACE_PERIOD: '2 fortnights',
      TIDEMARK_METRICS_PER_DEVICE: 'yes',
      TIDEMARK_INFLUX_BUCKET: 'devices',
    };
    const ended = await stage.run(['--once'], { env });
    expectTold(ended, 78, /The configuration is invalid:/);
    for (const words of [
      'api.url',
      'api.key',
      'api.share',
      'TIDEMARK_SYNC_HISTROY',
      'sync.grace_period',
      'metrics.per_device',
      'influx.url',
    ]) {
      expect(ended.stderr).toContain(words);
    }
    expect(existsSync(stage.dataDir)).toBe(false);
    expect(stage.simulator.log.total).toBe(0);
  });

  test('a wrong command line ends it with 2, and nothing begun', async () => {
    await using stage = await openStage();
    const wrong = [
      ['--onse'],
      ['--once', '--demo'],
      ['--once', '--once'],
      ['--once', 'now'],
      ['--once', '--config'],
      ['--json'],
    ];
    for (const args of wrong) expectTold(await stage.run(args), 2, /^tidemark: /);
    expect(existsSync(stage.dataDir)).toBe(false);
    expect(stage.simulator.log.total).toBe(0);
  });

  test('a file of configuration is read, and one that is missing is 78', async () => {
    await using stage = await openStage();
    writeFileSync(join(stage.directory, 'my.yaml'), `data_dir: ${join(stage.directory, 'elsewhere')}\n`);
    const args = ['--once', '--config', 'my.yaml'];
    expect((await stage.run(args, { env: { TIDEMARK_DATA_DIR: undefined } })).code).toBe(0);
    expect(readdirSync(join(stage.directory, 'elsewhere'))).toContain('tidemark.db');
    expectTold(
      await stage.run(['--once', '--config', 'none.yaml']),
      78,
      /--config: this file does not exist: none\.yaml/,
    );
  });
});

describe('a state that cannot be used', () => {
  const CASES: readonly (readonly [string, (file: string) => void, RegExp])[] = [
    [
      'of a newer version',
      (file) => sqlite(file, 'PRAGMA user_version = 999'),
      /written by a newer Tidemark \(state version 999/,
    ],
    ['that is damaged', (file) => writeFileSync(file, 'no database'.repeat(500)), /the state file is damaged/],
    ['of another program', (file) => sqlite(file, 'PRAGMA application_id = 7'), /a database of another program/],
  ];

  // Each spoils a copy of one that a run has filled.
  let filled: Stage;
  beforeAll(async () => {
    filled = await openStage({ devices: [{ deviceId: 'one', intervalMs: 600_000 }] });
    expect((await filled.run(['--once'])).code).toBe(0);
  });
  afterAll(async () => await filled[Symbol.asyncDispose]());

  /** Spoils a copy, and starts the program on it. */
  async function runOn(copy: string, spoil: (file: string) => void, args: readonly string[]) {
    const dataDir = join(filled.directory, copy);
    cpSync(filled.dataDir, dataDir, { recursive: true });
    const file = join(dataDir, 'tidemark.db');
    spoil(file);
    const before = readFileSync(file);
    const ended = await filled.run(args, { env: { TIDEMARK_DATA_DIR: dataDir } });
    return { ended, isUnchanged: readFileSync(file).equals(before) };
  }

  test.each(CASES)('%s ends it with 1, and stays as it is', async (what, spoil, words) => {
    const asked = filled.simulator.log.total;
    const { ended, isUnchanged } = await runOn(what, spoil, ['--once', '--json']);
    expectTold(ended, 1, words);
    expect(isUnchanged).toBe(true);
    expect(filled.simulator.log.total, 'nothing is asked').toBe(asked);
  });

  test('in a place that is no directory ends it with 1', async () => {
    await using stage = await openStage();
    mkdirSync(stage.directory, { recursive: true });
    writeFileSync(stage.dataDir, '');
    expectTold(await stage.run(['--once']), 1, /not a directory .* Set data_dir to another directory/);
  });

  test('the last line is JSON where the log is JSON', async () => {
    await using stage = await openStage();
    writeFileSync(stage.dataDir, '');
    const { code, stdout, stderr } = await stage.run(['--once', '--json'], { env: { TIDEMARK_LOG_FORMAT: 'json' } });
    expect([code, stdout]).toEqual([1, '']);
    const last = JSON.parse(stderr.trim().split('\n').at(-1) ?? '');
    expect(last).toMatchObject({
      level: 'error',
      exit_code: 1,
      msg: expect.stringContaining('Set data_dir to another'),
    });
    expect(stderr).not.toContain('tidemark: ');
  });

  test('that is damaged where it is used first ends it with 1 and the remedy', async () => {
    const spoil = (file: string): void => {
      const db = new Database(file);
      const page = Number(db.prepare("SELECT rootpage FROM sqlite_master WHERE name = 'coverage'").pluck().get());
      db.close();
      const bytes = readFileSync(file);
      bytes.fill(0x5a, (page - 1) * 4096, page * 4096);
      writeFileSync(file, bytes);
    };
    const { ended } = await runOn('damaged-where-used', spoil, ['--once']);
    const { code, stderr } = ended;
    expect(code).toBe(1);
    expect(stderr).toMatch(/^tidemark: .*the state file is damaged .*Stop Tidemark and restore a backup/m);
  });
});

function sqlite(file: string, sql: string): void {
  const db = new Database(file);
  db.exec(sql);
  db.close();
}

describe('another process with the same state', () => {
  test('is refused with 1, does not disturb the first, and a killed one blocks no other', async () => {
    await using stage = await openStage();
    // The first one is kept busy for as long as it takes.
    stage.simulator.faults = onPath(/telemetry/, always({ kind: 'hang' }));
    const first = stage.start(['--once']);
    await until('the first one asks', () => stage.simulator.log.total > 0);
    expectTold(await stage.run(['--once']), 1, /Tidemark already runs with this state/);
    expect(first.child.exitCode).toBeNull();
    first.child.kill('SIGKILL');
    await first.ended;
    stage.simulator.faults = null;
    expect((await stage.run(['--once'])).code).toBe(0);
  });
});

describe.runIf(influxdAvailable())('another workspace behind the key', () => {
  test('ends it with 1 before anything is written, in the state or in the database', async () => {
    await using stage = await openStage({ bench });
    expect((await stage.run(['--once'])).code).toBe(0);
    const [content, points] = [contentOf(stage), await countPoints(stage)];
    stage.simulator.world = createWorld({
      seed: 6,
      originMs: Date.now(),
      workspaceId: 'ws-other',
      devices: [{ deviceId: 'x' }],
    });
    const ended = await stage.run(['--once', '--json']);
    expectTold(ended, 1, /this state belongs to workspace "ws-simulated", but the API key belongs to "ws-other"/);
    expect(contentOf(stage)).toEqual(content);
    expect(await countPoints(stage)).toBe(points);
  });

  test('does not let points of an earlier run flow into that workspace’s database', async () => {
    await using stage = await openStage({ bench });
    const noDatabase = {
      TIDEMARK_INFLUX_URL: undefined,
      TIDEMARK_INFLUX_TOKEN: undefined,
      TIDEMARK_INFLUX_BUCKET: undefined,
      TIDEMARK_INFLUX_BATCH_LINES: undefined,
    };
    expect((await stage.run(['--once'], { env: noDatabase })).code).toBe(0);
    stage.simulator.world = createWorld({
      seed: 6,
      originMs: Date.now(),
      workspaceId: 'ws-other',
      devices: [{ deviceId: 'x' }],
    });
    // Long enough for a delivery that does not wait for the account.
    stage.simulator.settings.time.latencyMs = { min: 1500, max: 1500 };
    expectTold(await stage.run(['--once']), 1, /but the API key belongs to "ws-other"/);
    expect(await countPoints(stage)).toBe(0);
  });

  async function countPoints(stage: Stage): Promise<number> {
    return (await bench.influxd.query(stage.database, 'SELECT * FROM telemetry')).length;
  }

  test('another workspace is reported where the tag is fixed, and another tag ends with 78', async () => {
    await using stage = await openStage({ bench, devices: [{ deviceId: 'one', intervalMs: 600_000 }] });
    expect((await stage.run(['--once'], { env: { TIDEMARK_WORKSPACE_ID: 'mine' } })).code).toBe(0);
    const content = contentOf(stage);
    const ended = await stage.run(['--once'], { env: { TIDEMARK_WORKSPACE_ID: 'yours' } });
    expectTold(ended, 78, /workspace\.id: the points of this state have the workspace_id tag "mine", not "yours"/);
    expect(contentOf(stage)).toEqual(content);
  });
});

describe.runIf(influxdAvailable())('a run that receives a signal', () => {
  test('ends soon with 3 and a summary, keeps what it has, and the next one continues from there', async () => {
    await using stage = await openStage({
      bench,
      historyMs: 2 * HOUR_MS,
      settings: { ...slow(60), plan: { maxDevicesPerPage: 20 } },
    });
    const run = stage.start(['--once', '--json']);
    await until('it is in the middle', () => stage.simulator.log.total >= 40);
    const reportedMs = performance.now();
    run.child.kill('SIGTERM');
    const { code, stdout, stderr } = await run.ended;
    expect(code, stderr).toBe(3);
    expect(performance.now() - reportedMs).toBeLessThan(patient(10_000));
    const summary = JSON.parse(stdout);
    expect(summary).toMatchObject({ outcome: 'interrupted', exit_code: 3 });
    expect(summary.points_archived).toBeGreaterThan(0);
    expect(summary.gaps.length, 'the summary lists the ranges that are not covered').toBeGreaterThan(0);
    const asked = stage.simulator.log.total;
    stage.simulator.settings.time.latencyMs = { min: 0, max: 0 };
    const startedMs = Date.now();
    expect((await stage.run(['--once'])).code).toBe(0);
    const verdict = await stage.verdict(startedMs);
    expect([verdict.missing, verdict.invented]).toEqual([[], []]);
    // Together as many as one undisturbed run, and the few that were cut off.
    await using calm = await openStage({ historyMs: 2 * HOUR_MS, settings: { plan: { maxDevicesPerPage: 20 } } });
    expect((await calm.run(['--once'])).code).toBe(0);
    expect(asked).toBeGreaterThan(30);
    expect(stage.simulator.log.total).toBeLessThanOrEqual(calm.simulator.log.total + 20);
  });

  test('ends while the database does not answer', async () => {
    await using stage = await openStage({ bench });
    bench.proxy.setFaults(() => ({ kind: 'hang' }));
    try {
      const before = bench.proxy.writes.length;
      const run = stage.start(['--once', '--json']);
      await until('it delivers', () => bench.proxy.writes.length > before);
      const reportedMs = performance.now();
      run.child.kill('SIGINT');
      const { code, stdout } = await run.ended;
      expect([code, JSON.parse(stdout).outcome]).toEqual([3, 'interrupted']);
      expect(performance.now() - reportedMs).toBeLessThan(patient(10_000));
    } finally {
      bench.proxy.setFaults(null);
    }
    expect((await stage.run(['--once'])).code).toBe(0);
  });

  test('treats two signals within a second as one', async () => {
    await using stage = await openStage({ settings: slow(60) });
    const run = stage.start(['--once', '--json']);
    await until('it asks', () => stage.simulator.log.total > 2);
    run.child.kill('SIGINT');
    run.child.kill('SIGINT');
    run.child.kill('SIGTERM');
    const { code, stdout } = await run.ended;
    // A summary shows that it ended in order.
    expect([code, JSON.parse(stdout).outcome]).toEqual([3, 'interrupted']);
  });

  test('ends at once at a second signal after more than a second', async () => {
    await using stage = await openStage();
    stage.simulator.faults = onPath(/telemetry/, always({ kind: 'hang' }));
    // A program that cannot stop in order.
    const nodeArgs = ['--import', 'data:text/javascript,AbortController.prototype.abort=()=>{}'];
    const run = stage.start(['--once', '--json'], { nodeArgs });
    await until('it asks', () => stage.simulator.log.total > 0);
    run.child.kill('SIGINT');
    run.child.kill('SIGINT');
    await sleep(1200);
    expect(run.child.exitCode, 'one signal alone').toBeNull();
    // Again where the machine was too busy to let it see that a second had passed.
    const again = setInterval(() => run.child.kill('SIGINT'), 1200);
    run.child.kill('SIGINT');
    const { code, stdout } = await run.ended;
    clearInterval(again);
    expect([code, stdout]).toEqual([3, '']);
  });
});
