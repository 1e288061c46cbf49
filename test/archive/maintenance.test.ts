/**
 * Maintenance over virtual weeks: real SQLite, a virtual clock, destinations that accept the points that the test
 * chooses.
 */
import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { type MaintenanceParts, maintainOnce, runMaintenance } from '../../src/archive/maintenance.ts';
import { createSpaceWatch } from '../../src/archive/room.ts';
import { StateFullError } from '../../src/core/archive-room.ts';
import type { AppEvent } from '../../src/core/events.ts';
import type { Disk } from '../../src/core/ports.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import { NO_LIMIT, type ScratchStore, scratchStore } from '../store/support.ts';
import { createVirtualClock } from '../support/virtual-clock.ts';

const MIB = 1024 * 1024;
const START_MS = Date.UTC(2026, 5, 1, 1);

interface House extends Disposable {
  readonly state: ScratchStore;
  readonly parts: MaintenanceParts;
  readonly events: AppEvent[];
  /** The free space of the disk. */
  disk: { freeBytes: number | null };
  /** Opens a destination and configures it. */
  open(name: string): number;
  /** Lets virtual time pass, every hour something happen, and the house be kept. */
  pass(ms: number, hourly?: () => void): Promise<void>;
  /** Lets virtual time pass with the loop under way. */
  run(ms: number): Promise<void>;
  types(): string[];
}

function house({
  retentionMs = 30 * DAY_MS,
  maxBytes = null,
}: {
  retentionMs?: number;
  maxBytes?: number | null;
} = {}): House {
  const clock = createVirtualClock(START_MS);
  const state = scratchStore({ nowMs: clock.nowMs, maxBytes });
  const events: AppEvent[] = [];
  const observe = (event: AppEvent): void => void events.push(event);
  const free = { freeBytes: null as number | null };
  const disk: Disk = { directory: '/data', freeBytes: () => free.freeBytes };
  const limits = { maxBytes, minFreeBytes: 256 * MIB };
  const space = createSpaceWatch({ maintenance: state.maintenance, disk, clock, observe, limits });
  const destinations: { destinationId: number; name: string }[] = [];
  const parts: MaintenanceParts = {
    store: state.store,
    maintenance: state.maintenance,
    space,
    destinations: () => destinations,
    limits: { retentionMs, maxBytes },
    clock,
    observe,
    mayBegin: async () => {},
  };
  return {
    state,
    parts,
    events,
    disk: free,
    open: (name) => {
      const { id } = state.store.useDestination(name, name);
      destinations.push({ destinationId: id, name });
      return id;
    },
    pass: async (ms, hourly) => {
      for (let passed = 0; passed < ms; passed += HOUR_MS) {
        hourly?.();
        await clock.sleep(HOUR_MS);
        await maintainOnce(parts, new AbortController().signal);
      }
    },
    run: async (ms) => {
      const stop = new AbortController();
      const running = runMaintenance(parts, stop.signal);
      await clock.sleep(ms);
      stop.abort();
      await running;
    },
    types: () => events.map(({ type }) => type).filter((type) => type !== 'archive-cleared'),
    [Symbol.dispose]: () => state[Symbol.dispose](),
  };
}

let made = 0;

/** Appends lines that hardly compress. */
function append({ state }: House, count = 10): string[] {
  const lines = Array.from({ length: count }, () => {
    made += 1;
    return `telemetryless v=${Math.sin(made)}${Math.cos(made * 7)} ${made}`;
  });
  state.store.append(lines, made % 2 === 0 ? 'live' : 'history');
  return lines;
}

/** Appends lines of so many bytes together, few and long: what counts is the room that they take. */
function appendBytes({ state }: House, bytes: number): void {
  const text = randomBytes(bytes).toString('base64');
  const parts = text.match(/.{1,1000}/g) ?? [];
  made += parts.length;
  state.store.append(
    parts.map((part, n) => `telemetryless v="${part}" ${made + n}`),
    made % 2 === 0 ? 'live' : 'history',
  );
}

function deliverAll({ state: { store } }: House, id: number): string[] {
  return (['live', 'history'] as const).flatMap((lane) => {
    const from = store.position(id, lane);
    const batch = store.read(lane, from, NO_LIMIT);
    const last = batch.segments.at(-1);
    if (last === undefined) return [];
    const to = { block: last.block + 1, line: 0 };
    store.acknowledge({ destinationId: id, lane, from, to, rejected: [], missing: [], atMs: 1 });
    return [...batch.lines];
  });
}

