/**
 * The main promise under the hardest treatment: the real process, killed at random moments again and again, then left
 * alone once.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { HOUR_MS } from '../../src/core/time.ts';
import type { DeviceSpec } from '../../src/sim/spec.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { seededRandom } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { openBench, openStage, until } from './support.ts';

const bench = sharedBench(openBench);

const KILLS = 16;
const EARLY_KILLS = 4;
/** Requests that may be under way when a kill comes, and the lists (account, devices, alerts) that each life asks for. */
const COST_OF_A_KILL = 4 + 3;

const DEVICES: readonly DeviceSpec[] = [
  { deviceId: 'walk', intervalMs: 10_000, jitter: 0.5 },
  { deviceId: 'grid', intervalMs: 10_000, jitter: 0 },
  { deviceId: 'tied', intervalMs: 30_000, traits: ['ties'] },
  { deviceId: 'burst', intervalMs: 60_000, traits: ['burst'], burst: { every: 40, size: 230 } },
  { deviceId: 'odd', intervalMs: 60_000, traits: ['oddValues', 'empty'] },
];

function requestsOf(dataDir: string): number {
  const db = new Database(`${dataDir}/tidemark.db`);
  try {
    return Number(db.prepare('SELECT count(*) FROM request').pluck().get());
  } finally {
    db.close();
  }
}

describe.runIf(influxdAvailable())('a process that is killed at random moments', () => {
  test('loses nothing, doubles nothing and asks for nothing again', async () => {
    await using stage = await openStage({
      bench,
      devices: DEVICES,
      historyMs: 7 * HOUR_MS,
      settings: { plan: { maxDevicesPerPage: 20 }, time: { latencyMs: { min: 20, max: 60 } } },
    });
    const random = seededRandom(20_260_615);
    let midway = 0;
    // Some writes are still without an answer when the kill comes, applied or not.
    bench.proxy.setFaults(({ nth }) => {
      if (nth % 4 === 3) return { kind: 'hang' };
      return nth % 4 === 1 ? { kind: 'apply-and-cut' } : null;
    });
    for (let kill = 0; kill < KILLS; kill += 1) {
      const before = stage.simulator.log.total;
      const run = stage.start(['--once'], { env: { TIDEMARK_INFLUX_BATCH_LINES: '200' } });
      const [requests, delayMs] = [kill < EARLY_KILLS ? 0 : Math.floor(random() * 40), random() * 200];
      // By the clock at first, so that it hits the start too; then by what was asked, however slow the machine is.
      await sleep(kill < EARLY_KILLS ? 200 + delayMs : delayMs);
      await until('requests', () => stage.simulator.log.total >= before + requests || run.child.exitCode !== null);
      run.child.kill('SIGKILL');
      const { code, stderr } = await run.ended;
      expect(code === null || code === 0, stderr).toBe(true);
      if (code === null && stage.simulator.log.total > before + 2) midway += 1;
    }
    bench.proxy.setFaults(null);
    expect(midway, 'kills that hit a walk').toBeGreaterThan(KILLS / 2);
    const startedMs = Date.now();
    const { code, stdout, stderr } = await stage.run(['--once', '--json']);
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ outcome: 'complete', gaps: [] });
    const verdict = await stage.verdict(startedMs);
    expect([verdict.missing.slice(0, 5), verdict.invented.slice(0, 5)]).toEqual([[], []]);
    expect(verdict.expected).toBeGreaterThan(10_000);
    const asked = stage.simulator.log.total;
    expect(requestsOf(stage.dataDir), 'what was sent was booked before').toBeGreaterThanOrEqual(asked);

    // The same work without a kill, to see what the kills have cost.
    await using calm = await openStage({
      devices: DEVICES,
      historyMs: 7 * HOUR_MS,
      settings: { plan: { maxDevicesPerPage: 20 } },
    });
    expect((await calm.run(['--once'])).code).toBe(0);
    expect(asked - calm.simulator.log.total).toBeLessThanOrEqual(KILLS * (COST_OF_A_KILL + DEVICES.length));

    expect((await stage.run(['--once'])).code).toBe(0);
    // The lists, and the unsettled end of each device: a burst may stand there, twelve pages long.
    expect(stage.simulator.log.total - asked, 'of a run that has nothing to do').toBeLessThanOrEqual(
      3 + 2 * DEVICES.length + 12,
    );
  });
});
