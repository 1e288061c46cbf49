/**
 * A state of any size, made row by row through the program's own tables, packing and rules (see `fill.ts`).
 */
import { statSync } from 'node:fs';
import type Database from 'better-sqlite3';
import { destinationIdentity } from '../../../src/core/lines/dialect.ts';
import { descriptiveTag, encodeSeries, identityTag } from '../../../src/core/lines/line-protocol.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, msToNs } from '../../../src/core/time.ts';
import { pack } from '../../../src/store/archive/block-codec.ts';
import { openDatabase } from '../../../src/store/open/database.ts';
import { createDevices, type Fill, type FilledDevice } from './devices.ts';
import { createValues } from './values.ts';

export interface Filled {
  readonly devices: number;
  readonly readings: number;
  readonly points: number;
  readonly blocks: number;
  /** The state file. */
  readonly bytes: number;
}

export const WORKSPACE = 'bench';

/** Fills a directory that holds no state yet. */
export function fillState(directory: string, fill: Fill): Filled {
  const { db, path, close } = openDatabase(directory);
  try {
    // A loss in a power failure is no loss here.
    db.pragma('synchronous = OFF');
    db.pragma('cache_size = -65536');
    const sums = writeState(db, fill);
    db.pragma('wal_checkpoint(TRUNCATE)');
    return { devices: fill.devices, ...sums, bytes: statSync(path).size };
  } finally {
    close();
  }
}

function writeState(db: Database.Database, fill: Fill): Pick<Filled, 'readings' | 'points' | 'blocks'> {
  const devices = createDevices(fill);
  db.transaction(() => {
    writeFacts(db, fill);
    for (const device of devices) writeDevice(db, device, fill);
  })();
  const sums = writeDays(db, devices, fill);
  db.transaction(() => {
    writeRequests(db, devices, fill);
    writeDestination(db, devices, fill);
  })();
  return sums;
}

function writeFacts(db: Database.Database, { devices }: Fill): void {
  const plan = {
    planId: 'scale',
    name: 'Scale',
    maxApiKeys: 5,
    requestsPerMinute: 600,
    requestsPerDay: 500_000,
    historyMaxDays: 31,
    maxDevicesPerPage: 200,
  };
  const account = { workspaceId: WORKSPACE, name: 'Bench', plan, devices, openAlerts: 0 };
  const write = db.prepare('INSERT INTO fact (key, value) VALUES (?, ?)');
  write.run('workspace_id', WORKSPACE);
  write.run('workspace_tag', WORKSPACE);
  write.run('account', JSON.stringify(account));
}

function writeDevice(db: Database.Database, device: FilledDevice, { newestMs }: Fill): void {
  const { deviceId, name, record, covered, gap, goneSinceMs } = device;
  const listedMs = newestMs + 4 * MINUTE_MS;
  db.prepare(
    `INSERT INTO device (device_id, name, record, first_listed_ms, last_listed_ms, missed_listings, gone_since_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
  ).run(deviceId, name, record, newestMs - 90 * DAY_MS, listedMs, goneSinceMs === null ? 0 : 2, goneSinceMs);
  db.prepare('INSERT INTO device_name (device_id, from_ns, name) VALUES (?, 0, ?)').run(deviceId, name);
  db.prepare('INSERT INTO device_revision (device_id, revision) VALUES (?, 1)').run(deviceId);
  const span = db.prepare(
    `INSERT INTO coverage (device_id, from_ns, to_ns, first_ns, first_digest, last_ns, last_digest)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
  );
  const hours = db.prepare('INSERT INTO hours_written (device_id, from_hour, to_hour) VALUES (?, ?, ?)');
  for (const { fromMs, toMs, first, last } of covered) {
    span.run(deviceId, msToNs(fromMs), msToNs(toMs), msToNs(first.atMs), first.digest, msToNs(last.atMs), last.digest);
    const [from, to] = [Math.ceil(fromMs / HOUR_MS), Math.floor(toMs / HOUR_MS)];
    if (from < to) hours.run(deviceId, from, to);
  }
  if (gap === null) return;
  db.prepare('INSERT INTO gap (device_id, from_ns, to_ns, reason, retry_at_ms) VALUES (?, ?, ?, ?, ?)').run(
    deviceId,
    msToNs(gap.fromMs),
    msToNs(gap.toMs),
    gap.reason,
    newestMs + 6 * HOUR_MS,
  );
}

