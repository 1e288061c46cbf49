/**
 * The archive: the durable log of points, in blocks of compressed line protocol.
 *
 * A block's number is its place in the log; within a lane blocks are delivered in that order. Lines that every
 * destination has acknowledged may be merged into larger blocks (`compaction.ts`) and cleared (`clearing.ts`). Promise:
 * lines are read back byte for byte as they were appended.
 */

import type Database from 'better-sqlite3';
import type { Interval, Intervals } from '../../core/intervals.ts';
import { isTelemetryLine } from '../../core/lines/line-reader.ts';
import {
  type ArchiveTotals,
  type KeptLines,
  type LogBatch,
  type LogLane,
  type LogPosition,
  type LogSegment,
  NEWLINE,
} from '../../core/state/log.ts';
import type { TimestampOffset } from '../../core/state/telemetry.ts';
import { type EpochMs, type EpochNs, isNsText, maxNs, minNs } from '../../core/time.ts';
import { type PackedBlock, pack, release, unpack, unpackText } from './block-codec.ts';

/** The contents of one block. `firstNs` and `lastNs` are the bounds of its telemetry lines; `null` if it has none. */
interface NewBlock {
  readonly lane: LogLane;
  readonly deviceId: string | null;
  readonly firstNs: EpochNs | null;
  readonly lastNs: EpochNs | null;
  readonly lines: readonly string[];
  /** The lines that are not telemetry. If absent, they are searched for. */
  readonly sideLines?: readonly string[];
}

/** The blocks of lines, and their order in the log. */
export interface Archive {
  append(block: NewBlock): void;
  /** Archives lines that belong to no single device: of the workspace, of several devices. */
  appendFacts(lines: readonly string[], lane?: LogLane): void;
  read(lane: LogLane, from: LogPosition, limits: { lines: number; bytes: number }): LogBatch;
  newestLines(): readonly string[];
  /** Lines of the device's blocks with telemetry in the range. */
  linesAround(deviceId: string, from: EpochNs, to: EpochNs): string[];
  /** The offsets of a device that were recorded or written in the range. */
  offsetsAround(deviceId: string, from: EpochNs, to: EpochNs): TimestampOffset[];
  addOffsets(deviceId: string, offsets: readonly TimestampOffset[]): void;
  /** The cleared ranges of a device's telemetry lines that overlap this range. */
  clearedAround(deviceId: string, from: EpochNs, to: EpochNs): Intervals;
  /** The time of the newest telemetry line of a device, including cleared ones. */
  newestNs(deviceId: string): EpochNs | null;
  /** The number of lines of a lane after a position. */
  linesAfter(lane: LogLane, position: LogPosition): number;
  /** The position after the last line of a lane. */
  endOf(lane: LogLane): LogPosition;
  totals(): ArchiveTotals;
}

interface BlockRow extends PackedBlock {
  readonly seq: bigint;
  readonly lines: bigint;
  readonly first_ns: EpochNs | null;
  readonly last_ns: EpochNs | null;
  readonly side_from_ns: EpochNs | null;
  readonly side_to_ns: EpochNs | null;
}

interface OffsetRow {
  readonly recorded_ns: bigint;
  readonly sensor: string;
  readonly field: string;
  readonly written_ns: bigint;
}

/** The running sums have one row per this many block numbers (`log_sum`). */
const PART = 1024;

/**
 * The blocks around a range. The `+` in `= +?`, here and in other statements, avoids a slow plan: for a statement that
 * orders rows, SQLite otherwise makes a new plan at each run for the value of the compared column, which takes several
 * times as long as the search.
 */
const AROUND = `SELECT data, bytes FROM block
  WHERE device_id = +? AND first_ns <= ? AND last_ns >= ? AND first_ns IS NOT NULL ORDER BY seq`;

/**
 * Prepares the archive of an open database.
 *
 * @param nowMs returns the time of archiving; by default SQLite's clock is used.
 */
