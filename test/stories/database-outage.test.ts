/** A database that is down for three days: the API is polled as ever, and all of it arrives, the newest lane first. */
import { describe, expect, test } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import { syncAccount } from '../../src/ingest/account.ts';
import { syncAlerts } from '../../src/ingest/alerts.ts';
import { syncDevices } from '../../src/ingest/devices.ts';
import { wantedNow } from '../../src/ingest/wanted-range.ts';
import { noteCoverage } from '../../src/scheduler/coverage-points.ts';
import type { World } from '../../src/sim/world.ts';
import { NO_LIMIT } from '../store/support.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { pullSince } from '../support/live.ts';
import { destinationOf, NOW_MS, openBench, openRig, type Rig } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { createWorld, type DeviceSpec } from '../support/trait-world.ts';
import { FAULTS, type Fault, throttled } from '../support/v2-proxy.ts';

const bench = sharedBench(openBench);

const DEVICES: readonly DeviceSpec[] = [
  { deviceId: 'steady', intervalMs: 5 * MINUTE_MS },
  { deviceId: 'tied', intervalMs: 10 * MINUTE_MS, traits: ['ties'] },
];
const world = (originMs: number): World =>
  createWorld({ seed: 5, originMs, historyMs: 2 * DAY_MS, devices: [...DEVICES] });

/** The points that a backfill left in the other lane before the outage. */
const HISTORY: readonly string[] = Array.from(
  { length: 600 },
  (_, nth) => `workspace,workspace_id=w devices=2 ${BigInt(NOW_MS - 9 * DAY_MS + nth * MINUTE_MS) * 1_000_000n}`,
);

/**
 * Most of the time it requests a wait of ten minutes; now and then it is not there at all, or accepts the request and
 * never answers.
 */
const OUTAGE: readonly Fault[] = [FAULTS.cut, FAULTS.applyAndCut, ...Array.from({ length: 8 }, () => throttled(600))];

interface Story {
  readonly events: readonly AppEvent[];
  /** The requests that the API had seen at the end of each day. */
  readonly byDay: readonly number[];
  /** Every line that arrived, in the order of its first arrival, from the end of the outage on. */
  readonly arrived: readonly string[];
  /** The points that waited in each lane when the outage ended. */
  readonly waiting: { readonly live: readonly string[]; readonly history: readonly string[] };
}

/** Some days and two hours of rounds; `isDown` for all but these hours. */
async function live(rig: Rig, days: number, isDown: boolean): Promise<Story> {
  const events: AppEvent[] = [];
  // Small batches: thousands of them are refused.
  const destinations = [{ ...destinationOf(bench, rig.database, rig.clock), batchLines: 50 }];
  const sync = rig.open({ destinations, observe: (event) => events.push(event) });
  sync.context.store.append(HISTORY, 'history');
  const stop = new AbortController();
  const arrived = new Set<string>();
  let isOver = !isDown;
  const byDay: number[] = [];
  let nth = 0;
  bench.proxy.setFaults(({ lines }) => {
    nth += 1;
    if (!isOver) return OUTAGE[nth % OUTAGE.length] ?? null;
    for (const line of lines) arrived.add(line);
    return null;
  });
  try {
    const { context, deliverers } = sync;
    const running = Promise.allSettled(deliverers.map((deliverer) => deliverer.run(stop.signal)));
    const syncFor = async (hours: number): Promise<void> => {
      for (const endMs = rig.clock.nowMs() + hours * HOUR_MS; rig.clock.nowMs() < endMs; ) {
        await syncAccount(context, stop.signal);
        await syncDevices(context, stop.signal);
        await syncAlerts(context, stop.signal);
        await pullSince(sync, 0n, stop.signal);
        const wantedRange = wantedNow(context);
        if (wantedRange !== null) noteCoverage(context, wantedRange);
        await rig.clock.sleep(HOUR_MS);
      }
    };
    for (let day = 0; day < days; day += 1) {
      await syncFor(24);
      byDay.push(rig.simulator.log.total);
    }
    const { store } = context;
    const linesOf = (lane: 'live' | 'history') => store.read(lane, { block: 0, line: 0 }, NO_LIMIT).lines;
    const waiting = { live: linesOf('live'), history: linesOf('history') };
    isOver = true;
    await syncFor(2);
    stop.abort();
    await running;
    return { events, byDay, arrived: [...arrived], waiting };
  } finally {
    stop.abort();
    sync.close();
    bench.proxy.setFaults(null);
  }
}

describe.runIf(influxdAvailable())('a database that is down for three days', () => {
  test('costs no request beyond the usual, and has everything once within two hours, live points first', async () => {
    using usual = await openRig(bench, { world, historyMs: DAY_MS });
    const [normal = 0] = (await live(usual, 1, false)).byDay;
    using rig = await openRig(bench, { world, historyMs: DAY_MS });
    const story = await live(rig, 3, true);
    const [first = 0, second = 0, third = 0] = story.byDay;
    expect(normal).toBeGreaterThan(100);
    expect(first).toBeLessThanOrEqual(normal);
    expect(Math.max(second - first, third - second)).toBeLessThanOrEqual(normal + 5);
    expect(story.events.filter(({ type }) => type === 'delivery-resumed')).toHaveLength(1);
    expect(story.events.filter(({ type }) => type === 'lines-quarantined')).toEqual([]);

    const { live: lively, history } = story.waiting;
    const isHour = (line: string): boolean => line.startsWith('coverage_hour,');
    expect([lively.length > 3000, lively.some(isHour)]).toEqual([true, false]);
    expect(history.filter((line) => !isHour(line))).toHaveLength(HISTORY.length);
    // Points that waited in the live lane arrive in the order of the log, and before anything of the history.
    expect(story.arrived.slice(0, lively.length)).toEqual([...new Set(lively)]);
    const rank = new Map(story.arrived.map((line, index) => [line, index]));
    expect(history.every((line) => (rank.get(line) ?? -1) >= lively.length)).toBe(true);

    const verdict = await rig.verdict(NOW_MS + 3 * DAY_MS + HOUR_MS, {
      fromNs: BigInt(NOW_MS - DAY_MS + HOUR_MS) * 1_000_000n,
      toNs: BigInt(NOW_MS + 3 * DAY_MS + HOUR_MS) * 1_000_000n,
    });
    expect([verdict.missing.slice(0, 3), verdict.invented.slice(0, 3)]).toEqual([[], []]);
    expect(verdict.expected).toBeGreaterThan(3000);
  });
});
