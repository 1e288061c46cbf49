/**
 * `npm run screenshots`: the pictures of docs/status-page.md, of the demo's workspace in a real daemon with a real InfluxDB
 * behind it: in order, and with the database gone; light and dark.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { realClock } from '../../src/app/real-clock.ts';
import type { StatusReport } from '../../src/core/status.ts';
import { createDemoWorld } from '../../src/sim/demo-world.ts';
import { openBench, openStage, ROOT, until } from '../process/support.ts';
import { startChromium, watchedPage } from '../support/chromium.ts';
import { smallerPng } from './png.ts';

const OUT = join(ROOT, 'docs', 'images');
const FILLED_WITHIN_MS = 400_000;

interface Picture {
  readonly name: string;
  readonly path: string;
  readonly colorScheme: 'light' | 'dark';
  readonly size: { readonly width: number; readonly height: number };
  /** What has to be there before it is taken. */
  readonly awaited?: string;
}

const DESK = { width: 1200, height: 930 };
const MOST_BYTES = 120_000;

async function take(browser: Browser, url: string, picture: Picture): Promise<void> {
  const { name, path, colorScheme, size, awaited } = picture;
  await using watched = await watchedPage(browser, url, { colorScheme, viewport: size });
  await watched.page.goto(`${url}${path}`, { waitUntil: 'networkidle' });
  if (awaited !== undefined) await watched.page.locator(awaited).first().waitFor();
  const png = smallerPng(await watched.page.screenshot());
  if (png.length > MOST_BYTES) throw new Error(`${name}.png has ${png.length} bytes`);
  writeFileSync(join(OUT, `${name}.png`), png);
}

async function toneOf(url: string): Promise<string> {
  return /<p class="tone">([^<]*)/.exec(await (await fetch(url)).text())?.[1] ?? '';
}

async function statusOf(url: string): Promise<StatusReport> {
  return (await (await fetch(`${url}status.json`)).json()) as StatusReport;
}

mkdirSync(OUT, { recursive: true });
await using bench = await openBench();
await using stage = await openStage({
  bench,
  historyMs: 30 * 86_400_000,
  settings: {
    plan: { name: 'Demo', requestsPerMinute: 6000, requestsPerDay: 200_000 },
    allowance: { foreign: { perMinute: 240, everyMs: 2000 } },
  },
});
stage.simulator.world = createDemoWorld(realClock.nowMs());
const run = stage.start([], {
  env: { TIDEMARK_LISTEN: '127.0.0.1:0', TIDEMARK_API_SHARE: '0.8' },
  withinMs: FILLED_WITHIN_MS + 100_000,
});
let url = '';
await until('it serves its page', () => {
  url = /"status_page":"([^"]+)"/.exec(run.stderr())?.[1] ?? '';
  return url !== '';
});
await until('all is held', async () => (await toneOf(url)) === 'In order', FILLED_WITHIN_MS);
await until(
  'all is delivered',
  async () => (await statusOf(url)).destinations[0]?.pending_points === 0,
  FILLED_WITHIN_MS,
);
const browser = await startChromium();
try {
  const device = 'device?id=add-muc-04&span=24h';
  const phone = { width: 390, height: 844 };
  await take(browser, url, { name: 'status-page-light', path: '', colorScheme: 'light', size: DESK });
  await take(browser, url, { name: 'status-page-dark', path: '', colorScheme: 'dark', size: DESK });
  await take(browser, url, { name: 'device-light', path: device, colorScheme: 'light', size: DESK, awaited: 'canvas' });
  await take(browser, url, { name: 'device-dark', path: device, colorScheme: 'dark', size: DESK, awaited: 'canvas' });
  await take(browser, url, { name: 'status-page-phone', path: '', colorScheme: 'light', size: phone });
  await bench.influxd.kill();
  await until('the trouble shows', async () => (await toneOf(url)) === 'Trouble', FILLED_WITHIN_MS);
  await take(browser, url, { name: 'trouble-light', path: '', colorScheme: 'light', size: DESK });
  await take(browser, url, { name: 'trouble-dark', path: '', colorScheme: 'dark', size: DESK });
} finally {
  await browser.close();
}
