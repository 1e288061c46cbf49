/**
 * Compaction: merges acknowledged blocks of a device into larger ones, at their position in the log.
 *
 * Successive blocks of one device and lane that were archived on the same day are merged: first thirty-two at a time,
 * and finally once the day is over or the blocks are large. So a line is written at most three times, a block covers at
 * most one day of archiving, and it stays small enough to be merged, searched and delivered quickly. Large pages, such
 * as those of a backfill, are merged without being packed again.
 *
 * Promise: a merged block contains the lines of its parts, byte for byte and in order, under the lowest of their
 * numbers. One transaction writes it and removes the parts. A reader with an earlier position reads the same lines. No
 * configured destination has its position among the parts. A destination that is no longer configured and has its
 * position there loses the position in that lane, and would be filled from the beginning.
 */
import type Database from 'better-sqlite3';
import type { CompactionGroup, LogReaders } from '../../core/state/archive.ts';
import type { LogLane } from '../../core/state/log.ts';
import { DAY_MS, type EpochMs, type EpochNs } from '../../core/time.ts';
import type { PositionTable } from '../delivery/positions.ts';
import { release, repack } from './block-codec.ts';

interface Compactor {
  /** The groups that may yield a merge; the others certainly do not. */
  groups(nowMs: EpochMs): CompactionGroup[];
  /**
   * Compacts some blocks. Call it only inside a transaction.
   *
   * @returns whether there was something to compact.
   */
  compact(group: CompactionGroup, readers: LogReaders, nowMs: EpochMs): boolean;
}

interface HotRow extends Pick<BlockRow, 'seq' | 'at_ms' | 'bytes'> {
  readonly level: bigint;
}

interface BlockRow {
  readonly seq: bigint;
  readonly first_ns: EpochNs | null;
  readonly last_ns: EpochNs | null;
  readonly side_from_ns: EpochNs | null;
  readonly side_to_ns: EpochNs | null;
  readonly at_ms: bigint;
  readonly lines: bigint;
  readonly bytes: bigint;
  readonly data: Buffer;
}

/** Prepares compaction in an open database. */
export function createCompactor(db: Database.Database, positions: PositionTable): Compactor {
  // Blocks that cannot form a run are excluded here: thousands of devices each have a few small blocks all day.
  const groups = db.prepare<[number], { lane: LogLane; device_id: string | null }>(
    `SELECT lane, device_id FROM block INDEXED BY block_hot WHERE level < 2 GROUP BY lane, device_id
     HAVING count(*) >= ${RUN_BLOCKS} OR sum(bytes) + count(*) > ${FULL_BLOCK_BYTES}
         OR min(at_ms) < ? OR min(at_ms) / ${DAY_MS} < max(at_ms) / ${DAY_MS}`,
  );
  const hot = db.prepare<[string, string | null, number], HotRow>(
    `SELECT seq, level, at_ms, bytes FROM block INDEXED BY block_hot
     WHERE level < 2 AND lane = +? AND device_id IS +? AND seq < ? ORDER BY seq LIMIT ${RUN_CANDIDATES}`,
  );
  const acknowledged = createAcknowledgedBelow(positions);
  const mark = db.prepare('UPDATE block SET level = ? WHERE seq = ?');
  const merge = createMerge(db, positions);
  return {
    groups: (nowMs) =>
      groups.all(Math.floor(nowMs / DAY_MS) * DAY_MS).map((row) => ({ lane: row.lane, deviceId: row.device_id })),
    compact: ({ lane, deviceId }, { configured }, nowMs) => {
      const below = acknowledged(lane, configured) ?? Number.MAX_SAFE_INTEGER;
      const run = chooseRun(hot.all(lane, deviceId, below).map(toHotBlock), nowMs);
      if (run === null) return false;
      const [first, ...others] = run.seqs;
      if (others.length === 0) mark.run(run.level, first);
      else merge(lane, run.seqs, run.level);
      return true;
    },
  };
}

/**
 * Returns the block below which some destinations have acknowledged everything, per lane; `null` if there is no
 * destination. A destination without a position is at the beginning.
 */
export function createAcknowledgedBelow({ read }: Pick<PositionTable, 'read'>) {
  return (lane: LogLane, destinations: readonly number[]): number | null =>
    destinations.length === 0 ? null : Math.min(...destinations.map((id) => read(id, lane).block));
}

