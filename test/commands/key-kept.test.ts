/**
 * The API key in a key of a database by mistake: every command that needs no API refuses it as well, before it sends
 * anything.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { fillState } from '../bench/scale/state.ts';
import { runHere, serve } from './check/support.ts';

const KEY = 'tmk_CANARYkey/7+9%Zz~4242';

/** A database that records the requests, and a state with points for it. */
async function openDatabase() {
  const requests: string[] = [];
  const server = await serve((request, response) => {
    requests.push(`${request.method} ${request.url} ${request.headers.authorization ?? ''}`);
    request.resume().on('end', () => response.writeHead(204).end());
  });
  const directory = mkdtempSync(join(tmpdir(), 'tidemark-key-'));
  onTestFinished(async () => {
    await server[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true });
  });
  const dataDir = join(directory, 'state');
  const size = { devices: 1, readings: 100, days: 1, sensors: 1, seed: 3 };
  fillState(dataDir, { ...size, influx: server.url, newestMs: Date.now() - 300_000 });
  const keyFile = join(directory, 'key');
  writeFileSync(keyFile, KEY);
  const env = {
    TIDEMARK_DATA_DIR: dataDir,
    TIDEMARK_API_URL: 'http://127.0.0.1:1/external/v1',
    TIDEMARK_INFLUX_URL: server.url,
    TIDEMARK_INFLUX_BUCKET: 'bench',
    TIDEMARK_LISTEN: '127.0.0.1:0',
  };
  return { requests, env, keyFile };
}

const COMMANDS = ['--check', '--check --write-probe', '--replay', '--verify', '--verify --repair'];

test.each(COMMANDS)('%s does not send the API key to a database', async (command) => {
  const { requests, env, keyFile } = await openDatabase();
  for (const source of [{ TIDEMARK_API_KEY: KEY }, { TIDEMARK_API_KEY_FILE: keyFile }])
    for (const place of [
      { TIDEMARK_INFLUX_TOKEN: KEY },
      { TIDEMARK_INFLUX_TOKEN_FILE: keyFile },
      { TIDEMARK_INFLUX_BUCKET: KEY },
      { TIDEMARK_INFLUX_ORG: `x-${KEY}` },
    ]) {
      const { code, stdout, stderr } = await runHere(command.split(' '), { env: { ...env, ...source, ...place } });
      // --check wraps its lines.
      const words = (stdout + stderr).replace(/\s+/g, ' ');
      expect([code, words]).toEqual([78, expect.stringContaining('this value contains the secret of api.key')]);
      expect(stdout + stderr).not.toContain('CANARY');
    }
  expect(requests).toEqual([]);
});

test('the record works: with a token of its own, the database receives requests', async () => {
  const { requests, env } = await openDatabase();
  for (const args of [['--replay'], ['--check'], ['--verify']]) {
    requests.length = 0;
    await runHere(args, { env: { ...env, TIDEMARK_API_KEY: KEY, TIDEMARK_INFLUX_TOKEN: 'its-own-4242' } });
    expect([args[0], requests.length > 0]).toEqual([args[0], true]);
    expect(requests.every((each) => each.endsWith(' Token its-own-4242'))).toBe(true);
  }
});

test('a command that needs no API works where the key file is missing or empty', async () => {
  const { env } = await openDatabase();
  for (const file of ['/nowhere/key', '/dev/null']) {
    const { code, stderr } = await runHere(['--status'], { env: { ...env, TIDEMARK_API_KEY_FILE: file } });
    expect([file, stderr]).toEqual([file, '']);
    expect(code).not.toBe(78);
  }
});
