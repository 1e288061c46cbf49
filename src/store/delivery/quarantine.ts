/**
 * The quarantine: lines that a destination rejected, and records of the API that could not be parsed.
 *
 * Promise: an item leaves the quarantine in the same transaction in which it is accepted, added to the missing points,
 * parsed, or dropped by a person. The digest of a dropped record is kept, so the record is not quarantined again each
 * time its range is read again.
 */
import type Database from 'better-sqlite3';
import { hashHex } from '../../core/hash.ts';
import type { DroppedRecords, QuarantinedItem, QuarantineStore } from '../../core/state/quarantine.ts';
import type { EpochMs } from '../../core/time.ts';
import type { MissingTable } from './missing-points.ts';

/** How many items are read at a time: a few megabytes at most. */
const PAGE = 500;

interface Row {
  readonly id: bigint;
  readonly destination_id: bigint | null;
  readonly source: string;
  readonly content: string;
  readonly reason: string;
  readonly at_ms: bigint;
}

interface DestinationRow {
  readonly id: bigint;
  readonly name: string;
  readonly identity: string;
  readonly is_current: bigint;
}

interface DroppedRow {
  readonly source: string;
  readonly reason: string;
  readonly records: bigint;
}

/** The reading part, which also works over a read-only connection. */
export type QuarantineReader = Pick<QuarantineStore, 'page' | 'destinations' | 'dropped'>;

/** Prepares reading the quarantine of an open database, whose numbers are bigints. */
export function createQuarantineReader(db: Database.Database): QuarantineReader {
  const page = db.prepare<[number], Row>(
    `SELECT id, destination_id, source, content, reason, at_ms FROM quarantine WHERE id > ? ORDER BY id LIMIT ${PAGE}`,
  );
  const destinations = db.prepare<[], DestinationRow>(
    'SELECT id, name, identity, is_current FROM destination ORDER BY name, is_current DESC, id DESC',
  );
  const dropped = db.prepare<[], DroppedRow>(
    `SELECT source, reason, count(*) AS records FROM dropped_record
     GROUP BY source, reason ORDER BY source, reason`,
  );
  return {
    page: (afterId) => page.all(afterId).map(toItem),
    destinations: () =>
      destinations.all().map(({ id, name, identity, is_current }) => ({
        id: Number(id),
        name,
        identity,
        isCurrent: is_current === 1n,
      })),
    dropped: () => dropped.all().map(toDropped),
  };
}

/** The items of the quarantine: all statements that change them. Writing calls need a transaction. */
export interface QuarantineTable {
  /** Whether a line of a destination is in quarantine. */
  holds(destinationId: number, line: string): boolean;
  /** How many lines of a destination are in quarantine. */
  countOf(destinationId: number): number;
  /** Adds a line that a destination rejected. Returns whether the line is new. */
  addLine(destinationId: number, line: string, why: Why): boolean;
  /** Adds a record of the API. Returns whether the record is new. */
  addRecord(source: string, record: string, why: Why): boolean;
  /** Stores why an item was last rejected. */
  reword(id: number, why: Why): void;
  remove(id: number): void;
  /** Removes a line of a destination. Returns whether the line was there. */
  removeLine(destinationId: number, line: string): boolean;
  /** Removes all lines of a destination. */
  dropAll(destinationId: number): void;
}

/** Why and when something was rejected. */
interface Why {
  readonly reason: string;
  readonly atMs: EpochMs;
}

/** The source of lines that a destination rejected. The source of a record is its device or its list. */
const OF_DESTINATION = 'destination';

