/**
 * The pages as a server sends them, without a browser: the parameters of an address, the JSON and the files, and that
 * hostile text of any origin stays text.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { DevicesPage } from '../../src/core/page-facts.ts';
import { windowText } from '../../src/core/quota.ts';
import { PARAMETERS } from '../../src/observe/server.ts';
import { readPeriod } from '../../src/page/device.ts';
import { devicesLink, readDevicesQuery } from '../../src/page/devices.ts';
import { ago, coverageBar, figure, timeElement } from '../../src/page/html.ts';
import { factsOf, HOSTILE, NOW, REPORT, rowOf } from './facts.ts';
import { servePage, standingWith, textOf } from './support.ts';

describe('the parameters of the pages', () => {
  test('are those for which the server makes a page of its own', () => {
    const folder = join(import.meta.dirname, '..', '..', 'src', 'page');
    const code = readdirSync(folder).flatMap((name) =>
      name.endsWith('.ts') ? [readFileSync(join(folder, name), 'utf8')] : [],
    );
    const read = code.flatMap((text) => [...text.matchAll(/params\.get\('(\w+)'\)/g)].map(([, name]) => name));
    expect([...new Set(read)].toSorted()).toEqual([...new Set([...PARAMETERS.values()].flat())].toSorted());
  });
});

describe('addresses', () => {
  const ask = (query: string) => readDevicesQuery(new URLSearchParams(query));

  test('invalid parameters fall back', () => {
    const usual = { search: '', state: null, sort: 'state', reversed: false, page: 1 };
    for (const query of [
      '',
      'page=0&sort=size&state=dead&reversed=yes',
      'page=-1',
      'page=1e9',
      'page=99999999',
      'search=%20%20',
      'sort=__proto__',
    ]) {
      expect(ask(query)).toEqual(usual);
    }
    expect(ask('search=+a%3Cb+&state=silent&sort=lag&reversed=1&page=12')).toEqual({
      search: 'a<b',
      state: 'silent',
      sort: 'lag',
      reversed: true,
      page: 12,
    });
    expect([...ask(`search=${'😀'.repeat(1000)}`).search]).toHaveLength(200);
    expect(['6h', '30d', '31d', 'constructor'].map((name) => readPeriod(new URLSearchParams({ range: name })))).toEqual(
      ['6h', '30d', '24h', '24h'],
    );
  });

  test('a query is the same after it went through a link', () => {
    for (const search of ['', 'a&b=c #?%', '"><script>', '\u202e', "it's"]) {
      const query = { search, state: 'live', sort: 'covered', reversed: true, page: 3 } as const;
      const link = devicesLink(query).html.replaceAll('&amp;', '&').replaceAll('&#39;', "'");
      expect(link).not.toMatch(/[<>"]/);
      expect(readDevicesQuery(new URL(link, 'http://x').searchParams)).toEqual(query);
    }
  });

  test('the JSON equals the page', async () => {
    await using served = await servePage();
    const devices = JSON.parse(await textOf(`${served.url}devices.json?search=roof&sort=name`)) as DevicesPage;
    expect([devices.matching, devices.rows[0]?.device_name]).toEqual([15, 'Sensor 1, roof']);
    expect(JSON.parse(await textOf(`${served.url}alerts.json`))).toMatchObject({ alerts: 12, open: 2 });
    expect(JSON.parse(await textOf(`${served.url}events.json`))).toHaveLength(30);
    expect(JSON.parse(await textOf(`${served.url}device.json?id=dev-00003&range=6h`))).toMatchObject({
      range_seconds: 21_600,
    });
  });

  test.each([
    ['device', 400, 'text/html; charset=utf-8'],
    ['device?id=none', 404, 'text/html; charset=utf-8'],
    ['device?id=%00%ff%zz', 404, 'text/html; charset=utf-8'],
    ['device.json', 400, 'application/json; charset=utf-8'],
    ['device.json?id=none', 404, 'application/json; charset=utf-8'],
    ['assets/nothing.js', 404, 'application/json; charset=utf-8'],
    ['assets/..%2f..%2fpackage.json', 404, 'application/json; charset=utf-8'],
    ['devices', 404, 'application/json; charset=utf-8'],
  ])('/%s is answered with %i', async (path, status, type) => {
    await using served = await servePage();
    const answer = await fetch(`${served.url}${path}`);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([status, type]);
    expect(served.errors).toEqual([]);
  });

  test('the files of the pages exist, have the right type, and are sent again only when they have changed', async () => {
    await using served = await servePage();
    const pages = (await textOf(served.url)) + (await textOf(`${served.url}device?id=dev-00003`));
    const paths = new Set([...pages.matchAll(/"(\/assets\/[^"]+)"/g)].map(([, path]) => path ?? ''));
    for (const path of [...paths, '/assets/charts.js']) {
      const answer = await fetch(new URL(path, served.url));
      const type = path.endsWith('.css')
        ? 'text/css; charset=utf-8'
        : path.endsWith('.svg')
          ? 'image/svg+xml'
          : 'text/javascript; charset=utf-8';
      expect([path, answer.status, answer.headers.get('content-type')]).toEqual([path, 200, type]);
      const again = await fetch(new URL(path, served.url), {
        headers: { 'If-None-Match': answer.headers.get('etag') ?? '' },
      });
      expect([path, again.status]).toEqual([path, 304]);
    }
    expect(paths.size).toBeGreaterThanOrEqual(5);
  });
});

/** Everything is called the same, wherever something can be called anything. */
async function pagesNaming(name: string): Promise<readonly string[]> {
  const rows = [0, 1, 2].map((index) => rowOf(index, name));
  const report = {
    workspace_id: name,
    summary: name,
    streams: [{ name: 'alerts' as const, state: 'failing' as const, reason: name, last_read_at: name }],
    destinations: REPORT.destinations.map((each) => ({ ...each, name, blocked_reason: name })),
    gaps: REPORT.gaps.map((each) => ({ ...each, reason: name })),
    archive: { ...REPORT.archive, full: name },
    jobs: REPORT.jobs.map((each) => ({ ...each, requested_by: name })),
  };
  const ready = { ready: false, reasons: [`${name}!`], codes: ['destination_blocked' as const], names: [name] };
  await using served = await servePage({ standing: standingWith(report, { ready }), facts: factsOf(rows, name) });
  const id = encodeURIComponent(rows[0]?.device_id ?? '');
  const search = encodeURIComponent(name.toWellFormed().slice(0, 200));
  const paths = [
    '',
    `?search=${search}&state=${search}&page=${search}`,
    `device?id=${id}&range=${search}`,
    'alerts',
    'events',
  ];
  // One after the other: a busy server refuses what waits too long.
  const pages: string[] = [];
  for (const path of paths) pages.push(await textOf(`${served.url}${path}`));
  expect(served.errors).toEqual([]);
  return pages;
}

