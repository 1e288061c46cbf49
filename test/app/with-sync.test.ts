/** Nothing stays open where a step of the end fails. */

import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Sync } from '../../src/app/open-sync.ts';
import { runService } from '../../src/app/service.ts';
import { readRunsWith } from '../../src/app/settings.ts';
import type { TerminalOutput } from '../../src/app/terminal.ts';
import { withRequestsOnly, withSync } from '../../src/app/with-sync.ts';
import type { Config } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { NEVER_ABORTED } from '../../src/core/async.ts';
import { Secret } from '../../src/core/secret.ts';

const nothing = (): void => undefined;

const terminal: TerminalOutput = {
  logger: { write: nothing } as unknown as TerminalOutput['logger'],
  observe: nothing,
  scrub: (text) => text,
  show: nothing,
  hint: () => false,
  showWork: nothing,
  endProgress: nothing,
};

const open = new Set<unknown>();
let directory: string;
let server: Server;
let config: Config;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'with-sync-'));
  server = createServer((_request, response) => response.writeHead(404, { 'content-type': 'text/plain' }).end('none'));
  server.keepAliveTimeout = 60_000;
  server.on('connection', (socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const environment = {
    TIDEMARK_API_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/external/v1`,
    TIDEMARK_API_KEY: 'key-4242',
    TIDEMARK_DATA_DIR: directory,
  };
  ({ config } = loadConfig({ file: null, environment, readFile: () => '', nowMs: Date.now() }));
});

afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await rm(directory, { recursive: true });
});

/** Closes the state of a sync, and then fails. */
function failAtClose(sync: Sync): void {
  const { close } = sync;
  Object.assign(sync, {
    close: () => {
      close();
      throw new Error('the state cannot be closed');
    },
  });
}

describe('at the end', () => {
  test('the connections to the API are closed, also where the state cannot be', async () => {
    const work = async (sync: Sync): Promise<void> => {
      failAtClose(sync);
      const purpose = { lane: 'live', stream: 'account' } as never;
      await sync.context.api.account(purpose, NEVER_ABORTED).catch(nothing);
      expect(open.size).toBe(1);
    };
    await expect(withRequestsOnly({ config, terminal }, work)).rejects.toThrow('the state cannot be closed');
    await expect.poll(() => open.size, { timeout: 1500 }).toBe(0);
  });

  test('the status page is closed, also where its events cannot be stored', async () => {
    let page = '';
    const work = async (sync: Sync): Promise<void> => {
      const onServed = (url: string): never => {
        page = url;
        sync.context.observe({ type: 'polling-stopped', reason: 'full' });
        Object.assign(sync.context.store, {
          saveFact: () => {
            throw new Error('the events cannot be stored');
          },
        });
        throw new Error('the work has failed');
      };
      const statusPage = { ...config.statusPage, password: null };
      const listen = { host: '127.0.0.1', port: 0 };
      const key = { key: () => new Secret('key-4242') } as never;
      const password = { inUse: () => null, checkFile: () => {} };
      const service = { sync, terminal, listen, statusPage, password, key, perDevice: false, onServed };
      await runService(service, NEVER_ABORTED);
    };
    await expect(withRequestsOnly({ config, terminal }, work)).rejects.toThrow('the events cannot be stored');
    await expect(fetch(page)).rejects.toThrow('fetch failed');
  });
});

test('--status beside a command that delivers shows the settings of that command', async () => {
  const { leftOut } = config.sync;
  const keptOf = async (exclude: readonly string[]): Promise<unknown> => {
    const own = { ...config, sync: { ...config.sync, leftOut: { ...leftOut, exclude } } };
    return await withSync({ config: own, terminal, secrets: [] }, { readFile: () => '' }, async ({ context }) =>
      readRunsWith(context.store),
    );
  };
  expect(await keptOf(['a'])).toEqual({ include: [], exclude: ['a'], destinations: [] });
  expect(await keptOf([])).toEqual({ include: [], exclude: [], destinations: [] });
});
