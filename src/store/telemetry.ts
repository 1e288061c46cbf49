/**
 * What is known of the telemetry of each device: coverage, names, hours, sums of days, named gaps.
 *
 * Promise: `land` is one transaction, and it is refused (`StaleStateError`) if the state of the device has moved since
 * the landing was computed. So rows and coverage agree at every moment, whatever is killed when.
 */
import type Database from 'better-sqlite3';
import type { CoveredSpan, Edge } from '../core/coverage.ts';
import { pinName } from '../core/names.ts';
import {
  type Gap,
  type GapReason,
  type Landing,
  type NameHold,
  StaleStateError,
  type TelemetryState,
} from '../core/telemetry-state.ts';
import type { EpochMs, EpochNs } from '../core/time.ts';
import type { Archive } from './archive.ts';
import { createLateness, createRereads } from './lateness.ts';

interface CoverageRow {
  readonly from_ns: bigint;
  readonly to_ns: bigint;
  readonly first_ns: bigint | null;
  readonly first_digest: string | null;
  readonly last_ns: bigint | null;
  readonly last_digest: string | null;
}

export interface TelemetryTables {
  state(deviceId: string): TelemetryState;
  /** Writes what a landing changes. Only inside a transaction. */
  land(landing: Landing): void;
  /** Pins the name that a device was seen under. Only inside a transaction. */
  pin(deviceId: string, name: string, atNs: EpochNs): void;
  gaps(deviceId?: string): Gap[];
  nameGap(gap: Gap): void;
  clearGaps(deviceId: string): void;
  rereadDays(): ReadonlyMap<string, number>;
  keepReread(deviceId: string, day: number): void;
}

/** Prepares the tables of an open database. */
export function createTelemetryTables(db: Database.Database, archive: Archive): TelemetryTables {
  const revisions = createRevisions(db);
  const coverage = createCoverage(db);
  const names = createNames(db);
  const hours = createHours(db);
  const sums = createDaySums(db);
  const lateness = createLateness(db);
  const requestYield = db.prepare('UPDATE request SET new_readings = ifnull(new_readings, 0) + ? WHERE id = ?');
  const readWhole = (deviceId: string, revision: number): TelemetryState => ({
    deviceId,
    revision,
    spans: coverage.read(deviceId),
    names: names.read(deviceId),
    ...hours.read(deviceId),
    late: lateness.read(deviceId),
  });
  const remember = createMemory(db, readWhole);
  return {
    state: (deviceId) => remember(deviceId, revisions.read(deviceId)),
    land: (landing) => {
      const { deviceId } = landing;
      revisions.advance(deviceId, landing.revision);
      archive.append({ ...landing, lines: [...landing.lines, ...landing.sideLines] });
      archive.addTies(deviceId, landing.ties);
      coverage.replace(deviceId, landing.spans);
      hours.replace(deviceId, landing);
      sums.add(deviceId, landing.daySums);
      if (landing.late !== undefined) lateness.keep(deviceId, landing.late.record);
      requestYield.run(landing.newReadings, landing.requestId);
    },
    pin: (deviceId, name, atNs) => {
      const held = names.read(deviceId);
      const pinned = pinName(held, { name, atNs, newestArchivedNs: archive.newestNs(deviceId) });
      if (pinned === held) return;
      const added = pinned.at(-1);
      if (added === undefined) return;
      names.add(deviceId, added);
      // Lines that were computed under the old name must not land any more.
      revisions.advance(deviceId, revisions.read(deviceId));
    },
    ...createGaps(db),
    ...createRereads(db),
  };
}

/** Devices of which the state is remembered at most: what asks for all of them again and again asks for that many. */
const REMEMBERED = 4096;

/**
 * Remembers states by their revision, which moves with every change of them. Not inside a transaction: what that writes
 * may be taken back, and another change may come to the same revision.
 */
function createMemory(
  db: Database.Database,
  read: (deviceId: string, revision: number) => TelemetryState,
): (deviceId: string, revision: number) => TelemetryState {
  const known = new Map<string, TelemetryState>();
  return (deviceId, revision) => {
    if (db.inTransaction) return read(deviceId, revision);
    const before = known.get(deviceId);
    if (before?.revision === revision) return before;
    const state = read(deviceId, revision);
    if (before === undefined && known.size >= REMEMBERED) known.clear();
    known.set(deviceId, state);
    return state;
  };
}

function createRevisions(db: Database.Database) {
  const read = db.prepare<[string], bigint>('SELECT revision FROM device_revision WHERE device_id = ?').pluck();
  const write = db.prepare('INSERT OR REPLACE INTO device_revision (device_id, revision) VALUES (?, ?)');
  const current = (deviceId: string): number => Number(read.get(deviceId) ?? 0n);
  return {
    read: current,
    advance: (deviceId: string, from: number): void => {
      const stored = current(deviceId);
      if (stored !== from) throw new StaleStateError(`${deviceId}: computed from revision ${from}, now ${stored}`);
      write.run(deviceId, from + 1);
    },
  };
}