/** Day after day, all devices of each: the order in which the log of a live sync grows. */
function writeDays(
  db: Database.Database,
  devices: readonly FilledDevice[],
  fill: Fill,
): Pick<Filled, 'readings' | 'points' | 'blocks'> {
  const insertBlock = db.prepare(
    `INSERT INTO block (lane, device_id, first_ns, last_ns, lines, bytes, data, at_ms, level)
     VALUES ('live', ?, ?, ?, ?, ?, ?, ?, 2)`,
  );
  const insertSum = db.prepare(
    'INSERT INTO day_sum (device_id, day, readings, points, hash_high, hash_low) VALUES (?, ?, ?, ?, ?, ?)',
  );
  const values = createValues(fill);
  let [readings, points, blocks] = [0, 0, 0];
  const lastDay = Math.floor(fill.newestMs / DAY_MS);
  const firstDay = Math.floor((fill.newestMs - fill.days * DAY_MS) / DAY_MS);
  const writeDay = db.transaction((day: number) => {
    for (const device of devices) {
      const made = values.dayOf(device, day, seriesOf(device, fill));
      if (made.lines.length === 0) continue;
      const { data, bytes } = pack(made.lines);
      const atMs = Math.min((day + 1) * DAY_MS, fill.newestMs);
      const [first, last] = [msToNs(made.firstMs), msToNs(made.lastMs)];
      insertBlock.run(device.deviceId, first, last, made.lines.length, bytes, data, atMs);
      insertSum.run(device.deviceId, day, made.readings, made.lines.length, made.hashHigh, made.hashLow);
      readings += made.readings;
      points += made.lines.length;
      blocks += 1;
    }
  });
  for (let day = firstDay; day <= lastDay; day += 1) {
    writeDay(day);
    fill.onDay?.(day - firstDay + 1, lastDay - firstDay + 1);
  }
  return { readings, points, blocks };
}

/** The series of the sensors of a device. */
function seriesOf({ deviceId, name }: FilledDevice, { sensors }: Fill): readonly string[] {
  return Array.from({ length: sensors }, (_, sensor) =>
    encodeSeries('telemetry', [
      ['device_id', identityTag(deviceId)],
      ['sensor', identityTag(`s${sensor}`)],
      ['device_name', descriptiveTag(name)],
      ['workspace_id', identityTag(WORKSPACE)],
    ]),
  );
}

/** Bookings of the last two days: ten a minute, some of them in vain. */
function writeRequests(db: Database.Database, devices: readonly FilledDevice[], { newestMs }: Fill): void {
  const insert = db.prepare(
    'INSERT INTO request (at_ms, lane, stream, device_id, status, fault, new_readings) VALUES (?, ?, ?, ?, ?, ?, ?)',
  );
  const endMs = newestMs + 4 * MINUTE_MS;
  const count = 2 * 1440 * 10;
  for (let index = 0; index < count; index += 1) {
    const atMs = Math.floor(endMs - 2 * DAY_MS + (index * 2 * DAY_MS) / count);
    const isFailed = index % 97 === 0;
    const outcome = isFailed ? ([503, 'server-fault'] as const) : ([200, null] as const);
    if (index % 50 === 0) insert.run(atMs, 'inventory', 'devices', null, ...outcome, null);
    else {
      const device = devices[(index * 7919) % devices.length];
      const lane = index % 3 === 0 ? 'first-history' : 'live';
      insert.run(atMs, lane, 'telemetry', device?.deviceId ?? null, ...outcome, isFailed ? null : 3);
    }
  }
}

/** A destination that has acknowledged all but the last day, rejected some points, and misses a few. */
function writeDestination(db: Database.Database, devices: readonly FilledDevice[], fill: Fill): void {
  const { influx, newestMs } = fill;
  const identity = destinationIdentity({ kind: 'influxdb', url: influx, org: 'bench', bucket: 'bench' });
  const id = db
    .prepare("INSERT INTO destination (name, identity, is_current) VALUES ('influx', ?, 1)")
    .run(identity).lastInsertRowid;
  const lastDayMs = Math.floor(newestMs / DAY_MS) * DAY_MS;
  const place = db
    .prepare<[number], bigint>('SELECT ifnull(max(seq), 0) + 1 FROM block WHERE at_ms <= ?')
    .pluck()
    .get(lastDayMs);
  db.prepare("INSERT INTO position (destination_id, lane, block, line) VALUES (?, 'live', ?, 0)").run(id, place);
  const quarantine = db.prepare(
    "INSERT INTO quarantine (destination_id, source, content, reason, at_ms) VALUES (?, 'destination', ?, ?, ?)",
  );
  const lack = db.prepare(
    `INSERT INTO missing (destination_id, device_id, reason, from_ns, to_ns, points)
     VALUES (?, ?, 'beyond_retention', ?, ?, 120)`,
  );
  devices.slice(0, 50).forEach((device, index) => {
    const [series] = seriesOf(device, fill);
    const atMs = newestMs - index * HOUR_MS;
    quarantine.run(id, `${series ?? ''} value=1 ${atMs}000000`, 'field type conflict', atMs);
    const fromMs = newestMs - fill.days * DAY_MS;
    lack.run(id, device.deviceId, msToNs(fromMs), msToNs(fromMs + 2 * HOUR_MS));
  });
}
