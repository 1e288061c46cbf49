/**
 * The main promise, whole program: after `--once`, a real InfluxDB has exactly the seed, in every variant that the API
 * document allows, and the output names what could not be read.
 */
import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../src/core/time.ts';
import { createLogger, logEvents } from '../../../src/observe/log.ts';
import type { SettingsOverrides } from '../../../src/sim/settings.ts';
import type { World } from '../../../src/sim/world.ts';
import { atRate, betweenTimes } from '../../support/faults.ts';
import type { Fault, FaultPlan } from '../../support/faulty-simulator.ts';
import { influxdAvailable } from '../../support/influxd.ts';
import { mistakesOfLine } from '../../support/log-lines.ts';
import { NOW_MS, openBench, openRig, type Rig, type RigOptions } from '../../support/rig.ts';
import { createSeededWorld } from '../../support/seeded-world.ts';
import { sharedBench } from '../../support/shared-bench.ts';
import { createWorld, type DeviceSpec } from '../../support/trait-world.ts';

const bench = sharedBench(openBench);

/** Small, and with every difficulty: on the grid, between seconds, tied, in bursts, dense, silent, empty. */
function hardWorld(precision: World['precision'] = 'ms'): (nowMs: number) => World {
  return () => hardWorlds[precision];
}

function createHardWorld(precision: World['precision']): World {
  const devices: DeviceSpec[] = [
    { deviceId: 'grid', intervalMs: MINUTE_MS, jitter: 0 },
    { deviceId: 'tied', intervalMs: 2 * MINUTE_MS, traits: ['ties'] },
    { deviceId: 'burst', intervalMs: 5 * MINUTE_MS, traits: ['burst'], burst: { every: 60, size: 230 } },
    { deviceId: 'fast', intervalMs: 10 * SECOND_MS, jitter: 0.9 },
    { deviceId: 'none', appearsAtMs: NOW_MS - MINUTE_MS, intervalMs: DAY_MS },
  ];
  return createWorld({ seed: 7, originMs: NOW_MS, historyMs: 8 * HOUR_MS, devices, precision });
}

/** They never change, and what the judge has made of them is there for the next test as well. */
const hardWorlds = {
  s: createHardWorld('s'),
  ms: createHardWorld('ms'),
  us: createHardWorld('us'),
  ns: createHardWorld('ns'),
};

/** The wanted range is counted from the first answer: faults may delay that by minutes. */
const FROM_NS = BigInt(NOW_MS - 3 * HOUR_MS + 5 * MINUTE_MS) * 1_000_000n;

async function expectExact(rig: Rig, least: number, claim: { fromNs?: bigint } = {}): Promise<void> {
  const verdict = await rig.verdict(NOW_MS, claim);
  const few = { missing: verdict.missing.slice(0, 5), invented: verdict.invented.slice(0, 5) };
  expect(few, `${verdict.missing.length} missing, ${verdict.invented.length} invented`).toEqual({
    missing: [],
    invented: [],
  });
  expect(verdict.expected).toBeGreaterThan(least);
}

async function runExactly(options: RigOptions, least: number, claim: { fromNs?: bigint } = {}): Promise<void> {
  using rig = await openRig(bench, options);
  const { summary } = await rig.once();
  expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0, gaps: [] });
  await expectExact(rig, least, claim);
}

const WINDOWS = ['fixed', 'first-request', 'sliding', 'bucket'] as const;
const PRECISIONS = ['s', 'ms', 'us', 'ns'] as const;
const HEADERS = ['minute', 'day', 'tightest'] as const;

const BOUNDS = (['inclusive', 'exclusive'] as const).flatMap((after) =>
  (['inclusive', 'exclusive'] as const).flatMap((before) =>
    (['exact', 'seconds'] as const).map((resolution) => ({ after, before, resolution })),
  ),
);

