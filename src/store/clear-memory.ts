/**
 * What was cleared, for ever: of each device the stretches, readings apart from other lines.
 *
 * Two stretches become one where nothing can be missing between them (`clear-void.ts`): all of it is held in full and no
 * kept block reaches into it. So this stays small over years, and a hole between two stretches is never taken for one in
 * which something may have been held.
 */
import type Database from 'better-sqlite3';
import type { MissingPoints } from '../core/state/log.ts';
import type { EpochNs } from '../core/time.ts';
import { joinSpans, type LineKind, type LineSpan } from './archive-spans.ts';
import { createStretches } from './clear-void.ts';

export interface Cleared {
  /** Only inside a transaction. */
  add(deviceId: string, spans: readonly LineSpan[]): void;
  /** All of it, as what a destination lacks that begins now. */
  asLacks(): MissingPoints[];
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
  const { isOne } = createStretches(db);
  const remove = db.prepare('DELETE FROM cleared WHERE device_id = ? AND kind = ? AND from_ns = ?');
  const insert = db.prepare('INSERT INTO cleared (device_id, kind, from_ns, to_ns, points) VALUES (?, ?, ?, ?, ?)');
  const all = db.prepare<[], ClearedRow>(`${columns} ORDER BY device_id, kind, from_ns`);
  const neighbours = (deviceId: string, { kind, from, to }: LineSpan): ClearedRow[] => {
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
  const addOne = (deviceId: string, span: LineSpan): void => {
    let joined = span;
    for (const row of neighbours(deviceId, span)) {
      remove.run(deviceId, row.kind, row.from_ns);
      joined = joinSpans(joined, toSpan(row));
    }
    insert.run(deviceId, joined.kind, joined.from, joined.to, joined.points);
  };
  return {
    add: (deviceId, spans) => {
      for (const span of spans) addOne(deviceId, span);
    },
    asLacks: () =>
      all.all().map((row) => {
        const { from, to, points } = toSpan(row);
        return { deviceId: row.device_id, fromNs: from, toNs: to, reason: 'cleared', points };
      }),
  };
}

function toSpan(row: ClearedRow): LineSpan {
  return { kind: row.kind, from: row.from_ns, to: row.to_ns, points: Number(row.points) };
}
