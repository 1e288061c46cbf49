/** The position of each destination in the log, in a real state file, also when blocks shrink or merge. */
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { StaleStateError } from '../../../src/core/state/telemetry.ts';
import { createPositionTable, type PositionTable } from '../../../src/store/delivery/positions.ts';
import { MIGRATIONS } from '../../../src/store/open/migrations.ts';

/** The positions of a new database with two destinations. */
function positions(): PositionTable {
  const db = new Database(':memory:');
  db.defaultSafeIntegers();
  for (const migration of MIGRATIONS) db.exec(migration);
  for (const name of ['one', 'two']) db.prepare("INSERT INTO destination (name, identity) VALUES (?, 'x')").run(name);
  return createPositionTable(db);
}

const [ONE, TWO] = [1, 2];
const START = { block: 0, line: 0 };

describe('a position', () => {
  test('begins at the beginning of each lane, and moves from where it is alone', () => {
    const table = positions();
    expect(table.read(ONE, 'live')).toEqual(START);
    expect(table.text(ONE)).toBe('');
    table.advance(ONE, 'live', { from: START, to: { block: 4, line: 2 } });
    expect(table.read(ONE, 'live')).toEqual({ block: 4, line: 2 });
    expect([table.read(ONE, 'history'), table.read(TWO, 'live')]).toEqual([START, START]);
    const again = (): void => table.advance(ONE, 'live', { from: { block: 4, line: 1 }, to: { block: 9, line: 0 } });
    expect(again).toThrow(StaleStateError);
    expect(again).toThrow('live: acknowledged from block 4, the position is 4');
    expect(table.read(ONE, 'live')).toEqual({ block: 4, line: 2 });
  });

  test('shows every move in its text', () => {
    const table = positions();
    table.advance(ONE, 'live', { from: START, to: { block: 1, line: 0 } });
    table.advance(ONE, 'history', { from: START, to: { block: 2, line: 3 } });
    expect(table.text(ONE)).toBe('history 2:3, live 1:0');
  });

  test('stays behind the same line of a block that loses lines', () => {
    const table = positions();
    table.advance(ONE, 'live', { from: START, to: { block: 5, line: 3 } });
    table.advance(TWO, 'live', { from: START, to: { block: 5, line: 0 } });
    table.advance(TWO, 'history', { from: START, to: { block: 5, line: 3 } });
    table.shift('live', 5n, (line) => line - 2);
    table.shift('live', 6n, () => 0);
    expect(table.read(ONE, 'live')).toEqual({ block: 5, line: 1 });
    expect(table.text(TWO)).toBe('history 5:3, live 5:0');
  });

  test('goes where its block is merged into an earlier one, and with its destination', () => {
    const table = positions();
    for (const [id, block] of [
      [ONE, 3],
      [TWO, 5],
    ] as const) {
      table.advance(id, 'live', { from: START, to: { block, line: 0 } });
      table.advance(id, 'history', { from: START, to: { block, line: 0 } });
    }
    table.dropBetween('live', 3, 5);
    expect([table.text(ONE), table.text(TWO)]).toEqual(['history 3:0, live 3:0', 'history 5:0']);
    table.dropAll(ONE);
    expect([table.text(ONE), table.text(TWO)]).toEqual(['', 'history 5:0']);
  });
});
