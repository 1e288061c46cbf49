/** When an empty answer is accepted although there are signs of readings, and when it is requested again. */
import { describe, expect, test } from 'vitest';
import { CONFIRMED_FOR_GOOD } from '../../src/core/state/telemetry.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, msToNs } from '../../src/core/time.ts';
import {
  confirmEmpty,
  confirmWindow,
  controlFor,
  type EmptyAnswer,
  endsEmpty,
  isCheckDue,
  judgeEmpty,
  noteServedReadings,
  nothingServed,
  signToExplain,
  windowToCheck,
} from '../../src/ingest/empty-ranges.ts';

const NOW_MS = Date.UTC(2026, 5, 15, 12);
const RANGE = { from: msToNs(NOW_MS - DAY_MS), to: msToNs(NOW_MS - 2 * MINUTE_MS) };

/** No window waits, and nothing is covered. */
const NONE = { windows: [], covered: [] };

/** An empty answer about a device that was seen an hour ago and of which no reading is archived. */
const SEEN: EmptyAnswer = {
  range: RANGE,
  seenAt: msToNs(NOW_MS - HOUR_MS),
  newestNs: null,
  isStored: false,
  known: null,
  controlMs: null,
  nowMs: NOW_MS,
  waitedMs: Number.POSITIVE_INFINITY,
};

describe('judgeEmpty', () => {
  test.each<[string, Partial<EmptyAnswer>]>([
    ['the device was never seen', { seenAt: null }],
    ['it was seen before the range alone', { seenAt: RANGE.from - 1n }],
    ['its last sign of life is archived', { newestNs: RANGE.from - 1n, seenAt: RANGE.from - 1n }],
    ['the sign of life lies above the range, and so does a reading', { newestNs: RANGE.to, seenAt: RANGE.to }],
  ])('accepts it where %s, and records nothing', (_, change) => {
    expect(judgeEmpty({ ...SEEN, ...change })).toEqual({ isAccepted: true, next: null });
  });

  test.each<[string, Partial<EmptyAnswer>]>([
    ['was seen in the range', {}],
    ['was seen above the range', { seenAt: RANGE.to + 1n }],
    ['has an archived reading in the range', { seenAt: null, newestNs: RANGE.to, isStored: true }],
    ['has one although another device has readings', { seenAt: null, isStored: true, controlMs: NOW_MS }],
    ['was seen there after its newest reading', { newestNs: RANGE.from - 1n }],
  ])('treats it as provisional where the device %s', (_, change) => {
    expect(judgeEmpty({ ...SEEN, ...change })).toEqual({
      isAccepted: false,
      next: { ...RANGE, sinceMs: NOW_MS, answers: 1, confirmed: 0, dueMs: null },
    });
  });

  test('is accepted with readings of another device in the same minutes, and requested an hour later', () => {
    const control = { ...SEEN, controlMs: NOW_MS - 2 * MINUTE_MS };
    expect(judgeEmpty(control)).toMatchObject({ isAccepted: true, next: { confirmed: 1, dueMs: NOW_MS + HOUR_MS } });
    expect(judgeEmpty({ ...control, controlMs: NOW_MS - 2 * MINUTE_MS - 1 }).isAccepted).toBe(false);
  });

  test('accepts three answers that are spread over half an hour, and neither two nor three within less', () => {
    const answers = (...minutes: number[]) =>
      minutes.reduce<ReturnType<typeof judgeEmpty>>(
        ({ next }, minute) => judgeEmpty({ ...SEEN, known: next, nowMs: NOW_MS + minute * MINUTE_MS }),
        { isAccepted: false, next: null },
      ).isAccepted;
    expect(answers(0, 15, 30)).toBe(true);
    expect(answers(0, 15, 29)).toBe(false);
    expect(answers(0, 30)).toBe(false);
  });

  test('treats an answer as provisional beside an accepted range where a reading is archived, for half an hour', () => {
    const { next } = judgeEmpty({ ...SEEN, controlMs: NOW_MS });
    const known = next === null ? null : { ...next, confirmed: CONFIRMED_FOR_GOOD };
    const answer = { ...SEEN, known, isStored: true, controlMs: NOW_MS };
    expect(judgeEmpty(answer)).toMatchObject({ isAccepted: false, next: { answers: 2 } });
    const second = { ...answer, known: judgeEmpty(answer).next, nowMs: NOW_MS + 30 * MINUTE_MS };
    expect(judgeEmpty(second)).toMatchObject({ isAccepted: true, next: { answers: 3, confirmed: 1 } });
  });

  test('counts the half hour by the monotonic clock too: the local one may jump where there is no Date', () => {
    const known = { ...RANGE, sinceMs: NOW_MS - 3 * HOUR_MS, answers: 2, confirmed: 0, dueMs: null };
    expect(judgeEmpty({ ...SEEN, known, waitedMs: 30 * MINUTE_MS }).isAccepted).toBe(true);
    expect(judgeEmpty({ ...SEEN, known, waitedMs: 29 * MINUTE_MS }).isAccepted).toBe(false);
  });

  test('counts half an hour from now on where the first answer was dated by a clock that was ahead', () => {
    const first = judgeEmpty({ ...SEEN, nowMs: NOW_MS + 400 * DAY_MS }).next;
    const next = judgeEmpty({ ...SEEN, known: first }).next;
    expect(next).toMatchObject({ sinceMs: NOW_MS, answers: 2 });
    expect(judgeEmpty({ ...SEEN, known: next, nowMs: NOW_MS + 30 * MINUTE_MS }).isAccepted).toBe(true);
  });

  test('accepts an answer next to an accepted range, which grows, and requests it when that one is due', () => {
    const { next } = judgeEmpty({ ...SEEN, controlMs: NOW_MS });
    const later = { from: RANGE.to, to: RANGE.to + 1n };
    expect(
      judgeEmpty({ ...SEEN, seenAt: RANGE.to, range: later, known: next, nowMs: NOW_MS + MINUTE_MS }),
    ).toMatchObject({
      isAccepted: true,
      next: { from: RANGE.from, to: later.to, dueMs: NOW_MS + HOUR_MS },
    });
  });

  test('requests an accepted range twice more, after an hour and a day, and then no more', () => {
    const { next } = judgeEmpty({ ...SEEN, controlMs: NOW_MS });
    if (next === null) throw new Error('nothing is remembered');
    const second = confirmEmpty(next, NOW_MS + HOUR_MS);
    expect(second).toMatchObject({ confirmed: 2, dueMs: NOW_MS + DAY_MS });
    const third = confirmEmpty(second, NOW_MS + DAY_MS);
    expect(third).toMatchObject({ confirmed: CONFIRMED_FOR_GOOD, dueMs: null });
    expect(judgeEmpty({ ...SEEN, known: third, nowMs: NOW_MS + 2 * DAY_MS })).toEqual({
      isAccepted: true,
      next: third,
    });
  });
});

