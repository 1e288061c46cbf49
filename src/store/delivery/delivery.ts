/**
 * The log for its destinations: their position in each lane, and the lines they rejected.
 *
 * Promise: a position moves only together with the quarantine and the missing points of the lines below it, and never
 * past a line that is neither accepted nor in one of them. A destination is its identity (kind, URL, organisation,
 * bucket): change one of these and it is a new destination, which starts at the beginning of the log.
 */
import type Database from 'better-sqlite3';
import type { FindMoved } from '../../core/lines/dialect.ts';
import { type DestinationState, LOG_LANES, type LogStore } from '../../core/state/log.ts';
import type { Archive } from '../archive/archive.ts';
import type { Cleared } from '../archive/clearing.ts';
import type { MissingTable } from './missing-points.ts';
import type { PositionTable } from './positions.ts';
import type { QuarantineTable } from './quarantine.ts';

interface LogParts {
  readonly archive: Archive;
  readonly positions: PositionTable;
  readonly quarantine: QuarantineTable;
  readonly missing: MissingTable;
  readonly cleared: Cleared;
  /** Whether a device is being removed, or was removed. */
  readonly isForgotten: (deviceId: string) => boolean;
}

/** Prepares the log of an open database. Writing calls need a transaction. */
export function createLog(db: Database.Database, parts: LogParts): LogStore {
  const { archive, positions, quarantine, missing, cleared, isForgotten } = parts;
  const register = createRegister(db, parts);
  return {
    append: archive.appendFacts,
    ...register,
    useDestination: (name, identity) => {
      const destination = register.useDestination(name, identity);
      // Clearing records missing points for the destinations that existed then (`archive/clearing.ts`); new ones get
      // them here.
      if (destination.created) missing.add(destination.id, cleared.asMissing());
      return destination;
    },
    movedTo: createMovedSearch(db),
    position: positions.read,
    endOf: archive.endOf,
    read: archive.read,
    newestLines: archive.newestLines,
    acknowledge: ({ destinationId, lane, from, to, rejected, missing: beyond, atMs }) => {
      positions.advance(destinationId, lane, { from, to });
      for (const { line, message } of rejected) quarantine.addLine(destinationId, line, { reason: message, atMs });
      missing.add(destinationId, beyond);
    },
    backlog: (id) => ({
      pendingLines: LOG_LANES.reduce((sum, lane) => sum + archive.linesAfter(lane, positions.read(id, lane)), 0),
      quarantined: quarantine.countOf(id),
    }),
    missing: missing.list,
    amendMissing: (destinationId, { found, missed, estimate }) => {
      const still = missed.filter(({ deviceId }) => !isForgotten(deviceId));
      // New missing points replace earlier records of the same points, so that none is counted twice.
      for (const points of [...found, ...still]) missing.take(destinationId, points);
      missing.add(destinationId, still);
      if (estimate !== undefined) missing.keepEstimate(destinationId, estimate);
    },
    missingSums: missing.sums,
    totals: archive.totals,
  };
}

interface DestinationRow {
  readonly id: bigint;
  readonly identity: string;
  readonly is_current: bigint;
}

function createRegister(
  db: Database.Database,
  { positions, quarantine, missing }: LogParts,
): Pick<LogStore, 'useDestination' | 'knownIdentity' | 'identify'> {
  const named = db.prepare<[string], DestinationRow>(
    'SELECT id, identity, is_current FROM destination WHERE name = ? ORDER BY is_current DESC, id DESC',
  );
  const nameOf = db.prepare<[number], string>('SELECT name FROM destination WHERE id = ?').pluck();
  const create = db.prepare('INSERT INTO destination (name, identity) VALUES (?, ?)');
  const rename = db.prepare('UPDATE destination SET identity = ? WHERE id = ?');
  const makeCurrent = db.prepare('UPDATE destination SET is_current = (id = ?) WHERE name = ?');
  const remove = db.prepare('DELETE FROM destination WHERE id = ?');
  const useDestination = (name: string, identity: string): DestinationState => {
    const rows = named.all(name);
    const row = rows.find((known) => known.identity === identity);
    const before = rows.find(({ is_current }) => is_current === 1n);
    const id = Number(row?.id ?? create.run(name, identity).lastInsertRowid);
    makeCurrent.run(id, name);
    const previous = before === undefined || before.identity === identity ? null : before.identity;
    return { id, name, created: row === undefined, previous };
  };
  return {
    useDestination,
    knownIdentity: (name, identities) =>
      named.all(name).find(({ identity }) => identities.includes(identity))?.identity ?? null,
    identify: (destinationId, identity) => {
      const name = nameOf.get(destinationId) ?? '';
      const known = named.all(name).find((row) => row.identity === identity);
      if (known === undefined) {
        rename.run(identity, destinationId);
        return { id: destinationId, name, created: true, previous: null };
      }
      for (const table of [positions, missing, quarantine]) table.dropAll(destinationId);
      remove.run(destinationId);
      return useDestination(name, identity);
    },
  };
}

interface MovedRow {
  readonly device_id: string;
  readonly sensor: string;
  readonly recorded_ns: bigint;
  readonly written_ns: bigint;
}

/** Finds the telemetry values that were written at some instants instead of their own time, in an open database. */
export function createMovedSearch(db: Database.Database): FindMoved {
  const find = db.prepare<[string], MovedRow>(
    `SELECT device_id, sensor, recorded_ns, written_ns FROM time_offset
     WHERE written_ns IN (SELECT CAST(value AS INTEGER) FROM json_each(?))`,
  );
  return (writtenAt) =>
    // As text, because JSON numbers cannot hold nanoseconds.
    find.all(JSON.stringify(writtenAt.map(String))).map((row) => ({
      deviceId: row.device_id,
      sensor: row.sensor,
      recordedNs: row.recorded_ns,
      writtenNs: row.written_ns,
    }));
}
