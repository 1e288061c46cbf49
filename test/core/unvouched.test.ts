import { describe, expect, test } from 'vitest';
import { upholdClaims } from '../../src/core/unvouched.ts';
import { at, bare, edgeOf, reading } from './support/readings.ts';

const never = () => false;
const EMPTY = { spans: [bare({ from: at(-7200), to: at(100) })], hoursWritten: [] };

describe('what was called empty while nothing was held of a device', () => {
  test('is taken back below the first reading that it shows', () => {
    expect(upholdClaims(EMPTY, [reading(120)], never).spans).toEqual([]);
    const apart = { ...EMPTY, spans: [bare({ from: at(0), to: at(10) }), bare({ from: at(20), to: at(30) })] };
    expect(upholdClaims(apart, [reading(25), reading(15)], never).spans).toEqual([
      bare({ from: at(25) + 1n, to: at(30) }),
    ]);
  });

  test('stays above it, where the next live request reaches over it', () => {
    expect(upholdClaims(EMPTY, [reading(-9000)], never)).toEqual(EMPTY);
  });

  test('stays where no reading came', () => {
    expect(upholdClaims(EMPTY, [], never)).toBe(EMPTY);
  });

  test('stays where a reading was held, which the answers had to show', () => {
    const held = {
      ...EMPTY,
      spans: [...EMPTY.spans, { ...bare({ from: at(200), to: at(300) }), last: edgeOf(reading(250)) }],
    };
    expect(upholdClaims(held, [reading(320)], never)).toBe(held);
  });

  test('is told anew by its hours, unless something was archived of them', () => {
    const hour = at(0) / 3_600_000_000_000n;
    const told = { ...EMPTY, hoursWritten: [{ from: hour - 2n, to: hour + 2n }] };
    expect(upholdClaims(told, [reading(0)], never).hoursWritten).toEqual([{ from: hour + 1n, to: hour + 2n }]);
    expect(upholdClaims(told, [reading(0)], () => true).hoursWritten).toEqual(told.hoursWritten);
  });
});
