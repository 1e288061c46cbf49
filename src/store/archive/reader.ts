/**
 * Reads the archive in the order of time, over any connection to the state, including read-only ones. It implements
 * `ArchiveReader` of `core/state/archive.ts`, and opens the archive for commands that only read.
 *
 * Promise: a step is one short read transaction. Its memory is limited to its lines, one block and a list of blocks,
 * however the blocks of a device overlap. A step begins and ends at a time, so blocks may be merged or cleared between
 * two steps.
 */

import type Database from 'better-sqlite3';
import { encodeTagValue, identityTag } from '../../core/lines/line-protocol.ts';
import { isHourLine, isTelemetryLine, seriesOf } from '../../core/lines/line-reader.ts';
import type { ArchiveReader, ReadPiece, ReadRange, ScanPosition } from '../../core/state/archive.ts';
import { type EpochNs, minNs } from '../../core/time.ts';
import { explainedCalls } from '../explain.ts';
import { hasShape, openReading } from '../open/read-only.ts';
import { prepareLines } from './archive.ts';

/** A block that may hold lines of a range, from `at` on. */
interface Candidate {
  readonly seq: bigint;
  readonly at: EpochNs;
  readonly bytes: bigint;
}

interface Candidates {
  /** Each block once, sorted by its beginning. */
  readonly blocks: readonly Candidate[];
  /** All blocks that begin before this time are listed. */
  readonly to: EpochNs;
}

/** Prepares the reader of an open database. */
export function createArchiveReader(db: Database.Database): ArchiveReader {
  const candidatesOf = prepareCandidates(db);
  const nextDevice = prepareNextDevice(db);
  const linesOf = prepareLines(db);
  const after = (range: ReadRange, deviceId: string | null): ScanPosition | null => {
    const next = nextDevice(range, deviceId);
    return next === null ? null : { deviceId: next, from: range.from };
  };

  const step = (range: ReadRange, position: ScanPosition, bytes: number): ReadPiece => {
    const { deviceId, from } = position;
    // Blocks beyond the size of a step need not be searched.
    const candidates = candidatesOf(range, position, 4 * bytes);
    const gathered = gatherLines(from, minNs(range.to, candidates.to));
    const isWanted = lineFilter(range, deviceId);
    for (const { seq, at } of candidates.blocks) {
      if (at >= gathered.to()) break;
      // Enough lines: stopping between two blocks avoids reading one of them twice.
      if (at > from && gathered.length() >= bytes) gathered.cut(at);
      else gathered.add(linesOf(seq).filter(isWanted));
      limitSize(gathered, 2 * bytes);
    }
    const to = gathered.to();
    const next = to >= range.to ? after(range, deviceId) : { deviceId, from: to };
    return { deviceId, from, to, lines: gathered.sorted(), next };
  };

  return {
    begin: (range) => (range.kinds === 'all' ? { deviceId: null, from: range.from } : after(range, null)),
    read: (range, position, bytes) => db.transaction(() => step(range, position, bytes))(),
  };
}

/** Limits the collected lines to a size. The lines of one instant stay together. */
function limitSize(gathered: TimedLines, most: number): void {
  while (gathered.length() > most) {
    const middle = gathered.middle();
    if (middle === null) return;
    gathered.cut(middle);
  }
}

/** Returns which lines of the blocks belong to a part. */
function lineFilter({ kinds, devices }: ReadRange, deviceId: string | null): (line: string) => boolean {
  if (kinds === 'telemetry') return isTelemetryLine;
  if (deviceId !== null || devices.length === 0) return () => true;
  const tags = devices.map((id) => `,device_id=${encodeTagValue(identityTag(id))},`);
  return (line) => {
    const series = `${seriesOf(line)},`;
    return tags.some((tag) => series.includes(tag));
  };
}

const KINDS = {
  telemetry: { from: 'first_ns', to: 'last_ns' },
  side: { from: 'side_from_ns', to: 'side_to_ns' },
} as const;

interface Bounds {
  readonly deviceId: string | null;
  readonly from: EpochNs;
  readonly to: EpochNs;
}

