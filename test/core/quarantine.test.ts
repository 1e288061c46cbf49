/** The quarantine in terms of people: what a filter selects, what belongs together, what a drop loses. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  aboutItem,
  createGroups,
  createMatcher,
  isNarrow,
  missingAfterDrop,
  type QuarantineFilter,
} from '../../src/core/quarantine.ts';
import { filterArgs, filterOf, isFilterArgs, isForgetArgs } from '../../src/core/state/job-args.ts';
import type { QuarantinedItem } from '../../src/core/state/quarantine.ts';

const ALL: QuarantineFilter = { destination: null, devices: [], reason: null, from: null, to: null };

const item = (changes: Partial<QuarantinedItem> = {}): QuarantinedItem => ({
  id: 1,
  destinationId: 7,
  source: 'destination',
  content: 'telemetry,device_id=hub-1,sensor=s value=1 1000',
  reason: 'field type conflict: input field "value" is type string',
  atMs: 5,
  ...changes,
});

const record = (changes: Partial<QuarantinedItem> = {}): QuarantinedItem =>
  item({
    destinationId: null,
    source: 'hub-1',
    content: '{"recorded_at":"never"}',
    reason: 'recorded_at is not a time',
    ...changes,
  });

describe('a filter', () => {
  test.each<[string, Partial<QuarantineFilter>, QuarantinedItem, boolean]>([
    ['all', {}, item(), true],
    ['the destination', { destination: 'influx' }, item(), true],
    ['another destination', { destination: 'influx' }, item({ destinationId: 8 }), false],
    ['a record, by a destination', { destination: 'influx' }, record(), false],
    ['a part of the words', { reason: 'FIELD TYPE' }, item(), true],
    ['other words', { reason: 'too old' }, item(), false],
    ['the device', { devices: ['x', 'hub-1'] }, item(), true],
    ['another device', { devices: ['hub-10', 'hub'] }, item(), false],
    [
      'a device whose id cannot stand in a line',
      { devices: ['a\\b'] },
      item({ content: 'x,device_id=a/b~00000000 v=1 1' }),
      false,
    ],
    ['a device with a space', { devices: ['a b'] }, item({ content: 'telemetry,device_id=a\\ b value=1 1' }), true],
    ['a line of no device', { devices: ['hub-1'] }, item({ content: 'workspace,workspace_id=w devices=1 1' }), false],
    ['a record of the device', { devices: ['hub-1'] }, record(), true],
    [
      'an alert that names the device',
      { devices: ['hub-1'] },
      record({ source: 'alerts', content: '{"device_id":"hub-1"}' }),
      true,
    ],
    [
      'an alert of another one',
      { devices: ['hub-1'] },
      record({ source: 'alerts', content: '{"device_id":"hub-10"}' }),
      false,
    ],
    ['from its time', { from: 1000n }, item(), true],
    ['from later', { from: 1001n }, item(), false],
    ['to its time', { to: 1000n }, item(), false],
    ['to later', { to: 1001n }, item(), true],
    ['a record by when it was set aside', { from: 5_000_000n, to: 5_000_001n }, record(), true],
    ['content that is no line, by when it was set aside', { from: 5_000_000n }, item({ content: 'rubbish' }), true],
    [
      'all together, each fitting',
      { destination: 'influx', devices: ['hub-1'], reason: 'type', from: 0n, to: 2000n },
      item(),
      true,
    ],
    [
      'all together, one of them outside its bounds',
      { destination: 'influx', devices: ['hub-1'], reason: 'type', from: 0n, to: 20n },
      item(),
      false,
    ],
  ])('%s', (_what, filter, one, fits) => {
    expect(createMatcher({ ...ALL, ...filter }, new Set([7]))(one)).toBe(fits);
  });

  test('is narrow by any of its members', () => {
    expect(isNarrow(ALL)).toBe(false);
    const members = [{ destination: 'x' }, { devices: ['x'] }, { reason: 'x' }, { from: 0n }, { to: 0n }];
    for (const one of members) expect(isNarrow({ ...ALL, ...one }), Object.keys(one)[0]).toBe(true);
  });

  test('goes through the state and comes back', () => {
    const filter = { destination: 'x', devices: ['a', 'b'], reason: 'y', from: -5n, to: 1_700_000_000_123_456_789n };
    const reported = JSON.parse(JSON.stringify(filterArgs(filter)));
    expect(isFilterArgs(reported)).toBe(true);
    expect(filterOf(reported)).toEqual(filter);
    const odd = [
      null,
      [],
      {},
      { ...reported, more: 1 },
      { ...reported, from: 5 },
      { ...reported, to: '1e5' },
      { ...reported, devices: [1] },
    ];
    expect(odd.map(isFilterArgs)).toEqual(odd.map(() => false));
    expect([{ device: 'x' }, { device: 1 }, {}, { device: 'x', y: 1 }, null].map(isForgetArgs)).toEqual([
      ...[true, false, false, false, false],
    ]);
  });
});

describe('groups', () => {
  test('group messages that differ only in figures and quotes', () => {
    const groups = createGroups();
    const long = (n: number): string =>
      `unable to parse 'telemetry,device_id=hub-${n},sensor=s value=1 ${n}': bad timestamp`;
    for (let n = 0; n < 1000; n += 1) {
      const content = `telemetry,device_id=d value=1 ${n}`;
      groups.add(item({ reason: `${long(n)} dropped=${n}`, content }));
      groups.add(item({ reason: `partial write: too old at 2026-01-02T03:04:0${n % 10}Z`, content }));
    }
    groups.add(item({ destinationId: 8, reason: long(1) }));
    const all = groups.all();
    expect(all.map(({ count, destinationId }) => [count, destinationId])).toEqual([
      [1000, 7],
      [1000, 7],
      [1, 8],
    ]);
    expect(all[0]).toMatchObject({ from: 0n, to: 999n, parts: ['bad timestamp dropped=', 'unable to parse'] });
    expect(all[0]?.samples).toHaveLength(3);
  });

  test('are not without end, and the words are those of a server that means ill', () => {
    const groups = createGroups();
    const letters = (n: number): string =>
      String.fromCharCode(97 + (n % 26), 97 + (Math.floor(n / 26) % 26), 97 + Math.floor(n / 676));
    for (let n = 0; n < 5000; n += 1) groups.add(item({ reason: `reason ${letters(n)} of many` }));
    expect(groups.all().length).toBeLessThanOrEqual(201);
    expect(groups.all().reduce((sum, { count }) => sum + count, 0)).toBe(5000);
    expect(groups.all()[0]).toMatchObject({ reason: 'many other reasons', parts: [] });
  });

  test('of any words have a part of their own, and no shell interprets it', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (reason) => {
        const groups = createGroups();
        groups.add(item({ reason }));
        for (const part of groups.all()[0]?.parts ?? []) {
          expect(reason).toContain(part);
          expect(part).toMatch(/^[A-Za-z][A-Za-z _.,:=/()-]{5,39}$/);
        }
      }),
    );
    const groups = createGroups();
    groups.add(item({ reason: 'x"; rm -rf / #`reboot`$(halt)!! conflict of types' }));
    expect(groups.all()[0]?.parts).toEqual(['conflict of types', 'rm -rf /', 'reboot']);
  });
});

test('a dropped item is one point at its exact instant', () => {
  const tagged = missingAfterDrop('telemetry,device_id=a/b~0011aabb,sensor=s value=1 77', (tag) =>
    tag === 'a/b~0011aabb' ? 'a\\b' : '?',
  );
  expect(tagged).toEqual({ deviceId: 'a\\b', fromNs: 77n, toNs: 78n, reason: 'dropped', points: 1 });
  expect(missingAfterDrop('workspace,workspace_id=w devices=1 5', () => '?')).toMatchObject({
    deviceId: '',
    fromNs: 5n,
  });
  expect(missingAfterDrop('rubbish', () => '?')).toBeNull();
  expect(aboutItem(record({ source: 'devices' })).deviceTag).toBeNull();
});
