/**
 * The list of devices, searched, narrowed, put in order and cut into pages.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DEVICE_SORTS, DEVICES_A_PAGE, type DevicesQuery } from '../../src/core/page-facts.ts';
import type { DeviceState } from '../../src/core/status.ts';
import { type DeviceSummary, type ListEntry, listByName, pickDevices } from '../../src/report/device-list.ts';

const ALL: DevicesQuery = { search: '', state: null, sort: 'name', reversed: false, page: 1 };
const STATES: readonly DeviceState[] = ['live', 'catching-up', 'silent', 'unreachable', 'excluded'];

function look(deviceId: string, changes: Partial<DeviceSummary> = {}): DeviceSummary {
  return {
    deviceId,
    name: deviceId,
    modelId: null,
    parentId: null,
    state: 'live',
    active: true,
    lagSeconds: 0,
    isCurrent: true,
    share: 1,
    newestNs: 1n,
    ...changes,
  };
}

const ids = (rows: readonly ListEntry[]): string[] => rows.map(({ deviceId }) => deviceId);

/** The ids of the first page. */
function found(looks: readonly DeviceSummary[], changes: Partial<DevicesQuery>): string[] {
  return ids(pickDevices(listByName(looks), { ...ALL, ...changes }).rows);
}

/** All pages, one after the other. */
function paged(looks: readonly DeviceSummary[], query: Partial<DevicesQuery>): string[] {
  const byName = listByName(looks);
  const { pages } = pickDevices(byName, { ...ALL, ...query });
  return Array.from({ length: pages }, (_, at) => pickDevices(byName, { ...ALL, ...query, page: at + 1 })).flatMap(
    ({ rows }) => ids(rows),
  );
}

describe('searching', () => {
  const looks = [
    look('hub-1', { name: 'Gateway NORTH' }),
    look('d-2', { name: 'Freezer', modelId: 'TX-9', parentId: 'hub-1' }),
    look('d-3', { name: 'Straße Café', modelId: 'rx' }),
    look('d-4', { name: '<script>alert(1)</script>\u202e.*' }),
  ];

  test.each([
    ['a name', 'freez', ['d-2']],
    ['an id', 'D-3', ['d-3']],
    ['a model', 'tx-', ['d-2']],
    ['the name of a hub finds it and its sensors', 'north', ['d-2', 'hub-1']],
    ['spaces around do not count', '  rx ', ['d-3']],
    ['accents in either writing', 'CAFE\u0301', ['d-3']],
    ['nothing in it stands for something else', '.*', ['d-4']],
    ['hostile text is text', '<SCRIPT>', ['d-4']],
    ['a text that no device has', 'zzz', []],
  ])('%s', (_, search, expected) => {
    expect(found(looks, { search })).toEqual(expected);
  });

  test('counts states of all matches of the search, for any selected state', () => {
    const many = [look('a-1', { state: 'silent' }), look('a-2'), look('b-3', { state: 'excluded' })];
    const picked = pickDevices(listByName(many), { ...ALL, search: 'a-', state: 'silent' });
    expect(ids(picked.rows)).toEqual(['a-1']);
    expect(picked.matching).toBe(1);
    expect(picked.states).toMatchObject({ live: 1, 'catching-up': 0, silent: 1, unreachable: 0, excluded: 0 });
  });

  test('a silent device that was retired is counted and listed apart', () => {
    const many = [look('a', { state: 'silent' }), look('b', { state: 'silent', active: false }), look('c')];
    const idsOf = (state: DevicesQuery['state']) => found(many, { state });
    expect(pickDevices(listByName(many), ALL).states).toMatchObject({ silent: 1, 'out-of-service': 1, live: 1 });
    expect([idsOf('silent'), idsOf('out-of-service')]).toEqual([['a'], ['b']]);
    expect(found(many, { sort: 'state' }), 'nothing is to be done about it').toEqual(['a', 'c', 'b']);
  });
});

