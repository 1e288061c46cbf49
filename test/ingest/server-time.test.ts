/** Which times of the state the first `Date` of a start is compared with. */
import { expect, test } from 'vitest';
import { msToNs } from '../../src/core/time.ts';
import type { SyncContext } from '../../src/ingest/context.ts';
import { learnTime, storedTimes } from '../../src/ingest/server-time.ts';
import { device, scratchStore } from '../store/support.ts';

const { signal } = new AbortController();

test('are the last Date, the time at which the account was read, and the newest archived reading', () => {
  const facts = new Map([
    ['server_time_ms', '3000'],
    ['workspace_point_ms', '2000'],
  ]);
  const newest = new Map([
    ['a', msToNs(500)],
    ['b', msToNs(1000)],
  ]);
  const devices = ['a', 'b', 'never'].map((deviceId) => ({ record: device(deviceId) }));
  const store = {
    fact: (key: string) => facts.get(key) ?? null,
    devices: () => devices,
    newestNs: (deviceId: string) => newest.get(deviceId) ?? null,
  } as unknown as Parameters<typeof storedTimes>[0];
  expect(storedTimes(store)).toEqual([3000, 2000, 1000]);
  facts.clear();
  expect(storedTimes(store)).toEqual([1000]);
  newest.clear();
  expect(storedTimes(store)).toEqual([]);
});

test('the last Date is kept at a start once it counts', async () => {
  using state = scratchStore();
  const learn = async (isKnown: boolean): Promise<void> => {
    const serverClock = {
      isKnown: () => isKnown,
      unconfirmed: () => null,
      nowMs: () => 7000,
      highestPassedMs: () => 1,
    };
    const context = { store: state.store, serverClock } as unknown as SyncContext;
    await learnTime(context, { peek: async () => false }, signal);
  };
  await learn(false);
  expect(storedTimes(state.store)).toEqual([]);
  await learn(true);
  expect(storedTimes(state.store)).toEqual([7000]);
});