describe('acknowledged blocks', () => {
  test('is compacted after its day and gone after archive.retention, and newer pages are untouched', async () => {
    using it = house({ retentionMs: 5 * DAY_MS });
    const id = it.open('influx');
    await it.pass(10 * DAY_MS, () => {
      append(it);
      deliverAll(it, id);
    });
    const days = it.state.rows(
      'SELECT count(*) AS blocks, at_ms / 86400000 AS day FROM block GROUP BY day ORDER BY day',
    ) as { blocks: number; day: number }[];
    // Five complete days and the two at the ends; the days that are over have a block in each lane.
    expect(days.length).toBeGreaterThanOrEqual(5);
    expect(days.length).toBeLessThanOrEqual(7);
    for (const { blocks } of days.slice(0, -1)) expect(blocks).toBeLessThanOrEqual(2);
    expect(it.state.store.missing(id)).toEqual([]);
    expect(it.types()).toEqual([]);
  });

  test('is kept for ever without a database, and that is reported at the start', async () => {
    using it = house({ retentionMs: DAY_MS, maxBytes: 64 * MIB });
    const all: string[] = [];
    await it.run(MINUTE_MS);
    expect(it.events).toEqual([{ type: 'archive-only', maxBytes: 64 * MIB }]);
    it.events.length = 0;
    await it.pass(5 * DAY_MS, () => void all.push(...append(it)));
    const id = it.open('later');
    await it.run(MINUTE_MS);
    expect(it.types()).toEqual([]);
    expect(deliverAll(it, id).toSorted()).toEqual(all.toSorted());
  });
});

describe('a destination that accepts nothing', () => {
  test('is skipped after archive.retention while another moves: the waiting points are missing there', async () => {
    using it = house({ retentionMs: 3 * DAY_MS });
    const [dead, alive] = [it.open('dead'), it.open('alive')];
    const all: string[] = [];
    const hour = (): void => {
      all.push(...append(it));
      deliverAll(it, alive);
    };
    await it.pass(2 * DAY_MS, hour);
    expect(it.types(), 'not before').toEqual([]);
    await it.pass(2 * DAY_MS, hour);
    expect(it.types()).toEqual(['destination-skipped']);
    using longer = house({ retentionMs: 5 * DAY_MS });
    longer.open('dead');
    const moving = longer.open('alive');
    await longer.pass(4 * DAY_MS, () => {
      append(longer);
      deliverAll(longer, moving);
    });
    expect(longer.types(), 'with a longer archive.retention').toEqual([]);
    expect(it.state.store.backlog(dead).pendingLines).toBeLessThan(all.length / 2);
    await it.pass(6 * DAY_MS, hour);
    const received = deliverAll(it, dead);
    const lacks = it.state.store.missing(dead);
    expect(lacks.map(({ reason }) => reason)).toContain('skipped_destination');
    const isLacking = (line: string): boolean => {
      const at = BigInt(line.slice(line.lastIndexOf(' ') + 1));
      return lacks.some(({ fromNs, toNs }) => fromNs <= at && at < toNs);
    };
    expect(all.filter((line) => !received.includes(line) && !isLacking(line))).toEqual([]);
    expect(received.length, 'it still gets points newer than archive.retention').toBeGreaterThan(0);
    await it.pass(DAY_MS, () => {
      hour();
      deliverAll(it, dead);
    });
    expect(it.types()).toEqual(['destination-skipped']);
    expect(it.state.store.missing(dead)).toEqual(lacks);
    expect(it.state.store.backlog(dead).pendingLines).toBe(0);
  });

  test('is waited for where no other one moves, and while this program did not run', async () => {
    using it = house({ retentionMs: 3 * DAY_MS });
    const dead = it.open('dead');
    const all: string[] = [];
    await it.pass(10 * DAY_MS, () => void all.push(...append(it)));
    expect(deliverAll(it, dead)).toHaveLength(all.length);
    const other = it.open('other');
    deliverAll(it, other);
    append(it);
    await it.pass(HOUR_MS);
    // A month in which nothing runs.
    await it.parts.clock.sleep(30 * DAY_MS);
    await it.pass(HOUR_MS, () => {
      append(it);
      deliverAll(it, other);
    });
    expect(it.types()).toEqual([]);
    expect(it.state.store.missing(dead)).toEqual([]);
  });
});

describe('archive.max_size', () => {
  test('clears acknowledged blocks first, the oldest first, regardless of archive.retention: polling never stops', async () => {
    using it = house({ maxBytes: 4 * MIB });
    const id = it.open('influx');
    for (let n = 0; n < 150; n += 1) {
      expect(it.parts.space.check(), `round ${n}`).toEqual({ ok: true });
      append(it, 2000);
      deliverAll(it, id);
      await it.run(10 * SECOND_MS);
    }
    expect(it.state.maintenance.size().usedBytes).toBeLessThan(4 * MIB);
    expect(it.state.maintenance.size().usedBytes).toBeGreaterThan(3 * MIB);
    expect(it.types()).toEqual([]);
    const kept = it.state.rows('SELECT min(seq) AS oldest FROM block') as { oldest: number }[];
    expect(kept[0]?.oldest).toBeGreaterThan(50);
  });

  test('stops pulling where nothing may go, once; delivery makes room and it continues, once; nothing is lost', async () => {
    using it = house({ maxBytes: 4 * MIB });
    const id = it.open('influx');
    const all: string[] = [];
    const fill = async (): Promise<number> => {
      let pages = 0;
      while (it.parts.space.check().ok && pages < 500) {
        all.push(...append(it, 1000));
        pages += 1;
        await it.run(5 * SECOND_MS);
      }
      return pages;
    };
    expect(await fill()).toBeGreaterThan(20);
    expect(it.parts.space.check()).toEqual({
      ok: false,
      reason: expect.stringMatching(/^the archive is full: 4 MiB of archive\.max_size 4 MiB/),
    });
    await it.pass(HOUR_MS);
    expect(it.types()).toEqual(['polling-stopped']);
    const received = deliverAll(it, id);
    await it.run(MINUTE_MS);
    expect(it.types()).toEqual(['polling-stopped', 'polling-resumed']);
    expect(received.toSorted()).toEqual(all.toSorted());
    expect(await fill()).toBeGreaterThan(0);
    expect(it.state.store.missing(id)).toEqual([]);
  });

  test('gives pages that stay free back to the file system', async () => {
    using it = house({ retentionMs: HOUR_MS });
    const id = it.open('influx');
    for (let n = 0; n < 80; n += 1) appendBytes(it, MIB / 2);
    const { usedBytes } = it.state.maintenance.size();
    expect(usedBytes).toBeGreaterThan(20 * MIB);
    deliverAll(it, id);
    await it.pass(6 * HOUR_MS);
    const after = it.state.maintenance.size();
    expect(after.usedBytes).toBeLessThan(2 * MIB);
    expect(after.freeBytes).toBeLessThanOrEqual(16 * MIB);
  });
});

