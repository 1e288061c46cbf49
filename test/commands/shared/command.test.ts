/** Commands find the devices of `--device` in the state: by id, by name, and by an id that no list has any more. */
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { chosenDevices } from '../../../src/commands/shared/command.ts';
import { device, pageCommit, scratchStore } from '../../store/support.ts';

/** A state with two listed devices, and readings of a third that no list has. */
function openState() {
  const open = scratchStore();
  const listed = [
    { record: device('c-1', { name: 'Cold room 1' }), name: 'Cold room 1', line: null, digest: 'x' },
    { record: device('c-2', { name: 'Cold room 2' }), name: 'Cold room 2', line: null, digest: 'x' },
  ];
  const directory = dirname(open.file);
  open.store.pinWorkspace({ apiId: null, tag: 'ws' });
  open.store.saveInventory({ listed, missing: [], atMs: 1 });
  open.store.commitPage(pageCommit({ deviceId: 'gone' }));
  return { directory, [Symbol.dispose]: open[Symbol.dispose] };
}

test('by id, by name, and of a device that is not listed by its id', () => {
  using open = openState();
  expect(chosenDevices(open.directory, ['cold room 2', 'c-1', 'gone'], true)).toEqual(['c-2', 'c-1', 'gone']);
  expect(chosenDevices(open.directory, [], true)).toEqual([]);
});

test('a text that matches none is refused with the nearest, or passed on where a newer list decides', () => {
  using open = openState();
  expect(() => chosenDevices(open.directory, ['Cold room 3'], true)).toThrow(
    '--device: the state has no device with that id or name. Similar: c-1 (Cold room 1).',
  );
  expect(chosenDevices(open.directory, ['Cold room 3', 'Cold room 1'], false)).toEqual(['Cold room 3', 'c-1']);
});

test('without a state, texts are passed on', () => {
  using open = openState();
  const empty = join(open.directory, 'empty');
  mkdirSync(empty);
  expect(chosenDevices(empty, ['x'], true)).toEqual(['x']);
});
