/**
 * `--once` beside a running daemon, as real processes: the daemon does the work, the command follows it and ends as if
 * it had done it itself.
 */
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { always, onPath } from '../support/faults.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { patient } from '../support/patience.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { type Ended, openBench, openStage, type Run, type Stage, type StageOptions, until } from './support.ts';

const bench = sharedBench(openBench);

const ANY_PORT = { TIDEMARK_LISTEN: '127.0.0.1:0' };
/** How many requests may be under way, by default. */
const AT_ONCE = 4;
const HANG = onPath(/telemetry/, always({ kind: 'hang' }));

interface JobRow {
  readonly kind: string;
  readonly state: string;
  readonly exit_code: number | null;
  readonly message: string | null;
}

/** Looks into the state as a third process does. */
function rows<T>(stage: Stage, sql: string): T[] {
  const db = new Database(join(stage.dataDir, 'tidemark.db'), { readonly: true });
  try {
    return db.prepare<[], T>(sql).all();
  } finally {
    db.close();
  }
}

const jobsOf = (stage: Stage): JobRow[] => rows<JobRow>(stage, 'SELECT kind, state, exit_code, message FROM job');

async function startDaemon(stage: Stage): Promise<Run> {
  const run = stage.start([], { env: ANY_PORT });
  await until('the daemon runs', () => run.stderr().includes('"status_page"') || run.child.exitCode !== null);
  expect(run.child.exitCode, run.stderr()).toBeNull();
  return run;
}

async function stop(run: Run): Promise<number | null> {
  run.child.kill('SIGTERM');
  return (await run.ended).code;
}

/** A daemon that cannot go on, and a command that follows it. */
async function openStuck(options: StageOptions = {}): Promise<{ stage: Stage; daemon: Run; once: Run }> {
  const stage = await openStage(options);
  stage.simulator.faults = HANG;
  const daemon = await startDaemon(stage);
  const once = stage.start(['--once', '--json']);
  await until('the job runs', () => jobsOf(stage).some(({ state }) => state === 'running'));
  await until('the command follows', () => once.stderr().includes('A daemon uses this state'));
  return { stage, daemon, once };
}

function expectTold({ code, stdout, stderr }: Ended, exitCode: number, words: RegExp): void {
  expect([code, stdout], stderr).toEqual([exitCode, '']);
  expect(stderr).toMatch(words);
  expect(stderr).toMatch(/^tidemark: /m);
  expect(stderr).not.toMatch(/\n\s+at |internal error/);
}

