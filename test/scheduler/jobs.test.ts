/**
 * Jobs on the virtual clock: a command follows the daemon that does its work, whatever becomes of either.
 */
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { followJob } from '../../src/commands/shared/do-or-follow.ts';
import { UserError } from '../../src/core/faults.ts';
import type { JobEnd } from '../../src/core/state/jobs.ts';
import type { ProgressReport } from '../../src/core/status.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import type { JobWork } from '../../src/scheduler/jobs.ts';
import { openJobBoard } from '../../src/store/jobs.ts';
import { type DaemonOptions, DEVICES, eventsOf, expectExact, liveAsDaemon, worldOf } from '../support/daemon-rig.ts';
import { cron } from '../support/defaults.ts';
import { always, onPath } from '../support/faults.ts';
import { type Followed, follow, requestOf, summaryOf, takingJobs } from '../support/follow-job.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { openBench, openRig, type Rig, type RigOptions } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';

/** Looks into the state and maybe changes it, as a third process does. */
function inState<T>(rig: Rig, work: (db: Database.Database) => T): T {
  const db = new Database(`${rig.dataDir}/tidemark.db`);
  try {
    return work(db);
  } finally {
    db.close();
  }
}

const statesOf = (rig: Rig): unknown[] =>
  inState(rig, (db) => db.prepare('SELECT state FROM job ORDER BY id').pluck().all());

