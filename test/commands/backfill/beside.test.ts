/**
 * `--backfill` as a job of the daemon, on the virtual clock: in the lowest lane, beside other jobs, across restarts.
 */
import { describe, expect, test } from 'vitest';
import { backfillEndText } from '../../../src/commands/backfill/result.ts';
import { partsOfState } from '../../../src/commands/shared/state-report.ts';
import type { ProgressReport } from '../../../src/core/status.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../src/core/time.ts';
import { openJobBoard } from '../../../src/store/jobs.ts';
import { openToRead } from '../../../src/store/views/read-state.ts';
import { type DaemonOptions, eventsOf, liveAsDaemon, worldOf } from '../../support/daemon-rig.ts';
import type { Followed } from '../../support/follow-job.ts';
import { influxdAvailable } from '../../support/influxd.ts';
import { NOW_MS, openBench, openRig, type Rig, type RigOptions } from '../../support/rig.ts';
import { sharedBench } from '../../support/shared-bench.ts';
import { configOf } from '../status/support.ts';
import {
  type Asked,
  argsOf,
  backfillAlone,
  coverageOf,
  followBackfill,
  inState,
  summaryOf,
  takingJobs,
  telemetryRequests,
} from './support.ts';

const DEVICES = [
  { deviceId: 'often', intervalMs: 3 * MINUTE_MS, jitter: 0.5 },
  { deviceId: 'tied', intervalMs: 10 * MINUTE_MS, traits: ['ties' as const] },
  { deviceId: 'seldom', intervalMs: 17 * MINUTE_MS },
  {
    deviceId: 'silent',
    intervalMs: 10 * MINUTE_MS,
    silences: [{ fromMs: NOW_MS - 9 * DAY_MS, toMs: Number.POSITIVE_INFINITY }],
  },
];

/** For tests that count requests: a fifth of the readings needs as many. */
const SMALL_PAGES = {
  world: worldOf(DEVICES, 8 * DAY_MS),
  historyMs: 10 * HOUR_MS,
  settings: { plan: { maxDevicesPerPage: 40 } },
};