describe.runIf(influxdAvailable())('--once ends with exactly the seed', () => {
  test('in an ordinary workspace, each reading once', async () => {
    const world = (originMs: number): World =>
      createSeededWorld({
        seed: 1,
        originMs,
        historyMs: 4 * DAY_MS,
        fleet: { devices: 6, intervalsMs: [MINUTE_MS, 5 * MINUTE_MS] },
      });
    await runExactly({ world, historyMs: 3 * DAY_MS }, 20_000);
  });

  test.each(BOUNDS)(
    'with after $after, before $before, compared $resolution, at every precision and every window kind',
    async (bounds) => {
      // A window kind for each precision, moved on by one from row to row: every pair of settings meets.
      const row = BOUNDS.indexOf(bounds);
      for (const [index, precision] of PRECISIONS.entries()) {
        const at = (index + row) % WINDOWS.length;
        const window = WINDOWS[at] ?? 'fixed';
        const headers = HEADERS[(index + at) % HEADERS.length] ?? 'minute';
        const settings: SettingsOverrides = { bounds, quota: { window, headers } };
        await runExactly({ world: hardWorld(precision), settings, historyMs: 3 * HOUR_MS }, 4000);
      }
    },
  );

  const SETTINGS: Record<string, SettingsOverrides> = {
    'a server clock an hour ahead': { time: { offsetMs: HOUR_MS } },
    'a server clock an hour behind': { time: { offsetMs: -HOUR_MS } },
    'no Date at all': { time: { date: 'absent' } },
    'readings that become visible up to a minute late': { lateness: { share: 0.3, maxMs: MINUTE_MS, devices: null } },
    'bounds only in whole seconds with Z': { bounds: { formats: 'utc-seconds' } },
    'requests without before refused': { bounds: { rejectedShapes: ['after'] } },
    'unknown members and missing fields': { surprises: { unknownMembers: 0.3, missingFields: 0.3 } },
    'windows of one day at most': { plan: { historyMaxDays: 1 } },
    'pages of seven': { plan: { maxDevicesPerPage: 7 } },
    'cursors that do not bear a changed parameter': { paging: { cursorParameters: 'checked' } },
    'slow answers': { time: { latencyMs: { min: 200, max: 5000 } } },
  };
  test.each(Object.keys(SETTINGS))('with %s', async (name) => {
    const settings = SETTINGS[name] ?? {};
    await runExactly({ world: hardWorld(), settings, historyMs: 3 * HOUR_MS }, 4000);
  });

  const FAULTS: Record<string, Fault> = {
    'a 500': { kind: 'server-error' },
    'an HTML 502': { kind: 'html' },
    'a reset before the headers': { kind: 'reset', when: 'before-headers' },
    'a reset after the headers': { kind: 'reset', when: 'after-headers' },
    'a reset in the body': { kind: 'reset', when: 'in-body' },
    'truncated JSON with 200': { kind: 'truncated' },
    'malformed JSON with 200': { kind: 'malformed' },
    'a slow answer': { kind: 'slow', delayMs: 20 * SECOND_MS },
    'a hanging request': { kind: 'hang' },
    'an empty body': { kind: 'empty' },
  };
  test.each(Object.keys(FAULTS))('when one request in five meets %s', async (name) => {
    const fault = FAULTS[name];
    if (fault === undefined) throw new Error(name);
    const faults = atRate(0.2, [fault], 11);
    await runExactly({ world: hardWorld(), faults, historyMs: 3 * HOUR_MS }, 4000, { fromNs: FROM_NS });
  });

  test('with all of these faults at once, on three requests in ten', async () => {
    const faults = atRate(0.3, Object.values(FAULTS), 5);
    await runExactly({ world: hardWorld(), faults, historyMs: 3 * HOUR_MS }, 4000, { fromNs: FROM_NS });
  });

  test('with hostile sensor names, odd values and readings without any', async () => {
    const devices: DeviceSpec[] = [
      { deviceId: 'a,b=c d', name: 'comma, "quote" \\', intervalMs: 5 * MINUTE_MS, traits: ['hostile'] },
      { deviceId: 'odd/../?#%', intervalMs: 5 * MINUTE_MS, traits: ['oddValues'] },
      { deviceId: 'é🌡️', intervalMs: 5 * MINUTE_MS, traits: ['empty'] },
    ];
    const world = (originMs: number): World =>
      createWorld({ seed: 3, originMs, historyMs: 2 * DAY_MS, devices, precision: 'us' });
    using rig = await openRig(bench, { world, historyMs: DAY_MS });
    const { summary, events } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0, gaps: [] });
    // The numbers that no double holds are in quarantine, which is reported, and nothing was refused by the database.
    expect(summary.rejected_records).toBeGreaterThan(0);
    const dropped = events.filter((event) => event.type === 'values-dropped');
    expect(new Set(dropped.map(({ deviceId, reason }) => `${deviceId}: ${reason}`))).toEqual(
      new Set(['odd/../?#%: not a finite number']),
    );
    expect(dropped.reduce((sum, { count }) => sum + count, 0)).toBeGreaterThanOrEqual(summary.rejected_records);
    expect(summary.destinations[0]).toMatchObject({ pending_points: 0, quarantined: 0 });
    await expectExact(rig, 2000);
  });

  test('and reports an API that is down for a while once, with its remedy', async () => {
    const upMs = NOW_MS + 8 * MINUTE_MS;
    const faults: FaultPlan = (_number, { atMs }) => (atMs < upMs ? { kind: 'server-error' } : null);
    using rig = await openRig(bench, { world: hardWorld(), faults, historyMs: 3 * HOUR_MS });
    const written: string[] = [];
    const stream = { write: (text: string) => written.push(text) };
    const logger = createLogger({ level: 'info', format: 'json', secrets: [], clock: rig.clock, stream });
    const { summary, events } = await rig.once({ observe: logEvents(logger, rig.clock) });
    expect(summary).toMatchObject({ outcome: 'complete' });
    expect(events.filter(({ type }) => type === 'api-outage').length).toBeGreaterThan(2);
    expect(events.filter(({ type }) => type === 'api-recovered')).toHaveLength(1);
    expect(written.flatMap(mistakesOfLine)).toEqual([]);
    const lines = written.map((text) => JSON.parse(text)).filter(({ event }) => event.startsWith('api-'));
    expect(lines.map(({ event }) => event)).toEqual(['api-outage', 'api-recovered']);
    expect(lines[1].problem_lines_suppressed).toBeGreaterThan(1);
  });

  test.each([0, 2 * SECOND_MS])(
    'of an API that is back just within ten minutes, down from %i ms on',
    async (fromMs) => {
      const faults = betweenTimes(NOW_MS + fromMs, NOW_MS + fromMs + 9.8 * MINUTE_MS, { kind: 'server-error' });
      using rig = await openRig(bench, { world: hardWorld(), faults, historyMs: 3 * HOUR_MS });
      const { summary, events } = await rig.once();
      expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0, gaps: [] });
      const waits = events.flatMap((event) => (event.type === 'api-outage' ? [event.waitMs] : []));
      expect(waits.length).toBeGreaterThan(8);
      expect(Math.max(...waits)).toBeLessThanOrEqual(MINUTE_MS);
    },
  );

  test('and reads the alerts once, also where the server’s time falls back meanwhile', async () => {
    using rig = await openRig(bench, {
      world: (originMs) => {
        const devices: DeviceSpec[] = [{ deviceId: 'often', intervalMs: 10 * SECOND_MS }];
        return createWorld({ seed: 5, originMs, historyMs: DAY_MS, devices });
      },
      settings: { plan: { requestsPerMinute: 10, requestsPerDay: 10_000, maxDevicesPerPage: 40 } },
      historyMs: 0.6 * DAY_MS,
    });
    // The fall is accepted ten minutes later.
    const fallen = rig.clock.sleep(5 * SECOND_MS).then(() => {
      rig.simulator.settings.time.offsetMs = -MINUTE_MS;
    });
    const { summary } = await rig.once();
    await fallen;
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0 });
    expect(rig.clock.monoMs()).toBeGreaterThan(12 * MINUTE_MS);
    expect(rig.simulator.log.requests.filter(({ path }) => path === '/alerts')).toHaveLength(1);
  });

  test('a second run brings only new readings, and nothing twice', async () => {
    using rig = await openRig(bench, { world: hardWorld(), historyMs: 3 * HOUR_MS });
    await rig.once();
    const before = rig.simulator.log.total;
    const again = await rig.once();
    expect(again.summary).toMatchObject({ outcome: 'complete', exit_code: 0 });
    // Account and devices, and one page of each device that has a gap.
    expect(rig.simulator.log.total - before).toBeLessThanOrEqual(2 + 2 * 5);
    await expectExact(rig, 4000);
    await rig.clock.sleep(HOUR_MS);
    const startedMs = rig.clock.nowMs();
    await rig.once();
    const verdict = await rig.verdict(startedMs, { fromNs: BigInt(NOW_MS - 3 * HOUR_MS + SECOND_MS) * 1_000_000n });
    expect([verdict.missing, verdict.invented]).toEqual([[], []]);
  });
});
