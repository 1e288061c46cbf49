/**
 * The stored telemetry of each device: coverage, names, hours, sums of days, and how late readings came.
 *
 * `writePage` refuses a commit (`StaleStateError`) if the state of the device has changed since the commit was
 * computed from it. It runs inside one transaction, so rows and coverage agree at every moment, even after a crash.
 */
import type Database from 'better-sqlite3';
import type { CoveredRange, Edge } from '../../core/coverage.ts';
import { pinName } from '../../core/device-names.ts';
import {
  CONFIRMED_FOR_GOOD,
  type CoverageNow,
  type Gap,
  type LateRecord,
  type NameRecord,
  NEVER_LATE,
  NOTHING_COVERED,
  type PageCommit,
  StaleStateError,
  type TelemetryState,
  type TelemetryStore,
} from '../../core/state/telemetry.ts';
import type { EpochNs } from '../../core/time.ts';
import type { Archive } from '../archive/archive.ts';
import { createCache, type Remembered } from '../transactions.ts';

/**
 * The maximum number of devices whose state is cached. Callers that read all devices repeatedly read up to this many.
 */
const REMEMBERED = 4096;

/** The prepared tables of an open database, and the rows that are cached by the revision of a device. */
export interface TelemetryTables {
  readonly db: Database.Database;
  readonly archive: Archive;
  readonly revisions: Revisions;
  readonly coverage: ReturnType<typeof createCoverage>;
  readonly names: ReturnType<typeof createNames>;
  readonly hours: ReturnType<typeof createHours>;
  readonly sums: ReturnType<typeof createDaySums>;
  readonly lateness: ReturnType<typeof createLateness>;
  readonly requestYield: Database.Statement<[number, number]>;
  readonly states: Map<string, TelemetryState>;
  readonly newest: Map<string, { readonly revision: number; readonly at: EpochNs | null }>;
}

/** Prepares the tables of an open database. */
export function prepareTelemetry(db: Database.Database, archive: Archive): TelemetryTables {
  return {
    db,
    archive,
    revisions: createRevisions(db),
    coverage: createCoverage(db),
    names: createNames(db),
    hours: createHours(db),
    sums: createDaySums(db),
    lateness: createLateness(db),
    requestYield: db.prepare('UPDATE request SET new_readings = ifnull(new_readings, 0) + ? WHERE id = ?'),
    states: new Map(),
    newest: new Map(),
  };
}

/** The state of a device, as a page commit is computed from. */
export function telemetryState(tables: TelemetryTables, deviceId: string): TelemetryState {
  const revision = tables.revisions.read(deviceId);
  const known = stateAt(tables, deviceId, revision);
  if (known !== null) return known;
  const state = readState(tables, deviceId, revision);
  // A transaction may be rolled back, and another change may lead to the same revision.
  if (!tables.db.inTransaction) cacheState(tables, state);
  return state;
}

/** The time of the newest telemetry line of a device, including cleared ones; `null` if there is none. */
export function newestNs({ db, archive, revisions, newest }: TelemetryTables, deviceId: string): EpochNs | null {
  // Only a page commit adds lines.
  const revision = revisions.read(deviceId);
  const known = newest.get(deviceId);
  if (known?.revision === revision) return known.at;
  const at = archive.newestNs(deviceId);
  if (!db.inTransaction) newest.set(deviceId, { revision, at });
  return at;
}

/**
 * Writes the changes of a page commit. Call it only inside a transaction.
 *
 * @throws StaleStateError
 */
export function writePage(tables: TelemetryTables, page: PageCommit): void {
  const { deviceId, revision } = page;
  tables.revisions.advance(deviceId, revision);
  const before = stateAt(tables, deviceId, revision) ?? readState(tables, deviceId, revision);
  appendLines(tables.archive, page);
  tables.archive.addOffsets(deviceId, page.offsets);
  tables.coverage.replace(deviceId, before.covered, page.covered);
  tables.hours.replace(deviceId, before, page);
  tables.sums.add(deviceId, page.daySums);
  tables.sums.addTexts(deviceId, page.dayTexts ?? []);
  if (page.late !== undefined) tables.lateness.keep(deviceId, page.late.record);
  tables.requestYield.run(page.newReadings, page.requestId);
}

/**
 * Archives the lines of a page. The counts of hours always go to the history lane, which is delivered after all live
 * lines. So the newest count of an hour comes last, and never before the readings that it counts.
 */
