/** Devices that a command names: by id or name, and the error where none or several match. */
import { expect, test } from 'vitest';
import { findDeviceIds } from '../../src/core/device-names.ts';
import { UserError } from '../../src/core/faults.ts';

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
