/**
 * The bar of days: covered, covered and empty, missing, not wanted, each on its day.
 */
import { describe, expect, test } from 'vitest';
import { DAY_NS, HOUR_NS } from '../../src/core/time.ts';
import { type BarFacts, dayBar } from '../../src/report/series.ts';

const DAY = 20_000;
/** An hour of the days that are drawn, counted from the first midnight. */
const hour = (count: number): bigint => BigInt(DAY) * DAY_NS + BigInt(count) * HOUR_NS;

function bar(changes: Partial<BarFacts>): string {
  const wanted = { from: hour(0), to: hour(96) };
  return dayBar({
    fromDay: DAY,
    days: 4,
    wanted,
    covered: [wanted],
    withReadings: new Set(),
    isLeftOut: false,
    ...changes,
  });
}

describe('the bar of days', () => {
  test('distinguishes days with readings from empty ones', () => {
    expect(bar({ withReadings: new Set([DAY, DAY + 3]) })).toBe('#--#');
  });

  test('a gap over midnight marks both days, one up to midnight only the first', () => {
    const withReadings = new Set([DAY, DAY + 1, DAY + 2, DAY + 3]);
    const without = (from: bigint, to: bigint) => [
      { from: hour(0), to: from },
      { from: to, to: hour(96) },
    ];
    expect(bar({ withReadings, covered: without(hour(47), hour(49)) })).toBe('#..#');
    expect(bar({ withReadings, covered: without(hour(47), hour(48)) })).toBe('#.##');
    expect(bar({ withReadings, covered: without(hour(48) - 1n, hour(48)) })).toBe('#.##');
    expect(bar({ withReadings, covered: without(hour(48), hour(48) + 1n) })).toBe('##.#');
  });

  test('of a day only the wanted part counts, and a day without one stays blank', () => {
    const withReadings = new Set([DAY + 1, DAY + 2]);
    const wanted = { from: hour(30), to: hour(60) };
    expect(bar({ wanted, covered: [wanted], withReadings })).toBe(' ## ');
    expect(bar({ wanted: { from: hour(24), to: hour(48) }, covered: [wanted] })).toBe(' .  ');
    expect(bar({ wanted: { from: hour(50), to: hour(50) } })).toBe('    ');
  });

  test('of a device that is left out nothing is missing', () => {
    const withReadings = new Set([DAY]);
    expect(bar({ covered: [{ from: hour(0), to: hour(60) }], withReadings, isLeftOut: true })).toBe('#-  ');
  });
});
