/**
 * What is held of all devices at once: a few scans in place of many looks, for reports over thousands of devices.
 */
import type Database from 'better-sqlite3';
import type { CoveredSpan } from '../core/coverage.ts';
import { type Gap, type HeldNow, type LateRecord, NOTHING_HELD, type TelemetryStore } from '../core/state/telemetry.ts';
import type { EpochNs } from '../core/time.ts';
import { type CoverageRow, toSpan } from './coverage.ts';

/** A device while it is being put together. */
interface Growing {
  readonly spans: CoveredSpan[];
  readonly gaps: Gap[];
  late: LateRecord;
  newestNs: EpochNs | null;
}

/** Prepares it for an open database. @param gaps all named gaps. */
export function createHeldOfAll(db: Database.Database, gaps: () => readonly Gap[]): TelemetryStore['heldOfAll'] {
  const coverage = db.prepare<[], CoverageRow & { readonly device_id: string }>(
    `SELECT device_id, from_ns, to_ns, first_ns, first_digest, last_ns, last_digest FROM coverage
     ORDER BY device_id, from_ns`,
  );
  const lateness = db.prepare<[], { device_id: string; readings: bigint; worst_ms: bigint; settle_ms: bigint }>(
    'SELECT device_id, readings, worst_ms, settle_ms FROM lateness',
  );
  // As `newestNs` of the archive: what was cleared counts as well.
  const newest = db.prepare<[], { device_id: string; at: EpochNs | null }>(
    `SELECT device_id, max(last_ns) AS at FROM block WHERE first_ns IS NOT NULL GROUP BY device_id
     UNION ALL SELECT device_id, max(to_ns) - 1 FROM cleared WHERE kind = 'telemetry' GROUP BY device_id`,
  );
  return () => {
    const all = new Map<string, Growing>();
    const of = (deviceId: string): Growing => {
      const known = all.get(deviceId) ?? { ...NOTHING_HELD, spans: [], gaps: [] };
      all.set(deviceId, known);
      return known;
    };
    for (const row of coverage.iterate()) of(row.device_id).spans.push(toSpan(row));
    for (const gap of gaps()) of(gap.deviceId).gaps.push(gap);
    for (const { device_id, readings, worst_ms, settle_ms } of lateness.iterate()) {
      of(device_id).late = { readings: Number(readings), worstMs: Number(worst_ms), settleMs: Number(settle_ms) };
    }
    for (const { device_id, at } of newest.iterate()) {
      const known = of(device_id);
      if (at !== null && (known.newestNs === null || at > known.newestNs)) known.newestNs = at;
    }
    return all satisfies ReadonlyMap<string, HeldNow>;
  };
}