describe('--once beside a daemon', () => {
  test.runIf(influxdAvailable())('ends with 0 and its summary once all is covered and delivered', async () => {
    await using stage = await openStage({ bench, settings: { time: { latencyMs: { min: 30, max: 60 } } } });
    const daemon = await startDaemon(stage);
    const startedMs = Date.now();
    // Its own key, history and database do not count: the daemon's do.
    const env = { TIDEMARK_API_KEY: 'tmk_another', TIDEMARK_SYNC_HISTORY: '10m', TIDEMARK_INFLUX_BUCKET: 'another' };
    const once = await stage.run(['--once', '--json'], { env });
    expect(once.code, once.stderr).toBe(0);
    expect(once.stdout.trim().split('\n')).toHaveLength(1);
    expect(JSON.parse(once.stdout)).toMatchObject({
      outcome: 'complete',
      exit_code: 0,
      workspace_id: 'ws-simulated',
      devices: 3,
      gaps: [],
      destinations: [{ name: 'influx', quarantined: 0, blocked_reason: null }],
    });
    expect(once.stderr).toContain('Sync complete');
    expect(once.stderr).not.toContain('CANARY');
    const verdict = await stage.verdict(startedMs);
    expect([verdict.missing.slice(0, 5), verdict.invented.slice(0, 5)]).toEqual([[], []]);
    expect(verdict.expected).toBeGreaterThan(300);
    expect(jobsOf(stage)).toEqual([{ kind: 'once', state: 'done', exit_code: 0, message: null }]);
    expect(daemon.stderr()).toContain('Starting job \\"once\\"');
    expect(daemon.child.exitCode, 'the daemon goes on').toBeNull();
    expect(await stop(daemon)).toBe(0);
    const [booked] = rows<{ n: number }>(stage, 'SELECT count(*) AS n FROM request');
    // The daemon stops between the booking of a request and the request itself, too.
    const unsent = (booked?.n ?? 0) - stage.simulator.log.total;
    expect(unsent, 'one ledger for both').toBeGreaterThanOrEqual(0);
    expect(unsent).toBeLessThanOrEqual(AT_ONCE);
  });

  test('prints nothing without --json, and may be requested again', async () => {
    await using stage = await openStage();
    const daemon = await startDaemon(stage);
    for (let time = 0; time < 2; time += 1) {
      const { code, stdout, stderr } = await stage.run(['--once']);
      expect([code, stdout], stderr).toEqual([0, '']);
    }
    // Two at a time wait for each other.
    const both = await Promise.all([stage.run(['--once']), stage.run(['--once'])]);
    expect(
      both.map(({ code }) => code),
      both.map(({ stderr }) => stderr).join(''),
    ).toEqual([0, 0]);
    expect(jobsOf(stage).map(({ state }) => state)).toEqual(['done', 'done', 'done', 'done']);
    expect(await stop(daemon)).toBe(0);
  });

  test('keeps with the daemon to the share of the plan', async () => {
    await using stage = await openStage({
      devices: [{ deviceId: 'one', intervalMs: 300_000 }],
      settings: { plan: { requestsPerMinute: 30, requestsPerDay: 20_000 } },
    });
    const half = { TIDEMARK_API_SHARE: '0.5' };
    const daemon = stage.start([], { env: { ...ANY_PORT, ...half } });
    await until('the daemon runs', () => daemon.stderr().includes('"status_page"'));
    // The share of the command's own configuration does not count either.
    for (let time = 0; time < 5; time += 1) {
      const { code, stderr } = await stage.run(['--once']);
      expect(code, stderr).toBe(0);
    }
    expect(await stop(daemon)).toBe(0);
    const times = stage.simulator.log.requests.map(({ atMs }) => atMs);
    // On a busy machine a request may arrive up to a second after it was sent.
    const inAMinute = times.map((at) => times.filter((other) => other > at - 59_000 && other <= at).length);
    expect(times.length, 'more than a minute holds').toBeGreaterThan(15);
    expect(Math.max(...inAMinute)).toBeLessThanOrEqual(15);
    expect(stage.simulator.log.count(429)).toBe(0);
    expect(rows(stage, 'SELECT id FROM request')).toHaveLength(times.length);
  });

  test('ends with 3 and the reason where the daemon is killed', async () => {
    const { stage, daemon, once } = await openStuck();
    await using _ = stage;
    daemon.child.kill('SIGKILL');
    await daemon.ended;
    const killedMs = performance.now();
    expectTold(
      await once.ended,
      3,
      /The daemon that ran this job has stopped or died.*without a daemon, the command runs the job itself/,
    );
    expect(performance.now() - killedMs).toBeLessThan(patient(15_000));
    stage.simulator.faults = null;
    // Nothing is in the way of the next one, and what was left running has an end.
    expect((await stage.run(['--once'])).code).toBe(0);
    expect(jobsOf(stage)).toMatchObject([
      { state: 'failed', exit_code: 3, message: expect.stringMatching(/has died/) },
    ]);
  });

  test('ends with 3 and the reason where the daemon is started anew', async () => {
    const { stage, daemon, once } = await openStuck();
    await using _ = stage;
    daemon.child.kill('SIGKILL');
    await daemon.ended;
    const next = await startDaemon(stage);
    expectTold(await once.ended, 3, /The daemon did not run the job: the daemon that ran this job has died/);
    expect(await stop(next)).toBe(0);
  });

  test('ends with 3 and reports it where the daemon receives a signal', async () => {
    const { stage, daemon, once } = await openStuck();
    await using _ = stage;
    const reportedMs = performance.now();
    expect(await stop(daemon)).toBe(0);
    expect(performance.now() - reportedMs).toBeLessThan(patient(10_000));
    expectTold(await once.ended, 3, /The daemon did not run the job: the daemon was stopped/);
    expect(jobsOf(stage)).toMatchObject([{ state: 'failed', exit_code: 3 }]);
  });

  test('withdraws its job when it receives a signal, and the daemon continues', async () => {
    const { stage, daemon, once } = await openStuck();
    await using _ = stage;
    const reportedMs = performance.now();
    once.child.kill('SIGINT');
    const { code, stdout, stderr } = await once.ended;
    expect(code, stderr).toBe(3);
    expect(performance.now() - reportedMs).toBeLessThan(patient(10_000));
    expect(JSON.parse(stdout)).toMatchObject({ outcome: 'interrupted', exit_code: 3 });
    expect(jobsOf(stage)).toMatchObject([{ state: 'cancelled', exit_code: 3 }]);
    expect(daemon.child.exitCode).toBeNull();
    stage.simulator.faults = null;
    expect(await stop(daemon)).toBe(0);
  });

  test('reports the daemon’s result where the key is rejected: 77', async () => {
    await using stage = await openStage();
    const daemon = await startDaemon(stage);
    stage.simulator.settings.key.secret = 'tmk_renewed_meanwhile';
    expectTold(
      await stage.run(['--once', '--json']),
      77,
      /The daemon did not run the job: api\.key: the API rejects the key/,
    );
    expect(daemon.child.exitCode, 'the daemon holds').toBeNull();
    expect(await stop(daemon)).toBe(0);
  });
});

describe('--once beside a process that accepts no jobs', () => {
  test('is refused beside another --once, and leaves nothing behind', async () => {
    await using stage = await openStage();
    stage.simulator.faults = HANG;
    const first = stage.start(['--once']);
    await until('the first one asks', () => stage.simulator.log.total > 0);
    expectTold(await stage.run(['--once', '--json']), 1, /Tidemark already runs with this state/);
    expect(jobsOf(stage)).toEqual([]);
    expect(first.child.exitCode).toBeNull();
  });

  test('does the work itself where that ends meanwhile', async () => {
    await using stage = await openStage();
    stage.simulator.faults = HANG;
    const first = stage.start(['--once']);
    await until('the first one asks', () => stage.simulator.log.total > 0);
    const second = stage.start(['--once', '--json']);
    await until('the second one asks it', () => jobsOf(stage).length > 0);
    first.child.kill('SIGKILL');
    stage.simulator.faults = null;
    const { code, stdout, stderr } = await second.ended;
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ outcome: 'complete' });
  });

  test('is refused at once beside a state of another version', async () => {
    await using stage = await openStage();
    stage.simulator.faults = HANG;
    const first = stage.start(['--once']);
    await until('the first one asks', () => stage.simulator.log.total > 0);
    const db = new Database(join(stage.dataDir, 'tidemark.db'));
    db.pragma('user_version = 1');
    const beganMs = performance.now();
    expectTold(await stage.run(['--once']), 1, /Tidemark already runs with this state/);
    expect(performance.now() - beganMs, 'without the wait for a daemon').toBeLessThan(patient(4500));
    expect(db.prepare('SELECT count(*) FROM job').pluck().get()).toBe(0);
    expect(db.pragma('user_version', { simple: true }), 'nothing is migrated').toBe(1);
    db.close();
    first.child.kill('SIGKILL');
  });
});