describe('a window of history without a reading', () => {
  const answer = { ...SEEN, newestNs: RANGE.to };
  const WINDOW = { ...RANGE, sinceMs: NOW_MS, dueMs: NOW_MS + HOUR_MS };

  test('is requested again after an hour where it is the first, the second, the fourth, the eighth, else after a day', () => {
    const isProbe = (before: number) =>
      windowToCheck(answer, { windows: Array.from({ length: before }, () => WINDOW), covered: [] })?.dueMs ===
      NOW_MS + HOUR_MS;
    expect(windowToCheck(answer, NONE)).toEqual(WINDOW);
    expect([0, 1, 2, 3, 4, 5, 6, 7, 8].filter(isProbe)).toEqual([0, 1, 3, 7]);
    expect(windowToCheck(answer, { windows: [WINDOW, WINDOW], covered: [] })).toEqual({
      ...WINDOW,
      dueMs: NOW_MS + 23 * HOUR_MS,
    });
  });

  test.each<[string, Partial<EmptyAnswer>]>([
    ['no reading is stored', { newestNs: null }],
    ['no newer reading is stored', { newestNs: RANGE.to - 1n }],
    ['a reading of it is archived', { isStored: true }],
    ['the plan hides all of it', { range: { from: RANGE.to, to: RANGE.to } }],
  ])('is not where %s', (_, change) => {
    expect(windowToCheck({ ...answer, ...change }, NONE)).toBeNull();
  });

  test('is one of a device that was never seen, unless something below it is covered', () => {
    const unseen = { ...answer, newestNs: null, seenAt: null };
    expect(windowToCheck(unseen, NONE)).toEqual(WINDOW);
    const covered = [{ from: RANGE.from - 10n, to: RANGE.from }];
    expect(windowToCheck(unseen, { ...NONE, covered })).toBeNull();
  });

  test('is requested a last time a day after the first answers, also where a clock was ahead then', () => {
    const second = confirmWindow(WINDOW, NOW_MS + HOUR_MS);
    expect(second).toEqual({ ...WINDOW, dueMs: NOW_MS + 23 * HOUR_MS });
    expect(second && confirmWindow(second, NOW_MS + DAY_MS)).toBeNull();
    const ahead = { ...WINDOW, sinceMs: NOW_MS + 9 * DAY_MS, dueMs: NOW_MS + 9 * DAY_MS };
    expect(confirmWindow(ahead, NOW_MS)).toEqual({ ...WINDOW, dueMs: NOW_MS + 23 * HOUR_MS });
  });

  test('is due at its time, and where that is more than a day away', () => {
    expect(isCheckDue(null, NOW_MS)).toBe(false);
    const isDueAt = (dueMs: number) => isCheckDue(dueMs, NOW_MS);
    expect([NOW_MS, NOW_MS + 1, NOW_MS + DAY_MS, NOW_MS + DAY_MS + 1].map(isDueAt)).toEqual([true, false, false, true]);
  });
});

