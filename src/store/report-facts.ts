/**
 * Reads the facts for reports and the status page (`core/state/state.ts`) over any connection to the state.
 */

import type Database from 'better-sqlite3';
import { isTelemetryLine } from '../core/lines/line-reader.ts';
import { MAX_OFFSET_NS } from '../core/lines/offsets.ts';
import { REQUEST_LANES, STREAMS } from '../core/ports.ts';
import { LOG_LANES } from '../core/state/log.ts';
import type { SentRequest, StateFacts, StreamFacts } from '../core/state/state.ts';
import type { LaneStatus } from '../core/status.ts';
import { DAY_MS, type EpochMs, type EpochNs, MINUTE_MS, SECOND_MS } from '../core/time.ts';
import { type PackedBlock, release, unpack } from './archive/block-codec.ts';
import { type AlertTableRow, toKnownAlert } from './device/inventory.ts';
import type { Unwritten } from './ledger.ts';

/** Counting a day of bookings takes a while if there are many, and the status page needs the count often. */
const SPENDING_FRESH_MS = 2 * SECOND_MS;

/**
 * Prepares the facts of an open database.
 *
 * @param unwrittenBookings the requests that have no rows yet, in the process that books them.
 */
export function createStateFacts(db: Database.Database, unwrittenBookings: () => Unwritten): StateFacts {
  const number = (value: bigint | null | undefined): number | null => (value == null ? null : Number(value));
  const lastRequest = db.prepare<[], bigint | null>('SELECT at_ms FROM request ORDER BY id DESC LIMIT 1').pluck();
  const lastArchived = db.prepare<[], bigint | null>('SELECT at_ms FROM block ORDER BY seq DESC LIMIT 1').pluck();
  const oldest = db
    .prepare<[string, number, string], bigint | null>(
      `SELECT at_ms FROM block
       WHERE lane = +? AND seq >= ifnull((SELECT block FROM position WHERE destination_id = ? AND lane = ?), 0)
       ORDER BY seq LIMIT 1`,
    )
    .pluck();
  const archivedSince = db
    .prepare<[string], EpochNs | null>('SELECT min(first_ns) FROM block WHERE device_id = ? AND first_ns IS NOT NULL')
    .pluck();
  const cleared = db
    .prepare<[string], bigint>("SELECT 1 FROM cleared WHERE device_id = ? AND kind = 'telemetry' LIMIT 1")
    .pluck();
  const days = db.prepare<[string, number], { day: bigint; readings: bigint }>(
    'SELECT day, readings FROM day_sum WHERE device_id = ? AND day >= ? AND readings > 0 ORDER BY day',
  );
  const alertsOf = db.prepare<[string, number], AlertTableRow>(
    'SELECT * FROM alert WHERE device_id = ? ORDER BY is_open DESC, opened_ns DESC, alert_id DESC LIMIT ?',
  );
  return {
    spending: createSpending(db, unwrittenBookings),
    streams: createStreams(db),
    lastRequestMs: () => number(lastRequest.get()),
    lastArchivedMs: () => number(lastArchived.get()),
    oldestPendingMs: (id) => {
      const times = LOG_LANES.flatMap((lane) => number(oldest.get(lane, id, lane)) ?? []);
      return times.length === 0 ? null : Math.min(...times);
    },
    oldestLivePendingMs: (id) => number(oldest.get('live', id, 'live')),
    jobs: createJobs(db),
    requestsOf: createRequestsOf(db),
    daysOf: (deviceId, fromDay) =>
      days.all(deviceId, fromDay).map(({ day, readings }) => ({ day: Number(day), readings: Number(readings) })),
    newestLines: createNewestLines(db),
    archivedSince: (deviceId) => archivedSince.get(deviceId) ?? null,
    isCleared: (deviceId) => cleared.get(deviceId) !== undefined,
    alertsSeen: createSeenAlerts(db),
    alertsOf: (deviceId, count) => alertsOf.all(deviceId, count).map(toKnownAlert),
  };
}

