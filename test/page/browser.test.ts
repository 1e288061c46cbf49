/**
 * The pages in a real browser: what is displayed and announced, with and without scripts, and how it updates. The facts
 * are fixed; the same over a real daemon: `daemon.test.ts`.
 */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isChromiumHere, type Look, startChromium, type Watched, watchedPage } from '../support/chromium.ts';
import { factsOf, HOSTILE, REPORT, rowOf } from './facts.ts';
import { servePage, standingWith, violations } from './support.ts';

const isHere = isChromiumHere();
let browser: Browser;
beforeAll(async () => {
  if (isHere) browser = await startChromium();
});
afterAll(async () => {
  await browser?.close();
});

/** The pages of the zones, each of which goes from test to test; without a zone that of the machine. */
const pages = new Map<string | undefined, Watched>();

/** An empty page; the one before it of the same zone is given up. */
async function emptyPage(
  origin: string,
  { timezoneId, ...look }: Look & { timezoneId?: string } = {},
): Promise<Watched> {
  const watched =
    pages.get(timezoneId) ?? (await watchedPage(browser, origin, timezoneId === undefined ? {} : { timezoneId }));
  pages.set(timezoneId, watched);
  await watched.leaveTo(origin, look);
  // It stays open.
  return watched;
}

/** How often a page is checked that changes after seconds: each check costs the browser as much as a change. */
const SELDOM = { interval: 250 };

const PATHS = ['', 'device?id=dev-00003', 'alerts', 'events', 'device?id=none'];

async function names(page: Page): Promise<string[]> {
  return await page.locator('.devices tbody th a').allInnerTexts();
}

/** How far the page is wider than the window. */
async function overflow(page: Page): Promise<number> {
  return await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
}

/** How many points of a chart have a colour. */
async function inkOf(page: Page, chart: number): Promise<number> {
  return await page.evaluate(
    `(() => { const canvas = document.querySelectorAll('.plot canvas')[${chart}]; const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height); return data.filter((value, index) => index % 4 === 3 && value > 0).length; })()`,
  );
}

