/**
 * `npm run screenshots`: the pictures of docs/status-page.md, of the demo's workspace in a real daemon with a real
 * InfluxDB behind it, in five states, in this order: initial sync, in sync, with the database down, with the key
 * revoked, during a backfill.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { Browser } from 'playwright-core';
import { realClock } from '../../src/app/real-clock.ts';
import type { StatusReport } from '../../src/core/status.ts';
import { createDemoWorld } from '../../src/sim/demo-world.ts';
import { openBench, openStage, ROOT, until } from '../process/support.ts';
import { startChromium, watchedPage } from '../support/chromium.ts';
import { smallerPng } from './png.ts';

const OUT = join(ROOT, 'docs', 'images');
const FILLED_WITHIN_MS = 400_000;

type Scheme = 'light' | 'dark';

interface Picture {
  /** A picture for each, of the same moment. */
  readonly names: Partial<Record<Scheme, string>>;
  readonly path: string;
  readonly size: { readonly width: number; readonly height: number };
  /** The text that has to be there before it is taken. */
  readonly awaited?: string;
}

const DESK = { width: 1200, height: 930 };
const MOST_BYTES = 170_000;

async function take(browser: Browser, url: string, picture: Picture): Promise<void> {
  const { names, path, size, awaited } = picture;
  await using watched = await watchedPage(browser, url, { colorScheme: 'light', viewport: size });
  const { page } = watched;
  await page.goto(`${url}${path}`, { waitUntil: 'networkidle' });
  if (awaited !== undefined) await page.locator(awaited).first().waitFor();
  // Between the first picture and the next one the page gets nothing newer: its requests hang.
  await page.route('**/*', () => {});
  for (const [colorScheme, name] of Object.entries(names) as [Scheme, string][]) {
    await page.emulateMedia({ colorScheme });
    const png = smallerPng(await page.screenshot());
    if (png.length > MOST_BYTES) throw new Error(`${name}.png has ${png.length} bytes`);
    writeFileSync(join(OUT, `${name}.png`), png);
  }
}

/** Whether the overview shows that text, or that much of it. */
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
  schemes: readonly Scheme[] = ['light'],
  more: Partial<Picture> = {},
): Promise<void> => {
  const names = Object.fromEntries(schemes.map((scheme) => [scheme, `${name}-${scheme}`]));
  await take(browser, url, { names, path: '', size: DESK, ...more });
};
const BOTH: readonly Scheme[] = ['light', 'dark'];
try {
  await until(
    'the initial sync is on its way',
    // By the page itself, which may be of an earlier scan of the devices than the next status report.
    async () => await says(url, /Initial sync: [^<]*ETA.*Sync range covered<.*?<b>[2-9]\d(?:\.\d)? %</s),
    FILLED_WITHIN_MS,
  );
  await desk('initial-sync');
  await until('all is in sync', async () => (await toneOf(url)) === 'OK', FILLED_WITHIN_MS);
  await until(
    'all is delivered',
    async () => (await statusOf(url)).destinations[0]?.pending_points === 0,
    FILLED_WITHIN_MS,
  );
  await desk('status-page', BOTH);
  await desk('device', BOTH, { path: 'device?id=add-muc-04&range=24h', awaited: 'canvas' });
  await take(browser, url, { names: { light: 'status-page-phone' }, path: '', size: { width: 390, height: 844 } });
  await bench.proxy.pause();
  await until(
    'the trouble shows',
    async () => ((await statusOf(url)).destinations[0]?.lag_seconds ?? 0) > 60,
    FILLED_WITHIN_MS,
  );
  await desk('trouble', BOTH);
  await bench.proxy.resume();
  await until('all is in sync again', async () => (await toneOf(url)) === 'OK', FILLED_WITHIN_MS);
  stage.simulator.settings.key.revoked = true;
  await until('the key is rejected', async () => await says(url, /rejects the key/), FILLED_WITHIN_MS);
  // The page has a lag to show then.
  await setTimeout(15_000);
  await desk('key-revoked');
  stage.simulator.settings.key.revoked = false;
  await until('the key is accepted again', async () => (await toneOf(url)) === 'OK', FILLED_WITHIN_MS);
  stage.start(['--backfill', '--from', '25d', '--max-share', '0.3'], { withinMs: FILLED_WITHIN_MS });
  await until(
    'the backfill shows its ETA',
    async () => {
      const [job] = (await statusOf(url)).jobs;
      return (job?.share ?? 0) > 0.3 && job?.eta_seconds != null;
    },
    FILLED_WITHIN_MS,
  );
  await desk('backfill');
} finally {
  await browser.close();
}
