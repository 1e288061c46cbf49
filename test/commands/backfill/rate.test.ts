/**
 * The pace of a backfill, what it was thought to cost against what it did, and deaths at any effect.
 */
import { describe, expect, test } from 'vitest';
import { computePlan } from '../../../src/commands/plan/command.ts';
import { readBackfillOptions, readRate } from '../../../src/commands/shared/options.ts';
import { UserError } from '../../../src/core/faults.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../src/core/time.ts';
import { createBackfillRate } from '../../../src/scheduler/backfill.ts';
import { worldOf } from '../../support/daemon-rig.ts';
import { POLLS, SCHEDULES } from '../../support/defaults.ts';
import { influxdAvailable } from '../../support/influxd.ts';
import { countEffects, dieAtEffect, Killed, liveOn, mortalCommits, mortalTransport } from '../../support/mortality.ts';
import { NOW_MS, openBench, openRig, type Rig, type RigOptions } from '../../support/rig.ts';
import { sharedBench } from '../../support/shared-bench.ts';
import { transportOf } from '../../support/sim-transport.ts';
import { forWork } from '../plan/support.ts';
import { backfillAlone, inState, telemetryRequests } from './support.ts';

const DEVICES = [
  { deviceId: 'often', intervalMs: 2 * MINUTE_MS },
  { deviceId: 'seldom', intervalMs: 17 * MINUTE_MS },
];

describe('the rate of a backfill', () => {
  const walk = (rate: ReturnType<typeof createBackfillRate>, count: number, fromMs = 0): number[] => {
    let nowMs = fromMs;
    return Array.from({ length: count }, () => {
      nowMs = Math.max(nowMs, rate.freeAtMs(nowMs));
      rate.noteSent(nowMs);
      return nowMs;
    });
  };
  const budgets = () => ({ perMinute: 60, perDay: 1000 });

  test('of a part of the share is even in the minute and bounded by the day', () => {
    const rate = createBackfillRate({ maxShare: 0.1, finishByMs: null, startedMs: 0, sentMs: [], budgets });
    const times = walk(rate, 101);
    expect(times.slice(0, 3)).toEqual([0, 10_000, 20_000]);
    expect(times[99]).toBe(990_000);
    expect(times[100]).toBe(DAY_MS);
  });

  test('is estimated by the part of the minute, and by when requests of the last day leave the window', () => {
    // 90 of 100 a day were sent within 15 minutes, 10 hours ago.
    const sentMs = Array.from({ length: 90 }, (_, n) => n * 10_000);
    const nowMs = 10 * HOUR_MS;
    const rate = createBackfillRate({ maxShare: 0.1, finishByMs: null, startedMs: nowMs, sentMs, budgets });
    expect(rate.lastsMs(6, nowMs)).toBe(MINUTE_MS);
    expect(rate.dayFreeAtMs()).toBeLessThan(nowMs);
    expect(nowMs + rate.lastsMs(11, nowMs)).toBe(DAY_MS);
    expect(nowMs + rate.lastsMs(16, nowMs)).toBe(DAY_MS + 50_000);
    expect(nowMs + rate.lastsMs(116, nowMs)).toBe(2 * DAY_MS + 50_000);
    for (let sent = 0; sent < 10; sent += 1) rate.noteSent(nowMs);
    expect(rate.dayFreeAtMs()).toBe(DAY_MS);
    expect(nowMs + rate.lastsMs(1, nowMs)).toBe(DAY_MS);
  });

  test('counts the requests from before a restart', () => {
    const sentMs = Array.from({ length: 100 }, (_, n) => n * 10_000);
    const rate = createBackfillRate({ maxShare: 0.1, finishByMs: null, startedMs: HOUR_MS, sentMs, budgets });
    expect(rate.freeAtMs(HOUR_MS)).toBe(DAY_MS);
  });

  test('towards a time spreads the rest, adapts to a larger rest, and is done before', () => {
    const rate = createBackfillRate({ maxShare: null, finishByMs: 100 * MINUTE_MS, startedMs: 0, sentMs: [], budgets });
    rate.setLeft(50);
    const first = walk(rate, 25);
    expect(first[24]).toBeGreaterThan(44 * MINUTE_MS);
    rate.setLeft(75);
    const rest = walk(rate, 75, first[24]);
    expect(rest[74]).toBeGreaterThan(88 * MINUTE_MS);
    expect(rest[74]).toBeLessThan(100 * MINUTE_MS);
    expect(rate.isLate(99 * MINUTE_MS)).toBe(false);
    expect(rate.isLate(101 * MINUTE_MS)).toBe(true);
  });
});

