/**
 * Replays into real databases: what was lost there is there again, whatever the replay was cut off by, and nothing
 * twice.
 */
import { describe, expect, test } from 'vitest';
import type { SyncOptions } from '../../src/app/open-sync.ts';
import { createReplayWorker, openReplays } from '../../src/commands/replay/job.ts';
import { destinationIdentity } from '../../src/core/lines/dialect.ts';
import type { ReplaySummary } from '../../src/core/state/replay.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import { createInfluxSink } from '../../src/influx/sink.ts';
import { runJobs } from '../../src/scheduler/jobs.ts';
import { openJobBoard } from '../../src/store/jobs.ts';
import { liveAsDaemon, MEASURING_DEVICES, worldOf } from '../support/daemon-rig.ts';
import { replayArgs } from '../support/defaults.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { dieAtEffect, Killed, liveOn, mortalCommits, mortalSink } from '../support/mortality.ts';
import { destinationOf, NOW_MS, openBench, openRig, type Rig } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { judgeVictoria, startVictoria, victoriaAvailable } from '../support/victoria.ts';

const HISTORY_MS = 3 * HOUR_MS;

/** A row of a query as a text. */
function rowText(row: unknown): string {
  return JSON.stringify(row, (_key, value) => (typeof value === 'bigint' ? String(value) : value));
}

type Destination = SyncOptions['destinations'][number];

describe.runIf(influxdAvailable())('a replay into an InfluxDB that was emptied', () => {
  const bench = sharedBench(openBench);

  const filledRig = async (): Promise<Rig> => {
    const rig = await openRig(bench, { world: worldOf(MEASURING_DEVICES), historyMs: HISTORY_MS });
    expect((await rig.once()).summary.exit_code).toBe(0);
    return rig;
  };

  const contents = async (rig: Rig): Promise<readonly unknown[]> => {
    const measurements = ['telemetry', 'device', 'alert', 'alert_state', 'workspace', 'coverage', 'coverage_hour'];
    return await Promise.all(measurements.map((name) => bench.influxd.query(rig.database, `SELECT * FROM ${name}`)));
  };

  const empty = async (rig: Rig): Promise<void> => {
    await bench.influxd.query('', `DROP DATABASE ${rig.database}`);
    await bench.influxd.query('', `CREATE DATABASE ${rig.database}`);
  };

  /** One run of `--replay` alone. */
  const replay = async (rig: Rig, sinkOf = (to: Destination): Destination => to): Promise<ReplaySummary> => {
    const sync = rig.open({ destinations: [sinkOf(destinationOf(bench, rig.database, rig.clock))] });
    try {
      const parts = { ...sync.context, deliverers: sync.deliverers, isBeside: false };
      return await openReplays(parts, replayArgs({ maxRate: 2000 })).run(new AbortController().signal);
    } finally {
      sync.close();
    }
  };

  const expectExact = async (rig: Rig, startedMs: number): Promise<void> => {
    const verdict = await rig.verdict(startedMs);
    expect([verdict.missing.slice(0, 3), verdict.invented.slice(0, 3)]).toEqual([[], []]);
    expect(verdict.expected).toBeGreaterThan(500);
  };

  test('restores the simulated telemetry, and every other point, without a request', async () => {
    using rig = await filledRig();
    const before = await contents(rig);
    const requests = rig.simulator.log.total;
    await empty(rig);
    expect(await replay(rig)).toMatchObject({
      outcome: 'complete',
      destinations: [{ refused: 0, known: 0, beyond: 0 }],
    });
    expect(await contents(rig)).toEqual(before);
    await expectExact(rig, NOW_MS);
    expect(rig.simulator.log.total).toBe(requests);
    // Once more changes nothing.
    await replay(rig);
    expect(await contents(rig)).toEqual(before);
  });

  test('killed at any effect and run again brings back all of it', async () => {
    using rig = await filledRig();
    const before = await contents(rig);
    const mortal = (to: Destination): Destination => ({ ...to, sink: mortalSink(to.sink) });
    for (let effects = 3; ; effects += 5) {
      await empty(rig);
      let died = false;
      {
        using _commits = mortalCommits();
        dieAtEffect(effects);
        try {
          await replay(rig, mortal);
        } catch (error) {
          died = error instanceof Killed;
          if (!died) throw error;
        } finally {
          liveOn();
        }
      }
      // The points that were recorded as sent are there; the rest is sent now.
      const summary = await replay(rig);
      expect(summary.outcome).toBe('complete');
      expect(await contents(rig), `killed at effect ${effects}`).toEqual(before);
      if (!died) {
        expect(effects).toBeGreaterThan(10);
        return;
      }
    }
  });

  test('is done by a daemon as a job, which continues with it after a restart', async () => {
    using rig = await filledRig();
    const before = await contents(rig);
    await empty(rig);
    const opened = openJobBoard(rig.dataDir);
    if (opened === null) throw new Error('no state');
    const { id } = opened.board.submit({
      kind: 'replay',
      args: { ...replayArgs({ maxRate: 40 }) },
      requestedBy: '--replay',
      requestedMs: rig.clock.nowMs(),
    });
    const life = async (forMs: number) =>
      await liveAsDaemon(rig, {
        forMs,
        beside: (sync) => {
          const { clock, observe } = sync.context;
          const workers = { replay: createReplayWorker({ ...sync.context, deliverers: sync.deliverers }) };
          return [(signal) => runJobs({ queue: sync.jobs, workers, clock, observe, scrub: (text) => text }, signal)];
        },
      });
    await life(10 * SECOND_MS);
    // It waits for the next one.
    expect(opened.board.get(id)).toMatchObject({ state: 'waiting', end: null });
    await life(3 * MINUTE_MS);
    expect(opened.board.get(id)?.end).toMatchObject({
      state: 'done',
      exitCode: 0,
      summary: { destinations: [{ resumed: true }] },
    });
    opened.close();
    const after = await contents(rig);
    // The daemon has continued: there are more points, and none are missing.
    const there = new Set(after.flat().map(rowText));
    const lost = before
      .flat()
      .map(rowText)
      .filter((row) => !there.has(row));
    expect(lost.slice(0, 3)).toEqual([]);
  });
});

