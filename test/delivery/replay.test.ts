/**
 * Replays on the virtual clock: by the rules of delivery, at their pace, from wherever they were broken off.
 */
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { createReplayWorker, openReplays, RATE_BESIDE, requireDestination } from '../../src/commands/replay/job.ts';
import type { AppEvent } from '../../src/core/events.ts';
import type { Sink, WriteAnswer } from '../../src/core/ports.ts';
import type { ReplayArgs } from '../../src/core/state/job-args.ts';
import { OTHER_VERSION_REMEDY } from '../../src/core/state/job-args.ts';
import { JOB_RULES } from '../../src/core/state/jobs.ts';
import { NO_COUNTS, type ReplaySummary } from '../../src/core/state/replay.ts';
import { DAY_MS, MINUTE_MS } from '../../src/core/time.ts';
import { createDeliverer, type Deliverer } from '../../src/delivery/deliver.ts';
import { pageCommit, readAll, type ScratchStore, scratchStore } from '../store/support.ts';
import { replayArgs } from '../support/defaults.ts';
import { seededRandom } from '../support/rig.ts';
import { createVirtualClock, type VirtualClock } from '../support/virtual-clock.ts';

const START_MS = 1_700_000_000_000;
const BASE = BigInt(START_MS) * 1_000_000n;

const ACCEPTED: WriteAnswer = { kind: 'accepted' };
const reading = (device: string, nth: number): string =>
  `telemetry,device_id=${device},sensor=s value=${nth} ${BASE - BigInt(nth) * 60_000_000_000n}`;

interface Written {
  readonly lines: readonly string[];
  readonly atMs: number;
}

/** A database that records its lines, and answers as configured. */
function database(clock: VirtualClock, answer: (lines: readonly string[]) => WriteAnswer = () => ACCEPTED) {
  const writes: Written[] = [];
  const sink: Sink = {
    name: 'influx',
    write: (lines, signal) => {
      signal.throwIfAborted();
      const said = answer(lines);
      if (said.kind === 'accepted') writes.push({ lines, atMs: clock.monoMs() });
      return Promise.resolve(said);
    },
  };
  return { sink, writes, lines: () => writes.flatMap((write) => write.lines) };
}

/** A state with readings of some devices, all of it delivered. */
function filledState(devices = ['a', 'b', 'c'], count = 100): ScratchStore {
  const state = scratchStore({ nowMs: () => START_MS });
  for (const deviceId of devices) {
    for (let page = 0; page < count; page += 20) {
      const lines = Array.from({ length: 20 }, (_, nth) => reading(deviceId, page + nth));
      const { revision } = state.store.telemetry(deviceId);
      const [firstNs, lastNs] = [lines.length - 1, 0].map((nth) => BigInt((lines[nth] ?? '').split(' ').at(-1) ?? ''));
      state.store.commitPage(
        pageCommit({ deviceId, revision, lines, firstNs: firstNs ?? null, lastNs: lastNs ?? null }),
      );
    }
  }
  state.store.append([`workspace,workspace_id=w devices=3 ${BASE}`], 'live');
  return state;
}

function settleAll({ store }: ScratchStore, destinationId: number): void {
  for (const lane of ['live', 'history'] as const) {
    const from = store.position(destinationId, lane);
    store.acknowledge({ destinationId, lane, from, to: store.endOf(lane), rejected: [], missing: [], atMs: 1 });
  }
}

interface Life {
  readonly clock: VirtualClock;
  readonly deliverer: Deliverer;
  readonly events: readonly AppEvent[];
  run(asked?: ReplayArgs, options?: { signal?: AbortSignal; isBeside?: boolean }): Promise<ReplaySummary>;
}

function lifeOf(state: ScratchStore, make: (clock: VirtualClock) => Sink, clock = createVirtualClock(START_MS)): Life {
  const events: AppEvent[] = [];
  const observe = (event: AppEvent): void => void events.push(event);
  const parts = { store: state.store, clock, random: seededRandom(1), observe };
  const deliverer = createDeliverer(parts, { sink: make(clock), identity: 'here', batchLines: 50 });
  settleAll(state, deliverer.destinationId);
  return {
    clock,
    deliverer,
    events,
    run: async (asked = replayArgs(), { signal = new AbortController().signal, isBeside = false } = {}) =>
      await openReplays({ ...parts, deliverers: [deliverer], isBeside }, asked).run(signal),
  };
}

