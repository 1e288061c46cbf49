/**
 * The treatment of an answer that covers nothing: every row of the table, try by try.
 */
import { describe, expect, test } from 'vitest';
import { DAY_MS, MINUTE_MS } from '../../src/core/time.ts';
import {
  type Attempts,
  acceptedMissing,
  areEmptyAnswersIgnored,
  decideStep,
  emptiedRange,
  missedAfter,
  missedSince,
  NO_ATTEMPTS,
  type RejectedAnswer,
  reappearedOverlaps,
  type Step,
  stillRequired,
} from '../../src/ingest/rejected-answers.ts';
import { reading } from '../core/support/readings.ts';
import { headerTable } from '../support/header-table.ts';

const EMPTY: RejectedAnswer = { isEmpty: true, overlapMissing: null, missed: 'never' };
const ODD: RejectedAnswer = { isEmpty: false, overlapMissing: null, missed: 'never' };
const REPLACED: RejectedAnswer = { isEmpty: false, overlapMissing: { at: 5n, how: 'replaced' }, missed: 'never' };
const SHORT: RejectedAnswer = { isEmpty: false, overlapMissing: { at: 5n, how: 'not reached' }, missed: 'never' };
const EMPTY_WITHOUT: RejectedAnswer = { ...SHORT, isEmpty: true };

/** An answer for each row of the table in the header of the source. */
const ROWS: Readonly<Record<string, RejectedAnswer>> = {
  'is the first empty one, and misses no overlap reading': EMPTY,
  'is empty, while empty answers about the device are in doubt': { ...EMPTY, missed: 'awaited' },
  'is disordered, of another device, or empty again': ODD,
  'has another reading in place of the overlap reading': REPLACED,
  'ends before the overlap reading, which was never missed': SHORT,
  'ends before it, and it was first missed a short while ago': { ...SHORT, missed: 'awaited' },
  'ends before it, and it was first missed long ago': { ...SHORT, missed: 'overdue' },
};

/** The rows of that table: an answer, and the steps after the first, the second and each later one. */
function documented(): [answer: string, steps: string[]][] {
  const [, ...rows] = headerTable('ingest/rejected-answers.ts', 'the answer');
  return rows.map(([answer = '', ...steps]) => [answer, steps]);
}

test('the documented table has a row for each kind of answer', () => {
  expect(documented().map(([answer]) => answer)).toEqual(Object.keys(ROWS));
});

test.each(documented())('the decisions match the documented row "%s"', (row, steps) => {
  const answer = ROWS[row] ?? EMPTY;
  const counts = answer.overlapMissing === null ? 'rejected' : 'withoutOverlap';
  const isCounted = answer !== EMPTY;
  const after = (before: number) => decideStep({ ...NO_ATTEMPTS, [counts]: before + (isCounted ? 0 : 1) }, answer).step;
  expect([after(0), after(1), after(2), after(3)]).toEqual([...steps, steps[2]]);
});

/** The steps that answers lead to, one after the other, and what was met in the end. */
function weighAll(...answers: readonly RejectedAnswer[]): { steps: Step[]; attempts: Attempts } {
  let attempts = NO_ATTEMPTS;
  const steps = answers.map((answer) => {
    const weighed = decideStep(attempts, answer);
    attempts = weighed.attempts;
    return weighed.step;
  });
  return { steps, attempts };
}

describe('an answer that covers nothing', () => {
  test.each<[string, readonly RejectedAnswer[], readonly Step[]]>([
    ['that is empty is requested again at once', [EMPTY], ['same at once']],
    [
      'that is empty again, or disordered, is requested three times in all',
      [EMPTY, EMPTY, ODD, EMPTY],
      ['same at once', 'same later', 'same later', 'give up'],
    ],
    ['that is odd is requested three times', [ODD, ODD, ODD], ['same later', 'same later', 'give up']],
    ['that is empty where such answers are in doubt is given up', [{ ...EMPTY, missed: 'awaited' }], ['give up']],
    [
      'that has another reading in place of the overlap reading shows after three tries that it is gone',
      [REPLACED, REPLACED, REPLACED, REPLACED],
      ['restart later', 'restart later', 'overlap is gone', 'overlap is gone'],
    ],
    ...[SHORT, EMPTY_WITHOUT].flatMap((answer): [string, RejectedAnswer[], Step[]][] => {
      const what = answer.isEmpty ? 'is empty' : 'has readings';
      return [
        [
          `that ${what} and ends before the overlap reading is remembered after three tries`,
          [answer, answer, answer],
          ['restart later', 'restart later', 'remember, give up'],
        ],
        [
          `that ${what} and ends before an overlap reading that is waited for is given up`,
          [{ ...answer, missed: 'awaited' }],
          ['give up'],
        ],
        [
          `that ${what} and ends before an overlap reading that has been missing for long is accepted after three tries`,
          Array<RejectedAnswer>(3).fill({ ...answer, missed: 'overdue' }),
          ['restart later', 'restart later', 'accept the answers'],
        ],
      ];
    }),
  ])('%s', (_, answers, steps) => {
    expect(weighAll(...answers).steps).toEqual(steps);
  });

  test('counts against its gap, the first empty one aside', () => {
    expect(weighAll(EMPTY).attempts).toEqual({ ...NO_ATTEMPTS, empties: 1 });
    expect(weighAll(EMPTY, ODD, REPLACED).attempts).toEqual({
      ...NO_ATTEMPTS,
      rejected: 2,
      empties: 1,
      withoutOverlap: 1,
    });
  });

  test.each([
    ['three that have others in its place', [REPLACED, REPLACED, REPLACED], 'replaced', 'replaced'],
    ['two of them', [REPLACED, REPLACED], 'none', 'none'],
    [
      'three that end before it, after long',
      Array<RejectedAnswer>(3).fill({ ...SHORT, missed: 'overdue' }),
      'any',
      'replaced',
    ],
    [
      'three empty ones, after long',
      Array<RejectedAnswer>(3).fill({ ...EMPTY_WITHOUT, missed: 'overdue' }),
      'any',
      'any',
    ],
  ])('makes pages accepted without the overlap reading: %s', (_, answers, withReadings, ofEmpty) => {
    const { attempts } = weighAll(...answers);
    expect(acceptedMissing(attempts, [reading(1)])).toBe(withReadings);
    // From an empty page none is ever missing by others in its place.
    expect(acceptedMissing(attempts, [])).toBe(ofEmpty);
  });
});