function appendLines(archive: Archive, { deviceId, lane, firstNs, lastNs, lines, sideLines }: PageCommit): void {
  const side = { deviceId, lane: 'history', firstNs: null, lastNs: null, lines: sideLines } as const;
  if (lane === 'history') {
    archive.append({ ...side, firstNs, lastNs, lines: [...lines, ...sideLines], sideLines });
    return;
  }
  archive.append({ deviceId, lane, firstNs, lastNs, lines, sideLines: [] });
  archive.append(side);
}

/** Caches the state after a page commit that is on disk, so that it need not be read again. */
export function rememberCommit(tables: TelemetryTables, page: PageCommit): void {
  const { deviceId, revision, covered, hourReadings, hoursWritten, late, lastPage } = page;
  const before = stateAt(tables, deviceId, revision);
  if (before === null) return;
  cacheState(tables, {
    ...before,
    revision: revision + 1,
    covered,
    hourReadings,
    hoursWritten,
    late: late === undefined ? before.late : tables.lateness.read(deviceId),
    lastPage,
  });
}

/** Stores the name that a device was seen under. Call it only inside a transaction. */
export function pinDeviceName(tables: TelemetryTables, deviceId: string, name: string, atNs: EpochNs): void {
  const { names, archive, revisions } = tables;
  const before = names.read(deviceId);
  const pinned = pinName(before, { name, atNs, newestArchivedNs: () => archive.newestNs(deviceId) });
  if (pinned === before) return;
  const added = pinned.at(-1);
  if (added === undefined) return;
  names.add(deviceId, added);
  // Lines that were computed under the old name must no longer be committed.
  revisions.advance(deviceId, revisions.read(deviceId));
}

/**
 * Removes the coverage of a device, and drops everything that is cached about it. Call it only inside a transaction.
 */
export function dropTelemetry({ coverage, states, newest, revisions }: TelemetryTables, deviceId: string): void {
  coverage.dropAll(deviceId);
  states.delete(deviceId);
  newest.delete(deviceId);
  revisions.drop(deviceId);
}

function readState(tables: TelemetryTables, deviceId: string, revision: number): TelemetryState {
  return {
    deviceId,
    revision,
    covered: tables.coverage.read(deviceId),
    names: tables.names.read(deviceId),
    ...tables.hours.read(deviceId),
    late: tables.lateness.read(deviceId),
    lastPage: [],
  };
}

/** The cached state of a device, if it has that revision. Every change of the state changes the revision. */
function stateAt({ states }: TelemetryTables, deviceId: string, revision: number): TelemetryState | null {
  const state = states.get(deviceId);
  return state?.revision === revision ? state : null;
}

function cacheState({ states }: TelemetryTables, state: TelemetryState): void {
  if (!states.has(state.deviceId) && states.size >= REMEMBERED) states.clear();
  states.set(state.deviceId, state);
}

interface Revisions {
  read(deviceId: string): number;
  drop(deviceId: string): void;
  /**
   * Increases the revision of a device.
   *
   * @throws StaleStateError if it is not the expected one.
   */
  advance(deviceId: string, from: number): void;
}

function createRevisions(db: Database.Database): Revisions {
  const read = db.prepare<[string], bigint>('SELECT revision FROM device_revision WHERE device_id = ?').pluck();
  const write = db.prepare('INSERT OR REPLACE INTO device_revision (device_id, revision) VALUES (?, ?)');
  const stored = (deviceId: string): number => Number(read.get(deviceId) ?? 0n);
  const known: Remembered<number> = createCache(db, stored);
  return {
    read: known.get,
    drop: known.drop,
    advance: (deviceId, from) => {
      const now = stored(deviceId);
      known.drop(deviceId);
      if (now !== from)
        throw new StaleStateError(
          `${deviceId}: its state has changed during the commit (revision ${from}, now ${now})`,
        );
      write.run(deviceId, from + 1);
    },
  };
}

