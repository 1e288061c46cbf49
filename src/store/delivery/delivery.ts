/**
 * Destinations: how far each has come in each lane of the log, and what it refused.
 *
 * Promise: a position moves only together with the quarantine and the lacks of what was refused below it, and never past
 * a line that is neither accepted nor in one of them. A destination is its identity (kind, URL, organisation, bucket):
 * change one of these and it is a new destination, which starts at the beginning of the log.
 */

import type Database from 'better-sqlite3';
import type { DisplacedValue } from '../../core/lines/dialect.ts';
import type { Backlog, DeliveryOutcome, DestinationState, LogLane, LogPosition } from '../../core/state/log.ts';
import { LOG_LANES } from '../../core/state/log.ts';
import { StaleStateError } from '../../core/state/telemetry.ts';
import type { EpochNs } from '../../core/time.ts';
import type { Archive } from '../archive/archive.ts';
import type { Lacks } from './missing-points.ts';

/** Only inside a transaction: what changes anything. */
export interface Delivery {
  destination(name: string, identity: string): DestinationState;
  knownIdentity(name: string, identities: readonly string[]): string | null;
  identify(destinationId: number, identity: string): DestinationState;
  position(destinationId: number, lane: LogLane): LogPosition;
  /** @throws StaleStateError where the position is not the one the outcome begins at. */
  settle(outcome: DeliveryOutcome): void;
  backlog(destinationId: number): Backlog;
  displacedTo(writtenAt: readonly EpochNs[]): DisplacedValue[];
}

export interface DeliveryParts {
  readonly archive: Archive;
  readonly lacks: Lacks;
}

const START: LogPosition = { block: 0, line: 0 };

/** Prepares delivery of an open database. */
export function createDelivery(db: Database.Database, { archive, lacks }: DeliveryParts): Delivery {
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
    ...createRegister(db),
    displacedTo: createDisplacedSearch(db),
    position,
    settle: ({ destinationId, lane, from, to, refused: lines, missing: left, atMs }) => {
      const stored = position(destinationId, lane);
      if (stored.block !== from.block || stored.line !== from.line) {
        throw new StaleStateError(`${lane}: settled from block ${from.block}, the position is ${stored.block}`);
      }
      for (const { line, words } of lines) quarantine.run(destinationId, line, words, Math.floor(atMs));
      lacks.add(destinationId, left);
      write.run(destinationId, lane, to.block, to.line);
    },
    backlog: (destinationId) => ({
      pendingLines: LOG_LANES.reduce((sum, lane) => sum + archive.linesAfter(lane, position(destinationId, lane)), 0),
      quarantined: Number(refused.get(destinationId) ?? 0n),
    }),
  };
}

interface DestinationRow {
  readonly id: bigint;
  readonly identity: string;
  readonly is_current: bigint;
}

function createRegister(db: Database.Database): Pick<Delivery, 'destination' | 'knownIdentity' | 'identify'> {
  const named = db.prepare<[string], DestinationRow>(
    'SELECT id, identity, is_current FROM destination WHERE name = ? ORDER BY is_current DESC, id DESC',
  );
  const nameOf = db.prepare<[number], string>('SELECT name FROM destination WHERE id = ?').pluck();
  const create = db.prepare('INSERT INTO destination (name, identity) VALUES (?, ?)');
  const rename = db.prepare('UPDATE destination SET identity = ? WHERE id = ?');
  const makeCurrent = db.prepare('UPDATE destination SET is_current = (id = ?) WHERE name = ?');
  const forget = ['position', 'lack', 'quarantine'].map((table) =>
    db.prepare(`DELETE FROM ${table} WHERE destination_id = ?`),
  );
  const remove = db.prepare('DELETE FROM destination WHERE id = ?');
  const destination = (name: string, identity: string): DestinationState => {
    const rows = named.all(name);
    const row = rows.find((known) => known.identity === identity);
    const before = rows.find(({ is_current }) => is_current === 1n);
    const id = Number(row?.id ?? create.run(name, identity).lastInsertRowid);
    makeCurrent.run(id, name);
    const previous = before === undefined || before.identity === identity ? null : before.identity;
    return { id, name, created: row === undefined, previous };
  };
  return {
    destination,
    knownIdentity: (name, identities) =>
      named.all(name).find(({ identity }) => identities.includes(identity))?.identity ?? null,
    identify: (destinationId, identity) => {
      const name = nameOf.get(destinationId) ?? '';
      const known = named.all(name).find((row) => row.identity === identity);
      if (known === undefined) {
        rename.run(identity, destinationId);
        return { id: destinationId, name, created: true, previous: null };
      }
      for (const statement of [...forget, remove]) statement.run(destinationId);
      return destination(name, identity);
    },
  };
}

interface DisplacedRow {
  readonly device_id: string;
  readonly sensor: string;
  readonly recorded_ns: bigint;
  readonly written_ns: bigint;
}

/** Finds the telemetry values that are displaced to some instants, in an open database. */
export function createDisplacedSearch(db: Database.Database): Delivery['displacedTo'] {
  const find = db.prepare<[string], DisplacedRow>(
    `SELECT device_id, sensor, recorded_ns, written_ns FROM tie
     WHERE written_ns IN (SELECT CAST(value AS INTEGER) FROM json_each(?))`,
  );
  return (writtenAt) =>
    // As text: JSON's own numbers do not hold nanoseconds.
    find.all(JSON.stringify(writtenAt.map(String))).map((row) => ({
      deviceId: row.device_id,
      sensor: row.sensor,
      recordedNs: row.recorded_ns,
      writtenNs: row.written_ns,
    }));
}
