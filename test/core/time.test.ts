/** Timestamps to the nanosecond: reading, writing, rounding, and the texts that are refused. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  ceilToSecond,
  firstAfter,
  floorToSecond,
  formatExact,
  formatSeconds,
  maxNs,
  minNs,
  msToNs,
  nsToMs,
  parseTimestamp,
  SECOND_NS,
} from '../../src/core/time.ts';

const LAST_NS = 9_223_372_036_854_775_000n;
const anyNs = fc.bigInt({ min: 0n, max: LAST_NS });

describe('reading a timestamp', () => {
  test.each([
    ['1970-01-01T00:00:00Z', 0n],
    ['2026-01-15T12:00:00Z', 1_768_478_400n * SECOND_NS],
    ['2026-01-15t12:00:00z', 1_768_478_400n * SECOND_NS],
    ['2026-01-15 12:00:00Z', 1_768_478_400n * SECOND_NS],
    ['2026-01-15T12:00:00.5Z', 1_768_478_400_500_000_000n],
    ['2026-01-15T12:00:00.000000001Z', 1_768_478_400_000_000_001n],
    ['2026-01-15T12:00:00.123456789Z', 1_768_478_400_123_456_789n],
    ['2026-01-15T13:30:00+01:30', 1_768_478_400n * SECOND_NS],
    ['2026-01-15T12:00:00-00:00', 1_768_478_400n * SECOND_NS],
    ['2026-01-14T14:30:00-21:30', 1_768_478_400n * SECOND_NS],
    ['2024-02-29T00:00:00Z', 1_709_164_800n * SECOND_NS],
    ['2000-02-29T00:00:00Z', 951_782_400n * SECOND_NS],
    ['1969-12-31T23:00:00-02:00', 3600n * SECOND_NS],
    ['2262-04-11T23:47:16.854775Z', LAST_NS],
  ])('accepts %s to the nanosecond', (text, ns) => {
    expect(parseTimestamp(text)).toBe(ns);
  });

  test('drops digits beyond the ninth and never rounds up', () => {
    expect(parseTimestamp('2026-01-15T12:00:00.9999999999Z')).toBe(1_768_478_400_999_999_999n);
  });

  test('counts a leap second as the last nanosecond of its minute, so that order is kept', () => {
    const leap = parseTimestamp('2016-12-31T23:59:60.25Z');
    expect(leap).toBe(parseTimestamp('2016-12-31T23:59:59.999999999Z'));
    expect(leap).toBeLessThan(parseTimestamp('2017-01-01T00:00:00Z') ?? 0n);
  });

  test.each([
    '',
    'now',
    '1',
    '1768478400',
    '2026-01-15',
    '2026-01-15T12:00Z',
    '2026-01-15T12:00:00',
    '2026-01-15T12:00:00.Z',
    '2026-01-15T12:00:00,5Z',
    ' 2026-01-15T12:00:00Z',
    '2026-01-15T12:00:00Z ',
    '2026-01-15T12:00:00Z\n',
    '+02026-01-15T12:00:00Z',
    '2026-1-15T12:00:00Z',
    '2026-00-15T12:00:00Z',
    '2026-13-15T12:00:00Z',
    '2026-01-00T12:00:00Z',
    '2026-01-32T12:00:00Z',
    '2026-02-29T12:00:00Z',
    '1900-02-29T12:00:00Z',
    '2026-04-31T12:00:00Z',
    '2026-01-15T24:00:00Z',
    '2026-01-15T12:60:00Z',
    '2026-01-15T12:00:61Z',
    '2026-01-15T12:00:00+24:00',
    '2026-01-15T12:00:00+01:60',
    '2026-01-15T12:00:00+0100',
    '٢٠٢٦-01-15T12:00:00Z',
  ])('refuses %j: it is no real date and time', (text) => {
    expect(parseTimestamp(text)).toBeNull();
  });

  test.each([
    '1969-12-31T23:59:59.999999999Z',
    '1970-01-01T00:30:00+01:00',
    '2262-04-11T23:47:16.854775001Z',
    '9999-12-31T23:59:59Z',
  ])('refuses %s: no store has a place for it', (text) => {
    expect(parseTimestamp(text)).toBeNull();
  });

  test.each(['0000-01-01T00:00:00Z', '0070-01-01T00:00:00Z', '0099-12-31T23:59:59Z'])(
    'refuses %s and does not take it for a year of the last century',
    (text) => {
      expect(parseTimestamp(text)).toBeNull();
    },
  );

  test('reads back what it writes, to the last digit', () => {
    fc.assert(
      fc.property(anyNs, (ns) => {
        expect(parseTimestamp(formatExact(ns))).toBe(ns);
      }),
    );
  });

  test('agrees with the calendar of the platform', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 9_223_372_036_854 }), (ms) => {
        expect(parseTimestamp(new Date(ms).toISOString())).toBe(msToNs(ms));
      }),
    );
  });

  test('needs no more time for a long text', () => {
    expect(parseTimestamp(`2026-01-15T12:00:00.${'9'.repeat(2_000_000)}Z`)).toBeNull();
  });
});

describe('seconds and milliseconds', () => {
  test('rounding to seconds gives the nearest whole seconds on either side', () => {
    fc.assert(
      fc.property(anyNs, (ns) => {
        const [floor, ceil] = [floorToSecond(ns), ceilToSecond(ns)];
        expect([floor % SECOND_NS, ceil % SECOND_NS]).toEqual([0n, 0n]);
        expect(floor <= ns && ns < floor + SECOND_NS).toBe(true);
        expect(ceil - SECOND_NS < ns && ns <= ceil).toBe(true);
      }),
    );
  });

  test('rounding down goes towards the past before 1970 too', () => {
    expect(floorToSecond(-1n)).toBe(-SECOND_NS);
    expect(ceilToSecond(-1n)).toBe(0n);
  });

  test('bounds are sent as whole seconds of UTC', () => {
    expect(formatSeconds(1_768_478_400_999_999_999n)).toBe('2026-01-15T12:00:00Z');
    expect(formatSeconds(0n)).toBe('1970-01-01T00:00:00Z');
  });

  test('times are reported with the digits that they have', () => {
    expect(formatExact(1_768_478_400_000_000_000n)).toBe('2026-01-15T12:00:00Z');
    expect(formatExact(1_768_478_400_120_000_000n)).toBe('2026-01-15T12:00:00.12Z');
    expect(formatExact(1_768_478_400_000_000_001n)).toBe('2026-01-15T12:00:00.000000001Z');
  });

  test('milliseconds and nanoseconds convert into each other, finer parts are dropped', () => {
    expect(msToNs(1.9)).toBe(1_000_000n);
    expect(nsToMs(1_999_999n)).toBe(1);
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 8.64e15 }), (ms) => {
        expect(nsToMs(msToNs(ms))).toBe(ms);
      }),
    );
  });

  test('minNs and maxNs return the earlier and the later of two times', () => {
    expect([minNs(1n, 2n), minNs(2n, 1n), maxNs(1n, 2n), maxNs(2n, 1n)]).toEqual([1n, 1n, 2n, 2n]);
  });
});

test('the first later time of ascending ones is found, from an index on', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 20 })),
      fc.integer({ min: -1, max: 21 }),
      fc.nat(30),
      (any, atMs, nth) => {
        const times = any.toSorted((a, b) => a - b);
        const low = Math.min(nth, times.length);
        const later = times.findIndex((each, index) => index >= low && each > atMs);
        expect(firstAfter(times, atMs, low)).toBe(later === -1 ? times.length : later);
      },
    ),
  );
});
