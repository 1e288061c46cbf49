/**
 * `--status` as a real process: beside a daemon, without one, on a copy, where there is nothing, piped.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { StatusReport } from '../../src/core/status.ts';
import { fillState } from '../bench/scale/state.ts';
import { expectPlain } from '../commands/status/support.ts';
import { KEY, MAIN, openStage, type Stage, until } from './support.ts';

/** `--status` needs neither the API nor its key. */
const WITHOUT_API = { TIDEMARK_API_URL: undefined, TIDEMARK_API_KEY: undefined };

async function statusOf(stage: Stage, ...more: string[]) {
  return await stage.run(['--status', ...more], { env: WITHOUT_API });
}

describe('--status', () => {
  test('without a state reports that, creates none, and ends with 1', async () => {
    await using stage = await openStage();
    const ended = await statusOf(stage);
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toMatch(/^tidemark: There is no state in .*state yet\. If a daemon/);
    expect((await statusOf(stage, '--json')).code).toBe(1);
    expect((await stage.run(['--status', '--device', 'x', '--config', 'none.yaml'])).code).toBe(78);
  });

  test('shows the facts of a running daemon, and still shows them once the daemon is killed', async () => {
    await using stage = await openStage();
    const daemon = stage.start([], { env: { TIDEMARK_LISTEN: '127.0.0.1:0', TIDEMARK_LOG_FORMAT: 'json' } });
    await until('the page is served', () => daemon.stderr().includes('status_page'));
    const url = /"status_page":"([^"]+)"/.exec(daemon.stderr())?.[1] ?? '';
    const served = async () => (await (await fetch(`${url}status.json`)).json()) as StatusReport;
    await until('all is held', async () => (await served()).totals.devices_complete === 3);
    const [reported, own] = [await statusOf(stage, '--json'), await served()];
    expect(reported).toMatchObject({ code: 0, stderr: '' });
    const report: StatusReport = JSON.parse(reported.stdout);
    expect(Object.keys(report)).toEqual(Object.keys(own));
    expect(report.process.running).toBe(true);
    expect(report.totals.devices_complete).toBe(3);
    expect(report.devices.map(({ covered }) => covered[0]?.[0])).toEqual(
      own.devices.map(({ covered }) => covered[0]?.[0]),
    );
    expect(report.allowance.lanes.reduce((sum, { day }) => sum + day, 0)).toBeGreaterThanOrEqual(
      own.allowance.day.spent,
    );
    const text = await statusOf(stage);
    expect(text).toMatchObject({ code: 0, stderr: '' });
    expectPlain(text.stdout);
    expect(text.stdout).toContain('Tidemark is running');
    daemon.child.kill('SIGKILL');
    await daemon.ended;
    const after = await statusOf(stage, '--device', 'walk');
    expect(after.code).toBe(0);
    expect(after.stdout).toMatch(/^walk, as of /);
    expect((await statusOf(stage)).stdout).toMatch(/^No daemon is running; the last request was at /m);
    expect(reported.stdout + text.stdout + after.stdout).not.toContain(KEY);
    // On a copy, wherever it is.
    const copy = join(stage.directory, 'copy');
    cpSync(stage.dataDir, copy, { recursive: true });
    const ofCopy = await stage.run(['--status', '--json'], { env: { ...WITHOUT_API, TIDEMARK_DATA_DIR: copy } });
    expect((JSON.parse(ofCopy.stdout) as StatusReport).totals).toMatchObject({ devices_complete: 3 });
  });

  test('a damaged state and an unknown device end with their messages', async () => {
    await using stage = await openStage();
    mkdirSync(stage.dataDir);
    writeFileSync(join(stage.dataDir, 'tidemark.db'), 'this is no database, and long enough to be one '.repeat(200));
    const damaged = await statusOf(stage);
    expect(damaged).toMatchObject({ code: 1, stdout: '' });
    expect(damaged.stderr).toContain('the state file is damaged');
    await using other = await openStage();
    expect((await other.run(['--once'])).code).toBe(0);
    const unknown = await statusOf(other, '--device', 'wlak');
    expect(unknown).toMatchObject({ code: 2, stdout: '' });
    expect(unknown.stderr).toBe('tidemark: --device: the state has no device with that id or name. Similar: walk.\n');
  });

  test('long output arrives completely at a slow reader, and a reader that closes is no failure', async () => {
    await using stage = await openStage();
    const size = { devices: 3000, readings: 3000, days: 1, sensors: 1, seed: 1, influx: 'http://x:8086' };
    fillState(stage.dataDir, { ...size, newestMs: Date.now() - 300_000 });
    const run = stage.start(['--status', '--json'], { env: WITHOUT_API });
    run.child.stdout?.pause();
    await sleep(1500);
    run.child.stdout?.resume();
    const ended = await run.ended;
    expect(ended.code).toBe(0);
    expect((JSON.parse(ended.stdout) as StatusReport).devices).toHaveLength(3000);
    const command = `"${process.execPath}" "${MAIN}" --status --json | head -c 10; echo " \${PIPESTATUS[0]}"`;
    const { PATH, NODE_COMPILE_CACHE } = process.env;
    const env = { PATH, NODE_COMPILE_CACHE, ...stage.env };
    const piped = spawnSync('bash', ['--norc', '-c', command], { env, encoding: 'utf8' });
    expect(piped.stdout).toMatch(/^\{"version" 0\n$/);
    expect(piped.stderr).toBe('');
  });
});
