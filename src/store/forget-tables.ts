/**
 * What is known of a device outside of the archive and the quarantine: which tables hold it, and its removal from them.
 */
import type Database from 'better-sqlite3';
import type { createFacts } from './facts.ts';

/** The tables that hold nothing of a device but by its id. */
const TABLES = [
  'coverage',
  'gap',
  'missed_anchor',
  'tie',
  'day_sum',
  'day_text',
  'hour_readings',
  'hours_written',
  'lateness',
  'reread',
  'cleared',
  'lack',
  'device_name',
  'device_revision',
  'device',
] as const;

/** Devices whose alerts were left out: to be read anew when one of them is included again (`ingest/alerts.ts`). */
const LEFT_OUT = 'alerts_left_out';

/** Stretches that were backfilled by themselves, with the devices that they were asked for (`scheduler/apart.ts`). */
const APART = 'backfilled_apart';

interface Apart {
  readonly devices: readonly string[] | null;
  readonly except?: readonly string[];
}

export interface KnowledgeRemoval {
  knows(deviceId: string): boolean;
  /** Only inside a transaction. @returns how many alerts that were. */
  remove(deviceId: string, keepsAlerts: boolean): number;
}

/** The facts by whoever remembers them: a row that was changed past it would be read, and written, as it was before. */
export type Facts = Pick<ReturnType<typeof createFacts>, 'read' | 'write'>;

/** Prepares it for an open database. */
export function createKnowledgeRemoval(db: Database.Database, facts: Facts): KnowledgeRemoval {
  const removals = TABLES.map((table) => db.prepare(`DELETE FROM ${table} WHERE device_id = ?`));
  const known = TABLES.map((table) =>
    // Lack-sets are by destination first: what they hold was in one of the others too.
    table === 'lack' ? null : db.prepare(`SELECT 1 FROM ${table} WHERE device_id = ? LIMIT 1`).pluck(),
  );
  const removeAlerts = db.prepare('DELETE FROM alert WHERE device_id = ?');
  const stripAlerts = db.prepare(
    'UPDATE alert SET device_id = NULL, device_name = NULL, sensor = NULL, kind = NULL WHERE device_id = ?',
  );
  const removeRecords = db.prepare('DELETE FROM dropped_record WHERE source = ?');
  const nameless = db.prepare('UPDATE request SET device_id = NULL WHERE device_id = ?');
  // What commands have asked for names devices; whoever works on it has read it.
  const jobs = db.prepare(
    `UPDATE job SET args = '{}', progress = NULL, summary = NULL, message = NULL
     WHERE (ended_ms IS NOT NULL AND instr(args || ifnull(summary, '') || ifnull(message, ''), ?) > 0)
        OR (kind = 'forget' AND state = 'running')`,
  );
  // A replay that was broken off over it begins anew.
  const replays = db.prepare('DELETE FROM replay WHERE instr(asked, @quoted) > 0 OR instr(place, @quoted) > 0');
  const forgetLeftOut = (deviceId: string, isExcluded: boolean, hadAlerts: boolean): void => {
    const before: readonly string[] = JSON.parse(facts.read(LEFT_OUT) ?? '[]');
    const others = before.filter((each) => each !== deviceId);
    const after = isExcluded && (hadAlerts || others.length < before.length) ? [...others, deviceId] : others;
    if (after.length > 0 || before.length > 0) facts.write(LEFT_OUT, JSON.stringify(after));
  };
  const forgetApart = (deviceId: string): void => {
    const before: readonly Apart[] = JSON.parse(facts.read(APART) ?? '[]');
    const isOther = (each: string): boolean => each !== deviceId;
    const names = ({ devices, except }: Apart): boolean => ![...(devices ?? []), ...(except ?? [])].every(isOther);
    if (!before.some(names)) return;
    const after = before
      .map((each) => ({
        ...each,
        devices: each.devices?.filter(isOther) ?? null,
        except: each.except?.filter(isOther),
      }))
      // Without any device it would be one of all.
      .filter(({ devices }) => devices === null || devices.length > 0);
    facts.write(APART, JSON.stringify(after));
  };
  return {
    knows: (deviceId) => known.some((look) => look?.get(deviceId) !== undefined),
    remove: (deviceId, keepsAlerts) => {
      const alerts = (keepsAlerts ? stripAlerts : removeAlerts).run(deviceId).changes;
      for (const removal of removals) removal.run(deviceId);
      removeRecords.run(deviceId);
      nameless.run(deviceId);
      jobs.run(deviceId);
      replays.run({ quoted: JSON.stringify(deviceId) });
      forgetLeftOut(deviceId, !keepsAlerts, alerts > 0);
      forgetApart(deviceId);
      return alerts;
    },
  };
}
