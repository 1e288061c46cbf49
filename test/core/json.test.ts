/** Checks on JSON of others. */
import { describe, expect, test } from 'vitest';
import {
  areRecords,
  isNumber,
  isRecord,
  isText,
  isTexts,
  member,
  orNone,
  orNull,
  parseAs,
  parseJson,
  shapeOf,
} from '../../src/core/json.ts';

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

describe('stored JSON', () => {
  const isPair = shapeOf<readonly [number | null, number | undefined]>([orNull(isNumber), orNone(isNumber)]);
  const isNamed = shapeOf<{ readonly name: string; readonly tags: readonly string[] }>({ name: isText, tags: isTexts });

  test.each(['[1,2]', '[null,2]', '[1]', '[1,2,3]'])('%s is a list of such places', (text) => {
    expect(parseAs(text, isPair)).toEqual(JSON.parse(text));
  });

  test.each(['[]', '["1"]', '[1,null]', '{"0":1}', 'null', '1', '[1', null])('%s is none', (text) => {
    expect(parseAs(text, isPair)).toBeNull();
  });

  test.each<[string, boolean]>([
    ['{"name":"a","tags":["b"],"more":1}', true],
    ['{"name":"a","tags":[1]}', false],
    ['{"name":null,"tags":[]}', false],
    ['{"__proto__":{"name":"a"},"tags":[]}', false],
    ['["name","tags"]', false],
  ])('%s is a record of that shape: %j', (text, fits) => {
    expect(parseAs(text, isNamed)).toEqual(fits ? JSON.parse(text) : null);
  });
});