function createCoverage(db: Database.Database) {
  const read = db.prepare<[string], CoverageRow>(
    'SELECT from_ns, to_ns, first_ns, first_digest, last_ns, last_digest FROM coverage WHERE device_id = ? ORDER BY from_ns',
  );
  const remove = db.prepare('DELETE FROM coverage WHERE device_id = ?');
  const insert = db.prepare(
    `INSERT INTO coverage (device_id, from_ns, to_ns, first_ns, first_digest, last_ns, last_digest)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
  );
  return {
    read: (deviceId: string): CoveredSpan[] =>
      read.all(deviceId).map((row) => ({
        from: row.from_ns,
        to: row.to_ns,
        first: edge(row.first_ns, row.first_digest),
        last: edge(row.last_ns, row.last_digest),
      })),
    replace: (deviceId: string, spans: readonly CoveredSpan[]): void => {
      remove.run(deviceId);
      for (const { from, to, first, last } of spans) {
        insert.run(
          deviceId,
          from,
          to,
          first?.at ?? null,
          first?.digest ?? null,
          last?.at ?? null,
          last?.digest ?? null,
        );
      }
    },
  };
}

function edge(at: EpochNs | null, digest: string | null): Edge | null {
  return at === null || digest === null ? null : { at, digest };
}

function createNames(db: Database.Database) {
  const read = db.prepare<[string], { from_ns: bigint; name: string }>(
    'SELECT from_ns, name FROM device_name WHERE device_id = ? ORDER BY from_ns',
  );
  const insert = db.prepare('INSERT INTO device_name (device_id, from_ns, name) VALUES (?, ?, ?)');
  return {
    read: (deviceId: string): NameHold[] => read.all(deviceId).map((row) => ({ fromNs: row.from_ns, name: row.name })),
    add: (deviceId: string, hold: NameHold): void => {
      insert.run(deviceId, hold.fromNs, hold.name);
    },
  };
}

function createHours(db: Database.Database) {
  const readings = db.prepare<[string], { hour: bigint; readings: bigint }>(
    'SELECT hour, readings FROM hour_readings WHERE device_id = ?',
  );
  const written = db.prepare<[string], { from_hour: bigint; to_hour: bigint }>(
    'SELECT from_hour, to_hour FROM hours_written WHERE device_id = ? ORDER BY from_hour',
  );
  const removeReadings = db.prepare('DELETE FROM hour_readings WHERE device_id = ?');
  const removeWritten = db.prepare('DELETE FROM hours_written WHERE device_id = ?');
  const addReadings = db.prepare('INSERT INTO hour_readings (device_id, hour, readings) VALUES (?, ?, ?)');
  const addWritten = db.prepare('INSERT INTO hours_written (device_id, from_hour, to_hour) VALUES (?, ?, ?)');
  return {
    read: (deviceId: string): Pick<TelemetryState, 'hourReadings' | 'hoursWritten'> => ({
      hourReadings: new Map(readings.all(deviceId).map((row) => [Number(row.hour), Number(row.readings)])),
      hoursWritten: written.all(deviceId).map((row) => ({ from: row.from_hour, to: row.to_hour })),
    }),
    replace: (deviceId: string, hours: Pick<TelemetryState, 'hourReadings' | 'hoursWritten'>): void => {
      removeReadings.run(deviceId);
      removeWritten.run(deviceId);
      for (const [hour, count] of hours.hourReadings) addReadings.run(deviceId, hour, count);
      for (const { from, to } of hours.hoursWritten) addWritten.run(deviceId, from, to);
    },
  };
}

function createDaySums(db: Database.Database) {
  const add = db.prepare(
    `INSERT INTO day_sum (device_id, day, readings, points, hash_high, hash_low) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET readings = readings + excluded.readings, points = points + excluded.points,
       hash_high = (hash_high + excluded.hash_high) % 4294967296,
       hash_low = (hash_low + excluded.hash_low) % 4294967296`,
  );
  return {
    add: (deviceId: string, sums: Landing['daySums']): void => {
      for (const sum of sums) add.run(deviceId, sum.day, sum.readings, sum.points, sum.hashHigh, sum.hashLow);
    },
  };
}

interface GapRow {
  readonly device_id: string;
  readonly from_ns: EpochNs;
  readonly to_ns: EpochNs;
  readonly reason: GapReason;
  readonly retry_at_ms: bigint;
}

function createGaps(db: Database.Database): Pick<TelemetryTables, 'gaps' | 'nameGap' | 'clearGaps'> {
  const columns = 'SELECT device_id, from_ns, to_ns, reason, retry_at_ms FROM gap';
  const all = db.prepare<[], GapRow>(`${columns} ORDER BY device_id, from_ns`);
  const ofDevice = db.prepare<[string], GapRow>(`${columns} WHERE device_id = ? ORDER BY from_ns`);
  const name = db.prepare(
    'INSERT OR REPLACE INTO gap (device_id, from_ns, to_ns, reason, retry_at_ms) VALUES (?, ?, ?, ?, ?)',
  );
  const clear = db.prepare('DELETE FROM gap WHERE device_id = ?');
  const toMs = (ms: bigint): EpochMs => Number(ms);
  return {
    gaps: (deviceId) =>
      (deviceId === undefined ? all.all() : ofDevice.all(deviceId)).map((row) => ({
        deviceId: row.device_id,
        fromNs: row.from_ns,
        toNs: row.to_ns,
        reason: row.reason,
        retryAtMs: toMs(row.retry_at_ms),
      })),
    nameGap: (gap) => {
      name.run(gap.deviceId, gap.fromNs, gap.toNs, gap.reason, Math.ceil(gap.retryAtMs));
    },
    clearGaps: (deviceId) => {
      clear.run(deviceId);
    },
  };
}
