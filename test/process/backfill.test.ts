/**
 * `--backfill` as real processes: alone, killed again and again, and beside a daemon.
 */
import { describe, expect, test } from 'vitest';
import { DAY_MS, MINUTE_MS } from '../../src/core/time.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { openBench, openStage, until } from './support.ts';

const PLAN = { requestsPerMinute: 1500, requestsPerDay: 1_000_000, historyMaxDays: 31 };
const DEVICES = [
  { deviceId: 'one', intervalMs: MINUTE_MS },
  { deviceId: 'two', intervalMs: 2 * MINUTE_MS },
];

const bench = sharedBench(openBench);

describe.runIf(influxdAvailable())('--backfill', () => {
  test('killed again and again it comes to its end, and repeats only the requests in flight', async () => {
    await using stage = await openStage({ bench, devices: DEVICES, historyMs: 4 * DAY_MS, settings: { plan: PLAN } });
    const startedMs = Date.now();
    const args = [
      '--backfill',
      '--from',
      new Date(startedMs - 4 * DAY_MS).toISOString(),
      '--to',
      new Date(startedMs - 5 * MINUTE_MS).toISOString(),
    ];
    let kills = 0;
    for (; kills < 3; kills += 1) {
      const before = stage.simulator.log.total;
      const run = stage.start(args);
      await until('it asks', () => stage.simulator.log.total >= before + 8 || run.child.exitCode !== null);
      run.child.kill('SIGKILL');
      await run.ended;
    }
    const { code, stdout, stderr } = await stage.run(args);
    expect(code, stderr).toBe(0);
    expect(stdout).toMatch(/^Backfill of .*2 devices: complete\.\n/);
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
    const telemetry = stage.simulator.log.requests.filter(({ path }) => path.endsWith('/telemetry')).length;
    expect(telemetry).toBeLessThanOrEqual(Math.ceil((4 * 1440 * 1.5) / 196) + 6 + 5 * kills);
    const verdict = await stage.verdict(startedMs - 5 * MINUTE_MS, startedMs - 4 * DAY_MS + 5000);
    expect([verdict.missing.slice(0, 3), verdict.invented.slice(0, 3)]).toEqual([[], []]);
  });

  test('beside a daemon it follows the work, and ends with 0 and its summary', async () => {
    await using stage = await openStage({ bench, devices: DEVICES, historyMs: 3 * DAY_MS, settings: { plan: PLAN } });
    const daemon = stage.start([], {
      env: { TIDEMARK_LISTEN: '127.0.0.1:0', TIDEMARK_SYNC_HISTORY: '1h' },
    });
    await until('the daemon runs', () => daemon.stderr().includes('"status_page"'));
    const args = ['--backfill', '--from', '3d', '--to', '2h', '--json'];
    const dry = await stage.run([...args, '--dry-run']);
    expect([dry.code, JSON.parse(dry.stdout)], dry.stderr).toMatchObject([
      0,
      { basis: { source: 'state', requests_spent: 0 } },
    ]);
    const { code, stdout, stderr } = await stage.run(args);
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ outcome: 'complete', devices: 2, missing: [], late: false });
    expect(stderr).toContain('A daemon uses this state');
    expect(daemon.child.exitCode).toBeNull();
    const wrong = await stage.run(['--backfill', '--from', '3d', '--device', 'nobody']);
    expect([wrong.code, wrong.stdout]).toEqual([2, '']);
    expect(wrong.stderr).toContain('the workspace has no device with that id or name');
    expect(daemon.child.exitCode, 'the daemon goes on').toBeNull();
    daemon.child.kill('SIGTERM');
    expect((await daemon.ended).code).toBe(0);
  });
});
