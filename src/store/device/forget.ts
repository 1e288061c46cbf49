/**
 * Removes a device in small steps between other work. It can be resumed, so the removal is completed after any crash.
 *
 * Promises: from `begin` on, no data of the device can be committed (`guard`). A line that a configured destination has
 * not acknowledged stays until it has. Removed data does not remain in the file: deleted cells are overwritten
 * (`secure_delete`, see `open/database.ts`), free pages are returned, and the write-ahead log is emptied.
 */

import type Database from 'better-sqlite3';
import { identityTag } from '../../core/lines/line-protocol.ts';
import { RECENT_EVENTS } from '../../core/page-facts.ts';
import { aboutItem } from '../../core/quarantine.ts';
import type { LogLane } from '../../core/state/log.ts';
import {
  ALERTS_LEFT_OUT,
  BACKFILLED_APART,
  type ForgetStep,
  type ForgetStore,
  type ForgottenCounts,
  type IsolatedText,
  parseList,
} from '../../core/state/state.ts';
import { ForgottenError } from '../../core/state/telemetry.ts';
import { prepareLines } from '../archive/archive.ts';
import type { PositionTable } from '../delivery/positions.ts';
import type { QuarantineReader, QuarantineTable } from '../delivery/quarantine.ts';
import type { Facts } from '../facts.ts';
import { createLineRemoval, type LineRemoval, lineIndexes, removeLines } from './forget-lines.ts';

/** The limits of one step: rows of the log, bytes of lines, free pages. */
const STEP_ROWS = 2000;
const STEP_BYTES = 1024 * 1024;
const STEP_PAGES = 2048;

const NONE_REMOVED: ForgottenCounts = { points: 0, quarantined: 0, alerts: 0 };

/** The progress of a removal: the last block and the last item of the quarantine that were checked. */
interface Marker {
  readonly tag: string;
  readonly block: bigint;
  readonly item: bigint;
}

/** The removal of devices, for the other parts of the store. */
export interface Forgetting extends ForgetStore {
  /** Throws ForgottenError for a device that is being removed, or was removed and has not been listed since. */
  guard(deviceId: string): void;
  isForgotten(deviceId: string): boolean;
  /** Whether a device is being or was removed, by the `device_id` tag of a line. */
  isForgottenTag(tag: string): boolean;
  /** Records that a device is listed: it may be synced, unless its removal is under way. */
  noteListed(deviceId: string): void;
  /** Restarts the scans, because lines that the last process skipped were recorded nowhere. */
  startOver(): void;
}

interface ForgettingParts {
  readonly positions: PositionTable;
  readonly quarantine: QuarantineReader;
  readonly items: Pick<QuarantineTable, 'remove'>;
  readonly facts: Facts;
  /** Removes the rows of a device, and the cached data about it, in the other parts of the store. */
  readonly dropDevice: (deviceId: string) => void;
}

/** The tables and statements that the steps of a removal use. */
interface Work {
  readonly db: Database.Database;
  readonly markers: ReturnType<typeof prepareMarkers>;
  readonly facts: FactsRemoval;
  readonly lines: LineRemoval;
  readonly quarantine: QuarantineReader;
  readonly removeItem: QuarantineTable['remove'];
  readonly isListed: Database.Statement<[string], bigint>;
  /** Devices about which nothing may be committed. */
  readonly forgotten: Set<string>;
}

