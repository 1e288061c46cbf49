/**
 * The estimate of the server's time from Date headers, and the coverage limit. Clocks and delays are simulated, in
 * virtual time.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createServerClock } from '../../src/core/server-clock.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, msToNs, nsToMs, SECOND_MS } from '../../src/core/time.ts';
import { createVirtualClock } from '../support/virtual-clock.ts';
import { T0, world } from './support/server-clock-world.ts';

describe('the estimate', () => {
  test('is the local clock until the first answer with a Date', () => {
    const w = world({ skewMs: 7 * MINUTE_MS });
    expect([w.serverClock.nowMs(), w.serverClock.skewMs(), w.serverClock.highestPassedMs()]).toEqual([
      w.wallMs(),
      null,
      null,
    ]);
    w.ask();
    expect(Math.abs(w.serverClock.nowMs() - w.serverMs())).toBeLessThanOrEqual(1100);
    expect(Math.abs((w.serverClock.skewMs() ?? 0) - 7 * MINUTE_MS)).toBeLessThanOrEqual(1100);
  });

  test('is carried on by the monotonic clock, whatever the wall clock does', () => {
    const w = world();
    w.ask();
    w.moveWall(-3 * HOUR_MS);
    w.pass(10 * MINUTE_MS);
    expect(Math.abs(w.serverClock.nowMs() - w.serverMs())).toBeLessThanOrEqual(1100);
  });

  test('nears the server with every answer, because the least delayed one counts', () => {
    const w = world();
    for (let i = 0; i < 50; i += 1) {
      w.ask({ thereMs: 20, backMs: 20 });
      w.pass(777);
    }
    expect(w.serverMs() - w.serverClock.nowMs()).toBeLessThanOrEqual(100);
    expect(w.serverClock.nowMs()).toBeLessThanOrEqual(w.serverMs());
  });
});

describe('the latest time that a record may have', () => {
  const past = (w: ReturnType<typeof world>, ms: number): number => nsToMs(w.serverClock.latestNs()) - ms;

  test('is a day after the local clock, or after the server where that is later', () => {
    const behind = world({ skewMs: -7 * DAY_MS });
    expect(past(behind, behind.wallMs())).toBe(DAY_MS);
    behind.ask();
    expect(Math.abs(past(behind, behind.serverMs()) - DAY_MS)).toBeLessThanOrEqual(1100);
    const ahead = world({ skewMs: 7 * DAY_MS });
    ahead.ask();
    expect(past(ahead, ahead.wallMs())).toBe(DAY_MS);
  });

  test('without a Date is a day after the newest time in the state, where the local clock is behind that', () => {
    const clock = createVirtualClock(0);
    const others = { toleranceMs: 0, storedMs: () => [30 * DAY_MS, 40 * DAY_MS] };
    expect(createServerClock(clock, others).latestNs()).toBe(msToNs(41 * DAY_MS));
    expect(createServerClock(clock).latestNs()).toBe(msToNs(DAY_MS));
  });

  test('without a Date stays where it is, however late the records are that the state gets meanwhile', () => {
    const clock = createVirtualClock(0);
    let storedMs = 40 * DAY_MS;
    const serverClock = createServerClock(clock, { toleranceMs: 0, storedMs: () => [storedMs] });
    serverClock.noteDate({ dateMs: null, sentMonoMs: 0, receivedMonoMs: 0 });
    storedMs = 41 * DAY_MS;
    expect(serverClock.latestNs()).toBe(msToNs(41 * DAY_MS));
  });
});

describe('the coverage limit', () => {
  test('never passes the server’s clock nor falls back, whatever delays answers and slews clocks', () => {
    const steps = fc.record({
      restMs: fc.integer({ min: 0, max: 20 * MINUTE_MS }),
      thereMs: fc.integer({ min: 0, max: 30_000 }),
      backMs: fc.integer({ min: 0, max: 30_000 }),
      wallMs: fc.oneof(fc.constant(0), fc.integer({ min: -2 * HOUR_MS, max: 2 * HOUR_MS })),
      hostSleepsMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 2 * HOUR_MS })),
      driftPpm: fc.integer({ min: -400, max: 400 }),
    });
    fc.assert(
      fc.property(fc.array(steps, { maxLength: 60 }), (list) => {
        const w = world();
        let lastMs = Number.NEGATIVE_INFINITY;
        for (const step of list) {
          w.pass(step.restMs);
          w.moveServer((step.restMs * step.driftPpm) / 1e6);
          w.moveWall(step.wallMs);
          if (step.wallMs === 0) w.sleepHost(step.hostSleepsMs);
          w.ask(step);
          const claimMs = w.serverClock.highestPassedMs() ?? Number.NEGATIVE_INFINITY;
          expect(claimMs).toBeLessThanOrEqual(w.serverMs());
          expect(claimMs).toBeGreaterThanOrEqual(lastMs);
          lastMs = claimMs;
        }
      }),
    );
  });

  test('follows the server within seconds while nothing odd happens', () => {
    const w = world();
    for (let i = 0; i < 300; i += 1) {
      w.pass(10_000);
      w.ask();
      expect(w.serverMs() - (w.serverClock.highestPassedMs() ?? 0)).toBeLessThanOrEqual(1600);
    }
  });

  test('a slow answer holds it back for ten minutes only', () => {
    const w = world();
    w.ask({ thereMs: 0, backMs: 30_000 });
    w.ask();
    expect(w.serverMs() - (w.serverClock.highestPassedMs() ?? 0)).toBeGreaterThan(29_000);
    for (let i = 0; i < 11; i += 1) {
      w.pass(MINUTE_MS);
      w.ask();
    }
    expect(w.serverMs() - (w.serverClock.highestPassedMs() ?? 0)).toBeLessThanOrEqual(1600);
  });

  test('ignores a Date that jumps ahead when the local clock has not made the jump', () => {
    const w = world();
    w.ask();
    for (let i = 0; i < 100; i += 1) {
      w.pass(MINUTE_MS);
      w.ask({ lieMs: HOUR_MS });
      expect(w.serverClock.highestPassedMs()).toBeLessThanOrEqual(w.serverMs());
      expect(w.serverClock.nowMs()).toBeLessThanOrEqual(w.serverMs());
    }
  });

  test('ignores a jump ahead when the local clock jumped by another length', () => {
    for (const wallMs of [-HOUR_MS, 10 * MINUTE_MS, 3 * HOUR_MS]) {
      const w = world();
      w.ask();
      w.moveWall(wallMs);
      w.ask({ lieMs: HOUR_MS });
      expect(w.serverClock.highestPassedMs()).toBeLessThanOrEqual(w.serverMs());
    }
  });

  test('continues at once after the host has slept', () => {
    const w = world();
    for (let i = 0; i < 20; i += 1) w.ask();
    w.sleepHost(2 * HOUR_MS);
    w.ask();
    expect(w.serverMs() - (w.serverClock.highestPassedMs() ?? 0)).toBeLessThanOrEqual(1600);
  });

  test('holds when Date falls back, until the server’s clock has caught up', () => {
    const w = world();
    w.ask();
    w.moveServer(-20 * MINUTE_MS);
    w.pass(5 * MINUTE_MS);
    const beforeMs = w.serverClock.highestPassedMs() ?? 0;
    w.ask();
    const heldMs = w.serverClock.highestPassedMs() ?? 0;
    expect(heldMs - beforeMs).toBeGreaterThanOrEqual(0);
    expect(heldMs - beforeMs, 'while the answer was under way').toBeLessThanOrEqual(100);
    w.pass(MINUTE_MS);
    expect(w.serverClock.highestPassedMs()).toBe(heldMs);
    w.pass(21 * MINUTE_MS);
    w.ask();
    const afterMs = w.serverClock.highestPassedMs() ?? 0;
    expect(afterMs).toBeGreaterThan(heldMs);
    expect(afterMs).toBeLessThanOrEqual(w.serverMs());
  });

  test('does not depend on earlier reads: reading it changes nothing', () => {
    const highest = [0, 1].map((reads) => {
      const w = world();
      w.ask();
      w.pass(5 * MINUTE_MS);
      for (let i = 0; i < reads; i += 1) w.serverClock.highestPassedMs();
      w.moveServer(-20 * MINUTE_MS);
      w.ask();
      return w.serverClock.highestPassedMs();
    });
    expect(highest[0]).toBe(highest[1]);
    expect(highest[0]).toBeGreaterThan(T0 + 4 * MINUTE_MS);
  });

  test('one stray Date from the past holds it for a while, but not for ever', () => {
    const w = world();
    w.ask();
    w.ask({ lieMs: -HOUR_MS });
    for (let i = 0; i < 12; i += 1) {
      w.pass(MINUTE_MS);
      w.ask();
    }
    expect(w.serverMs() - (w.serverClock.highestPassedMs() ?? 0)).toBeLessThanOrEqual(1600);
  });

  test('stays a lower bound when the answers have no Date any more', () => {
    const w = world();
    w.ask();
    for (let i = 0; i < 24; i += 1) {
      w.pass(HOUR_MS);
      // The server's clock loses 0.4 ms a second against ours.
      w.moveServer(-HOUR_MS * 4e-4);
      w.ask({ date: false });
      expect(w.serverClock.highestPassedMs()).toBeLessThanOrEqual(w.serverMs());
    }
    expect(w.serverClock.isDateAbsent()).toBe(false);
  });
});

describe('without any Date', () => {
  test('a few answers show that there is none', () => {
    const w = world();
    w.ask({ date: false });
    w.ask({ date: false });
    expect(w.serverClock.isDateAbsent()).toBe(false);
    w.ask({ date: false });
    expect(w.serverClock.isDateAbsent()).toBe(true);
    w.ask();
    expect(w.serverClock.isDateAbsent()).toBe(false);
  });

  test('the newest served time has passed, and time continues from it by the monotonic clock', () => {
    const w = world();
    w.serverClock.noteTimes([msToNs(T0 - 30_000)]);
    w.serverClock.noteTimes([msToNs(T0 - 60_000)]);
    expect(w.serverClock.passedMs()).toBe(T0 - 30_000);
    w.pass(HOUR_MS);
    expect(w.serverClock.passedMs(), 'less what clocks drift').toBe(T0 - 30_000 + HOUR_MS * (1 - 1 / 2000));
    w.serverClock.noteTimes([msToNs(T0 + HOUR_MS - 40_000)]);
    expect(w.serverClock.highestPassedMs(), 'an older one changes nothing').toBe(
      T0 - 30_000 + HOUR_MS * (1 - 1 / 2000),
    );
    w.serverClock.noteTimes([msToNs(T0 + HOUR_MS - 10_000)]);
    expect(w.serverClock.highestPassedMs()).toBe(T0 + HOUR_MS - 10_000);
  });

  test('a reading from the future is only worth the local time', () => {
    const w = world();
    w.serverClock.noteTimes([msToNs(T0 + 24 * HOUR_MS)]);
    expect(w.serverClock.highestPassedMs()).toBe(T0);
  });

  test('a served time may be the present where the local clock is behind it, until there is a Date', () => {
    const w = world();
    expect(w.serverClock.latestPresentMs()).toBe(T0);
    w.serverClock.noteTimes([msToNs(T0 - HOUR_MS)]);
    expect(w.serverClock.latestPresentMs()).toBe(T0);
    w.serverClock.noteTimes([msToNs(T0 + HOUR_MS)]);
    expect(w.serverClock.latestPresentMs()).toBe(T0 + HOUR_MS);
    w.pass(HOUR_MS);
    expect(w.serverClock.latestPresentMs()).toBe(T0 + HOUR_MS + HOUR_MS * (1 - 1 / 2000));
    w.ask();
    expect(w.serverClock.latestPresentMs()).toBe(w.serverClock.nowMs());
  });
});

test('remembers little: fifty thousand answers in ten minutes are not compared with each other', () => {
  const w = world();
  // Were each remembered by itself, this would run into the time limit of the test.
  for (let i = 0; i < 50_000; i += 1) {
    w.ask({ thereMs: 5, backMs: 5 });
    w.serverClock.highestPassedMs();
  }
  expect(w.serverMs() - (w.serverClock.highestPassedMs() ?? 0)).toBeLessThanOrEqual(1600);
});

describe('the first Date', () => {
  const kept = (...times: number[]) => ({ toleranceMs: 2 * MINUTE_MS, storedMs: () => times });

  test('counts at once where it agrees with the local clock or with a time that the state has', () => {
    for (const [skewMs, others] of [
      [MINUTE_MS, kept()],
      [HOUR_MS, kept(T0 - HOUR_MS, T0 - MINUTE_MS)],
    ] as const) {
      const w = world({ skewMs, others });
      w.ask();
      expect(w.serverClock.unconfirmed()).toBeNull();
      expect(w.serverClock.passedMs()).not.toBeNull();
    }
  });

  test('covers nothing while it agrees with none: neither with newer nor with much older times', () => {
    const w = world({ skewMs: HOUR_MS, others: kept(T0 + MINUTE_MS, T0 - 3 * MINUTE_MS) });
    w.ask();
    w.serverClock.noteTimes([]);
    w.serverClock.noteTimes([msToNs(T0 - 10 * MINUTE_MS), msToNs(T0 + HOUR_MS)]);
    expect(w.serverClock.unconfirmed()?.dateMs).toBeLessThanOrEqual(w.serverMs());
    expect([w.serverClock.passedMs(), w.serverClock.highestPassedMs(), w.serverClock.isKnown()]).toEqual([
      null,
      null,
      false,
    ]);
    expect(w.serverClock.nowMs()).toBe(w.wallMs());
  });

  test('counts as soon as the API serves a time that it agrees with', () => {
    const w = world({ skewMs: -HOUR_MS, others: kept() });
    w.ask();
    expect(w.serverClock.passedMs()).toBeNull();
    w.serverClock.noteTimes([msToNs(T0 - 3 * HOUR_MS), msToNs(T0 - 90 * SECOND_MS)]);
    expect(w.serverClock.unconfirmed()).toBeNull();
    expect(w.serverMs() - (w.serverClock.passedMs() ?? 0)).toBeLessThan(2 * SECOND_MS);
  });

  test('is confirmed by a second answer that agrees with it, a minute later and not before', () => {
    const w = world({ skewMs: HOUR_MS, others: kept() });
    for (let i = 0; i < 5; i += 1) {
      w.ask();
      w.pass(10 * SECOND_MS);
      expect(w.serverClock.passedMs()).toBeNull();
    }
    w.pass(w.serverClock.unconfirmed()?.confirmedInMs ?? 0);
    w.ask();
    expect(w.serverMs() - (w.serverClock.passedMs() ?? 0)).toBeLessThan(2 * SECOND_MS);
  });

  test('is not confirmed by a slow answer that was requested within the minute', () => {
    const w = world({ skewMs: -2 * DAY_MS, others: { toleranceMs: 2 * MINUTE_MS, storedMs: () => [] } });
    w.ask();
    w.pass(50 * SECOND_MS);
    w.ask({ thereMs: 0, backMs: 25 * SECOND_MS });
    expect(w.serverClock.passedMs()).toBeNull();
    w.ask();
    expect(w.serverClock.passedMs()).not.toBeNull();
  });

  test('is not awaited any more after three answers without a Date, or with others', () => {
    for (const doubtOf of [() => ({ date: false }), (nth: number) => ({ lieMs: 2 * HOUR_MS + nth * MINUTE_MS })]) {
      const w = world({ skewMs: HOUR_MS, others: kept() });
      w.ask({ lieMs: 2 * HOUR_MS });
      for (let nth = 1; nth <= 3; nth += 1) {
        expect(w.serverClock.unconfirmed()).not.toBeNull();
        w.pass(10 * SECOND_MS);
        w.ask(doubtOf(nth));
      }
      expect(w.serverClock.unconfirmed()).toBeNull();
      expect([w.serverClock.isKnown(), w.serverClock.passedMs()]).toEqual([false, null]);
      w.serverClock.noteTimes([msToNs(T0)]);
      expect(w.serverClock.passedMs()).toBe(T0);
    }
  });

  test('is dropped for the right one', () => {
    const w = world({ others: kept() });
    w.ask({ lieMs: 48 * HOUR_MS });
    w.pass(2 * MINUTE_MS);
    w.ask({ lieMs: 24 * HOUR_MS });
    expect(w.serverClock.passedMs(), 'another wrong one confirms nothing').toBeNull();
    w.ask();
    expect(w.serverClock.unconfirmed()).toBeNull();
    expect(w.serverClock.highestPassedMs()).toBeLessThanOrEqual(w.serverMs());
    expect(w.serverMs() - w.serverClock.nowMs()).toBeLessThan(2 * SECOND_MS);
  });
});
