/**
 * Destinations that stand: how long, and what becomes of the log before those that were set aside.
 *
 * Promise: what a destination is passed by with is in its lack-set in the transaction that moves its place, no more and
 * no less than that.
 */

import type Database from 'better-sqlite3';
import type { ArchiveMaintenance } from '../core/state/archive.ts';
import type { LogLane } from '../core/state/log.ts';
import { LOG_LANES } from '../core/state/log.ts';
import { unpack } from './archive/block-codec.ts';
import { STEP_BLOCKS, STEP_BYTES } from './archive/clearing.ts';
import { createLosses } from './clear-lacks.ts';
import { createStretches } from './clear-void.ts';
import type { Lacks } from './delivery/missing-points.ts';

export type Asides = Pick<ArchiveMaintenance, 'standing' | 'keepStanding' | 'placeOf' | 'skipBacklog'>;

interface StandingRow {
  readonly place: string;
  readonly stood_ms: bigint;
  readonly seen_ms: bigint;
  readonly aside_to: bigint | null;
  readonly held: string | null;
}

interface PassedRow {
  readonly seq: bigint;
  readonly device_id: string | null;
  readonly bytes: bigint;
  readonly data: Buffer;
}

/** Prepares the tables of an open database. What writes only inside a transaction. */
export function createAsides(db: Database.Database, lacks: Lacks): Asides {
  const read = db.prepare<[number], StandingRow>('SELECT * FROM standing WHERE destination_id = ?');
  const write = db.prepare(
    `INSERT OR REPLACE INTO standing (destination_id, place, stood_ms, seen_ms, aside_to, held)
     SELECT id, ?, ?, ?, ?, ? FROM destination WHERE id = ?`,
  );
  const move = db.prepare('UPDATE standing SET place = ? WHERE destination_id = ?');
  const place = db
    .prepare<[number], string | null>(
      `SELECT group_concat(lane || ' ' || block || ':' || line, ', ') FROM position
       WHERE destination_id = ? ORDER BY lane`,
    )
    .pluck();
  const placeOf = (id: number): string => place.get(id) ?? '';
  const passLane = createPass(db, lacks);
  return {
    standing: (id) => {
      const row = read.get(id);
      if (row === undefined) return null;
      const asideTo = row.aside_to === null ? null : Number(row.aside_to);
      return { place: row.place, stoodMs: Number(row.stood_ms), seenMs: Number(row.seen_ms), asideTo, held: row.held };
    },
    keepStanding: (id, standing) => {
      const { stoodMs, seenMs, asideTo, held } = standing;
      write.run(standing.place, Math.floor(stoodMs), Math.floor(seenMs), asideTo, held ?? null, id);
    },
    placeOf,
    skipBacklog: (id) => {
      const row = read.get(id);
      // Whoever has settled something meanwhile has come back: the rest is delivered.
      if (row === undefined || row.aside_to === null || row.place !== placeOf(id)) return true;
      const asideTo = Number(row.aside_to);
      const isPast = LOG_LANES.map((lane) => passLane(id, lane, asideTo)).every(Boolean);
      move.run(placeOf(id), id);
      return isPast;
    },
  };
}

/** Passes a destination by with some blocks of a lane. @returns whether no more are left up to `asideTo`. */
function createPass(db: Database.Database, lacks: Lacks) {
  const position = db.prepare<[number, string], { block: bigint; line: bigint }>(
    'SELECT block, line FROM position WHERE destination_id = ? AND lane = ?',
  );
  const next = db.prepare<[string, bigint, number], PassedRow>(
    `SELECT seq, device_id, bytes, data FROM block
     WHERE lane = ? AND seq >= ? AND seq <= ? ORDER BY seq LIMIT ${STEP_BLOCKS + 1}`,
  );
  const place = db.prepare('INSERT OR REPLACE INTO position (destination_id, lane, block, line) VALUES (?, ?, ?, 0)');
  const stretches = createStretches(db);
  const lose = createLosses(db, lacks);
  return (id: number, lane: LogLane, asideTo: number): boolean => {
    const { block, line } = position.get(id, lane) ?? { block: 0n, line: 0n };
    let [taken, bytes, end] = [0, 0, null as bigint | null];
    let isPast = true;
    for (const row of next.all(lane, block, asideTo)) {
      bytes += Number(row.bytes);
      if (taken > 0 && (bytes > STEP_BYTES || taken >= STEP_BLOCKS)) {
        isPast = false;
        break;
      }
      const lines = unpack(row.data).slice(row.seq === block ? Number(line) : 0);
      const deviceId = row.device_id ?? '';
      lose(id, { deviceId, spans: stretches.of(deviceId, lines), reason: 'set aside' });
      taken += 1;
      end = row.seq;
    }
    if (end !== null) place.run(id, lane, end + 1n);
    return isPast;
  };
}
