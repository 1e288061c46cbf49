/**
 * `--demo` as a process: what a newcomer sees first.
 */
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import type { StatusReport } from '../../src/core/status.ts';
import { patient } from '../support/patience.ts';
import { freePort } from '../support/ports.ts';
import { type Run, type RunOptions, start, until } from './support.ts';

interface Demo extends AsyncDisposable {
  readonly run: Run;
  /** Ends in a slash. */
  readonly url: string;
  /** Where it makes its temporary directories. */
  readonly temporary: string;
  status(): Promise<StatusReport>;
}

async function openDemo(env: RunOptions['env'] = {}): Promise<Demo> {
  const temporary = mkdtempSync(join(tmpdir(), 'tidemark-demo-test-'));
  const run = start(['--demo'], { cwd: temporary, env: { TMPDIR: temporary, ...env } });
  const dispose = async (): Promise<void> => {
    run.child.kill('SIGKILL');
    await run.ended;
    rmSync(temporary, { recursive: true, force: true });
  };
  try {
    await until('it tells where the page is', () => run.stdout().includes('\n') || run.child.exitCode !== null);
    const url = /^Status page: (http:\S+\/)\n/.exec(run.stdout())?.[1];
    if (url === undefined) throw new Error(`its first words are ${run.stdout()}${run.stderr()}`);
    const status = async (): Promise<StatusReport> =>
      (await fetch(`${url}status.json`)).json() as Promise<StatusReport>;
    return { run, url, temporary, status, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/**
 * Stops it and waits for its end.
 *
 * @returns how it ended and how long that took.
 */
async function stop(
  { run }: Demo,
  signal: NodeJS.Signals = 'SIGTERM',
): Promise<{ code: number | null; tookMs: number }> {
  const reportedMs = performance.now();
  run.child.kill(signal);
  const { code } = await run.ended;
  return { code, tookMs: performance.now() - reportedMs };
}

describe('the demo', () => {
  test('shows itself, becomes ready within a minute, and goes without a trace', async () => {
    await using demo = await openDemo();
    const startedMs = performance.now();
    const [state] = readdirSync(demo.temporary).filter((name) => name.startsWith('tidemark-demo-'));
    expect(existsSync(join(demo.temporary, state ?? '', 'tidemark.db'))).toBe(true);

    const unready = await fetch(`${demo.url}readyz`);
    expect(unready.status).toBe(503);
    expect(((await unready.json()) as { reasons: string[] }).reasons.length).toBeGreaterThan(0);
    expect((await fetch(`${demo.url}healthz`)).status).toBe(200);

    const page = await fetch(demo.url);
    expect([page.status, page.headers.get('content-type')]).toEqual([200, expect.stringContaining('text/html')]);
    expect(await page.text()).toContain('Tidemark');
    expect((await fetch(`${demo.url}nothing`)).status).toBe(404);
    expect((await fetch(demo.url, { method: 'POST' })).status).toBe(405);

    await until('it is ready', async () => (await fetch(`${demo.url}readyz`)).status === 200);
    expect(performance.now() - startedMs).toBeLessThan(patient(60_000));
    const status = await demo.status();
    expect(status).toMatchObject({
      workspace_id: expect.stringMatching(/^ws-demo-\d{8}-\d{6}$/),
      destinations: [],
      allowance: { share: 0.8 },
    });
    expect(status.version).toMatch(/^\d+\.\d+\.\d+(?:-rc\.\d+)?$/);
    expect(status.devices.length).toBeGreaterThan(20);
    expect(status.totals.archived_readings).toBeGreaterThan(1000);
    for (const { device_id, device_name, covered, gaps } of status.devices) {
      expect([typeof device_id, typeof device_name]).toEqual(['string', 'string']);
      for (const [from, to] of covered) expect(Date.parse(from)).toBeLessThan(Date.parse(to));
      for (const { from, to, reason } of gaps)
        expect([Date.parse(from) < Date.parse(to), reason !== '']).toEqual([true, true]);
    }
    const names = status.streams.map(({ name, state: how }) => `${name} ${how}`);
    expect(names.slice(0, 3)).toEqual(['account on', 'devices on', 'telemetry on']);

    const { code, tookMs } = await stop(demo);
    expect([code, tookMs < patient(5000)]).toEqual([0, true]);
    expect(demo.run.stdout()).toBe(`Status page: ${demo.url}\n`);
    expect(demo.run.stderr()).toMatch(/Tidemark stopped"\}\n$/);
    expect(readdirSync(demo.temporary)).toEqual([]);
  });

  test('keeps its state and its place where these are given, and continues there', async () => {
    const place = mkdtempSync(join(tmpdir(), 'tidemark-demo-kept-'));
    try {
      const env = { TIDEMARK_LISTEN: `127.0.0.1:${await freePort()}`, TIDEMARK_DATA_DIR: join(place, 'state') };
      const first = await openDemo(env);
      let readings = 0;
      try {
        expect(first.url).toBe(`http://${env.TIDEMARK_LISTEN}/`);
        await until('it has some', async () => (await first.status()).totals.archived_readings > 3000);
        readings = (await first.status()).totals.archived_readings;
        expect((await stop(first, 'SIGINT')).code).toBe(0);
        expect(readdirSync(first.temporary)).toEqual([]);
      } finally {
        await first[Symbol.asyncDispose]();
      }
      const booked = countOf(env.TIDEMARK_DATA_DIR, 'SELECT count(*) FROM request');
      await using second = await openDemo({ ...env, TIDEMARK_LOG_LEVEL: 'info' });
      expect((await second.status()).totals.archived_readings).toBeGreaterThanOrEqual(readings);
      await until('it goes on', async () => (await second.status()).totals.archived_readings > readings + 3000);
      // The same simulated workspace: nothing that was shown before is gone, and nothing is late.
      expect(second.run.stderr()).not.toMatch(/no longer returns|Response rejected|[Rr]ejected/);
      expect((await stop(second)).code).toBe(0);
      expect(countOf(env.TIDEMARK_DATA_DIR, 'SELECT count(*) FROM request')).toBeGreaterThan(booked);
      const days = 'SELECT count(*) FROM day_sum WHERE readings < 0 OR points < readings';
      expect(countOf(env.TIDEMARK_DATA_DIR, days)).toBe(0);
    } finally {
      rmSync(place, { recursive: true, force: true });
    }
  });

  test('continues when its output is not read', async () => {
    const temporary = mkdtempSync(join(tmpdir(), 'tidemark-demo-test-'));
    const run = start(['--demo'], { cwd: temporary, env: { TMPDIR: temporary } });
    try {
      run.child.stdout?.destroy();
      await until('it works', () => run.stderr().includes('New device') || run.child.exitCode !== null);
      run.child.kill('SIGTERM');
      const { code, stderr } = await run.ended;
      expect([code, stderr.includes('EPIPE')]).toEqual([0, false]);
    } finally {
      run.child.kill('SIGKILL');
      await run.ended;
      rmSync(temporary, { recursive: true, force: true });
    }
  });

  test('reports its errors, and cleans up', async () => {
    const temporary = mkdtempSync(join(tmpdir(), 'tidemark-demo-test-'));
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    const address = taken.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    try {
      const env = { TMPDIR: temporary, TIDEMARK_LISTEN: `127.0.0.1:${port}` };
      const { code, stdout, stderr } = await start(['--demo'], { cwd: temporary, env }).ended;
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(/^tidemark: listen: 127\.0\.0\.1:\d+ is in use by another program or another Tidemark/m);
      expect(readdirSync(temporary)).toEqual([]);
      const wrong = await start(['--demo'], { cwd: temporary, env: { ...env, TIDEMARK_LISTEN: 'nowhere' } }).ended;
      expect([wrong.code, wrong.stdout]).toEqual([78, '']);
    } finally {
      taken.close();
      rmSync(temporary, { recursive: true, force: true });
    }
  });
});

function countOf(dataDir: string, sql: string): number {
  const db = new Database(join(dataDir, 'tidemark.db'));
  try {
    return Number(db.prepare(sql).pluck().get());
  } finally {
    db.close();
  }
}
