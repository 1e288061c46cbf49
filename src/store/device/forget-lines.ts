/**
 * The lines of a device, taken out of the log: whole blocks of its own, and single lines of blocks that hold those of
 * many (facts of devices, alerts, coverage).
 *
 * Promise: a destination that stands in a block which loses lines stands behind the same line afterwards, and one that
 * has not acknowledged a line of the device keeps the block from being touched.
 */
import type Database from 'better-sqlite3';
import { readLine } from '../../core/lines/line-reader.ts';
import type { LogLane } from '../../core/state/log.ts';
import { preparePosition } from '../archive/archive.ts';
import { pack, unpack } from '../archive/block-codec.ts';

interface BlockRow {
  readonly seq: bigint;
  readonly lane: LogLane;
  readonly device_id: string | null;
  readonly lines: bigint;
  readonly bytes: bigint;
}

interface PlaceRow {
  readonly destination_id: bigint;
  readonly line: bigint;
}

/** What one step came to. */
interface LineStep {
  /** The last block that was looked at; `null` behind the last one. */
  readonly at: number | null;
  readonly removed: number;
  /** Whether some of its lines wait for a destination. Told at the end. */
  readonly isWaiting: boolean;
  readonly share: number;
}

interface LineOrder {
  readonly deviceId: string;
  readonly after: number;
  readonly configured: readonly number[];
}

/** The places of the lines that carry a device's tag. */
export function linesOf(lines: readonly string[], tag: string): number[] {
  const places: number[] = [];
  lines.forEach((line, index) => {
    if (line.includes('device_id=') && readLine(line).tags.some(([key, value]) => key === 'device_id' && value === tag))
      places.push(index);
  });
  return places;
}

/** Prepares it for an open database. Only inside a transaction. */
export function createLineRemoval(
  db: Database.Database,
  limits: { rows: number; bytes: number },
): { step(tag: string, order: LineOrder): LineStep } {
  const next = db.prepare<[number], BlockRow>(
    `SELECT seq, lane, device_id, lines, bytes FROM block WHERE seq > ? ORDER BY seq LIMIT ${limits.rows}`,
  );
  const end = db.prepare<[], bigint>('SELECT ifnull(max(seq), 0) FROM block').pluck();
  const data = db.prepare<[bigint], Buffer>('SELECT data FROM block WHERE seq = ?').pluck();
  const remove = db.prepare('DELETE FROM block WHERE seq = ?');
  const rewrite = db.prepare('UPDATE block SET lines = ?, bytes = ?, data = ? WHERE seq = ?');
  const own = db.prepare<[string], bigint>('SELECT 1 FROM block WHERE device_id = ? LIMIT 1').pluck();
  const places = createPlaces(db);
  /** The waiting ones of this walk; a walk that is gone on with after a start finds them at its end all the same. */
  const waiting = new Set<string>();

  /** @returns how many lines went; `null` where they are not delivered yet. */
  const take = (row: BlockRow, tag: string, configured: readonly number[]): number | null => {
    if (row.device_id !== null) {
      if (!places.areBehind(row, Number(row.lines) - 1, configured)) return null;
      remove.run(row.seq);
      places.leave(row, () => 0);
      return Number(row.lines);
    }
    const lines = unpack(data.get(row.seq) ?? Buffer.alloc(0));
    const doomed = linesOf(lines, tag);
    const last = doomed.at(-1);
    if (last === undefined) return 0;
    if (!places.areBehind(row, last, configured)) return null;
    const isDoomed = new Set(doomed);
    const kept = lines.filter((_, index) => !isDoomed.has(index));
    if (kept.length === 0) remove.run(row.seq);
    else {
      const packed = pack(kept);
      rewrite.run(kept.length, packed.bytes, packed.data, row.seq);
    }
    places.leave(row, (line) => line - doomed.filter((at) => at < line).length);
    return doomed.length;
  };
  const walk = (rows: readonly BlockRow[], tag: string, configured: readonly number[]) => {
    const walked = { at: null as number | null, removed: 0, isWaiting: false };
    let bytes = 0;
    for (const row of rows) {
      if (bytes > limits.bytes) break;
      walked.at = Number(row.seq);
      const taken = take(row, tag, configured);
      walked.isWaiting ||= taken === null;
      walked.removed += taken ?? 0;
      bytes += Number(row.bytes);
    }
    return walked;
  };
  return {
    step: (tag, { deviceId, after, configured }) => {
      if (after === 0) waiting.delete(deviceId);
      const rows = next.all(after);
      const last = rows.at(-1);
      if (last === undefined) {
        const isWaiting = waiting.has(deviceId) || own.get(deviceId) !== undefined;
        return { at: null, removed: 0, isWaiting, share: 1 };
      }
      const candidates = rows.filter(({ device_id }) => device_id === null || device_id === deviceId);
      const { at, removed, isWaiting } = walk(candidates, tag, configured);
      if (isWaiting) waiting.add(deviceId);
      // Behind the last candidate nothing of these rows is left to look at.
      const reached = at === null || at === Number(candidates.at(-1)?.seq) ? Number(last.seq) : at;
      return { at: reached, removed, isWaiting: false, share: reached / Math.max(reached, Number(end.get() ?? 0n)) };
    },
  };
}

/** Where destinations stand in a block. */
function createPlaces(db: Database.Database) {
  const position = preparePosition(db);
  const inside = db.prepare<[string, bigint], PlaceRow>(
    'SELECT destination_id, line FROM position WHERE lane = ? AND block = ? AND line > 0',
  );
  const move = db.prepare('UPDATE position SET line = ? WHERE destination_id = ? AND lane = ?');
  return {
    /** Whether all of them have acknowledged a line of a block. */
    areBehind: ({ lane, seq }: BlockRow, line: number, destinations: readonly number[]): boolean =>
      destinations.every((id) => {
        const place = position(id, lane);
        return place.block > seq || (BigInt(place.block) === seq && place.line > line);
      }),
    leave: ({ lane, seq }: BlockRow, lineNow: (line: number) => number): void => {
      for (const { destination_id, line } of inside.all(lane, seq)) {
        move.run(lineNow(Number(line)), destination_id, lane);
      }
    },
  };
}
