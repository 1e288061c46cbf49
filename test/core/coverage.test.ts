/**
 * The covered ranges of a device, their edge readings, and the gaps. Arbitrary ranges are compared with sets of
 * instants.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  addRange,
  type CoveredRange,
  coveredIntervals,
  type Edge,
  gapsIn,
  overlapsOf,
} from '../../src/core/coverage.ts';
import { bare, between, instantsOf, without } from './support/readings.ts';

const SPACE = 20;

/** A model of covered instants, of which some have a reading; the spans have to agree with it. */
const anyReadings: fc.Arbitrary<ReadonlySet<number>> = fc.uniqueArray(fc.nat(SPACE - 1)).map((list) => new Set(list));
const anyRanges = fc.array(
  fc
    .tuple(fc.nat(SPACE), fc.nat(SPACE))
    .filter(([from, to]) => from < to)
    .map(([from, to]) => between(from, to)),
  { maxLength: 8 },
);

const edgeAt = (at: number): Edge => ({ at: BigInt(at), digest: `of ${at}` });

/** The range as a judged page would prove it: with the oldest and the newest reading that lies in it. */
function provenOf({ from, to }: { from: bigint; to: bigint }, readings: ReadonlySet<number>): CoveredRange {
  const inside = [...readings].filter((at) => from <= BigInt(at) && BigInt(at) < to).sort((a, b) => a - b);
  const [first, last] = [inside[0], inside.at(-1)];
  return {
    from,
    to,
    first: first === undefined ? null : edgeAt(first),
    last: last === undefined ? null : edgeAt(last),
  };
}

const addAll = (covered: readonly CoveredRange[]): readonly CoveredRange[] =>
  covered.reduce<readonly CoveredRange[]>((held, span) => addRange(held, span), []);

describe('adding a covered range', () => {
  test('holds exactly the instants that were added, ascending and disjoint, none touching', () => {
    fc.assert(
      fc.property(anyRanges, (ranges) => {
        const covered = addAll(ranges.map(bare));
        expect(instantsOf(covered)).toEqual(instantsOf(ranges));
        expect(coveredIntervals(covered)).toEqual(covered.map(({ from, to }) => ({ from, to })));
      }),
    );
  });

  test('keeps at the edges of each span the oldest and the newest reading that lies in it', () => {
    fc.assert(
      fc.property(anyRanges, anyReadings, (ranges, readings) => {
        const covered = addAll(ranges.map((range) => provenOf(range, readings)));
        expect(covered).toEqual(covered.map((span) => provenOf(span, readings)));
      }),
      { numRuns: 300 },
    );
  });

  test('comes to the same in any order', () => {
    const shuffled = anyRanges.chain((ranges) =>
      fc.tuple(
        fc.constant(ranges),
        fc.shuffledSubarray(ranges, { minLength: ranges.length, maxLength: ranges.length }),
      ),
    );
    fc.assert(
      fc.property(shuffled, anyReadings, ([ranges, otherwise], readings) => {
        const covers = (list: typeof ranges): CoveredRange[] => list.map((range) => provenOf(range, readings));
        expect(addAll(covers(otherwise))).toEqual(addAll(covers(ranges)));
      }),
    );
  });

  test('an empty range adds nothing, wherever it lies', () => {
    const held = [bare(between(0, 5)), bare(between(9, 12))];
    for (const [from, to] of [
      [5, 5],
      [7, 7],
      [8, 6],
    ] as const)
      expect(addRange(held, bare(between(from, to)))).toBe(held);
  });

  test('a range that touches two others joins them, one that leaves a nanosecond does not', () => {
    const held = [bare(between(0, 5)), bare(between(9, 12))];
    expect(addRange(held, bare(between(5, 9)))).toEqual([bare(between(0, 12))]);
    expect(addRange(held, bare(between(6, 9)))).toEqual([bare(between(0, 5)), bare(between(6, 12))]);
  });

  test('a span without readings gets the edges of its neighbour', () => {
    const low = { ...between(0, 5), first: edgeAt(1), last: edgeAt(3) };
    expect(addRange([low], bare(between(5, 9)))).toEqual([{ ...low, to: 9n }]);
    expect(addRange([bare(between(5, 9))], low)).toEqual([{ ...low, to: 9n }]);
  });
});

describe('the gaps', () => {
  test('are the wanted ranges that are not covered, ascending', () => {
    fc.assert(
      fc.property(anyRanges, (ranges) => {
        const open = gapsIn(between(0, SPACE), addAll(ranges.map(bare)));
        expect(instantsOf(open)).toEqual(without(instantsOf([between(0, SPACE)]), instantsOf(ranges)));
        expect([...open].sort((a, b) => (a.from < b.from ? -1 : 1))).toEqual(open);
      }),
    );
  });

  test('an empty wanted range has no gap', () => {
    expect(gapsIn(between(5, 5), [])).toEqual([]);
    expect(gapsIn(between(6, 5), [])).toEqual([]);
  });
});

describe('the overlap readings of a gap', () => {
  const low = { ...between(0, 5), first: edgeAt(1), last: edgeAt(3) };
  const high = { ...between(9, 12), first: edgeAt(10), last: edgeAt(11) };

  test('are the first reading above it and the last one below it', () => {
    expect(overlapsOf(between(5, 9), [low, high])).toEqual({ near: edgeAt(10), far: edgeAt(3) });
  });

  test('are none without coverage, or if the coverage has no reading', () => {
    expect(overlapsOf(between(5, 9), [])).toEqual({ near: null, far: null });
    expect(overlapsOf(between(5, 9), [bare(between(0, 5)), bare(between(9, 12))])).toEqual({ near: null, far: null });
  });

  test('are only the next reading below if no coverage touches the gap', () => {
    expect(overlapsOf(between(6, 8), [low, high])).toEqual({ near: null, far: edgeAt(3) });
    expect(overlapsOf(between(14, 15), [low, bare(between(13, 14))])).toEqual({ near: null, far: edgeAt(3) });
    expect(overlapsOf(between(6, 8), [bare(between(0, 5)), high])).toEqual({ near: null, far: null });
  });

  test('every gap has the overlap readings of the ranges around it', () => {
    fc.assert(
      fc.property(anyRanges, anyReadings, (ranges, readings) => {
        const covered = addAll(ranges.map((range) => provenOf(range, readings)));
        for (const gap of gapsIn(between(0, SPACE), covered)) {
          const held = [...readings].filter(
            (at) => at < gap.from && covered.some(({ from, to }) => from <= at && at < to),
          );
          const above = covered.find(({ from }) => from >= gap.to);
          const far = held.length === 0 ? null : edgeAt(Math.max(...held));
          expect(overlapsOf(gap, covered)).toEqual({ near: above?.first ?? null, far });
        }
      }),
    );
  });
});