describe.runIf(isHere)('looked at', () => {
  for (const colorScheme of ['light', 'dark'] as const) {
    test(`nothing is odd, and no rule of accessibility is broken (${colorScheme})`, async () => {
      await using served = await servePage();
      for (const viewport of [
        { width: 1280, height: 900 },
        { width: 360, height: 740 },
      ]) {
        const watched = await emptyPage(served.url, { colorScheme, viewport });
        for (const path of PATHS) {
          await watched.page.goto(`${served.url}${path}`, { waitUntil: 'networkidle' });
          expect([path, await violations(watched.page)]).toEqual([path, []]);
          expect([path, await overflow(watched.page)]).toEqual([path, 0]);
        }
        expect(watched.oddities.filter((each) => !each.includes('404'))).toEqual([]);
      }
    });
  }

  test('light and dark differ, and a change of it is followed', async () => {
    await using served = await servePage();
    const watched = await emptyPage(served.url, { colorScheme: 'light' });
    const { page } = watched;
    await page.goto(served.url);
    const background = async (): Promise<string> =>
      await page.evaluate('getComputedStyle(document.body).backgroundColor');
    const light = await background();
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await background()).not.toBe(light);
  });

  test('without scripts all facts are there, and search, states, sorting and paging work', async () => {
    await using served = await servePage();
    await using watched = await watchedPage(browser, served.url, { javaScriptEnabled: false });
    const { page } = watched;
    await page.goto(served.url);
    for (const words of [REPORT.summary, '408 left', 'malformed pages', '2 not resolved, 12 in total', 'requests 41']) {
      await expect.poll(() => page.locator('body').innerText()).toContain(words);
    }
    await page.getByRole('searchbox').fill('roof');
    await page.getByRole('button', { name: 'Search' }).click();
    expect(await names(page)).toHaveLength(15);
    await page.getByRole('link', { name: /^Device/ }).click();
    expect((await names(page))[0]).toBe('Sensor 1, roof');
    await page.getByRole('link', { name: 'live' }).click();
    expect(new URL(page.url()).search).toBe('?search=roof&state=live&sort=name');
    await page.goto(served.url);
    await page.getByRole('link', { name: 'Next' }).click();
    expect(await page.locator('.pager').innerText()).toContain('Page 2 of 3');
    await page.locator('.devices tbody th a').first().click();
    expect(await page.locator('#sensors tbody tr').count()).toBe(3);
    expect(await page.locator('.plot').first().isVisible()).toBe(false);
  });

  test('a device has a chart of each sensor with something in it, drawn anew for another range', async () => {
    await using served = await servePage();
    await using watched = await watchedPage(browser, served.url);
    const { page } = watched;
    await page.addInitScript(
      'window.drawnTexts = []; const fill = CanvasRenderingContext2D.prototype.fillText; CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) { window.drawnTexts.push(text); return fill.call(this, text, ...rest); };',
    );
    await page.goto(`${served.url}device?id=dev-00003`);
    await page.locator('.plot canvas').nth(2).waitFor();
    const texts = await page.evaluate<string[]>('window.drawnTexts');
    expect(texts.filter((text) => text.endsWith('\u00a0%')).length, 'the unit at the axis').toBeGreaterThan(1);
    expect(texts.filter((text) => text.endsWith('\u00a0°C')).length).toBeGreaterThan(1);
    for (const chart of [0, 1, 2]) expect(await inkOf(page, chart)).toBeGreaterThan(500);
    expect(await page.locator('#sensors tbody tr').first().innerText()).toMatch(/battery\s+21.52/);
    await page.getByRole('link', { name: '7 days' }).click();
    await expect.poll(() => page.locator('#sensors caption').innerText()).toBe('Each sensor over the last 7 days');
    expect(new URL(page.url()).searchParams.get('range')).toBe('7d');
    await page.locator('.plot').first().hover();
    await expect
      .poll(() => page.locator('.chart output').first().innerText())
      .toMatch(/^\d+ [A-Z][a-z]{2} \d\d:\d\d: [\d.]+ \([\d.]+ to [\d.]+\)$/);
    await page.goBack();
    await expect.poll(() => page.locator('#sensors caption').innerText()).toBe('Each sensor over the last 24 hours');
    expect(watched.oddities).toEqual([]);
  });
});

describe.runIf(isHere)('a tile of a problem', () => {
  test('has its number alone in the colour and weight of alarm', async () => {
    const destinations = REPORT.destinations.map((each) => ({ ...each, blocked_reason: 'HTTP 503' }));
    await using served = await servePage({ standing: standingWith({ destinations }) });
    const watched = await emptyPage(served.url);
    await watched.page.goto(served.url);
    const weights = await watched.page.evaluate<string[]>(
      "['dt', 'dd b', 'dd span'].map((part) => getComputedStyle(document.querySelector('.tile.bad ' + part)).fontWeight)",
    );
    expect(weights).toEqual(['400', '650', '400']);
  });
});

describe.runIf(isHere)('on a phone', () => {
  test('a device takes at most 120 px, whatever it is called', async () => {
    const long = 'a name that is far too long for a phone to show in one line, as names are';
    const rows = Array.from({ length: 25 }, (_, index) => ({
      ...rowOf(index),
      ...(index % 2 === 0 ? { device_name: long, hub_name: `hub of ${long}` } : {}),
      values: ['battery_voltage', 'humidity', 'temperature_probe_2', 'total'].map((sensor) => ({
        sensor,
        value: '542.3817403680724',
        at: REPORT.generated_at,
      })),
    }));
    await using served = await servePage({ facts: factsOf(rows) });
    const watched = await emptyPage(served.url);
    for (const width of [360, 390, 430]) {
      await watched.page.setViewportSize({ width, height: 800 });
      await watched.page.goto(served.url);
      const heights = await watched.page
        .locator('.devices tbody tr')
        .evaluateAll((all) =>
          all.map(
            (row) => (row as unknown as { getBoundingClientRect(): { height: number } }).getBoundingClientRect().height,
          ),
        );
      expect(heights).toHaveLength(25);
      expect(Math.max(...heights)).toBeLessThanOrEqual(120);
      expect(await overflow(watched.page)).toBe(0);
    }
  });
});

