/**
 * The position of each destination in each lane of the log: the first line that it has not acknowledged.
 *
 * Promise: all statements that change a position are here. A position moves forward only from its known place.
 */
import type Database from 'better-sqlite3';
import type { LogLane, LogPosition } from '../../core/state/log.ts';
import { StaleStateError } from '../../core/state/telemetry.ts';

/** The positions of an open database. Writing calls need a transaction. */
export interface PositionTable {
  /** The position of a destination; a destination without one is at the beginning. */
  read(destinationId: number, lane: LogLane): LogPosition;
  /** All positions of a destination as one text, which changes with each of them; empty for none. */
  text(destinationId: number): string;
  /**
   * Moves a position forward.
   *
   * @throws StaleStateError if the position is not `from`.
   */
  advance(destinationId: number, lane: LogLane, move: { readonly from: LogPosition; readonly to: LogPosition }): void;
  /** Moves the positions inside a block that has lost lines to the new place of their line. */
  shift(lane: LogLane, block: bigint, lineNow: (line: number) => number): void;
  /** Removes the positions after one block up to another. Those destinations are at the beginning of the lane again. */
  dropBetween(lane: LogLane, after: number, upTo: number): void;
  /** Removes the positions of a destination. */
  dropAll(destinationId: number): void;
}

/** Prepares the positions of an open database. */
export function createPositionTable(db: Database.Database): PositionTable {
  const one = db.prepare<[number, string], { block: bigint; line: bigint }>(
    'SELECT block, line FROM position WHERE destination_id = ? AND lane = ?',
  );
  const text = db
    .prepare<[number], string | null>(
      `SELECT group_concat(lane || ' ' || block || ':' || line, ', ') FROM position
       WHERE destination_id = ? ORDER BY lane`,
    )
    .pluck();
  const inside = db.prepare<[string, bigint], { destination_id: bigint; line: bigint }>(
    'SELECT destination_id, line FROM position WHERE lane = ? AND block = ? AND line > 0',
  );
  const write = db.prepare('INSERT OR REPLACE INTO position (destination_id, lane, block, line) VALUES (?, ?, ?, ?)');
  const setLine = db.prepare('UPDATE position SET line = ? WHERE destination_id = ? AND lane = ?');
  const dropBetween = db.prepare('DELETE FROM position WHERE lane = ? AND block > ? AND block <= ?');
  const dropAll = db.prepare('DELETE FROM position WHERE destination_id = ?');
  const read = (destinationId: number, lane: LogLane): LogPosition => {
    const row = one.get(destinationId, lane);
    return { block: Number(row?.block ?? 0n), line: Number(row?.line ?? 0n) };
  };
  return {
    read,
    text: (destinationId) => text.get(destinationId) ?? '',
    advance: (destinationId, lane, { from, to }) => {
      const stored = read(destinationId, lane);
      if (stored.block !== from.block || stored.line !== from.line) {
        throw new StaleStateError(`${lane}: acknowledged from block ${from.block}, the position is ${stored.block}`);
      }
      write.run(destinationId, lane, to.block, to.line);
    },
    shift: (lane, block, lineNow) => {
      for (const { destination_id, line } of inside.all(lane, block)) {
        setLine.run(lineNow(Number(line)), destination_id, lane);
      }
    },
    dropBetween: (lane, after, upTo) => void dropBetween.run(lane, after, upTo),
    dropAll: (destinationId) => void dropAll.run(destinationId),
  };
}