describe('the command line', () => {
  const asked = (more: Partial<Parameters<typeof readBackfillOptions>[0]>) =>
    readBackfillOptions({ from: '90d', to: null, finishBy: null, maxShare: null, recheck: false, ...more }, NOW_MS);

  test.each([
    [{ from: null }, /^--backfill needs --from: a date/],
    [{ from: 'sk_live_4242' }, /^--from: expected a date .* or an age such as 90d, or all$/],
    [{ from: '2030-01-01' }, /^--from: expected a time in the past/],
    [{ from: '1d', to: '2d' }, /^--from: expected a time before --to/],
    [{ from: '0d' }, /^--from: expected a time before now/],
    [{ to: 'all' }, /^--to: expected a date/],
    [{ maxShare: '0' }, /^--max-share: expected a number above 0 and up to 1/],
    [{ maxShare: '1.5' }, /^--max-share: expected a number above 0/],
    [{ maxShare: 'sk_live_4242' }, /^--max-share: expected a number/],
    [{ finishBy: '2020-01-01' }, /^--finish-by: expected a time in the future/],
    [{ finishBy: '0h' }, /^--finish-by: expected a time in the future/],
    [{ finishBy: 'sk_live_4242' }, /^--finish-by: expected a time in the future: a date/],
    [{ finishBy: '12h', maxShare: '0.5' }, /^--finish-by and --max-share both set the rate/],
    [{ from: 'all', finishBy: '12h' }, /^--finish-by needs a --from other than all/],
  ])('%j is a mistake with its own words', (more, words) => {
    const error = (() => {
      try {
        return asked(more);
      } catch (cause) {
        return cause;
      }
    })();
    expect(error).toBeInstanceOf(UserError);
    expect(error).toMatchObject({ exitCode: 2, message: expect.stringMatching(words) });
    expect((error as UserError).message).not.toContain('4242');
  });

  test('times to come are dates, times or lengths from now on', () => {
    expect(readRate({ finishBy: '12h', maxShare: null }, NOW_MS).finishByMs).toBe(NOW_MS + 12 * HOUR_MS);
    expect(readRate({ finishBy: '2026-07-01', maxShare: null }, NOW_MS).finishByMs).toBe(Date.UTC(2026, 6, 1));
    expect(readRate({ finishBy: null, maxShare: '0.25' }, NOW_MS)).toEqual({ finishByMs: null, maxShare: 0.25 });
    expect(asked({ from: 'all' })).toMatchObject({ from: 'all', to: null });
  });
});

