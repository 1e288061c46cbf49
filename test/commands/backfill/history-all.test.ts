/**
 * `sync.history: all`: the daemon requests all data once by itself; judged by the seed.
 */

import { describe, expect, test } from 'vitest';
import type { Sync } from '../../../src/app/open-sync.ts';
import { createAllHistory } from '../../../src/commands/backfill/job.ts';
import { StateFullError } from '../../../src/core/archive-room.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../src/core/time.ts';
import { openJobBoard } from '../../../src/store/jobs.ts';
import { liveAsDaemon, worldOf } from '../../support/daemon-rig.ts';
import { influxdAvailable } from '../../support/influxd.ts';
import { NOW_MS, openBench, openRig, type Rig, type RigOptions } from '../../support/rig.ts';
import { sharedBench } from '../../support/shared-bench.ts';
import { createVirtualClock } from '../../support/virtual-clock.ts';
import { inState, takingJobs } from './support.ts';

const DEVICES = [
  { deviceId: 'often', intervalMs: 2 * MINUTE_MS, jitter: 0.5 },
  { deviceId: 'seldom', intervalMs: 17 * MINUTE_MS },
];

describe.runIf(influxdAvailable())('sync.history: all', () => {
  const bench = sharedBench(openBench);

  /** The loops of jobs, and the one that requests. */
  const asking =
    (rig: Rig) =>
    (sync: Sync): readonly ((signal: AbortSignal) => Promise<unknown>)[] => {
      const all = createAllHistory({ ...sync.context, queue: sync.jobs });
      return [...takingJobs(rig, all.noteEnded)(sync), all.run];
    };

  const jobs = (rig: Rig): unknown[] =>
    inState(rig, (db) =>
      db
        .prepare('SELECT kind, state, requested_by AS requestedBy FROM job ORDER BY id')
        .all()
        .map((row) => ({ ...(row as object) })),
    );

  const rigOf = async (options: Partial<RigOptions> = {}): Promise<Rig> =>
    await openRig(bench, { world: worldOf(DEVICES, 40 * DAY_MS), historyMs: 2 * DAY_MS, ...options });

  test('reads all that the API has with one job, over restarts, and requests nothing after that', async () => {
    using rig = await rigOf();
    // Cut off in its midst, and gone on with.
    await liveAsDaemon(rig, { beside: asking(rig), forMs: 20 * SECOND_MS });
    const life = await liveAsDaemon(rig, {
      beside: asking(rig),
      forMs: MINUTE_MS,
      meanwhile: async () => {
        while (!JSON.stringify(jobs(rig)).includes('done')) await rig.clock.sleep(20 * SECOND_MS);
        await rig.clock.sleep(5 * MINUTE_MS);
      },
    });
    expect(life.error).toBeNull();
    expect(jobs(rig)).toEqual([{ kind: 'backfill', state: 'done', requestedBy: 'sync.history' }]);
    const span = {
      fromNs: BigInt(NOW_MS - 41 * DAY_MS) * 1_000_000n,
      toNs: BigInt(NOW_MS - 5 * MINUTE_MS) * 1_000_000n,
    };
    const verdict = await rig.verdict(NOW_MS, span);
    expect([verdict.missing.slice(0, 5), verdict.invented.slice(0, 5)]).toEqual([[], []]);
    expect(verdict.expected).toBeGreaterThan(30_000);
    await liveAsDaemon(rig, { beside: asking(rig), forMs: 65 * MINUTE_MS });
    expect(jobs(rig)).toHaveLength(1);
  });

  test('a cancelled job is requested again, after an hour', async () => {
    // As many requests of a fifth of the readings.
    const settings = { plan: { maxDevicesPerPage: 40 } };
    using rig = await rigOf({ world: worldOf(DEVICES, 8 * DAY_MS), historyMs: 10 * HOUR_MS, settings });
    await liveAsDaemon(rig, {
      beside: asking(rig),
      forMs: 80 * MINUTE_MS,
      meanwhile: async () => {
        await rig.clock.sleep(15 * SECOND_MS);
        const opened = openJobBoard(rig.dataDir);
        opened?.board.cancel(1);
        opened?.close();
      },
    });
    expect(jobs(rig)).toEqual([
      { kind: 'backfill', state: 'cancelled', requestedBy: 'sync.history' },
      { kind: 'backfill', state: 'done', requestedBy: 'sync.history' },
    ]);
  });
});

test('a full state only delays the job', async () => {
  const clock = createVirtualClock(NOW_MS);
  const queue = fakeQueue();
  const full: unknown[] = [];
  const store = { fact: () => null, saveFact: () => {} };
  const { run } = createAllHistory({ queue, store, clock, noteStateFull: (error) => full.push(error) });
  const stop = new AbortController();
  const running = run(stop.signal).catch(() => 'stopped');
  await clock.sleep(61 * MINUTE_MS);
  stop.abort();
  expect([await running, full.length, queue.submitted]).toEqual(['stopped', 1, 1]);
});

/** A queue that has no room for the first job. */
function fakeQueue() {
  const queue = {
    submitted: -1,
    open: () => [],
    submit: (): number => {
      queue.submitted += 1;
      if (queue.submitted === 0) throw new StateFullError('the disk is full', null, 1);
      return 1;
    },
  };
  return queue;
}
