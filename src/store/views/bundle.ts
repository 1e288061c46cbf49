/**
 * The part of a support bundle that comes from the state: shape and sizes, the last requests, rejections and jobs. It
 * reads without the lock while another process may use the state. If the state is damaged or of another version, it
 * reads as much as possible.
 *
 * Its result is not ready to be shown: device ids, reasons and messages are unchanged.
 */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { isRecord } from '../../core/json.ts';
import { plainText } from '../../core/text.ts';
import { DAY_MS } from '../../core/time.ts';
import { ACCOUNT_FACT, API_WORKSPACE, WORKSPACE_TAG } from '../facts.ts';
import { statePath } from '../open/database.ts';

type Cell = string | number | null;
type Row = Readonly<Record<string, Cell>>;

/** A part that could not be read, and why. */
export interface Unavailable {
  readonly unavailable: string;
}

/** A view of the state. Each part is the data, or why it could not be read. */
interface BundleState {
  readonly shape: Row | Unavailable;
  readonly tables: readonly Row[] | Unavailable;
  readonly requests: readonly Row[] | Unavailable;
  readonly requestsByHour: readonly Row[] | Unavailable;
  readonly requestsByKind: readonly Row[] | Unavailable;
  readonly quarantine: readonly Row[] | Unavailable;
  readonly gaps: readonly Row[] | Unavailable;
  readonly destinations: readonly Row[] | Unavailable;
  readonly jobs: readonly Row[] | Unavailable;
  /** The names to be replaced: the id and the names of each device, and the workspace. */
  readonly named: {
    readonly devices: readonly { readonly id: string; readonly names: readonly string[] }[];
    readonly workspace: readonly string[];
  };
}

/** Above this size the pages of each table are not counted, because that would need a read of the complete file. */
const SIZES_UP_TO_BYTES = 512 * 1024 ** 2;

const LAST = { requests: 50, jobs: 20, reasons: 30 };

/** The parts that are queries to the database. */
const QUESTIONS = {
  requests: `SELECT at_ms, lane, stream, device_id, status, fault, new_readings FROM request ORDER BY id DESC LIMIT ${LAST.requests}`,
  requestsByHour: `SELECT at_ms / 3600000 AS hour, count(*) AS requests, sum(fault IS NOT NULL) AS failed, sum(new_readings) AS new_readings
    FROM request WHERE at_ms > (SELECT max(at_ms) FROM request) - ${DAY_MS} GROUP BY 1 ORDER BY 1`,
  requestsByKind: `SELECT stream, lane, status, fault, count(*) AS requests, max(at_ms) AS last_ms
    FROM request WHERE at_ms > (SELECT max(at_ms) FROM request) - ${DAY_MS} GROUP BY 1, 2, 3, 4 ORDER BY 5 DESC`,
  quarantine: `SELECT d.name AS destination, q.source, q.reason, count(*) AS records, max(q.at_ms) AS last_ms
    FROM quarantine q LEFT JOIN destination d ON d.id = q.destination_id GROUP BY 1, 2, 3 ORDER BY 5 DESC LIMIT ${LAST.reasons}`,
  gaps: `SELECT reason, count(DISTINCT device_id) AS devices, count(*) AS gaps,
    sum(to_ns / 1000000000 - from_ns / 1000000000) AS seconds, min(retry_at_ms) AS retry_ms FROM gap GROUP BY 1 ORDER BY 3 DESC`,
  destinations: `SELECT d.id, d.name, d.is_current, s.stalled_ms, s.seen_ms, f.value AS blocked, s.skipped_to
    FROM destination d LEFT JOIN stall s ON s.destination_id = d.id LEFT JOIN fact f ON f.key = 'blocked.' || d.id ORDER BY d.id`,
  jobs: `SELECT id, kind, requested_by, state, requested_ms, started_ms, ended_ms, exit_code, message FROM job ORDER BY id DESC LIMIT ${LAST.jobs}`,
} as const;

/**
 * Reads the state in a directory.
 *
 * @returns `null` if there is none. Never throws.
 */
export function readForBundle(directory: string): BundleState | null {
  const path = statePath(directory);
  if (!isThere(path)) return null;
  const db = attempt(() => open(path));
  if ('unavailable' in db) {
    const none = Object.fromEntries(Object.keys(QUESTIONS).map((name) => [name, db])) as Questions;
    return { shape: db, tables: db, ...none, named: { devices: [], workspace: [] } };
  }
  try {
    const rows = (sql: string): Row[] => db.prepare<[], Row>(sql).all();
    const answers = Object.fromEntries(
      Object.entries(QUESTIONS).map(([name, sql]) => [name, attempt(() => rows(sql))]),
    ) as Questions;
    const shape = attempt(() => databaseShape(db));
    return { shape, tables: attempt(() => listTables(db, path)), ...answers, named: namedIn(db) };
  } finally {
    db.close();
  }
}

