/**
 * What a destination will not get from the log any more, on its way into its lack-set.
 */
import type Database from 'better-sqlite3';
import type { MissingReason } from '../core/state/log.ts';
import type { EpochNs } from '../core/time.ts';
import type { LineSpan } from './archive-spans.ts';
import { createStretches } from './clear-void.ts';
import type { Lacks } from './delivery/missing-points.ts';

/** What is lost to a destination. */
export interface Loss {
  readonly deviceId: string;
  readonly spans: readonly LineSpan[];
  readonly reason: MissingReason;
}

/** Prepares it for an open database. The call adds a loss, only inside a transaction. */
export function createLosses(db: Database.Database, lacks: Lacks): (destinationId: number, loss: Loss) => void {
  const ofReason = 'FROM lack WHERE destination_id = ? AND device_id = ? AND reason = ?';
  const below = db
    .prepare<[number, string, string, EpochNs], EpochNs | null>(`SELECT max(to_ns) ${ofReason} AND from_ns <= ?`)
    .pluck();
  const above = db
    .prepare<[number, string, string, EpochNs], EpochNs | null>(`SELECT min(from_ns) ${ofReason} AND from_ns >= ?`)
    .pluck();
  const { isOne } = createStretches(db);
  return (id, { deviceId, spans, reason }) => {
    for (const { kind, from, to, points } of spans) {
      const last = below.get(id, deviceId, reason, from) ?? null;
      const next = above.get(id, deviceId, reason, to) ?? null;
      const fromNs = last !== null && last < from && isOne(deviceId, kind, { from: last, to: from }) ? last : from;
      const toNs = next !== null && isOne(deviceId, kind, { from: to, to: next }) ? next : to;
      lacks.add(id, [{ deviceId, fromNs, toNs, reason, points }]);
    }
  };
}
