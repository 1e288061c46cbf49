/**
 * Reads the state as of one moment, without a lock and without writing, while another process may use it. Callers get
 * the complete store, the facts for `--plan`, or the quarantine.
 *
 * The complete store is the usual one over a read-only connection, so the same rules apply. A state of another version
 * has other tables and is reported as such. The facts for `--plan` exist since the first version, so older states work
 * too.
 */

import type Database from 'better-sqlite3';
import { firstReadingOf } from '../../core/coverage.ts';
import type { NamedDevice } from '../../core/device-names.ts';
import type { DayReadings, DeviceFacts } from '../../core/fleet.ts';
import { type Interval, normalize } from '../../core/intervals.ts';
import { HISTORY_LANES, type Ledger } from '../../core/ports.ts';
import { type Account, type DeviceRecord, NO_ALERTS, type OpenAlerts } from '../../core/records.ts';
import type { KnownDestination } from '../../core/state/quarantine.ts';
import { type EpochMs, type EpochNs, nsToMs } from '../../core/time.ts';
import { createQuarantineReader, type QuarantineReader } from '../delivery/quarantine.ts';
import { readRecord } from '../device/inventory.ts';
import { ACCOUNT_FACT, prepareFact } from '../facts.ts';
import { lockPath } from '../open/database.ts';
import { isLocked } from '../open/lock.ts';
import { hasShape, noState, openReading, readOnce } from '../open/read-only.ts';
import { assembleStore, type OpenStore } from '../store.ts';

/** A state that is open for reading. The database refuses writing calls. */
export interface ReadState extends Disposable {
  readonly store: OpenStore['store'];
  readonly facts: OpenStore['facts'];
  readonly maintenance: Pick<OpenStore['maintenance'], 'size' | 'stall'>;
  readonly ledger: Pick<Ledger, 'sentSince' | 'blockedUntilMs'>;
  readonly destinations: readonly KnownDestination[];
  /** The newest server time that the state contains; 0 if it has none. */
  readonly newestMs: EpochMs;
  /** Whether a process uses the state. */
  readonly isLocked: boolean;
  readonly path: string;
}

/**
 * Opens the state in a directory for reading.
 *
 * @returns `null` if there is none, or it is empty.
 * @throws UserError (exit 1) if it cannot be read.
 */
export function openToRead(directory: string): ReadState | null {
  return openReading(directory, (db, path) => {
    // Each page is read once, so a large cache would waste memory.
    db.pragma('cache_size = -4096');
    // One read transaction for everything; it does not block a writer.
    db.exec('BEGIN');
    return hasShape(db, path) ? createReadState(db, directory, path) : null;
  });
}

function createReadState(db: Database.Database, directory: string, path: string): ReadState {
  const { store, facts, maintenance, ledger } = assembleStore(db, { path });
  const newest = db
    .prepare<[], bigint | null>(
      'SELECT max(at) FROM (SELECT max(last_listed_ms) AS at FROM device UNION ALL SELECT max(at_ms) FROM request)',
    )
    .pluck();
  return {
    store,
    facts,
    maintenance,
    ledger,
    destinations: store.quarantine.destinations().toSorted((a, b) => a.id - b.id),
    newestMs: Number(newest.get() ?? 0n),
    isLocked: isLocked(lockPath(directory)),
    path,
    [Symbol.dispose]: () => db.close(),
  };
}

/** The oldest state version that is read here. */
const FIRST_STEP = 1;

type CoveredTelemetry = Pick<DeviceFacts, 'covered' | 'newestMs' | 'beginsNs' | 'days'>;

/** The parts of a state that a plan is computed from. */
export interface StateView {
  /** As it was last read; `null` if it never was. */
  readonly account: Account | null;
  /** The present devices, as they were last listed. */
  readonly devices: readonly { readonly record: DeviceRecord; readonly lastListedMs: EpochMs }[];
  readonly telemetry: ReadonlyMap<string, CoveredTelemetry>;
  readonly openAlerts: OpenAlerts;
  /** The times of the requests that were booked after the requested time, ascending. */
  readonly sentMs: readonly EpochMs[];
  /** The requests that were neither for history nor for a backfill. */
  readonly liveSentMs: readonly EpochMs[];
}

/**
 * Reads the facts for `--plan` from the state in a directory.
 *
 * @param since the first day whose readings are counted, in days since 1970; the time from which requests are counted.
 * @returns `null` if there is no state, or it is empty.
 * @throws UserError (exit 1) if it cannot be read.
 */
export function readStateView(directory: string, since: { day: number; requestsMs: EpochMs }): StateView | null {
  return readOnce(directory, (db, path) => read(db, path, since));
}

