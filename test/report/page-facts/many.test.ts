/**
 * The facts of the status page about many devices, over a real state: their names, alerts; and that ten thousand
 * devices cost no more than those that are shown.
 */
import { describe, expect, test } from 'vitest';
import type { Sync } from '../../../src/app/open-sync.ts';
import { subscribeShownFacts } from '../../../src/app/service.ts';
import type { Observe } from '../../../src/core/events.ts';
import type { KnownAlert } from '../../../src/core/lines/fact-lines.ts';
import { ALERTS_SHOWN, DEVICES_A_PAGE, type PageFacts } from '../../../src/core/page-facts.ts';
import { createScrub, Secret } from '../../../src/core/secret.ts';
import { scratchStore } from '../../store/support.ts';
import { list, NOON_MS, online, pageFactsOf } from './support.ts';

const names = ({ rows }: { rows: readonly { device_id: string }[] }): string[] =>
  rows.map(({ device_id }) => device_id);

describe('names', () => {
  test('are passed on unchanged but for their length, ids complete; a hub by its name', async () => {
    using state = scratchStore();
    const hostile = '<script>alert("x")</script>\u202e\u0000';
    const id = `${hostile}${'i'.repeat(3000)}`;
    list(state, [
      online(id, { name: `${hostile}${'n'.repeat(10_000)}`, modelId: 'm'.repeat(10_000) }),
      online('child', { name: hostile, parentDeviceId: id }),
      online('orphan', { parentDeviceId: 'nobody' }),
    ]);
    const page = pageFactsOf(state, { nowMs: () => NOON_MS });
    const long = `${hostile}${'n'.repeat(199 - hostile.length)}…`;
    expect(page.row(id)).toMatchObject({
      device_id: id,
      device_name: long,
      model_id: `${'m'.repeat(199)}…`,
      hub_name: null,
    });
    expect(page.row('child')).toMatchObject({ device_name: hostile, hub_name: long });
    expect(page.row('orphan').hub_name).toBeNull();
    const reported = await page.facts.device(id, 60);
    expect(reported?.device.device_name).toBe(long);
    expect(reported?.device.names).toEqual([{ from: null, name: long }]);
    expect(JSON.stringify(page.devices()).length).toBeLessThan(20_000);
  });
});

describe('a secret', () => {
  test('that a device or an alert bears, or that is part of an event, is not shown', async () => {
    using state = scratchStore();
    list(state, [online('d', { name: 'my canary-4242', modelId: 'canary-4242' })]);
    const known = {
      kind: null,
      sensor: null,
      openedAt: 1n,
      stateDigest: '',
      stateNs: 1n,
      isOpen: true,
      isListed: true,
      facts: null,
    };
    state.store.alerts.keep([{ ...known, alertId: 1, deviceId: 'd', deviceName: 'canary-4242' }], []);
    const { facts } = pageFactsOf(state, { nowMs: () => NOON_MS });
    const listeners: Observe[] = [];
    const forgetters: ((deviceId: string) => void)[] = [];
    const sync = {
      context: { store: state.store } as unknown as Sync['context'],
      listen: (listener: Observe): void => void listeners.push(listener),
      onForgotten: (forget: (deviceId: string) => void): void => void forgetters.push(forget),
      fleet: { request: () => {} } as Sync['fleet'],
      pageFacts: (events: PageFacts['events']): PageFacts => ({ ...facts, events }),
    };
    const { facts: shown } = subscribeShownFacts(sync, createScrub([new Secret('canary-4242')]));
    for (const hear of listeners) hear({ type: 'device-appeared', deviceId: 'd', name: 'canary-4242', more: 0 });
    const devices = shown.devices({ search: '', state: null, sort: 'name', reversed: false, page: 1 });
    const all = [devices, await shown.device('d', 60), shown.alerts(), shown.events()];
    expect(all.map((each) => JSON.stringify(each).includes('canary'))).toEqual([false, false, false, false]);
    expect(all.map((each) => JSON.stringify(each).includes('"d') || JSON.stringify(each).includes(' d'))).toEqual([
      true,
      true,
      true,
      true,
    ]);
    expect(await shown.device('nobody', 60)).toBeNull();
    for (const forget of forgetters) forget('d');
    expect(shown.events()).toEqual([]);
  });
});