const archived = (state: ScratchStore): string[] =>
  [...readAll(state, 'live').lines, ...readAll(state, 'history').lines].toSorted();

describe('a replay', () => {
  test('sends every archived line once and leaves nothing behind', async () => {
    using state = filledState();
    const clock = createVirtualClock(START_MS);
    const db = database(clock);
    const life = lifeOf(state, () => db.sink, clock);
    const summary = await life.run();
    expect(db.lines().toSorted()).toEqual(archived(state));
    expect(summary).toMatchObject({
      outcome: 'complete',
      exit_code: 0,
      destinations: [{ name: 'influx', lines: 301, accepted: 301, refused: 0, known: 0, beyond: 0, resumed: false }],
    });
    expect(state.store.replays.unfinished(life.deliverer.destinationId)).toBeNull();
    expect(life.events.map(({ type }) => type).slice(-2)).toEqual(['replay-started', 'replay-ended']);
  });

  test('accepts a range and named devices', async () => {
    using state = filledState();
    const clock = createVirtualClock(START_MS);
    const db = database(clock);
    const life = lifeOf(state, () => db.sink, clock);
    const [from, to] = [BASE - 30n * 60_000_000_000n, BASE - 10n * 60_000_000_000n];
    await life.run(replayArgs({ devices: ['b'], from: String(from), to: String(to) }));
    expect(db.lines()).toEqual(Array.from({ length: 20 }, (_, nth) => reading('b', 30 - nth)));
  });

  test('keeps to its rate, evenly, and is as fast as that', async () => {
    using state = filledState();
    const clock = createVirtualClock(START_MS);
    const db = database(clock);
    const life = lifeOf(state, () => db.sink, clock);
    await life.run(replayArgs({ maxRate: 25 }));
    expect(clock.monoMs()).toBeGreaterThanOrEqual(11_000);
    expect(clock.monoMs()).toBeLessThan(14_000);
    for (const { atMs } of db.writes) {
      const within = db.writes.filter((write) => write.atMs >= atMs && write.atMs < atMs + 1000);
      expect(within.reduce((sum, { lines }) => sum + lines.length, 0)).toBeLessThanOrEqual(25 + 7);
    }
  });

  test('beside a daemon has a rate of its own, and lets live points go first', async () => {
    expect(RATE_BESIDE).toBe(20_000);
    using state = filledState();
    const clock = createVirtualClock(START_MS);
    const db = database(clock);
    const life = lifeOf(state, () => db.sink, clock);
    state.store.append([`workspace,workspace_id=w devices=4 ${BASE + 1n}`], 'live');
    const stop = new AbortController();
    const running = life.run(replayArgs({ maxRate: 100 }), { isBeside: true });
    await clock.sleep(500);
    expect(db.lines(), 'it waits for what is live').toEqual([]);
    const delivering = life.deliverer.run(stop.signal).catch(() => undefined);
    await running;
    stop.abort();
    await delivering;
    expect(db.writes[0]?.lines).toEqual([`workspace,workspace_id=w devices=4 ${BASE + 1n}`]);
    expect(new Set(db.lines()).size).toBe(302);
  });

  test('is not blocked for ever by a delivery that does not end', async () => {
    using state = filledState();
    const clock = createVirtualClock(START_MS);
    const db = database(clock);
    const life = lifeOf(state, () => db.sink, clock);
    state.store.append([`workspace,workspace_id=w devices=4 ${BASE + 1n}`], 'live');
    const summary = await life.run(replayArgs({ maxRate: 100 }), { isBeside: true });
    expect(summary.outcome).toBe('complete');
    expect(clock.monoMs()).toBeLessThan(20_000);
  });
});

