/**
 * The replays in the state: the progress of each, and its changes (`core/state/replay.ts`).
 *
 * Promise: the result of a step is recorded in one transaction. A range is removed from the missing points of a
 * destination only if every line of it that was ever archived was sent and accepted, so no cleared range may be in it.
 */
import type Database from 'better-sqlite3';
import { isNumber, isText, orNull, parseAs, shapeOf } from '../../core/json.ts';
import { identityTag } from '../../core/lines/line-protocol.ts';
import { readLine } from '../../core/lines/line-reader.ts';
import { isReplayArgs } from '../../core/state/job-args.ts';
import { LOG_LANES, type LogLane, type LogPosition, type MissingPoints } from '../../core/state/log.ts';
import type { ReplayCounts, ReplayState, ReplayStore, SentRange } from '../../core/state/replay.ts';
import { type EpochNs, isNsText, maxNs, minNs } from '../../core/time.ts';
import type { Archive } from '../archive/archive.ts';
import { createArchiveReader } from '../archive/reader.ts';
import type { MissingTable } from './missing-points.ts';
import type { QuarantineTable } from './quarantine.ts';

/** The functions of other tables that the replays use. */
interface ReplayTables {
  readonly archive: Pick<Archive, 'linesAfter'>;
  readonly position: (destinationId: number, lane: LogLane) => LogPosition;
  /** Whether a device was removed, by its tag. Work in progress about it leaves nothing in the state. */
  readonly isForgottenTag: (tag: string) => boolean;
  /** Call it only inside a transaction, like `missing`. */
  readonly quarantine: Pick<QuarantineTable, 'addLine' | 'removeLine'>;
  readonly missing: Pick<MissingTable, 'add' | 'cut'>;
}

interface ReplayRow {
  readonly args: string;
  readonly position: string;
  readonly counts: string;
  readonly started_ms: bigint;
}

/** Prepares the replays of an open database. Call `resolve` only inside a transaction. */
export function createReplays(db: Database.Database, parts: ReplayTables): ReplayStore {
  const read = db.prepare<[number], ReplayRow>('SELECT * FROM replay WHERE destination_id = ?');
  const write = db.prepare(
    'INSERT OR REPLACE INTO replay (destination_id, args, position, counts, started_ms) VALUES (?, ?, ?, ?, ?)',
  );
  const remove = db.prepare('DELETE FROM replay WHERE destination_id = ?');
  const quarantined = db
    .prepare<[number, number], string>('SELECT content FROM quarantine WHERE destination_id = ? LIMIT ?')
    .pluck();
  const { archive, position, quarantine, isForgottenTag } = parts;
  // The tag replaces an id that is no longer known.
  const isOfForgotten = ({ deviceId }: MissingPoints): boolean =>
    [deviceId, identityTag(deviceId)].some(isForgottenTag);
  const isForgotten = (line: string): boolean =>
    readLine(line).tags.some(([key, value]) => key === 'device_id' && isForgottenTag(value));
  const missing = prepareMissing(db, parts.missing);
  return {
    archiveReader: createArchiveReader(db),
    unfinished: (id) => {
      const row = read.get(id);
      return row === undefined ? null : toState(row);
    },
    save: (id, { args, position, counts, tooOldTo, begunMs }) => {
      const at = { ...position, from: String(position.from), tooOldTo: tooOldTo === null ? null : String(tooOldTo) };
      write.run(id, JSON.stringify(args), JSON.stringify(at), JSON.stringify(counts), Math.floor(begunMs));
    },
    forget: (id) => void remove.run(id),
    quarantined: (id, most) => {
      const lines = quarantined.all(id, most + 1);
      return lines.length > most ? null : new Set(lines);
    },
    resolve: ({ destinationId, rejected, missing: beyond, accepted, sent, tooOldTo, atMs }) => {
      const changes = { added: 0, released: 0 };
      for (const { line, message } of rejected.filter((each) => !isForgotten(each.line)))
        changes.added += quarantine.addLine(destinationId, line, { reason: message, atMs }) ? 1 : 0;
      for (const line of accepted) changes.released += quarantine.removeLine(destinationId, line) ? 1 : 0;
      parts.missing.add(
        destinationId,
        beyond.filter((each) => !isOfForgotten(each) && !missing.has(destinationId, each)),
      );
      for (const range of sent) missing.takeOut(destinationId, range, tooOldTo);
      return changes;
    },
    pendingLines: (id) => LOG_LANES.reduce((sum, lane) => sum + archive.linesAfter(lane, position(id, lane)), 0),
  };
}

/** Converts a row; `null` if another version may have written it. */
function toState(row: ReplayRow): ReplayState | null {
  const args = parseAs(row.args, isReplayArgs);
  const at = parseAs(row.position, isPosition);
  const counts = parseAs(row.counts, isCounts);
  if (args === null || at === null || counts === null) return null;
  const position = { deviceId: at.deviceId, from: BigInt(at.from) };
  const tooOldTo = at.tooOldTo === null ? null : BigInt(at.tooOldTo);
  return { args, position, counts, tooOldTo, begunMs: Number(row.started_ms) };
}

/** A position in the archive, and the end of the lines that were too old. */
const isPosition = shapeOf<{
  readonly deviceId: string | null;
  readonly from: string;
  readonly tooOldTo: string | null;
}>({ deviceId: orNull(isText), from: isNsText, tooOldTo: orNull(isNsText) });

const isCounts = shapeOf<ReplayCounts>({
  lines: isNumber,
  accepted: isNumber,
  refused: isNumber,
  known: isNumber,
  beyond: isNumber,
  released: isNumber,
});

function prepareMissing(db: Database.Database, { cut }: Pick<MissingTable, 'cut'>) {
  const within = db
    .prepare<[number, string, string, EpochNs, EpochNs], bigint>(
      'SELECT 1 FROM missing WHERE destination_id = ? AND device_id = ? AND reason = ? AND from_ns <= ? AND to_ns >= ?',
    )
    .pluck();
  const cleared = db
    .prepare<[string, EpochNs, EpochNs], bigint>(
      'SELECT 1 FROM cleared WHERE device_id = ? AND from_ns < ? AND to_ns > ? LIMIT 1',
    )
    .pluck();
  return {
    /** Whether all of these points are already recorded as missing for that reason. */
    has: (id: number, { deviceId, reason, fromNs, toNs }: MissingPoints): boolean =>
      within.get(id, deviceId, reason, fromNs, toNs) !== undefined,
    takeOut: (id: number, { deviceId, from, to, lines }: SentRange, tooOldTo: EpochNs | null): void => {
      const isKept = (points: MissingPoints): boolean =>
        cleared.get(deviceId, minNs(points.toNs, to), maxNs(points.fromNs, from)) === undefined;
      const found = { deviceId, fromNs: from, toNs: to, points: lines };
      cut(id, found, (points) => points.reason !== 'beyond_retention' && isKept(points));
      // Facts of a device share blocks with facts of others, and its rejected facts are older than all its accepted
      // ones.
      const young = { ...found, fromNs: maxNs(from, tooOldTo ?? from) };
      if (young.fromNs < to) cut(id, young, (points) => points.reason === 'beyond_retention' && isKept(points));
    },
  };
}