describe('alerts', () => {
  const alert = (alertId: number, changes: Partial<KnownAlert> = {}): KnownAlert => ({
    alertId,
    deviceId: 'd',
    deviceName: 'Freezer',
    kind: 'threshold',
    sensor: 'temperature',
    openedAt: BigInt(alertId) * 1_000_000_000n,
    stateDigest: '',
    stateNs: 5_000_000_001n,
    isOpen: false,
    isListed: true,
    facts: null,
    ...changes,
  });

  test('a state without alerts shows none', () => {
    using state = scratchStore();
    expect(pageFactsOf(state, { nowMs: () => NOON_MS }).facts.alerts()).toEqual({ alerts: 0, open: 0, rows: [] });
  });

  test('the open ones first, then the newest, a page of them; all are counted', () => {
    using state = scratchStore();
    const open = new Set([3, 7]);
    state.store.alerts.keep(
      Array.from({ length: 120 }, (_, at) => alert(at + 1, { isOpen: open.has(at + 1) })),
      [],
    );
    const { alerts, open: count, rows } = pageFactsOf(state, { nowMs: () => NOON_MS }).facts.alerts();
    expect([alerts, count, rows.length]).toEqual([120, 2, ALERTS_SHOWN]);
    expect(rows.slice(0, 4).map(({ alert_id }) => alert_id)).toEqual([7, 3, 120, 119]);
    expect(rows[0]).toEqual({
      alert_id: 7,
      device_id: 'd',
      device_name: 'Freezer',
      kind: 'threshold',
      sensor: 'temperature',
      opened_at: '1970-01-01T00:00:07Z',
      open: true,
      rule_name: null,
      condition: null,
      threshold: null,
      value: null,
      fire_count: null,
      status: null,
      observed_at: '1970-01-01T00:00:05.000000001Z',
    });
  });

  test('texts are shortened, unknown values stay unknown', () => {
    using state = scratchStore();
    const nothing = { deviceId: null, deviceName: null, kind: null, sensor: null };
    state.store.alerts.keep(
      [alert(1, { sensor: 's'.repeat(9000), deviceName: 'n'.repeat(9000) }), alert(2, nothing)],
      [],
    );
    const { rows } = pageFactsOf(state, { nowMs: () => NOON_MS }).facts.alerts();
    expect(rows[0]).toMatchObject({ device_id: null, device_name: null, kind: null, sensor: null });
    expect([rows[1]?.sensor?.length, rows[1]?.device_name?.length]).toEqual([200, 200]);
  });
});

describe('ten thousand devices', () => {
  test('cost only what is shown of them, are searched and sorted, and fit a page', () => {
    using state = scratchStore();
    const records = Array.from({ length: 10_000 }, (_, at) =>
      online(`dev_${at}`, {
        name: `Sensor ${at} ${'x'.repeat(400)}`,
        modelId: `model-${at % 7}`,
        parentDeviceId: 'dev_0',
      }),
    );
    list(state, records);
    let nowMs = NOON_MS;
    const page = pageFactsOf(state, { nowMs: () => nowMs });
    const first = page.devices();
    expect(first).toMatchObject({ devices: 10_000, matching: 10_000, pages: 400 });
    expect(names(first).slice(0, 3)).toEqual(['dev_0', 'dev_1', 'dev_2']);
    expect(JSON.stringify(first).length).toBeLessThan(40_000);
    const asked = (name: string): number => page.asked.get(name) ?? 0;
    const dear = ['newestLines', 'daysOf', 'telemetry', 'device'];
    expect(dear.map(asked)).toEqual(dear.map(() => DEVICES_A_PAGE));
    expect(names(page.devices({ page: 400, reversed: true })).at(-1)).toBe('dev_0');
    expect(page.devices({ search: 'MODEL-3', state: 'catching-up', sort: 'lag' }).matching).toBe(1429);
    expect(page.devices({ search: 'sensor 99' }).matching).toBe(111);
    expect(asked('newestLines')).toBe(4 * DEVICES_A_PAGE);
    // All of them were looked at once; a while later that is done anew.
    expect([asked('devices'), asked('coverageOfAll')]).toEqual([1, 1]);
    nowMs += 20_000;
    page.devices();
    expect([asked('devices'), asked('coverageOfAll')]).toEqual([2, 2]);
  });

  test('the listing of the fleet scan is used where there is one, without another scan', () => {
    using state = scratchStore();
    list(state, [online('a'), online('b')]);
    const look = { deviceId: 'a', name: 'A', modelId: null, parentId: null, state: 'live' as const, active: true };
    const listing = [{ ...look, lagSeconds: 1, isCurrent: true, share: 0.5, newestNs: 7n }];
    const page = pageFactsOf(state, { nowMs: () => NOON_MS, fleet: { latest: () => ({ listing }) } });
    const { rows, devices } = page.devices();
    expect(devices).toBe(1);
    expect(rows).toMatchObject([{ device_id: 'a', lag_seconds: 1, covered_share: 0.5, state: 'live' }]);
    expect([page.asked.get('devices'), page.asked.get('coverageOfAll')]).toEqual([undefined, undefined]);
  });

  test('a device that was forgotten since the look is shown without anything', () => {
    using state = scratchStore();
    const listing = [
      {
        deviceId: 'x',
        name: 'X',
        modelId: null,
        parentId: null,
        state: 'live' as const,
        active: true,
        lagSeconds: 1,
        isCurrent: true,
        share: 1,
        newestNs: 7n,
      },
    ];
    const page = pageFactsOf(state, { nowMs: () => NOON_MS, fleet: { latest: () => ({ listing }) } });
    expect(page.devices().rows).toMatchObject([{ bar: ' '.repeat(30), values: [] }]);
  });
});
