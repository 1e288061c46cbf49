/**
 * `npm run screenshots`: the pictures of docs/status-page.md, of the demo's workspace in a real daemon with a real
 * InfluxDB behind it, in five states: initial sync, in sync, during a backfill, with the key revoked, with the database
 * down.
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
const MOST_BYTES = 170_000;

async function take(browser: Browser, url: string, picture: Picture): Promise<void> {
  const { name, path, colorScheme, size, awaited } = picture;
  await using watched = await watchedPage(browser, url, { colorScheme, viewport: size });
  await watched.page.goto(`${url}${path}`, { waitUntil: 'networkidle' });
  if (awaited !== undefined) await watched.page.locator(awaited).first().waitFor();
  const png = smallerPng(await watched.page.screenshot());
  if (png.length > MOST_BYTES) throw new Error(`${name}.png has ${png.length} bytes`);
  writeFileSync(join(OUT, `${name}.png`), png);
}

/** Whether the overview says that, or that much of it. */
async function says(url: string, words: RegExp): Promise<boolean> {
  return words.test(await (await fetch(url)).text());
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
  historyMs: 5 * 86_400_000,
  settings: {
    plan: { name: 'Demo', requestsPerMinute: 900, requestsPerDay: 200_000 },
    quota: { foreign: { perMinute: 40, everyMs: 2000 } },
  },
});
stage.simulator.world = createDemoWorld(realClock.nowMs());
const run = stage.start([], {
  env: { TIDEMARK_LISTEN: '127.0.0.1:0', TIDEMARK_API_SHARE: '0.8' },
  withinMs: 3 * FILLED_WITHIN_MS,
});
let url = '';
await until('it serves its page', () => {
  url = /"status_page":"([^"]+)"/.exec(run.stderr())?.[1] ?? '';
  return url !== '';
});
const browser = await startChromium();
const desk = async (
  name: string,
  colorScheme: 'light' | 'dark' = 'light',
  more: Partial<Picture> = {},
): Promise<void> =>
  await take(browser, url, { name: `${name}-${colorScheme}`, path: '', colorScheme, size: DESK, ...more });
try {
  await until(
    'the initial sync is on its way',
    async () => ((await statusOf(url)).totals.covered_share ?? 0) > 0.2,
    FILLED_WITHIN_MS,
  );
  await desk('initial-sync');
  await until('all is in sync', async () => (await toneOf(url)) === 'OK', FILLED_WITHIN_MS);
  await until(
    'all is delivered',
    async () => (await statusOf(url)).destinations[0]?.pending_points === 0,
    FILLED_WITHIN_MS,
  );
  for (const scheme of ['light', 'dark'] as const) {
    await desk('status-page', scheme);
    await desk('device', scheme, { path: 'device?id=add-muc-04&span=24h', awaited: 'canvas' });
  }
  await take(browser, url, {
    name: 'status-page-phone',
    path: '',
    colorScheme: 'light',
    size: { width: 390, height: 844 },
  });
  await bench.influxd.kill();
  await until(
    'the trouble shows',
    async () => ((await statusOf(url)).destinations[0]?.lag_seconds ?? 0) > 60,
    FILLED_WITHIN_MS,
  );
  for (const scheme of ['light', 'dark'] as const) await desk('trouble', scheme);
  await bench.influxd.restart();
  await until('all is in sync again', async () => (await toneOf(url)) === 'OK', FILLED_WITHIN_MS);
  const backfill = stage.start(['--backfill', '--from', '25d', '--max-share', '0.3'], { withinMs: FILLED_WITHIN_MS });
  await until(
    'the backfill shows its ETA',
    async () => {
      const [job] = (await statusOf(url)).jobs;
      return (job?.share ?? 0) > 0.3 && job?.eta_seconds != null;
    },
    FILLED_WITHIN_MS,
  );
  await desk('backfill');
  backfill.child.kill('SIGINT');
  await until('the backfill has ended', async () => (await statusOf(url)).jobs.length === 0, FILLED_WITHIN_MS);
  stage.simulator.settings.key.revoked = true;
  await until('the key is refused', async () => await says(url, /refuses the key/), FILLED_WITHIN_MS);
  await desk('key-revoked');
} finally {
  await browser.close();
}
