/**
 * A device list that does not end is given up, after as many records as the account's count of devices allows; and
 * which new devices of a list are reported.
 */
import { expect, test } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import { ApiFault } from '../../src/core/faults.ts';
import { createFilter } from '../../src/core/filter.ts';
import type { DeviceRecord } from '../../src/core/records.ts';
import type { SyncContext } from '../../src/ingest/context.ts';
import { listDevices, reportAppeared } from '../../src/ingest/devices.ts';

interface Served {
  readonly counted: number | null;
  /** The records of the nth page. */
  readonly page: (nth: number) => readonly Partial<DeviceRecord>[];
  /** After how many pages the list ends. */
  readonly pages?: number;
  /** How many requests with a cursor are rejected for it. */
  readonly rejected?: number;
}

async function listed({ counted, page, pages = Number.POSITIVE_INFINITY, rejected = 0 }: Served) {
  let requests = 0;
  let rejections = 0;
  const context = {
    api: {
      devices: async (cursor: string | null) => {
        requests += 1;
        if (cursor !== null && rejections < rejected) {
          rejections += 1;
          throw new ApiFault('bad-cursor', 'the cursor is rejected', { request: 'GET /devices' });
        }
        const devices = page(requests).map((record) => ({ tags: [], ...record }));
        const nextCursor = requests < pages ? `page-${requests}` : null;
        return await Promise.resolve({ value: { devices, rejected: [], nextCursor }, answeredAtMs: 0, requestId: 1 });
      },
    },
    store: { account: () => ({ devices: counted }), devices: () => [] },
    settings: { filter: createFilter({ include: [], exclude: [], excludeSensors: [], includesLocation: true }) },
    observe: () => undefined,
    clock: { sleep: async () => await Promise.resolve() },
  } as unknown as SyncContext;
  const end = await listDevices(context, new AbortController().signal).then(
    ({ records }) => records.size,
    (error: Error) => error.message,
  );
  return { requests, end };
}

const ids = (nth: number, count: number): Partial<DeviceRecord>[] =>
  Array.from({ length: count }, (_, index) => ({ deviceId: `d-${nth}-${index}` }));

test.each([
  ['new devices', (nth: number) => ids(nth, 100)],
  ['repeated devices', () => ids(0, 100)],
])('a list without an end of %s', async (_what, page) => {
  const { requests, end } = await listed({ counted: 50, page });
  expect(end).toBe('GET /devices: the list is too long: 1600 records, where the account counts 50');
  expect(requests).toBe(16);
});

test.each<[number, number, number | string]>([
  [1, 4, 2],
  [2, 6, 2],
  [3, 6, 'the cursor is rejected'],
])(
  'a list whose cursor is rejected %i times is read again from its beginning, twice at most',
  async (rejected, requests, end) => {
    const page = (nth: number): Partial<DeviceRecord>[] => ids(nth, 1);
    expect(await listed({ counted: 3, page, pages: 2 * rejected + 2, rejected })).toEqual({ requests, end });
  },
);

test('a list without an end of empty pages', async () => {
  const { requests, end } = await listed({ counted: 3, page: () => [] });
  expect([requests, end]).toEqual([1031, expect.stringContaining('the list is too long')]);
});

test('records of endless length are not kept', async () => {
  const page = (nth: number): Partial<DeviceRecord>[] => [{ deviceId: `d-${nth}`, name: 'x'.repeat(3_000_000) }];
  const { requests, end } = await listed({ counted: 5000, page });
  expect([requests, end]).toEqual([11, 'GET /devices: the records are too large']);
});

test('texts of any member count, and records without any', async () => {
  const large = (nth: number): Partial<DeviceRecord>[] => [{ deviceId: `d-${nth}`, presence: 'x'.repeat(3_000_000) }];
  expect(await listed({ counted: 5000, page: large })).toEqual({
    requests: 11,
    end: 'GET /devices: the records are too large',
  });
  const small = (nth: number): Partial<DeviceRecord>[] => ids(nth, 10_000);
  expect((await listed({ counted: 1_000_000_000, page: small })).requests).toBe(11);
});

test('a list of more devices than the account counts, or with no count, is stored', async () => {
  const page = (nth: number): Partial<DeviceRecord>[] => ids(nth, 200);
  expect(await listed({ counted: 100, page, pages: 10 })).toEqual({ requests: 10, end: 2000 });
  expect(await listed({ counted: null, page, pages: 60 })).toEqual({ requests: 60, end: 12_000 });
});

test.each([
  [0, []],
  [1, [0]],
  [10, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]],
  [32, [0, 0, 0, 0, 0, 0, 0, 0, 0, 22]],
])('of %i new devices at most ten are reported by name, and how many others there are', (count, more) => {
  const events: AppEvent[] = [];
  const appeared = Array.from({ length: count }, (_, index) => ({
    record: { deviceId: `d${index}` } as DeviceRecord,
    name: `Device ${index}`,
  }));
  reportAppeared({ observe: (event) => void events.push(event) }, appeared);
  expect(events.map((event) => (event.type === 'device-appeared' ? event.more : null))).toEqual(more);
});