describe.runIf(isHere)('times', () => {
  const moments = async (page: Page): Promise<(string | null)[]> => [
    await page.locator('#asof time').textContent(),
    await page.locator('#events time').nth(29).textContent(),
  ];

  test('have no switch where the reader’s own zone is UTC', async () => {
    await using served = await servePage();
    const watched = await emptyPage(served.url, { timezoneId: 'UTC' });
    await watched.page.goto(`${served.url}events`);
    expect(await watched.page.locator('#zone-note').textContent()).toBe('Times are UTC.');
    expect(await watched.page.locator('#zone').isVisible()).toBe(false);
  });

  test('are in the reader’s zone, or in UTC where the reader wants that, also after a change', async () => {
    await using served = await servePage();
    const watched = await emptyPage(served.url, { timezoneId: 'Asia/Kolkata' });
    const { page } = watched;
    await page.goto(`${served.url}events`);
    expect(await moments(page)).toEqual(['03:45:03', '03:15:34']);
    expect(await page.locator('#zone-note').textContent()).toMatch(/^Times are Asia\/(Kolkata|Calcutta)\.$/);
    expect(await page.locator('#asof time').getAttribute('title')).toBe(REPORT.generated_at);
    expect(await page.locator('#asof').innerText(), 'the zone stands beside the time').toMatch(/ GMT\+5:30$/);
    await page.getByRole('button', { name: 'Show UTC' }).click();
    expect(await moments(page)).toEqual(['22:15:03', '21:45:34']);
    expect(await page.locator('#asof').innerText()).toBe('as of 22:15:03 UTC');
    served.shown.standing = standingWith({ generated_at: '2026-11-21T22:15:09Z' });
    await expect.poll(async () => (await moments(page))[0], { ...SELDOM, timeout: 15_000 }).toBe('22:15:09');
    await page.reload();
    expect((await moments(page))[0]).toBe('22:15:09');
    await page.getByRole('button', { name: 'Show local time' }).click();
    expect((await moments(page))[0]).toBe('03:45:09');
  });

  test('of a range have their date at both ends, whichever day it is in the reader’s zone', async () => {
    const [gap] = REPORT.gaps;
    if (gap === undefined) throw new Error('no gap');
    await using served = await servePage();
    const watched = await emptyPage(served.url, { timezoneId: 'Asia/Kolkata' });
    const between = async (from: string, to: string): Promise<string> => {
      served.shown.standing = standingWith({ gaps: [{ ...gap, from, to }] });
      await watched.page.goto(served.url);
      return await watched.page.locator('#work table [data-range]').innerText();
    };
    // The page is of 03:45 on the 22nd there.
    expect(await between('2026-11-18T09:30:00Z', '2026-11-21T20:02:18Z')).toBe('18 Nov 15:00 – 22 Nov 01:32');
    expect(await between('2026-11-21T18:20:00Z', '2026-11-21T20:02:18Z')).toBe('21 Nov 23:50 – 22 Nov 01:32');
    expect(await between('2026-11-21T18:40:00Z', '2026-11-21T20:02:18Z')).toBe('00:10:00 – 01:32:18');
  });

  test('of a chart follow the zone', async () => {
    await using served = await servePage();
    const watched = await emptyPage(served.url, { timezoneId: 'Asia/Kolkata' });
    const { page } = watched;
    await page.goto(`${served.url}device?id=dev-00003`);
    await page.locator('.plot canvas').nth(2).waitFor();
    const reported = async (): Promise<string> => {
      await page
        .locator('.plot')
        .first()
        .hover({ position: { x: 150, y: 60 } });
      return (await page.locator('.chart output').first().innerText()).slice(0, 12);
    };
    const local = await reported();
    await page.getByRole('button', { name: 'Show UTC' }).click();
    await expect.poll(reported).not.toBe(local);
  });
});

