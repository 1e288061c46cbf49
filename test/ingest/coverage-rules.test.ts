/** The coverage after a page: late readings, withdrawn ranges, and the hours that are complete. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addRange, type CoveredRange } from '../../src/core/coverage.ts';
import type { Intervals } from '../../src/core/intervals.ts';
import type { Reading } from '../../src/core/records.ts';
import { gracePeriodOf, type LateRecord, NEVER_LATE } from '../../src/core/state/telemetry.ts';
import { HOUR_MS, HOUR_NS, MINUTE_MS, nsToMs, SECOND_MS } from '../../src/core/time.ts';
import {
  composeWithdrawal,
  coverageAfter,
  coverageLimit,
  hourOf,
  hourStart,
  hoursToWrite,
  noteLate,
  withdrawBeyond,
  withoutUnverified,
} from '../../src/ingest/coverage-rules.ts';
import { createMemory } from '../core/support/memory.ts';
import { at, bare, between, edgeOf, instantsOf, reading, T0 } from '../core/support/readings.ts';

const NOW_MS = nsToMs(T0);

/** Readings that were made so many milliseconds before now. */
const late = (...byMs: number[]) => byMs.map((ms) => reading(-ms / 1000));

function record(...byMs: number[]): LateRecord {
  return noteLate(NEVER_LATE, late(...byMs), NOW_MS).record;
}

describe('the record of late readings', () => {
  test('counts them, keeps the worst, and raises the grace period to the lateness in whole minutes', () => {
    expect(noteLate(NEVER_LATE, late(250 * SECOND_MS, 190 * SECOND_MS), NOW_MS)).toEqual({
      count: 2,
      worstMs: 250 * SECOND_MS,
      record: { readings: 2, worstMs: 250 * SECOND_MS, gracePeriodMs: 5 * MINUTE_MS },
    });
  });

  test('never shortens the grace period, neither below its current nor its configured value', () => {
    const before = record(20 * MINUTE_MS);
    const after = noteLate(before, late(5 * MINUTE_MS), NOW_MS).record;
    expect(after).toEqual({ readings: 2, worstMs: 20 * MINUTE_MS, gracePeriodMs: 20 * MINUTE_MS });
    expect(gracePeriodOf(30 * MINUTE_MS, after)).toBe(30 * MINUTE_MS);
    expect(gracePeriodOf(2 * MINUTE_MS, after)).toBe(20 * MINUTE_MS);
  });

  test('makes it an hour at most: a reading later than that is counted and changes nothing', () => {
    expect(record(HOUR_MS)).toMatchObject({ readings: 1, gracePeriodMs: HOUR_MS });
    expect(record(HOUR_MS + 1)).toEqual({ readings: 1, worstMs: HOUR_MS + 1, gracePeriodMs: 0 });
    expect(record(72 * HOUR_MS, 3 * MINUTE_MS)).toEqual({
      readings: 2,
      worstMs: 72 * HOUR_MS,
      gracePeriodMs: 3 * MINUTE_MS,
    });
  });

  test('does not count a reading from the future as late', () => {
    expect(record(-5 * SECOND_MS)).toEqual({ readings: 1, worstMs: 0, gracePeriodMs: 0 });
  });
});

