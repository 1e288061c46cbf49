/** The fast reader of times accepts what `parseTimestamp` accepts, and nothing else. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createTimeReader, parseTimestamp } from '../../src/core/time.ts';

/** Parts of timestamps, most of them usual, some of them none. */
const part = (usual: readonly string[], odd: readonly string[]): fc.Arbitrary<string> =>
  fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...usual) }, { weight: 1, arbitrary: fc.constantFrom(...odd) });

const timestamp = fc
  .tuple(
    part(['2026', '2024', '1970'], ['2262', '2261', '1969', '0099', '20a6', '+026']),
    part(['-01-', '-02-', '-12-'], ['-00-', '-13-', '/01/', '-1--']),
    part(['01', '28', '31'], ['00', '29', '30', '32', ' 1']),
    part(['T'], ['t', ' ', '_']),
    part(['00:', '23:', '09:'], ['24:', 'a1:', '1::', '-1:']),
    part(['00:', '59:'], ['60:', ' 5:', '00.']),
    part(['00', '59', '07'], ['60', '61', '+1', '5']),
    part(['', '.1', '.123', '.123456789'], ['.', '.1234567890', '.12a', '.-12', ',5', '.000000001']),
    part(['Z'], ['z', '', '+00:00', '-01:30', 'ZZ']),
  )
  .map((parts) => parts.join(''));

test('a time is what any timestamp is read as, whatever was read before', () => {
  fc.assert(
    fc.property(fc.array(timestamp, { minLength: 1, maxLength: 8 }), (texts) => {
      expect(texts.map(createTimeReader())).toEqual(texts.map((text) => parseTimestamp(text)));
    }),
    { numRuns: 3000 },
  );
});

test('every digit is kept, and none of the day before', () => {
  expect(
    [
      '2026-01-15T12:00:00.000000001Z',
      '2026-01-15T23:59:59Z',
      '2026-01-16T00:00:00.5Z',
      '2026-02-30T00:00:00Z',
      '2026-02-30T00:00:00Z',
    ].map(createTimeReader()),
  ).toEqual([1_768_478_400_000_000_001n, 1_768_521_599_000_000_000n, 1_768_521_600_500_000_000n, null, null]);
});
