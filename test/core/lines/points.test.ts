/** A reading as one value for each sensor, the values that are dropped, and the digest of a reading. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { flattenReading, readingDigest } from '../../../src/core/lines/points.ts';
import type { JsonValue, Reading } from '../../../src/core/records.ts';

const flat = (values: Reading['values']): ReturnType<typeof flattenReading> =>
  flattenReading({ recordedAt: 1n, values });

/** As an API answer would hold them: own members called `__proto__` included. */
function parsed(json: string): Reading['values'] {
  const values: Record<string, JsonValue> = JSON.parse(json);
  return Object.entries(values);
}

function nested(depth: number): JsonValue {
  let value: JsonValue = 1;
  for (let level = 0; level < depth; level += 1) value = { a: value };
  return value;
}

describe('flattening', () => {
  test('numbers are value, booleans flag, strings text, in the order served', () => {
    const { values, dropped } = flat([
      ['t', 21.5],
      ['open', false],
      ['mode', 'eco'],
      ['empty', ''],
    ]);
    expect(values).toEqual([
      { sensor: 't', field: 'value', value: 21.5 },
      { sensor: 'open', field: 'flag', value: false },
      { sensor: 'mode', field: 'text', value: 'eco' },
      { sensor: 'empty', field: 'text', value: '' },
    ]);
    expect(dropped.size).toBe(0);
  });

  test('nested values get dotted names, list items their index', () => {
    const { values } = flat([
      ['gps', { lat: 1, deep: { er: 'x' } }],
      ['list', [5, [true, null]]],
    ]);
    expect(values.map(({ sensor, value }) => [sensor, value])).toEqual([
      ['gps.lat', 1],
      ['gps.deep.er', 'x'],
      ['list.0', 5],
      ['list.1.0', true],
    ]);
  });

  test('null is absent and not counted as dropped; neither are empty objects and lists', () => {
    const { values, dropped } = flat([
      ['a', null],
      ['b', {}],
      ['c', []],
      ['d', { e: null }],
    ]);
    expect(values).toEqual([]);
    expect(dropped.size).toBe(0);
  });

  test('numbers that are not finite are dropped by name, the others stay', () => {
    const { values, dropped } = flat([
      ['a', Number.POSITIVE_INFINITY],
      ['b', Number.NaN],
      ['c', 1],
      ['d', { e: Number.NEGATIVE_INFINITY }],
    ]);
    expect(values.map(({ sensor }) => sensor)).toEqual(['c']);
    expect([...dropped]).toEqual([['not a finite number', 3]]);
  });

  test('eight levels of nesting are followed, the ninth is dropped by name', () => {
    expect(flat([['x', nested(8)]]).values).toEqual([{ sensor: 'x.a.a.a.a.a.a.a.a', field: 'value', value: 1 }]);
    const { values, dropped } = flat([
      ['x', nested(9)],
      ['y', 2],
    ]);
    expect(values.map(({ sensor }) => sensor)).toEqual(['y']);
    expect([...dropped]).toEqual([['nested too deeply', 1]]);
  });

  test('2048 values of one reading are kept, the rest is dropped by name', () => {
    const { values, dropped } = flat(Array.from({ length: 2050 }, (_, index) => [`s${index}`, index] as const));
    expect(values).toHaveLength(2048);
    expect(values.at(-1)?.sensor).toBe('s2047');
    expect([...dropped]).toEqual([['too many values in one reading', 2]]);
  });

  test('a long name is not repeated for each item below it', () => {
    const long = 'k'.repeat(1025);
    const { values, dropped } = flat([
      [long, [1, 2, 3]],
      [long.slice(1), [1]],
      [`${long}s`, 4],
    ]);
    expect(values.map(({ sensor }) => sensor.length)).toEqual([1026, 1026]);
    expect([...dropped]).toEqual([['nested below a name that is too long', 1]]);
  });

  test('names that mean something to JavaScript are names like others', () => {
    const { values } = flat(parsed('{"__proto__": 1, "constructor": {"__proto__": 2}, "length": [3]}'));
    expect(values.map(({ sensor, value }) => [sensor, value])).toEqual([
      ['__proto__', 1],
      ['constructor.__proto__', 2],
      ['length.0', 3],
    ]);
  });

  test('every value that is not null is kept or named', () => {
    const leaves = (value: JsonValue): number => {
      if (value === null) return 0;
      return typeof value === 'object'
        ? Object.values(value).reduce((sum: number, inner) => sum + leaves(inner), 0)
        : 1;
    };
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 5 })), (object) => {
        const values = Object.entries(object) as Reading['values'];
        const { values: kept, dropped } = flat(values);
        const named = [...dropped.values()].reduce((sum, count) => sum + count, 0);
        expect(kept.length + named).toBe(values.reduce((sum, [, value]) => sum + leaves(value), 0));
      }),
    );
  });
});

describe('the digest of a reading', () => {
  const digest = (values: Reading['values'], recordedAt = 1n): string => readingDigest({ recordedAt, values });
  const scramble = (value: JsonValue): JsonValue => {
    if (value === null || typeof value !== 'object') return value;
    if (Array.isArray(value)) return value.map((item: JsonValue) => scramble(item));
    return Object.fromEntries(
      Object.entries(value)
        .reverse()
        .map(([key, inner]) => [key, scramble(inner)]),
    );
  };

  test('does not depend on the order of keys at any depth', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (object) => {
        const pairs = Object.entries(object) as Reading['values'];
        const otherwise = pairs.map(([key, value]) => [key, scramble(value)] as const).reverse();
        expect(digest(otherwise)).toBe(digest(pairs));
      }),
    );
  });

  test('is that of the values alone: the instant stands beside it', () => {
    expect(digest([['a', 1]], 1n)).toBe(digest([['a', 1]], 2n));
  });

  test('distinguishes different points', () => {
    const different: Reading['values'][] = [
      [],
      [['a', 1]],
      [['a', '1']],
      [['a', true]],
      [['a', 'true']],
      [['a', null]],
      [['a', 'null']],
      [['a', [1]]],
      [['a', { 0: 1 }]],
      [['a', [1, 2]]],
      [['a', [2, 1]]],
      [['a', '[1,2]']],
      [['a', { b: 1 }]],
      [['a.b', 1]],
      [['a', 1.0000000000000002]],
      [['b', 1]],
      [
        ['a', 1],
        ['b', 1],
      ],
      [['a":1,"b', 1]],
      [['a', [[], []]]],
      [['a', [[[]]]]],
      [['a', '']],
      [['', 'a']],
    ];
    expect(new Set(different.map((values) => digest(values))).size).toBe(different.length);
  });
});
