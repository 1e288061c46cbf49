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

/** A page, and its unexpected actions. */
export interface Watched extends AsyncDisposable {
  readonly page: Page;
  /** Errors and warnings in its console, errors of its scripts, answers of 400 and above, addresses of other hosts. */
  readonly oddities: string[];
  /** Empties it for another test, which has a place of its own: a new one costs the browser more than most tests do. */
  leaveTo(origin: string, look: Look): Promise<void>;
}

/** The settings of an open page. */
export interface Look {
  readonly viewport?: { readonly width: number; readonly height: number };
  readonly colorScheme?: 'light' | 'dark';
}

const VIEWPORT = { width: 1280, height: 900 };

/**
 * Opens an empty page that is watched.
 *
 * @param origin the only origin that it may request
 */
export async function watchedPage(
  browser: Browser,
  origin: string,
  options: BrowserContextOptions = {},
): Promise<Watched> {
  let place = origin;
  const context = await browser.newContext({ viewport: VIEWPORT, ...options });
  context.setDefaultTimeout(300_000);
  const page = await context.newPage();
  const oddities: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) oddities.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => oddities.push(`script: ${error.message}`));
  page.on('request', (request) => {
    if (!request.url().startsWith(place)) oddities.push(`elsewhere: ${request.url().slice(0, 200)}`);
  });
  page.on('dialog', (dialog) => {
    oddities.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  const leaveTo: Watched['leaveTo'] = async (next, { viewport = VIEWPORT, colorScheme = 'light' }) => {
    // An address that comes a second time has nothing stored either.
    if (page.url().startsWith('http')) await page.evaluate('localStorage.clear(); sessionStorage.clear()');
    await page.goto('about:blank');
    await page.setViewportSize(viewport);
    await page.emulateMedia({ colorScheme });
    place = next;
    oddities.length = 0;
  };
  return { page, oddities, leaveTo, [Symbol.asyncDispose]: async () => await context.close() };
}
