/**
 * The page size that the client requests: the plan's, and less where the service rejects it or an answer is too large.
 */
import { describe, expect, test } from 'vitest';
import { createPageSize } from '../../src/api/page-size.ts';
import type { Cursor } from '../../src/core/records.ts';

/** The first page of a list. */
const FIRST = { cursor: null };

describe('the size of a page', () => {
  test.each([
    [200, 200],
    [120, 120],
    [20, 20],
    [null, 200],
    [500, 200],
    [0, 1],
    [-3, 1],
    [99.9, 99],
    [Number.NaN, 1],
  ])('a plan of %s leads to requests for %i', (planned, expected) => {
    expect(createPageSize(() => planned).limitFor(null)).toBe(expected);
  });

  test('is the documented default where a larger one is rejected, which is retried ever less often', () => {
    const size = createPageSize(() => null);
    const smallRun = (): number => {
      expect(size.noteRejected(FIRST, 200)).toBe(true);
      let answers = 0;
      while (size.limitFor(null) === 50) {
        size.noteAnswered(50);
        answers += 1;
      }
      expect(size.limitFor(null)).toBe(200);
      return answers;
    };
    const runs = Array.from({ length: 12 }, smallRun);
    expect(runs.slice(0, 3)).toEqual([5, 10, 20]);
    expect(Math.max(...runs)).toBe(2000);
  });

  const rejectedFrom = (size: ReturnType<typeof createPageSize>): number[] => {
    const limits: number[] = [];
    do limits.push(size.limitFor(null));
    while (size.noteRejected(FIRST, limits.at(-1) ?? 0));
    return limits;
  };

  test('is soon large again where the size was not at fault', () => {
    const size = createPageSize(() => 200);
    expect(rejectedFrom(size), 'one record is rejected as well').toEqual([200, 50, 25, 12, 6, 3, 1]);
    expect(rejectedFrom(size), 'nothing was answered since').toEqual([200, 50]);
    size.noteAnswered(200);
    expect(rejectedFrom(size)).toEqual([200, 50, 25, 12, 6, 3, 1]);
  });

  test('is found where pages are smaller than the default, and requested again after larger ones were rejected', () => {
    const size = createPageSize(() => null);
    const asked: number[] = [];
    for (let request = 0; request < 40; request += 1) {
      const limit = size.limitFor(null);
      asked.push(limit);
      if (limit > 10) expect(size.noteRejected(FIRST, limit)).toBe(true);
      else size.noteAnswered(limit);
    }
    expect(asked.slice(0, 5)).toEqual([200, 50, 25, 12, 6]);
    expect(new Set(asked.slice(4))).toEqual(new Set([6, 200]));
    expect(asked.slice(4).filter((limit) => limit === 200)).toHaveLength(2);
  });

  test('never requests more than the reduced plan allows', () => {
    let planned = 200;
    const size = createPageSize(() => planned);
    size.noteRejected(FIRST, 200);
    planned = 20;
    expect(size.limitFor(null)).toBe(20);
  });

  test('stays the same within a chain of cursors, whatever the plan and other chains do meanwhile', () => {
    let planned = 200;
    const size = createPageSize(() => planned);
    const [first, second] = ['of 200', 'of 20'].map((text) => text as Cursor);
    size.noteCursor(first ?? null, 200);
    planned = 20;
    size.noteCursor(second ?? null, 20);
    planned = 100;
    expect([first, second].map((cursor) => size.limitFor(cursor ?? null))).toEqual([200, 20]);
    expect(size.limitFor('never named' as Cursor)).toBe(100);
  });
});