type Questions = Pick<BundleState, keyof typeof QUESTIONS>;

/** A file that cannot be inspected counts as present. Opening it shows the reason. */
function isThere(path: string): boolean {
  const stat = attempt(() => statSync(path, { throwIfNoEntry: false }) ?? null);
  return stat !== null;
}

function open(path: string): Database.Database {
  const db = new Database(path, { readonly: true, fileMustExist: true, timeout: 1000 });
  try {
    db.exec('BEGIN');
    db.prepare('SELECT count(*) FROM sqlite_master').get();
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function attempt<T>(work: () => T): T | Unavailable {
  try {
    return work();
  } catch (error) {
    return { unavailable: plainText(error instanceof Error ? error.message : 'unknown', 200) };
  }
}

function databaseShape(db: Database.Database): Row {
  const pragma = (name: string): Cell => db.pragma(name, { simple: true }) as Cell;
  const names = ['user_version', 'page_size', 'page_count', 'freelist_count', 'journal_mode', 'auto_vacuum'];
  const version = db.prepare<[], Cell>('SELECT sqlite_version()').pluck().get() ?? null;
  return { sqlite: version, ...Object.fromEntries(names.map((name) => [name, pragma(name)])) };
}

function listTables(db: Database.Database, path: string): Row[] {
  const names = db
    .prepare<[], string>("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY 1")
    .pluck()
    .all();
  const isSmall = statSync(path).size <= SIZES_UP_TO_BYTES;
  const bytes = db
    .prepare<[string], Cell>('SELECT sum(pgsize) FROM dbstat WHERE name = ? AND aggregate = TRUE')
    .pluck();
  return names.map((name) => {
    const rows = attempt(() => db.prepare<[], Cell>(`SELECT count(*) FROM "${name}"`).pluck().get() ?? null);
    const size = isSmall ? attempt(() => bytes.get(name) ?? null) : null;
    return { table: name, rows: cell(rows), bytes: cell(size) };
  });
}

function cell(value: Cell | Unavailable): Cell {
  return typeof value === 'object' && value !== null ? value.unavailable : value;
}

function namedIn(db: Database.Database): BundleState['named'] {
  const texts = (sql: string): { id: string; name: string }[] => {
    const found = attempt(() => db.prepare<[], { id: string; name: string }>(sql).all());
    return 'unavailable' in found ? [] : found;
  };
  const names = new Map<string, Set<string>>();
  const rows = [
    ...texts('SELECT device_id AS id, name FROM device'),
    ...texts('SELECT device_id AS id, name FROM device_name'),
    // Devices that are no longer listed, but are still named in other tables.
    ...texts('SELECT DISTINCT device_id AS id, device_id AS name FROM gap'),
    ...texts('SELECT DISTINCT device_id AS id, device_id AS name FROM request WHERE device_id IS NOT NULL'),
    ...texts(
      'SELECT DISTINCT device_id AS id, device_name AS name FROM alert WHERE device_id IS NOT NULL AND device_name IS NOT NULL',
    ),
  ];
  for (const { id, name } of rows) names.set(id, (names.get(id) ?? new Set()).add(name));
  const facts = texts(
    `SELECT key AS id, value AS name FROM fact WHERE key IN ('${API_WORKSPACE}', '${WORKSPACE_TAG}', '${ACCOUNT_FACT}')`,
  );
  const workspace = facts.flatMap(({ id, name }) => (id === ACCOUNT_FACT ? accountNames(name) : [name]));
  return { devices: [...names].map(([id, own]) => ({ id, names: [...own] })), workspace: [...new Set(workspace)] };
}

function accountNames(text: string): string[] {
  const account: unknown = attempt(() => JSON.parse(text));
  if (!isRecord(account)) return [];
  return [account['workspaceId'], account['name']].filter((each) => typeof each === 'string');
}

/** The files of a data directory with their sizes and modes. */
export function listFiles(directory: string): readonly Row[] | Unavailable {
  return attempt(() =>
    readdirSync(directory).map((name) => {
      const { size, mode, uid } = statSync(join(directory, name));
      return { file: name, bytes: size, mode: `0${(mode & 0o777).toString(8)}`, owner_uid: uid };
    }),
  );
}
