/**
 * Stretches of time of which nothing can be missing between two that are told of: they are told as one then, so that
 * what is remembered of years stays small.
 */
import type Database from 'better-sqlite3';
import type { LineKind } from '../core/archive-spans.ts';
import type { Interval } from '../core/intervals.ts';
import { DAY_NS, type EpochNs } from '../core/time.ts';

/** Says of a stretch of a device whether no line of that kind lies in it but such as is told of anyway. */
export type IsVoid = (deviceId: string, kind: LineKind, stretch: Interval) => boolean;

/** Prepares the question for an open database. */
export function createVoids(db: Database.Database): IsVoid {
  const covered = db
    .prepare<[string, EpochNs, EpochNs], bigint>(
      'SELECT 1 FROM coverage WHERE device_id = ? AND from_ns <= ? AND to_ns >= ?',
    )
    .pluck();
  const kept = db
    .prepare<[string, EpochNs, EpochNs], bigint>(
      `SELECT 1 FROM block
       WHERE device_id = ? AND first_ns IS NOT NULL AND first_ns < ? AND last_ns >= ? LIMIT 1`,
    )
    .pluck();
  return (deviceId, kind, { from, to }) => {
    if (from >= to) return true;
    // Facts are told every hour or so, and none of them is ever looked for by its time.
    if (kind === 'other') return to - from <= DAY_NS;
    return covered.get(deviceId, from, to) !== undefined && kept.get(deviceId, to, from) === undefined;
  };
}