describe('coverage that came too early', () => {
  const [a, b, c] = [reading(10), reading(50), reading(90)];
  const span = { from: at(0), to: at(100), first: edgeOf(a), last: edgeOf(c) };

  test('is withdrawn from its end on, with the newest known reading before it as the edge', () => {
    expect(withdrawBeyond([span], at(60), [c, b, a])).toEqual([{ ...span, to: at(60), last: edgeOf(b) }]);
  });

  test('has the other edge of the range as its edge if no reading is known', () => {
    expect(withdrawBeyond([span], at(60), [])).toEqual([{ ...span, to: at(60), last: edgeOf(a) }]);
  });

  test('leaves no edge where no reading is left', () => {
    expect(withdrawBeyond([span], at(5), [a, b, c])).toEqual([{ from: at(0), to: at(5), first: null, last: null }]);
  });

  test('removes complete ranges, and leaves older ones as they are', () => {
    const old = bare({ from: at(-50), to: at(-10) });
    expect(withdrawBeyond([old, span, bare({ from: at(200), to: at(300) })], at(100), [])).toEqual([old, span]);
    expect(withdrawBeyond([old, span], at(0), [])).toEqual([old]);
  });

  test('is a commit without readings that leaves names and sums alone', () => {
    const memory = createMemory();
    memory.commit({ readings: [c, b, a], covers: span });
    const state = memory.state();
    const pageCommit = composeWithdrawal(state, { end: at(60), newestNs: c.recordedAt }, NOW_MS);
    expect(pageCommit).toMatchObject({
      revision: state.revision,
      lines: [],
      sideLines: [],
      daySums: [],
      newReadings: 0,
    });
    expect(pageCommit.covered).toEqual([{ ...span, to: at(60), last: edgeOf(a) }]);
  });

  test('has the hours above the newest reading written again, which a clock that was ahead had called over', () => {
    const memory = createMemory();
    memory.commit({ readings: [a], covers: { ...span, to: at(50 * 3600) } });
    const [written] = memory.state().hoursWritten;
    const withdrawn = (newestNs: bigint): unknown =>
      composeWithdrawal(memory.state(), { end: at(7200), newestNs }, NOW_MS).hoursWritten;
    const first = written?.from ?? 0n;
    expect(written?.to).toBe(BigInt(hourOf(at(50 * 3600))));
    expect(withdrawn(a.recordedAt)).toEqual([{ from: first, to: BigInt(hourOf(at(7200))) + 1n }]);
    expect(withdrawn(at(10_800))).toEqual([{ from: first, to: BigInt(hourOf(at(10_800))) + 1n }]);
  });
});

describe('coverage', () => {
  const covers = { from: at(-7200), to: at(-121), first: null, last: null };
  const input = { covers, answeredAtMs: NOW_MS, readings: [], gracePeriodMs: 2 * MINUTE_MS };

  test('stays as proven if nothing is late', () => {
    expect(coverageAfter({ ...input, state: { covered: [], late: NEVER_LATE } }, [])).toEqual({ covered: [covers] });
  });

  test('counts a reading as late by when it was seen, where that is known better', () => {
    const seen = { ...input, seenAtMs: NOW_MS + HOUR_MS, state: { covered: [], late: NEVER_LATE } };
    const { late: found } = coverageAfter(seen, late(8 * MINUTE_MS));
    expect(found?.record).toEqual({ readings: 1, worstMs: HOUR_MS + 8 * MINUTE_MS, gracePeriodMs: 0 });
  });

  test('is withdrawn by a late reading to the limit of the longer grace period', () => {
    const { covered, late: found } = coverageAfter(
      { ...input, state: { covered: [], late: NEVER_LATE } },
      late(8 * MINUTE_MS),
    );
    expect(covered.map(({ to }) => to)).toEqual([coverageLimit(NOW_MS, 8 * MINUTE_MS)]);
    expect(found?.record.gracePeriodMs).toBe(8 * MINUTE_MS);
  });

  test('ends at the grace period of the device, though the page was requested under a shorter one', () => {
    const state = { covered: [], late: record(8 * MINUTE_MS) };
    expect(coverageAfter({ ...input, state }, []).covered.map(({ to }) => to)).toEqual([
      coverageLimit(NOW_MS, 8 * MINUTE_MS),
    ]);
  });

  describe('of a silence that a page ends', () => {
    const before = { from: at(-7200), to: at(-3600), first: edgeOf(reading(-7100)), last: edgeOf(reading(-7000)) };
    const empty = { from: at(-3600), to: at(-1800), first: null, last: null };
    const page = { from: at(-1800), to: at(-121), first: edgeOf(reading(-200)), last: edgeOf(reading(-200)) };
    const reopenedBy = (covered: readonly CoveredRange[], leastMs: number) =>
      coverageAfter(
        {
          ...input,
          covers: page,
          state: { covered, late: NEVER_LATE },
          silence: { reachedTo: at(-1800), visibleFrom: at(-100_000), leastMs },
        },
        [],
      ).reopened;

    test('is read once more from the last stored reading on, if the silence was long enough', () => {
      expect(reopenedBy([before, empty], 6800 * SECOND_MS)).toEqual({ from: at(-7000) + 1n, to: at(-1800) });
      expect(reopenedBy([before, empty], 6801 * SECOND_MS)).toBeUndefined();
    });

    test('may end below the wanted range, in one that is not covered', () => {
      const reopenedWith = (readings: readonly Reading[]) =>
        coverageAfter(
          {
            ...input,
            readings,
            covers: { from: at(-1000), to: at(-121), first: null, last: null },
            state: { covered: [before, empty], late: NEVER_LATE },
            silence: { reachedTo: at(-1500), visibleFrom: at(-100_000), leastMs: 5500 * SECOND_MS },
          },
          [],
        ).reopened;
      expect(reopenedWith([reading(-1400), reading(-1500)])).toEqual({ from: at(-7000) + 1n, to: at(-1800) });
      expect(reopenedWith([reading(-7000)]), 'by the overlap reading alone').toBeUndefined();
    });

    test('begins at the first empty answer if no reading is stored', () => {
      expect(reopenedBy([empty], 3400 * SECOND_MS)).toEqual({ from: at(-3600), to: at(-1800) });
      expect(reopenedBy([empty], 3401 * SECOND_MS)).toBeUndefined();
    });
  });
});

