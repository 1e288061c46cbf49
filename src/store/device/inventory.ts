/**
 * The devices of the workspace as they were listed, when each was last seen, and the alerts that were seen.
 *
 * A device is gone after two complete listings without it, or after a 404 of its own; a partial listing does not count.
 * In the first case a listing that contains it brings it back; in the second only an answer does, because a listed
 * device may still answer 404. All stored data of a device that is gone stays.
 */
import type Database from 'better-sqlite3';
import type { KnownAlert } from '../../core/lines/fact-lines.ts';
import type { DeviceRecord } from '../../core/records.ts';
import type { AlertStore, InventoryStore, KnownDevice, ListedDevice } from '../../core/state/inventory.ts';
import { type EpochMs, msToNs } from '../../core/time.ts';
import type { Archive } from '../archive/archive.ts';
import { createRareRead } from '../transactions.ts';
import { pinDeviceName, type TelemetryTables } from './telemetry.ts';

/** How many complete listings in a row without a device make it count as gone. */
const LISTINGS_TO_BE_GONE = 2;

interface DeviceRow {
  readonly device_id: string;
  readonly name: string;
  readonly record: string;
  readonly first_listed_ms: bigint;
  readonly last_listed_ms: bigint;
  readonly gone_since_ms: bigint | null;
}

/** The last `coverage` point of a device. */
interface CoverageRow {
  readonly device_id: string;
  readonly coverage_state: string;
  readonly coverage_ns: bigint;
  readonly watermark_ns: bigint | null;
}

/** Prepares the inventory of an open database. Writing calls need a transaction. */
export function createInventory(db: Database.Database, archive: Archive, telemetry: TelemetryTables): InventoryStore {
  const columns = 'device_id, name, record, first_listed_ms, last_listed_ms, gone_since_ms';
  const all = db.prepare<[], DeviceRow>(`SELECT ${columns} FROM device ORDER BY device_id`);
  const find = db.prepare<[string], DeviceRow>(`SELECT ${columns} FROM device WHERE device_id = ?`);
  const point = db.prepare<[string], { point_digest: string | null; point_ns: bigint | null }>(
    'SELECT point_digest, point_ns FROM device WHERE device_id = ?',
  );
  const upsert = db.prepare(
    `INSERT INTO device (device_id, name, record, first_listed_ms, last_listed_ms) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET name = excluded.name, record = excluded.record,
       last_listed_ms = excluded.last_listed_ms, missed_listings = 0,
       gone_since_ms = CASE WHEN missed_listings > 0 THEN NULL ELSE gone_since_ms END`,
  );
  const setPoint = db.prepare('UPDATE device SET point_digest = ?, point_ns = ? WHERE device_id = ?');
  const miss = db.prepare(
    `UPDATE device SET missed_listings = missed_listings + 1,
       gone_since_ms = CASE WHEN missed_listings + 1 >= ${LISTINGS_TO_BE_GONE} THEN ifnull(gone_since_ms, ?)
                       ELSE gone_since_ms END
     WHERE device_id = ?`,
  );
  const gone = db.prepare('UPDATE device SET gone_since_ms = ifnull(gone_since_ms, ?) WHERE device_id = ?');
  const back = db.prepare('UPDATE device SET gone_since_ms = NULL, missed_listings = 0 WHERE device_id = ?');
  const upsertListed = ({ record, name, line, digest }: ListedDevice, atMs: EpochMs, listedToMs: EpochMs): void => {
    const text = JSON.stringify(record, writeBigint);
    upsert.run(record.deviceId, name, text, Math.floor(atMs), Math.floor(listedToMs));
    if (line !== null) setPoint.run(digest, msToNs(atMs), record.deviceId);
    pinDeviceName(telemetry, record.deviceId, name, msToNs(atMs));
  };
  return {
    devices: createRareRead(db, () => all.all().map(toKnownDevice)),
    device: (deviceId) => {
      const row = find.get(deviceId);
      return row === undefined ? null : toKnownDevice(row);
    },
    lastDevicePoint: (deviceId) => {
      const row = point.get(deviceId);
      if (row === undefined || row.point_digest === null || row.point_ns === null) return null;
      return { digest: row.point_digest, atNs: row.point_ns };
    },
    saveInventory: ({ listed, missing, atMs, listedToMs = atMs }) => {
      for (const device of listed) upsertListed(device, atMs, listedToMs);
      for (const deviceId of missing) miss.run(Math.floor(atMs), deviceId);
      archive.appendFacts(listed.flatMap(({ line }) => (line === null ? [] : [line])));
    },
    markGone: (deviceId, atMs) => void gone.run(Math.floor(atMs), deviceId),
    markBack: (deviceId) => void back.run(deviceId),
    ...createCoveragePoints(db, archive),
  };
}

