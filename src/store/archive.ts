/**
 * The archive: the durable log of points, in blocks of compressed line protocol.
 *
 * A block is written once and never changed; its number is its place in the log. Within a lane blocks are delivered in
 * that order. It promises that what is read back is, byte for byte, what was appended.
 */
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import type Database from 'better-sqlite3';
import type { ArchiveTotals, LogBatch, LogLane, LogPosition, LogSegment } from '../core/log-state.ts';
import type { Tie } from '../core/telemetry-state.ts';
import type { EpochNs } from '../core/time.ts';

/** What one block holds. `firstNs` and `lastNs` bound its telemetry lines; `null` where it has none. */
export interface NewBlock {
  readonly lane: LogLane;
  readonly deviceId: string | null;
  readonly firstNs: EpochNs | null;
  readonly lastNs: EpochNs | null;
  readonly lines: readonly string[];
}

export interface Archive {
  append(block: NewBlock): void;
  read(lane: LogLane, from: LogPosition, limits: { lines: number; bytes: number }): LogBatch;
  /** Lines of the device's blocks with telemetry in the stretch. */
  linesAround(deviceId: string, from: EpochNs, to: EpochNs): string[];
  /** The displacements of a device that were recorded or written in the stretch. */
  tiesAround(deviceId: string, from: EpochNs, to: EpochNs): Tie[];
  addTies(deviceId: string, ties: readonly Tie[]): void;
  /** The time of the newest telemetry line of a device. */
  newestNs(deviceId: string): EpochNs | null;
  /** Lines of a lane after a position. */
  linesAfter(lane: LogLane, position: LogPosition): number;
  totals(): ArchiveTotals;
}

interface BlockRow {
  readonly seq: bigint;
  readonly lines: bigint;
  readonly data: Buffer;
}

interface TieRow {
  readonly recorded_ns: bigint;
  readonly sensor: string;
  readonly field: string;
  readonly written_ns: bigint;
}

/**
 * Level 1: half the size of deflate at half its time, on lines that repeat as ours do. With a checksum: SQLite has none,
 * and two bits in three that flip in a block would give other lines without a word.
 */
const COMPRESSION = { params: { [constants.ZSTD_c_compressionLevel]: 1, [constants.ZSTD_c_checksumFlag]: 1 } };

const pack = (lines: readonly string[]): { data: Buffer; bytes: number } => {
  const text = Buffer.from(lines.join('\n'), 'utf8');
  return { data: zstdCompressSync(text, COMPRESSION), bytes: text.length };
};

const unpack = (data: Buffer): string[] => zstdDecompressSync(data).toString('utf8').split('\n');

/** Prepares the archive of an open database. */
export function createArchive(db: Database.Database): Archive {
  const insert = db.prepare(
    'INSERT INTO block (lane, device_id, first_ns, last_ns, lines, bytes, data) VALUES (?, ?, ?, ?, ?, ?, ?)',
  );
  const next = db.prepare<[string, number], BlockRow>(
    'SELECT seq, lines, data FROM block WHERE lane = ? AND seq >= ? ORDER BY seq',
  );
  const around = db.prepare<[string, bigint, bigint], { data: Buffer }>(
    'SELECT data FROM block WHERE device_id = ? AND first_ns <= ? AND last_ns >= ? AND first_ns IS NOT NULL ORDER BY seq',
  );
  const newest = db
    .prepare<[string], bigint | null>('SELECT max(last_ns) FROM block WHERE device_id = ? AND first_ns IS NOT NULL')
    .pluck();
  const after = db
    .prepare<[string, number], bigint>('SELECT ifnull(sum(lines), 0) FROM block WHERE lane = ? AND seq >= ?')
    .pluck();
  const totals = db.prepare<[], Readonly<Record<keyof ArchiveTotals, bigint>>>(
    `SELECT (SELECT ifnull(sum(readings), 0) FROM day_sum) AS readings,
            (SELECT ifnull(sum(points), 0) FROM day_sum) AS points,
            (SELECT ifnull(sum(lines), 0) FROM block) AS lines,
            (SELECT ifnull(sum(length(data)), 0) FROM block) AS bytes,
            (SELECT count(*) FROM quarantine WHERE destination_id IS NULL) AS rejectedRecords,
            (SELECT ifnull(max(id), 0) FROM request) AS requests`,
  );
  const ties = db.prepare<[string, bigint, bigint, bigint, bigint], TieRow>(
    `SELECT recorded_ns, sensor, field, written_ns FROM tie
     WHERE device_id = ? AND (recorded_ns BETWEEN ? AND ? OR written_ns BETWEEN ? AND ?)`,
  );
  const addTie = db.prepare(
    'INSERT INTO tie (device_id, recorded_ns, sensor, field, written_ns) VALUES (?, ?, ?, ?, ?)',
  );
  return {
    append: ({ lane, deviceId, firstNs, lastNs, lines }) => {
      if (lines.length === 0) return;
      const { data, bytes } = pack(lines);
      insert.run(lane, deviceId, firstNs, lastNs, lines.length, bytes, data);
    },
    read: (lane, from, limits) => readBatch(next.iterate(lane, from.block), from, limits),
    linesAround: (deviceId, from, to) => around.all(deviceId, to, from).flatMap(({ data }) => unpack(data)),
    tiesAround: (deviceId, from, to) => ties.all(deviceId, from, to, from, to).map(toTie),
    addTies: (deviceId, added) => {
      for (const tie of added) addTie.run(deviceId, tie.recordedNs, tie.sensor, tie.field, tie.writtenNs);
    },
    newestNs: (deviceId) => newest.get(deviceId) ?? null,
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
    linesAfter: (lane, { block, line }) => Number(after.get(lane, block) ?? 0n) - line,
  };
}

function toTie(row: TieRow): Tie {
  return { recordedNs: row.recorded_ns, sensor: row.sensor, field: row.field, writtenNs: row.written_ns };
}

/** Gathers lines from block after block until a limit is reached; one line is always taken, however long. */
function readBatch(
  rows: IterableIterator<BlockRow>,
  from: LogPosition,
  limits: { lines: number; bytes: number },
): LogBatch {
  const lines: string[] = [];
  const segments: LogSegment[] = [];
  let bytes = 0;
  const room = (line: string): boolean =>
    lines.length === 0 || (lines.length < limits.lines && bytes + Buffer.byteLength(line) <= limits.bytes);
  for (const row of rows) {
    const block = Number(row.seq);
    const start = block === from.block ? from.line : 0;
    const all = unpack(row.data);
    let end = start;
    for (let line = all[end]; line !== undefined && room(line); line = all[end]) {
      lines.push(line);
      bytes += Buffer.byteLength(line) + 1;
      end += 1;
    }
    if (end > start) segments.push({ block, line: start, lines: end - start, rest: end < all.length });
    if (end < all.length) break;
  }
  return { lines, segments };
}