describe('a commit', () => {
  const held = [reading(300), reading(200), reading(100)];
  const covers = { from: at(0), to: at(400), first: edgeOf(reading(100)), last: edgeOf(reading(300)) };
  const committed = () => {
    const memory = createMemory();
    memory.commit({ readings: held, covers, answeredAtMs: nsToMs(at(521)) });
    return memory;
  };

  test('counts a new reading inside covered time as late, by the server’s time of the answer', () => {
    const memory = committed();
    const { late: found, newReadings } = memory.commit({ readings: [reading(250)], answeredAtMs: nsToMs(at(580)) });
    expect(newReadings).toBe(1);
    expect(found).toEqual({
      count: 1,
      worstMs: 330 * SECOND_MS,
      record: { readings: 1, worstMs: 330 * SECOND_MS, gracePeriodMs: 6 * MINUTE_MS },
    });
    // Six minutes and a second before the answer.
    expect(memory.state().covered.map(({ to }) => to)).toEqual([at(580 - 361)]);
    expect(memory.state().covered[0]?.last).toEqual(edgeOf(reading(100)));
  });

  test('counts only new readings in ranges that were covered before the page', () => {
    const memory = committed();
    expect(memory.compose({ readings: held }).late).toBeUndefined();
    expect(memory.compose({ readings: [reading(401), reading(-1)] }).late).toBeUndefined();
    const wider = { ...covers, to: at(600), last: edgeOf(reading(500)) };
    expect(memory.compose({ readings: [reading(500)], covers: wider }).late).toBeUndefined();
  });

  test('does not count a reading with additional values as late', () => {
    const memory = committed();
    const more = { recordedAt: at(200), values: [...reading(200).values, ['extra', 1] as const] };
    const pageCommit = memory.compose({ readings: [more] });
    expect([pageCommit.newReadings, pageCommit.late]).toEqual([1, undefined]);
  });
});

/** A range in quarters of an hour, moved by some nanoseconds. */
const quarters = (from: number, to: number, offset = 0n): CoveredRange =>
  bare({ from: (BigInt(from) * HOUR_NS) / 4n + offset, to: (BigInt(to) * HOUR_NS) / 4n + offset });

test('an hour has its number and its beginning', () => {
  expect(hourOf(0n)).toBe(0);
  expect(hourOf(HOUR_NS - 1n)).toBe(0);
  expect(hourOf(491_244n * HOUR_NS)).toBe(491_244);
  expect(hourStart(491_244)).toBe(491_244n * HOUR_NS);
});

