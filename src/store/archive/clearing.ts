/**
 * Clearing: drops acknowledged blocks and records the ranges of time that they contained.
 *
 * Promise: a block is dropped only if every active destination has acknowledged it; without a destination no block is
 * dropped. The same transaction records its range. `cleared` keeps it forever: later destinations get it as missing
 * points, and a page commit does not compare values in it. Each destination that had not acknowledged the block gets
 * the range as missing points.
 *
 * Two ranges are joined if no point can be missing between them: the time between them is covered, and no remaining
 * block overlaps it. So the record stays small over years and never includes time whose points were not cleared.
 * Readings are recorded separately from all other lines, because only readings are compared later.
 */

import type Database from 'better-sqlite3';
import type { Interval, Intervals } from '../../core/intervals.ts';
import { isTelemetryLine } from '../../core/lines/line-reader.ts';
import type { ArchiveMaintenance, ClearOrder } from '../../core/state/archive.ts';
import { LOG_LANES, type LogLane, type MissingPoints, type MissingReason } from '../../core/state/log.ts';
import { DAY_NS, type EpochNs, isNsText, maxNs, minNs } from '../../core/time.ts';
import type { MissingTable } from '../delivery/missing-points.ts';
import type { PositionTable } from '../delivery/positions.ts';
import { unpack } from './block-codec.ts';
import { createAcknowledgedBelow } from './compaction.ts';

/** How many bytes of uncompressed lines one step reads. It always takes at least one block. */
export const STEP_BYTES = 256 * 1024;

/** The maximum number of blocks in one step. */
export const STEP_BLOCKS = 64;

interface OldRow {
  readonly seq: bigint;
  readonly at_ms: bigint;
}

interface OldContent {
  readonly device_id: string | null;
  readonly lines: bigint;
  readonly bytes: bigint;
  readonly data: Buffer;
}

interface OldBlock {
  readonly lane: LogLane;
  readonly seq: number;
  readonly atMs: number;
}

/** Prepares clearing in an open database. Call it only inside a transaction. */
export function createClearer(
  db: Database.Database,
  positions: PositionTable,
  missing: MissingTable,
): ArchiveMaintenance['clear'] {
  const oldest = db.prepare<[string, number, number], OldRow>(
    `SELECT seq, at_ms FROM block INDEXED BY block_age
     WHERE lane = +? AND at_ms < ? AND seq < ? ORDER BY at_ms, seq LIMIT ${STEP_BLOCKS}`,
  );
  const read = db.prepare<[number], OldContent>('SELECT device_id, lines, bytes, data FROM block WHERE seq = ?');
  const remove = db.prepare('DELETE FROM block WHERE seq = ?');
  const acknowledged = createAcknowledgedBelow(positions);
  const ranges = createLineRanges(db);
  const cleared = createCleared(db);
  const markMissing = createMissed(db, missing);
  const candidates = ({ active, beforeMs }: ClearOrder): OldBlock[] =>
    LOG_LANES.flatMap((lane) => {
      const below = acknowledged(lane, active);
      if (below === null) return [];
      const rows = oldest.all(lane, beforeMs ?? Number.MAX_SAFE_INTEGER, below);
      return rows.map((row) => ({ lane, seq: Number(row.seq), atMs: Number(row.at_ms) }));
    }).toSorted((a, b) => a.atMs - b.atMs || a.seq - b.seq);
  return (order) => {
    const done = { blocks: 0, lines: 0 };
    let bytes = 0;
    for (const block of candidates(order).slice(0, STEP_BLOCKS)) {
      const row = read.get(block.seq);
      if (row === undefined) continue;
      bytes += Number(row.bytes);
      if (done.blocks > 0 && bytes > STEP_BYTES) break;
      const deviceId = row.device_id ?? '';
      const lineRanges = ranges.rangesIn(deviceId, unpack(row.data));
      cleared.add(deviceId, lineRanges);
      markMissing(block, order, { deviceId, lineRanges });
      remove.run(block.seq);
      done.blocks += 1;
      done.lines += Number(row.lines);
    }
    return done;
  };
}

/**
 * Creates the function that adds lines to the missing points if they are cleared before a destination has acknowledged
 * them.
 */