describe('order', () => {
  test('names as people look for them: in any case, numbers by how large they are; ids where names are equal', () => {
    const names = ['Sensor 10', 'sensor 2', 'Sensor 9b', 'SENSOR 9a', 'alpha', '10', '9'];
    const looks = [
      ...names.map((name, at) => look(`d${at}`, { name })),
      look('z', { name: '9' }),
      look('y', { name: '9' }),
    ];
    const sorted = pickDevices(listByName(looks), ALL).rows.map(({ name, deviceId }) => `${name} ${deviceId}`);
    expect(sorted).toEqual([
      '9 d6',
      '9 y',
      '9 z',
      '10 d5',
      'alpha d4',
      'sensor 2 d1',
      'SENSOR 9a d3',
      'Sensor 9b d2',
      'Sensor 10 d0',
    ]);
  });

  const states = STATES.map((state, at) => look(state, { state, name: `n${at}` }));

  test.each([
    ['state', states, ['unreachable', 'catching-up', 'silent', 'live', 'excluded']],
    [
      'lag',
      [
        look('a', { lagSeconds: 3 }),
        look('b', { lagSeconds: 700 }),
        look('c', { lagSeconds: null }),
        look('d', { lagSeconds: 9, state: 'excluded' }),
      ],
      ['c', 'b', 'a', 'd'],
    ],
    ['covered', [look('a', { share: 1 }), look('b', { share: 0 }), look('c', { share: 0.5 })], ['b', 'c', 'a']],
    [
      'reading',
      [look('a', { newestNs: 9n }), look('b', { newestNs: null }), look('c', { newestNs: 3n })],
      ['b', 'c', 'a'],
    ],
  ] as const)('by %s the worst comes first, and who is left out last', (sort, looks, expected) => {
    expect(found(looks, { sort })).toEqual(expected);
    const polled = looks.filter(({ state }) => state !== 'excluded').length;
    const turned = [...expected.slice(0, polled).toReversed(), ...expected.slice(polled)];
    expect(found(looks, { sort, reversed: true })).toEqual(turned);
  });

  const anyLook = fc.record({
    deviceId: fc.uuid(),
    name: fc.oneof(fc.constantFrom('a', 'A', 'a 1', 'a 01', ''), fc.string({ unit: 'binary' })),
    state: fc.constantFrom(...STATES),
    lagSeconds: fc.constantFrom(null, 0, 1, 2),
    share: fc.constantFrom(0, 0.5, 1),
    newestNs: fc.constantFrom(null, 1n, 2n),
  });

  test('equal keys keep the order of names, every page its place, and each match appears exactly once', () => {
    const looks = fc.uniqueArray(anyLook, { maxLength: 120, selector: ({ deviceId }) => deviceId });
    fc.assert(
      fc.property(looks, fc.constantFrom(...DEVICE_SORTS), fc.boolean(), fc.nat(), (some, sort, reversed, turn) => {
        const all = some.map((each) => look(each.deviceId, each));
        const shown = paged(all, { sort, reversed });
        expect(shown.toSorted()).toEqual(all.map(({ deviceId }) => deviceId).toSorted());
        const turned = [...all.slice(turn % (all.length + 1)), ...all.slice(0, turn % (all.length + 1))];
        expect(paged(turned, { sort, reversed })).toEqual(shown);
        if (sort === 'name') return;
        const rank = (id: string): unknown => {
          const { state, lagSeconds, share, newestNs } = all.find(({ deviceId }) => deviceId === id) ?? look('');
          return [state === 'excluded', { state, lag: lagSeconds, covered: share, reading: newestNs }[sort]].join();
        };
        const byName = paged(all, {});
        for (const value of new Set(shown.map(rank))) {
          expect(shown.filter((id) => rank(id) === value)).toEqual(byName.filter((id) => rank(id) === value));
        }
      }),
    );
  });
});

describe('pages', () => {
  const looks = Array.from({ length: 2 * DEVICES_A_PAGE + 1 }, (_, at) => look(`d${at}`));

  test.each([
    [1, 1, DEVICES_A_PAGE],
    [3, 3, 1],
    [4, 3, 1],
    [Number.POSITIVE_INFINITY, 1, DEVICES_A_PAGE],
    [0, 1, DEVICES_A_PAGE],
    [-5, 1, DEVICES_A_PAGE],
    [2.7, 2, DEVICES_A_PAGE],
    [Number.NaN, 1, DEVICES_A_PAGE],
  ])('page %d becomes page %d', (asked, page, rows) => {
    const picked = pickDevices(listByName(looks), { ...ALL, page: asked });
    expect(picked).toMatchObject({ page, pages: 3, matching: looks.length });
    expect(picked.rows).toHaveLength(rows);
  });

  test('of nothing there is one page, which is empty', () => {
    const nothing = { rows: [], matching: 0, page: 1, pages: 1 };
    expect(pickDevices(listByName([]), { ...ALL, page: 9 })).toMatchObject(nothing);
  });

  test('texts of any length are shortened, ids are not', () => {
    const long = `${'x'.repeat(199)}${'😀'.repeat(5000)}`;
    const id = 'i'.repeat(5000);
    const [row] = pickDevices(listByName([look(id, { name: long, modelId: long, parentId: id })]), ALL).rows;
    expect(row?.deviceId).toBe(id);
    for (const text of [row?.name, row?.modelId, row?.hubName]) expect(text).toBe(`${'x'.repeat(199)}…`);
  });
});
