/** The telemetry window of the API document, rule by rule, on both ways to the simulator. */
import { expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import type { ReadingSpec } from '../../src/sim/spec.ts';
import {
  createManualClock,
  ORIGIN_MS,
  onBothWays,
  smallSimulator,
  smallWorld,
  visibleReadings,
  walk,
} from './support.ts';

const at = (ms: number): string => encodeURIComponent(new Date(ms).toISOString());
const times = (json: { data: { recorded_at: string }[] }): string[] => json.data.map((reading) => reading.recorded_at);

/** A device with readings at these times, each with its number as value. */
function listed(...recordedAt: readonly string[]): ReturnType<typeof smallWorld> {
  const readings = recordedAt.map((text, index): ReadingSpec => {
    const [whole = '', fraction = ''] = text.replace('Z', '').split('.');
    const ns = BigInt(Date.parse(`${whole}Z`)) * 1_000_000n + BigInt(fraction.padEnd(9, '0'));
    return { recordedAtNs: ns, values: [['n', String(index)]] };
  });
  return smallWorld({ devices: [{ deviceId: 'd', readings }], precision: 'us' });
}

test('Telemetry window: after and before bound the readings', async () => {
  await onBothWays(smallSimulator, async (ask) => {
    const [from, to] = [ORIGIN_MS - 3 * HOUR_MS, ORIGIN_MS - HOUR_MS];
    const { records } = await walk(ask, `/devices/a1/telemetry?limit=7&after=${at(from)}&before=${at(to)}`);
    const found = (records as { recorded_at: string }[]).map((reading) => Date.parse(reading.recorded_at));
    expect(found).toHaveLength(24);
    expect(found.every((ms) => ms >= from && ms < to)).toBe(true);
  });
});

test('Telemetry window: each inclusive or exclusive, exact or in whole seconds', async () => {
  const world = listed(
    '2026-01-15T10:00:00.000000Z',
    '2026-01-15T10:00:00.400000Z',
    '2026-01-15T10:00:01.000000Z',
    '2026-01-15T10:00:01.400000Z',
    '2026-01-15T10:00:01.400001Z',
  );
  const query = `after=2026-01-15T10:00:00.4Z&before=2026-01-15T10:00:01.4Z`;
  const cases = [
    ['inclusive', 'exclusive', 'exact', [2, 1]],
    ['exclusive', 'exclusive', 'exact', [2]],
    ['inclusive', 'inclusive', 'exact', [3, 2, 1]],
    ['exclusive', 'inclusive', 'exact', [3, 2]],
    ['inclusive', 'exclusive', 'seconds', [1, 0]],
    ['exclusive', 'exclusive', 'seconds', []],
    ['inclusive', 'inclusive', 'seconds', [4, 3, 2, 1, 0]],
    ['exclusive', 'inclusive', 'seconds', [4, 3, 2]],
  ] as const;
  await onBothWays(
    () => smallSimulator({ world }),
    async (ask, { settings }) => {
      for (const [after, before, resolution, expected] of cases) {
        Object.assign(settings.bounds, { after, before, resolution });
        const { json } = await ask(`/devices/d/telemetry?${query}`);
        const found = json.data.map((reading: { values: { n: number } }) => reading.values.n);
        expect([after, before, resolution, found]).toEqual([after, before, resolution, expected]);
      }
    },
  );
});

test('Telemetry window: as wide as the plan allows, and a nanosecond more is range_too_large', async () => {
  await onBothWays(smallSimulator, async (ask, { settings }) => {
    settings.plan.historyMaxDays = 7;
    const span = (after: string, before: string) => ask(`/devices/a1/telemetry?after=${after}&before=${before}`);
    expect((await span('2026-01-01T00:00:00Z', '2026-01-08T00:00:00Z')).status).toBe(200);
    const { status, json } = await span('2026-01-01T00:00:00Z', '2026-01-08T00:00:00.000000001Z');
    expect([status, json.error.code, json.error.max_days]).toEqual([400, 'range_too_large', 7]);
    expect((await ask(`/devices/a1/telemetry?after=${at(ORIGIN_MS - 7 * DAY_MS)}`)).status).toBe(200);
    expect((await ask(`/devices/a1/telemetry?after=${at(ORIGIN_MS - 7 * DAY_MS - 1)}`)).status).toBe(400);
    settings.codes.withMaxDays = ['invalid_request'];
    expect((await span('2026-01-01T00:00:00Z', '2026-01-09T00:00:00Z')).json.error).not.toHaveProperty('max_days');
  });
});

test('Telemetry window: null means no limit', async () => {
  await onBothWays(smallSimulator, async (ask, { settings, world }) => {
    settings.plan.historyMaxDays = null;
    settings.plan.requestsPerMinute = 1000;
    expect((await ask('/devices/a1/telemetry?after=1970-01-01T00:00:00Z')).status).toBe(200);
    const { records } = await walk(ask, '/devices/a1/telemetry?limit=200');
    expect(records).toHaveLength([...world.readings('a1', 0n, BigInt(ORIGIN_MS) * 1_000_000n + 1n)].length);
  });
});

test('Telemetry window: without bounds it is the most recent days that the plan allows', async () => {
  await onBothWays(smallSimulator, async (ask, { settings, world }) => {
    settings.plan.historyMaxDays = 2;
    const { records } = await walk(ask, '/devices/a1/telemetry?limit=100');
    const fromNs = BigInt(ORIGIN_MS - 2 * DAY_MS) * 1_000_000n;
    expect(records).toHaveLength([...world.readings('a1', fromNs, BigInt(ORIGIN_MS) * 1_000_000n + 1n)].length);
    expect(records.length).toBeGreaterThan(570);
  });
});

test('Telemetry window, before alone: it reaches as far back as the plan allows', async () => {
  await onBothWays(smallSimulator, async (ask, { settings, world }) => {
    settings.plan.historyMaxDays = 1;
    const { records } = await walk(ask, `/devices/a1/telemetry?limit=200&before=${at(ORIGIN_MS - 5 * DAY_MS)}`);
    const toNs = BigInt(ORIGIN_MS - 5 * DAY_MS) * 1_000_000n;
    expect(records).toHaveLength([...world.readings('a1', toNs - 86_400_000_000_000n, toNs)].length);
  });
});

test('Telemetry window: later pages stay anchored to the window of the first page, even as time passes', async () => {
  for (const query of ['limit=100', `limit=100&after=${at(ORIGIN_MS - DAY_MS)}`]) {
    const clock = createManualClock();
    await onBothWays(
      () => smallSimulator({ clock, settings: { plan: { historyMaxDays: 1 } } }),
      async (ask, { world }) => {
        const startMs = clock.nowMs();
        const moved = query.replace(at(ORIGIN_MS - DAY_MS), at(startMs - DAY_MS));
        const first = (await ask(`/devices/a1/telemetry?${moved}`)).json;
        const found = times(first);
        for (let next = first.next_cursor; next !== undefined; ) {
          clock.advance(5 * HOUR_MS);
          const { json } = await ask(`/devices/a1/telemetry?${moved}&cursor=${encodeURIComponent(next)}`);
          found.push(...times(json));
          next = json.next_cursor;
        }
        const [fromNs, toNs] = [BigInt(startMs - DAY_MS) * 1_000_000n, BigInt(startMs) * 1_000_000n + 1n];
        expect(found.reverse()).toEqual([...world.readings('a1', fromNs, toNs)].map((reading) => reading.recordedAt));
      },
    );
  }
});

test('after and before accept RFC 3339 with any zone, or as narrow as configured', async () => {
  const accepted = async (formats: 'any' | 'utc' | 'utc-seconds'): Promise<string[]> => {
    const good: string[] = [];
    await onBothWays(
      () => smallSimulator({ settings: { bounds: { formats } } }),
      async (ask) => {
        good.length = 0;
        for (const text of FORMS) {
          const { status, json } = await ask(`/devices/a1/telemetry?after=${encodeURIComponent(text)}`);
          if (status === 200) good.push(text);
          else expect([json.error.code, json.error.message.split(' ')[0]]).toEqual(['invalid_request', 'after']);
        }
      },
    );
    return good;
  };
  expect(await accepted('any')).toEqual(FORMS.slice(0, 4));
  expect(await accepted('utc')).toEqual(FORMS.slice(0, 3));
  expect(await accepted('utc-seconds')).toEqual(FORMS.slice(0, 1));
});

const FORMS = [
  '2026-01-14T00:00:00Z',
  '2026-01-14T00:00:00.5Z',
  '2026-01-14T00:00:00.123456789Z',
  '2026-01-14T01:00:00+01:00',
  '2026-01-14',
  '1768348800',
  '2026-01-14T00:00:00',
  '2026-02-30T00:00:00Z',
  'yesterday',
  '',
];

test('the settings limit the age of a window by empty pages, by refusals, or not at all', async () => {
  await onBothWays(smallSimulator, async (ask, { settings }) => {
    settings.plan.historyMaxDays = 2;
    const [edge, old] = [ORIGIN_MS - 2 * DAY_MS, ORIGIN_MS - 4 * DAY_MS];
    const snapshot = (afterMs: number, beforeMs: number) =>
      ask(`/devices/a1/telemetry?limit=200&after=${at(afterMs)}&before=${at(beforeMs)}`);
    expect((await snapshot(old, old + HOUR_MS)).json.data).toHaveLength(12);
    settings.bounds.age = 'empty';
    expect((await snapshot(old, old + HOUR_MS)).json.data).toEqual([]);
    expect((await snapshot(edge - HOUR_MS, edge + HOUR_MS)).json.data).toHaveLength(12);
    settings.bounds.age = 'rejected';
    expect((await snapshot(edge - 1, edge + HOUR_MS)).json.error.code).toBe('range_too_large');
    expect((await snapshot(edge, edge + HOUR_MS)).json.data).toHaveLength(12);
    expect((await ask('/devices/a1/telemetry')).status).toBe(200);
  });
});

test('Shapes of a request by the settings: a combination of bounds can be unsupported', async () => {
  await onBothWays(smallSimulator, async (ask, { settings }) => {
    settings.bounds.rejectedShapes = ['after', 'none'];
    const [a, b] = [`after=${at(ORIGIN_MS - HOUR_MS)}`, `before=${at(ORIGIN_MS)}`];
    const statuses = [];
    for (const query of ['', a, b, `${a}&${b}`]) statuses.push((await ask(`/devices/a1/telemetry?${query}`)).status);
    expect(statuses).toEqual([400, 400, 200, 200]);
  });
});

test('Bounds in the wrong order: an empty page, or refused by the settings', async () => {
  await onBothWays(smallSimulator, async (ask, { settings }) => {
    const path = `/devices/a1/telemetry?after=${at(ORIGIN_MS)}&before=${at(ORIGIN_MS - HOUR_MS)}`;
    expect((await ask(path)).json).toEqual({ device_id: 'a1', data: [] });
    settings.bounds.reversed = 'rejected';
    expect((await ask(path)).json.error.code).toBe('invalid_request');
  });
});

test('A reading is not served before it was received, and a late one not before that', async () => {
  const clock = createManualClock();
  const readings: ReadingSpec[] = [
    { recordedAtNs: BigInt(ORIGIN_MS) * 1_000_000n + 500_000_000n, values: [] },
    { recordedAtNs: BigInt(ORIGIN_MS) * 1_000_000n, values: [], visibleAtMs: ORIGIN_MS + 2000 },
  ];
  const world = smallWorld({ devices: [{ deviceId: 'd', readings }], precision: 's' });
  await onBothWays(
    () => smallSimulator({ world, clock }),
    async (ask) => {
      clock.advance(ORIGIN_MS - clock.nowMs());
      const count = async (): Promise<number> => (await ask('/devices/d/telemetry')).json.data.length;
      expect(await count()).toBe(0);
      clock.advance(500);
      expect(await count()).toBe(1);
      clock.advance(1499);
      expect(await count()).toBe(1);
      clock.advance(1);
      expect(await count()).toBe(2);
    },
  );
});

test('Lateness by the settings: some readings of some devices come up to so much later, and then stay', () => {
  const clock = createManualClock();
  const lateness = { share: 0.5, maxMs: HOUR_MS, devices: ['a1'] };
  const simulator = smallSimulator({ clock, settings: { lateness } });
  const [fromNs, toNs] = [BigInt(ORIGIN_MS - HOUR_MS) * 1_000_000n, BigInt(ORIGIN_MS) * 1_000_000n];
  const visible = (id: string): number => visibleReadings(simulator, id, fromNs, toNs).length;
  const all = [...simulator.world.readings('a1', fromNs, toNs)].length;
  expect(visible('a1')).toBeLessThan(all);
  expect(visible('a1')).toBeGreaterThan(0);
  expect(visible('a2')).toBe([...simulator.world.readings('a2', fromNs, toNs)].length);
  let before = visible('a1');
  for (let turn = 0; turn < 12; turn += 1) {
    clock.advance(5 * MINUTE_MS);
    expect(visible('a1')).toBeGreaterThanOrEqual(before);
    before = visible('a1');
  }
  expect(before).toBe(all);
});

test('Lateness counts from the time of a reading: one that is handed in later than that is not late once more', () => {
  const clock = createManualClock();
  clock.advance(ORIGIN_MS - clock.nowMs());
  const readings = Array.from({ length: 40 }, (_, index): ReadingSpec => {
    const recordedMs = ORIGIN_MS - HOUR_MS - index * MINUTE_MS;
    return { recordedAtNs: BigInt(recordedMs) * 1_000_000n, values: [], visibleAtMs: ORIGIN_MS };
  });
  const world = smallWorld({ devices: [{ deviceId: 'd', readings }] });
  const lateness = { share: 1, maxMs: HOUR_MS, devices: null };
  const simulator = smallSimulator({ world, clock, settings: { lateness } });
  expect(visibleReadings(simulator, 'd', 0n, 2n ** 63n)).toHaveLength(40);
});

test('Readings that the API has lost again are not served, and the listing continues behind them', async () => {
  await onBothWays(smallSimulator, async (ask, simulator) => {
    const all = times((await ask('/devices/a1/telemetry?limit=6')).json);
    const { isVisible } = simulator;
    const isLost = (deviceId: string, recordedAt: string): boolean => deviceId === 'a1' && recordedAt === all[1];
    simulator.isVisible = (deviceId, reading, atMs) =>
      !isLost(deviceId, reading.recordedAt) && isVisible(deviceId, reading, atMs);
    const { json } = await ask('/devices/a1/telemetry?limit=2');
    expect(times(json)).toEqual([all[0], all[2]]);
    const rest = await ask(`/devices/a1/telemetry?limit=2&cursor=${encodeURIComponent(json.next_cursor)}`);
    expect(times(rest.json)).toEqual([all[3], all[4]]);
    expect((await ask('/devices/a2/telemetry?limit=6')).json.data).toHaveLength(6);
  });
});
