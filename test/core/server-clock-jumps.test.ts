/**
 * The estimate of the server's time when its clock jumps: ahead, where it was corrected, or back. Clocks and delays are
 * simulated, in virtual time.
 */
import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS, msToNs, SECOND_MS } from '../../src/core/time.ts';
import { T0, world } from './support/server-clock-world.ts';

describe('a server that was put right', () => {
  /** The server's clock was an hour behind since the start and is corrected. */
  function corrected() {
    const w = world({ skewMs: HOUR_MS });
    w.ask();
    w.pass(MINUTE_MS);
    w.ask();
    w.moveServer(HOUR_MS);
    return w;
  }

  test('is trusted once it has agreed with the local clock for ten minutes', () => {
    const w = corrected();
    for (let minute = 0; minute <= 10; minute += 1) {
      w.ask();
      const behindMs = w.serverMs() - (w.serverClock.highestPassedMs() ?? 0);
      if (minute < 10) expect(behindMs).toBeGreaterThan(HOUR_MS - 2 * SECOND_MS);
      else expect(behindMs).toBeLessThanOrEqual(1600);
      w.pass(MINUTE_MS);
    }
    expect(w.serverMs() - w.serverClock.nowMs()).toBeLessThanOrEqual(61_100);
  });

  test('is not trusted after two answers, however far apart', () => {
    const w = corrected();
    w.ask();
    w.pass(HOUR_MS);
    w.ask();
    expect(w.serverMs() - (w.serverClock.highestPassedMs() ?? 0)).toBeGreaterThan(HOUR_MS - 10 * SECOND_MS);
    w.ask();
    // The possible drift of two clocks within the hour is left as room.
    expect(w.serverMs() - (w.serverClock.highestPassedMs() ?? 0)).toBeLessThanOrEqual(1600 + 1800);
  });

  test('begins anew with every answer by the clock from before, and with one that does not agree', () => {
    for (const lieMs of [-HOUR_MS, 30 * MINUTE_MS]) {
      const w = corrected();
      for (let minute = 0; minute < 30; minute += 1) {
        w.ask({ lieMs: minute % 7 === 6 ? lieMs : 0 });
        w.pass(MINUTE_MS);
      }
      expect(w.serverMs() - (w.serverClock.highestPassedMs() ?? 0)).toBeGreaterThan(HOUR_MS - 10 * SECOND_MS);
    }
  });

  test('is not trusted while it disagrees with the local clock by more than two minutes', () => {
    const w = corrected();
    w.moveServer(3 * MINUTE_MS);
    for (let minute = 0; minute < 60; minute += 1) {
      w.ask();
      w.pass(MINUTE_MS);
    }
    expect(w.serverMs() - (w.serverClock.highestPassedMs() ?? 0)).toBeGreaterThan(HOUR_MS);
  });

  describe('while the API serves times', () => {
    /** A jump ahead by a length; from then on devices report by one of the two clocks. */
    function jumped(aheadMs: number, skewMs: number) {
      const w = world({ skewMs, others: { toleranceMs: 2 * MINUTE_MS, storedMs: () => [T0] } });
      w.ask();
      w.moveServer(aheadMs);
      const minutes = (count: number, reportAtMs: () => number): void => {
        for (let minute = 0; minute < count; minute += 1) {
          w.ask();
          w.serverClock.noteTimes([msToNs(reportAtMs() - HOUR_MS), msToNs(reportAtMs() - 40 * SECOND_MS)]);
          w.pass(MINUTE_MS);
        }
      };
      return { ...w, minutes, before: () => w.serverMs() - aheadMs };
    }
    const isBelieved = ({ serverClock, serverMs }: ReturnType<typeof jumped>): boolean =>
      serverMs() - serverClock.nowMs() < 2 * SECOND_MS;

    test('is trusted where they agree with it, whatever the local clock shows', () => {
      const w = jumped(HOUR_MS, 3 * HOUR_MS);
      w.minutes(10, w.serverMs);
      expect(isBelieved(w)).toBe(false);
      w.minutes(3, w.serverMs);
      expect(isBelieved(w)).toBe(true);
    });

    test('is not trusted while they continue by the clock from before, though the local clock agrees with it', () => {
      const w = jumped(2 * DAY_MS, 2 * DAY_MS);
      w.minutes(60, w.before);
      expect(isBelieved(w)).toBe(false);
      w.minutes(1, w.serverMs);
      w.ask();
      expect(isBelieved(w), 'until one agrees with it').toBe(true);
    });

    test('is trusted where the local clock agrees with it and the newest time is from before the jump', () => {
      const w = jumped(HOUR_MS, HOUR_MS);
      const fromMs = w.before();
      w.minutes(12, () => fromMs);
      expect(isBelieved(w)).toBe(true);
    });

    test('is trusted where it is so small that they agree with it as well', () => {
      const w = jumped(30 * SECOND_MS, 30 * SECOND_MS);
      w.minutes(13, w.serverMs);
      expect(isBelieved(w)).toBe(true);
    });

    test('is not trusted by times that lie after it', () => {
      const w = jumped(HOUR_MS, 3 * HOUR_MS);
      w.minutes(60, () => w.serverMs() + 2 * MINUTE_MS);
      expect(isBelieved(w)).toBe(false);
    });
  });

  test('is trusted where it repeats its time from before it fell back, whatever the local clock shows', () => {
    const w = world({ skewMs: 3 * MINUTE_MS });
    const askFor = (minutes: number): void => {
      for (let minute = 0; minute < minutes; minute += 1) {
        w.ask();
        w.pass(MINUTE_MS);
      }
    };
    askFor(60);
    w.moveServer(-HOUR_MS);
    askFor(30);
    w.moveServer(HOUR_MS);
    askFor(9);
    expect(w.serverMs() - w.serverClock.nowMs()).toBeGreaterThan(HOUR_MS - 10 * SECOND_MS);
    askFor(6);
    expect(w.serverMs() - w.serverClock.nowMs()).toBeLessThan(2 * SECOND_MS);
    w.moveServer(HOUR_MS);
    askFor(60);
    expect(w.serverMs() - w.serverClock.nowMs(), 'and a time that it never said is not').toBeGreaterThan(
      HOUR_MS - 10 * SECOND_MS,
    );
  });
});