function createSpending(db: Database.Database, unwrittenBookings: () => Unwritten): StateFacts['spending'] {
  const sums = REQUEST_LANES.map((lane) => `ifnull(sum(lane = '${lane}'), 0)`).join(', ');
  const since = db.prepare<[number, number], bigint[]>(`SELECT ${sums} FROM request WHERE at_ms > ? AND id <= ?`).raw();
  const newer = db
    .prepare<[number, string], bigint[]>(
      `SELECT ${sums} FROM request WHERE id > ? AND id NOT IN (SELECT value FROM json_each(?))`,
    )
    .raw();
  const newest = db.prepare<[], bigint>('SELECT ifnull(max(id), 0) FROM request').pluck();
  let last: { readonly atMs: EpochMs; readonly id: number; readonly lanes: readonly LaneStatus[] } | null = null;
  return (nowMs) => {
    const { ids, bookings } = unwrittenBookings();
    if (last === null || nowMs < last.atMs || nowMs - last.atMs >= SPENDING_FRESH_MS) {
      // Rows that are booked in advance are the newest ones.
      const id = Math.min(Number(newest.get() ?? 0n), ...ids.map((ahead) => ahead - 1));
      const [minute, day] = [since.get(nowMs - MINUTE_MS, id) ?? [], since.get(nowMs - DAY_MS, id) ?? []];
      const lanes = REQUEST_LANES.map((lane, at) => ({
        lane,
        minute: Number(minute[at] ?? 0n),
        day: Number(day[at] ?? 0n),
      }));
      last = { atMs: nowMs, id, lanes };
    }
    // The sums are cached for a moment. Together with the requests since then they equal the counts of all requests.
    const rows = newer.get(last.id, JSON.stringify(ids)) ?? [];
    return last.lanes.map(({ lane, minute, day }, at) => {
      const more = Number(rows[at] ?? 0n) + bookings.filter(({ purpose }) => purpose.lane === lane).length;
      return { lane, minute: minute + more, day: day + more };
    });
  };
}

function createStreams(db: Database.Database): StateFacts['streams'] {
  const read = db.prepare<[string], { id: bigint; at_ms: bigint }>(
    `SELECT id, at_ms FROM request WHERE stream = ? AND fault IS NULL AND status IS NOT NULL
     ORDER BY id DESC LIMIT 1`,
  );
  const failed = db.prepare<[string, bigint], { at_ms: bigint; fault: string }>(
    'SELECT at_ms, fault FROM request WHERE stream = ? AND id > ? AND fault IS NOT NULL ORDER BY id DESC LIMIT 1',
  );
  return () =>
    STREAMS.map((stream): StreamFacts => {
      const success = read.get(stream);
      const failure = failed.get(stream, success?.id ?? 0n);
      return {
        stream,
        readAtMs: success === undefined ? null : Number(success.at_ms),
        failure: failure === undefined ? null : { atMs: Number(failure.at_ms), fault: failure.fault },
      };
    });
}

interface JobRow {
  readonly id: bigint;
  readonly kind: string;
  readonly state: string;
  readonly requested_by: string;
  readonly requested_ms: bigint;
  readonly started_ms: bigint | null;
  readonly args: string;
  readonly progress: string | null;
}

function createJobs(db: Database.Database): StateFacts['jobs'] {
  const open = db.prepare<[], JobRow>(
    'SELECT id, kind, state, requested_by, requested_ms, started_ms, args, progress FROM job WHERE ended_ms IS NULL ORDER BY id',
  );
  return () =>
    open.all().map((row) => ({
      id: Number(row.id),
      kind: row.kind,
      state: row.state,
      requestedBy: row.requested_by,
      requestedMs: Number(row.requested_ms),
      startedMs: row.started_ms === null ? null : Number(row.started_ms),
      args: JSON.parse(row.args) as unknown,
      progress: row.progress === null ? null : JSON.parse(row.progress),
    }));
}

interface RequestRow {
  readonly at_ms: bigint;
  readonly lane: string;
  readonly status: bigint | null;
  readonly fault: string | null;
  readonly new_readings: bigint | null;
}

