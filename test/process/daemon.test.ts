/**
 * The daemon as a real process: how it starts, what it serves, how it ends, and that nothing can kill a reading.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { StatusReport } from '../../src/core/status.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { patient } from '../support/patience.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { KEY, openBench, openStage, type Run, start, TOKEN, until } from './support.ts';
import { torment } from './torment.ts';

const bench = sharedBench(openBench);

const ANY_PORT = { TIDEMARK_LISTEN: '127.0.0.1:0' };

/** Waits for the address that it logs. */
async function pageOf(run: Run): Promise<string> {
  let url = '';
  await until('it serves its page', () => {
    url = /"status_page":"([^"]+)"/.exec(run.stderr())?.[1] ?? '';
    return url !== '' || run.child.exitCode !== null;
  });
  return url;
}

/** Its log. */
function linesOf(run: Run): Record<string, unknown>[] {
  return run
    .stderr()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

async function isReady(url: string): Promise<boolean> {
  return (await fetch(`${url}readyz`)).status === 200;
}

async function stop(run: Run): Promise<number | null> {
  run.child.kill('SIGTERM');
  return (await run.ended).code;
}

describe('the daemon as a process', () => {
  test.runIf(influxdAvailable())('fills, is ready, serves its data, and stops with 0', async () => {
    await using stage = await openStage({ bench });
    const startedMs = Date.now();
    const run = stage.start([], { env: ANY_PORT });
    const url = await pageOf(run);
    await until('it is ready', async () => await isReady(url));
    expect((await fetch(`${url}healthz`)).status).toBe(200);
    await until('all is delivered', async () => {
      const report = (await (await fetch(`${url}status.json`)).json()) as StatusReport;
      return report.destinations[0]?.pending_points === 0;
    });
    await until('it says that all is held', () => run.stderr().includes('"event":"initial-sync-done"'));
    const fills = linesOf(run).filter(({ event }) => event === 'initial-sync-done');
    expect(fills).toMatchObject([
      {
        level: 'info',
        msg: expect.stringMatching(
          /^Sync complete: all 3 devices, no gaps, [\d,]+ telemetry points in the archive(, [\d,]+ points? to deliver)?$/,
        ),
        status_page: url,
      },
    ]);
    const reportedMs = performance.now();
    expect(await stop(run)).toBe(0);
    expect(linesOf(run).filter(({ event }) => event === 'stopping')).toMatchObject([
      { level: 'info', msg: 'Received SIGTERM, shutting down' },
    ]);
    expect(performance.now() - reportedMs).toBeLessThan(patient(10_000));
    expect(run.stdout(), 'a daemon has nothing to print').toBe('');
    const verdict = await stage.verdict(startedMs);
    expect([verdict.missing.slice(0, 5), verdict.invented.slice(0, 5)]).toEqual([[], []]);
    expect(verdict.expected).toBeGreaterThan(300);
  });

  test('is the only one that writes its state', async () => {
    await using stage = await openStage();
    const run = stage.start([], { env: ANY_PORT });
    await pageOf(run);
    // `--once` has its work done by the first one: jobs.test.ts.
    const second = await stage.run([], { env: ANY_PORT });
    expect(second.code).toBe(1);
    expect(second.stderr).toMatch(/Tidemark already runs with this state/);
    expect(await stop(run)).toBe(0);
  });

  test('names the port that is in use', async () => {
    await using stage = await openStage();
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const { code, stderr } = await stage.run([], { env: { TIDEMARK_LISTEN: `127.0.0.1:${port}` } });
    server.close();
    expect(code).toBe(1);
    // One line, as the rest of the log is without a terminal, and nothing was created for it.
    expect(JSON.parse(stderr)).toMatchObject({
      level: 'error',
      event: 'failed',
      msg: expect.stringContaining(`listen: 127.0.0.1:${port} is in use`),
      exit_code: 1,
    });
    expect(existsSync(join(stage.directory, 'state', 'tidemark.db'))).toBe(false);
  });

  test('uses a key and a password that are exchanged by their files, without a restart', async () => {
    await using stage = await openStage();
    const keyFile = join(stage.directory, 'key');
    writeFileSync(keyFile, KEY);
    const passwordFile = join(stage.directory, 'password');
    writeFileSync(passwordFile, 'pass-first');
    const files = { TIDEMARK_API_KEY_FILE: keyFile, TIDEMARK_LISTEN_PASSWORD_FILE: passwordFile };
    const run = stage.start([], { env: { ...ANY_PORT, TIDEMARK_API_KEY: undefined, ...files } });
    const url = await pageOf(run);
    await until('it is ready', async () => await isReady(url));
    const opensTo = async (password: string): Promise<boolean> => {
      const headers = { authorization: `Basic ${Buffer.from(`me:${password}`).toString('base64')}` };
      return (await fetch(`${url}status.json`, { headers })).status === 200;
    };
    expect([await opensTo('pass-first'), await opensTo('pass-second')]).toEqual([true, false]);
    writeFileSync(passwordFile, 'pass-second\n');
    const next = 'tmk_CANARYsecond/9+8%Qq~77';
    stage.simulator.settings.key.secret = next;
    await until('it notices that the key is rejected', () => run.stderr().includes('rejects the key'));
    expect(await isReady(url)).toBe(false);
    expect(run.stderr()).toMatch(/write it into the file of api\.key_file, which needs no restart/i);
    writeFileSync(keyFile, `${next}\n`);
    await until('it takes the new key', () => run.stderr().includes('The key has changed'));
    await until('it is ready again', async () => await isReady(url));
    await until('it takes the new password', async () => await opensTo('pass-second'));
    expect(await opensTo('pass-first')).toBe(false);
    expect(await stop(run)).toBe(0);
    expect(run.stderr()).not.toContain('CANARYsecond');
  });

  test.runIf(influxdAvailable())(
    'takes a token of the database that is exchanged by its file, without a restart',
    async () => {
      await using stage = await openStage({ bench });
      const tokenFile = join(stage.directory, 'token');
      writeFileSync(tokenFile, 'tok_CANARYwrong/4');
      const env = { ...ANY_PORT, TIDEMARK_INFLUX_TOKEN: undefined, TIDEMARK_INFLUX_TOKEN_FILE: tokenFile };
      const run = stage.start([], { env });
      await until('it is refused', () => run.stderr().includes('influx.token: missing, or not accepted'));
      writeFileSync(tokenFile, `${TOKEN}\n`);
      await until('it delivers', () => run.stderr().includes('"event":"delivery-resumed"'));
      expect(await stop(run)).toBe(0);
      expect(run.stderr()).not.toContain('CANARY');
    },
  );

  test('does not start without a configuration, and names the missing keys', async () => {
    const { code, stderr } = await start([], { env: {} }).ended;
    expect(code).toBe(78);
    expect(stderr).toMatch(/api\.url: is missing/);
    expect(stderr).toMatch(/api\.key: is missing/);
  });

  test.runIf(influxdAvailable())(
    'loses and doubles nothing under faults on both sides and a kill every second for half a minute',
    async () => {
      const { kills, verdict, lastReport, exitCode } = await torment({ bench, forMs: 30_000, seed: 20_261_121 });
      expect(kills).toBeGreaterThan(14);
      expect([verdict.missing.slice(0, 5), verdict.invented.slice(0, 5)]).toEqual([[], []]);
      expect(verdict.expected).toBeGreaterThan(5000);
      expect(lastReport.destinations[0]).toMatchObject({ quarantined: 0, pending_points: 0 });
      expect(exitCode).toBe(0);
    },
  );
});
