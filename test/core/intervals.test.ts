/** Sets of half-open intervals, compared with sets of small integers, and their algebraic laws. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type Interval,
  type Intervals,
  includes,
  intersect,
  lengthNs,
  normalize,
  subtract,
  union,
} from '../../src/core/intervals.ts';
import { between, instantsOf, without } from './support/readings.ts';

const SPACE = 24;

/** Any list of intervals of small integers: overlapping, touching, empty and reversed ones among them. */
const anyList: fc.Arbitrary<Interval[]> = fc.array(
  fc.tuple(fc.nat(SPACE), fc.nat(SPACE)).map(([from, to]) => between(from, to)),
  { maxLength: 7 },
);
const anySet: fc.Arbitrary<Intervals> = anyList.map(normalize);
const anyWanted = fc.tuple(fc.nat(SPACE), fc.nat(SPACE)).map(([from, to]) => between(from, to));

/** The normal form of a set of small integers, computed in the simplest way. */
function setOf(instants: ReadonlySet<number>): Intervals {
  const found: { from: bigint; to: bigint }[] = [];
  for (let at = 0; at <= SPACE; at += 1) {
    if (!instants.has(at)) continue;
    const last = found.at(-1);
    if (last !== undefined && last.to === BigInt(at)) last.to += 1n;
    else found.push(between(at, at + 1));
  }
  return found;
}

describe('against sets of small integers', () => {
  test('the normal form holds the same instants, ascending, none empty, no two touching', () => {
    fc.assert(
      fc.property(anyList, (list) => {
        const forwards = list.filter(({ from, to }) => from < to);
        expect(normalize(list)).toEqual(setOf(instantsOf(forwards)));
      }),
    );
  });

  test('union, subtract and intersect equal the normal form of set operations', () => {
    fc.assert(
      fc.property(anySet, anySet, (a, b) => {
        const [inA, inB] = [instantsOf(a), instantsOf(b)];
        expect(union(a, b)).toEqual(setOf(new Set([...inA, ...inB])));
        expect(subtract(a, b)).toEqual(setOf(without(inA, inB)));
        expect(intersect(a, b)).toEqual(setOf(new Set([...inA].filter((at) => inB.has(at)))));
      }),
      { numRuns: 500 },
    );
  });

  test('the gaps are the wanted ranges that are not covered', () => {
    fc.assert(
      fc.property(anyWanted, anySet, (wanted, covered) => {
        const asked = wanted.from < wanted.to ? instantsOf([wanted]) : new Set<number>();
        expect(subtract(normalize([wanted]), covered)).toEqual(setOf(without(asked, instantsOf(covered))));
      }),
    );
  });

  test('the length counts the instants and membership finds them', () => {
    fc.assert(
      fc.property(anySet, fc.nat(SPACE + 1), (set, instant) => {
        expect(lengthNs(set)).toBe(BigInt(instantsOf(set).size));
        expect(includes(set, BigInt(instant))).toBe(instantsOf(set).has(instant));
      }),
    );
  });
});

describe('laws', () => {
  test('the normal form of a normal form is itself', () => {
    fc.assert(
      fc.property(anySet, (a) => {
        expect(normalize(a)).toEqual(a);
      }),
    );
  });

  test('union and intersection do not mind the order, and a set changes nothing on itself', () => {
    fc.assert(
      fc.property(anySet, anySet, anySet, (a, b, c) => {
        expect(union(a, b)).toEqual(union(b, a));
        expect(intersect(a, b)).toEqual(intersect(b, a));
        expect(union(union(a, b), c)).toEqual(union(a, union(b, c)));
        expect(union(a, a)).toEqual(a);
        expect(intersect(a, a)).toEqual(a);
        expect(subtract(a, a)).toEqual([]);
      }),
    );
  });

  test('the difference and the intersection together make the set, and their lengths add up', () => {
    fc.assert(
      fc.property(anySet, anySet, (a, b) => {
        expect(union(subtract(a, b), intersect(a, b))).toEqual(a);
        expect(lengthNs(subtract(a, b)) + lengthNs(intersect(a, b))).toBe(lengthNs(a));
        expect(intersect(subtract(a, b), b)).toEqual([]);
      }),
    );
  });

  test('no function changes its arguments', () => {
    fc.assert(
      fc.property(anySet, anySet, (a, b) => {
        const before = structuredClone([a, b]);
        for (const change of [union, subtract, intersect]) change(a, b);
        expect([a, b]).toEqual(before);
      }),
    );
  });
});

test('half-open ranges that touch become one, and removing one leaves its ends', () => {
  expect(normalize([between(5, 9), between(0, 5)])).toEqual([between(0, 9)]);
  expect(subtract([between(0, 9)], [between(3, 4)])).toEqual([between(0, 3), between(4, 9)]);
  expect(includes([between(0, 3)], 3n)).toBe(false);
});
