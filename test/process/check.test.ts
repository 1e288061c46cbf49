/**
 * `--check` as a process: beside a daemon, which sends the requests, and the form of its output.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import type { CheckReport } from '../../src/commands/check/report.ts';
import { bad, line } from '../commands/check/support.ts';
import { runCommandFilled } from './filled.ts';
import { KEY, openStage, type Run, type Stage, until } from './support.ts';

const ENV = { TIDEMARK_LISTEN: '127.0.0.1:0' };

async function startDaemon(stage: Stage): Promise<Run> {
  const run = stage.start([], { env: ENV });
  await until('the daemon runs', () => run.stderr().includes('"status_page"') || run.child.exitCode !== null);
  expect(run.child.exitCode, run.stderr()).toBeNull();
  return run;
}

function count(stage: Stage, sql: string): number {
  const db = new Database(join(stage.dataDir, 'tidemark.db'), { readonly: true });
  try {
    return Number(db.prepare(sql).pluck().get());
  } finally {
    db.close();
  }
}

test('beside a daemon, the daemon sends the requests with its own key and quota', async () => {
  await using stage = await openStage();
  const daemon = await startDaemon(stage);
  await until('all is held', () => daemon.stderr().includes('initial-sync-done'));
  const check = await stage.run(['--check', '--json'], { env: { TIDEMARK_API_KEY: 'tmk_CANARYanother' } });
  expect(check.code, check.stderr).toBe(0);
  expect(check.stderr).toContain('This command checks everything else with the configuration given here');
  expect(check.stderr).not.toContain('runs the job with its own configuration');
  const report = JSON.parse(check.stdout) as CheckReport;
  expect([bad(report), report.ok]).toEqual([[], true]);
  expect(report.requests).toBeLessThanOrEqual(6);
  expect(line(report, 'in use').facts).toEqual({ locked: true });
  expect(line(report, 'workspace').message).toMatch(/the same as in the state$/);
  expect(line(report, 'page size').facts).toMatchObject({ accepted: 200 });
  expect(line(report, 'key').message).toMatch(/^accepted: the daemon's key \(the key of this command was not tested\)/);
  expect(check.stdout + check.stderr + daemon.stderr()).not.toContain('CANARY');
  expect(daemon.child.exitCode, 'the daemon goes on').toBeNull();
  daemon.child.kill('SIGTERM');
  expect((await daemon.ended).code).toBe(0);
  expect(count(stage, 'SELECT count(*) FROM request')).toBe(stage.simulator.log.total);
});

test('a bundle beside a daemon has the state that the daemon reports, and no secret', async () => {
  await using stage = await openStage();
  const port = 20_000 + (process.pid % 20_000);
  const env = { TIDEMARK_LISTEN: `127.0.0.1:${port}` };
  const daemon = stage.start([], { env });
  await until(
    'all is held',
    () => daemon.stderr().includes('initial-sync-done') || daemon.child.exitCode !== null,
    300_000,
  );
  const file = join(stage.directory, 'bundle.json');
  const check = await stage.run(['--check', '--json', '--bundle', file], { env });
  expect(check.code, check.stderr).toBe(0);
  expect(check.stderr).toContain('"event":"bundle-written"');
  const text = readFileSync(file, 'utf8');
  const { versions, daemon: reported, configuration, state } = JSON.parse(text);
  expect(versions).toMatchObject({ node: process.version, os: expect.any(String) });
  expect(versions).toHaveProperty('memory_limit_bytes');
  expect(reported).toMatchObject({ health: { healthy: true }, ready: { ready: expect.any(Boolean) } });
  expect(reported.metrics).toContainEqual(
    expect.stringMatching(/^tidemark_api_request_duration_seconds_sum\{stream="devices"\} /),
  );
  expect(reported.events).toContainEqual(expect.objectContaining({ level: 'info', event: 'initial-sync-done' }));
  expect(configuration.values['api.key']).toBe('(set, not shown)   (environment)');
  expect(state.requests.length).toBeGreaterThan(5);
  for (const word of ['CANARY', 'walk', 'tied', 'burst']) expect(text).not.toContain(word);
  daemon.child.kill('SIGTERM');
  expect((await daemon.ended).code).toBe(0);
});

test('beside a daemon, a key that was just written into the file is the one that is checked', async () => {
  await using stage = await openStage();
  const file = join(stage.directory, 'key');
  writeFileSync(file, 'tmk_CANARYrevoked\n');
  const env = { ...ENV, TIDEMARK_API_KEY: undefined, TIDEMARK_API_KEY_FILE: file };
  const daemon = stage.start([], { env });
  await until('the key is rejected', () => daemon.stderr().includes('"event":"key-refused"'));
  writeFileSync(file, `${KEY}\n`);
  const check = await stage.run(['--check', '--json'], { env });
  expect(check.code, check.stderr).toBe(0);
  expect(line(JSON.parse(check.stdout) as CheckReport, 'key').message).toMatch(/^accepted/);
  daemon.child.kill('SIGTERM');
  expect((await daemon.ended).code).toBe(0);
});

test('beside a daemon whose key is rejected: 77', async () => {
  await using stage = await openStage();
  const daemon = await startDaemon(stage);
  await until('something is read', () => stage.simulator.log.total > 3);
  stage.simulator.settings.key.revoked = true;
  const check = await stage.run(['--check', '--json']);
  expect(check.code, check.stderr).toBe(77);
  expect(bad(JSON.parse(check.stdout) as CheckReport, 'api')[0]).toBe('fail key');
  expect(daemon.stderr()).toMatch(/"event":"job-ended".*"kind":"check","state":"done","exit_code":77,/);
  expect(daemon.stderr()).toContain('Job \\"check\\" finished with exit code 77');
  daemon.child.kill('SIGTERM');
  expect((await daemon.ended).code).toBe(0);
});

test('in a pipe, a check that succeeded takes one row, and all others fit into 80 columns, whatever is wrong', async () => {
  await using stage = await openStage({ settings: { plan: { name: `\u202e${'Long plan '.repeat(30)}\u001b[31m` } } });
  const long = join(stage.directory, 'd'.repeat(120), 'e'.repeat(100));
  const runs = await Promise.all([
    stage.run(['--check'], { env: { TIDEMARK_LISTEN: '127.0.0.1:0' } }),
    stage.run(['--check'], { env: { TIDEMARK_DATA_DIR: long, TIDEMARK_API_KEY: 'tmk_CANARYanother' } }),
    stage.run(['--check'], { env: { TIDEMARK_API_URL: 'x', TIDEMARK_SYNC_INCLUDE: ',' } }),
    stage.run(['--check'], { env: { TIDEMARK_API_URL: `https://${'a.'.repeat(100)}invalid/external/v1` } }),
  ]);
  for (const { stdout, stderr } of runs) {
    expect(stdout, stderr).toMatch(/^Configuration\n/);
    const rows = stdout.split('\n');
    expect(
      Math.max(...rows.filter((each) => !each.startsWith('  ok ')).map((each) => each.length)),
    ).toBeLessThanOrEqual(80);
    const afterOk = rows.filter((_row, index) => rows[index - 1]?.startsWith('  ok '));
    for (const row of afterOk) expect(row).toMatch(/^(?: {2}\S.*)?$/);
    expect(stdout).toMatch(/\n\n.*(All required checks passed|checks? failed)/);
    for (const hostile of ['\u001b', '\u202e', 'undefined', 'NaN', '[object']) expect(stdout).not.toContain(hostile);
    expect(stdout + stderr).not.toMatch(new RegExp(`CANARY|${KEY.slice(0, 8)}`));
  }
  expect(runs.map(({ code }) => code)).toEqual([0, 77, 78, 1]);
  expect(runs[0]?.stdout).toMatch(/\n {2}ok {4}devices:read {8}granted: 3 devices listed\n/);
});

test('--check removes its progress from the terminal before it prints', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'tidemark-check-progress-'));
  try {
    const filled = runCommandFilled(directory);
    const { screen } = await filled.run(['--check'], { isTTY: true });
    expect(screen).toMatch(/checking the state \([^)]+\) …/);
    expect(screen).toContain('\r\u001b[KConfiguration\n');
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
