/**
 * The filter's rules: globs, devices, sensors, positions, and alerts of devices that are left out.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createFilter, type FilterSpec, filterReading, filterRecord, matchAny } from '../../src/core/filter.ts';
import { flattenReading, readingDigest } from '../../src/core/lines/points.ts';
import type { AlertRecord, DeviceRecord, JsonValue } from '../../src/core/records.ts';
import { observeIncluded, observeLeftOut } from '../../src/ingest/alerts.ts';
import { KEEP_ALL } from '../support/defaults.ts';
import { patient } from '../support/patience.ts';
import { createMemory } from './support/memory.ts';
import { at, reading } from './support/readings.ts';

const RECORD: DeviceRecord = {
  deviceId: 'd-1',
  name: 'Cold store',
  modelId: 'hub-2',
  firmwareVersion: '1.0.0',
  isAddon: false,
  parentDeviceId: null,
  lifecycleStatus: 'active',
  online: true,
  presence: 'reporting',
  lastSeenAt: null,
  latitude: 52.5,
  longitude: 13.4,
  locationUpdatedAt: at(0),
  tags: ['food', 'ground floor'],
};

const filterOf = (changes: Partial<FilterSpec>) => createFilter({ ...KEEP_ALL.spec, ...changes });

describe('a pattern', () => {
  test.each<[string, string, boolean]>([
    ['d-1', 'd-1', true],
    ['d-1', 'd-10', false],
    ['d-1', 'D-1', false],
    ['', '', true],
    ['*', '', true],
    ['?', '', false],
    ['?', 'x', true],
    ['?', '🌡', true],
    ['?', 'xy', false],
    ['d-*', 'd-', true],
    ['*-1', 'd-1', true],
    ['*a*b', 'xaxxbxb', true],
    ['*a*b', 'xaxxbxbx', false],
    ['a*?c', 'ac', false],
    ['a*?c', 'abc', true],
    ['a**b', 'ab', true],
    ['caf\u00e9*', 'cafe\u0301 west', true],
    ['.+^$()[]{}|\\', '.+^$()[]{}|\\', true],
    ['a.c*', 'abc', false],
    ['[ab]*', 'a', false],
  ])('%j on %j: %s', (pattern, text, fits) => {
    expect(matchAny([pattern])(text)).toBe(fits);
  });

  test('matches the same texts as a slow and plain implementation of its rules', () => {
    const plain = (glob: string, text: string): boolean => {
      if (glob === '') return text === '';
      const [head, rest] = [glob[0], glob.slice(1)];
      if (head === '*') return plain(rest, text) || (text !== '' && plain(glob, text.slice(1)));
      return text !== '' && (head === '?' || head === text[0]) && plain(rest, text.slice(1));
    };
    const word = (letters: string, maxLength: number) =>
      fc.array(fc.constantFrom(...letters), { maxLength }).map((all) => all.join(''));
    fc.assert(
      fc.property(word('ab*?', 8), word('ab', 10), (glob, text) => matchAny([glob])(text) === plain(glob, text)),
      { numRuns: 5000 },
    );
  });

  test('made to be slow is not', () => {
    const beganMs = performance.now();
    expect(matchAny([`${'*a'.repeat(100)}*b`])('a'.repeat(20_000))).toBe(false);
    expect(performance.now() - beganMs).toBeLessThan(patient(2000));
  });

  test('no pattern matches nothing, several match the union', () => {
    expect(matchAny([])('')).toBe(false);
    expect(['a', 'b', 'c1', 'd'].map(matchAny(['a', 'b', 'c*']))).toEqual([true, true, true, false]);
  });
});

describe('a device', () => {
  test.each<[Partial<FilterSpec>, boolean]>([
    [{}, false],
    [{ include: ['d-1'] }, false],
    [{ include: ['Cold*'] }, false],
    [{ include: ['hub-?'] }, false],
    [{ include: ['x', 'ground floor'] }, false],
    [{ include: ['d-2'] }, true],
    [{ include: ['1.0.0', 'active'] }, true],
    [{ exclude: ['food'] }, true],
    [{ exclude: ['d-2'] }, false],
    [{ include: ['d-1'], exclude: ['food'] }, true],
    [{ include: ['*'], exclude: ['*'] }, true],
  ])('under %j is excluded: %s', (spec, excluded) => {
    expect(filterOf(spec).excludes(RECORD)).toBe(excluded);
  });

  test('without name and model matches by its other properties', () => {
    const bare = { ...RECORD, name: null, modelId: null, tags: [] };
    expect(filterOf({ exclude: ['*null*'] }).excludes(bare)).toBe(false);
    expect(filterOf({ include: ['d-*'] }).excludes(bare)).toBe(false);
  });

  test('keeps its position, or has none', () => {
    expect(filterRecord(KEEP_ALL, RECORD)).toBe(RECORD);
    const { latitude, longitude, locationUpdatedAt, ...rest } = RECORD;
    expect(filterRecord(filterOf({ includesLocation: false }), RECORD)).toEqual({
      ...rest,
      latitude: null,
      longitude: null,
      locationUpdatedAt: null,
    });
    expect([latitude, longitude, locationUpdatedAt]).toEqual([52.5, 13.4, at(0)]);
  });
});

describe('a reading', () => {
  const kept = (values: Record<string, JsonValue>, ...excludeSensors: string[]): [string, unknown][] =>
    flattenReading(filterReading(filterOf({ excludeSensors }), reading(0, values))).values.map(({ sensor, value }) => [
      sensor,
      value,
    ]);

  test('loses the sensors that match, under their dotted names, and nothing else', () => {
    const values = { t: 1, rssi: -70, env: { t: 2, list: [3, { x: 4 }, 5] }, on: true };
    expect(kept(values, 'rssi', 'env.list.0', 'env.list.1.*', 'on')).toEqual([
      ['t', 1],
      ['env.t', 2],
      ['env.list.2', 5],
    ]);
    expect(kept(values, 'env')).toHaveLength(7);
    expect(kept(values, 'env.*')).toEqual([
      ['t', 1],
      ['rssi', -70],
      ['on', true],
    ]);
    expect(kept(values, '*')).toEqual([]);
  });

  test('is not quarantined for values that were left out', () => {
    const deep = JSON.parse(`${'{"a":'.repeat(9)}1${'}'.repeat(9)}`);
    const odd = reading(0, { bad: Number.POSITIVE_INFINITY, deep, t: 1 });
    expect(flattenReading(odd).dropped.size).toBe(2);
    const { values, dropped } = flattenReading(filterReading(filterOf({ excludeSensors: ['bad', 'deep.*'] }), odd));
    expect(dropped.size).toBe(0);
    expect(values).toEqual([{ sensor: 't', field: 'value', value: 1 }]);
    const many = reading(0, { t: 1, ...Object.fromEntries(Array.from({ length: 3000 }, (_, n) => [`n${n}`, n])) });
    expect(flattenReading(filterReading(filterOf({ excludeSensors: ['n*'] }), many)).dropped.size).toBe(0);
  });

  test('with a sensor of a dangerous name stays as it is', () => {
    const values = JSON.parse('{"a": {"__proto__": {"x": 1}, "constructor": 2}}');
    expect(kept(values, 'none')).toEqual([
      ['a.__proto__.x', 1],
      ['a.constructor', 2],
    ]);
  });

  test('remembers any number of sensor names', () => {
    const filter = filterOf({ excludeSensors: ['x*'] });
    for (let n = 0; n < 25_000; n += 1) filter.includesSensor(`a${n}`);
    expect([filter.includesSensor('x1'), filter.includesSensor('a1')]).toEqual([false, true]);
  });

  test('is covered, and recognized at the edge, as a complete reading', () => {
    const memory = createMemory();
    const whole = reading(10, { t: 1, rssi: -70 });
    const edge = { at: whole.recordedAt, digest: readingDigest(whole) };
    const covers = { from: at(0), to: at(20), first: edge, last: edge };
    const all = memory.compose({ readings: [whole], covers });
    const some = memory.compose({ readings: [whole], covers, filter: filterOf({ excludeSensors: ['rssi'] }) });
    const none = memory.compose({ readings: [whole], covers, filter: filterOf({ excludeSensors: ['*'] }) });
    expect([all, some, none].map(({ lines }) => lines.length)).toEqual([2, 1, 0]);
    for (const pageCommit of [some, none]) {
      expect(pageCommit.covered).toEqual(all.covered);
      expect(pageCommit.rejected).toEqual([]);
    }
  });
});

describe('a sensor that is written again', () => {
  test('adds to readings that were seen, which are neither new nor late', () => {
    const memory = createMemory();
    const span = { from: at(0), to: at(3600), first: null, last: null };
    const readings = [reading(20, { t: 3, rssi: -71 }), reading(10, { rssi: -70 })];
    const out = memory.commit({ readings, covers: span, filter: filterOf({ excludeSensors: ['rssi'] }) });
    expect([out.lines.length, out.newReadings]).toEqual([1, 1]);
    const again = { ...filterOf({}), wasLeftOut: (name: string) => name === 'rssi' };
    const back = memory.compose({ readings, filter: again });
    expect(back).toMatchObject({ newReadings: 0, covered: out.covered });
    expect(back.lines).toHaveLength(2);
    expect(back.late).toBeUndefined();
    expect(back.daySums.map(({ readings: count, points }) => [count, points])).toEqual([[0, 2]]);
    const first = memory.compose({ readings: [reading(4000, { rssi: -70 })], filter: again });
    expect(first.newReadings, 'where nothing is held yet it is a reading like any other').toBe(1);
    const news = memory.compose({ readings: [reading(30, { rssi: -70, x: 1 })], filter: again });
    expect(news.newReadings).toBe(1);
    expect(news.late, 'a value that was never left out comes late').toBeDefined();
  });
});

describe('an alert of an excluded device', () => {
  const ALERT: AlertRecord = {
    alertId: 7,
    deviceId: 'd-1',
    ruleName: 'Too warm',
    kind: 'threshold',
    sensor: 't',
    condition: 't > 8',
    threshold: 8,
    value: 9,
    fireCount: 1,
    status: 'open',
    openedAt: at(0),
  };
  const RESOLVED = { ...ALERT, status: 'resolved' };
  const seen = (seconds: number) => ({ deviceName: 'Cold store', atNs: at(seconds), workspaceTag: 'w' });

  test('is known without a point, and becomes points when it is included, as at first sight', () => {
    const out = observeLeftOut(ALERT, { known: null, ...seen(10) });
    expect(out).toMatchObject({ changed: true, lines: [], known: { isOpen: true } });
    const closed = observeLeftOut(RESOLVED, { known: out.known, ...seen(20) });
    expect(closed).toMatchObject({ changed: true, lines: [], known: { isOpen: false } });
    expect(observeLeftOut(RESOLVED, { known: closed.known, ...seen(30) }).changed).toBe(false);
    const known = { ...closed.known, isListed: true };
    const kept = observeIncluded(RESOLVED, { known, ...seen(40) });
    expect(kept.known).toMatchObject({ isListed: true, isOpen: false });
    expect(kept.lines).toEqual(observeIncluded(RESOLVED, { known: null, ...seen(40) }).lines);
    expect(kept.lines).toHaveLength(2);
    expect(observeIncluded(RESOLVED, { known: kept.known, ...seen(50) })).toMatchObject({ changed: false, lines: [] });
  });

  test('that was written before continues with the state that it has when it is included', () => {
    const before = observeIncluded(ALERT, { known: null, ...seen(10) });
    const out = observeLeftOut(RESOLVED, { known: before.known, ...seen(20) });
    const same = observeLeftOut(ALERT, { known: out.known, ...seen(30) });
    expect(observeIncluded(ALERT, { known: same.known, ...seen(40) }).lines).toEqual([]);
    const [line, ...others] = observeIncluded(RESOLVED, { known: out.known, ...seen(40) }).lines;
    expect(line).toMatch(/^alert_state,.*status="resolved"/);
    expect(others).toEqual([]);
  });
});