describe.runIf(isHere)('a device', () => {
  test('begins with its charts; its alerts and its sync come below, and open sections stay open', async () => {
    await using served = await servePage();
    const watched = await emptyPage(served.url);
    const { page } = watched;
    await page.goto(`${served.url}device?id=dev-00003`);
    await page.locator('.plot canvas').first().waitFor();
    const sections = await page.locator('main > section').evaluateAll((all) => all.map(({ id }) => id));
    expect(sections).toEqual(['standing', 'sensors', 'alerts', 'facts', 'coverage', 'answers']);
    const top = await page
      .locator('.plot')
      .first()
      .evaluate(
        (plot) => (plot as unknown as { getBoundingClientRect(): { top: number } }).getBoundingClientRect().top,
      );
    expect(top).toBeLessThan(330);
    expect(await page.getByText('Grace period').isVisible()).toBe(false);
    await page.locator('summary').click();
    served.shown.facts = factsOf(
      Array.from({ length: 60 }, (_, index) => ({ ...rowOf(index), device_name: 'renamed' })),
    );
    await expect.poll(() => page.locator('h1 bdi').first().innerText(), { ...SELDOM, timeout: 15_000 }).toBe('renamed');
    expect(await page.getByText('Grace period').isVisible()).toBe(true);
  });
});