/** Prepares the removal for an open database. Writing calls need a transaction, except `emptyLog`. */
export function createForgetting(db: Database.Database, parts: ForgettingParts): Forgetting {
  const markers = prepareMarkers(db);
  const work: Work = {
    db,
    markers,
    facts: createFactsRemoval(db, parts.facts),
    lines: createLineRemoval(db, parts.positions, { rows: STEP_ROWS, bytes: STEP_BYTES }),
    quarantine: parts.quarantine,
    removeItem: parts.items.remove,
    isListed: db.prepare<[string], bigint>('SELECT 1 FROM device WHERE device_id = ?').pluck(),
    forgotten: new Set(markers.all.all()),
  };
  const { forgotten, facts } = work;
  return {
    guard: (deviceId) => {
      if (forgotten.has(deviceId)) throw new ForgottenError(`${deviceId} is being removed`);
    },
    isForgotten: (deviceId) => forgotten.has(deviceId),
    isForgottenTag: (tag) => forgotten.size > 0 && [...forgotten].some((deviceId) => identityTag(deviceId) === tag),
    noteListed: (deviceId) => {
      if (forgotten.has(deviceId) && markers.get.get(deviceId) === undefined) forgotten.delete(deviceId);
    },
    startOver: () => void markers.startOver.run(),
    hasTraces: (deviceId) => facts.hasTraces(deviceId) || markers.get.get(deviceId) !== undefined,
    pending: createPending(db, parts.positions),
    begin: (deviceId, keepsAlerts) => {
      markers.mark.run(deviceId, identityTag(deviceId));
      const alerts = facts.remove(deviceId, keepsAlerts);
      forgotten.add(deviceId);
      parts.dropDevice(deviceId);
      return { ...NONE_REMOVED, alerts };
    },
    step: (deviceId, configured) => removeNextPart(work, deviceId, configured),
    unfinished: () => markers.all.all(),
    emptyLog: () => emptyLog(db),
  };
}

function prepareMarkers(db: Database.Database) {
  return {
    get: db.prepare<[string], Marker>('SELECT tag, block, item FROM forgetting WHERE device_id = ?'),
    mark: db.prepare<[string, string]>('INSERT OR IGNORE INTO forgetting (device_id, tag) VALUES (?, ?)'),
    moveBlock: db.prepare<[number, string]>('UPDATE forgetting SET block = ? WHERE device_id = ?'),
    moveItem: db.prepare<[number, string]>('UPDATE forgetting SET item = ? WHERE device_id = ?'),
    startOver: db.prepare('UPDATE forgetting SET block = 0, item = 0'),
    remove: db.prepare<[string]>('DELETE FROM forgetting WHERE device_id = ?'),
    all: db.prepare<[], string>('SELECT device_id FROM forgetting ORDER BY device_id').pluck(),
  };
}

/** Continues the removal of a device: first its lines, then the quarantine, then the pages that became free. */
function removeNextPart(work: Work, deviceId: string, configured: readonly number[]): ForgetStep {
  const { markers, lines } = work;
  const at = markers.get.get(deviceId);
  if (at === undefined) return { removed: NONE_REMOVED, state: 'done', share: 1 };
  const block = removeLines(lines, at.tag, { deviceId, after: Number(at.block), configured });
  if (block.at !== null) {
    markers.moveBlock.run(block.at, deviceId);
    return { removed: { ...NONE_REMOVED, points: block.removed }, state: 'going-on', share: block.share };
  }
  if (block.isWaiting) {
    markers.moveBlock.run(0, deviceId);
    return { removed: NONE_REMOVED, state: 'waiting', share: 1 };
  }
  const quarantined = stepQuarantine(work, deviceId, at);
  if (quarantined !== null) return { removed: { ...NONE_REMOVED, quarantined }, state: 'going-on', share: 1 };
  if (giveBackPages(work.db)) return { removed: NONE_REMOVED, state: 'going-on', share: 1 };
  markers.remove.run(deviceId);
  // The device was listed in the meantime: from here on it is a new device.
  if (work.isListed.get(deviceId) !== undefined) work.forgotten.delete(deviceId);
  return { removed: NONE_REMOVED, state: 'done', share: 1 };
}

/**
 * Removes the items of a device from a page of the quarantine.
 *
 * @returns how many items; `null` after the last page.
 */
