/** A database that is down for three days: the API is asked as ever, and all of it arrives, the newest lane first. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runDaemon } from '../../src/commands/daemon.ts';
import type { AppEvent } from '../../src/core/events.ts';
import type { DeviceSpec } from '../../src/sim/spec.ts';
import { createWorld, type World } from '../../src/sim/world.ts';
import { createAgenda } from '../../src/sync/agenda.ts';
import { NO_LIMIT } from '../store/support.ts';
import { cron } from '../support/daemon-rig.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { type Bench, destinationOf, NOW_MS, openBench, openRig, type Rig } from '../support/rig.ts';
import { FAULTS, type Fault } from '../support/v2-proxy.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

let bench: Bench;
beforeAll(async () => {
  if (influxdAvailable()) bench = await openBench();
});
afterAll(async () => {
  await bench?.[Symbol.asyncDispose]();
});

const DEVICES: readonly DeviceSpec[] = [
  { deviceId: 'steady', intervalMs: 5 * MINUTE },
  { deviceId: 'tied', intervalMs: 10 * MINUTE, traits: ['ties'] },
];
const world = (originMs: number): World =>
  createWorld({ seed: 5, originMs, historyMs: 2 * DAY, devices: [...DEVICES] });

/** Seldom, so that three days take seconds. */
const SCHEDULES = {
  devices: cron('17 */2 * * *'),
  telemetry: cron('*/15 * * * *'),
  alerts: cron('7 * * * *'),
  account: cron('13 */4 * * *'),
};

const OUTAGE: readonly Fault[] = [FAULTS.cut, { kind: 'answer', status: 503, body: '' }, FAULTS.applyAndCut];

interface Story {
  readonly events: readonly AppEvent[];
  readonly requests: number;
  /** Every line that arrived, in the order of its first arrival, from the end of the outage on. */
  readonly arrived: readonly string[];
  /** What waited in each lane when the outage ended. */
  readonly waiting: { readonly live: readonly string[]; readonly history: readonly string[] };
}

/** Three days and two hours of the daemon; `isDown` for the first three days. */
async function live(rig: Rig, isDown: boolean): Promise<Story> {
  const t0 = Date.now();
  const events: AppEvent[] = [];
  // Small batches: thousands of them are refused.
  const destinations = [{ ...destinationOf(bench, rig.database, rig.clock), batchLines: 200 }];
  const sync = rig.open({ destinations, observe: (event) => events.push(event) });
  const stop = new AbortController();
  const arrived = new Set<string>();
  let isOver = !isDown;
  let nth = 0;
  bench.proxy.setFaults(({ lines }) => {
    nth += 1;
    if (!isOver) return nth % 40 === 0 ? (OUTAGE[2] ?? null) : (OUTAGE[nth % 2] ?? null);
    for (const line of lines) arrived.add(line);
    return null;
  });
  const agenda = createAgenda(rig.clock, SCHEDULES, () => 0);
  const key = { hasChanged: () => false, adopt: () => {} };
  try {
    const running = runDaemon({ ...sync, agenda, key, beside: [] }, stop.signal).catch(() => undefined);
    for (let h=0; h<72; h+=1) { await rig.clock.sleep(HOUR); if (h%6===0) console.error('H', h, Date.now()-t0, nth, rig.simulator.log.total); }
    const { store } = sync.context;
    const linesOf = (lane: 'live' | 'history') => store.read(lane, { block: 0, line: 0 }, NO_LIMIT).lines;
    const waiting = { live: linesOf('live'), history: linesOf('history') };
    isOver = true;
    await rig.clock.sleep(2 * HOUR);
    stop.abort();
    await running;
    console.error('TOOK', Date.now() - t0, rig.simulator.log.total, nth);
    return { events, requests: rig.simulator.log.total, arrived: [...arrived], waiting };
  } finally {
    stop.abort();
    sync.close();
    bench.proxy.setFaults(null);
  }
}

describe.runIf(influxdAvailable())('a database that is down for three days', () => {
  test('costs no request beyond the usual, and has everything once within two hours, live points first', async () => {
    using usual = await openRig(bench, { world, historyMs: DAY });
    const normal = await live(usual, false);
    using rig = await openRig(bench, { world, historyMs: DAY });
    const story = await live(rig, true);
    expect(story.requests).toBeLessThanOrEqual(normal.requests);
    expect(story.events.filter(({ type }) => type === 'destination-moving')).toHaveLength(1);
    expect(story.events.filter(({ type }) => type === 'lines-quarantined')).toEqual([]);

    const { live: lively, history } = story.waiting;
    expect([lively.length > 3000, history.length > 500]).toEqual([true, true]);
    // What waited in the live lane arrives in the order of the log, and before anything of the history.
    expect(story.arrived.slice(0, lively.length)).toEqual([...new Set(lively)]);
    const rank = new Map(story.arrived.map((line, index) => [line, index]));
    expect(history.every((line) => (rank.get(line) ?? -1) >= lively.length)).toBe(true);

    const verdict = await rig.verdict(NOW_MS + 3 * DAY + HOUR, {
      fromNs: BigInt(NOW_MS - DAY + HOUR) * 1_000_000n,
      toNs: BigInt(NOW_MS + 3 * DAY + HOUR) * 1_000_000n,
    });
    expect([verdict.missing.slice(0, 3), verdict.invented.slice(0, 3)]).toEqual([[], []]);
    expect(verdict.expected).toBeGreaterThan(3000);
  }, 120_000);
});
