/**
 * `--plan` as a process: what it prints where, beside a daemon too, and how it ends.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { always, onPath } from '../support/faults.ts';
import { KEY, openStage, type Stage, until } from './support.ts';

function paths({ simulator }: Stage, from = 0): string[] {
  return simulator.log.requests.slice(from).map(({ path }) => path);
}

test('alone: one screen or one object on standard output, and no request but account and list', async () => {
  await using stage = await openStage();
  const reported = await stage.run(['--plan']);
  expect(reported.code, reported.stderr).toBe(0);
  expect(reported.stdout).toMatch(/^Workspace Simulated workspace \(from 2 requests sent just now\)\nDevices: 3 \(/);
  expect(reported.stdout).toMatch(/\n {2}total +[\d,]+ +[\d,]+\n/);
  expect(paths(stage)).toEqual(['/account', '/devices']);
  const object = await stage.run(['--plan', '--json', '--from', '1h', '--device', 'walk', '--what-if', 'share=0.5']);
  expect(object.code, object.stderr).toBe(0);
  expect(object.stdout.trim().split('\n')).toHaveLength(1);
  expect(JSON.parse(object.stdout)).toMatchObject({
    basis: { source: 'api', requests_spent: 2 },
    what_if: { 'api.share': 0.5 },
    allowance: { share: 0.5, day: { spent_last_24h: 4 } },
    backfill: { devices: 1, gap_share: 1, readings: 60 },
  });
  expect(reported.stdout + reported.stderr + object.stdout + object.stderr).not.toContain(KEY);
});

test('beside a daemon: no request is sent, and the daemon continues', async () => {
  await using stage = await openStage();
  // Read at its start, and then not again.
  const yearly = '0 0 1 1 *';
  const env = { TIDEMARK_LISTEN: '127.0.0.1:0', TIDEMARK_SYNC_DEVICES: yearly, TIDEMARK_SYNC_ACCOUNT: yearly };
  const daemon = stage.start([], { env });
  await until('it has listed the devices and read something', () =>
    paths(stage).some((path) => /telemetry/.test(path)),
  );
  const { code, stdout, stderr } = await stage.run(['--plan']);
  expect(code, stderr).toBe(0);
  expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(
    /from the state of the running process, as of .*Z; no request was sent\)/,
  );
  expect(paths(stage).filter((path) => path === '/account')).toHaveLength(1);
  expect(paths(stage).filter((path) => path === '/devices')).toHaveLength(1);
  daemon.child.kill('SIGTERM');
  expect((await daemon.ended).code).toBe(0);
});

test('ends with the exit code that the failure has, and a message for people', async () => {
  await using stage = await openStage();
  const ends: [string[], Record<string, string>, number, RegExp][] = [
    [['--plan', '--what-if', 'shair=1'], {}, 2, /has no such key\. Did you mean share\?/],
    [['--plan', '--what-if', 'share=2'], {}, 2, /--what-if api\.share: expected a number above 0/],
    [['--plan', '--from', 'once'], {}, 2, /--from: expected a date/],
    [['--plan', '--device', 'nobody'], {}, 2, /the workspace has no device with that id or name/],
    [['--plan'], { TIDEMARK_API_KEY: 'tmk_another_key' }, 77, /the API rejects the key/],
    [['--plan'], { TIDEMARK_API_SHARE: '7' }, 78, /api\.share/],
  ];
  for (const [args, env, exitCode, words] of ends) {
    const { code, stdout, stderr } = await stage.run(args, { env });
    expect([code, stdout], stderr).toEqual([exitCode, '']);
    expect(stderr).toMatch(words);
    expect(stderr).toMatch(/^tidemark: /m);
    expect(stderr).not.toMatch(/\n\s+at |internal error/);
  }
});

test('a signal while it waits ends it with 3', async () => {
  await using stage = await openStage();
  stage.simulator.faults = onPath(/devices/, always({ kind: 'hang' }));
  const run = stage.start(['--plan']);
  await until('it asks for the devices', () => paths(stage).includes('/devices'));
  run.child.kill('SIGTERM');
  const { code, stdout, stderr } = await run.ended;
  expect([code, stdout], stderr).toEqual([3, '']);
  expect(stderr).toMatch(/tidemark: Stopped before the plan was computed\. Run --plan again\./);
  expect(existsSync(join(stage.dataDir, 'tidemark.db'))).toBe(true);
  stage.simulator.faults = null;
  expect((await stage.run(['--plan'])).code).toBe(0);
});