describe.runIf(influxdAvailable())('a backfill beside the daemon', () => {
  const bench = sharedBench(openBench);

  const world = worldOf(DEVICES, 40 * DAY_MS);

  const rigOf = async (options: Partial<RigOptions> = {}): Promise<Rig> =>
    await openRig(bench, { world, historyMs: 2 * DAY_MS, ...options });

  const live = async (rig: Rig, forMs: number, more: Omit<DaemonOptions, 'forMs'> = {}) =>
    await liveAsDaemon(rig, { beside: takingJobs(rig), ...more, forMs });

  const statesOf = (rig: Rig): unknown[] =>
    inState(rig, (db) => db.prepare("SELECT state FROM job WHERE kind = 'backfill' ORDER BY id").pluck().all());

  const untilDone = async (rig: Rig): Promise<void> => {
    while (!statesOf(rig).includes('done')) await rig.clock.sleep(20 * SECOND_MS);
  };

  const submit = (rig: Rig, asked: Asked): void => {
    const opened = openJobBoard(rig.dataDir);
    const args = { ...argsOf(asked) };
    opened?.board.submit({ kind: 'backfill', args, requestedBy: '--backfill', requestedMs: rig.clock.nowMs() });
    opened?.close();
  };

  const expectThere = async (rig: Rig, fromMs: number, toMs: number): Promise<void> => {
    const verdict = await rig.verdict(NOW_MS, { fromNs: BigInt(fromMs) * 1_000_000n, toNs: BigInt(toMs) * 1_000_000n });
    expect([verdict.missing.slice(0, 5), verdict.invented.slice(0, 5)]).toEqual([[], []]);
    expect(verdict.expected).toBeGreaterThan(5000);
  };

  test('fills the range, reports its progress, and ends when everything is delivered', async () => {
    using rig = await rigOf();
    const all: Followed[] = [];
    const reported: ProgressReport[] = [];
    const life = await live(rig, MINUTE_MS, {
      meanwhile: async ({ progress }) => {
        await rig.clock.sleep(2 * SECOND_MS);
        const following = followBackfill(rig, { fromMs: NOW_MS - 20 * DAY_MS });
        await rig.clock.sleep(MINUTE_MS);
        reported.push(progress());
        all.push(await following);
        reported.push(progress());
      },
    });
    expect(life.error).toBeNull();
    const [followed] = all;
    if (followed === undefined) throw new Error('no end');
    // The daemon reports the backfill beside its own progress.
    const [during, after] = reported;
    expect(during?.backfill?.totals).toMatchObject({ devices: 4, covered_share: expect.any(Number) });
    expect(during?.backfill?.totals.requests).toBeLessThan(during?.totals.requests ?? 0);
    expect(after?.backfill).toBeNull();
    const summary = summaryOf(followed);
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0, devices: 4, devices_complete: 4, missing: [] });
    expect(summary.readings).toBeGreaterThan(10_000);
    const shares = followed.progress.map(({ totals }) => totals.covered_share ?? 0);
    expect(Math.max(...shares)).toBeGreaterThan(0.8);
    // The daemon delivers the points, along with those of its own polls.
    const delivered = followed.progress.flatMap(({ destinations }) =>
      destinations.map((each) => each.delivered_points),
    );
    expect(new Set(delivered)).toEqual(new Set([null]));
    expect(followed.progress.some(({ eta }) => eta?.basis.includes('to go at'))).toBe(true);
    expect(backfillEndText(summary, { isBeside: true }).replaceAll(/\s+/g, ' ')).toMatch(
      /every point is stored \(meanwhile, the daemon has delivered [\d,]+ points, those of its own polls included\)\./,
    );
    await expectThere(rig, NOW_MS - 20 * DAY_MS, NOW_MS - 5 * MINUTE_MS);
    const lanes = inState(rig, (db) =>
      db.prepare("SELECT lane, count(*) AS n FROM request WHERE stream = 'telemetry' GROUP BY lane").all(),
    );
    expect(lanes).toContainEqual({ lane: 'backfill', n: summary.requests });
    expect(lanes).toContainEqual({ lane: 'first-history', n: expect.any(Number) });
    expect(eventsOf(life, 'job-ended')).toMatchObject([{ kind: 'backfill', state: 'done', exitCode: 0 }]);
    // The job does not repeat the requests of the daemon's own polls.
    expect(telemetryRequests(rig)).toBeLessThan(900);
  });

  test('reports that it waits for polls while only the newest readings are open', async () => {
    using rig = await rigOf();
    await live(rig, MINUTE_MS, {
      meanwhile: async () => {
        await rig.clock.sleep(20 * MINUTE_MS);
        const followed = await followBackfill(rig, { fromMs: NOW_MS - HOUR_MS });
        expect(summaryOf(followed)).toMatchObject({ outcome: 'complete', devices_complete: 4 });
        const waits = followed.progress.map((each) => each.waits ?? null);
        expect(waits).toContainEqual(
          expect.stringMatching(/^waiting for the next poll of [1-4] devices?, usually within 3 minutes$/),
        );
        expect(waits.every((text) => text === null || text.startsWith('waiting for the next poll'))).toBe(true);
      },
    });
  });

  test('ends at once where the polls of the daemon have covered the range but for its last minutes', async () => {
    const fleet = Array.from({ length: 5 }, (_, n) => ({ deviceId: `d${n}`, intervalMs: MINUTE_MS }));
    using rig = await rigOf({ world: worldOf(fleet, 40 * DAY_MS), historyMs: 3 * HOUR_MS });
    await live(rig, MINUTE_MS, {
      meanwhile: async () => {
        await rig.clock.sleep(20 * MINUTE_MS);
        const beganMs = rig.clock.nowMs();
        const summary = summaryOf(await followBackfill(rig, { fromMs: NOW_MS - HOUR_MS }));
        expect(rig.clock.nowMs() - beganMs).toBeLessThan(5 * SECOND_MS);
        expect(summary).toMatchObject({ outcome: 'complete', devices_complete: 5, missing: [], requests: 0 });
        // It reports nothing as complete beyond the covered range.
        const toMs = Date.parse(summary.to);
        for (const { deviceId } of fleet) expect(coverageOf(rig, deviceId).at(-1)?.[1]).toBeGreaterThanOrEqual(toMs);
        expect(beganMs - toMs).toBeLessThan(8 * MINUTE_MS);
        // A gap below is not passed over.
        const older = summaryOf(await followBackfill(rig, { fromMs: NOW_MS - 12 * HOUR_MS }));
        expect(older).toMatchObject({ outcome: 'complete', devices_complete: 5 });
        expect(older.requests).toBeGreaterThan(5);
      },
    });
  });

  test('takes no requests from live work: readings are as fresh as without it', async () => {
    const plan = { requestsPerMinute: 20, requestsPerDay: 60_000, historyMaxDays: 31 };
    const fleet = Array.from({ length: 5 }, (_, n) => ({ deviceId: `d${n}`, intervalMs: MINUTE_MS, jitter: 0.3 }));
    const meanLag = async (withBackfill: boolean): Promise<{ lag: number; backfill: number }> => {
      using rig = await rigOf({ world: worldOf(fleet, 40 * DAY_MS), historyMs: HOUR_MS, settings: { plan } });
      const lags: number[] = [];
      await live(rig, MINUTE_MS, {
        meanwhile: async ({ report }) => {
          await rig.clock.sleep(10 * MINUTE_MS);
          if (withBackfill) submit(rig, { fromMs: NOW_MS - 10 * DAY_MS });
          while (rig.clock.nowMs() < NOW_MS + 30 * MINUTE_MS) {
            await rig.clock.sleep(MINUTE_MS);
            lags.push(...report().devices.map(({ lag_seconds }) => lag_seconds ?? 0));
          }
        },
      });
      const backfill = inState(rig, (db) =>
        Number(db.prepare("SELECT count(*) FROM request WHERE lane = 'backfill'").pluck().get()),
      );
      return { lag: lags.reduce((sum, lag) => sum + lag, 0) / lags.length, backfill };
    };
    const [without, beside] = [await meanLag(false), await meanLag(true)];
    process.stderr.write(`live lag, s: ${JSON.stringify([without, beside])}\n`);
    expect(beside.backfill).toBeGreaterThan(100);
    // At 20 requests a minute a live poll waits at most for one page of the backfill: three seconds.
    expect(beside.lag).toBeLessThan(without.lag * 1.12 + 3);
  });

  test('does not hold up a --once, and two of them follow each other', async () => {
    using rig = await rigOf(SMALL_PAGES);
    await live(rig, MINUTE_MS, {
      meanwhile: async () => {
        await rig.clock.sleep(10 * MINUTE_MS);
        const first = followBackfill(rig, { fromMs: NOW_MS - 3 * DAY_MS, maxShare: 0.1 });
        const second = followBackfill(rig, { fromMs: NOW_MS - 4 * DAY_MS, devices: ['seldom'] });
        await rig.clock.sleep(5 * SECOND_MS);
        const once = await followBackfill(rig, 'once');
        expect(once.end).toMatchObject({ exitCode: 0 });
        expect(once.tookMs).toBeLessThan(5 * MINUTE_MS);
        expect(statesOf(rig)).toEqual(['running', 'waiting']);
        expect((await first).end).toMatchObject({ exitCode: 0 });
        expect((await second).end).toMatchObject({ exitCode: 0 });
        expect((await second).tookMs).toBeGreaterThanOrEqual((await first).tookMs);
      },
    });
    expect(statesOf(rig)).toEqual(['done', 'done']);
  });

  test('is cancelled when its follower is stopped, and sends no more requests', async () => {
    using rig = await rigOf();
    const life = await live(rig, MINUTE_MS, {
      meanwhile: async () => {
        await rig.clock.sleep(10 * MINUTE_MS);
        const stop = new AbortController();
        const following = followBackfill(rig, { fromMs: NOW_MS - 30 * DAY_MS, maxShare: 0.1 }, stop.signal);
        await rig.clock.sleep(MINUTE_MS);
        stop.abort(new Error('Ctrl-C'));
        const followed = await following;
        expect(followed.end).toMatchObject({ state: 'cancelled', exitCode: 3 });
        expect(summaryOf(followed)).toMatchObject({ outcome: 'interrupted' });
        await rig.clock.sleep(MINUTE_MS);
        const before = inState(rig, (db) =>
          db.prepare("SELECT count(*) FROM request WHERE lane = 'backfill'").pluck().get(),
        );
        await rig.clock.sleep(20 * MINUTE_MS);
        expect(
          inState(rig, (db) => db.prepare("SELECT count(*) FROM request WHERE lane = 'backfill'").pluck().get()),
        ).toBe(before);
      },
    });
    expect(life.error).toBeNull();
  });

  test('is followed again by the same command, running or waiting, and never requested twice', async () => {
    using rig = await rigOf(SMALL_PAGES);
    await live(rig, MINUTE_MS, {
      meanwhile: async () => {
        await rig.clock.sleep(10 * MINUTE_MS);
        const running = { fromMs: NOW_MS - 4 * DAY_MS, maxShare: 0.1, typed: '4d' };
        const waiting = { fromMs: NOW_MS - 7 * DAY_MS, toMs: NOW_MS - 5 * DAY_MS, devices: ['tied', 'seldom'] };
        // Their commands are killed at once.
        submit(rig, running);
        submit(rig, waiting);
        await rig.clock.sleep(36 * SECOND_MS);
        expect(statesOf(rig)).toEqual(['running', 'waiting']);
        // An age is another time by now; devices are in any order.
        const first = followBackfill(rig, { ...running, fromMs: running.fromMs + 36 * SECOND_MS });
        const second = followBackfill(rig, { ...waiting, devices: ['seldom', 'tied'] });
        await rig.clock.sleep(5 * SECOND_MS);
        expect(statesOf(rig)).toEqual(['running', 'waiting']);
        const [{ end, progress }, other] = [await first, await second];
        expect(end).toMatchObject({ state: 'done', exitCode: 0 });
        expect(Date.parse(summaryOf({ end }).from ?? ''), 'the range of the first request').toBe(running.fromMs);
        expect(progress.length).toBeGreaterThan(0);
        expect(summaryOf(other)).toMatchObject({ outcome: 'complete', devices: 2 });
        expect(Date.parse(summaryOf(other).to)).toBe(waiting.toMs);
      },
    });
    expect(statesOf(rig)).toEqual(['done', 'done']);
  });

  test('is cancelled by Ctrl-C of the command that follows it again, running or waiting', async () => {
    using rig = await rigOf();
    const life = await live(rig, 35 * MINUTE_MS, {
      meanwhile: async () => {
        await rig.clock.sleep(10 * MINUTE_MS);
        const running = { fromMs: NOW_MS - 20 * DAY_MS, maxShare: 0.1 };
        const waiting = { fromMs: NOW_MS - 30 * DAY_MS, toMs: NOW_MS - 21 * DAY_MS };
        submit(rig, running);
        submit(rig, waiting);
        await rig.clock.sleep(MINUTE_MS);
        const again = async (asked: Asked): Promise<Followed> => {
          const stop = new AbortController();
          const following = followBackfill(rig, asked, stop.signal);
          following.catch(() => {});
          await rig.clock.sleep(10 * SECOND_MS);
          stop.abort(new Error('Ctrl-C'));
          return await following;
        };
        await expect(again(waiting)).rejects.toMatchObject({
          exitCode: 3,
          message: expect.stringContaining('cancelled'),
        });
        expect(statesOf(rig)).toEqual(['running']);
        expect((await again(running)).end).toMatchObject({ state: 'cancelled', exitCode: 3 });
        expect(statesOf(rig)).toEqual(['cancelled']);
      },
    });
    expect(life.error).toBeNull();
  });

  test('that a stopped daemon has left waits for the next one, if the same command finds no daemon', async () => {
    using rig = await rigOf();
    rig.open().close();
    const asked = { fromMs: NOW_MS - 5 * DAY_MS };
    submit(rig, asked);
    inState(rig, (db) => db.exec('UPDATE job SET worker_beat = 7'));
    expect((await followBackfill(rig, asked)).end).toBeNull();
    expect(statesOf(rig)).toEqual(['waiting']);
  });

  test('that waits for the budget of the day shows until when, and an ETA that holds', async () => {
    const plan = { ...SMALL_PAGES.settings.plan, requestsPerMinute: 100, requestsPerDay: 20_000, historyMaxDays: 31 };
    using rig = await rigOf({ ...SMALL_PAGES, settings: { plan } });
    await live(rig, 20 * MINUTE_MS);
    // A restart adds no budget: requests of the last hours count. The day has 480 at once, half of them for live work.
    const insert = "INSERT INTO request (at_ms, lane, stream) VALUES (?, 'live', 'telemetry')";
    inState(rig, (db) => {
      const statement = db.prepare(insert);
      for (let n = 0; n < 255; n += 1) statement.run(NOW_MS - HOUR_MS + n * SECOND_MS);
    });
    const seen: { atMs: number; until: string | null; eta: number | null; quota: string | null }[] = [];
    await live(rig, MINUTE_MS, {
      meanwhile: async ({ report }) => {
        const following = followBackfill(rig, { fromMs: NOW_MS - 6 * DAY_MS, maxShare: 0.25 });
        const ended = { isOver: false };
        const over = (): void => void Object.assign(ended, { isOver: true });
        void following.then(over, over);
        await rig.clock.sleep(90 * SECOND_MS);
        while (!ended.isOver) {
          const { jobs, allowance } = report();
          // To this process its own lock looks free.
          using state = openToRead(rig.dataDir);
          if (state === null) throw new Error('no state');
          const parts = partsOfState({ ...state, isLocked: true }, configOf(rig), rig.clock);
          const quota = parts.quota().history_waiting_until;
          const [eta, until] = [jobs[0]?.eta_seconds ?? null, allowance.history_waiting_until];
          seen.push({ atMs: rig.clock.nowMs(), until, eta, quota });
          await rig.clock.sleep(MINUTE_MS);
        }
        expect((await following).end).toMatchObject({ state: 'done', exitCode: 0 });
        const endMs = rig.clock.nowMs();
        const [first] = seen;
        const leftMs = endMs - (first?.atMs ?? 0);
        expect(leftMs).toBeGreaterThan(10 * MINUTE_MS);
        expect(((first?.eta ?? 0) * SECOND_MS) / leftMs, JSON.stringify(seen)).toBeGreaterThan(0.7);
        expect(((first?.eta ?? 0) * SECOND_MS) / leftMs, JSON.stringify(seen)).toBeLessThan(1.5);
        // The time that is shown is that of the first request, not of the next poll, and --status shows it too.
        const waitMs = Date.parse(first?.until ?? '') - (first?.atMs ?? 0);
        expect(waitMs).toBeGreaterThan(3 * MINUTE_MS);
        expect(waitMs).toBeLessThan(leftMs);
        expect(first?.quota, JSON.stringify(seen)).toBe(first?.until);
      },
    });
  });

  test('continues without its follower and after a restart of the daemon, without a repeated request', async () => {
    using whole = await rigOf();
    await live(whole, 15 * MINUTE_MS);
    await live(whole, MINUTE_MS, {
      meanwhile: async () => {
        submit(whole, { fromMs: NOW_MS - 14 * DAY_MS });
        await untilDone(whole);
      },
    });
    const needed = Number(
      inState(whole, (db) => db.prepare("SELECT count(*) FROM request WHERE lane = 'backfill'").pluck().get()),
    );
    expect(statesOf(whole)).toEqual(['done']);
    using rig = await rigOf();
    await live(rig, 15 * MINUTE_MS);
    const requestedMs = rig.clock.nowMs();
    submit(rig, { fromMs: NOW_MS - 14 * DAY_MS });
    let lives = 0;
    while (!statesOf(rig).includes('done')) {
      lives += 1;
      expect(lives).toBeLessThan(30);
      await live(rig, lives * 25 * SECOND_MS);
    }
    expect(lives).toBeGreaterThan(3);
    const summary = inState(rig, (db) => db.prepare("SELECT summary FROM job WHERE kind = 'backfill'").pluck().get());
    const { to } = JSON.parse(String(summary));
    expect(Date.parse(to), 'its end is where it was when it began').toBeLessThan(requestedMs - MINUTE_MS);
    const made = Number(
      inState(rig, (db) => db.prepare("SELECT count(*) FROM request WHERE lane = 'backfill'").pluck().get()),
    );
    expect(made).toBeLessThanOrEqual(needed + 5 * lives);
    await expectThere(rig, NOW_MS - 14 * DAY_MS, NOW_MS - HOUR_MS);
  });

  test('keeps to its part of the share, of the minute as of the day', async () => {
    const plan = { ...SMALL_PAGES.settings.plan, requestsPerMinute: 100, requestsPerDay: 20_000, historyMaxDays: 31 };
    using rig = await rigOf({ ...SMALL_PAGES, share: 1, settings: { plan } });
    await live(rig, 55 * MINUTE_MS, {
      meanwhile: async () => {
        await rig.clock.sleep(15 * MINUTE_MS);
        submit(rig, { fromMs: NOW_MS - 6 * DAY_MS, maxShare: 0.04 });
      },
    });
    const times = inState(rig, (db) =>
      db.prepare<[], { at: number }>("SELECT at_ms AS at FROM request WHERE lane = 'backfill' ORDER BY at_ms").all(),
    ).map(({ at }) => at);
    expect(times.length).toBeGreaterThan(100);
    const inAMinute = times.map((at) => times.filter((other) => other > at - MINUTE_MS && other <= at).length);
    expect(Math.max(...inAMinute)).toBeLessThanOrEqual(5);
    const rate = ((times.length - 1) * MINUTE_MS) / ((times.at(-1) ?? 0) - (times[0] ?? 0));
    expect(rate).toBeGreaterThan(3.2);
  });

  test('a larger sync.history is a backfill of its own', async () => {
    using rig = await rigOf();
    await live(rig, 20 * MINUTE_MS);
    const before = telemetryRequests(rig);
    const settings = { ...rig.settings, history: { kind: 'age', ageMs: 20 * DAY_MS } as const };
    const life = await live(rig, 40 * MINUTE_MS, { changes: { settings } });
    expect(life.lastReport.devices.every(({ gaps }) => gaps.every(({ reason }) => reason !== 'pending'))).toBe(true);
    for (const { deviceId } of DEVICES) expect(coverageOf(rig, deviceId)[0]?.[0]).toBeLessThan(NOW_MS - 19.9 * DAY_MS);
    expect(telemetryRequests(rig) - before).toBeGreaterThan(100);
    await expectThere(rig, NOW_MS - 19.9 * DAY_MS, NOW_MS - 5 * MINUTE_MS);
  });

  test('a range with its own end does not make the daemon fill the time between', async () => {
    using rig = await rigOf();
    await live(rig, 20 * MINUTE_MS);
    await live(rig, MINUTE_MS, {
      meanwhile: async () => {
        submit(rig, { fromMs: NOW_MS - 20 * DAY_MS, toMs: NOW_MS - 15 * DAY_MS });
        await untilDone(rig);
      },
    });
    expect(statesOf(rig)).toEqual(['done']);
    await live(rig, 30 * MINUTE_MS);
    const [island, now, ...more] = coverageOf(rig, 'seldom');
    expect(more).toEqual([]);
    expect(island).toEqual([NOW_MS - 20 * DAY_MS, NOW_MS - 15 * DAY_MS]);
    expect(now?.[0]).toBeGreaterThan(NOW_MS - 2.1 * DAY_MS);
  });

  test('a range that includes the end of the interrupted one leaves all after it wanted', async () => {
    using rig = await rigOf();
    await live(rig, 20 * MINUTE_MS);
    await rig.clock.sleep(10 * DAY_MS);
    const asked = { fromMs: NOW_MS - 5 * DAY_MS, toMs: NOW_MS + 5 * DAY_MS };
    // Once more, and a smaller one in it: what was noted of the first holds for these too.
    for (const toMs of [asked.toMs, asked.toMs, NOW_MS + 4 * DAY_MS]) await backfillAlone(rig, { ...asked, toMs });
    await live(rig, 40 * MINUTE_MS);
    for (const deviceId of ['often', 'tied', 'seldom']) expect(coverageOf(rig, deviceId)).toHaveLength(1);
    await expectThere(rig, NOW_MS - 5 * DAY_MS, NOW_MS + 10 * DAY_MS);
  });

  test('reports a rejected key and an unknown device to its follower', async () => {
    using rig = await rigOf();
    const life = await live(rig, MINUTE_MS, {
      meanwhile: async () => {
        await rig.clock.sleep(MINUTE_MS);
        expect((await followBackfill(rig, { fromMs: NOW_MS - DAY_MS, devices: ['nobody'] })).end).toMatchObject({
          state: 'failed',
          exitCode: 2,
          message: expect.stringContaining('--device: the workspace has no device with that id or name. '),
        });
        rig.simulator.settings.key.revoked = true;
        expect((await followBackfill(rig, { fromMs: NOW_MS - 20 * DAY_MS })).end).toMatchObject({ exitCode: 77 });
        expect((await followBackfill(rig, { fromMs: NOW_MS - 20 * DAY_MS })).end).toMatchObject({ exitCode: 77 });
        rig.simulator.settings.key.revoked = false;
      },
    });
    expect(life.error).toBeNull();
  });
});
