/**
 * Goes through the archive in the order of time (`core/state/archive.ts`), over any connection to the state, also one that
 * may only read.
 *
 * Promise: a step is one short read transaction, and takes no more memory than its lines, one block and a list of
 * blocks, however the blocks of a device overlap. It begins at a time and ends at one, so that blocks may be merged or
 * cleared between two steps.
 */
import type Database from 'better-sqlite3';
import { encodeTagValue } from '../../core/lines/line-protocol.ts';
import { seriesOf } from '../../core/lines/line-reader.ts';
import { identityTag } from '../../core/lines/line-text.ts';
import type { ArchiveWalker, WalkPiece, WalkPlace, WalkSpan } from '../../core/state/archive.ts';
import { type EpochNs, minNs } from '../../core/time.ts';
import { gatherLines, type TimedLines } from '../timed-lines.ts';
import { unpack } from './block-codec.ts';

/** A block that may hold lines of a stretch, from `at` on. */
interface Candidate {
  readonly seq: bigint;
  readonly at: EpochNs;
  readonly bytes: bigint;
}

interface Candidates {
  /** Each block once, by where it begins. */
  readonly blocks: readonly Candidate[];
  /** All that begin before it are listed. */
  readonly to: EpochNs;
}

/** Prepares it for an open database. */
export function createArchiveWalker(db: Database.Database): ArchiveWalker {
  const candidatesOf = prepareCandidates(db);
  const data = db.prepare<[bigint], Buffer>('SELECT data FROM block WHERE seq = ?').pluck();
  const nextDevice = prepareNextDevice(db);
  const linesOf = (seq: bigint): readonly string[] => {
    const packed = data.get(seq);
    return packed === undefined ? [] : unpack(packed);
  };
  const after = (span: WalkSpan, deviceId: string | null): WalkPlace | null => {
    const next = nextDevice(span, deviceId);
    return next === null ? null : { deviceId: next, from: span.from };
  };

  const step = (span: WalkSpan, place: WalkPlace, bytes: number): WalkPiece => {
    const { deviceId, from } = place;
    // More than a step can bring need not be looked for.
    const candidates = candidatesOf(span, place, 4 * bytes);
    const gathered = gatherLines(from, minNs(span.to, candidates.to));
    const isWanted = wantedOf(span, deviceId);
    for (const { seq, at } of candidates.blocks) {
      if (at >= gathered.to()) break;
      // Enough: a cut between two blocks spares reading one of them twice.
      if (at > from && gathered.length() >= bytes) gathered.cut(at);
      else gathered.add(linesOf(seq).filter(isWanted));
      drawIn(gathered, 2 * bytes);
    }
    const to = gathered.to();
    const next = to >= span.to ? after(span, deviceId) : { deviceId, from: to };
    return { deviceId, from, to, lines: gathered.sorted(), next };
  };

  return {
    begin: (span) => (span.kinds === 'all' ? { deviceId: null, from: span.from } : after(span, null)),
    read: (span, place, bytes) => db.transaction(() => step(span, place, bytes))(),
  };
}

/** Keeps what was gathered below a size, as far as one instant allows. */
function drawIn(gathered: TimedLines, most: number): void {
  while (gathered.length() > most) {
    const middle = gathered.middle();
    if (middle === null) return;
    gathered.cut(middle);
  }
}

/** Which lines of its blocks belong to a part. */
function wantedOf({ kinds, devices }: WalkSpan, deviceId: string | null): (line: string) => boolean {
  if (kinds === 'telemetry') return (line) => line.startsWith('telemetry,');
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

/** The blocks that reach into the rest of a part, but for those that begin after `bytes` of others. */
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
  const of = { telemetry: statements(['telemetry']), all: statements(['telemetry', 'side']) };
  return (span: WalkSpan, { deviceId, from }: WalkPlace, bytes: number): Candidates => {
    const { across, later } = of[span.kinds];
    const bounds = { deviceId, from, to: span.to };
    const blocks = new Map<bigint, Candidate>();
    for (const block of across.iterate(bounds)) blocks.set(block.seq, block);
    let listed = 0;
    for (const block of later.iterate(bounds)) {
      if (listed > bytes) return { blocks: [...blocks.values()], to: block.at };
      if (blocks.has(block.seq)) continue;
      blocks.set(block.seq, block);
      listed += Number(block.bytes);
    }
    return { blocks: [...blocks.values()], to: span.to };
  };
}

/** The device after another one (`null`: the first) of those that are gone through. */
function prepareNextDevice(db: Database.Database) {
  // The least of an index, device after device: a list of all would be a look at every block.
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
  const lesser = (a: string | null, b: string | null): string | null => {
    if (a === null || b === null) return a ?? b;
    return Buffer.compare(Buffer.from(a), Buffer.from(b)) <= 0 ? a : b;
  };
  return ({ devices, kinds }: WalkSpan, after: string | null): string | null => {
    if (devices.length > 0) return named.get(JSON.stringify(devices), after, after) ?? null;
    const own = after === null ? firstTelemetry.get() : telemetry.get(after);
    if (kinds === 'telemetry') return own ?? null;
    const other = after === null ? firstSide.get() : side.get(after);
    return lesser(own ?? null, other ?? null);
  };
}