describe('an overlap reading that is missing from answers that end before it', () => {
  const missed = [{ at: 5n, sinceMs: 1000, isGone: false }];
  const waitedMs = Number.POSITIVE_INFINITY;
  const since = (known: typeof missed, answer: RejectedAnswer, nowMs: number, waited = waitedMs) =>
    missedSince(known, answer, { nowMs, waitedMs: waited });

  test('is awaited for a day from empty ones, and none of these about the device proves anything meanwhile', () => {
    expect(since([], EMPTY_WITHOUT, 1000)).toBe('never');
    expect(since(missed, EMPTY_WITHOUT, 1000 + DAY_MS - 1)).toBe('awaited');
    expect(since(missed, EMPTY_WITHOUT, 1000 + DAY_MS)).toBe('overdue');
    expect(since(missed, EMPTY, 2000)).toBe('awaited');
    expect(since(missed, ODD, 2000)).toBe('never');
    expect([areEmptyAnswersIgnored(missed, 2000), areEmptyAnswersIgnored(missed, 1000 + DAY_MS)]).toEqual([
      true,
      false,
    ]);
  });

  test('is awaited for half an hour from pages with readings, by both clocks', () => {
    const later = 1000 + 30 * MINUTE_MS;
    expect([since([], SHORT, 1000), since(missed, SHORT, later - 1), since(missed, SHORT, later)]).toEqual([
      'never',
      'awaited',
      'overdue',
    ]);
    expect(since(missed, SHORT, later, 29 * MINUTE_MS)).toBe('awaited');
  });

  test('is recorded from the first time, and is gone when answers are accepted or have others in its place', () => {
    const [first] = missed;
    expect(missedAfter([], { at: 5n, step: 'remember, give up' }, 1000)).toEqual(first);
    expect(missedAfter(missed, { at: 5n, step: 'remember, give up' }, 2000)).toBeNull();
    expect(missedAfter(missed, { at: 5n, step: 'accept the answers' }, 1000 + DAY_MS)).toEqual({
      ...first,
      isGone: true,
    });
    expect(missedAfter(missed, { at: 5n, step: 'overlap is gone' }, 2000)).toEqual({ ...first, isGone: true });
    expect(missedAfter([], { at: 5n, step: 'overlap is gone' }, 2000)).toBeNull();
    expect(missedAfter(missed, { at: 5n, step: 'give up' }, 2000)).toBeNull();
  });

  test('that was missed first by a clock that was ahead is awaited from now on', () => {
    const later = [{ at: 5n, sinceMs: 400 * DAY_MS, isGone: false }];
    for (const step of ['give up', 'accept the answers'] as const) {
      expect(missedAfter(later, { at: 5n, step }, 1000)).toEqual({ at: 5n, sinceMs: 1000, isGone: false });
    }
  });

  test('is missed no longer once a page shows it, and requested no longer once it is gone', () => {
    const shown = reading(3);
    const { recordedAt: at } = shown;
    expect(reappearedOverlaps([...missed, { at, sinceMs: 0, isGone: true }], [shown])).toEqual([at]);
    const edge = { at, digest: '' };
    expect(stillRequired(edge, [{ at, sinceMs: 0, isGone: false }])).toBe(edge);
    expect(stillRequired(edge, [{ at, sinceMs: 0, isGone: true }])).toBeNull();
  });

  test('leads to a repeated request of the range that was left empty up to it', () => {
    const [near, far] = [reading(10), reading(-10)].map(({ recordedAt: at }) => ({ at, digest: '' }));
    const newest = reading(5);
    const covers = { from: reading(0).recordedAt, to: near?.at ?? 0n };
    const gone = (edge: typeof near) => [{ at: edge?.at ?? 0n, sinceMs: 0, isGone: true }];
    const edges = [near ?? null, far ?? null];
    expect(emptiedRange({ covers, newest }, edges, gone(near))).toEqual({ ...covers, from: newest.recordedAt + 1n });
    expect(emptiedRange({ covers, newest }, edges, gone(far)), 'the page lies above it').toBeNull();
    expect(emptiedRange({ covers, newest: undefined }, edges, gone(far))).toEqual(covers);
    expect(emptiedRange({ covers, newest }, edges, missed), 'none is gone').toBeNull();
  });
});