describe.runIf(influxdAvailable())('a job beside the daemon', () => {
  const bench = sharedBench(openBench);

  const world = worldOf(DEVICES);

  const rigOf = async (options: Partial<RigOptions> = {}): Promise<Rig> =>
    await openRig(bench, { world, historyMs: 2 * DAY_MS, ...options });

  const live = async (rig: Rig, forMs: number, more: Omit<DaemonOptions, 'forMs'> = {}) =>
    await liveAsDaemon(rig, { beside: takingJobs, ...more, forMs });

  /** A daemon, and a command that follows its job from soon after the start. */
  const liveFollowed = async (rig: Rig, forMs: number, more: Omit<DaemonOptions, 'forMs' | 'meanwhile'> = {}) => {
    const all: Followed[] = [];
    const meanwhile = async (): Promise<void> => {
      await rig.clock.sleep(2 * SECOND_MS);
      all.push(await follow(rig));
    };
    const life = await live(rig, forMs, { ...more, meanwhile });
    expect(life.error).toBeNull();
    const [followed] = all;
    if (followed === undefined) throw new Error('the job has no end');
    return { life, followed };
  };

  test('requests nothing that the daemon is requesting', async () => {
    const telemetry = async (beside: boolean): Promise<number> => {
      using rig = await rigOf();
      await live(rig, 10 * MINUTE_MS, {
        meanwhile: async () => {
          await rig.clock.sleep(2 * SECOND_MS);
          if (beside) expect(summaryOf(await follow(rig)).outcome).toBe('complete');
        },
      });
      return rig.simulator.log.requests.filter(({ path }) => path.endsWith('/telemetry')).length;
    };
    const alone = await telemetry(false);
    expect(alone).toBeGreaterThan(30);
    // Where the ranges of the two begin and end apart, a page more for each device.
    expect(await telemetry(true)).toBeLessThanOrEqual(alone + 2 * DEVICES.length);
  });

  test('stays with the daemon within the share of every rolling minute, the first request included', async () => {
    using rig = await rigOf({
      share: 0.5,
      settings: { plan: { requestsPerMinute: 40, requestsPerDay: 20_000, historyMaxDays: 31 } },
    });
    const life = await live(rig, 25 * MINUTE_MS, {
      meanwhile: async () => {
        await Promise.all(
          [0, 1, 2].map(async (n) => {
            await rig.clock.sleep(n * 20 * SECOND_MS);
            expect((await follow(rig)).end).toMatchObject({ exitCode: 0 });
          }),
        );
      },
    });
    expect(life.error).toBeNull();
    const times = rig.simulator.log.requests.map(({ atMs }) => atMs);
    expect(times.length).toBeGreaterThan(100);
    const inAMinute = times.map((at) => times.filter((other) => other > at - MINUTE_MS && other <= at).length);
    expect(Math.max(...inAMinute)).toBeLessThanOrEqual(20);
    expect(rig.simulator.log.count(429)).toBe(0);
    expect(statesOf(rig)).toEqual(['done', 'done', 'done']);
    expect(inState(rig, (db) => db.prepare('SELECT count(*) FROM request').pluck().get())).toBe(
      rig.simulator.log.total,
    );
  });

  test('is cancelled when its follower is stopped, and the daemon continues', async () => {
    using rig = await rigOf();
    rig.simulator.settings.time.latencyMs = { min: 10 * SECOND_MS, max: 10 * SECOND_MS };
    const stop = new AbortController();
    const all: Followed[] = [];
    const life = await live(rig, 30 * MINUTE_MS, {
      meanwhile: async () => {
        await rig.clock.sleep(5 * SECOND_MS);
        const following = follow(rig, stop.signal);
        await rig.clock.sleep(90 * SECOND_MS);
        expect(statesOf(rig)).toEqual(['running']);
        stop.abort(new Error('stopped by a test'));
        all.push(await following);
        rig.simulator.settings.time.latencyMs = { min: 20, max: 60 };
      },
    });
    expect(life.error).toBeNull();
    const { end, tookMs } = all[0] ?? { end: null, tookMs: 0 };
    expect(end).toMatchObject({ state: 'cancelled', exitCode: 3 });
    expect(summaryOf({ end }).outcome).toBe('interrupted');
    expect(summaryOf({ end }).gaps.length).toBeGreaterThan(0);
    expect(tookMs).toBeLessThan(100 * SECOND_MS);
    await expectExact(rig);
  });

  test('is cancelled half a minute after its follower has disappeared', async () => {
    using rig = await rigOf();
    rig.simulator.settings.time.latencyMs = { min: 20 * SECOND_MS, max: 20 * SECOND_MS };
    const life = await live(rig, 3 * MINUTE_MS, {
      meanwhile: async () => {
        await rig.clock.sleep(5 * SECOND_MS);
        const opened = openJobBoard(rig.dataDir);
        opened?.board.submit(requestOf(rig));
        opened?.close();
        await rig.clock.sleep(25 * SECOND_MS);
        expect(statesOf(rig), 'not yet').toEqual(['running']);
        await rig.clock.sleep(15 * SECOND_MS);
        expect(statesOf(rig)).toEqual(['cancelled']);
      },
    });
    expect(life.error).toBeNull();
    expect(eventsOf(life, 'job-ended')).toMatchObject([
      { message: expect.stringContaining('the command that requested it has ended') },
    ]);
  });

  test('is not started if an earlier daemon has left it and no follower is alive', async () => {
    using rig = await rigOf();
    rig.open().close();
    const opened = openJobBoard(rig.dataDir);
    opened?.board.submit(requestOf(rig));
    opened?.close();
    const life = await live(rig, 2 * MINUTE_MS);
    expect(eventsOf(life, 'job-started')).toEqual([]);
    expect(statesOf(rig)).toEqual(['cancelled']);
  });

  test('jobs of one kind run one after the other', async () => {
    using rig = await rigOf();
    const life = await live(rig, 5 * MINUTE_MS, {
      meanwhile: async () => {
        const all = await Promise.all([follow(rig), follow(rig), follow(rig)]);
        for (const { end } of all) expect(end).toMatchObject({ exitCode: 0 });
      },
    });
    const order = life.events
      .filter(({ type }) => type === 'job-started' || type === 'job-ended')
      .map(({ type }) => type);
    expect(order).toEqual(['job-started', 'job-ended', 'job-started', 'job-ended', 'job-started', 'job-ended']);
  });

  test('ends as stalled if a database accepts nothing for ten minutes, whatever else the daemon reads', async () => {
    using rig = await rigOf();
    bench.proxy.setFaults(() => ({
      kind: 'answer',
      status: 503,
      body: '{"code":"unavailable","message":"overloaded"}',
    }));
    try {
      const { end, tookMs } = (await liveFollowed(rig, MINUTE_MS)).followed;
      expect(end).toMatchObject({ state: 'done', exitCode: 3 });
      const summary = summaryOf({ end });
      expect(summary).toMatchObject({ outcome: 'stalled', gaps: [] });
      expect(summary.destinations[0]?.pending_points).toBeGreaterThan(1000);
      expect(tookMs).toBeGreaterThanOrEqual(10 * MINUTE_MS);
      expect(tookMs).toBeLessThan(25 * MINUTE_MS);
    } finally {
      bench.proxy.setFaults(null);
    }
  });

  test('ends as stalled if one device does not answer, whatever the others bring', async () => {
    using rig = await rigOf();
    rig.simulator.faults = onPath(/seldom\/telemetry/, always({ kind: 'server-error', status: 500 }));
    const { end, tookMs } = (await liveFollowed(rig, MINUTE_MS)).followed;
    expect(summaryOf({ end })).toMatchObject({ outcome: 'stalled', exit_code: 3 });
    expect(summaryOf({ end }).gaps.every(({ device_id }) => device_id === 'seldom')).toBe(true);
    expect(tookMs).toBeLessThan(25 * MINUTE_MS);
  });

  test('ends as stalled while the service is down, and shares the retries with the daemon', async () => {
    const askedInAnOutage = async (outage: (rig: Rig) => Promise<unknown>): Promise<number> => {
      using rig = await rigOf();
      await live(rig, 10 * MINUTE_MS);
      const before = rig.simulator.log.total;
      rig.simulator.faults = always({ kind: 'server-error', status: 503 });
      await outage(rig);
      return rig.simulator.log.total - before;
    };
    const alone = await askedInAnOutage(async (rig) => await live(rig, 22 * MINUTE_MS));
    const both = await askedInAnOutage(async (rig) => {
      const { followed } = await liveFollowed(rig, 22 * MINUTE_MS);
      expect(summaryOf(followed)).toMatchObject({ outcome: 'stalled', exit_code: 3 });
      expect(followed.tookMs).toBeLessThan(20 * MINUTE_MS);
    });
    expect(both).toBeLessThanOrEqual(alone + 12);
  });

  test('waits for the requests that it made due also where the server’s time falls back meanwhile', async () => {
    using rig = await rigOf();
    let isOut = false;
    rig.simulator.faults = (_number, { path }) => (path === '/account' && isOut ? { kind: 'server-error' } : null);
    const all: Followed[] = [];
    await live(rig, MINUTE_MS, {
      schedules: { account: cron('0 0 * * *') },
      meanwhile: async () => {
        await rig.clock.sleep(11 * MINUTE_MS);
        // The fall is accepted ten minutes later: a minute after the job has begun, while its account is waited for.
        rig.simulator.settings.time.offsetMs = -10 * MINUTE_MS;
        await rig.clock.sleep(9 * MINUTE_MS);
        isOut = true;
        const mended = rig.clock.sleep(4 * MINUTE_MS).then(() => {
          isOut = false;
        });
        const stop = new AbortController();
        const late = rig.clock.sleep(30 * MINUTE_MS, stop.signal).then(
          () => stop.abort(new Error('too late')),
          () => {},
        );
        all.push(await follow(rig, stop.signal));
        stop.abort();
        await Promise.all([mended, late]);
      },
    });
    expect(all[0]?.end).toMatchObject({ state: 'done', exitCode: 0 });
    expect(all[0]?.tookMs).toBeLessThan(12 * MINUTE_MS);
  });

  test('reports a rejected key to its follower, and the daemon waits', async () => {
    using rig = await rigOf();
    rig.simulator.settings.key.secret = 'another';
    const api = { url: 'http://simulator.test/external/v1', key: () => 'refused', share: 0.8, concurrency: 4 };
    const { end } = (await liveFollowed(rig, 5 * MINUTE_MS, { changes: { api } })).followed;
    expect(end).toMatchObject({ state: 'failed', exitCode: 77, message: expect.stringContaining('rejects the key') });
  });

  test.each([
    [new UserError('no such database', null, 78), null],
    [new UserError('the state is damaged', null, 1, { ends: 'process' }), 'the state is damaged'],
    [new TypeError('a bug'), 'a bug'],
  ])('that fails with %s ends, and the daemon with it only where the error says so', async (error, ended) => {
    using rig = await rigOf();
    const sync = rig.open();
    const stop = new AbortController();
    const work = (): JobWork => ({ end: Promise.reject(error), progress: () => sync.report() });
    const [loop] = takingJobs(sync, { once: work });
    const running = loop?.(stop.signal).catch(({ message }: Error) => message);
    const exitCode = error instanceof UserError ? error.exitCode : 1;
    expect((await follow(rig)).end).toMatchObject({
      state: 'failed',
      exitCode,
      message: expect.stringContaining(error.message),
    });
    await rig.clock.sleep(SECOND_MS);
    stop.abort(new Error('over'));
    expect(await running).toBe(ended ?? 'over');
    sync.close();
  });

  test('of a kind or with arguments that the daemon does not know fails with words', async () => {
    using rig = await rigOf();
    await live(rig, 2 * MINUTE_MS, {
      meanwhile: async () => {
        await rig.clock.sleep(5 * SECOND_MS);
        inState(rig, (db) => {
          const insert = db.prepare(
            "INSERT INTO job (kind, args, requested_by, requested_ms) VALUES (?, ?, 'test', 1)",
          );
          for (const [kind, args] of [
            ['dance', '{}'],
            ['once', '[]'],
            ['once', '{"a":1}'],
            ['toString', '{}'],
          ])
            insert.run(kind, args);
        });
        await rig.clock.sleep(3 * SECOND_MS);
        const ends = inState(rig, (db) => db.prepare('SELECT state, exit_code, message FROM job').all());
        expect(ends).toHaveLength(4);
        for (const end of ends) {
          expect(end).toMatchObject({
            state: 'failed',
            exit_code: 1,
            message: expect.stringContaining('another version'),
          });
        }
      },
    });
  });

  test('contains no secret, neither in its progress nor in its result', async () => {
    using rig = await rigOf();
    const progress = { totals: {}, destinations: [], allowance: {}, message: 'rig-token' } as unknown as ProgressReport;
    const workers = {
      once: (): JobWork => ({
        end: rig.clock
          .sleep(3 * SECOND_MS)
          .then(() => ({ state: 'done', exitCode: 0, summary: { held: 'rig-token' }, message: null })),
        progress: () => progress,
      }),
    };
    await live(rig, MINUTE_MS, {
      beside: (sync) => takingJobs(sync, workers),
      meanwhile: async () => void (await follow(rig)),
    });
    const [row] = inState(rig, (db) => db.prepare('SELECT progress, summary FROM job').all());
    expect(JSON.stringify(row)).toContain('[hidden]');
    expect(JSON.stringify(row)).not.toContain('rig-token');
  });

  test('that waits for other work is logged soon, and then every minute', async () => {
    using rig = await rigOf();
    const sync = rig.open();
    const stop = new AbortController();
    const end: JobEnd = { state: 'done', exitCode: 0, summary: null, message: null };
    const longWork = () => ({ end: rig.clock.sleep(200 * SECOND_MS).then(() => end), progress: () => sync.report() });
    const [loop] = takingJobs(sync, { once: longWork });
    const running = loop?.(stop.signal).catch(() => {});
    const first = follow(rig);
    await rig.clock.sleep(2 * SECOND_MS);
    const opened = openJobBoard(rig.dataDir);
    if (opened === null) throw new Error('no state to ask');
    const polledMs = rig.clock.monoMs();
    const toldAfterS: number[] = [];
    const onWaiting = (): void => void toldAfterS.push(Math.round((rig.clock.monoMs() - polledMs) / SECOND_MS));
    const parts = { ...opened, clock: rig.clock, onSeen: () => {}, onWaiting, onProgress: () => {} };
    expect(await followJob(parts, requestOf(rig), stop.signal)).toEqual(end);
    expect((await first).end).toEqual(end);
    expect(toldAfterS).toEqual([3, 63, 123, 183]);
    opened.close();
    stop.abort(new Error('over'));
    await running;
    sync.close();
  });

  test('is kept for a day', async () => {
    using rig = await rigOf();
    const sync = rig.open();
    const stop = new AbortController();
    const end: JobEnd = { state: 'done', exitCode: 0, summary: null, message: null };
    const [loop] = takingJobs(sync, { once: () => ({ end: Promise.resolve(end), progress: () => sync.report() }) });
    const running = loop?.(stop.signal).catch(() => {});
    expect((await follow(rig)).end).toEqual(end);
    await rig.clock.sleep(23 * HOUR_MS);
    expect(statesOf(rig)).toEqual(['done']);
    await rig.clock.sleep(2 * HOUR_MS + MINUTE_MS);
    expect(statesOf(rig)).toEqual([]);
    stop.abort(new Error('over'));
    await running;
    sync.close();
  });

  test('is abandoned by its follower if the process that holds the state no longer accepts jobs', async () => {
    using rig = await rigOf();
    const sync = rig.open();
    const following = follow(rig).catch((error: unknown) => error);
    await rig.clock.sleep(SECOND_MS);
    sync.jobs.beat();
    expect(sync.jobs.take(1, rig.clock.nowMs())).toBe(true);
    const beganMs = rig.clock.monoMs();
    const words = expect.stringMatching(
      /has not responded for a minute.* Check the log of the daemon, restart it if it hangs, and run the command again\.$/,
    );
    expect(await following).toMatchObject({ exitCode: 3, message: words });
    expect(rig.clock.monoMs() - beganMs).toBeLessThan(70 * SECOND_MS);
    expect(sync.jobs.open()).toMatchObject([{ isCancelRequested: true }]);
    sync.close();
    const restarted = rig.open();
    const stop = new AbortController();
    const end: JobEnd = { state: 'done', exitCode: 0, summary: null, message: null };
    const once = () => ({ end: Promise.resolve(end), progress: () => restarted.report() });
    const running = takingJobs(restarted, { once })[0]?.(stop.signal).catch(() => {});
    expect((await follow(rig)).end).toEqual(end);
    stop.abort(new Error('over'));
    await running;
    restarted.close();
  });
});
