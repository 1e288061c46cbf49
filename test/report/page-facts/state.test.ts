/**
 * The facts of the status page about a device, over a real state: bars on the right days, last values, its own page.
 */
import { describe, expect, test } from 'vitest';
import { VALUES_A_ROW } from '../../../src/core/page-facts.ts';
import { DAY_MS, DAY_NS, HOUR_MS, MINUTE_MS, msToNs } from '../../../src/core/time.ts';
import { type ScratchStore, scratchStore } from '../../store/support.ts';
import { hold, line, list, NOON_MS, online, pageFactsOf } from './support.ts';

const MIDNIGHT_MS = Date.UTC(2026, 5, 15);
/** The grace period, and the grain of the server's clock. */
const LIMIT_LAG_MS = 122_000;
const NS = 1_000_000n;

const dayOf = (ms: number): number => Math.floor(ms / DAY_MS);

describe('the bar of a device', () => {
  const LONG_AGO = NOON_MS - 60 * DAY_MS;

  test('has complete, empty and missing days in their places, and ends with the last covered day', () => {
    using state = scratchStore();
    list(state, [online('d')]);
    const [today, holeMs] = [dayOf(NOON_MS), MIDNIGHT_MS - 4 * DAY_MS];
    hold(state, 'd', {
      covered: [
        [LONG_AGO, holeMs - HOUR_MS],
        [holeMs + HOUR_MS, NOON_MS - LIMIT_LAG_MS - MINUTE_MS],
      ],
      days: [today, today - 1, today - 4, today - 5, today - 29, today - 30],
    });
    const page = pageFactsOf(state, { nowMs: () => NOON_MS });
    expect(page.row('d').bar).toBe(`#${'-'.repeat(23)}..--##`);
    expect(page.devices().bar_from).toBe('2026-05-17T00:00:00Z');
    expect(page.row('d').state).toBe('catching-up');
  });

  test('continues with the old day after midnight until the new one is covered', () => {
    using state = scratchStore();
    list(state, [online('d')]);
    const today = dayOf(MIDNIGHT_MS);
    hold(state, 'd', { covered: [[LONG_AGO, MIDNIGHT_MS - MINUTE_MS]], days: [today - 1] });
    const at = (nowMs: number) => {
      const page = pageFactsOf(state, { nowMs: () => nowMs });
      return [page.row('d').bar, page.devices().bar_from.slice(0, 10)];
    };
    const before = `${'-'.repeat(29)}#`;
    expect(at(MIDNIGHT_MS - MINUTE_MS)).toEqual([before, '2026-05-16']);
    expect(at(MIDNIGHT_MS + LIMIT_LAG_MS - 1000)).toEqual([before, '2026-05-16']);
    // The new day has no coverage yet, and the device is not behind.
    expect(at(MIDNIGHT_MS + LIMIT_LAG_MS + 1000)).toEqual([`${'-'.repeat(28)}# `, '2026-05-17']);
    hold(state, 'd', { covered: [[LONG_AGO, MIDNIGHT_MS + 1000]] });
    expect(at(MIDNIGHT_MS + LIMIT_LAG_MS + 2000)).toEqual([`${'-'.repeat(28)}#-`, '2026-05-17']);
    // Now it is.
    expect(at(MIDNIGHT_MS + HOUR_MS)).toEqual([`${'-'.repeat(28)}#.`, '2026-05-17']);
  });

  test('is blank outside the wanted range: after a device was gone, and for one that is left out', () => {
    using state = scratchStore();
    list(
      state,
      ['gone', 'lost', 'out', 'never'].map((id) => online(id)),
    );
    for (const id of ['gone', 'lost', 'out']) {
      hold(state, id, { covered: [[LONG_AGO, MIDNIGHT_MS - 2 * DAY_MS + HOUR_MS]], days: [dayOf(MIDNIGHT_MS) - 3] });
    }
    state.store.markGone('gone', MIDNIGHT_MS - 2 * DAY_MS + HOUR_MS);
    state.store.markGone('lost', MIDNIGHT_MS - HOUR_MS);
    const page = pageFactsOf(state, { nowMs: () => NOON_MS, filter: { exclude: ['out'] } });
    expect(page.row('gone')).toMatchObject({ bar: `${'-'.repeat(26)}#-  `, state: 'unreachable', covered_share: 1 });
    // Of this one something is missing from before it was gone.
    expect(page.row('lost').bar).toBe(`${'-'.repeat(26)}#.. `);
    expect(page.row('out')).toMatchObject({ bar: `${'-'.repeat(26)}#   `, state: 'excluded' });
    expect(page.row('never')).toMatchObject({
      bar: '.'.repeat(30),
      lag_seconds: null,
      newest_reading_at: null,
      values: [],
    });
  });

  test('a device that is empty by the list of devices has no gap', () => {
    using state = scratchStore();
    const seenMs = MIDNIGHT_MS - 3 * DAY_MS;
    list(state, [online('d', { lastSeenAt: msToNs(seenMs), online: false })], NOON_MS - MINUTE_MS);
    hold(state, 'd', {
      covered: [[LONG_AGO, seenMs + HOUR_MS]],
      lines: [line('d', 's', 'value=1', msToNs(seenMs))],
      days: [dayOf(seenMs)],
    });
    const row = pageFactsOf(state, { nowMs: () => NOON_MS }).row('d');
    expect(row).toMatchObject({
      ...{ state: 'silent', active: true },
      bar: `${'-'.repeat(26)}#---`,
      newest_reading_at: '2026-06-12T00:00:00Z',
    });
  });
});

