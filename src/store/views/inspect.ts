/**
 * Inspects the state thoroughly, read-only and without the lock, while another process may use it.
 *
 * In addition to SQLite's own check of the file, it checks the rules of the program that do not require reading every
 * block: ranges do not overlap, no position lies beyond the log, the sums are right, the newest block can be unpacked.
 */
import { existsSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import Database from 'better-sqlite3';
import type { StateSize } from '../../core/state/archive.ts';
import { plainText } from '../../core/text.ts';
import { unpack } from '../archive/block-codec.ts';
import { createVacuum } from '../archive/maintenance.ts';
import { API_WORKSPACE, prepareFact, WORKSPACE_TAG } from '../facts.ts';
import { foreignDatabase, isEmpty, lockPath, newerState, statePath } from '../open/database.ts';
import { isLocked } from '../open/lock.ts';
import { APPLICATION_ID, MIGRATIONS } from '../open/migrations.ts';
import { requireTarget } from '../open/new-file.ts';
import { explainedReading, hasStateFile } from '../open/read-only.ts';

/** The findings of a check of the state's file. */
export interface StateFindings {
  /** The version of its shape, and the version that this program migrates it to. */
  readonly version: number;
  readonly newestVersion: number;
  readonly size: StateSize;
  /** The broken rules, each in a few words; empty if all rules hold. */
  readonly broken: readonly string[];
  /** The workspace that it belongs to, by its id and by the tag of its points; `null` if it belongs to none yet. */
  readonly workspaceId: string | null;
  readonly workspaceTag: string | null;
}

/** Above this size the pages of the blocks are not checked, because reading all of them would take minutes. */
const WHOLE_UP_TO_BYTES = 4 * 1024 ** 3;

/** The size of the state file; 0 if there is none, or if this user may not see it. */
export function stateBytes(directory: string): number {
  try {
    return statSync(statePath(directory), { throwIfNoEntry: false })?.size ?? 0;
  } catch {
    return 0;
  }
}

/**
 * Whether a process uses the state.
 *
 * @throws UserError if that is unknown.
 */
export function isStateLocked(directory: string): boolean {
  const lock = lockPath(directory);
  return explainedReading(lock, () => {
    requireTarget(resolve(lock));
    // A lock that this user may not see does not count as missing.
    statSync(lock, { throwIfNoEntry: false });
    return isLocked(lock);
  });
}

/**
 * Checks the state in a directory.
 *
 * @returns `null` if there is none, or it is empty.
 * @throws UserError (exit 1) if it cannot be used.
 */
export function inspectState(directory: string): StateFindings | null {
  const path = statePath(directory);
  if (!hasStateFile(path)) return null;
  return explainedReading(path, () => {
    // Read-only if a dead process left a log: a writing connection would remove the log that the check needs.
    const isLeft = existsSync(`${path}-wal`) || existsSync(`${path}-journal`);
    const db = new Database(path, { readonly: isLeft, fileMustExist: true });
    try {
      db.pragma('query_only = ON');
      return db.transaction(() => inspect(db, path))();
    } finally {
      db.close();
    }
  });
}

function inspect(db: Database.Database, path: string): StateFindings | null {
  const version = Number(db.pragma('user_version', { simple: true }));
  const isOurs = Number(db.pragma('application_id', { simple: true })) === APPLICATION_ID;
  const empty = isEmpty(db);
  // The process that creates it has not finished yet.
  if (version === 0 && empty) return null;
  if (!isOurs) throw foreignDatabase(path);
  if (version > MIGRATIONS.length) throw newerState(path, version);
  const size = createVacuum(db, path).size();
  const damage = findDamage(db, size.usedBytes);
  const fact = prepareFact(db);
  return {
    version,
    newestVersion: MIGRATIONS.length,
    size,
    // A damaged file cannot be checked further.
    broken: damage.length > 0 ? damage : brokenRules(db, version),
    workspaceId: fact.get(API_WORKSPACE) ?? null,
    workspaceTag: fact.get(WORKSPACE_TAG) ?? null,
  };
}

function findDamage(db: Database.Database, usedBytes: number): string[] {
  const tables =
    usedBytes <= WHOLE_UP_TO_BYTES
      ? [null]
      : db.prepare<[], string>("SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'block'").pluck().all();
  for (const table of tables) {
    const verdict = String(db.pragma(table === null ? 'quick_check(1)' : `quick_check('${table}')`, { simple: true }));
    if (verdict !== 'ok') return [plainText(verdict)];
  }
  const danglingRows = db.pragma('foreign_key_check');
  return Array.isArray(danglingRows) && danglingRows.length > 0
    ? [`${danglingRows.length} rows refer to missing rows`]
    : [];
}

/** A rule, as a query that counts the violations, and the version of the state from which it applies. */
const RULES: readonly (readonly [text: string, since: number, sql: string])[] = [
  [
    'covered ranges overlap',
    1,
    `SELECT count(*) FROM (SELECT from_ns < lag(to_ns) OVER (PARTITION BY device_id ORDER BY from_ns) AS overlaps
     FROM coverage) WHERE overlaps`,
  ],
  [
    'the position of a destination is beyond the end of the archive',
    1,
    `SELECT count(*) FROM position
     WHERE block > 1 + ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'block'), 0)`,
  ],
  [
    'there are points but no workspace',
    1,
    `SELECT count(*) FROM (SELECT 1 FROM block LIMIT 1)
     WHERE NOT EXISTS (SELECT 1 FROM fact WHERE key = 'workspace_tag')`,
  ],
  [
    'the recorded numbers of blocks and points differ from the blocks in the archive',
    2,
    `SELECT (SELECT ifnull(sum(blocks), 0) FROM log_sum) <> (SELECT count(*) FROM block)
       OR (SELECT ifnull(sum(lines), 0) FROM log_sum) <> (SELECT ifnull(sum(lines), 0) FROM block)`,
  ],
  [
    'the total number of readings differs from the sum of the readings per day',
    2,
    'SELECT ifnull((SELECT readings FROM day_total), 0) <> ifnull((SELECT sum(readings) FROM day_sum), 0)',
  ],
];

function brokenRules(db: Database.Database, version: number): string[] {
  const broken = RULES.flatMap(([text, since, sql]) =>
    version >= since && Number(db.prepare(sql).pluck().get()) > 0 ? [text] : [],
  );
  const newest = db
    .prepare<[], { lines: number; data: Buffer }>('SELECT lines, data FROM block ORDER BY seq DESC LIMIT 1')
    .get();
  if (newest !== undefined && !isWhole(newest)) broken.push('the newest block cannot be decompressed');
  return broken;
}

function isWhole({ lines, data }: { readonly lines: number; readonly data: Buffer }): boolean {
  try {
    return unpack(data).length === lines;
  } catch {
    return false;
  }
}
