/**
 * Replays in the state: how far each has come, and what it changes (`core/replay.ts`).
 *
 * Promise: what a step came to is recorded in one transaction. A stretch leaves the lack-set of a destination only where
 * every line of it that was ever archived has been sent and accepted: none that was cleared lies in it.
 */
import type Database from 'better-sqlite3';
import type { Lack, LogLane, LogPosition } from '../core/log-state.ts';
import type { ReplayArgs, ReplayCounts, ReplayState, ReplayStore, SentStretch } from '../core/replay.ts';
import { type EpochNs, maxNs, minNs } from '../core/time.ts';
import type { Archive } from './archive.ts';
import { createArchiveWalker } from './archive-walker.ts';

export interface ReplayParts {
  readonly archive: Pick<Archive, 'linesAfter'>;
  readonly position: (destinationId: number, lane: LogLane) => LogPosition;
  /** Adds to the lack-set, inside a transaction. */
  readonly addLacks: (destinationId: number, lacks: readonly Lack[]) => void;
}

interface ReplayRow {
  readonly asked: string;
  readonly place: string;
  readonly counts: string;
  readonly begun_ms: bigint;
}

/** Prepares it for an open database. `settle` only inside a transaction. */
export function createReplays(db: Database.Database, { archive, position, addLacks }: ReplayParts): ReplayStore {
  const read = db.prepare<[number], ReplayRow>('SELECT * FROM replay WHERE destination_id = ?');
  const write = db.prepare(
    'INSERT OR REPLACE INTO replay (destination_id, asked, place, counts, begun_ms) VALUES (?, ?, ?, ?, ?)',
  );
  const remove = db.prepare('DELETE FROM replay WHERE destination_id = ?');
  const quarantined = db
    .prepare<[number, number], string>('SELECT content FROM quarantine WHERE destination_id = ? LIMIT ?')
    .pluck();
  const add = db.prepare(
    `INSERT OR IGNORE INTO quarantine (destination_id, source, content, reason, at_ms)
     VALUES (?, 'destination', ?, ?, ?)`,
  );
  const release = db.prepare(
    "DELETE FROM quarantine WHERE ifnull(destination_id, 0) = ? AND source = 'destination' AND content = ?",
  );
  const lacks = prepareLacks(db);
  return {
    walker: createArchiveWalker(db),
    unfinished: (id) => {
      const row = read.get(id);
      return row === undefined ? null : toState(row);
    },
    keep: (id, { args, place, counts, begunMs }) => {
      const at = { ...place, from: String(place.from) };
      write.run(id, JSON.stringify(args), JSON.stringify(at), JSON.stringify(counts), Math.floor(begunMs));
    },
    forget: (id) => void remove.run(id),
    quarantined: (id, most) => {
      const lines = quarantined.all(id, most + 1);
      return lines.length > most ? null : new Set(lines);
    },
    settle: ({ destinationId, refused, lacks: beyond, accepted, sent, atMs }) => {
      const changes = { added: 0, released: 0 };
      for (const { line, words } of refused)
        changes.added += add.run(destinationId, line, words, Math.floor(atMs)).changes;
      for (const line of accepted) changes.released += release.run(destinationId, line).changes;
      addLacks(
        destinationId,
        beyond.filter((lack) => !lacks.has(destinationId, lack)),
      );
      for (const stretch of sent) lacks.takeOut(destinationId, stretch);
      return changes;
    },
    pendingLines: (id) =>
      (['live', 'history'] as const).reduce((sum, lane) => sum + archive.linesAfter(lane, position(id, lane)), 0),
  };
}

/** @returns `null` for what another version may have left. */
function toState({ asked, place, counts, begun_ms }: ReplayRow): ReplayState | null {
  try {
    const args = JSON.parse(asked) as ReplayArgs;
    const at = JSON.parse(place) as { deviceId: string | null; from: string };
    return {
      args,
      place: { deviceId: at.deviceId, from: BigInt(at.from) },
      counts: JSON.parse(counts) as ReplayCounts,
      begunMs: Number(begun_ms),
    };
  } catch {
    return null;
  }
}

interface LackRow {
  readonly reason: string;
  readonly from_ns: EpochNs;
  readonly to_ns: EpochNs;
  readonly points: bigint;
}

function prepareLacks(db: Database.Database) {
  const around = db.prepare<[number, string, EpochNs, EpochNs], LackRow>(
    `SELECT reason, from_ns, to_ns, points FROM lack
     WHERE destination_id = ? AND device_id = ? AND from_ns < ? AND to_ns > ?`,
  );
  const within = db
    .prepare<[number, string, string, EpochNs, EpochNs], bigint>(
      'SELECT 1 FROM lack WHERE destination_id = ? AND device_id = ? AND reason = ? AND from_ns <= ? AND to_ns >= ?',
    )
    .pluck();
  const cleared = db
    .prepare<[string, EpochNs, EpochNs], bigint>(
      'SELECT 1 FROM cleared WHERE device_id = ? AND from_ns < ? AND to_ns > ? LIMIT 1',
    )
    .pluck();
  const remove = db.prepare(
    'DELETE FROM lack WHERE destination_id = ? AND device_id = ? AND reason = ? AND from_ns = ?',
  );
  const insert = db.prepare(
    'INSERT INTO lack (destination_id, device_id, reason, from_ns, to_ns, points) VALUES (?, ?, ?, ?, ?, ?)',
  );
  return {
    /** Whether all of it is known to be lacking already, for that reason. */
    has: (id: number, { deviceId, reason, fromNs, toNs }: Lack): boolean =>
      within.get(id, deviceId, reason, fromNs, toNs) !== undefined,
    takeOut: (id: number, { deviceId, from, to, lines }: SentStretch): void => {
      for (const row of around.all(id, deviceId, to, from)) {
        const [first, end] = [maxNs(row.from_ns, from), minNs(row.to_ns, to)];
        if (cleared.get(deviceId, end, first) !== undefined) continue;
        remove.run(id, deviceId, row.reason, row.from_ns);
        const rests = [
          { from: row.from_ns, to: first },
          { from: end, to: row.to_ns },
        ].filter((rest) => rest.from < rest.to);
        // How many of its points lie where is not known to the point: what was sent is not lacking, the rest may be.
        const left = Math.max(Number(row.points) - lines, rests.length);
        rests.forEach((rest, index) => {
          const points = index === 0 ? left - (rests.length - 1) : 1;
          insert.run(id, deviceId, row.reason, rest.from, rest.to, points);
        });
      }
    },
  };
}