describe.runIf(influxdAvailable() && victoriaAvailable())('a replay into a VictoriaMetrics', () => {
  test('stores nothing twice, and restores lost points', async () => {
    await using bench = await openBench();
    await using victoria = await startVictoria();
    using rig = await openRig(bench, { world: worldOf(MEASURING_DEVICES), historyMs: HISTORY_MS });
    const position = { url: victoria.url, org: '', bucket: '' };
    const real = createInfluxSink({ name: 'influx', ...position, token: null, timeoutMs: 30_000 }, 'victoriametrics');
    const sink = {
      name: real.name,
      write: (lines: readonly string[], signal: AbortSignal) => rig.clock.busy(real.write(lines, signal)),
    };
    const destinations: Destination[] = [
      {
        sink,
        identity: destinationIdentity({ kind: 'victoriametrics', ...position }),
        batchLines: 5000,
        kind: 'victoriametrics',
      },
    ];
    expect((await rig.once({ destinations })).summary.exit_code).toBe(0);
    for (const isEmptied of [false, true]) {
      if (isEmptied) await victoria.clear();
      const sync = rig.open({ destinations });
      const parts = { ...sync.context, deliverers: sync.deliverers, isBeside: false };
      const summary = await openReplays(parts, replayArgs()).run(new AbortController().signal);
      sync.close();
      expect(summary.outcome).toBe('complete');
      const { missing, invented, expected } = await judgeVictoria(victoria, rig.simulator, {
        deviceIds: rig.simulator.world.deviceIds(rig.clock.nowMs()),
        fromMs: NOW_MS - HISTORY_MS + 5 * MINUTE_MS,
        toMs: NOW_MS - 3 * MINUTE_MS,
      });
      expect([missing.slice(0, 3), invented.slice(0, 3)]).toEqual([[], []]);
      expect(expected).toBeGreaterThan(500);
    }
  });
});
