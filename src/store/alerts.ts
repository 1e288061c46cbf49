/**
 * The alerts that were seen, and the last state of each that became a point.
 *
 * Promise: what is kept of an alert moves in one transaction with the points it was computed for.
 */
import type Database from 'better-sqlite3';
import type { KnownAlert } from '../core/lines/alerts.ts';

export interface AlertTable {
  find(alertId: number): KnownAlert | null;
  /** Those that are not resolved, newest first. */
  open(): KnownAlert[];
  /** How many known alerts were opened at or after this one. */
  countFrom(alert: KnownAlert): number;
  /** Only inside a transaction. */
  keep(alerts: readonly KnownAlert[]): void;
  /** Says that a listing with these came to its end. Only inside a transaction. */
  markListed(alertIds: readonly number[]): void;
  /** Says that it is gone from the API: it is not followed any more. */
  forget(alertId: number): void;
}

export interface AlertRow {
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
}

/** Prepares the table of an open database. */
export function createAlertTable(db: Database.Database): AlertTable {
  const find = db.prepare<[number], AlertRow>('SELECT * FROM alert WHERE alert_id = ?');
  const open = db.prepare<[], AlertRow>('SELECT * FROM alert WHERE is_open = 1 ORDER BY opened_ns DESC, alert_id DESC');
  const countFrom = db.prepare<[bigint], bigint>('SELECT count(*) FROM alert WHERE opened_ns >= ?').pluck();
  const keep = db.prepare(
    `INSERT INTO alert (alert_id, device_id, device_name, kind, sensor, opened_ns, state_digest, state_ns, is_open, is_listed)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET state_digest = excluded.state_digest, state_ns = excluded.state_ns,
       is_open = excluded.is_open`,
  );
  const list = db.prepare('UPDATE alert SET is_listed = 1 WHERE alert_id = ?');
  const forget = db.prepare('UPDATE alert SET is_open = 0 WHERE alert_id = ?');
  return {
    find: (alertId) => {
      const row = find.get(alertId);
      return row === undefined ? null : toKnownAlert(row);
    },
    open: () => open.all().map(toKnownAlert),
    countFrom: ({ openedAt }) => Number(countFrom.get(openedAt) ?? 0n),
    keep: (alerts) => {
      for (const { alertId, deviceId, deviceName, kind, sensor, ...rest } of alerts) {
        const { openedAt, stateDigest, stateNs } = rest;
        const flags = [Number(rest.isOpen), Number(rest.isListed)];
        keep.run(alertId, deviceId, deviceName, kind, sensor, openedAt, stateDigest, stateNs, ...flags);
      }
    },
    markListed: (alertIds) => {
      for (const alertId of alertIds) list.run(alertId);
    },
    forget: (alertId) => {
      forget.run(alertId);
    },
  };
}

/** An alert as it is kept. */
export function toKnownAlert(row: AlertRow): KnownAlert {
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
  };
}
