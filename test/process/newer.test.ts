/**
 * A state that a newer Tidemark wrote: every mode of this one reports that with a remedy, ends with 1, and changes
 * nothing.
 */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MODES } from '../../src/cli/command.ts';
import { openStore } from '../../src/store/store.ts';
import { openStage, type Stage } from './support.ts';

/** Modes that look at no state. */
const STATELESS = ['init', 'help', 'version', 'health'];

/** It is still copied, for the version that can read it (below). */
const COPIES = 'backup';

const COMMANDS: readonly (readonly string[])[] = [
  [],
  ['--once'],
  ['--demo'],
  ['--plan'],
  ['--backfill', '--from', '1h'],
  ['--backfill', '--from', '1h', '--dry-run'],
  ['--status'],
  ['--status', '--json'],
  ['--check'],
  ['--verify'],
  ['--export', 'csv'],
  ['--replay', '--from', '1h'],
  ['--quarantine'],
  ['--quarantine', 'retry'],
  ['--quarantine', 'drop', '--device', 'd'],
  ['--forget', '--device', 'd'],
];

let stage: Stage;
let database: string;

/** The configuration names a database, where nothing listens: a state is looked at first. */
const ENV = {
  TIDEMARK_LISTEN: '127.0.0.1:0',
  TIDEMARK_INFLUX_URL: 'http://127.0.0.1:9',
  TIDEMARK_INFLUX_TOKEN: 'no-token',
  TIDEMARK_INFLUX_BUCKET: 'none',
};

beforeAll(async () => {
  stage = await openStage();
  openStore(stage.dataDir).close();
  database = join(stage.dataDir, 'tidemark.db');
  const db = new Database(database);
  db.pragma('user_version = 999');
  db.close();
});
afterAll(() => stage[Symbol.asyncDispose]());

test('every mode is tried', () => {
  const tried = new Set(COMMANDS.map(([flag]) => flag?.slice(2)));
  const modes = MODES.map(({ flag }) => flag).filter((flag) => ![...STATELESS, COPIES].includes(flag));
  expect(modes.filter((flag) => !tried.has(flag))).toEqual([]);
});

test.each(COMMANDS.map((args) => [args.join(' ') || 'the daemon', args] as const))('%s', async (_name, args) => {
  const before = readFileSync(database);
  const { code, stdout, stderr } = await stage.run(args, { env: ENV });
  expect(code, stdout + stderr).toBe(1);
  const reported = (stdout + stderr).replaceAll(/\s+/g, ' ');
  expect(reported).toMatch(/written by a newer Tidemark \(state version 999, this version supports \d+\)/);
  expect(reported).toMatch(/(?:Run that version again|Use the newer version|restore a backup)/);
  expect(reported).not.toMatch(/ at \w+ \(|internal error/);
  expect(readFileSync(database)).toEqual(before);
  // A reading command leaves an empty log.
  expect(statSync(`${database}-wal`, { throwIfNoEntry: false })?.size ?? 0).toBe(0);
});

test('--backup copies it as it is, for the version that can read it', async () => {
  const file = join(stage.directory, 'copy.db');
  const { code, stdout, stderr } = await stage.run(['--backup', file, '--json']);
  expect(code, stderr).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ state_version: 999 });
});