describe('the hours to write', () => {
  test('are those that lie entirely inside the coverage', () => {
    expect(hoursToWrite([quarters(2, 13)], []).hours).toEqual([1, 2]);
    expect(hoursToWrite([quarters(4, 12)], []).hours).toEqual([1, 2]);
  });

  test('a nanosecond that is missing at either end leaves its hour out', () => {
    expect(hoursToWrite([quarters(4, 12, 1n)], []).hours).toEqual([2]);
    expect(hoursToWrite([quarters(4, 12, -1n)], []).hours).toEqual([1]);
  });

  test('are none if only parts of hours are covered, and then nothing is marked', () => {
    const written: Intervals = [between(7, 8)];
    const outcome = hoursToWrite([quarters(1, 4, 0n), quarters(5, 8, -1n)], written);
    expect(outcome.hours).toEqual([]);
    expect(outcome.written).toBe(written);
  });

  test('are not those that were written before', () => {
    const { hours, written } = hoursToWrite([quarters(0, 20)], [between(1, 3), between(90, 91)]);
    expect(hours).toEqual([0, 3, 4]);
    expect(written).toEqual([between(0, 5), between(90, 91)]);
  });

  test('come once each as coverage grows, and in the end all covered ones are written', () => {
    const anySpans = fc.array(
      fc.tuple(fc.nat(40), fc.nat(40), fc.integer({ min: -1, max: 1 })).map(([a, b, offset]) => {
        return quarters(Math.min(a, b) + 4, Math.max(a, b) + 4, BigInt(offset));
      }),
      { maxLength: 10 },
    );
    fc.assert(
      fc.property(anySpans, (ranges) => {
        let covered: readonly CoveredRange[] = [];
        let written: Intervals = [];
        const reported: number[] = [];
        for (const range of ranges) {
          covered = addRange(covered, range);
          const outcome = hoursToWrite(covered, written);
          reported.push(...outcome.hours);
          written = outcome.written;
        }
        const whole = Array.from({ length: 12 }, (_, hour) => hour).filter((hour) =>
          covered.some(({ from, to }) => from <= hourStart(hour) && hourStart(hour + 1) <= to),
        );
        expect(reported.toSorted((a, b) => a - b)).toEqual(whole);
        expect([...instantsOf(written)]).toEqual(whole);
      }),
    );
  });
});

const never = () => false;
const always = () => true;
const EMPTY = { covered: [bare({ from: at(-7200), to: at(100) })], hoursWritten: [] };

/** A page that covers none of its readings: for example, they are too young. */
const page = (...readings: Reading[]) => ({ readings, covers: null });

describe('ranges called empty while a device had no coverage', () => {
  test('is withdrawn with the first reading that it shows', () => {
    expect(withoutUnverified(EMPTY, page(reading(120)), never).covered).toEqual([]);
  });

  test('is withdrawn above it as well: a page of history shows nothing about newer readings', () => {
    expect(withoutUnverified(EMPTY, page(reading(-9000)), never).covered).toEqual([]);
  });

  test('stays where no reading came', () => {
    expect(withoutUnverified(EMPTY, page(), never)).toBe(EMPTY);
  });

  test('stays where a reading was stored, which the answers had to show', () => {
    const held = {
      ...EMPTY,
      covered: [...EMPTY.covered, { ...bare({ from: at(200), to: at(300) }), last: edgeOf(reading(250)) }],
    };
    expect(withoutUnverified(held, page(reading(320)), never)).toBe(held);
  });

  test('is withdrawn once more by the page that confirms, not by each that shows readings that are too young', () => {
    const covers = { ...bare({ from: at(100), to: at(130) }), last: edgeOf(reading(120)) };
    expect(withoutUnverified(EMPTY, page(reading(120)), always)).toBe(EMPTY);
    expect(
      withoutUnverified(EMPTY, { ...page(reading(120)), covers: bare({ from: at(100), to: at(110) }) }, always),
    ).toBe(EMPTY);
    expect(withoutUnverified(EMPTY, { ...page(reading(120)), covers }, always).covered).toEqual([]);
  });

  test('is written anew by its hours, unless something was archived of them', () => {
    const hour = at(0) / 3_600_000_000_000n;
    const reported = { ...EMPTY, hoursWritten: [{ from: hour - 2n, to: hour + 2n }] };
    const covers = { ...bare({ from: at(-10), to: at(10) }), last: edgeOf(reading(0)) };
    expect(withoutUnverified(reported, page(reading(0)), never).hoursWritten).toEqual([]);
    expect(withoutUnverified(reported, { ...page(reading(0)), covers }, always).hoursWritten).toEqual(
      reported.hoursWritten,
    );
  });
});