function stepQuarantine({ quarantine, removeItem, markers }: Work, deviceId: string, { item }: Marker): number | null {
  const page = quarantine.page(Number(item));
  const mention = JSON.stringify(deviceId);
  const tag = identityTag(deviceId);
  const own = page.filter((each) => {
    const { deviceTag } = aboutItem(each);
    if (deviceTag !== null) return deviceTag === tag;
    return each.destinationId === null && each.content.includes(mention);
  });
  for (const { id } of own) removeItem(id);
  const last = page.at(-1);
  if (last === undefined) return null;
  markers.moveItem.run(last.id, deviceId);
  return own.length;
}

/**
 * Returns free pages to the file system.
 *
 * @returns whether there may be more.
 */
function giveBackPages(db: Database.Database): boolean {
  const freePages = (): number => Number(db.pragma('freelist_count', { simple: true }));
  const free = freePages();
  if (free > 0) db.pragma(`incremental_vacuum(${STEP_PAGES})`);
  return freePages() < free;
}

/**
 * Empties the write-ahead log.
 *
 * @returns whether no connection was reading it.
 */
function emptyLog(db: Database.Database): boolean {
  // Without waiting: a reader may take long, and all other work would wait for it.
  const busyTimeoutMs = db.pragma('busy_timeout', { simple: true });
  db.pragma('busy_timeout = 0');
  try {
    const [answer] = db.pragma('wal_checkpoint(TRUNCATE)') as { busy: bigint | number }[];
    return Number(answer?.busy ?? 1) === 0;
  } finally {
    db.pragma(`busy_timeout = ${Number(busyTimeoutMs)}`);
  }
}

interface PendingRow {
  readonly seq: bigint;
  readonly device_id: string | null;
  readonly lines: bigint;
}

/**
 * How many blocks are checked for pending lines in one step. Blocks that belong to no device have to be decompressed.
 */
const PENDING_ROWS = 500;

function createPending(db: Database.Database, positions: PositionTable): ForgetStore['pending'] {
  const rows = db.prepare<[LogLane, number], PendingRow>(
    `SELECT seq, device_id, lines FROM block WHERE lane = ? AND seq >= ? ORDER BY seq LIMIT ${PENDING_ROWS}`,
  );
  const linesOf = prepareLines(db);
  /** How many lines of a block, from a given one on, belong to the device. */
  const pendingLines = (row: PendingRow, tag: string, from: number): number => {
    if (row.device_id !== null) return Number(row.lines) - from;
    return lineIndexes(linesOf(row.seq), tag).filter((at) => at >= from).length;
  };
  return (deviceId, { destinationId, lane, from }) => {
    const position = positions.read(destinationId, lane);
    const found = rows.all(lane, Math.max(from, position.block));
    const tag = identityTag(deviceId);
    const lines = found
      .filter(({ device_id }) => device_id === null || device_id === deviceId)
      .reduce((sum, row) => sum + pendingLines(row, tag, Number(row.seq) === position.block ? position.line : 0), 0);
    const last = found.at(-1);
    return { lines, next: last === undefined || found.length < PENDING_ROWS ? null : Number(last.seq) + 1 };
  };
}

/** The tables that identify a device only by its id; the writer of its coverage removes that. */
const TABLES = [
  'gap',
  'missed_overlap',
  'empty_range',
  'empty_window',
  'time_offset',
  'day_sum',
  'day_text',
  'hour_readings',
  'hours_written',
  'lateness',
  'reread',
  'recheck',
  'cleared',
  'missing',
  'device_name',
  'device_revision',
  'device',
] as const;

/** The data about a device outside the archive and the quarantine. */
interface FactsRemoval {
  hasTraces(deviceId: string): boolean;
  /**
   * Removes the data. Call it only inside a transaction.
   *
   * @returns the number of alerts that were removed.
   */
  remove(deviceId: string, keepsAlerts: boolean): number;
}

