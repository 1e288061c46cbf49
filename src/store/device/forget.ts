/**
 * The forgetting of a device: in small steps, so that the program goes on beside it, and resumable, so that it is done
 * whole whatever is killed when.
 *
 * Promises: from `begin` on nothing of the device can land (`guard`); a line that a configured destination has not
 * settled stays until it has; what is removed does not linger in the file: cells are overwritten as they are deleted
 * (`secure_delete`, see `database.ts`), pages that became free are given back, and the log that held it all is emptied.
 */
import type Database from 'better-sqlite3';
import { identityTag } from '../../core/lines/line-text.ts';
import { aboutItem } from '../../core/quarantine.ts';
import type { LogLane } from '../../core/state/log.ts';
import type { ForgetStep, ForgetStore, ForgottenCounts } from '../../core/state/state.ts';
import { ForgottenError } from '../../core/state/telemetry.ts';
import { unpack } from '../archive/block-codec.ts';
import type { QuarantineReader } from '../delivery/quarantine.ts';
import { createKnowledgeRemoval, type Facts } from '../forget-tables.ts';
import { createLineRemoval, linesOf } from './forget-lines.ts';

/** What one step goes through: rows of the log, bytes of lines, rows of the quarantine, free pages. */
const STEP_ROWS = 2000;
const STEP_BYTES = 1024 * 1024;
const STEP_PAGES = 2048;

interface Marker {
  readonly tag: string;
  readonly block: bigint;
  readonly item: bigint;
}

export interface Forgetting extends ForgetStore {
  /** @throws ForgottenError for a device that is being forgotten, or was and has not been listed since. */
  guard(deviceId: string): void;
  isForgotten(deviceId: string): boolean;
  /** The same by the `device_id` tag of a line. */
  isForgottenTag(tag: string): boolean;
  /** Says that a device is listed: it may be synced, unless its forgetting is under way. */
  listed(deviceId: string): void;
}