/** The last `coverage` point of each device. Writing calls need a transaction. */
function createCoveragePoints(
  db: Database.Database,
  archive: Archive,
): Pick<InventoryStore, 'coveragePoints' | 'saveCoveragePoints'> {
  const coveragePoints = db.prepare<[], CoverageRow>(
    'SELECT device_id, coverage_state, coverage_ns, watermark_ns FROM device WHERE coverage_state IS NOT NULL',
  );
  const setCoveragePoint = db.prepare(
    'UPDATE device SET coverage_state = ?, coverage_ns = ?, watermark_ns = ? WHERE device_id = ?',
  );
  return {
    coveragePoints: createRareRead(
      db,
      () =>
        new Map(
          coveragePoints
            .all()
            .map(({ device_id, coverage_state: state, coverage_ns: atNs, watermark_ns: watermarkNs }) => [
              device_id,
              { state, watermarkNs, atNs },
            ]),
        ),
    ),
    saveCoveragePoints: (points) => {
      for (const { deviceId, state, atNs, watermarkNs } of points) {
        setCoveragePoint.run(state, atNs, watermarkNs, deviceId);
      }
      archive.appendFacts(points.map(({ line }) => line));
    },
  };
}

function toKnownDevice(row: DeviceRow): KnownDevice {
  return {
    record: readRecord(row.record),
    name: row.name,
    firstListedMs: Number(row.first_listed_ms),
    lastListedMs: Number(row.last_listed_ms),
    goneSinceMs: row.gone_since_ms === null ? null : Number(row.gone_since_ms),
  };
}

/** Converts nanoseconds to digits, because JSON has no bigints. */
function writeBigint(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}

/** Reads a device from its stored JSON, in which times are decimal digits. */
export function readRecord(text: string): DeviceRecord {
  const kept: DeviceRecord & { lastSeenAt: string | null; locationUpdatedAt: string | null } = JSON.parse(text);
  const time = (digits: string | null): bigint | null => (digits === null ? null : BigInt(digits));
  return { ...kept, lastSeenAt: time(kept.lastSeenAt), locationUpdatedAt: time(kept.locationUpdatedAt) };
}

/** A row of the table of alerts. */
export interface AlertTableRow {
  readonly alert_id: bigint;
  readonly device_id: string | null;
  readonly device_name: string | null;
  readonly kind: string | null;
  readonly sensor: string | null;
  readonly opened_ns: bigint;
  readonly state_digest: string;
  readonly state_ns: bigint;
  readonly is_open: bigint;
  readonly is_listed: bigint;
  readonly facts: string | null;
}

/**
 * Prepares the alerts of an open database. Writing calls need a transaction: the record of an alert changes together
 * with the points computed from it.
 */
export function createAlerts(db: Database.Database, archive: Archive): AlertStore {
  const find = db.prepare<[number], AlertTableRow>('SELECT * FROM alert WHERE alert_id = ?');
  const open = db
    .prepare<[number], bigint>(
      'SELECT alert_id FROM alert WHERE is_open = 1 ORDER BY opened_ns DESC, alert_id DESC LIMIT ?',
    )
    .pluck();
  const oldestOpen = db.prepare<[], bigint | null>('SELECT min(opened_ns) FROM alert WHERE is_open = 1').pluck();
  const countFrom = db.prepare<[bigint], bigint>('SELECT count(*) FROM alert WHERE opened_ns >= ?').pluck();
  const keep = db.prepare(
    `INSERT INTO alert (alert_id, device_id, device_name, kind, sensor, opened_ns, state_digest, state_ns, is_open, is_listed, facts)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET state_digest = excluded.state_digest, state_ns = excluded.state_ns,
       is_open = excluded.is_open, facts = excluded.facts`,
  );
  const list = db.prepare('UPDATE alert SET is_listed = 1 WHERE alert_id = ?');
  const forget = db.prepare('UPDATE alert SET is_open = 0 WHERE alert_id = ?');
  return {
    find: (alertId) => {
      const row = find.get(alertId);
      return row === undefined ? null : toKnownAlert(row);
    },
    open: (most) => open.all(most).map(Number),
    oldestOpen: () => oldestOpen.get() ?? null,
    countFrom: (openedAt) => Number(countFrom.get(openedAt) ?? 0n),
    keep: (alerts, lines) => {
      for (const { alertId, deviceId, deviceName, kind, sensor, ...rest } of alerts) {
        const { openedAt, stateDigest, stateNs } = rest;
        const flags = [Number(rest.isOpen), Number(rest.isListed)];
        const facts = rest.facts === null ? null : JSON.stringify(rest.facts);
        keep.run(alertId, deviceId, deviceName, kind, sensor, openedAt, stateDigest, stateNs, ...flags, facts);
      }
      archive.appendFacts(lines);
    },
    markListed: (alertIds) => {
      for (const alertId of alertIds) list.run(alertId);
    },
    forget: (alertId) => void forget.run(alertId),
  };
}

/** Converts a row of the table of alerts. */
export function toKnownAlert(row: AlertTableRow): KnownAlert {
  return {
    alertId: Number(row.alert_id),
    deviceId: row.device_id,
    deviceName: row.device_name,
    kind: row.kind,
    sensor: row.sensor,
    openedAt: row.opened_ns,
    stateDigest: row.state_digest,
    stateNs: row.state_ns,
    isOpen: row.is_open === 1n,
    isListed: row.is_listed === 1n,
    facts: row.facts === null ? null : JSON.parse(row.facts),
  };
}