describe('the disk', () => {
  test('stops pulling below 256 MiB, names the directory and what is free, and continues well above', async () => {
    using it = house();
    it.disk.freeBytes = 300 * MIB;
    expect(it.parts.space.check()).toEqual({ ok: true });
    it.disk.freeBytes = 255 * MIB;
    await it.parts.clock.sleep(3 * SECOND_MS);
    const answer = it.parts.space.check();
    expect(answer).toMatchObject({
      ok: false,
      reason: expect.stringContaining(`/data: only 255 MiB of its disk are free`),
    });
    it.disk.freeBytes = 300 * MIB;
    await it.parts.clock.sleep(3 * SECOND_MS);
    expect(it.parts.space.check().ok, 'not at once').toBe(false);
    it.disk.freeBytes = 330 * MIB;
    await it.parts.clock.sleep(3 * SECOND_MS);
    expect(it.parts.space.check().ok).toBe(true);
    expect(it.types()).toEqual(['polling-stopped', 'polling-resumed']);
  });

  test('is judged by a check alone: answer and status report what the last check found, and change nothing', async () => {
    using it = house();
    const { space } = it.parts;
    it.disk.freeBytes = 100 * MIB;
    await it.parts.clock.sleep(3 * SECOND_MS);
    for (let times = 0; times < 2; times += 1) {
      expect([space.answer().ok, space.status()]).toEqual([true, expect.objectContaining({ full: null })]);
    }
    expect(it.types()).toEqual([]);
    expect(space.check().ok).toBe(false);
    expect([space.answer().ok, space.status().diskFreeBytes]).toEqual([false, 100 * MIB]);
    expect(it.types()).toEqual(['polling-stopped']);
  });

  test('is watched before the maintenance may begin: a disk that fills up meanwhile is reported', async () => {
    using it = house();
    const stop = new AbortController();
    const parts = { ...it.parts, mayBegin: async (signal: AbortSignal) => await it.parts.clock.sleep(DAY_MS, signal) };
    const running = runMaintenance(parts, stop.signal);
    await it.parts.clock.sleep(MINUTE_MS);
    it.disk.freeBytes = 100 * MIB;
    await it.parts.clock.sleep(MINUTE_MS);
    expect(it.types()).toEqual(['polling-stopped']);
    stop.abort();
    await running;
  });

  test('that refuses a write makes pulling rest for a minute', async () => {
    using it = house();
    it.parts.space.noteRefused(new StateFullError('/data/tidemark.db: the disk is full.', null, 1));
    expect(it.parts.space.check()).toEqual({ ok: false, reason: '/data/tidemark.db: the disk is full.' });
    expect(it.parts.space.status().full).toContain('the disk is full');
    await it.parts.clock.sleep(61 * SECOND_MS);
    expect(it.parts.space.check()).toEqual({ ok: true });
    expect(it.types()).toEqual(['polling-stopped', 'polling-resumed']);
  });
});

test('a one-off does the due maintenance at its end', async () => {
  using it = house({ retentionMs: DAY_MS });
  const id = it.open('influx');
  for (let n = 0; n < 300; n += 1) append(it);
  deliverAll(it, id);
  await it.parts.clock.sleep(DAY_MS - HOUR_MS);
  await maintainOnce(it.parts, new AbortController().signal);
  expect(it.state.rows('SELECT count(*) AS n FROM block')).toEqual(
    [{ n: 0 }].map(() => expect.objectContaining({ n: expect.any(Number) })),
  );
  const [{ n } = { n: 0 }] = it.state.rows('SELECT count(*) AS n FROM block') as { n: number }[];
  expect(n).toBeLessThan(30);
  await it.parts.clock.sleep(2 * HOUR_MS);
  await maintainOnce(it.parts, new AbortController().signal);
  expect(it.state.rows('SELECT * FROM block')).toEqual([]);
});
