/**
 * The overview as a server sends it, without a browser: state, lag, outages, quota, backfill, and its size.
 */
import { describe, expect, test } from 'vitest';
import { patient } from '../support/patience.ts';
import { factsOf, NOW, REPORT, rowOf } from './facts.ts';
import { servePage, standingWith, textOf } from './support.ts';

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