describe('the last values of a device', () => {
  const AT = msToNs(NOON_MS);
  const values = (state: ScratchStore) =>
    pageFactsOf(state, { nowMs: () => NOON_MS })
      .row('d')
      .values.map(({ sensor, value }) => `${sensor} ${value}`);

  test('are those of its newest reading, from whichever blocks it lies in, the first sensors by name', () => {
    using state = scratchStore();
    list(state, [online('d'), online('other')]);
    hold(state, 'd', {
      covered: [],
      lines: [line('d', 'old', 'value=1', AT - 5_000_000_000n), line('d', 's2', 'value=2.50', AT)],
    });
    hold(state, 'd', {
      covered: [],
      lines: [line('d', 's10', 'value=3', AT), line('d', 'older', 'value=1', AT - 9_000_000_000n)],
    });
    hold(state, 'other', { covered: [], lines: [line('other', 's1', 'value=9', AT + 5n)] });
    expect(values(state)).toEqual(['s2 2.50', 's10 3']);
    // A value that had to move aside, and those of the reading that it belongs to.
    hold(state, 'd', { covered: [], lines: [line('d', 's2', 'value=7', AT + 1n)] });
    expect(values(state)).toEqual(['s2 7', 's10 3']);
    // More of the same instant, on a page that came later.
    hold(state, 'd', { covered: [], lines: [line('d', 's3', 'value=4', AT + 1n)] });
    expect(values(state)).toEqual(['s2 7', 's3 4', 's10 3']);
    const many = Array.from({ length: VALUES_A_ROW + 2 }, (_, at) => line('d', `m${at}`, 'flag=true', AT + DAY_NS));
    hold(state, 'd', { covered: [], lines: many });
    expect(values(state)).toEqual(Array.from({ length: VALUES_A_ROW }, (_, at) => `m${at} true`));
  });

  test('are shown as far as the archive goes back; cleared readings are in the databases alone', async () => {
    using state = scratchStore({ nowMs: () => 1000 });
    list(state, [online('d')]);
    const { id } = state.store.useDestination('influx', 'x');
    hold(state, 'd', { covered: [], lines: [line('d', 's', 'value=1', AT - DAY_NS)] });
    // The value in an alert is no reading.
    state.store.append([`alert_state,device_id=d,sensor=s value=9 ${AT - DAY_NS}`], 'live');
    const page = pageFactsOf(state, { nowMs: () => NOON_MS });
    const shown = async () => await page.facts.device('d', 7 * 86_400);
    expect(await shown()).toMatchObject({
      archived_since: '2026-06-14T12:00:00Z',
      archive_cleared: false,
      sensors: [{ sensor: 's', values: 1 }],
    });
    const to = state.store.endOf('live');
    const from = state.store.position(id, 'live');
    state.store.acknowledge({ destinationId: id, lane: 'live', from, to, rejected: [], missing: [], atMs: 1 });
    for (const group of state.maintenance.compactionGroups(Number.MAX_SAFE_INTEGER))
      state.maintenance.compact(group, { configured: [id], active: [id] }, Number.MAX_SAFE_INTEGER);
    expect(state.maintenance.clear({ configured: [id], active: [id], beforeMs: null }).lines).toBe(2);
    expect(await shown()).toMatchObject({
      archived_since: null,
      archive_cleared: true,
      sensors: [],
      sensors_left_out: 0,
      device: { newest_reading_at: '2026-06-14T12:00:00Z' },
    });
    expect(page.row('d')).toMatchObject({ values: [], newest_reading_at: '2026-06-14T12:00:00Z' });
  });
});

