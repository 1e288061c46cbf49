/** Devices, alerts and events on the overview and on their own pages, as a server sends them, without a browser. */
import { describe, expect, test } from 'vitest';
import { factsOf, NOW, rowOf } from './facts.ts';
import { servePage, textOf } from './support.ts';

const AT = '2026-10-22T00:00:00Z';

describe('devices, alerts and events', () => {
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
});