test('a replay that stalls before the corrected count of an hour counts its lines once', async () => {
  using state = filledState(['a'], 20);
  const count = (readings: number): string =>
    `coverage_hour,device_id=a,device_name=a,workspace_id=w readings=${readings} ${BASE}`;
  const commitCount = (readings: number): void => {
    const { revision } = state.store.telemetry('a');
    state.store.commitPage(pageCommit({ deviceId: 'a', revision, sideLines: [count(readings)] }));
  };
  commitCount(4);
  const clock = createVirtualClock(START_MS);
  let isCorrected = false;
  let isBusy = true;
  const db = database(clock, (lines) => {
    if (isBusy && lines.includes(count(6))) return { kind: 'later', message: 'busy', waitMs: null };
    if (!isCorrected) commitCount(6);
    isCorrected = true;
    return ACCEPTED;
  });
  const life = lifeOf(state, () => db.sink, clock);
  expect(await life.run()).toMatchObject({ outcome: 'stalled', exit_code: 3 });
  isBusy = false;
  expect(await life.run()).toMatchObject({ outcome: 'complete', destinations: [{ lines: 22, accepted: 22 }] });
  expect(db.lines().at(-1)).toBe(count(6));
});

test('the count of an hour that is corrected while a replay sends it comes last', async () => {
  using state = filledState(['a'], 20);
  const hour = BASE - (BASE % 3_600_000_000_000n);
  const count = (readings: number): string =>
    `coverage_hour,device_id=a,device_name=a,workspace_id=w readings=${readings} ${hour}`;
  const commitCount = (readings: number): void => {
    const { revision } = state.store.telemetry('a');
    state.store.commitPage(pageCommit({ deviceId: 'a', revision, sideLines: [count(readings)] }));
  };
  commitCount(4);
  const clock = createVirtualClock(START_MS);
  let isRefused = false;
  const db = database(clock, (lines) => {
    if (isRefused || !lines.includes(count(4))) return ACCEPTED;
    isRefused = true;
    commitCount(6);
    life.deliverer.notify();
    return { kind: 'later', message: 'busy', waitMs: null };
  });
  const life = lifeOf(state, () => db.sink, clock);
  const stop = new AbortController();
  const delivering = life.deliverer.run(stop.signal).catch(() => undefined);
  expect(await life.run(replayArgs(), { isBeside: true })).toMatchObject({
    outcome: 'complete',
    destinations: [{ lines: 22, accepted: 22 }],
  });
  stop.abort();
  await delivering;
  const sent = db.lines().filter((line) => line.startsWith('coverage_hour'));
  expect(sent).toEqual([count(6), count(4), count(6)]);
});

