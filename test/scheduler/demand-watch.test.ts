/** The reports of a quota that is too small: once, again when it changes, and once when it ends. */
import { describe, expect, test } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import { meanIntervalMs, type SchedulerDemand } from '../../src/scheduler/demand.ts';
import { createDemandWatch, readStaleMs } from '../../src/scheduler/demand-watch.ts';
import { POLLS } from '../support/defaults.ts';
import { createVirtualClock } from '../support/virtual-clock.ts';

/** A watch with a plan that can be exchanged. */
function rig(begun: { readonly perDay: number | null } | null) {
  let plan = begun;
  const kept = new Map<string, string>();
  const writes: string[] = [];
  const events: AppEvent[] = [];
  const clock = createVirtualClock(1e12);
  const store = {
    account: () => (plan === null ? null : { plan: { requestsPerMinute: null, requestsPerDay: plan.perDay } }),
    fact: (key: string) => kept.get(key) ?? null,
    saveFact: (key: string, text: string) => {
      if (key === 'stale_ms') writes.push(text);
      kept.set(key, text);
    },
  };
  const parts = { store, clock, observe: (event: AppEvent) => void events.push(event) };
  const watch = createDemandWatch(parts as unknown as Parameters<typeof createDemandWatch>[0], MINUTE_MS);
  return {
    ...parts,
    watch,
    events,
    writes,
    setPlan: (next: typeof begun) => {
      plan = next;
    },
    types: () => events.map((event) => (event.type === 'quota-short' ? event.unmet : event.type)),
  };
}

/** Devices that report every minute, and are polled every minute. */
function asked(devices: number, intervalMs = MINUTE_MS): SchedulerDemand {
  const settings = {
    telemetryMs: MINUTE_MS,
    devicesMs: 5 * MINUTE_MS,
    alertsMs: 2 * MINUTE_MS,
    accountMs: HOUR_MS,
    polls: POLLS,
    pageSize: 200,
    share: 0.8,
  };
  const rates = () => ({ knownMs: Array.from({ length: devices }, () => intervalMs), unknown: 0, quiet: 0 });
  return { settings, rates, alertRequests: 1, othersPerDay: 0 } as unknown as SchedulerDemand;
}

/** Devices of which nothing is known yet but that they report. */
function unmeasured(devices: number): SchedulerDemand {
  return { ...asked(0), rates: () => ({ knownMs: [], unknown: devices, quiet: 0 }) };
}

const ENOUGH = { perDay: 100_000 };
const SHORT = { perDay: 10_000 };

describe('a shortage', () => {
  test('is reported once, kept for other processes, and ends once', () => {
    const { watch, store, setPlan, types, writes } = rig(SHORT);
    watch.check(asked(10));
    watch.check(asked(10));
    expect(types()).toEqual(['schedules']);
    expect(watch.staleMs()).toBeGreaterThan(MINUTE_MS);
    expect(readStaleMs(store)).toBe(Math.round(watch.staleMs()));
    setPlan(ENOUGH);
    watch.check(asked(10));
    watch.check(asked(10));
    expect(types()).toEqual(['schedules', 'quota-enough']);
    expect([watch.staleMs(), readStaleMs(store), writes.length]).toEqual([MINUTE_MS, MINUTE_MS, 2]);
  });

  test('of the readings themselves is another one: reported at once', () => {
    const { watch, types } = rig(SHORT);
    watch.check(asked(10));
    watch.check(asked(1000, SECOND_MS));
    expect(types()).toEqual(['schedules', 'readings']);
  });

  test('with another plan is reported at once', () => {
    const { watch, setPlan, types } = rig(SHORT);
    watch.check(asked(10));
    setPlan({ perDay: 7000 });
    watch.check(asked(10));
    expect(types()).toEqual(['schedules', 'schedules']);
  });

  test('that grows is reported an hour later, if it has grown by a quarter', async () => {
    const { watch, clock, types } = rig(SHORT);
    watch.check(asked(10));
    watch.check(asked(20));
    expect(types()).toHaveLength(1);
    await clock.sleep(HOUR_MS);
    watch.check(asked(11));
    expect(types()).toHaveLength(1);
    watch.check(asked(20));
    expect(types()).toHaveLength(2);
  });

  test('before the rates are measured names its assumptions, and is reported again once they are', () => {
    const { watch, events, types } = rig(SHORT);
    watch.check(unmeasured(40));
    watch.check(unmeasured(40));
    expect(types()).toEqual(['schedules']);
    expect(events[0]).toMatchObject({
      message: expect.stringMatching(
        / requests a day if 40 devices have a reading every 60 s, but the budget is 8,000 /,
      ),
    });
    watch.check(asked(40, 2 * MINUTE_MS));
    expect(types()).toEqual(['schedules', 'schedules']);
    expect(events[1]).not.toMatchObject({ message: expect.stringContaining(' if ') });
    watch.check(asked(40));
    expect(types(), 'not within the hour').toHaveLength(2);
  });

  test('is estimated by the next process from the rates that the last one has measured', () => {
    const parts = rig(SHORT);
    parts.watch.check(asked(10, 10 * MINUTE_MS));
    const next = createDemandWatch(parts as never, MINUTE_MS);
    next.check(unmeasured(10));
    expect(parts.events).toEqual([]);
  });

  test('is not known without a plan or without devices', () => {
    const without = rig(null);
    without.watch.check(asked(1000));
    const empty = rig(SHORT);
    empty.watch.check(asked(0));
    expect([without.events, empty.events]).toEqual([[], []]);
    expect([without.writes, empty.writes], 'the schedule is known').toEqual([['60000'], ['60000']]);
  });
});

test.each([
  [{ knownMs: [], unknown: 0, quiet: 3 }, null],
  [{ knownMs: [HOUR_MS], unknown: 2, quiet: 0 }, null],
  [{ knownMs: [SECOND_MS, SECOND_MS], unknown: 2, quiet: 0 }, MINUTE_MS],
  [{ knownMs: [MINUTE_MS, HOUR_MS], unknown: 0, quiet: 0 }, (2 * 60 * MINUTE_MS) / 61],
])('the mean interval of %j is %j', (rates, ms) => {
  expect(meanIntervalMs(rates, MINUTE_MS)).toEqual(ms === null ? null : expect.closeTo(ms, 3));
});

test.each([
  [null, 0],
  ['1500', 1500],
  ['much', 0],
  ['Infinity', 0],
])('the kept age %j is read as %i ms', (text, ms) => {
  expect(readStaleMs({ fact: () => text })).toBe(ms);
});
