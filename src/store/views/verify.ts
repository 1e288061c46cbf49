/**
 * Reads the state for `--verify`, without a lock and without writing, while another process may use it. Each read is as
 * of one moment.
 */

import type Database from 'better-sqlite3';
import { nameAt } from '../../core/device-names.ts';
import { type Interval, includes, intersect, normalize } from '../../core/intervals.ts';
import { descriptiveTag, encodeSeries, identityTag, type TagValue } from '../../core/lines/line-protocol.ts';
import { isTelemetryLine } from '../../core/lines/line-reader.ts';
import type { LogLane } from '../../core/state/log.ts';
import type { ArchivedDay, ArchivedLine, ArchivedRange, VerifyState } from '../../core/state/verify.ts';
import type { EpochNs } from '../../core/time.ts';
import { unpack } from '../archive/block-codec.ts';
import { createMovedSearch } from '../delivery/delivery.ts';
import { createMissingTable } from '../delivery/missing-points.ts';
import { explainedCalls } from '../explain.ts';
import { ACCOUNT_FACT, prepareFact } from '../facts.ts';
import { hasShape, openReading } from '../open/read-only.ts';

/**
 * Opens the state in a directory for reading.
 *
 * @returns `null` if there is none, or it is empty.
 * @throws UserError (exit 1) if it cannot be read.
 */
export function openVerifyState(directory: string): VerifyState | null {
  return openReading(directory, (db, path) =>
    hasShape(db, path) ? explainedCalls(path, createVerifyState(db)) : null,
  );
}

function createVerifyState(db: Database.Database): VerifyState {
  const fact = prepareFact(db);
  const account = fact.get(ACCOUNT_FACT);
  const missing = createMissingTable(db);
  const first = db.prepare<[], bigint | null>('SELECT min(day) FROM day_sum').pluck();
  const last = db.prepare<[], bigint | null>('SELECT max(day) FROM day_sum').pluck();
  const ids = db
    .prepare<[], string>('SELECT device_id FROM device UNION SELECT device_id FROM device_revision ORDER BY 1')
    .pluck();
  const covered = db.prepare<[string], Interval>(
    'SELECT from_ns AS "from", to_ns AS "to" FROM coverage WHERE device_id = ? ORDER BY from_ns',
  );
  const others = db
    .prepare<[string, EpochNs, EpochNs], bigint | null>(
      "SELECT sum(points) FROM cleared WHERE device_id = ? AND kind = 'other' AND from_ns < ? AND to_ns > ?",
    )
    .pluck();
  return {
    workspaceTag: fact.get('workspace_tag') ?? null,
    plan: account === undefined ? null : JSON.parse(account).plan,
    destination: createDestinationSearch(db),
    extent: () => {
      const [from, to] = [first.get() ?? null, last.get() ?? null];
      return from === null || to === null ? null : { from: Number(from), to: Number(to) };
    },
    deviceIds: () => ids.all(),
    days: createDays(db),
    covered: (deviceId) => normalize(covered.all(deviceId)),
    clearedOthers: (deviceId, { from, to }) => Number(others.get(deviceId, to, from) ?? 0n),
    positions: createPositions(db),
    missing: missing.overlapping,
    retentionEstimate: missing.estimate,
    range: createRangeReader(db, fact.get('workspace_tag') ?? ''),
    movedTo: createMovedSearch(db),
    close: () => void db.close(),
  };
}

function createDestinationSearch(db: Database.Database): VerifyState['destination'] {
  const named = db.prepare<[string], { id: bigint; identity: string }>(
    'SELECT id, identity FROM destination WHERE name = ? ORDER BY is_current DESC, id DESC',
  );
  return (name, candidates) => {
    for (const { id, identity } of named.all(name)) {
      const known = candidates.find((candidate) => candidate.identity === identity);
      if (known !== undefined) return { id: Number(id), kind: known.kind };
    }
    return null;
  };
}

function createDays(db: Database.Database): VerifyState['days'] {
  const read = db.prepare<[string, number, number], Readonly<Record<string, bigint | null>>>(
    `SELECT day, readings, points, hash_high, hash_low,
       (SELECT points FROM day_text WHERE day_text.device_id = day_sum.device_id AND day_text.day = day_sum.day) AS texts
     FROM day_sum WHERE device_id = ? AND day >= ? AND day < ? ORDER BY day`,
  );
  return (deviceId, from, to) =>
    read.all(deviceId, from, to).map((row): ArchivedDay => {
      const numberIn = (column: string): number => Number(row[column] ?? 0n);
      return {
        day: numberIn('day'),
        readings: numberIn('readings'),
        points: numberIn('points'),
        hashHigh: numberIn('hash_high'),
        hashLow: numberIn('hash_low'),
        texts: numberIn('texts'),
      };
    });
}

