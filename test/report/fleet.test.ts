/**
 * The scan of all devices: its findings, and that it delays no caller where there are very many.
 */
import { describe, expect, test } from 'vitest';
import { createFilter } from '../../src/core/filter.ts';
import { createHeartbeats } from '../../src/core/heartbeats.ts';
import type { DeviceRecord } from '../../src/core/records.ts';
import type { KnownDevice } from '../../src/core/state/inventory.ts';
import { type CoverageNow, NEVER_LATE } from '../../src/core/state/telemetry.ts';
import { HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import {
  createFleetScanner,
  type FleetScanner,
  type FleetScannerParts,
  type FleetSnapshot,
} from '../../src/report/fleet.ts';
import { createVirtualClock } from '../support/virtual-clock.ts';

const NOW_MS = Date.UTC(2026, 10, 21);
const NS = 1_000_000n;

const RECORD = {
  name: null,
  online: true,
  lifecycleStatus: 'active',
  lastSeenAt: null,
  tags: [],
  modelId: null,
} as unknown as DeviceRecord;

interface Spec {
  readonly id: string;
  /** How long ago the coverage ends; `null`: nothing is. */
  readonly heldToAgoMs: number | null;
  /** How long ago it begins; by default long before the wanted range. */
  readonly heldFromAgoMs?: number;
  readonly goneSinceMs?: number;
  /** The facts of the API about it, beyond that it is online and active. */
  readonly facts?: Partial<DeviceRecord>;
}

/**
 * A scan of devices that are covered from the beginning to some time ago; each costs `costMs` of a clock of its own.
 */
function lookAt(
  specs: readonly Spec[],
  costMs = 0,
  exclude: readonly string[] = [],
  longestMs = Infinity,
  staleMs = 0,
  virtual: ReturnType<typeof createVirtualClock> | null = null,
) {
  const time = { ms: 0, slept: 0, longest: 0, since: 0 };
  const devices = specs.map(
    ({ id, goneSinceMs, facts }): KnownDevice => ({
      record: { ...RECORD, ...facts, deviceId: id },
      name: id,
      firstListedMs: NOW_MS - 10 * MINUTE_MS,
      lastListedMs: NOW_MS,
      goneSinceMs: goneSinceMs ?? null,
    }),
  );
  const covered = (id: string): CoverageNow => {
    time.ms += costMs;
    time.longest = Math.max(time.longest, time.ms - time.since);
    const { heldToAgoMs: ago = null, heldFromAgoMs = NOW_MS } = specs.find((spec) => spec.id === id) ?? {};
    const range = {
      from: BigInt(NOW_MS - heldFromAgoMs) * NS,
      to: BigInt(NOW_MS - (ago ?? 0)) * NS,
      first: null,
      last: null,
    };
    return { covered: ago === null ? [] : [range], late: NEVER_LATE, gaps: [], newestNs: null, isSilent: false };
  };
  const look = createFleetScanner({
    context: {
      store: { devices: () => devices, coverageOfAll: () => ({ get: covered }) },
      serverClock: { highestPassedMs: () => NOW_MS, passedMs: () => NOW_MS, nowMs: () => NOW_MS },
      nextReadingMs: () => null,
      settings: {
        history: { kind: 'age', ageMs: 48 * HOUR_MS },
        gracePeriodMs: 0,
        filter: createFilter({ include: [], exclude, excludeSensors: [], includesLocation: true }),
      },
      clock: {
        nowMs: () => NOW_MS,
        monoMs: () => time.ms + (virtual?.monoMs() ?? 0),
        sleep: (ms: number, signal: AbortSignal) => {
          if (virtual !== null) return virtual.sleep(ms, signal);
          if (ms > longestMs)
            return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
          time.ms += ms;
          time.slept += ms;
          time.since = time.ms;
          signal.throwIfAborted();
          return Promise.resolve();
        },
      },
    },
    staleMs: () => staleMs,
    pulse: createHeartbeats({ monoMs: () => time.ms }).openPulse('figures'),
  } as unknown as FleetScannerParts);
  return { look, time };
}

/** The snapshot that a caller gets who requests one. */
function scanned(look: FleetScanner): FleetSnapshot | null {
  look.request();
  return look.latest();
}

async function runUntil(look: FleetScanner, isOver: () => boolean): Promise<void> {
  const stop = new AbortController();
  const running = look.run(stop.signal).catch(() => {});
  for (let turn = 0; turn < 100_000 && !isOver(); turn += 1) await Promise.resolve();
  stop.abort(new Error('over'));
  await running;
}

describe('the findings', () => {
  test('is a last day that is missing where its beginning is, even if the newest hours may be open', () => {
    const specs = [
      { id: 'begun', heldToAgoMs: HOUR_MS, heldFromAgoMs: 21 * HOUR_MS },
      { id: 'whole', heldToAgoMs: 3 * HOUR_MS },
    ];
    const { look } = lookAt(specs, 0, [], Infinity, 2 * HOUR_MS);
    expect(scanned(look)?.figures).toMatchObject({ present: 2, lastDayMissing: 1 });
  });

  test('is how many silent devices are out of service; a retired one that reports is not', () => {
    const heldToAgoMs = 0;
    const specs = [
      { id: 'silent', heldToAgoMs, facts: { online: false } },
      { id: 'retired', heldToAgoMs, facts: { online: false, lifecycleStatus: 'retired' } },
      { id: 'paused', heldToAgoMs, facts: { online: false, lifecycleStatus: 'paused' } },
      { id: 'reports', heldToAgoMs, facts: { lifecycleStatus: 'retired' } },
    ];
    expect(scanned(lookAt(specs).look)?.figures).toMatchObject({ states: { silent: 3, live: 1 }, outOfService: 2 });
  });

  test('is the age of the oldest uncovered reading of each device, and the number of gaps', () => {
    const { look } = lookAt(
      [
        { id: 'a', heldToAgoMs: 61_000 },
        { id: 'b', heldToAgoMs: 121_000 },
        { id: 'c', heldToAgoMs: 5 * HOUR_MS },
        { id: 'excluded', heldToAgoMs: null },
        { id: 'gone', heldToAgoMs: 10 * HOUR_MS, goneSinceMs: NOW_MS - 10 * HOUR_MS },
        { id: 'new', heldToAgoMs: null },
      ],
      0,
      ['excluded'],
    );
    const found = scanned(look)?.figures;
    expect(found).toMatchObject({
      listed: 5,
      present: 4,
      lastDayMissing: 2,
      // A new device counts from when it was listed first: ten minutes ago.
      lag: { p50: 120, p90: 5 * 3600 - 1, worst: 5 * 3600 - 1 },
      states: { excluded: 1, unreachable: 1, live: 2, 'catching-up': 2 },
      devices: [],
      leftOut: 0,
    });
    expect(found?.complete).toBe(3);
    const gaps = Object.fromEntries(found?.gapSeconds ?? []);
    expect(gaps['excluded']).toBe(48 * 3600 - 1);
    // The newest minutes of devices that are up to date are no gap.
    expect(gaps['pending']).toBe(5 * 3600 - 1 + (48 * 3600 - 1));
    expect(found?.coveredShare).toBeGreaterThan(0.7);
  });

  test('is no lag while most devices are in their initial sync, but for one that is late', () => {
    const initial = (id: string, agoMs: number): Spec => ({ id, heldToAgoMs: agoMs, heldFromAgoMs: 6 * HOUR_MS });
    const figuresOf = (...specs: Spec[]) => {
      const { look } = lookAt(specs);
      look.setListed(9);
      const { lag, devices } = scanned(look)?.figures ?? {};
      return [...Object.values(lag ?? {}), ...(devices ?? []).map(({ lagSeconds }) => lagSeconds)];
    };
    const complete = { id: 'c', heldToAgoMs: 61_000 };
    expect(figuresOf(initial('a', 1000), initial('b', 61_000), complete)).toEqual([
      ...[null, null, null, null],
      ...[null, null, 60],
    ]);
    expect(figuresOf(initial('a', 1000), initial('b', 5 * HOUR_MS), initial('c', 1000))).toEqual([
      ...[null, 5 * 3600 - 1, 5 * 3600 - 1, 5 * 3600 - 1],
      ...[null, 5 * 3600 - 1, null],
    ]);
    expect(figuresOf(initial('a', 1000), complete)).toEqual([0, 60, 60, 60, null, 60]);
  });

  test('names as many single devices as configured', () => {
    const { look } = lookAt(Array.from({ length: 5 }, (_, index) => ({ id: `d${index}`, heldToAgoMs: 61_000 })));
    look.setListed(3);
    expect(scanned(look)?.figures).toMatchObject({ leftOut: 2 });
    expect(scanned(look)?.figures.devices.map(({ deviceId }) => deviceId)).toEqual(['d0', 'd1', 'd2']);
  });
});

describe('the list of findings', () => {
  test('has every device as it was found, those that are left out and gone as well, until the next look', () => {
    const specs = [
      { id: 'a', heldToAgoMs: 61_000 },
      { id: 'excluded', heldToAgoMs: null },
      { id: 'gone', heldToAgoMs: 10 * HOUR_MS, goneSinceMs: NOW_MS - 10 * HOUR_MS },
    ];
    const { look, time } = lookAt(specs, 0, ['excluded']);
    const found = scanned(look)?.listing;
    expect(found).toMatchObject([
      { deviceId: 'a', name: 'a', state: 'live', lagSeconds: 60, newestNs: null },
      { deviceId: 'excluded', state: 'excluded', lagSeconds: null, share: 0 },
      { deviceId: 'gone', state: 'unreachable', share: 1 },
    ]);
    expect(scanned(look)?.listing).toBe(found);
    time.ms += 1000;
    expect(scanned(look)?.listing).not.toBe(found);
    expect(scanned(look)?.listing).toEqual(found);
  });

  test('is none before the first look has come to its end', () => {
    const { look, time } = lookAt(
      ['a', 'b', 'c'].map((id) => ({ id, heldToAgoMs: 61_000 })),
      100,
    );
    expect(scanned(look)).toBeNull();
    expect(time.ms).toBe(100);
  });
});

describe('its cost', () => {
  const many = Array.from({ length: 1000 }, (_, index) => ({ id: `d${index}`, heldToAgoMs: 61_000 }));

  test('where it takes long no caller waits for it: it is made in slices, with rests', async () => {
    const { look, time } = lookAt(many, 0.1);
    expect(scanned(look)).toBeNull();
    // The caller has waited for a few milliseconds, not for a hundred.
    expect(time.ms).toBeLessThan(6);
    const askedMs = time.ms;
    expect(scanned(look)).toBeNull();
    expect(time.ms).toBe(askedMs);
    time.since = time.ms;
    time.longest = 0;
    await runUntil(look, () => scanned(look) !== null);
    expect(scanned(look)?.figures.present).toBe(1000);
    expect(time.longest).toBeLessThan(5);
  });

  test('in the long run it uses a twentieth of the time', async () => {
    const { look, time } = lookAt(many, 0.1);
    await runUntil(look, () => scanned(look) !== null && time.ms > 200_000);
    expect((time.ms - time.slept) / time.ms).toBeLessThan(0.05);
    expect(look.ageMs()).toBeLessThan(20_000);
  });

  test('a request during the long pause ends it', async () => {
    const { look, time } = lookAt(many.slice(0, 10), 1, [], 20_000);
    let hasAsked = false;
    let turns = 0;
    await runUntil(look, () => {
      turns += 1;
      if (turns === 1000) time.ms += 5000;
      if (turns === 1000) hasAsked = scanned(look) !== null;
      return turns > 2000;
    });
    expect(hasAsked).toBe(true);
    expect(look.ageMs()).toBeLessThan(2000);
  });

  test('without requests it is made twice a minute, however long it takes', async () => {
    for (const costMs of [0, 0.1]) {
      const { look, time } = lookAt(many, costMs);
      await runUntil(look, () => time.ms > 600_000);
      const workedMs = time.ms - time.slept;
      expect(workedMs / (many.length * costMs || 1)).toBeLessThan(22);
      expect(look.ageMs()).toBeLessThan(MINUTE_MS);
    }
  });

  test('with requests twice a minute none is made besides', async () => {
    const { look, time } = lookAt(many.slice(0, 10), 0.1);
    let askedMs = 0;
    await runUntil(look, () => {
      if (time.ms - askedMs >= 29_000) {
        askedMs = time.ms;
        look.request();
      }
      return time.ms > 600_000;
    });
    expect(time.ms - time.slept).toBeLessThan(25);
  });
});

describe('a caller that waits', () => {
  /** Forty devices whose scan takes this long, and how old the figures are after a caller has waited at these times. */
  async function agesAfterWaits(scanMs: number, timesMs: readonly number[]): Promise<number[]> {
    const clock = createVirtualClock(NOW_MS);
    const specs = Array.from({ length: 40 }, (_, index) => ({ id: `d${index}`, heldToAgoMs: 61_000 }));
    const { look } = lookAt(specs, scanMs / 40, [], Infinity, 0, clock);
    const stop = new AbortController();
    const running = look.run(stop.signal).catch(() => {});
    const ages: number[] = [];
    for (const atMs of timesMs) {
      await clock.sleep(atMs - clock.monoMs());
      await look.requestAndWait();
      expect(clock.monoMs() - atMs).toBeLessThanOrEqual(1000);
      ages.push(look.ageMs());
    }
    stop.abort(new Error('over'));
    await running;
    return ages;
  }

  test('gets new figures where a scan takes too long to be made at once, even if there was no request for long', async () => {
    for (const age of await agesAfterWaits(20, [15_000, 16_500, 45_000])) expect(age).toBeLessThan(1000);
  });

  test('gets the last ones after a second where a scan takes longer', async () => {
    const [first = 0, second = 0] = await agesAfterWaits(400, [29_000, 35_000]);
    expect(first).toBeGreaterThan(10_000);
    expect(second).toBeLessThan(10_000);
  });

  test('waits for nothing before the scans begin', async () => {
    const clock = createVirtualClock(NOW_MS);
    const { look } = lookAt(
      ['a', 'b'].map((id) => ({ id, heldToAgoMs: 61_000 })),
      100,
      [],
      Infinity,
      0,
      clock,
    );
    await look.requestAndWait();
    expect([look.latest(), clock.monoMs()]).toEqual([null, 0]);
  });
});
