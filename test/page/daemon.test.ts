/**
 * The pages of a real daemon in a real browser: the demo as a newcomer sees it, and what somebody sees of a database
 * and of an API that go away and come back.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { serveSimulator } from '../../src/sim/server.ts';
import { openBench, openStage, type Run, start, until } from '../process/support.ts';
import { isChromiumHere, startChromium, watchedPage } from '../support/chromium.ts';
import type { Simulator } from '../support/faulty-simulator.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { violations } from './support.ts';

const isHere = isChromiumHere();
let browser: Browser;
beforeAll(async () => {
  if (isHere) browser = await startChromium();
});
afterAll(async () => {
  await browser?.close();
});

/** How often a page is checked that needs seconds to change: each check costs the browser as much as a change. */
const SELDOM = { interval: 500 };

/** On a machine that does much else, some device may always be behind its poll every five seconds. */
const RUNNING = /^(ok|syncing)$/;

/** The API again at its old address. */
async function serveAgain(simulator: Simulator, port: number): Promise<AsyncDisposable> {
  const server = await serveSimulator(simulator, { port });
  return { [Symbol.asyncDispose]: async () => await server.close() };
}

async function pageOf(run: Run, words: RegExp): Promise<string> {
  let url = '';
  await until('it serves its page', () => {
    url = words.exec(run.stdout() + run.stderr())?.[1] ?? '';
    return url !== '' || run.child.exitCode !== null;
  });
  return url;
}

describe.runIf(isHere)('the demo', () => {
  test('fills itself while it is open, and shows each device', async () => {
    const temporary = mkdtempSync(join(tmpdir(), 'tidemark-page-'));
    const run = start(['--demo'], { cwd: temporary, env: { TMPDIR: temporary } });
    try {
      const url = await pageOf(run, /^Status page: (http:\S+\/)\n/);
      await using watched = await watchedPage(browser, url);
      const { page } = watched;
      await page.goto(url);
      await expect.poll(() => page.locator('.devices tbody tr').count(), SELDOM).toBe(25);
      const readings = async (): Promise<number> =>
        Number((await page.locator('.tile:nth-of-type(3) b').innerText()).replaceAll(',', ''));
      const first = await readings();
      await expect.poll(readings, SELDOM).toBeGreaterThan(first);
      await expect.poll(() => page.locator('#events li').count(), SELDOM).toBeGreaterThan(3);
      await expect.poll(() => page.locator('#alerts tbody tr').count(), SELDOM).toBeGreaterThan(3);
      expect(await violations(page)).toEqual([]);
      await page.getByRole('searchbox').fill('incubator');
      await expect.poll(() => page.locator('.devices tbody tr').count()).toBe(1);
      await page.locator('.devices tbody th a').click();
      await page.locator('.plot canvas').first().waitFor();
      expect(await page.locator('h1').innerText()).toMatch(/^Incubator room/);
      await expect
        .poll(() => page.locator('#sensors tbody tr').allInnerTexts())
        .toEqual(expect.arrayContaining([expect.stringMatching(/^temperature\s+-?[\d.]+/)]));
      expect(await violations(page)).toEqual([]);
      expect(watched.oddities).toEqual([]);
    } finally {
      run.child.kill('SIGKILL');
      await run.ended;
      rmSync(temporary, { recursive: true, force: true });
    }
  });
});

describe.runIf(isHere && influxdAvailable())('problems of a real daemon', () => {
  const bench = sharedBench(openBench);

  test('a database and an API that go away, and come back', async () => {
    await using stage = await openStage({ bench });
    const env = {
      TIDEMARK_LISTEN: '127.0.0.1:0',
      TIDEMARK_SYNC_TELEMETRY: '*/5 * * * * *',
      TIDEMARK_SYNC_DEVICES: '*/5 * * * * *',
    };
    const run = stage.start([], { env });
    const url = await pageOf(run, /"status_page":"([^"]+)"/);
    await using watched = await watchedPage(browser, url);
    const { page } = watched;
    await page.goto(url);
    const tone = async (): Promise<string> => (await page.locator('.tone').innerText()).toLowerCase();
    await expect.poll(tone, SELDOM).toBe('ok');

    await bench.influxd.kill();
    await expect.poll(tone, SELDOM).toBe('problem');
    await expect.poll(() => page.locator('#delivery tbody tr').innerText(), SELDOM).toMatch(/blocked/);
    expect(await page.locator('.summary').innerText()).toMatch(/^Delivery to .* is blocked: /);
    await bench.influxd.restart();
    await expect.poll(tone, SELDOM).toMatch(RUNNING);
    expect(await page.locator('#delivery tbody tr').innerText()).toMatch(/delivering|all delivered/);

    const port = Number(new URL(stage.server.url).port);
    await stage.server.close();
    await expect.poll(tone, SELDOM).toBe('problem');
    expect(await page.locator('#streams tbody').innerText()).toMatch(/failing/);
    await using _back = await serveAgain(stage.simulator, port);
    await expect.poll(tone, SELDOM).toMatch(RUNNING);
    expect(watched.oddities).toEqual([]);
    const text = await page.locator('body').innerText();
    expect(text).not.toContain('CANARY');
  });
});