export function createArchive(db: Database.Database, nowMs?: () => EpochMs): Archive {
  const insert = db.prepare(
    `INSERT INTO block (lane, device_id, first_ns, last_ns, lines, bytes, data, at_ms, side_from_ns, side_to_ns)
     VALUES (?, ?, ?, ?, ?, ?, ?, ifnull(?, CAST(unixepoch('subsec') * 1000 AS INTEGER)), ?, ?)`,
  );
  const next = db.prepare<[string, number], BlockRow>(
    `SELECT seq, lines, bytes, data, first_ns, last_ns, side_from_ns, side_to_ns FROM block
     WHERE lane = +? AND seq >= ? ORDER BY seq`,
  );
  const around = db.prepare<[string, bigint, bigint], PackedBlock>(AROUND);
  const newest = db
    .prepare<[string, string], bigint | null>(
      `SELECT max(at) FROM (
         SELECT max(last_ns) AS at FROM block WHERE device_id = +? AND first_ns IS NOT NULL
         UNION ALL SELECT max(to_ns) - 1 FROM cleared WHERE device_id = +? AND kind = 'telemetry')`,
    )
    .pluck();
  const cleared = db.prepare<[string, bigint, bigint], Interval>(
    `SELECT from_ns AS "from", to_ns AS "to" FROM cleared
     WHERE device_id = +? AND kind = 'telemetry' AND from_ns <= ? AND to_ns > ? ORDER BY from_ns`,
  );
  const last = db.prepare<[string], bigint | null>('SELECT max(seq) FROM block WHERE lane = ?').pluck();
  const { after, totals } = prepareSums(db);
  const offsets = db.prepare<[string, bigint, bigint, bigint, bigint], OffsetRow>(
    `SELECT recorded_ns, sensor, field, written_ns FROM time_offset
     WHERE device_id = ? AND (recorded_ns BETWEEN ? AND ? OR written_ns BETWEEN ? AND ?)`,
  );
  const addOffset = db.prepare(
    'INSERT INTO time_offset (device_id, recorded_ns, sensor, field, written_ns) VALUES (?, ?, ?, ?, ?)',
  );
  const append = ({ lane, deviceId, firstNs, lastNs, lines, sideLines = lines }: NewBlock): void => {
    if (lines.length === 0) return;
    const { data, bytes } = pack(lines);
    const atMs = nowMs === undefined ? null : Math.floor(nowMs());
    const side = sideRange(sideLines);
    const sides = [side?.first ?? null, side?.last ?? null];
    insert.run(lane, deviceId, firstNs, lastNs, lines.length, bytes, data, atMs, ...sides);
    release(data);
  };
  return {
    append,
    appendFacts: (lines, lane = 'live') => append({ lane, deviceId: null, firstNs: null, lastNs: null, lines }),
    read: (lane, from, limits) => readBatch(next.iterate(lane, from.block), from, limits),
    newestLines: createNewestLines(db),
    linesAround: (deviceId, from, to) =>
      around.all(deviceId, to, from).flatMap(({ data, bytes }) => unpack(data, Number(bytes))),
    offsetsAround: (deviceId, from, to) => offsets.all(deviceId, from, to, from, to).map(toOffset),
    addOffsets: (deviceId, added) => {
      for (const offset of added)
        addOffset.run(deviceId, offset.recordedNs, offset.sensor, offset.field, offset.writtenNs);
    },
    clearedAround: (deviceId, from, to) => cleared.all(deviceId, to, from),
    newestNs: (deviceId) => newest.get(deviceId, deviceId) ?? null,
    endOf: (lane) => ({ block: Number(last.get(lane) ?? -1n) + 1, line: 0 }),
    totals,
    linesAfter: after,
  };
}

/** The lines of the newest block without readings, and of the newest one with readings. */
function createNewestLines(db: Database.Database): () => readonly string[] {
  const blocks = ['first_ns IS NULL', 'first_ns IS NOT NULL'].map((kind) =>
    db.prepare<[], PackedBlock>(`SELECT data, bytes FROM block WHERE ${kind} ORDER BY seq DESC LIMIT 1`),
  );
  return () => blocks.flatMap((block) => block.all()).flatMap(({ data, bytes }) => unpack(data, Number(bytes)));
}

/** Prepares to read the lines of a block; there are none if the block is gone. */
export function prepareLines(db: Database.Database): (seq: bigint) => readonly string[] {
  const data = db.prepare<[bigint], Buffer>('SELECT data FROM block WHERE seq = ?').pluck();
  return (seq) => {
    const packed = data.get(seq);
    return packed === undefined ? [] : unpack(packed);
  };
}

/** The times of the first and the last line that is not telemetry; `null` if there is none. */
function sideRange(lines: readonly string[]): { readonly first: EpochNs; readonly last: EpochNs } | null {
  const times: EpochNs[] = [];
  for (const line of lines) {
    if (isTelemetryLine(line)) continue;
    const digits = line.slice(line.lastIndexOf(' ') + 1);
    if (isNsText(digits)) times.push(BigInt(digits));
  }
  const [one] = times;
  return one === undefined ? null : { first: times.reduce(minNs, one), last: times.reduce(maxNs, one) };
}