/** The elements and their attributes, without what stands in them. */
function skeletonOf(page: string): string {
  return (page.replace(/="[^"]*"/g, '=""').match(/<[^>]*>/g) ?? []).join('');
}

/**
 * Characters that no page may have: control characters (line breaks are the markup's own), those that turn text round,
 * halves.
 */
const HARMFUL = /[[\p{Cc}--\n]\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ud800-\udfff]/v;

describe('text from outside', () => {
  test.each(HOSTILE.map((text, index) => [index, text] as const))(
    'number %i stays text wherever it stands',
    async (_index, hostile) => {
      const [expected, pages] = [await pagesNaming('plain'), await pagesNaming(hostile)];
      for (const [index, page] of pages.entries()) {
        // The search finds others or none; what it shows of them has been compared.
        if (index !== 1) expect(skeletonOf(page) === skeletonOf(expected[index] ?? ''), `page ${index}`).toBe(true);
        expect(HARMFUL.exec(page)?.index, `page ${index}`).toBeUndefined();
        expect(page.match(/<script/g)?.length, `page ${index}`).toBe(expected[index]?.match(/<script/g)?.length);
        expect(page.length, `page ${index}`).toBeLessThan(100_000);
      }
    },
  );
});

describe('sentences', () => {
  test('shows the quota as far as it is known', () => {
    expect(windowText({ limit: 900, budget: 720, spent: 312, others: 40 })).toBe(
      '312 of 720 (plan 900, other clients about 40), 408 left',
    );
    expect(windowText({ limit: 900, budget: 720, spent: 312, others: 500 })).toBe(
      '312 of 720 (plan 900, other clients about 500), 88 left',
    );
    expect(windowText({ limit: 60, budget: 48, spent: 50, others: null })).toBe(
      '50 of 48 (plan 60, other clients not reported), 0 left',
    );
    expect(windowText({ limit: null, budget: 10, spent: 0 })).toBe('0 of 10, at most 10 left');
    expect(windowText({ limit: null, budget: null, spent: 77 })).toBe('77 requests; the limit is not known yet');
  });

  test('of numbers, lengths and moments', () => {
    expect([0, 21.5237, -1234.5678, 1e12, 0.00001].map(figure)).toEqual([
      '0',
      '21.524',
      '-1234.6',
      '1.0000e+12',
      '1.0000e-5',
    ]);
    const times = ['2026-11-21T06:00:00.123Z', '2026-11-01T06:00:00Z', '2025-02-01T06:00:00Z', 'soon'];
    expect(times.map((at) => /<time [^>]*>(.*)<\/time>/.exec(timeElement(at, NOW).html)?.[1])).toEqual([
      '06:00:00',
      '1 Nov 06:00',
      '1 Feb 2025',
      'soon',
    ]);
    expect([ago('2026-11-21T22:14:03Z', NOW), ago('2026-11-21T22:16:03Z', NOW), ago('soon', NOW)]).toEqual([
      '61 s ago',
      'in 60 s',
      null,
    ]);
  });

  test('of a bar', () => {
    const labelOf = (cells: string): string | undefined =>
      /aria-label="([^"]*)"/.exec(coverageBar({ cells, one: 'day', many: 'days', label: 'Coverage' }).html)?.[1];
    expect(labelOf('  ##-.#')).toBe('Coverage: 3 days covered, 1 day covered, no reading, 1 day not fully covered');
    expect(labelOf('   ')).toBe('Coverage: outside the synced range');
  });
});

test('the script of the browser keeps its types', () => {
  const tsc = join(import.meta.dirname, '..', '..', 'node_modules', '.bin', 'tsc');
  const { status, stdout } = spawnSync(process.execPath, [tsc, '-p', import.meta.dirname], { encoding: 'utf8' });
  expect([stdout, status]).toEqual(['', 0]);
});
