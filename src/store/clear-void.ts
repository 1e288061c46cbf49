/**
 * The stretches of time that are told of what is gone, with the help of what is held: two are told as one where nothing
 * can be missing between them, so that what is remembered of years stays small.
 */
import type Database from 'better-sqlite3';
import type { Interval } from '../core/intervals.ts';
import type { EpochNs } from '../core/time.ts';
import { isOneStretch, type LineKind, type LineSpan, spansOf } from './archive-spans.ts';

export interface Stretches {
  /** The stretches of some lines of a device (empty: of none). */
  of(deviceId: string, lines: readonly string[]): LineSpan[];
  /** Whether what lies before and after a gap may be told as one; no kept block may reach into it. */
  isOne(deviceId: string, kind: LineKind, gap: Interval): boolean;
}

/** Prepares it for an open database. */
export function createStretches(db: Database.Database): Stretches {
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
    of: (deviceId, lines) => spansOf(lines, covered.all(deviceId)),
    isOne: (deviceId, kind, gap) =>
      isOneStretch(kind, gap, kind === 'other' ? [] : covered.all(deviceId)) &&
      (gap.from >= gap.to || kind === 'other' || kept.get(deviceId, gap.to, gap.from) === undefined),
  };
}
