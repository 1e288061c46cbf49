/**
 * Destinations: how far each has come in each lane of the log, and what it refused.
 *
 * Promise: a position moves only together with the quarantine of what was refused below it, and never past a line that
 * is neither accepted nor in quarantine. A destination is its identity (kind, URL, organisation, bucket): change one of
 * these and it is a new destination, which starts at the beginning of the log.
 */
import type Database from 'better-sqlite3';
import type { Backlog, DeliveryOutcome, DestinationState, LogLane, LogPosition } from '../core/log-state.ts';
import { StaleStateError } from '../core/telemetry-state.ts';
import type { Archive } from './archive.ts';

export interface Delivery {
  destination(name: string, identity: string): DestinationState;
  position(destinationId: number, lane: LogLane): LogPosition;
  /** Only inside a transaction. @throws StaleStateError where the position is not the one the outcome begins at. */
  settle(outcome: DeliveryOutcome): void;
  backlog(destinationId: number): Backlog;
}

const START: LogPosition = { block: 0, line: 0 };

const LANES: readonly LogLane[] = ['live', 'history'];

/** Prepares delivery of an open database. */
export function createDelivery(db: Database.Database, archive: Archive): Delivery {
  const find = db.prepare<[string, string], { id: bigint }>(
    'SELECT id FROM destination WHERE name = ? AND identity = ?',
  );
  const create = db.prepare('INSERT INTO destination (name, identity) VALUES (?, ?)');
  const read = db.prepare<[number, string], { block: bigint; line: bigint }>(
    'SELECT block, line FROM position WHERE destination_id = ? AND lane = ?',
  );
  const write = db.prepare('INSERT OR REPLACE INTO position (destination_id, lane, block, line) VALUES (?, ?, ?, ?)');
  const quarantine = db.prepare(
    `INSERT OR IGNORE INTO quarantine (destination_id, source, content, reason, at_ms)
     VALUES (?, 'destination', ?, ?, ?)`,
  );
  const refused = db.prepare<[number], bigint>('SELECT count(*) FROM quarantine WHERE destination_id = ?').pluck();
  const position = (destinationId: number, lane: LogLane): LogPosition => {
    const row = read.get(destinationId, lane);
    return row === undefined ? START : { block: Number(row.block), line: Number(row.line) };
  };
  return {
    destination: (name, identity) => {
      const row = find.get(name, identity);
      if (row !== undefined) return { id: Number(row.id), name, created: false };
      return { id: Number(create.run(name, identity).lastInsertRowid), name, created: true };
    },
    position,
    settle: ({ destinationId, lane, from, to, refused: lines, atMs }) => {
      const stored = position(destinationId, lane);
      if (stored.block !== from.block || stored.line !== from.line) {
        throw new StaleStateError(`${lane}: settled from block ${from.block}, the position is ${stored.block}`);
      }
      for (const { line, words } of lines) quarantine.run(destinationId, line, words, Math.floor(atMs));
      write.run(destinationId, lane, to.block, to.line);
    },
    backlog: (destinationId) => ({
      pendingLines: LANES.reduce((sum, lane) => sum + archive.linesAfter(lane, position(destinationId, lane)), 0),
      quarantined: Number(refused.get(destinationId) ?? 0n),
    }),
  };
}
