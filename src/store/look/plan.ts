/**
 * A look at the state beside the process that works with it: no lock, nothing written, and as one moment shows it.
 *
 * What is read is in the first step of the shape, so that a state of an older version is read as well.
 */
import type Database from 'better-sqlite3';
import type { DayReadings } from '../../core/fleet-rates.ts';
import { type Interval, type Intervals, normalize } from '../../core/intervals.ts';
import type { Account, DeviceRecord } from '../../core/records.ts';
import { type EpochMs, nsToMs } from '../../core/time.ts';
import { readRecord } from '../device/inventory.ts';
import { readOnce } from '../open/read-only.ts';
import { hasShape } from '../shape.ts';

/** The oldest state version that is read here. */
const FIRST_STEP = 1;

/** What is held of a device. */
export interface HeldTelemetry {
  /** What is held in full. */
  readonly held: Intervals;
  readonly newestMs: EpochMs | null;
  /** From the day that was asked for on, those with readings. */
  readonly days: readonly DayReadings[];
}

export interface StateLook {
  /** As last read; `null` where it never was. */
  readonly account: Account | null;
  /** The devices that are there, as last listed. */
  readonly devices: readonly { readonly record: DeviceRecord; readonly lastListedMs: EpochMs }[];
  readonly telemetry: ReadonlyMap<string, HeldTelemetry>;
  /** Requests that were booked later than the time that was asked for. */
  readonly requests: number;
}

/**
 * Looks at the state in a directory.
 *
 * @param since the first day whose readings are told, days since 1970; the time from which requests are counted.
 * @returns `null` where there is none, or nothing in it yet. @throws UserError (exit 1) where it cannot be read.
 */
export function lookAtState(directory: string, since: { day: number; requestsMs: EpochMs }): StateLook | null {
  return readOnce(directory, (db, path) => look(db, path, since));
}

function look(db: Database.Database, path: string, since: { day: number; requestsMs: EpochMs }): StateLook | null {
  if (!hasShape(db, path, FIRST_STEP)) return null;
  const account = db.prepare<[], string>("SELECT value FROM fact WHERE key = 'account'").pluck().get();
  const rows = db
    .prepare<[], { record: string; last_listed_ms: bigint }>(
      'SELECT record, last_listed_ms FROM device WHERE gone_since_ms IS NULL ORDER BY device_id',
    )
    .all();
  const requests = db.prepare<[number], bigint>('SELECT count(*) FROM request WHERE at_ms > ?').pluck();
  return {
    account: account === undefined ? null : JSON.parse(account),
    devices: rows.map((row) => ({ record: readRecord(row.record), lastListedMs: Number(row.last_listed_ms) })),
    telemetry: telemetryOf(db, since.day),
    requests: Number(requests.get(Math.floor(since.requestsMs)) ?? 0n),
  };
}

function telemetryOf(db: Database.Database, sinceDay: number): Map<string, HeldTelemetry> {
  const all = new Map<string, { spans: Interval[]; newestMs: EpochMs | null; days: DayReadings[] }>();
  const of = (deviceId: string) => {
    const known = all.get(deviceId) ?? { spans: [], newestMs: null, days: [] };
    all.set(deviceId, known);
    return known;
  };
  const coverage = db.prepare<[], { device_id: string; from_ns: bigint; to_ns: bigint; last_ns: bigint | null }>(
    'SELECT device_id, from_ns, to_ns, last_ns FROM coverage ORDER BY device_id, from_ns',
  );
  for (const { device_id, from_ns: from, to_ns: to, last_ns } of coverage.iterate()) {
    const device = of(device_id);
    device.spans.push({ from, to });
    if (last_ns !== null) device.newestMs = nsToMs(last_ns);
  }
  const days = db.prepare<[number], { device_id: string; day: bigint; readings: bigint }>(
    'SELECT device_id, day, readings FROM day_sum WHERE day >= ? AND readings > 0',
  );
  for (const { device_id, day, readings } of days.iterate(sinceDay)) {
    of(device_id).days.push({ day: Number(day), readings: Number(readings) });
  }
  return new Map(
    [...all].map(([deviceId, { spans, newestMs, days: own }]) => [
      deviceId,
      { held: normalize(spans), newestMs, days: own },
    ]),
  );
}