function createPositions(db: Database.Database): VerifyState['positions'] {
  const read = db.prepare<[number], { lane: LogLane; block: bigint; line: bigint }>(
    'SELECT lane, block, line FROM position WHERE destination_id = ?',
  );
  const newest = db
    .prepare<[LogLane, bigint], bigint>(
      'SELECT at_ms FROM block INDEXED BY block_age WHERE lane = ? AND seq < ? ORDER BY at_ms DESC LIMIT 1',
    )
    .pluck();
  // In one transaction, so that nothing is merged between two of these reads.
  return db.transaction((destinationId: number) => {
    const start = { block: 0, line: 0, newestMs: 0 };
    const positions = { live: start, history: start };
    for (const { lane, block, line } of read.all(destinationId)) {
      const newestMs = Number(newest.get(lane, block) ?? 0n);
      positions[lane] = { block: Number(block), line: Number(line), newestMs };
    }
    return positions;
  });
}

interface BlockRow {
  readonly seq: bigint;
  readonly lane: LogLane;
  readonly at_ms: bigint;
  readonly data: Buffer;
}

function createRangeReader(db: Database.Database, workspaceTag: string): VerifyState['range'] {
  const blocks = db.prepare<[string, EpochNs, EpochNs], BlockRow>(
    `SELECT seq, lane, at_ms, data FROM block
     WHERE device_id = ? AND first_ns < ? AND last_ns >= ? AND first_ns IS NOT NULL ORDER BY seq`,
  );
  const cleared = db.prepare<[string, EpochNs, EpochNs], Interval>(
    `SELECT from_ns AS "from", to_ns AS "to" FROM cleared
     WHERE device_id = ? AND kind = 'telemetry' AND from_ns < ? AND to_ns > ? ORDER BY from_ns`,
  );
  // The range of the lines of a device: the index is by destination, source and line.
  const quarantined = db
    .prepare<[number, string, string], string>(
      `SELECT content FROM quarantine
       WHERE ifnull(destination_id, 0) = ? AND source = 'destination' AND content >= ? AND content < ?`,
    )
    .pluck();
  const moved = createMovedLines(db, workspaceTag);
  return (wanted, at): ArchivedRange =>
    db.transaction((): ArchivedRange => {
      const { deviceId, destinationId, from, to } = wanted;
      const lines: ArchivedLine[] = [];
      const isWithin = createWithin(wanted);
      for (const { seq, lane, at_ms, data } of blocks.iterate(deviceId, to, from)) {
        const position = at[lane];
        // If a block was merged since, it is unknown which of its lines were acknowledged then.
        const isBefore = seq < position.block && at_ms <= position.newestMs;
        unpack(data).forEach((line, index) => {
          if (!isTelemetryLine(line) || !isWithin(line)) return;
          const isAcknowledged = isBefore || (Number(seq) === position.block && index < position.line);
          lines.push({ line, isAcknowledged });
        });
      }
      const gone = intersect(normalize(cleared.all(deviceId, to, from)), [{ from, to }]);
      for (const { line, at: written } of gone.length === 0 ? [] : moved(wanted)) {
        if (includes(gone, written)) lines.push({ line, isAcknowledged: true });
      }
      const series = encodeSeries('telemetry', [['device_id', identityTag(deviceId)]]);
      const rejected = quarantined.all(destinationId, `${series},`, `${series}-`).filter(isWithin);
      return { lines, quarantined: rejected, cleared: gone };
    })();
}

/** Whether a line's time, which is its last word, lies in a range. */
function createWithin({ from, to }: Interval): (line: string) => boolean {
  const [low, high] = [`${from}`, `${to}`];
  return (line) => {
    const stamp = line.slice(line.lastIndexOf(' ') + 1);
    if (stamp.length === low.length && stamp.length === high.length) return low <= stamp && stamp < high;
    const at = BigInt(stamp);
    return from <= at && at < to;
  };
}

interface OffsetRow {
  readonly recorded_ns: EpochNs;
  readonly sensor: TagValue;
  readonly field: string;
  readonly written_ns: EpochNs;
}

/** Offsets are stored forever, so their lines can be made again after their blocks were cleared. */
function createMovedLines(db: Database.Database, workspaceTag: string) {
  const offsets = db.prepare<[string, EpochNs, EpochNs], OffsetRow>(
    'SELECT recorded_ns, sensor, field, written_ns FROM time_offset WHERE device_id = ? AND written_ns >= ? AND written_ns < ?',
  );
  const names = db.prepare<[string], { fromNs: EpochNs; name: string }>(
    'SELECT from_ns AS fromNs, name FROM device_name WHERE device_id = ? ORDER BY from_ns',
  );
  return ({ deviceId, from, to }: Interval & { readonly deviceId: string }): { line: string; at: EpochNs }[] => {
    const stored = names.all(deviceId);
    return offsets.all(deviceId, from, to).map(({ recorded_ns, sensor, field, written_ns }) => {
      const series = encodeSeries('telemetry', [
        ['device_id', identityTag(deviceId)],
        ['sensor', sensor],
        ['device_name', descriptiveTag(nameAt(stored, recorded_ns) ?? deviceId)],
        ['workspace_id', identityTag(workspaceTag)],
      ]);
      return { line: `${series} ${field} ${written_ns}`, at: written_ns };
    });
  };
}
