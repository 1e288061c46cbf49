/**
 * The pages as a server sends them, without a browser: their contents, the parameters of an address, their size, and
 * that hostile text of any origin stays text.
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
import { patient } from '../support/patience.ts';
import { factsOf, HOSTILE, NOW, REPORT, rowOf } from './facts.ts';
import { servePage, standingWith } from './support.ts';

async function textOf(url: string): Promise<string> {
  return await (await fetch(url)).text();
}

const AT = '2026-10-22T00:00:00Z';

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

describe('the overview', () => {
  test('shows its content without any script', async () => {
    await using served = await servePage();
    const page = await textOf(served.url);
    for (const words of [
      REPORT.summary,
      '312 of 720 (plan 900, other clients about 40), 408 left',
      '98,765 points of 2 devices missing in influx: the archive had removed them (from 2026-09-01T00:00:00Z to 2026-10-01T00:00:00Z); tidemark --verify --repair --destination influx requests them again from the API.',
      'malformed pages',
      '1,234,567',
      'the key lacks the scope alerts:read',
      '<b>backfill</b>',
      '2 not resolved, 12 in total',
      '<noscript><meta http-equiv="refresh" content="15"></noscript>',
    ]) {
      expect(page).toContain(words);
    }
    expect(page).not.toMatch(/undefined|NaN|\[object/);
  });

  test('loads nothing from outside, and has no script or style inside', async () => {
    await using served = await servePage();
    for (const path of ['', 'device?id=dev-00003', 'alerts', 'events', 'device?id=none']) {
      const page = await textOf(`${served.url}${path}`);
      expect(page).not.toMatch(
        /\son\w+=|\sstyle=|<style|<script(?! type="module" src="\/assets\/| src="\/assets\/)|<iframe|<img|url\(|@import/i,
      );
      expect(
        [...page.matchAll(/(?:src|href|action)="([^"]*)"/g)]
          .map(([, to]) => to)
          .filter((to) => !/^[/#]/.test(to ?? '')),
      ).toEqual([]);
      expect(page.replaceAll('http://www.w3.org/2000/svg', '')).not.toMatch(/https?:/);
    }
  });

  test('before any data it shows that there is none yet', async () => {
    const nothing = {
      workspace_id: null,
      destinations: [],
      streams: [],
      jobs: [],
      gaps: [],
      totals: { ...REPORT.totals, devices: 0, devices_complete: 0, covered_share: null },
      freshness: { ...REPORT.freshness, median_seconds: null, p95_seconds: null, max_seconds: null },
      allowance: { ...REPORT.allowance, minute: { limit: null, budget: null, spent: 1 }, lanes: [] },
    };
    await using served = await servePage({ standing: standingWith(nothing), facts: factsOf([]) });
    const page = await textOf(served.url);
    for (const words of [
      'not known yet',
      'readings are stored only in the archive',
      'No devices are listed yet',
      '1 request; the limit is not known yet',
    ]) {
      expect(page).toContain(words);
    }
    expect(page).not.toMatch(/>null<|undefined|NaN/);
  });

  test.each([
    [
      'a destination that is blocked',
      { destinations: REPORT.destinations.map((each) => ({ ...each, blocked_reason: 'no connection' })) },
      'Problem',
    ],
    [
      'a stream that fails',
      { streams: REPORT.streams.map((each) => ({ ...each, state: 'failing' as const })) },
      'Problem',
    ],
    [
      'the stream of the readings, off for lack of a scope,',
      {
        streams: REPORT.streams.map((each) => (each.name === 'telemetry' ? { ...each, state: 'off' as const } : each)),
      },
      'Problem',
    ],
    ['a state that is full', { archive: { ...REPORT.archive, full: 'the disk is full' } }, 'Problem'],
    ['history that is being filled', { totals: { ...REPORT.totals, devices_complete: 7 } }, 'Syncing'],
    ['nothing to do', {}, 'OK'],
  ])('%s decides how serious it looks', async (_what, report, tone) => {
    await using served = await servePage({ standing: standingWith(report) });
    const page = await textOf(served.url);
    expect(/<p class="tone">([^<]*)/.exec(page)?.[1]).toBe(tone);
    expect(page).toContain(`<title>${tone}: Żabka &amp; Sons – Tidemark</title>`);
  });

  test('the first number is the lag of each database, the largest first', async () => {
    const [influx] = REPORT.destinations;
    if (influx === undefined) throw new Error('no destination');
    const destinations = [influx, { ...influx, name: 'b', lag_seconds: 3600, pending_points: 0 }];
    await using served = await servePage({ standing: standingWith({ destinations }) });
    const tiles = /<dl class="tiles"[^>]*>(.*?)<\/dl>/s.exec(await textOf(served.url))?.[1] ?? '';
    const heads = [...tiles.matchAll(/<div class="tile ([a-z]*)"><dt><bdi>(.*?)<\/bdi><\/dt><dd><b>(.*?)<\/b>/g)];
    expect(heads.map(([, tone, title, value]) => [tone, title, value]).slice(0, 2)).toEqual([
      ['bad', 'Lag in b', '60 min'],
      ['', 'Lag in influx', '56 s'],
    ]);
  });

  test('a blocked database, or one without data of a device yet, changes it', async () => {
    const changed = (changes: object) =>
      standingWith({ destinations: REPORT.destinations.map((each) => ({ ...each, ...changes })) });
    await using served = await servePage({ standing: changed({ blocked_reason: 'no connection', lag_seconds: 400 }) });
    const first = async (): Promise<string> => /<div class="tile .*?<\/div>/.exec(await textOf(served.url))?.[0] ?? '';
    expect(await first()).toMatch(
      /class="tile bad".*<b>7 min<\/b><span>delivery is blocked: 12 points wait, the oldest for 14\u00a0s<\/span><span>Tidemark’s own archive has a lag of 42\u00a0s<\/span>/,
    );
    expect(await textOf(served.url)).toContain('60 of 60 devices complete in the archive; backfill');
    served.shown.standing = changed({ lag_seconds: null });
    expect(await first()).toContain('<b>initial sync</b>');
    // It is neither late nor up to date, so in no colour, though devices wait for their newest readings.
    const freshness = { ...REPORT.freshness, behind_devices: 31, median_seconds: null };
    for (const destinations of [[], REPORT.destinations.map((each) => ({ ...each, lag_seconds: null }))]) {
      served.shown.standing = standingWith({ destinations, freshness });
      expect(await first()).toMatch(/^<div class="tile "><dt>.*<b>initial sync<\/b>/);
    }
    served.shown.standing = changed({ lag_seconds: null });
    expect(await textOf(served.url)).toMatch(
      /<section id="delivery".*?<td class="number">initial<div>sync<\/div><\/td>/s,
    );
  });

  test('the waiting points are labelled as history where no new one waits', async () => {
    const tileOf = async (changes: object): Promise<string> => {
      const destinations = REPORT.destinations.map((each) => ({ ...each, ...changes }));
      await using served = await servePage({ standing: standingWith({ destinations }) });
      return (/<div class="tile .*?<\/div>/.exec(await textOf(served.url))?.[0] ?? '').replaceAll('\u00a0', ' ');
    };
    expect(await tileOf({})).toContain('<span>12 points wait, the oldest for 14 s</span>');
    const before = { oldest_pending_at: '2026-11-21T20:00:00Z' };
    expect(await tileOf(before)).toContain('<span>12 points wait, the oldest new reading for 14 s</span>');
    const history = { lag_seconds: 0, oldest_live_pending_at: null };
    const words = '<span>12 points of history wait; new readings are delivered first</span>';
    expect(await tileOf(history)).toContain(words);
    expect(await tileOf({ ...history, lag_seconds: null }), 'in an initial sync').toContain(words);
    expect(await tileOf({ ...history, blocked_reason: 'no connection' })).toContain(
      '<span>delivery is blocked: 12 points of history wait</span>',
    );
    const destinations = REPORT.destinations.map((each) => ({ ...each, ...history }));
    await using served = await servePage({ standing: standingWith({ destinations }) });
    expect(await textOf(served.url)).toContain('<td class="number">12<div class="soft">of history</div></td>');
  });

  test('the lag of a database is above two lines: the waiting points, and the median of which lags it is', async () => {
    const tileOf = async (lagSeconds: number | null, freshness: object = {}): Promise<string> => {
      const destinations = REPORT.destinations.map((each) => ({ ...each, lag_seconds: lagSeconds, pending_points: 0 }));
      const standing = standingWith({ destinations, freshness: { ...REPORT.freshness, ...freshness } });
      await using served = await servePage({ standing });
      return (/<div class="tile .*?<\/div>/.exec(await textOf(served.url))?.[0] ?? '').replaceAll('\u00a0', ' ');
    };
    const delivered = '<span>every archived point is delivered</span>';
    const even = { median_seconds: 0, p95_seconds: 49, max_seconds: 49, expected_seconds: 60 };
    expect(await tileOf(0, even)).toContain(
      `<b>0 s</b>${delivered}<span>median of 60 devices, largest lag 49 s; polled every 60 s</span></dd>`,
    );
    expect(await tileOf(42)).toContain(
      'median of 60 devices, largest lag 118 s; polled every 90 s (all that the quota allows)<',
    );
    expect(await tileOf(42, { behind_devices: 3 })).toContain(', largest lag 118 s, 3 devices above 7 min; polled');
    // It is apart from that of the archive where new points wait.
    expect(await tileOf(56)).toContain(`${delivered}<span>Tidemark’s own archive has a lag of 42 s</span></dd>`);
    // In an initial sync there is no median.
    const initial = { ...even, median_seconds: null, p95_seconds: null, max_seconds: null };
    expect(await tileOf(null, initial)).toContain(`${delivered}<span>polled every 60 s</span></dd>`);
    expect(await tileOf(null, { ...initial, max_seconds: 59 })).toContain('<span>largest lag 59 s; polled every 60');
  });

  test('a range has its date at both ends', async () => {
    await using served = await servePage();
    const page = await textOf(served.url);
    expect(page.replaceAll(/<time[^>]*>|<\/time>/g, '')).toContain(
      'from <span data-range>1 Oct 00:00 to 21 Nov 21:00<',
    );
  });

  test('while telemetry is not read the lag grows from the last reading on, and nothing below is calm', async () => {
    const refused = (seconds: number) =>
      standingWith(
        {
          generated_at: new Date(Date.parse('2026-11-21T22:15:00Z') + seconds * 1000).toISOString(),
          freshness: { ...REPORT.freshness, median_seconds: 0, p95_seconds: 0, max_seconds: 0 },
          destinations: REPORT.destinations.map((each) => ({ ...each, lag_seconds: 0, pending_points: 0 })),
          totals: { ...REPORT.totals, covered_share: 1 },
          gaps: [],
          next: { ...REPORT.next, devices_with_gaps: 0 },
          summary_problem: { code: 'key_refused', name: null },
        },
        { ready: { ready: false, reasons: ['api: the API rejects the key'], codes: ['key_refused'], names: [null] } },
      );
    await using served = await servePage({ standing: refused(30) });
    const first = async (): Promise<string> => /<div class="tile .*?<\/div>/.exec(await textOf(served.url))?.[0] ?? '';
    expect(await first()).toMatch(
      /tile bad"><dt>.*Lag<.*<b>30 s<\/b><span>no telemetry read since <time[^>]*>22:15:00<\/time>: polling is on hold</,
    );
    const growing = '<span>counted from the last poll; it grows until polling works again</span>';
    expect(await first()).toContain(growing);
    const page = await textOf(served.url);
    expect(page).not.toMatch(/no gaps/i);
    expect(page).toContain('Newer readings will be read when polling works again');
    expect(page).toMatch(/<section id="delivery".*?<td class="number">30 s<\/td>/s);
    expect(page).toMatch(
      /tile busy"><dt><bdi>Sync range covered<.*?<b>100 %<\/b><span>60 of 60 devices complete; backfill running, 42 % of its range<\/span><span>last poll <time[^>]*>22:15:00<\/time>, polling is on hold</,
    );
    expect(page).toMatch(
      /<b>Sync range<\/b>: 100 % covered; last poll <time[^>]*>22:15:00<\/time>, polling is on hold/,
    );
    const filling = refused(66);
    const totals = { ...REPORT.totals, devices_complete: 0, covered_share: 0.226 };
    served.shown.standing = { ...filling, report: { ...filling.report, totals, jobs: [] } };
    expect(await textOf(served.url), 'no time up to which a part is covered').toMatch(
      /<b>22\.6 %<\/b><span>0 of 60 devices complete<\/span><span>last poll <time[^>]*>22:15:00<\/time>, polling is on hold</,
    );
    const streams = REPORT.streams.map((each) => ({ ...each, last_read_at: null }));
    served.shown.standing = { ...filling, report: { ...filling.report, streams } };
    expect(await textOf(served.url), 'not read yet').toContain('of its range</span><span>polling is on hold</span>');
    expect(await first()).toContain('<b>0 s</b><span>no telemetry read yet: polling is on hold</span><span>median of');
    const unknown = { freshness: { ...REPORT.freshness, median_seconds: null }, destinations: [] };
    served.shown.standing = { ...filling, report: { ...filling.report, streams, ...unknown } };
    expect(await first()).toContain('<b>not known</b><span>no telemetry read yet: polling is on hold</span></dd>');
    served.shown.standing = refused(7200);
    expect(await first()).toContain('<b>2 h</b>');
    served.shown.standing = standingWith({
      streams: REPORT.streams.map((each) => (each.name === 'telemetry' ? { ...each, state: 'failing' } : each)),
    });
    const known = await first();
    expect(known, 'never less than the lag that is known').toContain('<b>56 s</b>');
    expect(known).toContain('<span>median of 60 devices in the database; it grows until polling works again</span>');
  });

  test('a database that is down: nothing is lost, since when, the next attempt; and its error once', async () => {
    const reason = 'HTTP 503: the proxy does not answer';
    const blocked = (summary: string, code: 'destination_blocked' | 'api_unreachable' = 'destination_blocked') =>
      standingWith({
        summary,
        summary_problem: { code, name: code === 'destination_blocked' ? 'influx' : null },
        destinations: REPORT.destinations.map((each) => ({ ...each, blocked_reason: reason })),
      });
    await using served = await servePage({ standing: blocked(`Delivery to influx is blocked: ${reason}`) });
    const page = await textOf(served.url);
    expect(page.split(reason)).toHaveLength(2);
    expect(page).toMatch(
      /Nothing is lost: 12 points for <bdi>influx<\/bdi> wait in the archive, the oldest since <time[^>]*>22:14:50<\/time>\. Tidemark tries the delivery again by itself\./,
    );
    const tried = (next_attempt_at: string) =>
      standingWith({
        destinations: REPORT.destinations.map((each) => ({ ...each, blocked_reason: reason, next_attempt_at })),
      });
    served.shown.standing = tried('2026-11-21T22:16:31.250Z');
    expect(await textOf(served.url)).toMatch(/Tidemark tries the delivery again at <time[^>]*>22:16:31<\/time>\./);
    served.shown.standing = standingWith({
      destinations: REPORT.destinations.map((each) => ({
        ...each,
        blocked_reason: reason,
        blocked_since: '2026-11-21T22:14:53.1Z',
      })),
    });
    expect(await textOf(served.url)).toMatch(/Blocked since <time[^>]*>22:14:53<\/time>\. Nothing is lost: 12 points/);
    served.shown.standing = tried(NOW);
    expect(await textOf(served.url)).toContain('Tidemark is trying the delivery again now.');
    served.shown.standing = blocked('The API cannot be read: no connection', 'api_unreachable');
    expect((await textOf(served.url)).split(reason), 'not said above').toHaveLength(2);
  });

  test('a key that is rejected: polling is on hold until the next attempt, and no text says that it has stopped', async () => {
    const standing = (attempt_at: string | null) => ({
      ...standingWith({
        next: { ...REPORT.next, attempt_at },
        summary_problem: { code: 'key_refused', name: null },
      }),
      ready: { ready: false, reasons: ['refused'], codes: ['key_refused' as const], names: [null] },
    });
    await using served = await servePage({ standing: standing('2026-11-21T22:17:12Z') });
    const page = await textOf(served.url);
    expect(page).toMatch(
      /No telemetry has been read since <time[^>]*>22:15:00<\/time>: polling is on hold until the API accepts the key\. Tidemark tries the key again at <time[^>]*>22:17:12<\/time>\. Stored readings are safe\./,
    );
    expect(page).not.toMatch(/stopped/i);
    served.shown.standing = standing(null);
    expect(await textOf(served.url)).toContain('accepts the key. Tidemark tries the key again by itself. Stored');
  });

  test.each([
    [
      'an API that does not answer',
      { codes: ['api_unreachable' as const] },
      'failing',
      'polling fails, and Tidemark keeps trying',
    ],
    ['a stream that fails', {}, 'failing', 'polling fails, and Tidemark keeps trying'],
    ['a key without the scope', {}, 'off', 'polling is off until the key has the scope. Tidemark tries it every hour'],
  ] as const)('%s: what Tidemark tries, and no time of an attempt', async (_what, changes, state, words) => {
    const streams = REPORT.streams.map((each) => (each.name === 'telemetry' ? { ...each, state } : each));
    const ready = { ready: false, reasons: ['no'], codes: [], names: [null], ...changes };
    await using served = await servePage({ standing: standingWith({ streams }, { ready }) });
    const page = await textOf(served.url);
    expect(page.replaceAll(/<time[^>]*>|<\/time>/g, '')).toContain(
      `No telemetry has been read since 22:15:00: ${words}. Stored readings are safe.`,
    );
    expect(page).not.toMatch(/stopped|again at/i);
  });

  test('the use by other clients in a window that the API has not reported is not shown as none', async () => {
    const { minute, day } = REPORT.allowance;
    const standing = (others: number | null) =>
      standingWith({ allowance: { ...REPORT.allowance, minute, day: { ...day, others } } });
    await using served = await servePage({ standing: standing(null) });
    expect(await textOf(served.url)).toContain('(plan 200,000, other clients not reported)');
    served.shown.standing = standing(0);
    expect(await textOf(served.url)).toContain('48,000 of 160,000 (plan 200,000), 112,000 left');
  });

  test('purposes of requests are in words, under a heading', async () => {
    const lanes = (['first-history', 'inventory', 'backfill'] as const).map((lane) => ({ lane, minute: 1, day: 7 }));
    await using served = await servePage({ standing: standingWith({ allowance: { ...REPORT.allowance, lanes } }) });
    expect(await textOf(served.url)).toMatch(
      /<h3>Requests of the last 24 hours by purpose<\/h3><ul[^>]*><li>history <b>7<\/b><\/li><li>device list and account <b>7<\/b><\/li><li>backfill <b>7/,
    );
  });

  test('a reason that the sentence contains is not repeated', async () => {
    const reason = 'the device list is not complete yet';
    const standing = {
      ...standingWith({
        summary: `Starting: ${reason}.`,
        summary_problem: { code: 'devices_not_listed' as const, name: null },
      }),
      ready: { ready: false, reasons: [reason], codes: ['devices_not_listed' as const], names: [null] },
    };
    await using served = await servePage({ standing });
    expect((await textOf(served.url)).split(reason)).toHaveLength(2);
  });

  test('shows that the history is being filled, and how much is covered', async () => {
    const totals = { ...REPORT.totals, devices_complete: 7, covered_share: 0.4 };
    const next = { ...REPORT.next, initial_devices: 53, eta_seconds: 240 };
    await using served = await servePage({ standing: standingWith({ totals, next, jobs: [] }) });
    expect(await textOf(served.url)).toContain(
      'Initial sync is running: 7 of 60 devices complete, ETA 4 min. No backfill',
    );
    served.shown.standing = standingWith({ totals, jobs: [] });
    expect(await textOf(served.url)).toContain('Gaps are being closed: 7 of 60 devices complete.');
    served.shown.standing = standingWith({
      totals,
      next,
      jobs: [],
      process: { ...REPORT.process, running: false },
    });
    expect(await textOf(served.url)).not.toContain('Initial sync is running');
    served.shown.standing = standingWith({ jobs: [] });
    expect(await textOf(served.url)).toContain(
      '99.9 % covered, 3 devices with gaps (30 min, in total over the devices)',
    );
    const whole = {
      totals: { ...REPORT.totals, covered_share: 1 },
      gaps: [],
      next: { ...REPORT.next, devices_with_gaps: 0 },
    };
    served.shown.standing = standingWith({ ...whole, jobs: [] });
    const page = await textOf(served.url);
    expect(page).toContain('<b>Sync range</b>: 100 % covered, no gaps');
    expect(page).toContain('<bdi>Sync range covered</bdi></dt><dd><b>100 %</b>');
    expect(page).toMatch(/<b>Sync range<\/b>: 100 % covered, no gaps.*No backfill or other job is running/s);
    served.shown.standing = standingWith(whole);
    const filling = await textOf(served.url);
    expect(filling).toContain(
      '<b>100 %</b><span>60 of 60 devices complete; backfill running, 42 % of its range</span>',
    );
    expect(filling).toMatch(/<b>Sync range<\/b>: 100 % covered, no gaps.*<b>backfill<\/b>/s);
    expect(page).toContain('2,345,678 telemetry points, 99 requests');
    expect(page).toContain('Archive: 2,345,678 points of all measurements');
  });

  test('a silent device shows for how long it has sent nothing, never a lag of 0 s alone', async () => {
    const silent = { ...rowOf(0), state: 'silent' as const, lag_seconds: 0 };
    const at = (newest_reading_at: string | null) => factsOf([{ ...silent, newest_reading_at }]);
    await using served = await servePage({ facts: at('2026-11-18T22:00:00Z') });
    expect(await textOf(served.url)).toContain('<td class="number silence">silent 3 days</td>');
    const page = await textOf(`${served.url}device?id=${silent.device_id}`);
    expect(page).toContain('0 s (silent 3 days: there is nothing newer)');
    await using never = await servePage({ facts: at(null) });
    expect(await textOf(never.url)).toContain('<td class="number silence">silent</td>');
    await using stopped = await servePage({ facts: factsOf([{ ...silent, lag_seconds: 720 }]) });
    expect(await textOf(stopped.url)).toMatch(/<td class="number">12 min, silent [^<]+<\/td>/);
    await using live = await servePage({ facts: factsOf([{ ...silent, state: 'live' }]) });
    expect(await textOf(live.url)).toContain('<td class="number">0 s</td>');
  });

  test('a silent device shows since when, and that nothing newer is missing; one out of service is not silent', async () => {
    const silent = { ...rowOf(0), state: 'silent' as const, lag_seconds: 0, newest_reading_at: '2026-11-18T22:00:00Z' };
    const served = async (row: typeof silent) => {
      const facts = factsOf([row]);
      const device: typeof facts.device = async (id, seconds) => {
        const page = await facts.device(id, seconds);
        if (page === null) return null;
        const listed = { ...page.device.listed, lifecycle_status: 'paused' };
        return { ...page, device: { ...page.device, fresh: true, gaps: [], reasons: [], listed } };
      };
      await using server = await servePage({ facts: { ...facts, device } });
      const plain = async (path: string): Promise<string> =>
        (await textOf(`${server.url}${path}`)).replaceAll(/<\/?time[^>]*>/g, '');
      const page = await plain(`device?id=${row.device_id}`);
      return { list: await plain(''), page, words: /<p class="summary" role="status">(.*?)<\/p>/.exec(page)?.[1] };
    };
    const active = await served(silent);
    expect(active.list).toContain(
      '<span class="state s-silent">silent</span><div class="since">since 18 Nov 22:00</div>',
    );
    expect(active.words?.replace(/<[^>]+>/g, '')).toBe('silent since 18 Nov 22:00, nothing newer to read');
    expect(active.page, 'not the colour of a device that reports').toContain('class="standing quiet"');
    const paused = await served({ ...silent, active: false });
    expect(paused.words?.replace(/<[^>]+>/g, '')).toBe('out of service (paused), nothing newer to read');
    expect(paused.list).toContain('<span class="state s-out-of-service">out of service</span></td>');
    expect(paused.list).toContain('<td class="number silence">no reading for 3 days</td>');
    expect(paused.list).toContain('>out of service</span> <b>1</b>');
    expect(`${paused.list}${paused.page}`).not.toMatch(/>silent|silent \d|since 18 Nov/);
  });

  test('the overview shows how many alerts it does not list, and how many of those are open', async () => {
    const facts = factsOf(Array.from({ length: 12 }, (_, index) => rowOf(index)));
    const seen = facts.alerts();
    const of = async (open: number): Promise<string> => {
      const rows = seen.rows.map((row, index) => ({ ...row, open: index < open }));
      await using served = await servePage({ facts: { ...facts, alerts: () => ({ alerts: 30, open, rows }) } });
      return /<section id="alerts".*?<\/section>/s.exec(await textOf(served.url))?.[0] ?? '';
    };
    expect((await of(13)).match(/<tr data-key="alert-/g)).toHaveLength(8);
    expect(await of(13)).toContain('<a href="/alerts">22 more</a>, 5 of them not resolved</p>');
    expect(await of(2)).toContain('<a href="/alerts">22 more</a></p>');
  });

  test('a device without any reading shows that', async () => {
    // Where the full range is covered, none is to come.
    for (const [covered_share, words] of [
      [0.4, 'no reading yet'],
      [1, 'no reading in the sync range'],
    ] as const) {
      const never = { ...rowOf(0), lag_seconds: 0, covered_share, newest_reading_at: null };
      await using served = await servePage({ facts: factsOf([never]) });
      for (const path of ['', `device?id=${never.device_id}`])
        expect(await textOf(`${served.url}${path}`)).toContain(`<span class="state s-never">${words}</span>`);
    }
  });

  test.each([
    [
      false,
      AT,
      'The oldest reading of this device in the archive is of 22 Oct 00:00. tidemark --backfill --from 90d requests older ones.',
    ],
    [true, AT, 'The archive has readings of this device since 22 Oct 00:00; cleared ones are only in the databases.'],
    [true, null, 'The archive has cleared the readings of this device: they are only in the databases.'],
    [false, null, 'The archive has no reading of this device.'],
  ])('where older readings of a device are (cleared %s, since %s)', async (archive_cleared, archived_since, words) => {
    const facts = factsOf([rowOf(0)]);
    const device: typeof facts.device = async (id, seconds) => {
      const page = await facts.device(id, seconds);
      return page === null ? null : { ...page, archive_cleared, archived_since };
    };
    await using served = await servePage({ facts: { ...facts, device } });
    const page = await textOf(`${served.url}device?id=${rowOf(0).device_id}`);
    expect(page.replace(/<[^>]+>/g, '')).toContain(words);
  });

  test.each([
    ['live', { lag_seconds: 40, gaps: 0 }, 'ok', 'live, up to date'],
    ['catching-up', { lag_seconds: 40, gaps: 2 }, 'busy', 'catching up, up to date except for 2 gaps'],
    ['catching-up', { lag_seconds: null, gaps: 1 }, 'busy', 'catching up, initial sync'],
    ['catching-up', { lag_seconds: 900, gaps: 1, fresh: false }, 'busy', 'catching up, behind, 1 gap'],
    ['excluded', { lag_seconds: null, gaps: 1, fresh: false }, 'ok', 'excluded'],
  ] as const)(
    'how up to date a device is: %s %o',
    async (state, { lag_seconds, gaps: count, ...more }, tone, words) => {
      const row = { ...rowOf(0), state, lag_seconds };
      const facts = factsOf([row]);
      const device: typeof facts.device = async (id, seconds) => {
        const page = await facts.device(id, seconds);
        const gaps = Array.from({ length: count }, () => ({ from: AT, to: NOW, reason: 'pending' }));
        return page === null ? null : { ...page, device: { ...page.device, fresh: true, gaps, ...more } };
      };
      await using served = await servePage({ facts: { ...facts, device } });
      const page = await textOf(`${served.url}device?id=${row.device_id}`);
      expect(page).toContain(`<section id="standing" class="standing ${tone}"`);
      expect(/<p class="summary" role="status">(.*?)<\/p>/.exec(page)?.[1]?.replace(/<[^>]+>/g, '')).toBe(words);
      const isInitial = state === 'catching-up' && lag_seconds === null;
      expect(/<dt>Lag<\/dt><dd>(.*?)<\/dd>/.exec(page)?.[1] === 'initial sync').toBe(isInitial);
      expect((await textOf(served.url)).includes('<td class="number">initial sync</td>')).toBe(isInitial);
    },
  );

  test('shows that the quota is used up only where no lane may send', async () => {
    const with_ = (waiting_until: string | null, history_waiting_until: string | null) =>
      standingWith({ allowance: { ...REPORT.allowance, waiting_until, history_waiting_until } });
    const at = '2026-11-21T22:40:14Z';
    await using served = await servePage({ standing: with_(null, at) });
    const page = await textOf(served.url);
    expect(page).not.toContain('Quota used up');
    expect(page).toMatch(
      /History and backfill spread the budget over the day: they resume at <time[^>]*>22:40:14<\/time>\./,
    );
    served.shown.standing = with_(at, at);
    expect(await textOf(served.url)).toMatch(/Quota used up: requests resume at <time[^>]*>22:40:14<\/time>\./);
    served.shown.standing = with_(null, null);
    expect(await textOf(served.url)).not.toMatch(/Quota used up|History and backfill wait/);
  });

  test('a backfill shows how far it is, its rate and its ETA', async () => {
    await using served = await servePage();
    const page = await textOf(served.url);
    expect(page).toMatch(/aria-label="Progress of backfill no\. 4"[^>]*aria-valuenow="42"/);
    expect(page).toMatch(/from <span data-range><time[^>]*>1 Oct 00:00<\/time> to <time[^>]*>21 Nov 21:00<\/time>/);
    expect(page).toContain(
      '42 % of this range covered (including what was covered before), 1,234 requests so far (recently 21 a minute), 98,700 new readings, ETA 26\u00a0min (about 560 requests at 21 a minute)',
    );
  });

  test('an alert shows rule, condition, threshold, value and count, whom it concerns, and its status', async () => {
    await using served = await servePage();
    for (const path of ['alerts', 'device?id=dev-00003']) {
      const page = await textOf(`${served.url}${path}`);
      const rows = [...page.matchAll(/<tr data-key="alert-.*?<\/tr>/g)].map(([row]) => row);
      expect(rows[0]).toContain(
        '<bdi>Too warm</bdi><div class="soft"><bdi>temperature</bdi> <bdi>above</bdi> 8&nbsp;°C: <b><span title="12.345678">12.346</span>&nbsp;°C</b>',
      );
      expect(rows[0]).toContain('<td class="number">3</td>');
    }
    const page = await textOf(`${served.url}alerts`);
    // The time at which Tidemark read the state, which may have changed long before.
    expect(page).toContain('>State as of</th>');
    expect(page).toMatch(/<bdi>acknowledged<\/bdi>.*href="\/device\?id=dev-00000"/s);
    expect(page).not.toContain('closed');
    expect(JSON.parse(await textOf(`${served.url}alerts.json`)).rows[0]).toMatchObject({
      rule_name: 'Too warm',
      condition: 'above',
      threshold: 8,
      value: 12.345678,
      fire_count: 3,
      status: 'acknowledged',
      device_id: 'dev-00000',
    });
  });

  test('a condition that names sensor and threshold is not repeated', async () => {
    const rows = [rowOf(0)];
    const seen = factsOf(rows).alerts();
    const alert = { ...seen.rows[0], condition: 'temperature above 8 °C' } as (typeof seen.rows)[number];
    await using served = await servePage({ facts: { ...factsOf(rows), alerts: () => ({ ...seen, rows: [alert] }) } });
    const words = /<div class="soft">(.*?)<\/div>/.exec(await textOf(`${served.url}alerts`))?.[1];
    expect(words?.replace(/<[^>]+>/g, '')).toBe('temperature above 8 °C: 12.346&nbsp;°C');
  });

  test('values have the unit of their sensor, where its name gives it away', async () => {
    await using served = await servePage();
    expect(await textOf(served.url)).toMatch(
      /<bdi>battery<\/bdi> <b>[\d.]+<\/b>.*<bdi>humidity<\/bdi> <b>[\d.]+&nbsp;%<\/b>.*<bdi>temperature<\/bdi> <b>[\d.]+&nbsp;°C<\/b>/,
    );
    const device = await textOf(`${served.url}device?id=dev-00003`);
    expect(device).toContain('<figcaption><span><bdi>temperature</bdi></span> <b>21.52&nbsp;°C</b>');
    expect(device).toMatch(/<th scope="row"><bdi>temperature<\/bdi><\/th><td class="number"><b>21.52&nbsp;°C<\/b>/);
  });

  test('a mean has no more decimals than the values', async () => {
    const facts = factsOf([rowOf(3)]);
    const seen = await facts.device(rowOf(3).device_id, 3600);
    if (seen === null) throw new Error('no device');
    const series = { values: 2, times: [1, 2], mean: [54.61, 54.728], min: [44.8, 50], max: [50, 64.8] };
    const sensors = [{ ...series, sensor: 'humidity', last: { sensor: 'humidity', value: '54.9', at: NOW } }];
    const device = async () => await Promise.resolve({ ...seen, sensors });
    await using served = await servePage({ facts: { ...facts, device } });
    const row = /<tr data-key="humidity">.*?<\/tr>/.exec(await textOf(`${served.url}device?id=dev-00003`))?.[0] ?? '';
    const cells = [...row.matchAll(/<td class="number">(.*?)<\/td>/g)].map(([, cell]) => cell);
    expect(cells.slice(1, 4)).toEqual(['44.8&nbsp;%', '54.7&nbsp;%', '64.8&nbsp;%']);
  });

  test('events are narrowed to a level and above, and lead to their device', async () => {
    await using served = await servePage();
    const levels = async (query: string): Promise<(string | undefined)[]> => [
      ...new Set(
        [...(await textOf(`${served.url}events${query}`)).matchAll(/<li class="l-(\w+)"/g)].map(([, level]) => level),
      ),
    ];
    expect(await levels('')).toEqual(['info', 'warn', 'error']);
    expect(await levels('?level=warn')).toEqual(['warn', 'error']);
    expect(await levels('?level=error')).toEqual(['error']);
    expect(await levels('?level=nonsense')).toEqual(['info', 'warn', 'error']);
    expect(await textOf(`${served.url}events`)).toContain('<a href="/device?id=dev-00000"><bdi>dev-00000</bdi></a>');
  });

  test('links lead to the dashboards and the documentation where they are configured', async () => {
    const links = [{ label: 'Grafana', url: 'https://grafana.example/d/tidemark-fleet' }];
    await using served = await servePage({ links });
    expect(await textOf(served.url)).toContain(
      '<a href="https://grafana.example/d/tidemark-fleet" rel="noreferrer">Grafana</a>',
    );
    await using bare = await servePage();
    expect(await textOf(bare.url)).not.toContain('Grafana');
  });

  test('missing points are shown beside the sentence, once', async () => {
    const reasons = ['destination influx: 401', 'the API rejects the key'];
    const ready = {
      ready: false,
      reasons,
      codes: ['destination_blocked' as const, 'key_refused' as const],
      names: ['influx', null],
    };
    const summary_problem = { code: 'key_refused' as const, name: null };
    await using served = await servePage({ standing: standingWith({ summary_problem }, { ready }) });
    const page = await textOf(served.url);
    expect(/<ul class="reasons">(.*?)<\/ul>/.exec(page)?.[1]).toBe('<li>destination influx: 401</li>');
  });

  test('a stream that fails is named once, with its reason', async () => {
    const streams = REPORT.streams.map((each) =>
      each.name === 'devices' ? { ...each, state: 'failing' as const, reason: 'HTTP 500' } : each,
    );
    await using served = await servePage({ standing: standingWith({ streams }) });
    const reasons = async (): Promise<string | undefined> =>
      /<ul class="reasons">(.*?)<\/ul>/.exec(await textOf(served.url))?.[1];
    expect(await reasons()).toBe('<li>stream devices: HTTP 500</li>');
    const ready = {
      ready: false,
      reasons: ['stream devices: HTTP 500'],
      codes: ['stream_failing' as const],
      names: ['devices'],
    };
    served.shown.standing = standingWith({ streams }, { ready });
    expect(await reasons()).toBe('<li>stream devices: HTTP 500</li>');
    served.shown.standing = standingWith(
      {
        streams,
        summary: 'The stream devices cannot be read',
        summary_problem: { code: 'stream_failing', name: 'devices' },
      },
      { ready },
    );
    expect(await reasons()).toBeUndefined();
  });

  test('stays under 300 KB with ten thousand devices, whatever they are called', async () => {
    for (const hostile of [undefined, 'ﷺ'.repeat(3000)]) {
      // With long names, the stand-in's own search would dominate the time.
      const rows = Array.from({ length: hostile === undefined ? 10_000 : 500 }, (_, index) => rowOf(index, hostile));
      await using served = await servePage({ facts: factsOf(rows, hostile) });
      const startedMs = performance.now();
      const answer = await fetch(served.url);
      const firstByteMs = performance.now() - startedMs;
      const size = (await answer.bytes()).length;
      process.stderr.write(`${rows.length} devices: ${size} bytes, first byte after ${Math.round(firstByteMs)} ms\n`);
      expect(size).toBeLessThan(300_000);
      expect(firstByteMs).toBeLessThan(patient(1000));
    }
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
    expect(windowText({ limit: null, budget: 10, spent: 0 })).toBe('0 of 10, 10 left');
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
