/**
 * What to do about an answer that proves nothing: every row of the table, try by try.
 */
import { describe, expect, test } from 'vitest';
import { DAY_MS } from '../../src/core/time.ts';
import {
  type Attempts,
  areEmptyAnswersIgnored,
  decideStep,
  isOverlapOptional,
  missedAfter,
  missedSince,
  NO_ATTEMPTS,
  reappearedOverlaps,
  type Step,
  type Unproven,
  unlessGone,
} from '../../src/ingest/unproven.ts';
import { reading } from '../core/support/readings.ts';

const EMPTY: Unproven = { isEmpty: true, overlapMissing: false, missed: 'never' };
const ODD: Unproven = { isEmpty: false, overlapMissing: false, missed: 'never' };
const WITHOUT: Unproven = { isEmpty: false, overlapMissing: true, missed: 'never' };
const EMPTY_WITHOUT: Unproven = { isEmpty: true, overlapMissing: true, missed: 'never' };

/** The steps that answers lead to, one after the other, and what was met in the end. */
function weighAll(...answers: readonly Unproven[]): { steps: Step[]; attempts: Attempts } {
  let attempts = NO_ATTEMPTS;
  const steps = answers.map((answer) => {
    const weighed = decideStep(attempts, answer);
    attempts = weighed.attempts;
    return weighed.step;
  });
  return { steps, attempts };
}

describe('an answer that proves nothing', () => {
  test.each<[string, readonly Unproven[], readonly Step[]]>([
    ['that is empty is asked for once more at once', [EMPTY], ['same at once']],
    [
      'that is empty again, or disordered, is asked for three times in all',
      [EMPTY, EMPTY, ODD, EMPTY],
      ['same at once', 'same later', 'same later', 'give up'],
    ],
    ['that is odd is asked for three times', [ODD, ODD, ODD], ['same later', 'same later', 'give up']],
    ['that is empty where such answers are in doubt is given up', [{ ...EMPTY, missed: 'awaited' }], ['give up']],
    [
      'that has readings without the overlap reading shows after three tries that it is gone',
      [WITHOUT, WITHOUT, WITHOUT, WITHOUT],
      ['restart later', 'restart later', 'overlap is gone', 'overlap is gone'],
    ],
    [
      'that is empty and lacks the overlap reading is remembered after three tries',
      [EMPTY_WITHOUT, EMPTY_WITHOUT, EMPTY_WITHOUT],
      ['restart later', 'restart later', 'remember, give up'],
    ],
    [
      'that is empty while the overlap reading is waited for is given up',
      [{ ...EMPTY_WITHOUT, missed: 'awaited' }],
      ['give up'],
    ],
    [
      'that is empty when the overlap reading is missing for a day is believed after three tries',
      Array<Unproven>(3).fill({ ...EMPTY_WITHOUT, missed: 'overdue' }),
      ['restart later', 'restart later', 'believe the answers'],
    ],
  ])('%s', (_, answers, steps) => {
    expect(weighAll(...answers).steps).toEqual(steps);
  });

  test('counts against its gap, the first empty one aside', () => {
    expect(weighAll(EMPTY).attempts).toEqual({ ...NO_ATTEMPTS, empties: 1 });
    expect(weighAll(EMPTY, ODD, WITHOUT).attempts).toEqual({
      rejected: 2,
      empties: 1,
      withoutOverlap: 1,
      emptyBelieved: false,
    });
  });

  test('makes a page believed without the overlap reading, an empty one only where empty ones were awaited', () => {
    const gone = weighAll(WITHOUT, WITHOUT, WITHOUT).attempts;
    expect([isOverlapOptional(gone, [reading(1)]), isOverlapOptional(gone, [])]).toEqual([true, false]);
    const overdue = weighAll(...Array<Unproven>(3).fill({ ...EMPTY_WITHOUT, missed: 'overdue' })).attempts;
    expect(isOverlapOptional(overdue, [])).toBe(true);
    expect(isOverlapOptional(weighAll(WITHOUT, WITHOUT).attempts, [reading(1)])).toBe(false);
  });
});

describe('an overlap reading that is missing from empty answers', () => {
  const missed = [{ at: 5n, sinceMs: 1000, isGone: false }];
  const empty = { at: 5n, isEmpty: true, overlapMissing: true };

  test('is awaited for a day, in which no empty answer about the device proves anything', () => {
    expect(missedSince([], empty, 1000)).toBe('never');
    expect(missedSince(missed, empty, 1000 + DAY_MS - 1)).toBe('awaited');
    expect(missedSince(missed, empty, 1000 + DAY_MS)).toBe('overdue');
    expect(missedSince(missed, { ...empty, overlapMissing: false }, 2000)).toBe('awaited');
    expect(missedSince(missed, { ...empty, isEmpty: false }, 2000)).toBe('never');
    expect([areEmptyAnswersIgnored(missed, 2000), areEmptyAnswersIgnored(missed, 1000 + DAY_MS)]).toEqual([
      true,
      false,
    ]);
  });

  test('is remembered from the first time, and is gone after a day or when answers with readings do not have it', () => {
    const [first] = missed;
    expect(missedAfter([], { at: 5n, step: 'remember, give up' }, 1000)).toEqual(first);
    expect(missedAfter(missed, { at: 5n, step: 'remember, give up' }, 2000)).toBeNull();
    expect(missedAfter(missed, { at: 5n, step: 'believe the answers' }, 1000 + DAY_MS)).toEqual({
      ...first,
      isGone: true,
    });
    expect(missedAfter(missed, { at: 5n, step: 'overlap is gone' }, 2000)).toEqual({ ...first, isGone: true });
    expect(missedAfter([], { at: 5n, step: 'overlap is gone' }, 2000)).toBeNull();
    expect(missedAfter(missed, { at: 5n, step: 'give up' }, 2000)).toBeNull();
  });

  test('that was missed first by a clock that was ahead is awaited from now on', () => {
    const later = [{ at: 5n, sinceMs: 400 * DAY_MS, isGone: false }];
    for (const step of ['give up', 'believe the answers'] as const) {
      expect(missedAfter(later, { at: 5n, step }, 1000)).toEqual({ at: 5n, sinceMs: 1000, isGone: false });
    }
  });

  test('is missed no longer once a page shows it, and asked for no longer once it is gone', () => {
    const shown = reading(3);
    const { recordedAt: at } = shown;
    expect(reappearedOverlaps([...missed, { at, sinceMs: 0, isGone: true }], [shown])).toEqual([at]);
    const edge = { at, digest: '' };
    expect(unlessGone(edge, [{ at, sinceMs: 0, isGone: false }])).toBe(edge);
    expect(unlessGone(edge, [{ at, sinceMs: 0, isGone: true }])).toBeNull();
  });
});