/** The blocks that overlap the rest of a part, without those that begin after `bytes` of other blocks. */
function prepareCandidates(db: Database.Database) {
  const select = (kind: keyof typeof KINDS, where: string): string => {
    const { from, to } = KINDS[kind];
    const own = `device_id IS @deviceId AND ${from} IS NOT NULL`;
    return `SELECT seq, ${from} AS at, bytes FROM block WHERE ${own} AND ${where.replaceAll('$from', from).replaceAll('$to', to)}`;
  };
  const statements = (kinds: readonly (keyof typeof KINDS)[]) => {
    const union = (where: string): string => kinds.map((kind) => select(kind, where)).join(' UNION ALL ');
    return {
      across: db.prepare<[Bounds], Candidate>(
        `${union('$from <= @from AND $to >= @from AND @from < @to')} ORDER BY seq`,
      ),
      later: db.prepare<[Bounds], Candidate>(`${union('$from > @from AND $from < @to')} ORDER BY at, seq`),
    };
  };
  const byKinds = { telemetry: statements(['telemetry']), all: statements(['telemetry', 'side']) };
  return (range: ReadRange, { deviceId, from }: ScanPosition, bytes: number): Candidates => {
    const { across, later } = byKinds[range.kinds];
    const bounds = { deviceId, from, to: range.to };
    const blocks = new Map<bigint, Candidate>();
    for (const block of across.iterate(bounds)) blocks.set(block.seq, block);
    let listed = 0;
    for (const block of later.iterate(bounds)) {
      if (listed > bytes) return { blocks: [...blocks.values()], to: block.at };
      if (blocks.has(block.seq)) continue;
      blocks.set(block.seq, block);
      listed += Number(block.bytes);
    }
    return { blocks: [...blocks.values()], to: range.to };
  };
}

/** The next device to read after a given one (`null`: the first). */
function prepareNextDevice(db: Database.Database) {
  // The smallest key of an index, device after device. A list of all devices would need a check of every block.
  const least = (column: string) =>
    db
      .prepare<[string], string | null>(
        `SELECT min(device_id) FROM block WHERE device_id > ? AND ${column} IS NOT NULL`,
      )
      .pluck();
  const [telemetry, side] = [least(KINDS.telemetry.from), least(KINDS.side.from)];
  const first = (column: string) =>
    db.prepare<[], string | null>(`SELECT min(device_id) FROM block WHERE ${column} IS NOT NULL`).pluck();
  const [firstTelemetry, firstSide] = [first(KINDS.telemetry.from), first(KINDS.side.from)];
  const named = db
    .prepare<[string, string | null, string | null], string | null>(
      'SELECT min(value) FROM json_each(?) WHERE ? IS NULL OR value > ?',
    )
    .pluck();
  const lower = (a: string | null, b: string | null): string | null => {
    if (a === null || b === null) return a ?? b;
    return Buffer.compare(Buffer.from(a), Buffer.from(b)) <= 0 ? a : b;
  };
  return ({ devices, kinds }: ReadRange, after: string | null): string | null => {
    if (devices.length > 0) return named.get(JSON.stringify(devices), after, after) ?? null;
    const own = after === null ? firstTelemetry.get() : telemetry.get(after);
    if (kinds === 'telemetry') return own ?? null;
    const other = after === null ? firstSide.get() : side.get(after);
    return lower(own ?? null, other ?? null);
  };
}

interface TimedLines {
  /** Adds the lines that lie within the bounds. */
  add(lines: readonly string[]): void;
  /** The length of all added lines, in characters. */
  length(): number;
  /** Removes the lines from `to` on, and excludes them from now on. */
  cut(to: EpochNs): void;
  /** The time that divides the added lines into halves; `null` if all lines have the same time. */
  middle(): EpochNs | null;
  to(): EpochNs;
  /** The lines in their order; identical lines only once. */
  sorted(): string[];
}

/** A line and its time: exact, and as the nearest double. */
interface Timed {
  readonly line: string;
  readonly near: number;
}

/** Collects the lines of a half-open range. */
function gatherLines(from: EpochNs, end: EpochNs): TimedLines {
  let kept: Timed[] = [];
  let size = 0;
  let to = end;
  const bounds = { from: bound(from), to: bound(end) };
  return {
    add: (lines) => {
      for (const line of lines) {
        const near = Number(line.slice(line.lastIndexOf(' ') + 1));
        if (isBefore(line, near, bounds.from) || !isBefore(line, near, bounds.to)) continue;
        kept.push({ line, near });
        size += line.length + 1;
      }
    },
    length: () => size,
    cut: (before) => {
      to = before;
      bounds.to = bound(before);
      kept = kept.filter(({ line, near }) => isBefore(line, near, bounds.to));
      size = kept.reduce((sum, { line }) => sum + line.length + 1, 0);
    },
    middle: () => {
      kept.sort(byTime);
      const first = kept[0];
      if (first === undefined) return null;
      // The middle itself is not used if it has the first instant, because some lines must lie before the time.
      for (let at = kept.length >> 1; at < kept.length; at += 1) {
        const line = kept[at];
        if (line !== undefined && byTime(first, line) < 0) return exact(line.line);
      }
      return null;
    },
    to: () => to,
    sorted: () => {
      if (kept.some((timed, index) => index > 0 && byTime(kept[index - 1] ?? timed, timed) > 0)) kept.sort(byTime);
      return onceEach(kept);
    },
  };
}

