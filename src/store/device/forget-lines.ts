/**
 * Removes the lines of a device from the log: the blocks that belong to it, and its lines in blocks that several
 * devices share (facts of devices, alerts, coverage).
 *
 * Promise: when a block loses lines, each destination's position in it stays behind the same line. A block stays as it
 * is while a destination has not acknowledged the device's lines in it.
 */
import type Database from 'better-sqlite3';
import { readLine } from '../../core/lines/line-reader.ts';
import type { LogLane } from '../../core/state/log.ts';
import { prepareLines } from '../archive/archive.ts';
import { pack } from '../archive/block-codec.ts';
import type { PositionTable } from '../delivery/positions.ts';

interface BlockRow {
  readonly seq: bigint;
  readonly lane: LogLane;
  readonly device_id: string | null;
  readonly lines: bigint;
  readonly bytes: bigint;
}

/** The progress of the scan of the log after one step, and the lines that it removed. */
interface LineStep {
  /** The last block that was checked; `null` after the end of the log. */
  readonly at: number | null;
  readonly removed: number;
  /** Whether some of the device's lines wait for a destination. Only the last step sets it. */
  readonly isWaiting: boolean;
  /** How much of the log is done, 0 to 1. */
  readonly share: number;
}

/** Which lines to remove, and where to start. */
interface LineOrder {
  readonly deviceId: string;
  /** The last block that earlier steps have checked; 0 to start. */
  readonly after: number;
  /** The destinations that must have acknowledged a line before it is removed. */
  readonly configured: readonly number[];
}

/** The indexes of the lines with a device's tag. */
export function lineIndexes(lines: readonly string[], tag: string): number[] {
  const indexes: number[] = [];
  lines.forEach((line, index) => {
    if (line.includes('device_id=') && readLine(line).tags.some(([key, value]) => key === 'device_id' && value === tag))
      indexes.push(index);
  });
  return indexes;
}

/** The prepared statements of the removal, and its state between steps. */
export interface LineRemoval {
  readonly limits: { readonly rows: number; readonly bytes: number };
  readonly next: Database.Statement<[number], BlockRow>;
  readonly end: Database.Statement<[], bigint>;
  readonly linesOf: (seq: bigint) => readonly string[];
  readonly remove: Database.Statement<[bigint]>;
  readonly rewrite: Database.Statement<[number, number, Buffer, bigint]>;
  readonly own: Database.Statement<[string], bigint>;
  readonly positions: PositionTable;
  /**
   * The devices with lines that a destination has not acknowledged, as far as this scan has found any. A scan that
   * continues after a restart finds such lines at its end in any case.
   */
  readonly waiting: Set<string>;
}

/** Prepares the removal for an open database. */
export function createLineRemoval(
  db: Database.Database,
  positions: PositionTable,
  limits: { rows: number; bytes: number },
): LineRemoval {
  return {
    limits,
    next: db.prepare(
      `SELECT seq, lane, device_id, lines, bytes FROM block WHERE seq > ? ORDER BY seq LIMIT ${limits.rows}`,
    ),
    end: db.prepare<[], bigint>('SELECT ifnull(max(seq), 0) FROM block').pluck(),
    linesOf: prepareLines(db),
    remove: db.prepare('DELETE FROM block WHERE seq = ?'),
    rewrite: db.prepare('UPDATE block SET lines = ?, bytes = ?, data = ? WHERE seq = ?'),
    own: db.prepare<[string], bigint>('SELECT 1 FROM block WHERE device_id = ? LIMIT 1').pluck(),
    positions,
    waiting: new Set(),
  };
}

/**
 * Removes the lines of a device from the next blocks. Call it only inside a transaction.
 *
 * @param tag the `device_id` tag of the device's lines
 */
export function removeLines(removal: LineRemoval, tag: string, { deviceId, after, configured }: LineOrder): LineStep {
  const { next, own, end, waiting } = removal;
  if (after === 0) waiting.delete(deviceId);
  const rows = next.all(after);
  const last = rows.at(-1);
  if (last === undefined) {
    const isWaiting = waiting.has(deviceId) || own.get(deviceId) !== undefined;
    return { at: null, removed: 0, isWaiting, share: 1 };
  }
  const candidates = rows.filter(({ device_id }) => device_id === null || device_id === deviceId);
  const { at, removed, isWaiting } = removeFromBlocks(removal, candidates, tag, configured);
  if (isWaiting) waiting.add(deviceId);
  // After the last candidate no row is left to check.
  const reached = at === null || at === Number(candidates.at(-1)?.seq) ? Number(last.seq) : at;
  return { at: reached, removed, isWaiting: false, share: reached / Math.max(reached, Number(end.get() ?? 0n)) };
}

function removeFromBlocks(removal: LineRemoval, rows: readonly BlockRow[], tag: string, configured: readonly number[]) {
  const done = { at: null as number | null, removed: 0, isWaiting: false };
  let bytes = 0;
  for (const row of rows) {
    if (bytes > removal.limits.bytes) break;
    done.at = Number(row.seq);
    const removed =
      row.device_id === null ? removeFromShared(removal, row, tag, configured) : removeBlock(removal, row, configured);
    done.isWaiting ||= removed === null;
    done.removed += removed ?? 0;
    bytes += Number(row.bytes);
  }
  return done;
}

/**
 * Removes a block that belongs to the device.
 *
 * @returns the number of lines; `null` if some are not acknowledged yet
 */
function removeBlock({ remove, positions }: LineRemoval, row: BlockRow, configured: readonly number[]): number | null {
  if (!areBehind(positions, row, Number(row.lines) - 1, configured)) return null;
  remove.run(row.seq);
  positions.shift(row.lane, row.seq, () => 0);
  return Number(row.lines);
}

/**
 * Removes the device's lines from a block with lines of many devices.
 *
 * @returns the number of lines; `null` if some are not acknowledged yet
 */
function removeFromShared(
  { linesOf, remove, rewrite, positions }: LineRemoval,
  row: BlockRow,
  tag: string,
  configured: readonly number[],
): number | null {
  const lines = linesOf(row.seq);
  const removed = lineIndexes(lines, tag);
  const last = removed.at(-1);
  if (last === undefined) return 0;
  if (!areBehind(positions, row, last, configured)) return null;
  const isRemoved = new Set(removed);
  const kept = lines.filter((_, index) => !isRemoved.has(index));
  if (kept.length === 0) remove.run(row.seq);
  else {
    const packed = pack(kept);
    rewrite.run(kept.length, packed.bytes, packed.data, row.seq);
  }
  positions.shift(row.lane, row.seq, (line) => line - removed.filter((at) => at < line).length);
  return removed.length;
}

/** Whether all of the destinations have acknowledged a line of a block. */
function areBehind(
  { read }: PositionTable,
  { lane, seq }: BlockRow,
  line: number,
  destinations: readonly number[],
): boolean {
  return destinations.every((id) => {
    const at = read(id, lane);
    return at.block > seq || (BigInt(at.block) === seq && at.line > line);
  });
}
