/** `--check --startup` ends as the daemon's start does: with its exit code where that ends at once, and else with 0. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { openStore } from '../../../src/store/store.ts';
import { patient } from '../../support/patience.ts';
import { type CheckStage, openStage, runHere } from './support.ts';

type Environment = Readonly<Record<string, string>>;

/** A state of a workspace. */
function fill({ dataDir }: CheckStage, apiId: string): void {
  const { store, close } = openStore(dataDir);
  store.pinWorkspace({ apiId, tag: apiId });
  close();
}

/** The exit codes of the check and of a daemon, which is stopped if it has not ended by then. */
async function codesOf(
  stage: CheckStage,
  env: Environment = {},
  withinMs = patient(10_000),
): Promise<[check: number, daemon: number]> {
  const { code } = await stage.run(['--startup'], { env });
  const given = {
    TIDEMARK_API_URL: stage.url,
    TIDEMARK_API_KEY: stage.simulator.settings.key.secret,
    TIDEMARK_DATA_DIR: stage.dataDir,
    TIDEMARK_LISTEN: '127.0.0.1:0',
    ...env,
  };
  const daemon = await runHere([], { env: given, signal: AbortSignal.timeout(Math.ceil(withinMs)) });
  return [code, daemon.code];
}

test('0 where a daemon waits: the API and the database are down, or the key is rejected', async () => {
  await using stage = await openStage();
  const down = {
    TIDEMARK_API_URL: 'http://127.0.0.1:1/external/v1',
    TIDEMARK_INFLUX_URL: 'http://127.0.0.1:1',
    TIDEMARK_INFLUX_BUCKET: 'b',
  };
  expect((await stage.run([], { env: down })).code).toBe(1);
  expect(await codesOf(stage, down, 1500)).toEqual([0, 0]);
  const refused = { TIDEMARK_API_KEY: 'tmk_CANARYkey/of+another%system' };
  expect((await stage.run([], { env: refused })).code).toBe(77);
  expect(await codesOf(stage, refused, 1500)).toEqual([0, 0]);
});

test.each<readonly [string, Environment]>([
  ['a value that is none', { TIDEMARK_SYNC_HISTORY: 'long' }],
  ['no key', { TIDEMARK_API_KEY: '' }],
  ['a file that is not there', { TIDEMARK_API_CA_FILE: '/nonexistent' }],
])('78 where the configuration is wrong: %s', async (_, env) => {
  await using stage = await openStage();
  expect(await codesOf(stage, env)).toEqual([78, 78]);
});

test.each<readonly [string, (stage: CheckStage) => Environment]>([
  [
    'the state is of a newer version',
    (stage) => {
      fill(stage, 'ws-simulated');
      const db = new Database(join(stage.dataDir, 'tidemark.db'));
      db.pragma('user_version = 9999');
      db.close();
      return {};
    },
  ],
  [
    'the state file is of another program',
    ({ dataDir }) => {
      mkdirSync(dataDir);
      writeFileSync(join(dataDir, 'tidemark.db'), 'something else, and long enough to be no empty file');
      return {};
    },
  ],
  [
    'the place of the state is a file',
    ({ directory }) => {
      writeFileSync(join(directory, 'file'), '');
      return { TIDEMARK_DATA_DIR: join(directory, 'file') };
    },
  ],
  [
    'the state is of another workspace',
    (stage) => {
      fill(stage, 'ws-another');
      return {};
    },
  ],
])('1 where %s', async (_, prepare) => {
  await using stage = await openStage();
  expect(await codesOf(stage, prepare(stage))).toEqual([1, 1]);
});

test('1 where the address of the page is taken', async () => {
  await using stage = await openStage();
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const place = server.address();
  const port = typeof place === 'object' ? place?.port : 0;
  expect(await codesOf(stage, { TIDEMARK_LISTEN: `127.0.0.1:${port}` })).toEqual([1, 1]);
  server.close();
});