describe('a line that a destination refuses', () => {
  test('is quarantined by the rules of delivery: new, known, and released once it is accepted', async () => {
    using state = filledState();
    const clock = createVirtualClock(START_MS);
    const bad = new Set([reading('a', 5), reading('b', 7)]);
    const refused: WriteAnswer = { kind: 'rejected', message: 'HTTP 400: no', retention: false };
    const db = database(clock, (lines) => (lines.some((line) => bad.has(line)) ? refused : ACCEPTED));
    const life = lifeOf(state, () => db.sink, clock);
    const { destinationId } = life.deliverer;
    const quarantined = (): string[] => [...(state.store.replays.quarantined(destinationId, 9) ?? [])].toSorted();
    expect((await life.run()).destinations).toMatchObject([{ lines: 301, accepted: 299, refused: 2, known: 0 }]);
    expect(quarantined()).toEqual([...bad].toSorted());
    expect((await life.run()).destinations).toMatchObject([{ lines: 301, accepted: 299, refused: 0, known: 2 }]);
    bad.delete(reading('a', 5));
    expect((await life.run()).destinations).toMatchObject([{ accepted: 300, known: 1, released: 1 }]);
    expect(quarantined()).toEqual([reading('b', 7)]);
  });

  test('ends with 3 after ten minutes in which the destination accepts nothing, and can be continued', async () => {
    using state = filledState();
    const clock = createVirtualClock(START_MS);
    let writes = 0;
    const held: WriteAnswer = { kind: 'blocked', message: 'HTTP 401: who are you', hint: 'influx.token' };
    const db = database(clock, () => {
      writes += 1;
      return writes <= 1 ? ACCEPTED : held;
    });
    const life = lifeOf(state, () => db.sink, clock);
    const asked = replayArgs({ maxRate: 120 });
    const summary = await life.run(asked);
    expect(summary).toMatchObject({
      outcome: 'stalled',
      exit_code: 3,
      destinations: [{ blocked_reason: 'HTTP 401: who are you; influx.token' }],
    });
    expect(clock.monoMs()).toBeGreaterThan(10 * MINUTE_MS);
    expect(clock.monoMs()).toBeLessThan(13 * MINUTE_MS);
    writes = Number.NEGATIVE_INFINITY;
    expect(await life.run(asked)).toMatchObject({ outcome: 'complete', destinations: [{ resumed: true }] });
    expect([...new Set(db.lines())].toSorted()).toEqual(archived(state));
  });

  test('for its age is a missing point, once, and no longer once it is accepted', async () => {
    using state = filledState();
    const clock = createVirtualClock(START_MS + 2 * DAY_MS);
    let oldestKept = BASE - 50n * 60_000_000_000n;
    const timeOf = (line: string): bigint => BigInt(line.slice(line.lastIndexOf(' ') + 1));
    const db = database(clock, (lines) => {
      const dropped = lines.filter((line) => timeOf(line) < oldestKept).length;
      return dropped === 0 ? ACCEPTED : { kind: 'rejected', message: 'beyond_retention', retention: true, dropped };
    });
    const life = lifeOf(state, () => db.sink, clock);
    const { destinationId } = life.deliverer;
    const lacking = (): [string, number][] =>
      state.store.missing(destinationId).map(({ deviceId, points }): [string, number] => [deviceId, points]);
    for (let time = 0; time < 2; time += 1) {
      expect((await life.run()).destinations).toMatchObject([{ beyond: 147, accepted: 154, refused: 0 }]);
      expect(lacking()).toEqual([
        ['a', 49],
        ['b', 49],
        ['c', 49],
      ]);
    }
    oldestKept = 0n;
    await life.run(replayArgs({ devices: ['b'] }));
    expect(lacking().map(([id]) => id)).toEqual(['a', 'c']);
    // Half of a range leaves the other half.
    const half = String(BASE - 75n * 60_000_000_000n);
    await life.run(replayArgs({ devices: ['c'], from: half }));
    expect(state.store.missing(destinationId)).toMatchObject([
      { deviceId: 'a' },
      { deviceId: 'c', toNs: BigInt(half) },
    ]);
  });

  test('of facts in shared blocks stays missing when all other lines of the device are accepted', async () => {
    using state = filledState(['a']);
    const fact = `device,device_id=a online=1 ${BASE - 200n * 60_000_000_000n}`;
    // Enough lines of no device, so that the lines of the device are a separate load.
    const others = Array.from(
      { length: 30 },
      (_, nth) => `workspace,workspace_id=w devices=1 ${BASE - BigInt(nth + 1)}`,
    );
    state.store.append([fact, ...others], 'live');
    const clock = createVirtualClock(START_MS + 2 * DAY_MS);
    let oldestKept = BASE - 150n * 60_000_000_000n;
    const stop = new AbortController();
    const timeOf = (line: string): bigint => BigInt(line.slice(line.lastIndexOf(' ') + 1));
    const db = database(clock, (lines) => {
      const dropped = lines.filter((line) => timeOf(line) < oldestKept).length;
      if (dropped === 0 && lines.some((line) => line.startsWith('telemetry,'))) stop.abort(new Error('stopped'));
      return dropped === 0 ? ACCEPTED : { kind: 'rejected', message: 'beyond_retention', retention: true, dropped };
    });
    const life = lifeOf(state, () => db.sink, clock);
    const { destinationId } = life.deliverer;
    const lacking = () => state.store.missing(destinationId);
    const asked = replayArgs({ maxRate: 50 });
    // Interrupted and continued: points that were too old are still recorded.
    await life.run(asked, { signal: stop.signal });
    expect(await life.run(asked)).toMatchObject({ outcome: 'complete', destinations: [{ resumed: true, beyond: 1 }] });
    expect(lacking()).toMatchObject([{ deviceId: 'a', fromNs: timeOf(fact), points: 1 }]);
    oldestKept = 0n;
    await life.run();
    expect(db.lines()).toContain(fact);
    expect(lacking()).toEqual([]);
  });

  test('of a device that is forgotten meanwhile leaves nothing of it in the state', async () => {
    using state = filledState();
    const { forgetting, quarantine } = state.store;
    const clock = createVirtualClock(START_MS + 2 * DAY_MS);
    const [bad, old] = [reading('b', 3), reading('b', 99)];
    let ids: readonly number[] = [];
    let isBegun = false;
    const db = database(clock, (lines) => {
      if (!isBegun) {
        isBegun = true;
        forgetting.begin('b', true);
        while (forgetting.step('b', ids).state === 'going-on');
      }
      if (lines.includes(bad)) return { kind: 'rejected', message: 'HTTP 400: no', retention: false };
      if (!lines.includes(old)) return ACCEPTED;
      return { kind: 'rejected', message: 'beyond_retention', retention: true, dropped: 1 };
    });
    const life = lifeOf(state, () => db.sink, clock);
    ids = [life.deliverer.destinationId];
    expect((await life.run()).outcome).toBe('complete');
    expect(db.lines()).toContain(reading('b', 50));
    expect(archived(state).filter((line) => line.includes('device_id=b'))).toEqual([]);
    expect(quarantine.page(0)).toEqual([]);
    expect(state.store.missing(life.deliverer.destinationId)).toEqual([]);
    const points = { deviceId: 'b', fromNs: 1n, toNs: 2n, points: 1 };
    state.store.amendMissing(life.deliverer.destinationId, { found: [], missed: [{ ...points, reason: 'cleared' }] });
    expect(state.store.missing(life.deliverer.destinationId)).toEqual([]);
  });

  test('stays missing if some of the range is no longer in the archive', async () => {
    using state = filledState(['a']);
    const clock = createVirtualClock(START_MS);
    const db = database(clock);
    const life = lifeOf(state, () => db.sink, clock);
    const { destinationId } = life.deliverer;
    const claims = { configured: [destinationId], active: [destinationId] };
    expect(state.maintenance.clear({ ...claims, beforeMs: START_MS + 1 }).blocks).toBeGreaterThan(0);
    const { revision } = state.store.telemetry('a');
    const at = BASE - 50n * 60_000_000_000n;
    state.store.commitPage(pageCommit({ deviceId: 'a', revision, lines: [reading('a', 50)], firstNs: at, lastNs: at }));
    const lack = { deviceId: 'a', fromNs: at - 5n, toNs: at + 5n, reason: 'beyond_retention', points: 1 } as const;
    const { store } = state;
    const from = store.position(destinationId, 'live');
    store.acknowledge({
      destinationId,
      lane: 'live',
      from,
      to: store.endOf('live'),
      rejected: [],
      missing: [lack],
      atMs: 1,
    });
    await life.run();
    expect(db.lines()).toContain(reading('a', 50));
    expect(state.store.missing(destinationId)).toHaveLength(1);
  });
});