describe('the present', () => {
  test('falls back with the second answer of many within seconds, and the estimate with it', () => {
    const w = world();
    for (let i = 0; i < 20; i += 1) {
      w.pass(SECOND_MS);
      w.ask();
    }
    w.moveServer(-HOUR_MS);
    w.ask();
    expect(w.serverClock.nowMs()).toBeGreaterThan(w.serverMs() + 59 * MINUTE_MS);
    w.ask();
    expect(w.serverClock.presentAtMostMs()).toBeLessThan(w.serverMs() + 5 * SECOND_MS);
    expect(Math.abs(w.serverClock.nowMs() - w.serverMs())).toBeLessThan(5 * SECOND_MS);
    w.moveServer(HOUR_MS);
    w.ask();
    w.ask();
    expect(Math.abs(w.serverClock.nowMs() - w.serverMs()), 'and comes back at once').toBeLessThan(2 * SECOND_MS);
  });

  test('names the time to which the clock may have fallen: since the last answer that did not show it', () => {
    const w = world();
    for (let i = 0; i < 4; i += 1) {
      w.pass(MINUTE_MS);
      w.ask();
    }
    w.moveServer(-HOUR_MS);
    const fellToMs = w.serverMs();
    w.pass(5 * MINUTE_MS);
    w.ask();
    w.ask();
    expect(w.serverClock.fellToMs()).toBeLessThanOrEqual(fellToMs);
    expect(w.serverClock.fellToMs()).toBeGreaterThan(fellToMs - 5 * SECOND_MS);
  });

  test('is wrong while the clock has fallen back from a time that agreed with the local clock', () => {
    const w = world();
    const askTwice = (): void => {
      w.pass(MINUTE_MS);
      w.ask();
      w.ask();
    };
    askTwice();
    w.moveServer(-HOUR_MS);
    askTwice();
    expect(w.serverClock.fallenToMs()).toBeGreaterThan(w.serverMs() - 2 * SECOND_MS);
    expect(w.serverClock.fallenToMs()).toBeLessThan(w.serverMs() + 2 * SECOND_MS);
    w.moveServer(HOUR_MS);
    for (let i = 0; i < 12; i += 1) askTwice();
    expect(w.serverClock.fallenToMs(), 'it is right again').toBeNull();
  });

  test('is right where the clock has fallen back to the local one', () => {
    const w = world();
    w.moveServer(HOUR_MS);
    for (const moved of [-HOUR_MS, 0]) {
      w.pass(MINUTE_MS);
      w.ask();
      w.ask();
      w.moveServer(moved);
    }
    w.ask();
    w.ask();
    expect(w.serverClock.fallenToMs()).toBeNull();
  });

  test('does not count as fallen when the host has slept', () => {
    const w = world();
    for (let i = 0; i < 4; i += 1) w.ask();
    w.sleepHost(2 * HOUR_MS);
    w.ask();
    w.ask();
    expect(w.serverClock.presentAtMostMs()).toBeGreaterThanOrEqual(w.serverMs());
    expect(w.serverClock.fellToMs()).toBeGreaterThan(w.serverMs() - 5 * SECOND_MS);
  });

  test('is not known from one answer, and lies ahead of the server’s clock', () => {
    const w = world();
    w.ask();
    expect(w.serverClock.presentAtMostMs()).toBeNull();
    for (let i = 0; i < 20; i += 1) {
      w.pass(MINUTE_MS);
      w.ask({ thereMs: 3000, backMs: 3000 });
      const presentMs = w.serverClock.presentAtMostMs() ?? 0;
      expect(presentMs).toBeGreaterThanOrEqual(w.serverMs());
      expect(presentMs - w.serverMs()).toBeLessThan(10_000);
    }
  });

  test('falls back after two answers, not after one stray Date; deadlines that have passed fall back at once', () => {
    const w = world();
    for (let i = 0; i < 5; i += 1) {
      w.pass(MINUTE_MS);
      w.ask();
    }
    w.ask({ lieMs: -HOUR_MS });
    expect(w.serverClock.presentAtMostMs()).toBeGreaterThanOrEqual(w.serverMs());
    expect(w.serverClock.passedMs()).toBeLessThan(w.serverMs() - HOUR_MS + SECOND_MS);
    w.pass(MINUTE_MS);
    w.moveServer(-HOUR_MS);
    for (let i = 0; i < 2; i += 1) {
      w.ask();
      w.pass(MINUTE_MS);
    }
    const presentMs = w.serverClock.presentAtMostMs() ?? Number.POSITIVE_INFINITY;
    expect(presentMs).toBeGreaterThanOrEqual(w.serverMs());
    expect(presentMs - w.serverMs()).toBeLessThan(5000);
  });
});
