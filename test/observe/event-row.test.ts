/** The parts that rows of the event table are made of. */
import { expect, test } from 'vitest';
import { debug, error, FIELDS, info, instant, waitSeconds, warn } from '../../src/observe/event-row.ts';

test('a row has the level in the name of its function, its message, and the other arguments', () => {
  const counts = (): void => {};
  expect([error('a'), warn('b'), info('c'), debug('d', { counts })]).toEqual([
    { level: 'error', message: 'a' },
    { level: 'warn', message: 'b' },
    { level: 'info', message: 'c' },
    { level: 'debug', message: 'd', counts },
  ]);
});

test.each([
  [0, 0],
  [49, 0],
  [50, 0.1],
  [1234, 1.2],
  [60_000, 60],
])('a wait of %i ms is written as %d seconds', (ms, seconds) => {
  expect(waitSeconds(ms)).toEqual({ wait_seconds: seconds });
});

test.each([
  [0, '1970-01-01T00:00:00.000Z'],
  [8.64e15, 'unknown'],
  [-8.64e15, 'unknown'],
  [Number.POSITIVE_INFINITY, 'unknown'],
  [Number.NaN, 'unknown'],
])('the time %d is written as %s', (ms, text) => {
  expect(instant(ms)).toBe(text);
});

test('every field has a name in snake case, a unit and a meaning, in the order of the alphabet', () => {
  const names = Object.keys(FIELDS);
  expect(names.filter((name) => !/^[a-z]+(_[a-z]+)*$/.test(name))).toEqual([]);
  expect(names).toEqual(names.toSorted());
  expect(Object.values(FIELDS).every(({ unit, meaning }) => unit !== '' && meaning !== '')).toBe(true);
});
