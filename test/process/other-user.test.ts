/**
 * A state that this user may not read, and a file that is no state: every mode that reads it reports that, and none
 * says that there is no state.
 */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { start } from './support.ts';

const isRoot = process.getuid?.() === 0;
const OTHER_USER = 65_534;
const MODES = [
  ['--status'],
  ['--export', 'csv', '--json'],
  ['--backup', '/tmp/never-made.db'],
  ['--quarantine', '--json'],
  ['--quarantine', 'retry'],
  ['--forget', '--device', 'a'],
  ['--verify'],
  ['--replay', '--json'],
];

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'tidemark-user-'));
  chmodSync(directory, 0o755);
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

async function outcomes(dataDir: string, uid: number | undefined): Promise<readonly unknown[]> {
  const env = {
    TIDEMARK_DATA_DIR: dataDir,
    TIDEMARK_INFLUX_URL: 'http://127.0.0.1:1',
    TIDEMARK_INFLUX_BUCKET: 'b',
  };
  const all: unknown[] = [];
  for (const args of MODES) {
    const { code, stdout, stderr } = await start(args, { env, ...(uid === undefined ? {} : { uid }) }).ended;
    const words = /cannot read the state|this is not a file/.exec(stderr)?.[0] ?? stderr;
    all.push([args[0], code, stdout, words]);
  }
  return all;
}

test('a state that this user may not read does not count as missing', async () => {
  const dataDir = join(directory, 'own');
  mkdirSync(dataDir);
  writeFileSync(join(dataDir, 'tidemark.db'), '');
  chmodSync(dataDir, isRoot ? 0o700 : 0);
  const reported = await outcomes(dataDir, isRoot ? OTHER_USER : undefined);
  chmodSync(dataDir, 0o700);
  expect(reported).toEqual(MODES.map(([mode]) => [mode, 1, '', 'cannot read the state']));
});

test('a directory with the name of the state file is reported as a directory', async () => {
  const dataDir = join(directory, 'folder');
  mkdirSync(join(dataDir, 'tidemark.db'), { recursive: true });
  expect(await outcomes(dataDir, undefined)).toEqual(MODES.map(([mode]) => [mode, 1, '', 'this is not a file']));
});

test('a state behind a closed directory is not taken from its owner', async () => {
  const closed = join(directory, 'closed');
  const dataDir = join(closed, 'data');
  mkdirSync(dataDir, { recursive: true });
  chmodSync(closed, isRoot ? 0o700 : 0);
  const env = {
    TIDEMARK_DATA_DIR: dataDir,
    TIDEMARK_API_URL: 'http://127.0.0.1:1/external/v1',
    TIDEMARK_API_KEY: 'a-key-of-a-test',
  };
  const uid = isRoot ? { uid: OTHER_USER } : {};
  for (const args of [[], ['--once'], ['--backfill', '--from', '1d'], ['--plan']]) {
    const { code, stderr } = await start(args, { env, ...uid }).ended;
    expect([args[0], code, stderr]).toEqual([
      args[0],
      1,
      expect.stringContaining('Run Tidemark as the user that owns'),
    ]);
    expect(stderr).not.toContain('chown');
  }
  chmodSync(closed, 0o700);
});