describe('the sign of life to explain', () => {
  const device = { record: { deviceId: 'd', lastSeenAt: RANGE.to } } as Parameters<typeof signToExplain>[0];
  const page = { to: RANGE.to + 1n, isTimeBySigns: false, isLastTry: false };

  test('is the last one in the gap', () => {
    expect(signToExplain(null, page)).toBeNull();
    expect(signToExplain(device, page)).toBe(RANGE.to);
    expect(signToExplain(device, { ...page, isLastTry: true })).toBe(RANGE.to);
  });

  test('is none above the gap, except where signs of life are the clock, until the last try', () => {
    const above = { ...page, to: RANGE.to };
    expect(signToExplain(device, above)).toBeNull();
    expect(signToExplain(device, { ...above, isTimeBySigns: true })).toBe(RANGE.to);
    expect(signToExplain(device, { ...above, isTimeBySigns: true, isLastTry: true })).toBeNull();
  });
});

describe('the records of empty answers', () => {
  const known = { ...RANGE, sinceMs: NOW_MS, answers: 1, confirmed: 0, dueMs: null };

  test('ends with the first reading, and with one of the range or above it', () => {
    expect(endsEmpty(known, RANGE.from - 1n, null)).toBe(true);
    expect(endsEmpty(known, RANGE.from - 1n, RANGE.from - 1n)).toBe(false);
    expect(endsEmpty(known, RANGE.from, RANGE.from - 1n)).toBe(true);
    expect(endsEmpty(known, RANGE.to + 1n, RANGE.from - 1n)).toBe(true);
  });
});

describe('the control', () => {
  const pageOf = (deviceId: string, atMs: number, newestNs = msToNs(atMs)) => ({ deviceId, atMs, newestNs });

  test('is of another device, and new where there was none within the same minutes', () => {
    const served = nothingServed();
    expect(controlFor(served, 'a')).toBeNull();
    expect(noteServedReadings(served, pageOf('a', 1000))).toBe(true);
    expect(controlFor(served, 'a')).toBeNull();
    expect(controlFor(served, 'b')).toBe(1000);
    expect(noteServedReadings(served, pageOf('a', 2000))).toBe(false);
    expect(noteServedReadings(served, pageOf('b', 3000)), 'the first that speaks for a').toBe(true);
    expect(controlFor(served, 'a')).toBe(3000);
    expect(controlFor(served, 'b')).toBe(2000);
    expect(noteServedReadings(served, pageOf('a', 3000 + 2 * MINUTE_MS + 1))).toBe(true);
  });

  test('has readings as new as the sign of life that a page stops short of', () => {
    const served = nothingServed();
    noteServedReadings(served, pageOf('b', 3000, 50n));
    expect([controlFor(served, 'a', 50n), controlFor(served, 'a', 51n)]).toEqual([3000, null]);
  });
});