describe('an interrupted replay', () => {
  test('after any number of writes continues without beginning anew, and misses nothing', async () => {
    for (let deaths = 1; deaths <= 6; deaths += 1) {
      using state = filledState();
      const clock = createVirtualClock(START_MS);
      const stop = new AbortController();
      let left = deaths;
      const db = database(clock, () => {
        left -= 1;
        if (left === 0) stop.abort(new Error('stopped'));
        return ACCEPTED;
      });
      const life = lifeOf(state, () => db.sink, clock);
      const asked = replayArgs({ maxRate: 50 });
      const first = await life.run(asked, { signal: stop.signal });
      expect(first).toMatchObject({ outcome: 'interrupted', exit_code: 3 });
      const sentBefore = db.lines().length;
      const second = await life.run(asked);
      expect(second).toMatchObject({ outcome: 'complete', destinations: [{ resumed: true }] });
      expect([...new Set(db.lines())].toSorted()).toEqual(archived(state));
      // A step that was not recorded is sent again, no more.
      expect(db.lines().length - 301).toBeLessThanOrEqual(Math.min(sentBefore, 150));
      expect(life.events.filter(({ type }) => type === 'replay-started')).toMatchObject([
        { resumedAfter: null },
        { resumedAfter: first.destinations[0]?.lines },
      ]);
    }
  });

  test.each([
    ['args', '{"typed":{}}'],
    ['position', '{"deviceId":"a","from":5,"tooOldTo":null}'],
    ['counts', '{"lines":1}'],
  ])('begins anew where another version has stored other %s', (column, text) => {
    using state = filledState();
    const clock = createVirtualClock(START_MS);
    const { deliverer } = lifeOf(state, () => database(clock).sink, clock);
    const { replays } = state.store;
    const position = { deviceId: null, from: -1n };
    const kept = { args: replayArgs(), position, counts: NO_COUNTS, tooOldTo: 2n, begunMs: START_MS };
    replays.save(deliverer.destinationId, kept);
    expect(replays.unfinished(deliverer.destinationId)).toEqual(kept);
    const db = new Database(state.file);
    db.prepare(`UPDATE replay SET ${column} = ?`).run(text);
    db.close();
    expect(replays.unfinished(deliverer.destinationId)).toBeNull();
  });

  test.each<[string, Partial<ReplayArgs>, number]>([
    ['other words', { typed: { from: '2d', to: null } }, 0],
    ['other devices', { devices: ['a', 'b'] }, 0],
    ['a week later', {}, 8 * DAY_MS],
  ])('begins anew with %s', async (_what, changes, laterMs) => {
    using state = filledState();
    const clock = createVirtualClock(START_MS);
    const stop = new AbortController();
    const db = database(clock, () => {
      stop.abort(new Error('stopped'));
      return ACCEPTED;
    });
    const life = lifeOf(state, () => db.sink, clock);
    await life.run(replayArgs({ maxRate: 50 }), { signal: stop.signal });
    await clock.sleep(laterMs);
    const again = await life.run(replayArgs({ maxRate: 200, ...changes }));
    expect(again).toMatchObject({ outcome: 'complete', destinations: [{ resumed: false }] });
  });

  test('continues with the range that its arguments meant at first', async () => {
    using state = filledState();
    const clock = createVirtualClock(START_MS);
    const stop = new AbortController();
    const db = database(clock, () => {
      stop.abort(new Error('stopped'));
      return ACCEPTED;
    });
    const life = lifeOf(state, () => db.sink, clock);
    const typed = { from: '60m', to: null };
    const from = (ms: number): string => String(BigInt(START_MS - 60 * MINUTE_MS + ms) * 1_000_000n);
    await life.run(replayArgs({ typed, from: from(0), maxRate: 20 }), { signal: stop.signal });
    await life.run(replayArgs({ typed, from: from(30 * MINUTE_MS) }));
    expect(db.lines()).toContain(reading('c', 60));
    expect(db.lines()).not.toContain(reading('c', 61));
  });
});

describe('arguments', () => {
  test('as a job are checked: another version may have left them', () => {
    const { takes } = JOB_RULES.replay;
    expect(takes(JSON.parse(JSON.stringify(replayArgs({ maxRate: 5, devices: ['a'] }))))).toBe(true);
    const all = replayArgs();
    for (const wrong of [null, {}, { ...all, from: 5 }, { ...all, devices: 'a' }, { ...all, maxRate: 0 }]) {
      expect(takes(wrong)).toBe(false);
    }
  });

  test('that are not understood fail with what to do, and with no internal error', async () => {
    const { end } = createReplayWorker({} as never)(null, new AbortController().signal);
    await expect(end).rejects.toMatchObject({
      name: 'UserError',
      exitCode: 3,
      message: expect.stringContaining(OTHER_VERSION_REMEDY),
    });
  });

  test('a destination that is not there is refused, with the one that was probably meant', () => {
    expect(() => requireDestination(['influx', 'second'], 'secnod')).toThrow(/Did you mean second\?/);
    expect(() => requireDestination(['influx', 'second'], 'xyzxyz')).toThrow(/There is influx, second\./);
    expect(() => requireDestination([], null)).toThrow(/No database is configured/);
  });
});