describe('the page of a device', () => {
  test.each([
    [60, 60],
    [1, 60],
    [-7, 60],
    [3600.9, 3600],
    [1e9, 31 * 86_400],
    [Number.POSITIVE_INFINITY, 31 * 86_400],
    [Number.NaN, 86_400],
  ])('a range of %d s becomes %d', async (asked, seconds) => {
    using state = scratchStore();
    list(state, [online('d')]);
    const page = await pageFactsOf(state, { nowMs: () => NOON_MS }).facts.device('d', asked);
    expect(page?.range_seconds).toBe(seconds);
    expect(Date.parse(page?.to ?? '') - Date.parse(page?.from ?? '')).toBe(seconds * 1000);
    expect(page?.to).toBe('2026-06-15T12:00:00Z');
  });

  test('without devices there is none; without an answer of the API the local clock counts', async () => {
    using state = scratchStore();
    const page = pageFactsOf(state, { nowMs: () => NOON_MS, isTimeKnown: false });
    expect(await page.facts.device('d', 60)).toBeNull();
    expect(page.devices()).toMatchObject({ devices: 0, matching: 0, pages: 1, rows: [] });
    list(state, [online('d')]);
    expect(await page.facts.device('d', 60)).toMatchObject({ device: { device_id: 'd', state: 'catching-up' } });
    hold(state, 'd', { covered: [[NOON_MS - 20 * DAY_MS, NOON_MS - 10 * DAY_MS - HOUR_MS]] });
    const unknown = pageFactsOf(state, { nowMs: () => NOON_MS, isTimeKnown: false }).devices();
    expect(unknown).toEqual(pageFactsOf(state, { nowMs: () => NOON_MS }).devices());
    expect(unknown).toMatchObject({
      matching: 1,
      bar_from: '2026-05-17T00:00:00Z',
      rows: [{ bar: `${'.'.repeat(10)}${'-'.repeat(9)}${'.'.repeat(11)}` }],
    });
  });

  test('takes turns with others while it reads much', async () => {
    using state = scratchStore();
    list(state, [online('d')]);
    const lines = Array.from({ length: 20_000 }, (_, at) =>
      line('d', 's', `value=${at}`, msToNs(NOON_MS) - BigInt(at + 1) * NS),
    );
    for (let at = 0; at < lines.length; at += 2000)
      hold(state, 'd', { covered: [], lines: lines.slice(at, at + 2000) });
    let [readings, naps] = [0, 0];
    const clock = {
      // Every scan of it needs time.
      monoMs: () => {
        readings += 1;
        return readings * 10;
      },
      sleep: () => {
        naps += 1;
        return Promise.resolve();
      },
    };
    const page = await pageFactsOf(state, { nowMs: () => NOON_MS, clock }).facts.device('d', 3600);
    expect(page?.sensors).toMatchObject([{ sensor: 's', values: 20_000, last: { value: '0' } }]);
    expect(naps).toBeGreaterThan(1);
  });

  test('is made one step at a time, and once for all who request the same', async () => {
    using state = scratchStore();
    list(state, [online('d')]);
    const lines = Array.from({ length: 20_000 }, (_, at) =>
      line('d', 's', `value=${at}`, msToNs(NOON_MS) - (BigInt(at + 1) * NS) / 10n),
    );
    for (let at = 0; at < lines.length; at += 2000)
      hold(state, 'd', { covered: [], lines: lines.slice(at, at + 2000) });
    let [readings, asleep, most, naps] = [0, 0, 0, 0];
    const clock = {
      monoMs: () => {
        readings += 1;
        return readings * 10;
      },
      sleep: async () => {
        asleep += 1;
        naps += 1;
        most = Math.max(most, asleep);
        await new Promise((resolve) => setImmediate(resolve));
        asleep -= 1;
      },
    };
    const { facts } = pageFactsOf(state, { nowMs: () => NOON_MS, clock });
    const pages = await Promise.all([3600, 7200, 3600, 7200, 86_400].map((seconds) => facts.device('d', seconds)));
    expect(most, 'others wait for one step at most').toBe(1);
    expect(pages.map((page) => page?.range_seconds)).toEqual([3600, 7200, 3600, 7200, 86_400]);
    expect(pages[2]).toBe(pages[0]);
    const napsBefore = naps;
    expect(await facts.device('d', 3600), 'later it is a new one').not.toBe(pages[0]);
    expect(naps).toBeGreaterThan(napsBefore);
    expect(await Promise.all([facts.device('nobody', 60), facts.device('d', 60)])).toMatchObject([null, {}]);
  });
});
