/**
 * A real browser for a test: Debian's Chromium, without a window, through playwright-core. It reaches loopback alone.
 */
import { existsSync } from 'node:fs';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

const BINARY = '/usr/bin/chromium';

/**
 * Whether tests with a real browser can run here. Where it is missing: an error in CI, so that nothing is quietly left
 * out there; elsewhere a message.
 */
export function isChromiumHere(): boolean {
  if (existsSync(BINARY)) return true;
  const message = `${BINARY} is missing: apt-get install chromium`;
  if (process.env['CI'] !== undefined) throw new Error(message);
  process.stderr.write(`tests with a real browser are left out: ${message}\n`);
  return false;
}

export async function startChromium(): Promise<Browser> {
  return await chromium.launch({
    executablePath: BINARY,
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--force-color-profile=srgb'],
  });
}

/** A page, and what it did that nobody asked for. */
export interface Watched extends AsyncDisposable {
  readonly page: Page;
  /** Errors and warnings in its console, errors of its scripts, answers of 400 and above, addresses of other hosts. */
  readonly oddities: string[];
}

/**
 * Opens an empty page that is watched.
 *
 * @param origin the one place that it may ask.
 */
export async function watchedPage(
  browser: Browser,
  origin: string,
  options: BrowserContextOptions = {},
): Promise<Watched> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(300_000);
  const page = await context.newPage();
  const oddities: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) oddities.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => oddities.push(`script: ${error.message}`));
  page.on('request', (request) => {
    if (!request.url().startsWith(origin)) oddities.push(`elsewhere: ${request.url().slice(0, 200)}`);
  });
  page.on('dialog', (dialog) => {
    oddities.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  return { page, oddities, [Symbol.asyncDispose]: async () => await context.close() };
}