describe.runIf(isHere)('while somebody looks', () => {
  test('changes appear by themselves; typed text, focus, scrolling and order stay', async () => {
    await using served = await servePage();
    const watched = await emptyPage(served.url);
    const { page } = watched;
    await page.goto(`${served.url}?sort=name`);
    await page.evaluate('window.mark = 1; document.querySelector(".devices tbody tr").mark = 1');
    const link = page.locator('.devices tbody th a').nth(5);
    await link.focus();
    await page.evaluate('scrollTo(0, 700)');
    const before = await names(page);
    const place = (await link.boundingBox())?.y ?? 0;
    served.shown.standing = standingWith({
      summary: 'Delivery to influx is blocked: no connection.',
      destinations: REPORT.destinations.map((each) => ({ ...each, blocked_reason: 'no connection' })),
    });
    await expect
      .poll(() => page.locator('.summary').innerText(), SELDOM)
      .toBe('Delivery to influx is blocked: no connection.');
    expect(await page.locator('.tone').innerText()).toMatch(/problem/i);
    expect(await page.title()).toMatch(/^Problem/);
    expect(await page.evaluate('[window.mark, document.querySelector(".devices tbody tr").mark]')).toEqual([1, 1]);
    // The part above has grown, and the visible part has stayed where it was.
    expect(Math.abs(((await link.boundingBox())?.y ?? 0) - place)).toBeLessThan(2);
    expect(await link.evaluate((element) => element.ownerDocument.activeElement === element)).toBe(true);
    expect(await names(page)).toEqual(before);
    served.shown.standing = standingWith({});
    await expect.poll(() => page.locator('.summary').innerText(), SELDOM).toBe(REPORT.summary);
    expect(watched.oddities).toEqual([]);
  });

  test('the keyboard alone searches, sorts and turns pages', async () => {
    await using served = await servePage();
    const watched = await emptyPage(served.url);
    const { page } = watched;
    await page.goto(served.url);
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.textContent')).toBe('To the content');
    await page.getByRole('searchbox').focus();
    await page.keyboard.type('cellar', { delay: 30 });
    await expect.poll(() => page.locator('#devices h2').innerText()).toMatch(/15 of 60/);
    expect(await page.evaluate('[document.activeElement.id, document.activeElement.value]')).toEqual([
      'search',
      'cellar',
    ]);
    await expect.poll(() => page.url()).toContain('search=cellar');
    await page.keyboard.press('Control+A');
    await page.keyboard.press('Delete');
    await expect.poll(() => page.locator('#devices h2').innerText()).toMatch(/60 of 60/);
    await page.locator('[data-key="sort-name"]').focus();
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('th[aria-sort]').innerText()).toMatch(/^Device/);
    expect(await page.locator('th[aria-sort]').getAttribute('aria-sort')).toBe('ascending');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('th[aria-sort]').getAttribute('aria-sort')).toBe('descending');
    expect(await page.evaluate('document.activeElement.dataset.key')).toBe('sort-name');
    await page.locator('[data-key="page-next"]').focus();
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('.pager').innerText()).toContain('Page 2 of 3');
    expect(await page.evaluate('document.activeElement.dataset.key')).toBe('page-next');
    expect(watched.oddities).toEqual([]);
  });

  test('shows since when the program is not reachable, and continues by itself when it is back', async () => {
    const served = await servePage();
    const port = Number(new URL(served.url).port);
    const watched = await emptyPage(served.url);
    const { page } = watched;
    await page.goto(served.url);
    expect(await page.locator('#connection').isVisible()).toBe(false);
    await served.server.close();
    await expect
      .poll(() => page.locator('#connection').innerText(), SELDOM)
      .toMatch(/^Tidemark is not reachable since \d\d:\d\d:\d\d\./);
    expect(await page.locator('.summary').innerText()).toBe(REPORT.summary);
    await using back = await servePage({ standing: standingWith({ summary: 'Back.' }) }, port);
    await expect.poll(() => page.locator('.summary').innerText(), SELDOM).toBe('Back.');
    await expect.poll(() => page.locator('#connection').isVisible()).toBe(false);
    expect(back.url).toBe(served.url);
    // The browser itself logs each connection that is refused, and nothing else is odd.
    expect(watched.oddities.filter((each) => !each.includes('ERR_'))).toEqual([]);
  });

  test('rests while it is paused', async () => {
    await using served = await servePage();
    const watched = await emptyPage(served.url);
    const { page } = watched;
    await page.goto(served.url);
    await page.getByRole('button', { name: 'Pause updates' }).click();
    served.shown.standing = standingWith({ summary: 'Changed.' });
    await page.waitForTimeout(6500);
    expect(await page.locator('.summary').innerText()).toBe(REPORT.summary);
    await page.getByRole('button', { name: 'Pause updates' }).click();
    await expect.poll(() => page.locator('.summary').innerText(), SELDOM).toBe('Changed.');
  });
});

describe.runIf(isHere)('names that mean no good', () => {
  test('do nothing but show themselves', async () => {
    await using served = await servePage();
    const watched = await emptyPage(served.url, { viewport: { width: 390, height: 844 } });
    const { page } = watched;
    for (const [nth, hostile] of HOSTILE.entries()) {
      served.shown.facts = factsOf(
        [0, 1, 2].map((index) => rowOf(index, hostile)),
        hostile,
      );
      served.shown.standing = standingWith({
        workspace_id: hostile,
        workspace_name: hostile,
        summary: hostile,
        destinations: REPORT.destinations.map((each) => ({ ...each, name: hostile })),
      });
      await page.goto(served.url, { waitUntil: 'networkidle' });
      expect([nth, await page.locator('.devices tbody tr').count()]).toEqual([nth, 3]);
      expect([nth, await overflow(page)]).toEqual([nth, 0]);
      await page.locator('.devices tbody th a').first().click();
      await page.locator('.plot canvas').nth(2).waitFor();
      expect([nth, await overflow(page)]).toEqual([nth, 0]);
      expect([nth, await page.locator('script').count()]).toEqual([nth, 2]);
      expect([nth, watched.oddities]).toEqual([nth, []]);
    }
  });
});