function createNames(db: Database.Database) {
  const read = db.prepare<[string], { from_ns: bigint; name: string }>(
    'SELECT from_ns, name FROM device_name WHERE device_id = +? ORDER BY from_ns',
  );
  const insert = db.prepare('INSERT INTO device_name (device_id, from_ns, name) VALUES (?, ?, ?)');
  return {
    read: (deviceId: string): NameRecord[] =>
      read.all(deviceId).map((row) => ({ fromNs: row.from_ns, name: row.name })),
    add: (deviceId: string, record: NameRecord): void => {
      insert.run(deviceId, record.fromNs, record.name);
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
  const addText = db.prepare(
    `INSERT INTO day_text (device_id, day, points) VALUES (?, ?, ?)
     ON CONFLICT DO UPDATE SET points = points + excluded.points`,
  );
  return {
    add: (deviceId: string, sums: PageCommit['daySums']): void => {
      for (const sum of sums) add.run(deviceId, sum.day, sum.readings, sum.points, sum.hashHigh, sum.hashLow);
    },
    addTexts: (deviceId: string, texts: Iterable<readonly [number, number]>): void => {
      for (const [day, points] of texts) addText.run(deviceId, day, points);
    },
  };
}

/** A covered range in its stored form. */
interface CoverageRow {
  readonly from_ns: bigint;
  readonly to_ns: bigint;
  readonly first_ns: bigint | null;
  readonly first_digest: string | null;
  readonly last_ns: bigint | null;
  readonly last_digest: string | null;
}

function createCoverage(db: Database.Database) {
  const read = db.prepare<[string], CoverageRow>(
    'SELECT from_ns, to_ns, first_ns, first_digest, last_ns, last_digest FROM coverage WHERE device_id = +? ORDER BY from_ns',
  );
  const remove = db.prepare('DELETE FROM coverage WHERE device_id = ? AND from_ns = ?');
  const dropAll = db.prepare('DELETE FROM coverage WHERE device_id = ?');
  const insert = db.prepare(
    `INSERT INTO coverage (device_id, from_ns, to_ns, first_ns, first_digest, last_ns, last_digest)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
  );
  return {
    /** The covered ranges of a device, ascending. */
    read: (deviceId: string): CoveredRange[] => read.all(deviceId).map(toCoveredRange),
    dropAll: (deviceId: string): void => void dropAll.run(deviceId),
    /**
     * Stores the covered ranges.
     *
     * @param before the stored rows; only differences are written.
     */
    replace: (deviceId: string, before: readonly CoveredRange[], covered: readonly CoveredRange[]): void => {
      const stands = new Map(before.map((range) => [range.from, range]));
      const wanted = new Map(covered.map((range) => [range.from, range]));
      const gone = before.filter((range) => !isSame(range, wanted.get(range.from)));
      const fresh = covered.filter((range) => !isSame(range, stands.get(range.from)));
      for (const { from } of gone) remove.run(deviceId, from);
      for (const { from, to, first, last } of fresh) {
        const edges = [first?.at ?? null, first?.digest ?? null, last?.at ?? null, last?.digest ?? null];
        insert.run(deviceId, from, to, ...edges);
      }
    },
  };
}

function isSame(one: CoveredRange, other: CoveredRange | undefined): boolean {
  if (one === other) return true;
  return one.to === other?.to && sameEdge(one.first, other.first) && sameEdge(one.last, other.last);
}

function sameEdge(one: Edge | null, other: Edge | null): boolean {
  return one?.at === other?.at && one?.digest === other?.digest;
}

function toCoveredRange(row: CoverageRow): CoveredRange {
  return {
    from: row.from_ns,
    to: row.to_ns,
    first: edge(row.first_ns, row.first_digest),
    last: edge(row.last_ns, row.last_digest),
  };
}

function edge(at: EpochNs | null, digest: string | null): Edge | null {
  return at === null || digest === null ? null : { at, digest };
}

type Hours = Pick<TelemetryState, 'hourReadings' | 'hoursWritten'>;

function createHours(db: Database.Database) {
  const readings = db.prepare<[string], { hour: bigint; readings: bigint }>(
    'SELECT hour, readings FROM hour_readings WHERE device_id = ?',
  );
  const written = db.prepare<[string], { from_hour: bigint; to_hour: bigint }>(
    'SELECT from_hour, to_hour FROM hours_written WHERE device_id = +? ORDER BY from_hour',
  );
  const removeReadings = db.prepare('DELETE FROM hour_readings WHERE device_id = ? AND hour = ?');
  const removeWritten = db.prepare('DELETE FROM hours_written WHERE device_id = ? AND from_hour = ?');
  const putReadings = db.prepare('INSERT OR REPLACE INTO hour_readings (device_id, hour, readings) VALUES (?, ?, ?)');
  const putWritten = db.prepare(
    'INSERT OR REPLACE INTO hours_written (device_id, from_hour, to_hour) VALUES (?, ?, ?)',
  );
  return {
    read: (deviceId: string): Hours => ({
      hourReadings: new Map(readings.all(deviceId).map((row) => [Number(row.hour), Number(row.readings)])),
      hoursWritten: written.all(deviceId).map((row) => ({ from: row.from_hour, to: row.to_hour })),
    }),
    /**
     * Stores the hours.
     *
     * @param before the stored rows; only differences are written.
     */
    replace: (deviceId: string, before: Hours, { hourReadings, hoursWritten }: Hours): void => {
      const wasWritten = new Map(before.hoursWritten.map(({ from, to }) => [from, to]));
      const isWritten = new Map(hoursWritten.map(({ from, to }) => [from, to]));
      for (const hour of missing(before.hourReadings, hourReadings)) removeReadings.run(deviceId, hour);
      for (const from of missing(wasWritten, isWritten)) removeWritten.run(deviceId, from);
      for (const [hour, count] of changed(before.hourReadings, hourReadings)) putReadings.run(deviceId, hour, count);
      for (const [from, to] of changed(wasWritten, isWritten)) putWritten.run(deviceId, from, to);
    },
  };
}

function missing<K>(before: ReadonlyMap<K, unknown>, after: ReadonlyMap<K, unknown>): K[] {
  return [...before.keys()].filter((key) => !after.has(key));
}

function changed<K, V>(before: ReadonlyMap<K, V>, after: ReadonlyMap<K, V>): [K, V][] {
  return [...after].filter(([key, value]) => before.get(key) !== value);
}

function createLateness(db: Database.Database) {
  const read = db.prepare<[string], { readings: bigint; worst_ms: bigint; grace_period_ms: bigint }>(
    'SELECT readings, worst_ms, grace_period_ms FROM lateness WHERE device_id = ?',
  );
  const write = db.prepare(
    'INSERT OR REPLACE INTO lateness (device_id, readings, worst_ms, grace_period_ms) VALUES (?, ?, ?, ?)',
  );
  return {
    read: (deviceId: string): LateRecord => {
      const row = read.get(deviceId);
      if (row === undefined) return NEVER_LATE;
      return {
        readings: Number(row.readings),
        worstMs: Number(row.worst_ms),
        gracePeriodMs: Number(row.grace_period_ms),
      };
    },
    keep: (deviceId: string, { readings, worstMs, gracePeriodMs }: LateRecord): void => {
      write.run(deviceId, readings, Math.ceil(worstMs), Math.ceil(gracePeriodMs));
    },
  };
}

/** The coverage of a device while it is being composed. */
interface Growing {
  readonly covered: CoveredRange[];
  readonly gaps: Gap[];
  late: LateRecord;
  newestNs: EpochNs | null;
  isSilent: boolean;
}

/**
 * Prepares reading the coverage of all devices at once: a few scans instead of many reads, for reports over thousands
 * of devices.
 *
 * @param gaps returns all named gaps.
 */
export function createCoverageOfAll(
  db: Database.Database,
  gaps: () => readonly Gap[],
): TelemetryStore['coverageOfAll'] {
  const coverage = db.prepare<[], CoverageRow & { readonly device_id: string }>(
    `SELECT device_id, from_ns, to_ns, first_ns, first_digest, last_ns, last_digest FROM coverage
     ORDER BY device_id, from_ns`,
  );
  const lateness = db.prepare<[], { device_id: string; readings: bigint; worst_ms: bigint; grace_period_ms: bigint }>(
    'SELECT device_id, readings, worst_ms, grace_period_ms FROM lateness',
  );
  // As `newestNs` of the archive: cleared lines count as well.
  const newest = db.prepare<[], { device_id: string; at: EpochNs | null }>(
    `SELECT device_id, max(last_ns) AS at FROM block WHERE first_ns IS NOT NULL GROUP BY device_id
     UNION ALL SELECT device_id, max(to_ns) - 1 FROM cleared WHERE kind = 'telemetry' GROUP BY device_id`,
  );
  const silent = db.prepare<[number], string>('SELECT device_id FROM empty_range WHERE confirmed >= ?').pluck();
  return () => {
    const all = new Map<string, Growing>();
    const entryFor = (deviceId: string): Growing => {
      const known = all.get(deviceId) ?? { ...NOTHING_COVERED, covered: [], gaps: [] };
      all.set(deviceId, known);
      return known;
    };
    for (const row of coverage.iterate()) entryFor(row.device_id).covered.push(toCoveredRange(row));
    for (const gap of gaps()) entryFor(gap.deviceId).gaps.push(gap);
    for (const { device_id, readings, worst_ms, grace_period_ms } of lateness.iterate()) {
      entryFor(device_id).late = {
        readings: Number(readings),
        worstMs: Number(worst_ms),
        gracePeriodMs: Number(grace_period_ms),
      };
    }
    for (const { device_id, at } of newest.iterate()) {
      const known = entryFor(device_id);
      if (at !== null && (known.newestNs === null || at > known.newestNs)) known.newestNs = at;
    }
    for (const deviceId of silent.iterate(CONFIRMED_FOR_GOOD)) entryFor(deviceId).isSilent = true;
    return all satisfies ReadonlyMap<string, CoverageNow>;
  };
}