function createMissed(db: Database.Database, missing: MissingTable) {
  const behind = db
    .prepare<[string, number], bigint>(
      `SELECT id FROM destination
       WHERE ifnull((SELECT block FROM position WHERE destination_id = id AND lane = ?), 0) <= ?`,
    )
    .pluck();
  const lose = createLosses(db, missing);
  return ({ lane, seq }: OldBlock, { configured }: ClearOrder, gone: Omit<Loss, 'reason'>): void => {
    for (const id of behind.all(lane, seq).map(Number)) {
      lose(id, { ...gone, reason: configured.includes(id) ? 'skipped_destination' : 'cleared' });
    }
  };
}

interface LineRanges {
  /** The ranges of some lines of a device; `deviceId` is empty for lines of no device. */
  rangesIn(deviceId: string, lines: readonly string[]): LineRange[];
  /** Whether the ranges before and after a gap may be joined; no remaining block may overlap the gap. */
  isOne(deviceId: string, kind: LineKind, gap: Interval): boolean;
}

/** Prepares the ranges of an open database. */
export function createLineRanges(db: Database.Database): LineRanges {
  const covered = db.prepare<[string], Interval>(
    'SELECT from_ns AS "from", to_ns AS "to" FROM coverage WHERE device_id = ? ORDER BY from_ns',
  );
  const kept = db
    .prepare<[string, EpochNs, EpochNs], bigint>(
      `SELECT 1 FROM block
       WHERE device_id = ? AND first_ns IS NOT NULL AND first_ns < ? AND last_ns >= ? LIMIT 1`,
    )
    .pluck();
  return {
    rangesIn: (deviceId, lines) => groupLineRanges(lines, covered.all(deviceId)),
    isOne: (deviceId, kind, gap) =>
      isOneRange(kind, gap, kind === 'other' ? [] : covered.all(deviceId)) &&
      (gap.from >= gap.to || kind === 'other' || kept.get(deviceId, gap.to, gap.from) === undefined),
  };
}

type LineKind = 'telemetry' | 'other';

/** A range that holds lines of one kind, and how many. */
interface LineRange extends Interval {
  readonly kind: LineKind;
  readonly points: number;
}

/**
 * The ranges of some lines, each kind by itself and ordered by time. Lines without a time are left out.
 *
 * @param covered the covered ranges of their device.
 */
export function groupLineRanges(lines: readonly string[], covered: Intervals): LineRange[] {
  const lineRanges: LineRange[] = [];
  for (const kind of ['telemetry', 'other'] as const) {
    const first = lineRanges.length;
    for (const [at, points] of lineTimes(lines, kind)) {
      const last = lineRanges.length > first ? lineRanges.at(-1) : undefined;
      const range = { kind, from: at, to: at + 1n, points };
      if (last !== undefined && isOneRange(kind, { from: last.to, to: at }, covered)) {
        lineRanges[lineRanges.length - 1] = joinRanges(last, range);
      } else lineRanges.push(range);
    }
  }
  return lineRanges;
}

/** Whether lines of a kind before and after a gap may be joined to one range. */
function isOneRange(kind: LineKind, { from, to }: Interval, covered: Intervals): boolean {
  // Facts are written about every hour, and none is looked up by its time.
  if (kind === 'other') return to - from <= DAY_NS;
  return from >= to || covered.some((range) => range.from <= from && to <= range.to);
}

/** Joins two ranges, including the time between them. */
function joinRanges(a: LineRange, b: LineRange): LineRange {
  return { ...a, from: minNs(a.from, b.from), to: maxNs(a.to, b.to), points: a.points + b.points };
}

/** The times of the lines of a kind, ascending, and how many lines each has. */
function lineTimes(lines: readonly string[], kind: LineKind): [EpochNs, number][] {
  const counts = new Map<string, number>();
  for (const line of lines) {
    if (isTelemetryLine(line) !== (kind === 'telemetry')) continue;
    const digits = line.slice(line.lastIndexOf(' ') + 1);
    counts.set(digits, (counts.get(digits) ?? 0) + 1);
  }
  return [...counts]
    .filter(([digits]) => isNsText(digits))
    .map(([digits, count]): [EpochNs, number] => [BigInt(digits), count])
    .sort(([a], [b]) => (a < b ? -1 : 1));
}

/** The record of cleared lines. */
export interface Cleared {
  /** Adds cleared lines of a device. Needs a transaction. */
  add(deviceId: string, lineRanges: readonly LineRange[]): void;
  /** Returns the complete record as the missing points of a new destination. */
  asMissing(): MissingPoints[];
}