function read(db: Database.Database, path: string, since: { day: number; requestsMs: EpochMs }): StateView | null {
  if (!hasShape(db, path, FIRST_STEP)) return null;
  const account = prepareFact(db).get(ACCOUNT_FACT);
  const rows = db
    .prepare<[], { record: string; last_listed_ms: bigint }>(
      'SELECT record, last_listed_ms FROM device WHERE gone_since_ms IS NULL ORDER BY device_id',
    )
    .all();
  const requests = db.prepare<[number], bigint>('SELECT at_ms FROM request WHERE at_ms > ? ORDER BY at_ms').pluck();
  const ofLive = db
    .prepare<[number], bigint>(
      `SELECT at_ms FROM request WHERE at_ms > ? AND lane NOT IN ('${HISTORY_LANES.join("', '")}') ORDER BY at_ms`,
    )
    .pluck();
  return {
    account: account === undefined ? null : JSON.parse(account),
    devices: rows.map((row) => ({ record: readRecord(row.record), lastListedMs: Number(row.last_listed_ms) })),
    telemetry: readTelemetry(db, since.day),
    openAlerts: openAlertsIn(db),
    sentMs: requests.all(Math.floor(since.requestsMs)).map(Number),
    liveSentMs: ofLive.all(Math.floor(since.requestsMs)).map(Number),
  };
}

/**
 * Counts the open alerts of the state in a directory.
 *
 * @throws UserError (exit 1) if it cannot be read.
 */
export function readOpenAlerts(directory: string): OpenAlerts {
  const known = readOnce(directory, (db, path) => (hasShape(db, path, FIRST_STEP) ? openAlertsIn(db) : null));
  return known ?? NO_ALERTS;
}

function openAlertsIn(db: Database.Database): OpenAlerts {
  const row = db
    .prepare<[], { open: bigint; since: bigint }>(
      `SELECT count(*) FILTER (WHERE is_open = 1) AS open, count(*) FILTER (WHERE opened_ns >= oldest) AS since
         FROM alert, (SELECT min(opened_ns) AS oldest FROM alert WHERE is_open = 1)`,
    )
    .get();
  return { open: Number(row?.open ?? 0n), sinceOldest: Number(row?.since ?? 0n) };
}

/**
 * Reads the names of the devices in a directory.
 *
 * @param alsoIds ids that are included if any data about them is stored, even though no list has such a device
 * @returns `null` if there is no state, or it is empty.
 * @throws UserError (exit 1) if it cannot be read.
 */
export function readDeviceNames(directory: string, alsoIds: readonly string[]): NamedDevice[] | null {
  return readOnce(directory, (db, path) => {
    if (!hasShape(db, path, FIRST_STEP)) return null;
    const devices = db
      .prepare<[], NamedDevice>('SELECT device_id AS deviceId, name FROM device ORDER BY device_id')
      .all();
    const isStored = db
      .prepare<[{ id: string; quoted: string }], bigint>(
        `SELECT 1 WHERE EXISTS (SELECT 1 FROM device_revision WHERE device_id = @id)
           OR EXISTS (SELECT 1 FROM block WHERE device_id = @id)
           OR EXISTS (SELECT 1 FROM quarantine
             WHERE source = @id OR (destination_id IS NULL AND instr(content, @quoted) > 0))`,
      )
      .pluck();
    const others = alsoIds.filter(
      (id) =>
        devices.every(({ deviceId }) => deviceId !== id) &&
        isStored.get({ id, quoted: JSON.stringify(id) }) !== undefined,
    );
    return [...devices, ...others.map((id) => ({ deviceId: id, name: id }))];
  });
}

interface GrowingTelemetry {
  covered: Interval[];
  newestMs: EpochMs | null;
  beginsNs: EpochNs | null;
  days: DayReadings[];
}

interface CoverageRow {
  readonly device_id: string;
  readonly from_ns: bigint;
  readonly to_ns: bigint;
  readonly first_ns: bigint | null;
  readonly last_ns: bigint | null;
}

function readTelemetry(db: Database.Database, sinceDay: number): Map<string, CoveredTelemetry> {
  const all = new Map<string, GrowingTelemetry>();
  const entryFor = (deviceId: string) => {
    const known: GrowingTelemetry = all.get(deviceId) ?? { covered: [], newestMs: null, beginsNs: null, days: [] };
    all.set(deviceId, known);
    return known;
  };
  const coverage = db.prepare<[], CoverageRow>(
    'SELECT device_id, from_ns, to_ns, first_ns, last_ns FROM coverage ORDER BY device_id, from_ns',
  );
  for (const { device_id, from_ns: from, to_ns: to, first_ns: firstNs, last_ns } of coverage.iterate()) {
    const device = entryFor(device_id);
    if (device.covered.length === 0) device.beginsNs = firstReadingOf({ from, firstNs });
    device.covered.push({ from, to });
    if (last_ns !== null) device.newestMs = nsToMs(last_ns);
  }
  const days = db.prepare<[number], { device_id: string; day: bigint; readings: bigint }>(
    'SELECT device_id, day, readings FROM day_sum WHERE day >= ? AND readings > 0',
  );
  for (const { device_id, day, readings } of days.iterate(sinceDay)) {
    entryFor(device_id).days.push({ day: Number(day), readings: Number(readings) });
  }
  return new Map(
    [...all].map(([deviceId, { covered, ...rest }]) => [deviceId, { ...rest, covered: normalize(covered) }]),
  );
}

/**
 * Reads the quarantine of the state in a directory.
 *
 * @throws UserError (exit 1) if there is no state, or one of another version.
 */
export function readQuarantine<T>(directory: string, read: (quarantine: QuarantineReader) => T): T {
  const seen = readOnce(directory, (db, path) =>
    hasShape(db, path) ? { found: read(createQuarantineReader(db)) } : null,
  );
  if (seen === null) throw noState(directory);
  return seen.found;
}