describe.runIf(influxdAvailable())('on the simulator', () => {
  const bench = sharedBench(openBench);

  const world = worldOf(DEVICES, 40 * DAY_MS);

  const rigOf = async (options: Partial<RigOptions> = {}): Promise<Rig> =>
    await openRig(bench, { world, historyMs: 2 * DAY_MS, ...options });

  const thought = async (rig: Rig, fromMs: number, more: { finishBy?: string; maxShare?: string } = {}) => {
    const sync = {
      history: rig.settings.history,
      gracePeriodMs: rig.settings.gracePeriodMs,
      schedules: SCHEDULES,
      polls: POLLS,
      leftOut: rig.settings.filter.spec,
    };
    const config = { dataDir: rig.dataDir, api: { share: 0.8 }, sync };
    const from = new Date(fromMs).toISOString();
    const command = { from, to: null, devices: [], whatIf: [], finishBy: null, maxShare: null, ...more };
    const open = forWork(() => rig.open());
    return await computePlan({ command, config, open, clock: rig.clock }, new AbortController().signal);
  };

  test.each([365, 7, 1])('costs its estimate, within a few per cent (windows of %d days)', async (days) => {
    using rig = await rigOf({ settings: { plan: { historyMaxDays: days } } });
    // The basis of the rates.
    await backfillAlone(rig, { fromMs: NOW_MS - 2 * DAY_MS });
    const before = telemetryRequests(rig);
    const beganMs = rig.clock.nowMs();
    const { backfill } = await thought(rig, NOW_MS - 30 * DAY_MS);
    await backfillAlone(rig, { fromMs: NOW_MS - 30 * DAY_MS });
    const made = telemetryRequests(rig) - before;
    expect(made).toBeGreaterThan(50);
    expect(Math.abs(made - backfill.requests)).toBeLessThanOrEqual(Math.max(4, made * 0.05));
    const tookMs = rig.clock.nowMs() - beganMs;
    expect(tookMs / 1000).toBeLessThan((backfill.alone.seconds ?? 0) * 1.3 + 30);
  });

  test('is done by the time that it was to be done by, and not long before', async () => {
    using rig = await rigOf({ settings: { plan: { maxDevicesPerPage: 40 } } });
    await backfillAlone(rig, { fromMs: NOW_MS - 10 * HOUR_MS });
    const finishByMs = rig.clock.nowMs() + HOUR_MS;
    const plan = await thought(rig, NOW_MS - 6 * DAY_MS, { finishBy: '1h' });
    expect(plan.backfill.rate).toMatchObject({ alone: { in_time: true } });
    const { summary } = await backfillAlone(rig, { fromMs: NOW_MS - 6 * DAY_MS, finishByMs });
    expect(summary).toMatchObject({ outcome: 'complete', late: false });
    expect(finishByMs - rig.clock.nowMs()).toBeGreaterThan(0);
    expect(finishByMs - rig.clock.nowMs()).toBeLessThan(15 * MINUTE_MS);
  });

  test('a backfill with a part of the share keeps that rate', async () => {
    using rig = await rigOf({ settings: { plan: { maxDevicesPerPage: 40 } } });
    await backfillAlone(rig, { fromMs: NOW_MS - 4 * DAY_MS, maxShare: 0.05 });
    const times = inState(rig, (db) =>
      db.prepare<[], { at: number }>("SELECT at_ms AS at FROM request WHERE lane = 'backfill' ORDER BY at_ms").all(),
    ).map(({ at }) => at);
    // A twentieth of 96 a minute.
    const perMinute = ((times.length - 1) * MINUTE_MS) / ((times.at(-1) ?? 0) - (times[0] ?? 0));
    expect(perMinute).toBeGreaterThan(4.4);
    expect(perMinute).toBeLessThan(4.9);
  });

  test('killed at any effect it loses nothing, duplicates nothing, and repeats only the requests in flight', async () => {
    const asked = { fromMs: NOW_MS - 4 * DAY_MS, toMs: NOW_MS - HOUR_MS };
    const changes = (rig: Rig) => ({ transport: mortalTransport(transportOf(rig.simulator)) });
    using _ = mortalCommits();
    using whole = await rigOf();
    countEffects();
    await backfillAlone(whole, asked, { changes: changes(whole) });
    const effects = liveOn();
    const needed = telemetryRequests(whole);
    expect(effects).toBeGreaterThan(100);
    for (let nth = 1; nth < effects; nth += 61) {
      using rig = await rigOf();
      dieAtEffect(nth);
      await backfillAlone(rig, asked, { changes: changes(rig) }).catch((error: unknown) => {
        if (!(error instanceof Killed) && !(error instanceof UserError)) throw error;
      });
      liveOn();
      const { summary } = await backfillAlone(rig, asked);
      expect(summary, `killed at ${nth}`).toMatchObject({ outcome: 'complete', exit_code: 0 });
      expect(telemetryRequests(rig), `killed at ${nth}`).toBeLessThanOrEqual(needed + 8);
      const verdict = await rig.verdict(NOW_MS, {
        fromNs: BigInt(asked.fromMs) * 1_000_000n,
        toNs: BigInt(asked.toMs) * 1_000_000n,
      });
      expect([verdict.missing.length, verdict.invented.length], `killed at ${nth}`).toEqual([0, 0]);
    }
  });
});