interface Bound {
  readonly at: EpochNs;
  readonly near: number;
}

const bound = (at: EpochNs): Bound => ({ at, near: Number(at) });

/** Rounding never changes an order, so only times that are equal as doubles are compared exactly. */
function isBefore(line: string, near: number, to: Bound): boolean {
  return near === to.near ? exact(line) < to.at : near < to.near;
}

function byTime(a: Timed, b: Timed): number {
  if (a.near !== b.near) return a.near - b.near;
  const [first, second] = [digitsOf(a.line), digitsOf(b.line)];
  if (first === second) return 0;
  return BigInt(first) < BigInt(second) ? -1 : 1;
}

const digitsOf = (line: string): string => line.slice(line.lastIndexOf(' ') + 1);

const exact = (line: string): EpochNs => BigInt(digitsOf(line));

/** Removes duplicates, and earlier counts of an hour. Both have the same instant as the line that stays. */
function onceEach(sorted: readonly Timed[]): string[] {
  const lines: string[] = [];
  let start = 0;
  for (let index = 0; index < sorted.length; index += 1) {
    const timed = sorted[index];
    if (timed === undefined) continue;
    if (timed.near !== sorted[index - 1]?.near) start = lines.length;
    const same = indexOfSame(lines, start, timed.line);
    if (same === null) lines.push(timed.line);
    else lines[same] = laterCount(lines[same] ?? timed.line, timed.line);
  }
  return lines;
}

/** The index of an equal line, or of another count of the same hour; `null` if there is none. */
function indexOfSame(lines: readonly string[], from: number, line: string): number | null {
  const hour = hourText(line);
  for (let index = from; index < lines.length; index += 1) {
    const other = lines[index] ?? '';
    if (other === line || (hour !== null && hourText(other) === hour)) return index;
  }
  return null;
}

const COUNT = / readings=(\S+) /;

/** The part that all counts of an hour of a device share; `null` for any other line. */
function hourText(line: string): string | null {
  return isHourLine(line) ? line.replace(COUNT, ' ') : null;
}

/**
 * The later one of two counts of an hour, or of two equal lines. A count never decreases: a late reading increases it.
 */
function laterCount(one: string, other: string): string {
  const [count, otherCount] = [one, other].map((line) => Number(COUNT.exec(line)?.[1]));
  return count !== undefined && otherCount !== undefined && count < otherCount ? other : one;
}

/** Points that were archived and have been cleared. */
export interface ClearedPoints {
  readonly points: number;
  readonly devices: number;
  /** From the first cleared point to the end of the last. */
  readonly from: EpochNs;
  readonly to: EpochNs;
}

/** The archive, open for reading while another process may use it. */
export interface ArchiveView extends ArchiveReader {
  /** The number of devices in the inventory, for the progress. */
  deviceCount(): number;
  /** The maximum number of cleared points in a range, because only complete ranges are recorded; `null` for none. */
  cleared(range: ReadRange): ClearedPoints | null;
  close(): void;
}

/**
 * Opens the archive in a directory.
 *
 * @returns `null` if there is no state, or it is empty.
 * @throws UserError (exit 1) if it cannot be read.
 */
export function openArchiveView(directory: string): ArchiveView | null {
  return openReading(directory, (db, path) => {
    if (!hasShape(db, path)) return null;
    return explainedCalls(path, { ...createArchiveReader(db), ...createFacts(db), close: () => void db.close() });
  });
}

interface ClearedRow {
  readonly points: bigint | null;
  readonly devices: bigint;
  readonly from: EpochNs;
  readonly to: EpochNs;
}

function createFacts(db: Database.Database): Omit<ArchiveView, keyof ArchiveReader | 'close'> {
  const count = db.prepare<[], bigint>('SELECT count(*) FROM device').pluck();
  const cleared = db.prepare<[Readonly<Record<string, unknown>>], ClearedRow>(
    `SELECT sum(points) AS points, count(DISTINCT nullif(device_id, '')) AS devices,
       min(from_ns) AS "from", max(to_ns) AS "to"
     FROM cleared WHERE from_ns < @to AND to_ns > @from AND (kind = 'telemetry' OR @all)
       AND (@devices IS NULL OR device_id IN (SELECT value FROM json_each(@devices)))`,
  );
  return {
    deviceCount: () => Number(count.get() ?? 0n),
    cleared: ({ from, to, devices, kinds }) => {
      const named = devices.length === 0 ? null : JSON.stringify(devices);
      const row = cleared.get({ from, to, all: kinds === 'all' ? 1 : 0, devices: named });
      if (row === undefined || row.points === null) return null;
      return { points: Number(row.points), devices: Number(row.devices), from: row.from, to: row.to };
    },
  };
}
