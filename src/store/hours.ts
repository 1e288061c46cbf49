/**
 * The hours of each device: readings of those that are not told yet (`coverage_hour`), and which ones are.
 */
import type Database from 'better-sqlite3';
import type { TelemetryState } from '../core/state/telemetry.ts';

type Hours = Pick<TelemetryState, 'hourReadings' | 'hoursWritten'>;

export interface HoursTable {
  read(deviceId: string): Hours;
  /** @param before what stands there; only what differs is written. */
  replace(deviceId: string, before: Hours, hours: Hours): void;
}

/** Prepares the tables of an open database. */
export function createHours(db: Database.Database): HoursTable {
  const readings = db.prepare<[string], { hour: bigint; readings: bigint }>(
    'SELECT hour, readings FROM hour_readings WHERE device_id = ?',
  );
  const written = db.prepare<[string], { from_hour: bigint; to_hour: bigint }>(
    'SELECT from_hour, to_hour FROM hours_written WHERE device_id = ? ORDER BY from_hour',
  );
  const removeReadings = db.prepare('DELETE FROM hour_readings WHERE device_id = ? AND hour = ?');
  const removeWritten = db.prepare('DELETE FROM hours_written WHERE device_id = ? AND from_hour = ?');
  const putReadings = db.prepare('INSERT OR REPLACE INTO hour_readings (device_id, hour, readings) VALUES (?, ?, ?)');
  const putWritten = db.prepare(
    'INSERT OR REPLACE INTO hours_written (device_id, from_hour, to_hour) VALUES (?, ?, ?)',
  );
  return {
    read: (deviceId) => ({
      hourReadings: new Map(readings.all(deviceId).map((row) => [Number(row.hour), Number(row.readings)])),
      hoursWritten: written.all(deviceId).map((row) => ({ from: row.from_hour, to: row.to_hour })),
    }),
    replace: (deviceId, before, { hourReadings, hoursWritten }) => {
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