interface ClearedRow {
  readonly device_id: string;
  readonly kind: LineKind;
  readonly from_ns: EpochNs;
  readonly to_ns: EpochNs;
  readonly points: bigint;
}

/** Prepares the table of an open database. */
export function createCleared(db: Database.Database): Cleared {
  const columns = 'SELECT device_id, kind, from_ns, to_ns, points FROM cleared';
  const touching = db.prepare<[string, string, EpochNs, EpochNs], ClearedRow>(
    `${columns} WHERE device_id = ? AND kind = ? AND from_ns <= ? AND to_ns >= ?`,
  );
  const before = db.prepare<[string, string, EpochNs], ClearedRow>(
    `${columns} WHERE device_id = ? AND kind = ? AND from_ns <= ? ORDER BY from_ns DESC LIMIT 1`,
  );
  const after = db.prepare<[string, string, EpochNs], ClearedRow>(
    `${columns} WHERE device_id = ? AND kind = ? AND from_ns >= ? ORDER BY from_ns LIMIT 1`,
  );
  const { isOne } = createLineRanges(db);
  const remove = db.prepare('DELETE FROM cleared WHERE device_id = ? AND kind = ? AND from_ns = ?');
  const insert = db.prepare('INSERT INTO cleared (device_id, kind, from_ns, to_ns, points) VALUES (?, ?, ?, ?, ?)');
  const all = db.prepare<[], ClearedRow>(`${columns} ORDER BY device_id, kind, from_ns`);
  const neighbours = (deviceId: string, { kind, from, to }: LineRange): ClearedRow[] => {
    const lower = before.get(deviceId, kind, from);
    const upper = after.get(deviceId, kind, to);
    return [
      ...touching.all(deviceId, kind, to, from),
      ...(lower !== undefined && lower.to_ns < from && isOne(deviceId, kind, { from: lower.to_ns, to: from })
        ? [lower]
        : []),
      ...(upper !== undefined && upper.from_ns > to && isOne(deviceId, kind, { from: to, to: upper.from_ns })
        ? [upper]
        : []),
    ];
  };
  const addOne = (deviceId: string, range: LineRange): void => {
    let joined = range;
    for (const row of neighbours(deviceId, range)) {
      remove.run(deviceId, row.kind, row.from_ns);
      joined = joinRanges(joined, toLineRange(row));
    }
    insert.run(deviceId, joined.kind, joined.from, joined.to, joined.points);
  };
  return {
    add: (deviceId, lineRanges) => {
      for (const range of lineRanges) addOne(deviceId, range);
    },
    asMissing: () =>
      all.all().map((row) => {
        const { from, to, points } = toLineRange(row);
        return { deviceId: row.device_id, fromNs: from, toNs: to, reason: 'cleared', points };
      }),
  };
}

function toLineRange(row: ClearedRow): LineRange {
  return { kind: row.kind, from: row.from_ns, to: row.to_ns, points: Number(row.points) };
}

/** The points that are lost for a destination. */
interface Loss {
  readonly deviceId: string;
  readonly lineRanges: readonly LineRange[];
  readonly reason: MissingReason;
}

/** Prepares the losses of an open database. Call the function, which adds a loss, only inside a transaction. */
export function createLosses(
  db: Database.Database,
  missing: MissingTable,
): (destinationId: number, loss: Loss) => void {
  const ofReason = 'FROM missing WHERE destination_id = ? AND device_id = ? AND reason = ?';
  const below = db
    .prepare<[number, string, string, EpochNs], EpochNs | null>(`SELECT max(to_ns) ${ofReason} AND from_ns <= ?`)
    .pluck();
  const above = db
    .prepare<[number, string, string, EpochNs], EpochNs | null>(`SELECT min(from_ns) ${ofReason} AND from_ns >= ?`)
    .pluck();
  const { isOne } = createLineRanges(db);
  return (id, { deviceId, lineRanges, reason }) => {
    for (const { kind, from, to, points } of lineRanges) {
      const last = below.get(id, deviceId, reason, from) ?? null;
      const next = above.get(id, deviceId, reason, to) ?? null;
      const fromNs = last !== null && last < from && isOne(deviceId, kind, { from: last, to: from }) ? last : from;
      const toNs = next !== null && isOne(deviceId, kind, { from: to, to: next }) ? next : to;
      missing.add(id, [{ deviceId, fromNs, toNs, reason, points }]);
    }
  };
}
