import { describe, expect, test } from 'vitest';
import type { Reading } from '../../src/core/records.ts';
import { upholdClaims } from '../../src/ingest/commit-rules.ts';
import { at, bare, edgeOf, reading } from '../core/support/readings.ts';

const never = () => false;
const always = () => true;
const EMPTY = { spans: [bare({ from: at(-7200), to: at(100) })], hoursWritten: [] };

/** A page that proves nothing of its readings: they are too young, say. */
const page = (...readings: Reading[]) => ({ readings, proven: null });

describe('what was called empty while nothing was held of a device', () => {
  test('is taken back with the first reading that it shows', () => {
    expect(upholdClaims(EMPTY, page(reading(120)), never).spans).toEqual([]);
  });

  test('is taken back above it as well: a page of history tells nothing of what is newer', () => {
    expect(upholdClaims(EMPTY, page(reading(-9000)), never).spans).toEqual([]);
  });

  test('stays where no reading came', () => {
    expect(upholdClaims(EMPTY, page(), never)).toBe(EMPTY);
  });

  test('stays where a reading was held, which the answers had to show', () => {
    const held = {
      ...EMPTY,
      spans: [...EMPTY.spans, { ...bare({ from: at(200), to: at(300) }), last: edgeOf(reading(250)) }],
    };
    expect(upholdClaims(held, page(reading(320)), never)).toBe(held);
  });

  test('is taken back once more by the page that vouches, not by each that shows what is too young', () => {
    const proven = { ...bare({ from: at(100), to: at(130) }), last: edgeOf(reading(120)) };
    expect(upholdClaims(EMPTY, page(reading(120)), always)).toBe(EMPTY);
    expect(upholdClaims(EMPTY, { ...page(reading(120)), proven: bare({ from: at(100), to: at(110) }) }, always)).toBe(
      EMPTY,
    );
    expect(upholdClaims(EMPTY, { ...page(reading(120)), proven }, always).spans).toEqual([]);
  });

  test('is told anew by its hours, unless something was archived of them', () => {
    const hour = at(0) / 3_600_000_000_000n;
    const told = { ...EMPTY, hoursWritten: [{ from: hour - 2n, to: hour + 2n }] };
    const proven = { ...bare({ from: at(-10), to: at(10) }), last: edgeOf(reading(0)) };
    expect(upholdClaims(told, page(reading(0)), never).hoursWritten).toEqual([]);
    expect(upholdClaims(told, { ...page(reading(0)), proven }, always).hoursWritten).toEqual(told.hoursWritten);
  });
});