function createMerge(db: Database.Database, positions: PositionTable) {
  const read = db.prepare<[number], BlockRow>(
    'SELECT seq, first_ns, last_ns, side_from_ns, side_to_ns, at_ms, lines, bytes, data FROM block WHERE seq = ?',
  );
  const write = db.prepare(
    `UPDATE block SET first_ns = ?, last_ns = ?, side_from_ns = ?, side_to_ns = ?,
       lines = ?, bytes = ?, data = ?, at_ms = ?, level = ? WHERE seq = ?`,
  );
  const remove = db.prepare('DELETE FROM block WHERE seq = ?');
  return (lane: LogLane, seqs: readonly number[], level: number): void => {
    const rows = seqs.flatMap((seq) => read.get(seq) ?? []);
    const [first, last] = [seqs[0], seqs.at(-1)];
    if (first === undefined || last === undefined || rows.length !== seqs.length) {
      throw new Error(`blocks to be merged do not exist: ${seqs.join(', ')}`);
    }
    const { data, bytes } = repack(rows);
    const lines = rows.reduce((sum, row) => sum + row.lines, 0n);
    const firstNs = least(rows.map((row) => row.first_ns));
    const lastNs = greatest(rows.map((row) => row.last_ns));
    const sides = [least(rows.map((row) => row.side_from_ns)), greatest(rows.map((row) => row.side_to_ns))];
    const atMs = rows.reduce((newest, { at_ms }) => (at_ms > newest ? at_ms : newest), 0n);
    write.run(firstNs, lastNs, ...sides, lines, bytes, data, atMs, level, first);
    for (const each of [data, ...rows.map((row) => row.data)]) release(each);
    for (const seq of seqs.slice(1)) remove.run(seq);
    // A destination with its position between the first and the last block has some of the lines and not the others.
    positions.dropBetween(lane, first, last);
  };
}

function least(values: readonly (bigint | null)[]): bigint | null {
  return values.reduce((found, value) => (found === null || (value !== null && value < found) ? value : found), null);
}

function greatest(values: readonly (bigint | null)[]): bigint | null {
  return values.reduce((found, value) => (found === null || (value !== null && value > found) ? value : found), null);
}

function toHotBlock(row: HotRow): HotBlock {
  return { seq: Number(row.seq), level: Number(row.level), atMs: Number(row.at_ms), bytes: Number(row.bytes) };
}

/** A block that may still be merged; `bytes` is its uncompressed size. */
export interface HotBlock {
  readonly seq: number;
  /** 0: as its page was archived; 1: merged once. */
  readonly level: number;
  readonly atMs: EpochMs;
  readonly bytes: number;
}

/** Blocks to merge into one of that level. A single block is only marked. */
interface CompactionRun {
  readonly seqs: readonly number[];
  readonly level: 1 | 2;
}

/**
 * The largest uncompressed size of a merged block, unless a single page was larger: about a day of three sensors per
 * minute. SQLite gives each block its own pages of 4 KiB, and the last one is half empty on average.
 */
export const FULL_BLOCK_BYTES = 512 * 1024;

/** How many blocks are merged at once. */
export const RUN_BLOCKS = 32;

/** How many blocks of a group have to be checked to find a run. */
export const RUN_CANDIDATES = 3 * RUN_BLOCKS;

const dayOf = ({ atMs }: Pick<HotBlock, 'atMs'>): number => Math.floor(atMs / DAY_MS);

/**
 * The first run among the acknowledged blocks of one device and lane.
 *
 * @param blocks in the order of the log, at most {@link RUN_CANDIDATES}.
 * @returns `null` if all blocks have to wait for more, or for the end of their day.
 */
export function chooseRun(blocks: readonly HotBlock[], nowMs: EpochMs): CompactionRun | null {
  const first = blocks[0];
  if (first === undefined) return null;
  const ofDay = takeWhile(blocks, (block) => dayOf(block) === dayOf(first));
  const whole = takeUntilFull(ofDay);
  const fresh = ofDay.filter(({ level }) => level === 0);
  const gathered = takeUntilFull(fresh);
  const isLarge = whole.length < ofDay.length && whole.length < RUN_BLOCKS;
  const isCrowded = whole.length === RUN_BLOCKS && whole.every(({ level }) => level > 0);
  if (isLarge || isCrowded) return compactionRun(whole, 2);
  // Many small blocks are merged first, so that each step stays small.
  if (gathered.length === RUN_BLOCKS || gathered.length < fresh.length) return compactionRun(gathered, 1);
  const isOver = ofDay.length < blocks.length || dayOf(first) < dayOf({ atMs: nowMs });
  return isOver ? compactionRun(whole, 2) : null;
}

function compactionRun(blocks: readonly HotBlock[], level: CompactionRun['level']): CompactionRun {
  return { seqs: blocks.map(({ seq }) => seq), level };
}

/** The first blocks that fit together into one; at least one. */
function takeUntilFull(blocks: readonly HotBlock[]): readonly HotBlock[] {
  let bytes = 0;
  return takeWhile(blocks, (block, index) => {
    bytes += block.bytes + 1;
    return index === 0 || (index < RUN_BLOCKS && bytes <= FULL_BLOCK_BYTES);
  });
}

function takeWhile(
  blocks: readonly HotBlock[],
  belongs: (block: HotBlock, index: number) => boolean,
): readonly HotBlock[] {
  const end = blocks.findIndex((block, index) => !belongs(block, index));
  return end === -1 ? blocks : blocks.slice(0, end);
}
