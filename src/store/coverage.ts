/**
 * The stretches of each device that are held in full.
 */
import type Database from 'better-sqlite3';
import type { CoveredSpan, Edge } from '../core/coverage.ts';
import type { EpochNs } from '../core/time.ts';

export interface CoverageTable {
  /** Ascending. */
  read(deviceId: string): CoveredSpan[];
  /** @param before what stands there; only what differs is written. */
  replace(deviceId: string, before: readonly CoveredSpan[], spans: readonly CoveredSpan[]): void;
}

/** A stretch as it is kept. */
export interface CoverageRow {
  readonly from_ns: bigint;
  readonly to_ns: bigint;
  readonly first_ns: bigint | null;
  readonly first_digest: string | null;
  readonly last_ns: bigint | null;
  readonly last_digest: string | null;
}

/** Prepares the table of an open database. */
export function createCoverage(db: Database.Database): CoverageTable {
  const read = db.prepare<[string], CoverageRow>(
    'SELECT from_ns, to_ns, first_ns, first_digest, last_ns, last_digest FROM coverage WHERE device_id = ? ORDER BY from_ns',
  );
  const remove = db.prepare('DELETE FROM coverage WHERE device_id = ? AND from_ns = ?');
  const insert = db.prepare(
    `INSERT INTO coverage (device_id, from_ns, to_ns, first_ns, first_digest, last_ns, last_digest)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
  );
  return {
    read: (deviceId) => read.all(deviceId).map(toSpan),
    replace: (deviceId, before, spans) => {
      const stands = new Map(before.map((span) => [span.from, span]));
      const wanted = new Map(spans.map((span) => [span.from, span]));
      const gone = before.filter((span) => !isSame(span, wanted.get(span.from)));
      const fresh = spans.filter((span) => !isSame(span, stands.get(span.from)));
      for (const { from } of gone) remove.run(deviceId, from);
      for (const { from, to, first, last } of fresh) {
        const edges = [first?.at ?? null, first?.digest ?? null, last?.at ?? null, last?.digest ?? null];
        insert.run(deviceId, from, to, ...edges);
      }
    },
  };
}

function isSame(one: CoveredSpan, other: CoveredSpan | undefined): boolean {
  if (one === other) return true;
  return one.to === other?.to && sameEdge(one.first, other.first) && sameEdge(one.last, other.last);
}

function sameEdge(one: Edge | null, other: Edge | null): boolean {
  return one?.at === other?.at && one?.digest === other?.digest;
}

export function toSpan(row: CoverageRow): CoveredSpan {
  return {
    from: row.from_ns,
    to: row.to_ns,
    first: edge(row.first_ns, row.first_digest),
    last: edge(row.last_ns, row.last_digest),
  };
}

function edge(at: EpochNs | null, digest: string | null): Edge | null {
  return at === null || digest === null ? null : { at, digest };
}