function createFactsRemoval(db: Database.Database, facts: Facts): FactsRemoval {
  const removals = TABLES.map((table) => db.prepare(`DELETE FROM ${table} WHERE device_id = ?`));
  const isCovered = db.prepare('SELECT 1 FROM coverage WHERE device_id = ? LIMIT 1').pluck();
  const known = TABLES.map((table) =>
    // Missing points are indexed by destination first. Their points are in one of the other tables too.
    table === 'missing' ? null : db.prepare(`SELECT 1 FROM ${table} WHERE device_id = ? LIMIT 1`).pluck(),
  );
  const removeAlerts = db.prepare('DELETE FROM alert WHERE device_id = ?');
  const stripAlerts = db.prepare(
    'UPDATE alert SET device_id = NULL, device_name = NULL, sensor = NULL, kind = NULL WHERE device_id = ?',
  );
  const removeRecords = db.prepare('DELETE FROM dropped_record WHERE source = ?');
  const nameless = db.prepare('UPDATE request SET device_id = NULL WHERE device_id = ?');
  // The arguments of jobs name devices. A running job has read them already.
  const jobs = db.prepare(
    `UPDATE job SET args = '{}', progress = NULL, summary = NULL, message = NULL
     WHERE (ended_ms IS NOT NULL AND instr(args || ifnull(summary, '') || ifnull(message, ''), ?) > 0)
        OR (kind = 'forget' AND state = 'running')`,
  );
  // An interrupted replay with this device starts again.
  const replays = db.prepare('DELETE FROM replay WHERE instr(args, @quoted) > 0 OR instr(position, @quoted) > 0');
  return {
    hasTraces: (deviceId) => [isCovered, ...known].some((view) => view?.get(deviceId) !== undefined),
    remove: (deviceId, keepsAlerts) => {
      const alerts = (keepsAlerts ? stripAlerts : removeAlerts).run(deviceId).changes;
      for (const removal of removals) removal.run(deviceId);
      removeRecords.run(deviceId);
      nameless.run(deviceId);
      jobs.run(deviceId);
      replays.run({ quoted: JSON.stringify(deviceId) });
      forgetLeftOut(facts, deviceId, { isExcluded: !keepsAlerts, hadAlerts: alerts > 0 });
      forgetApart(facts, deviceId);
      forgetEvents(facts, deviceId);
      return alerts;
    },
  };
}

/** Removes a device from the list of devices whose alerts were excluded, unless its alerts are still excluded. */
function forgetLeftOut(
  facts: Facts,
  deviceId: string,
  { isExcluded, hadAlerts }: { readonly isExcluded: boolean; readonly hadAlerts: boolean },
): void {
  const before = parseList<string>(facts.read(ALERTS_LEFT_OUT));
  const others = before.filter((each) => each !== deviceId);
  const after = isExcluded && (hadAlerts || others.length < before.length) ? [...others, deviceId] : others;
  if (after.length > 0 || before.length > 0) facts.write(ALERTS_LEFT_OUT, JSON.stringify(after));
}

/** Removes a device from the ranges that were backfilled separately. */
function forgetApart(facts: Facts, deviceId: string): void {
  const before = parseList<IsolatedText>(facts.read(BACKFILLED_APART));
  const isOther = (each: string): boolean => each !== deviceId;
  const names = ({ devices, except }: IsolatedText): boolean => ![...(devices ?? []), ...(except ?? [])].every(isOther);
  if (!before.some(names)) return;
  const after = before
    .map((each) => ({
      ...each,
      devices: each.devices?.filter(isOther) ?? null,
      except: each.except?.filter(isOther),
    }))
    // A range without any device would mean all devices.
    .filter(({ devices }) => devices === null || devices.length > 0);
  facts.write(BACKFILLED_APART, JSON.stringify(after));
}

/** Recent events of an earlier process that name the device are dropped completely; the log has them. */
function forgetEvents(facts: Facts, deviceId: string): void {
  const text = facts.read(RECENT_EVENTS);
  if (text?.includes(JSON.stringify(deviceId).slice(1, -1)) === true) facts.write(RECENT_EVENTS, '[]');
}