/** Prepares the items of an open database. */
export function createQuarantineTable(db: Database.Database): QuarantineTable {
  const ofLine = "ifnull(destination_id, 0) = ? AND source = 'destination' AND content = ?";
  const stored = db.prepare<[number, string], bigint>(`SELECT 1 FROM quarantine WHERE ${ofLine}`).pluck();
  const count = db.prepare<[number], bigint>('SELECT count(*) FROM quarantine WHERE destination_id = ?').pluck();
  const insert = db.prepare(
    'INSERT OR IGNORE INTO quarantine (destination_id, source, content, reason, at_ms) VALUES (?, ?, ?, ?, ?)',
  );
  const reword = db.prepare('UPDATE quarantine SET reason = ?, at_ms = ? WHERE id = ?');
  const remove = db.prepare('DELETE FROM quarantine WHERE id = ?');
  const removeLine = db.prepare(`DELETE FROM quarantine WHERE ${ofLine}`);
  const dropAll = db.prepare('DELETE FROM quarantine WHERE destination_id = ?');
  const add = (destinationId: number | null, source: string, content: string, { reason, atMs }: Why): boolean =>
    insert.run(destinationId, source, content, reason, Math.floor(atMs)).changes > 0;
  return {
    holds: (destinationId, line) => stored.get(destinationId, line) !== undefined,
    countOf: (destinationId) => Number(count.get(destinationId) ?? 0n),
    addLine: (destinationId, line, why) => add(destinationId, OF_DESTINATION, line, why),
    addRecord: (source, record, why) => add(null, source, record, why),
    reword: (id, { reason, atMs }) => void reword.run(reason, Math.floor(atMs), id),
    remove: (id) => void remove.run(id),
    removeLine: (destinationId, line) => removeLine.run(destinationId, line).changes > 0,
    dropAll: (destinationId) => void dropAll.run(destinationId),
  };
}

interface QuarantineParts {
  readonly items: QuarantineTable;
  readonly missing: MissingTable;
}

/** Prepares the quarantine of an open database. Writing calls need a transaction. */
export function createQuarantine(db: Database.Database, { items, missing }: QuarantineParts): QuarantineStore {
  const one = db.prepare<[number], Row>('SELECT * FROM quarantine WHERE id = ?');
  const remember = db.prepare(
    'INSERT OR IGNORE INTO dropped_record (source, digest, reason, at_ms, dropped_ms) VALUES (?, ?, ?, ?, ?)',
  );
  const wasDropped = db
    .prepare<[string, string], bigint>('SELECT 1 FROM dropped_record WHERE source = ? AND digest = ?')
    .pluck();
  const takeOut = (ids: readonly number[]): void => {
    for (const id of ids) items.remove(id);
  };
  return {
    ...createQuarantineReader(db),
    holds: items.holds,
    takeOut,
    resolve: ({ destinationId, accepted, rejected, beyond, missing: left, atMs }) => {
      takeOut(accepted);
      takeOut(beyond);
      for (const { id, message } of rejected) items.reword(id, { reason: message, atMs });
      missing.add(destinationId, left);
    },
    drop: ({ ids, missing: left, atMs }) => {
      for (const id of ids) {
        const row = one.get(id);
        if (row === undefined) continue;
        const { destination_id, source, content, reason, at_ms } = row;
        if (destination_id === null) remember.run(source, digestOf(content), reason, at_ms, Math.floor(atMs));
        items.remove(id);
      }
      for (const { destinationId, points } of left) missing.add(destinationId, [points]);
    },
    add: (source, records, atMs) =>
      records.filter(({ record, reason }) => {
        if (wasDropped.get(source, digestOf(record)) !== undefined) return false;
        return items.addRecord(source, record, { reason, atMs });
      }),
  };
}

function digestOf(content: string): string {
  return `${hashHex(content)}${content.length}`;
}

function toItem(row: Row): QuarantinedItem {
  return {
    id: Number(row.id),
    destinationId: row.destination_id === null ? null : Number(row.destination_id),
    source: row.source,
    content: row.content,
    reason: row.reason,
    atMs: Number(row.at_ms),
  };
}

function toDropped({ source, reason, records }: DroppedRow): DroppedRecords {
  return { source, reason, records: Number(records) };
}
