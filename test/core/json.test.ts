/** Checks on JSON of others. */
import { expect, test } from 'vitest';
import { areRecords, isRecord, member, parseJson } from '../../src/core/json.ts';

test.each([
  [{}, true],
  [{ a: 1 }, true],
  [null, false],
  [[], false],
  ['{}', false],
  [1, false],
  [undefined, false],
])('%j is an object with members: %j', (value, is) => {
  expect(isRecord(value)).toBe(is);
});

test.each<[string, unknown, boolean]>([
  ['no records', [], true],
  ['records with the texts', [{ id: 'a', name: 'b', more: 1 }], true],
  ['a record without one', [{ id: 'a', name: 'b' }, { id: 'a' }], false],
  ['a record with a number in the place of a text', [{ id: 'a', name: 1 }], false],
  ['a list of lists', [['id', 'name']], false],
  ['one record that is no list', { id: 'a', name: 'b' }, false],
])('%s: a list of records with their texts, or not', (_what, value, are) => {
  expect(areRecords(value, ['id', 'name'])).toBe(are);
});

test('only own properties are members, whatever their names', () => {
  const parsed: unknown = JSON.parse('{"__proto__": 1, "constructor": 2, "a": null}');
  const holder = parsed as object;
  expect([member(holder, '__proto__'), member(holder, 'constructor'), member(holder, 'a')]).toEqual([1, 2, null]);
  expect([member(holder, 'toString'), member(holder, 'b'), member({}, 'constructor')]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

test.each<[string | null, unknown]>([
  ['{"a":[1]}', { a: [1] }],
  ['null', null],
  ['', null],
  ['{"a"', null],
  [null, null],
])('%j is parsed as %j', (text, value) => {
  expect(parseJson(text)).toEqual(value);
});
