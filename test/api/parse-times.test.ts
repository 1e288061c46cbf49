import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseTelemetryPage } from '../../src/api/parse.ts';
import { type EpochNs, parseTimestamp } from '../../src/core/time.ts';

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

/** The times of the readings of a page, in their order; `null` for one that was refused. */
function timesOf(...texts: readonly string[]): (EpochNs | null)[] {
  const data = texts.map((text) => ({ recorded_at: text, values: {} }));
  const { readings, rejected } = parseTelemetryPage({ data }, 'GET /x');
  const refused = rejected.map(({ record }) => JSON.parse(record).recorded_at);
  expect(readings.length + rejected.length).toBe(texts.length);
  const rest = [...readings];
  return texts.map((text) => (refused.includes(text) ? null : (rest.shift()?.recordedAt ?? null)));
}

describe('the times of readings', () => {
  test('are what any timestamp is read as, whatever was read before', () => {
    fc.assert(
      fc.property(fc.array(timestamp, { minLength: 1, maxLength: 8 }), (texts) => {
        expect(timesOf(...texts)).toEqual(texts.map((text) => parseTimestamp(text)));
      }),
      { numRuns: 3000 },
    );
  });

  test('keep every digit, and none of the day before', () => {
    expect(
      timesOf(
        '2026-01-15T12:00:00.000000001Z',
        '2026-01-15T23:59:59Z',
        '2026-01-16T00:00:00.5Z',
        '2026-02-30T00:00:00Z',
        '2026-02-30T00:00:00Z',
      ),
    ).toEqual([1_768_478_400_000_000_001n, 1_768_521_599_000_000_000n, 1_768_521_600_500_000_000n, null, null]);
  });
});
