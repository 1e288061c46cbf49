/**
 * Quiet faults of a service, as in the simulator, switched on and off while it runs.
 */
import { describe, expect, test } from 'vitest';
import { HOUR_MS, MINUTE_MS, msToNs } from '../../src/core/time.ts';
import { createSettings } from '../../src/sim/settings.ts';
import type { ReadingSpec } from '../../src/sim/spec.ts';
import { AMPLE, askInProcess, createManualClock, ORIGIN_MS, smallSimulator, walk, worldOf } from '../sim/support.ts';
import { always, falselyEmpty, lagging, outsideWindow, twoExchanged, upsideDown } from './faults.ts';
import type { Fault } from './faulty-simulator.ts';

/** A number of readings at each of the times, a minute apart, newest last. */
function offsets(counts: readonly number[]): ReadingSpec[] {
  return counts.flatMap((count, index) =>
    Array.from({ length: count }, (_, nth) => ({
      recordedAtNs: msToNs(ORIGIN_MS - (counts.length - index) * MINUTE_MS),
      values: [['v', String(index * 100 + nth)] as const],
    })),
  );
}

/** The values of `v` in the order served. */
async function valuesOf(simulator: ReturnType<typeof smallSimulator>, limit: number): Promise<number[]> {
  const { records } = await walk(askInProcess(simulator), `/devices/d/telemetry?limit=${limit}`);
  return records.map((record) => (record as { values: { v: number } }).values.v);
}

describe('cursors with several readings of one instant at a page’s end', () => {
  const tied = () => smallSimulator({ world: worldOf({ readings: offsets([1, 3, 1]) }) });

  test('serve each reading once where they are exact', async () => {
    expect(await valuesOf(tied(), 2)).toEqual([200, 102, 101, 100, 0]);
  });

  test('leave out those behind the border where they skip, and only there', async () => {
    const simulator = tied();
    simulator.settings.paging.cursorDuplicates = 'skips';
    expect(await valuesOf(simulator, 2)).toEqual([200, 102, 0]);
    expect(await valuesOf(simulator, 4)).toEqual([200, 102, 101, 100, 0]);
  });

  test('serve those before the border again where they repeat, but never the same page for ever', async () => {
    const simulator = tied();
    simulator.settings.paging.cursorDuplicates = 'repeats';
    expect(await valuesOf(simulator, 2)).toEqual([200, 102, 102, 101, 100, 0]);
    expect(await valuesOf(simulator, 3)).toEqual([200, 102, 101, 102, 101, 100, 0]);
    simulator.settings.paging.cursorDuplicates = 'exact';
    expect(await valuesOf(simulator, 2)).toEqual([200, 102, 101, 100, 0]);
  });
});

describe('pages that are not true', () => {
  const STRAY_NS = msToNs(ORIGIN_MS + HOUR_MS);
  const pageWith = async (fault: Fault | null): Promise<{ status: number; values: unknown[]; more: boolean }> => {
    const simulator = smallSimulator({ world: worldOf({ readings: offsets([1, 1, 1, 1, 1]) }) });
    simulator.faults = fault === null ? null : always(fault);
    const { status, json } = await askInProcess(simulator)('/devices/d/telemetry?limit=4');
    const values = json.data.map(({ values }: { values: { v?: number } }) => values.v ?? 'stray');
    return { status, values, more: 'next_cursor' in json };
  };

  test.each([
    ['nothing', null, [400, 300, 200, 100], true],
    ['empty', falselyEmpty, [], false],
    ['upside down', upsideDown, [100, 200, 300, 400], true],
    ['two exchanged', twoExchanged, [400, 200, 300, 100], true],
    ['lagging', lagging(3), [100], true],
    ['outside the window', outsideWindow(STRAY_NS), ['stray', 400, 300, 200, 100], true],
  ] as const)('come with 200: %s', async (_, fault, values, more) => {
    expect(await pageWith(fault)).toEqual({ status: 200, values, more });
  });
});

describe('the server’s clock', () => {
  test('jumps and falls back with its Date, and readings keep their own time', async () => {
    const simulator = smallSimulator();
    const ask = askInProcess(simulator);
    const look = async () => {
      const { headers, json } = await ask('/devices/hub/telemetry?limit=1');
      return { date: Date.parse(headers.date ?? ''), newest: json.data[0].recorded_at };
    };
    const before = await look();
    simulator.settings.time.jumpMs = HOUR_MS;
    expect(await look()).toEqual({ date: before.date + HOUR_MS, newest: before.newest });
    expect(simulator.serverNowMs() - simulator.worldNowMs()).toBe(HOUR_MS);
    simulator.settings.time.jumpMs = 0;
    expect(await look()).toEqual(before);
  });

  test('that is behind hides readings that are newer than its present', async () => {
    const simulator = smallSimulator();
    simulator.settings.time.jumpMs = -HOUR_MS;
    const { json } = await askInProcess(simulator)('/devices/hub/telemetry?limit=1');
    expect(Date.parse(json.data[0].recorded_at)).toBeLessThanOrEqual(ORIGIN_MS - HOUR_MS);
  });

  test('moves the readings with it where all of its time moves', async () => {
    const simulator = smallSimulator();
    simulator.settings.time.offsetMs = HOUR_MS;
    const { json } = await askInProcess(simulator)('/devices/hub/telemetry?limit=1');
    expect(Date.parse(json.data[0].recorded_at)).toBeGreaterThan(ORIGIN_MS);
  });
});

describe('other clients', () => {
  const remaining = async (ask: ReturnType<typeof askInProcess>): Promise<number> =>
    Number((await ask('/account')).headers['x-ratelimit-remaining']);
  const shared = (foreign: { perMinute: number; everyMs: number }) => {
    const clock = createManualClock();
    const plan = { ...createSettings().plan, ...AMPLE, requestsPerMinute: 100 };
    const simulator = smallSimulator({ clock, settings: { plan, quota: { foreign } } });
    return { clock, simulator, ask: askInProcess(simulator) };
  };

  test('spend steadily', async () => {
    const { clock, ask } = shared({ perMinute: 60, everyMs: 1000 });
    expect(await remaining(ask)).toBe(99);
    clock.advance(30_000);
    expect(await remaining(ask)).toBe(68);
    clock.advance(29_000);
    expect(await remaining(ask)).toBe(38);
  });

  test('spend in bursts, from the rest', async () => {
    const { clock, simulator, ask } = shared({ perMinute: 60, everyMs: 2 * MINUTE_MS });
    clock.advance(MINUTE_MS);
    expect(await remaining(ask)).toBe(99);
    clock.advance(MINUTE_MS);
    expect((await ask('/account')).status).toBe(429);
    clock.advance(MINUTE_MS);
    expect(await remaining(ask)).toBe(99);
    simulator.settings.quota.foreign.perMinute = 0;
    clock.advance(MINUTE_MS);
    expect(await remaining(ask)).toBe(99);
  });

  test('are those of the settings at that time', async () => {
    const { clock, simulator, ask } = shared({ perMinute: 0, everyMs: 1000 });
    clock.advance(10 * MINUTE_MS);
    expect(await remaining(ask)).toBe(99);
    simulator.settings.quota.foreign = { perMinute: 30, everyMs: 10_000 };
    clock.advance(20_000);
    expect(await remaining(ask)).toBe(88);
  });
});

test('settings of one simulator are its own, those inside others too', () => {
  const [one, other] = [createSettings(), createSettings()];
  one.quota.foreign.perMinute = 7;
  expect(other.quota.foreign.perMinute).toBe(0);
});