function createRequestsOf(db: Database.Database): StateFacts['requestsOf'] {
  const last = db.prepare<[string, number], RequestRow>(
    `SELECT at_ms, lane, status, fault, new_readings FROM request
     WHERE device_id = ? AND stream = 'telemetry' ORDER BY id DESC LIMIT ?`,
  );
  const failed = db
    .prepare<[string], bigint>(
      "SELECT count(*) FROM request WHERE device_id = ? AND stream = 'telemetry' AND fault IS NOT NULL",
    )
    .pluck();
  const toSentRequest = (row: RequestRow): SentRequest => ({
    atMs: Number(row.at_ms),
    lane: row.lane,
    status: row.status === null ? null : Number(row.status),
    fault: row.fault,
    newReadings: row.new_readings === null ? null : Number(row.new_readings),
  });
  return (deviceId, count) => ({
    last: last.all(deviceId, count).map(toSentRequest),
    failed: Number(failed.get(deviceId) ?? 0n),
  });
}

function createSeenAlerts(db: Database.Database): StateFacts['alertsSeen'] {
  const counts = db.prepare<[], { alerts: bigint; open: bigint }>(
    'SELECT count(*) AS alerts, ifnull(sum(is_open), 0) AS open FROM alert',
  );
  const first = db.prepare<[number], AlertTableRow>(
    'SELECT * FROM alert ORDER BY is_open DESC, opened_ns DESC, alert_id DESC LIMIT ?',
  );
  return (count) => {
    const { alerts, open } = counts.get() ?? { alerts: 0n, open: 0n };
    return { alerts: Number(alerts), open: Number(open), first: first.all(count).map(toKnownAlert) };
  };
}

/** The lines of this many devices are cached, because a page that refreshes itself needs the same ones again. */
const REMEMBERED = 200;

/** A device with more lines in its newest instant is checked each time. */
const MOST_LINES = 100;

function createNewestLines(db: Database.Database): StateFacts['newestLines'] {
  const newest = db
    .prepare<[string], EpochNs | null>('SELECT max(last_ns) FROM block WHERE device_id = ? AND first_ns IS NOT NULL')
    .pluck();
  const around = db
    .prepare<[string, EpochNs], bigint>(
      'SELECT seq FROM block WHERE device_id = ? AND last_ns >= ? AND first_ns IS NOT NULL ORDER BY seq',
    )
    .pluck();
  const data = db.prepare<[bigint], PackedBlock>('SELECT data, bytes FROM block WHERE seq = ?');
  const read = (seq: bigint, from: EpochNs): readonly string[] => {
    const block = data.get(seq);
    if (block === undefined) return [];
    const lines = unpack(block.data, Number(block.bytes));
    release(block.data);
    return lines.filter((line) => isTelemetryLine(line) && isSince(line, from));
  };
  const known = new Map<string, { readonly place: string; readonly lines: readonly string[] }>();
  const linesOf = (deviceId: string): readonly string[] => {
    const at = newest.get(deviceId) ?? null;
    if (at === null) return [];
    const from = at - MAX_OFFSET_NS;
    const blocks = around.all(deviceId, from);
    // A point that is added to the instant comes in its own block, and no block number is used twice.
    const place = `${at} ${blocks.join(' ')}`;
    const last = known.get(deviceId);
    known.delete(deviceId);
    const lines = last?.place === place ? last.lines : blocks.flatMap((seq) => read(seq, from));
    if (lines.length <= MOST_LINES) known.set(deviceId, { place, lines });
    for (const [longest] of known) {
      if (known.size <= REMEMBERED) break;
      known.delete(longest);
    }
    return lines;
  };
  return db.transaction(linesOf);
}

/** Doubles distinguish most times; only close ones are compared exactly. */
function isSince(line: string, from: EpochNs): boolean {
  const digits = line.slice(line.lastIndexOf(' ') + 1);
  return Number(digits) >= Number(from) && BigInt(digits) >= from;
}