/** The sums. They are cheap for any number of blocks, because running sums are stored. */
function prepareSums(db: Database.Database): { after: Archive['linesAfter']; totals: Archive['totals'] } {
  const after = db
    .prepare<[string, number, string, number, number], bigint>(
      `SELECT (SELECT ifnull(sum(lines), 0) FROM log_sum WHERE lane = ? AND part > ?)
            + (SELECT ifnull(sum(lines), 0) FROM block WHERE lane = ? AND seq >= ? AND seq < ?)`,
    )
    .pluck();
  const isKept = db.prepare<[number], bigint>('SELECT 1 FROM block WHERE seq = ?').pluck();
  const totals = db.prepare<[], Readonly<Record<keyof ArchiveTotals, bigint>>>(
    `SELECT readings, points,
            (SELECT ifnull(sum(lines), 0) FROM log_sum) AS lines,
            (SELECT ifnull(sum(bytes), 0) FROM log_sum) AS bytes,
            (SELECT count(*) FROM quarantine WHERE destination_id IS NULL) AS rejectedRecords,
            (SELECT ifnull(max(id), 0) FROM request) AS requests
     FROM day_total`,
  );
  return {
    after: (lane, { block, line }) => {
      const part = Math.floor(block / PART);
      const from = Number(after.get(lane, part, lane, block, (part + 1) * PART) ?? 0n);
      // A cleared block is not counted, so nothing is subtracted for it.
      return line === 0 || isKept.get(block) === undefined ? from : from - line;
    },
    totals: () => {
      const sums = totals.get();
      return {
        readings: Number(sums?.readings ?? 0n),
        points: Number(sums?.points ?? 0n),
        lines: Number(sums?.lines ?? 0n),
        bytes: Number(sums?.bytes ?? 0n),
        rejectedRecords: Number(sums?.rejectedRecords ?? 0n),
        requests: Number(sums?.requests ?? 0n),
      };
    },
  };
}

function toOffset(row: OffsetRow): TimestampOffset {
  return { recordedNs: row.recorded_ns, sensor: row.sensor, field: row.field, writtenNs: row.written_ns };
}

/**
 * A batch with this many bytes ends with a complete block if the next one does not fit, because a block that is divided
 * is decompressed twice.
 */
const FULL_BATCH_BYTES = 256 * 1024;

/** Collects lines from block after block until a limit is reached. It takes at least one line, however long. */
function readBatch(
  rows: IterableIterator<BlockRow>,
  from: LogPosition,
  limits: { lines: number; bytes: number },
): LogBatch {
  const parts: Buffer[] = [];
  const segments: LogSegment[] = [];
  const times: EpochNs[] = [];
  let [count, bytes] = [0, 0];
  for (const row of rows) {
    const block = Number(row.seq);
    const start = block === from.block ? from.line : 0;
    const all = Number(row.lines);
    const room = { lines: limits.lines - count, bytes: limits.bytes - bytes, isEmpty: count === 0 };
    const fits = start === 0 && all <= room.lines && Number(row.bytes) <= room.bytes;
    if (!fits && bytes >= FULL_BATCH_BYTES) break;
    const plain = unpackText(row);
    const { text, lines } = fits ? { text: plain, lines: all } : cutLines(plain, start, room);
    if (lines > 0) {
      parts.push(text);
      times.push(...timesOf(row));
      segments.push({ block, line: start, lines, rest: start + lines < all });
      count += lines;
      bytes += text.length + 1;
    }
    if (start + lines < all) break;
  }
  return joinBatch(parts, { count, times, segments });
}

/** The lines of a text from a given one on, as many as fit; at least one if the batch is empty. */
function cutLines(
  text: Buffer,
  start: number,
  room: { readonly lines: number; readonly bytes: number; readonly isEmpty: boolean },
): { readonly text: Buffer; readonly lines: number } {
  let from = 0;
  for (let line = 0; line < start; line += 1) from = endOfLine(text, from) + 1;
  let [end, lines] = [from, 0];
  for (let next = from; next < text.length; lines += 1) {
    const lineEnd = endOfLine(text, next);
    const isRoom = lines < room.lines && lineEnd - from <= room.bytes;
    if (!isRoom && (lines > 0 || !room.isEmpty)) break;
    end = lineEnd;
    next = lineEnd + 1;
  }
  return { text: text.subarray(from, end), lines };
}

function endOfLine(text: Buffer, from: number): number {
  const end = text.indexOf(NEWLINE, from);
  return end === -1 ? text.length : end;
}

function joinBatch(
  parts: readonly Buffer[],
  {
    count,
    times,
    segments,
  }: { readonly count: number; readonly times: readonly EpochNs[]; readonly segments: readonly LogSegment[] },
): LogBatch {
  const text = Buffer.allocUnsafeSlow(parts.reduce((sum, part) => sum + part.length + 1, 0));
  let at = 0;
  for (const part of parts) {
    at = text.writeUInt8(NEWLINE, at + part.copy(text, at));
    release(part);
  }
  let lines: readonly string[] | null = null;
  return {
    text,
    count,
    extent: timesExtent(times),
    segments,
    get lines() {
      lines ??= count === 0 ? [] : text.toString('utf8', 0, text.length - 1).split('\n');
      return lines;
    },
  };
}

function timesOf({ first_ns, last_ns, side_from_ns, side_to_ns }: BlockRow): EpochNs[] {
  return [first_ns, last_ns, side_from_ns, side_to_ns].filter((at) => at !== null);
}

function timesExtent(times: readonly EpochNs[]): KeptLines['extent'] {
  const [one] = times;
  return one === undefined ? null : { first: times.reduce(minNs, one), last: times.reduce(maxNs, one) };
}
