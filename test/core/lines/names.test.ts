import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { nameAt, nameOf, pinName } from '../../../src/core/lines/names.ts';
import type { NameRecord } from '../../../src/core/state/telemetry.ts';

const seen = (name: string, atNs: bigint, newestNs: bigint | null = null) => ({
  name,
  atNs,
  newestArchivedNs: () => newestNs,
});

describe('the name of a device', () => {
  test('is its own, or its id where it has none', () => {
    expect(nameOf({ deviceId: 'd1', name: 'Pump' })).toBe('Pump');
    expect(nameOf({ deviceId: 'd1', name: ' Pump ' })).toBe(' Pump ');
    for (const name of [null, '', '  \t']) expect(nameOf({ deviceId: 'd1', name })).toBe('d1');
  });
});

describe('the name that holds at a time', () => {
  const names: NameRecord[] = [
    { fromNs: 10n, name: 'A' },
    { fromNs: 20n, name: 'B' },
    { fromNs: 30n, name: 'A' },
  ];

  test('is the last one that was seen by then, from its very instant on', () => {
    expect([10n, 19n, 20n, 29n, 30n, 99n].map((at) => nameAt(names, at))).toEqual(['A', 'A', 'B', 'B', 'A', 'A']);
  });

  test('is the first one before any was seen, and none where none ever was', () => {
    expect(nameAt(names, 0n)).toBe('A');
    expect(nameAt([], 5n)).toBeNull();
  });
});

describe('pinning a name', () => {
  test('the first one holds from the beginning', () => {
    expect(pinName([], seen('A', 50n, 40n))).toEqual([{ fromNs: 0n, name: 'A' }]);
  });

  test('the same one again changes nothing', () => {
    const names = [{ fromNs: 0n, name: 'A' }];
    expect(pinName(names, seen('A', 50n))).toBe(names);
  });

  test('another one holds from the moment it was seen', () => {
    expect(pinName([{ fromNs: 0n, name: 'A' }], seen('B', 50n, 40n)).at(-1)).toEqual({ fromNs: 50n, name: 'B' });
  });

  test('never reaches back over a reading that is archived under the one before', () => {
    expect(pinName([{ fromNs: 0n, name: 'A' }], seen('B', 50n, 50n)).at(-1)).toEqual({ fromNs: 51n, name: 'B' });
    expect(pinName([{ fromNs: 0n, name: 'A' }], seen('B', 50n, 70n)).at(-1)).toEqual({ fromNs: 71n, name: 'B' });
  });

  test('a name that comes back is pinned anew', () => {
    const names = pinName(pinName([{ fromNs: 0n, name: 'A' }], seen('B', 50n)), seen('A', 60n));
    expect([40n, 55n, 65n].map((at) => nameAt(names, at))).toEqual(['A', 'B', 'A']);
  });

  test('a clock that falls back still gives each name a time of its own', () => {
    const names = pinName(pinName([{ fromNs: 0n, name: 'A' }], seen('B', 50n)), seen('C', 20n));
    expect(names.map(({ fromNs }) => fromNs)).toEqual([0n, 50n, 51n]);
  });

  test('archived points keep their names for ever, in any order of observations', () => {
    const anyAt = fc.bigInt({ min: 0n, max: 100n });
    const anyStep = fc.tuple(fc.constantFrom('A', 'B', 'C'), anyAt, fc.array(anyAt, { maxLength: 3 }));
    fc.assert(
      fc.property(fc.array(anyStep, { minLength: 1, maxLength: 8 }), (steps) => {
        let names: readonly NameRecord[] = [];
        const archived: { at: bigint; under: string | null }[] = [];
        for (const [name, atNs, fresh] of steps) {
          const newest = archived.map(({ at }) => at).toSorted((a, b) => (a < b ? -1 : 1));
          names = pinName(names, seen(name, atNs, newest.at(-1) ?? null));
          archived.push(...fresh.map((at) => ({ at, under: nameAt(names, at) })));
          expect(archived.map(({ at }) => nameAt(names, at))).toEqual(archived.map(({ under }) => under));
          expect(names.at(-1)?.name).toBe(name);
          expect(new Set(names.map(({ fromNs }) => fromNs)).size).toBe(names.length);
        }
      }),
    );
  });
});
