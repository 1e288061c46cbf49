/**
 * What the state tells of the work itself (`core/state/facts.ts`), over an open database. Only reads.
 */

import type Database from 'better-sqlite3';
import type { Stream } from '../core/ports.ts';
import { REQUEST_LANES } from '../core/ports.ts';
import type { AskedRequest, LaneSpending, StateFacts, StreamFacts } from '../core/state/facts.ts';
import { LOG_LANES } from '../core/state/log.ts';
import { DAY_MS, type EpochMs, MINUTE_MS, SECOND_MS } from '../core/time.ts';
import { createPageState } from './page-state.ts';

const STREAMS: readonly Stream[] = ['account', 'devices', 'telemetry', 'alerts'];
/** Counting a day of bookings takes a while where there are many, and the page of a daemon asks again and again. */
const SPENDING_FRESH_MS = 2 * SECOND_MS;

/** Prepares it for an open database. */
export function createStateFacts(db: Database.Database): StateFacts {
  const number = (value: bigint | null | undefined): number | null => (value == null ? null : Number(value));
  const lastRequest = db.prepare<[], bigint | null>('SELECT at_ms FROM request ORDER BY id DESC LIMIT 1').pluck();
  const lastArchived = db.prepare<[], bigint | null>('SELECT at_ms FROM block ORDER BY seq DESC LIMIT 1').pluck();
  const oldest = db
    .prepare<[string, number, string], bigint | null>(
      `SELECT at_ms FROM block
       WHERE lane = ? AND seq >= ifnull((SELECT block FROM position WHERE destination_id = ? AND lane = ?), 0)
       ORDER BY seq LIMIT 1`,
    )
    .pluck();
  const days = db.prepare<[string, number], { day: bigint; readings: bigint }>(
    'SELECT day, readings FROM day_sum WHERE device_id = ? AND day >= ? AND readings > 0 ORDER BY day',
  );
  return {
    ...createPageState(db),
    spending: createSpending(db),
    streams: createStreams(db),
    lastRequestMs: () => number(lastRequest.get()),
    lastArchivedMs: () => number(lastArchived.get()),
    oldestPendingMs: (id) => {
      const times = LOG_LANES.flatMap((lane) => number(oldest.get(lane, id, lane)) ?? []);
      return times.length === 0 ? null : Math.min(...times);
    },
    jobs: createJobs(db),
    requestsOf: createRequestsOf(db),
    daysOf: (deviceId, fromDay) =>
      days.all(deviceId, fromDay).map(({ day, readings }) => ({ day: Number(day), readings: Number(readings) })),
  };
}

function createSpending(db: Database.Database): StateFacts['spending'] {
  const sums = REQUEST_LANES.map((lane) => `ifnull(sum(lane = '${lane}'), 0)`).join(', ');
  const since = db.prepare<[number], bigint[]>(`SELECT ${sums} FROM request WHERE at_ms > ?`).raw();
  let last: { readonly atMs: EpochMs; readonly lanes: readonly LaneSpending[] } | null = null;
  return (nowMs) => {
    if (last !== null && nowMs >= last.atMs && nowMs - last.atMs < SPENDING_FRESH_MS) return last.lanes;
    const [minute, day] = [since.get(nowMs - MINUTE_MS) ?? [], since.get(nowMs - DAY_MS) ?? []];
    const lanes = REQUEST_LANES.map((lane, at) => ({
      lane,
      minute: Number(minute[at] ?? 0n),
      day: Number(day[at] ?? 0n),
    }));
    last = { atMs: nowMs, lanes };
    return lanes;
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
  readonly asked_by: string;
  readonly asked_ms: bigint;
  readonly started_ms: bigint | null;
}

function createJobs(db: Database.Database): StateFacts['jobs'] {
  const open = db.prepare<[], JobRow>(
    'SELECT id, kind, state, asked_by, asked_ms, started_ms FROM job WHERE ended_ms IS NULL ORDER BY id',
  );
  return () =>
    open.all().map((row) => ({
      id: Number(row.id),
      kind: row.kind,
      state: row.state,
      askedBy: row.asked_by,
      askedMs: Number(row.asked_ms),
      startedMs: row.started_ms === null ? null : Number(row.started_ms),
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
  const toAsked = (row: RequestRow): AskedRequest => ({
    atMs: Number(row.at_ms),
    lane: row.lane,
    status: row.status === null ? null : Number(row.status),
    fault: row.fault,
    newReadings: row.new_readings === null ? null : Number(row.new_readings),
  });
  return (deviceId, count) => ({
    last: last.all(deviceId, count).map(toAsked),
    failed: Number(failed.get(deviceId) ?? 0n),
  });
}
