/**
 * The name of a device at a time, and the devices that a command names: by id or name, and the error where none or
 * several match.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findDeviceIds, nameAt, nameOf, pinName } from '../../src/core/device-names.ts';
import { UserError } from '../../src/core/faults.ts';
import type { NameRecord } from '../../src/core/state/telemetry.ts';

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
  test('the first name holds from the beginning', () => {
    expect(pinName([], seen('A', 50n, 40n))).toEqual([{ fromNs: 0n, name: 'A' }]);
  });

  test('an unchanged name changes nothing', () => {
    const names = [{ fromNs: 0n, name: 'A' }];
    expect(pinName(names, seen('A', 50n))).toBe(names);
  });

  test('a new name holds from the moment it was seen', () => {
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

const DEVICES = [
  { deviceId: 'hub-1', name: 'Kitchen' },
  { deviceId: 'hub-2', name: 'Twin' },
  { deviceId: 'other', name: 'twin ' },
  { deviceId: 'Kitchen', name: 'Cellar' },
  { deviceId: 'c-9', name: 'Cold room 9' },
];

function mistakeOf(...wanted: string[]): string {
  try {
    findDeviceIds(DEVICES, wanted);
  } catch (error) {
    expect(error).toBeInstanceOf(UserError);
    expect((error as UserError).exitCode).toBe(2);
    return (error as UserError).message;
  }
  throw new Error('found');
}

test('finds devices by id and by name in any case, each once', () => {
  expect(findDeviceIds(DEVICES, ['c-9', 'cold ROOM 9', 'HUB-1'])).toEqual(['c-9', 'hub-1']);
  expect(findDeviceIds(DEVICES, [])).toEqual([]);
});

test('an id wins over the name of another device', () => {
  expect(findDeviceIds(DEVICES, ['Kitchen'])).toEqual(['Kitchen']);
  expect(mistakeOf('kitchen')).toContain('2 devices have that name: hub-1 (Kitchen), Kitchen (Cellar). Give the id');
});

test('a name of several devices lists their ids', () => {
  expect(mistakeOf('TWIN')).toBe(
    '--device: 2 devices have that name: hub-2 (Twin), other (twin ). Give the id of one.',
  );
});

test('the nearest devices are named, and which of several texts is wrong', () => {
  expect(mistakeOf('c-9', 'Cold rom 9')).toBe(
    '--device number 2: the state has no device with that id or name. Similar: c-9 (Cold room 9).',
  );
  expect(mistakeOf('cold')).toContain('Similar: c-9 (Cold room 9).');
});

test('a text that may be a key is not repeated', () => {
  expect(mistakeOf('sk_live_4242')).toBe(
    '--device: the state has no device with that id or name. Known: hub-1 (Kitchen), hub-2 (Twin), other (twin ), Kitchen (Cellar), c-9 (Cold room 9).',
  );
});