/** Prepares it for an open database. What writes only inside a transaction, but `emptyLog`. */
export function createForgetting(
  db: Database.Database,
  parts: { quarantine: QuarantineReader; facts: Facts; dropMemory: (deviceId: string) => void },
): Forgetting {
  const marker = db.prepare<[string], Marker>('SELECT tag, block, item FROM forgetting WHERE device_id = ?');
  const mark = db.prepare('INSERT OR IGNORE INTO forgetting (device_id, tag) VALUES (?, ?)');
  const moveBlock = db.prepare('UPDATE forgetting SET block = ? WHERE device_id = ?');
  const moveItem = db.prepare('UPDATE forgetting SET item = ? WHERE device_id = ?');
  const unmark = db.prepare('DELETE FROM forgetting WHERE device_id = ?');
  const all = db.prepare<[], string>('SELECT device_id FROM forgetting ORDER BY device_id').pluck();
  const removeItem = db.prepare('DELETE FROM quarantine WHERE id = ?');
  const isListed = db.prepare<[string], bigint>('SELECT 1 FROM device WHERE device_id = ?').pluck();
  const knowledge = createKnowledgeRemoval(db, parts.facts);
  const lines = createLineRemoval(db, { rows: STEP_ROWS, bytes: STEP_BYTES });
  const forgotten = new Set<string>(all.all());
  // What the last process has passed over, because it waited, was remembered by nobody.
  if (!db.readonly) db.exec('UPDATE forgetting SET block = 0, item = 0');

  const freePages = (): number => Number(db.pragma('freelist_count', { simple: true }));
  const stepQuarantine = (deviceId: string, { item }: Marker): number | null => {
    const page = parts.quarantine.page(Number(item));
    const mention = JSON.stringify(deviceId);
    const tag = identityTag(deviceId);
    const own = page.filter((each) => {
      const { deviceTag } = aboutItem(each);
      if (deviceTag !== null) return deviceTag === tag;
      return each.destinationId === null && each.content.includes(mention);
    });
    for (const { id } of own) removeItem.run(id);
    const last = page.at(-1);
    if (last === undefined) return null;
    moveItem.run(last.id, deviceId);
    return own.length;
  };
  /** @returns whether there may be more. */
  const givesBack = (): boolean => {
    const free = freePages();
    if (free > 0) db.pragma(`incremental_vacuum(${STEP_PAGES})`);
    return freePages() < free;
  };
  const finish = (deviceId: string): void => {
    unmark.run(deviceId);
    // It was listed meanwhile: from here on it is a new device.
    if (isListed.get(deviceId) !== undefined) forgotten.delete(deviceId);
  };
  const step = (deviceId: string, configured: readonly number[]): ForgetStep => {
    const at = marker.get(deviceId);
    if (at === undefined) return { removed: NOTHING, state: 'done', share: 1 };
    const block = lines.step(at.tag, { deviceId, after: Number(at.block), configured });
    if (block.at !== null) {
      moveBlock.run(block.at, deviceId);
      return { removed: { ...NOTHING, points: block.removed }, state: 'going-on', share: block.share };
    }
    if (block.isWaiting) {
      moveBlock.run(0, deviceId);
      return { removed: NOTHING, state: 'waiting', share: 1 };
    }
    const quarantined = stepQuarantine(deviceId, at);
    if (quarantined !== null) return { removed: { ...NOTHING, quarantined }, state: 'going-on', share: 1 };
    if (givesBack()) return { removed: NOTHING, state: 'going-on', share: 1 };
    finish(deviceId);
    return { removed: NOTHING, state: 'done', share: 1 };
  };
  const guard = (deviceId: string): void => {
    if (forgotten.has(deviceId)) throw new ForgottenError(`${deviceId} is being forgotten`);
  };
  return {
    guard,
    isForgotten: (deviceId) => forgotten.has(deviceId),
    isForgottenTag: (tag) => forgotten.size > 0 && [...forgotten].some((deviceId) => identityTag(deviceId) === tag),
    listed: (deviceId) => {
      if (forgotten.has(deviceId) && marker.get(deviceId) === undefined) forgotten.delete(deviceId);
    },
    knows: (deviceId) => knowledge.knows(deviceId) || marker.get(deviceId) !== undefined,
    pending: createPending(db),
    begin: (deviceId, keepsAlerts) => {
      mark.run(deviceId, identityTag(deviceId));
      const alerts = knowledge.remove(deviceId, keepsAlerts);
      forgotten.add(deviceId);
      parts.dropMemory(deviceId);
      return { ...NOTHING, alerts };
    },
    step,
    unfinished: () => all.all(),
    emptyLog: () => {
      // Not a moment longer: whoever reads may do so for long, and everything else would wait.
      const patience = db.pragma('busy_timeout', { simple: true });
      db.pragma('busy_timeout = 0');
      try {
        const [answer] = db.pragma('wal_checkpoint(TRUNCATE)') as { busy: bigint | number }[];
        return Number(answer?.busy ?? 1) === 0;
      } finally {
        db.pragma(`busy_timeout = ${Number(patience)}`);
      }
    },
  };
}

const NOTHING: ForgottenCounts = { points: 0, quarantined: 0, alerts: 0 };

interface PendingRow {
  readonly seq: bigint;
  readonly device_id: string | null;
  readonly lines: bigint;
}

/** How many blocks are looked at for what waits: those of no device have to be unpacked. */
const PENDING_ROWS = 500;

function createPending(db: Database.Database): ForgetStore['pending'] {
  const position = db.prepare<[number, string], { block: bigint; line: bigint }>(
    'SELECT block, line FROM position WHERE destination_id = ? AND lane = ?',
  );
  const rows = db.prepare<[LogLane, number], PendingRow>(
    `SELECT seq, device_id, lines FROM block WHERE lane = ? AND seq >= ? ORDER BY seq LIMIT ${PENDING_ROWS}`,
  );
  const data = db.prepare<[bigint], Buffer>('SELECT data FROM block WHERE seq = ?').pluck();
  /** How many lines of a block are of the device, from one on. */
  const countOf = (row: PendingRow, tag: string, from: number): number => {
    if (row.device_id !== null) return Number(row.lines) - from;
    const packed = data.get(row.seq);
    return packed === undefined ? 0 : linesOf(unpack(packed), tag).filter((at) => at >= from).length;
  };
  return (deviceId, { destinationId, lane, from }) => {
    const place = position.get(destinationId, lane) ?? { block: 0n, line: 0n };
    const found = rows.all(lane, Math.max(from, Number(place.block)));
    const tag = identityTag(deviceId);
    const lines = found
      .filter(({ device_id }) => device_id === null || device_id === deviceId)
      .reduce((sum, row) => sum + countOf(row, tag, row.seq === place.block ? Number(place.line) : 0), 0);
    const last = found.at(-1);
    return { lines, next: last === undefined || found.length < PENDING_ROWS ? null : Number(last.seq) + 1 };
  };
}
