/** Cron expressions in UTC: their times, compared with those of node-cron, and the expressions that are refused. */
import { createTask } from 'node-cron';
import { describe, expect, test, vi } from 'vitest';
import { readCron } from '../../src/config/cron.ts';
import { cron, InvalidText } from '../../src/config/values.ts';

const AT = Date.UTC(2026, 5, 15, 12, 34, 56, 789);

function next(text: string, afterMs = AT): string | null {
  const read = readCron(text);
  if ('mistake' in read) throw new Error(read.mistake);
  const atMs = read.next(afterMs);
  return atMs === null ? null : new Date(atMs).toISOString();
}

describe('a cron expression', () => {
  test.each([
    ['* * * * *', '2026-06-15T12:35:00.000Z'],
    ['*/5 * * * *', '2026-06-15T12:35:00.000Z'],
    ['0 * * * *', '2026-06-15T13:00:00.000Z'],
    ['@daily', '2026-06-16T00:00:00.000Z'],
    ['30 12 * * *', '2026-06-16T12:30:00.000Z'],
    ['*/10 * * * * *', '2026-06-15T12:35:00.000Z'],
    ['15,57 * * * * *', '2026-06-15T12:34:57.000Z'],
    ['0 6 * * MON', '2026-06-22T06:00:00.000Z'],
    ['0 0 31 * *', '2026-07-31T00:00:00.000Z'],
    ['0 0 29 2 *', '2028-02-29T00:00:00.000Z'],
  ])('%s is due next at %s', (text, expected) => {
    expect(next(text)).toBe(expected);
  });

  test('is due later than the given time, never at it', () => {
    const first = Date.UTC(2026, 5, 15, 13);
    expect(next('0 * * * *', first - 1)).toBe('2026-06-15T13:00:00.000Z');
    expect(next('0 * * * *', first)).toBe('2026-06-15T14:00:00.000Z');
  });

  test('names every time that node-cron would run it at, and no other', () => {
    const read = readCron('*/7 3-5 * * 1-5');
    if ('mistake' in read) throw new Error(read.mistake);
    const named: number[] = [];
    for (let at = read.next(AT); at !== null && at < AT + 7 * 86_400_000; at = read.next(at)) named.push(at);
    const expected: number[] = [];
    for (let at = Math.ceil(AT / 60_000) * 60_000; at < AT + 7 * 86_400_000; at += 60_000) {
      const date = new Date(at);
      const isWeekday = date.getUTCDay() >= 1 && date.getUTCDay() <= 5;
      const isHour = date.getUTCHours() >= 3 && date.getUTCHours() <= 5;
      if (isWeekday && isHour && date.getUTCMinutes() % 7 === 0) expected.push(at);
    }
    expect(named).toEqual(expected);
    expect(named.length).toBe(5 * 3 * 9);
  });

  test('is searched once for all times before its next turn, and answers the same in any order', () => {
    const matches = vi.spyOn(Object.getPrototypeOf(createTask('* * * * *', () => {}, { timezone: 'UTC' })), 'match');
    try {
      const read = readCron('0 0 1 * *');
      if ('mistake' in read) throw new Error(read.mistake);
      const july = Date.UTC(2026, 6, 1);
      expect(read.next(AT)).toBe(july);
      const searched = matches.mock.calls.length;
      expect(searched, 'each day of the month is matched').toBeGreaterThan(15);
      for (let at = AT; at < july; at += 60_000) read.next(at);
      expect(read.next(july - 1)).toBe(july);
      expect(matches.mock.calls.length).toBe(searched);
      expect(read.next(july)).toBe(Date.UTC(2026, 7, 1));
      expect(read.next(AT)).toBe(july);
      expect(read.next(Date.UTC(2026, 4, 31))).toBe(Date.UTC(2026, 5, 1));
    } finally {
      matches.mockRestore();
    }
  });

  test.each([['* * * *'], ['61 * * * *'], ['every minute'], [''], ['0 0 30 2 *']])('%j is refused', (text) => {
    expect(readCron(text)).toHaveProperty('mistake');
  });
});

describe('a step that is as large as its field', () => {
  test.each([
    ['*/70 * * * *', 'the step 70 of the minute is too large: expected 1 to 59'],
    ['*/60 * * * *', 'the step 60 of the minute is too large: expected 1 to 59'],
    ['0 */24 * * *', 'the step 24 of the hour is too large: expected 1 to 23'],
    ['*/90 * * * * *', 'the step 90 of the second is too large: expected 1 to 59'],
    ['0 0 1-31/31 * *', 'the step 31 of the day is too large: expected 1 to 30'],
    ['0 0 1 */12 *', 'the step 12 of the month is too large: expected 1 to 11'],
    ['0 0 * * */7', 'the step 7 of the weekday is too large: expected 1 to 6'],
    ['*/00000000070 * * * *', 'the step 70 of the minute is too large: expected 1 to 59'],
    ['5,0-59/00000000070 * * * *', 'the step 70 of the minute is too large: expected 1 to 59'],
    [`*/${'9'.repeat(40)} * * * *`, 'the step 99999999999… of the minute is too large: expected 1 to 59'],
    ['61 * * * *', 'the minute of the cron expression is not valid: expected 0 to 59'],
    ['61 * * * * *', 'the second of the cron expression is not valid: expected 0 to 59'],
    ['0 25 * * *', 'the hour of the cron expression is not valid: expected 0 to 23'],
    ['0 0 32 * *', 'the day of the cron expression is not valid: expected 1 to 31'],
    ['0 0 32 2 *', 'the day of the cron expression is not valid: expected 1 to 31'],
    ['0 0 * foo *', 'the month of the cron expression is not valid: expected 1 to 12, or a name such as jan'],
    ['0 0 * * 8', 'the weekday of the cron expression is not valid: expected 0 to 7, or a name such as mon'],
    ['0 0 31 2 *', 'the expression matches no time'],
    ['0 0 30 feb *', 'the expression matches no time'],
    ['often', 'expected a cron expression: minute hour day month weekday, such as */5 * * * *'],
  ])('%j is refused', (text, reason) => {
    expect(cron(text)).toEqual(new InvalidText(reason));
  });

  test.each([
    '*/59 * * * *',
    '*/00000000059 * * * *',
    '0 */23 * * *',
    '*/30 * * * * *',
    '0 0 */30 * *',
    '5-55/10 * * * *',
  ])('%j is read', (text) => {
    expect(cron(text)).toHaveProperty('next');
  });
});
