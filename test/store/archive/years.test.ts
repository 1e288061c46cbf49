/**
 * The archive over years: compacted, cleared, passed by, with destinations that come, go and stand still.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { LogReaders } from '../../../src/core/state/archive.ts';
import type { LogLane } from '../../../src/core/state/log.ts';
import { DAY_MS } from '../../../src/core/time.ts';
import { KEPT_FRAME_BYTES } from '../../../src/store/archive/block-codec.ts';
import { NO_LIMIT, pageCommit, readAll, type ScratchStore, scratchStore } from '../support.ts';

const LANES = ['live', 'history'] as const;

/** A state whose time the test sets. */
function world(): { state: ScratchStore; time: { nowMs: number } } & Disposable {
  const time = { nowMs: 100 * DAY_MS };
  const state = scratchStore({ nowMs: () => time.nowMs });
  return { state, time, [Symbol.dispose]: () => state[Symbol.dispose]() };
}

function compactAll({ maintenance }: ScratchStore, readers: LogReaders, nowMs: number): number {
  let runs = 0;
  for (const group of maintenance.compactionGroups(nowMs)) while (maintenance.compact(group, readers, nowMs)) runs += 1;
  return runs;
}

/** Lands readings of a device, one line each, at these times; each line has a text of so many characters. */
function commit(
  { store }: ScratchStore,
  deviceId: string,
  { lane, at, text = 0 }: { lane: LogLane; at: readonly bigint[]; text?: number },
): string[] {
  const fields = text === 0 ? '' : `,text="${'x'.repeat(text)}"`;
  const lines = at.map((ns) => `telemetry,device_id=${deviceId},sensor=s value=${ns % 7n}${fields} ${ns}`);
  const { revision } = store.telemetry(deviceId);
  const sorted = [...at].sort((a, b) => (a < b ? -1 : 1));
  const [firstNs, lastNs] = [sorted[0] ?? null, sorted.at(-1) ?? null];
  store.commitPage(pageCommit({ deviceId, revision, lane, lines, firstNs, lastNs }));
  return lines;
}

/**
 * Delivers up to so many lines of each lane.
 *
 * @returns them.
 */
function deliver({ store }: ScratchStore, id: number, lines: number): string[] {
  return LANES.flatMap((lane) => {
    const from = store.position(id, lane);
    const batch = store.read(lane, from, { lines, bytes: NO_LIMIT.bytes });
    const last = batch.segments.at(-1);
    if (last === undefined) return [];
    const to = last.rest ? { block: last.block, line: last.line + last.lines } : { block: last.block + 1, line: 0 };
    store.acknowledge({ destinationId: id, lane, from, to, rejected: [], missing: [], atMs: 1 });
    return [...batch.lines];
  });
}

describe('sealing', () => {
  test('leaves the same lines in the order of each device, in fewer blocks', () => {
    using it = world();
    const { state, time } = it;
    for (let n = 0n; n < 100n; n += 1n) {
      commit(state, n % 2n === 0n ? 'a' : 'b', {
        lane: n % 5n === 0n ? 'history' : 'live',
        at: [n * 10n, n * 10n + 1n],
      });
      state.store.append([`workspace n=${n} ${n}`], 'live');
    }
    const before = LANES.map((lane) => readAll(state, lane).lines);
    const id = state.store.useDestination('x', 'x').id;
    while (deliver(state, id, 17).length > 0);
    time.nowMs += DAY_MS;
    expect(compactAll(state, { configured: [id], active: [id] }, time.nowMs)).toBeGreaterThan(0);
    LANES.forEach((lane, index) => {
      const after = readAll(state, lane).lines;
      expect(after.toSorted()).toEqual(before[index]?.toSorted());
      for (const device of ['device_id=a', 'device_id=b', 'workspace ']) {
        const of = (lines: readonly string[] = []) => lines.filter((line) => line.includes(device));
        expect(of(after)).toEqual(of(before[index]));
      }
    });
    expect(state.rows('SELECT count(*) AS n FROM block')).toEqual([{ n: 5 }]);
    expect(state.store.backlog(id).pendingLines).toBe(0);
    expect(state.store.stored('a', 0n, 99n).lines.length).toBeGreaterThan(0);
    expect(state.store.totals().lines).toBe(300);
  });

  test('merges nothing that a configured destination has not acknowledged, and waits for the end of the day', () => {
    using it = world();
    const { state, time } = it;
    for (let n = 0n; n < 10n; n += 1n) commit(state, 'a', { lane: 'live', at: [n] });
    const [one, other] = ['one', 'other'].map((name) => state.store.useDestination(name, name).id);
    if (one === undefined || other === undefined) throw new Error('no destination');
    while (deliver(state, one, 100).length > 0);
    const readers = { configured: [one, other], active: [one, other] };
    expect(compactAll(state, readers, time.nowMs + DAY_MS)).toBe(0);
    deliver(state, other, 4);
    expect(compactAll(state, readers, time.nowMs), 'its day is not over').toBe(0);
    expect(compactAll(state, readers, time.nowMs + DAY_MS)).toBe(1);
    expect(state.rows('SELECT seq, lines, level FROM block ORDER BY seq').slice(0, 2)).toEqual([
      { seq: 1, lines: 4, level: 2 },
      { seq: 5, lines: 1, level: 0 },
    ]);
    expect(deliver(state, other, 100)).toHaveLength(6);
  });
});

describe('a destination that is not configured any more', () => {
  const filled = (state: ScratchStore): { gone: number; readers: LogReaders } => {
    for (let n = 0n; n < 10n; n += 1n) commit(state, 'a', { lane: 'live', at: [n] });
    const [gone, here] = ['gone', 'here'].map((name) => state.store.useDestination(name, name).id);
    if (gone === undefined || here === undefined) throw new Error('no destination');
    deliver(state, gone, 4);
    deliver(state, here, 100);
    return { gone, readers: { configured: [here], active: [here] } };
  };

  test('is filled anew where blocks were compacted among which it stood, and has all lines then', () => {
    using it = world();
    const { gone, readers } = filled(it.state);
    expect(compactAll(it.state, readers, it.time.nowMs + DAY_MS)).toBe(1);
    expect(it.state.rows('SELECT count(*) AS n FROM block')).toEqual([{ n: 1 }]);
    expect(deliver(it.state, gone, 100)).toHaveLength(10);
  });

  test('blocks nothing, and misses only points that were cleared before its position reached them', () => {
    using it = world();
    const { gone, readers } = filled(it.state);
    expect(it.state.maintenance.clear({ ...readers, beforeMs: null })).toEqual({ blocks: 10, lines: 10 });
    const lacking = it.state.store.missing(gone).map(({ fromNs, toNs, reason }) => [fromNs, toNs, reason]);
    expect(lacking).toEqual([[4n, 10n, 'cleared']]);
    expect(it.state.store.backlog(gone).pendingLines).toBe(0);
    commit(it.state, 'a', { lane: 'live', at: [50n] });
    expect(deliver(it.state, gone, 100)).toHaveLength(1);
  });
});

describe('clearing', () => {
  test('drops nothing without a destination, and nothing unacknowledged or too new', () => {
    using it = world();
    const { state, time } = it;
    commit(state, 'a', { lane: 'live', at: [10n, 20n] });
    time.nowMs += DAY_MS;
    commit(state, 'a', { lane: 'live', at: [30n] });
    commit(state, 'a', { lane: 'history', at: [5n] });
    const none = { configured: [], active: [] };
    expect(state.maintenance.clear({ ...none, beforeMs: null }).blocks).toBe(0);
    const { id } = state.store.useDestination('x', 'x');
    const readers = { configured: [id], active: [id] };
    expect(state.maintenance.clear({ ...readers, beforeMs: null }).blocks).toBe(0);
    deliver(state, id, 2);
    expect(state.maintenance.clear({ ...readers, beforeMs: time.nowMs })).toEqual({ blocks: 1, lines: 2 });
    expect(readAll(state, 'live').lines).toHaveLength(1);
    expect(state.store.stored('a', 0n, 50n)).toMatchObject({
      cleared: [
        { from: 10n, to: 11n },
        { from: 20n, to: 21n },
      ],
    });
    expect(
      state.maintenance.clear({ ...readers, beforeMs: null }),
      'the size asks for all that is acknowledged',
    ).toEqual({
      blocks: 1,
      lines: 1,
    });
    expect(state.store.missing(id)).toEqual([]);
    const later = state.store.useDestination('later', 'later').id;
    expect(state.store.missing(later)).toEqual([
      { deviceId: 'a', fromNs: 5n, toNs: 6n, reason: 'cleared', points: 1 },
      { deviceId: 'a', fromNs: 10n, toNs: 11n, reason: 'cleared', points: 1 },
      { deviceId: 'a', fromNs: 20n, toNs: 21n, reason: 'cleared', points: 1 },
    ]);
  });

  test('keeps the newest reading and the name of the device at it', () => {
    using it = world();
    const { state } = it;
    commit(state, 'a', { lane: 'live', at: [10n, 20n] });
    const { id } = state.store.useDestination('x', 'x');
    deliver(state, id, 9);
    state.maintenance.clear({ configured: [id], active: [id], beforeMs: null });
    expect(state.rows('SELECT * FROM block')).toEqual([]);
    expect(state.store.backlog(id).pendingLines).toBe(0);
    expect(state.store.totals().lines).toBe(0);
  });
});

type Op =
  | {
      readonly op: 'commit';
      readonly device: 'a' | 'b' | null;
      readonly lane: LogLane;
      readonly lines: number;
      readonly isLarge: boolean;
    }
  | { readonly op: 'deliver'; readonly to: number; readonly lines: number }
  | { readonly op: 'compact' | 'clear-all' | 'clear-old' | 'new' | 'next-day' }
  | { readonly op: 'aside' | 'toggle' | 'pass'; readonly to: number };

const to = fc.nat(2);
const anOp: fc.Arbitrary<Op> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constant('commit' as const),
      device: fc.constantFrom('a' as const, 'b' as const, null),
      lane: fc.constantFrom(...LANES),
      lines: fc.integer({ min: 1, max: 4 }),
      isLarge: fc.boolean(),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ op: fc.constant('deliver' as const), to, lines: fc.integer({ min: 1, max: 9 }) }),
  },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('compact' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constantFrom('clear-all' as const, 'clear-old' as const, 'new' as const, 'next-day' as const),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ op: fc.constantFrom('aside' as const, 'toggle' as const, 'pass' as const), to }),
  },
);

interface Known {
  readonly id: number;
  readonly received: Set<string>;
  isConfigured: boolean;
  isAside: boolean;
  /** Whether it was never anything but configured and active. */
  isFaithful: boolean;
  readonly lacksAtFirst: string;
}

const json = (value: unknown): string =>
  JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? `${part}` : part));

/**
 * Runs the operations.
 *
 * @returns every line that was archived, and the destinations at the end.
 */
function live(ops: readonly Op[], { state, time }: ReturnType<typeof world>): { all: string[]; known: Known[] } {
  const all: string[] = [];
  const known: Known[] = [];
  let nextNs = 1_000n;
  const readers = (): LogReaders => {
    const configured = known.filter(({ isConfigured }) => isConfigured);
    return {
      configured: configured.map(({ id }) => id),
      active: configured.filter(({ isAside }) => !isAside).map(({ id }) => id),
    };
  };
  const add = (): void => {
    const { id } = state.store.useDestination(`d${known.length}`, 'x');
    known.push({
      id,
      received: new Set(),
      isConfigured: true,
      isAside: false,
      isFaithful: true,
      lacksAtFirst: json(state.store.missing(id)),
    });
  };
  const commitNext = ({ device, lane, lines: count, isLarge }: Extract<Op, { op: 'commit' }>): void => {
    const at = Array.from({ length: count }, (_, index) => nextNs + BigInt(index) * 10n);
    nextNs += 100n;
    if (device !== null) {
      // Each reading is a page of its own. Blocks of large pages have several frames.
      for (const each of at) {
        all.push(...commit(state, device, { lane, at: [each], text: isLarge ? KEPT_FRAME_BYTES : 0 }));
      }
      return;
    }
    const lines = at.map((ns) => `workspace n=1 ${ns}`);
    state.store.append(lines, lane);
    all.push(...lines);
  };
  const deliverTo = (target: Known, lines: number): void => {
    for (const line of deliver(state, target.id, lines)) target.received.add(line);
    if (state.maintenance.positionText(target.id) !== state.maintenance.stall(target.id)?.position)
      target.isAside = false;
  };
  const setAside = (target: Known): void => {
    const position = state.maintenance.positionText(target.id);
    state.maintenance.saveStall(target.id, {
      position,
      stalledMs: 1,
      seenMs: 1,
      skippedTo: state.maintenance.endOfLog(),
    });
    Object.assign(target, { isAside: true, isFaithful: false });
  };
  const general: Readonly<Record<'compact' | 'clear-all' | 'clear-old' | 'new' | 'next-day', () => void>> = {
    new: () => known.length < 3 && add(),
    'next-day': () => void Object.assign(time, { nowMs: time.nowMs + DAY_MS }),
    // Everything of a day that is over is merged.
    compact: () => {
      general['next-day']();
      compactAll(state, readers(), time.nowMs);
    },
    'clear-all': () => void state.maintenance.clear({ ...readers(), beforeMs: null }),
    'clear-old': () => void state.maintenance.clear({ ...readers(), beforeMs: time.nowMs - DAY_MS }),
  };
  const withOne = (op: Extract<Op, { to: number }>, target: Known): void => {
    if (op.op === 'toggle') Object.assign(target, { isConfigured: !target.isConfigured, isFaithful: false });
    if (!target.isConfigured) return;
    if (op.op === 'deliver') deliverTo(target, op.lines);
    if (op.op === 'aside' && !target.isAside) setAside(target);
    if (op.op === 'pass' && target.isAside) state.maintenance.skipBacklog(target.id);
  };
  const run = (op: Op): void => {
    if (op.op === 'commit') commitNext(op);
    else if ('to' in op) {
      const target = known[op.to];
      if (target !== undefined) withOne(op, target);
    } else general[op.op]();
  };
  add();
  ops.forEach(run);
  return { all, known };
}

test('every destination receives every line except its missing points, whatever is merged or cleared', () => {
  fc.assert(
    fc.property(fc.array(anOp, { minLength: 5, maxLength: 60 }), (ops) => {
      using it = world();
      const { state } = it;
      const { all, known } = live(ops, it);
      for (const destination of known) {
        for (
          let lines = deliver(state, destination.id, 50);
          lines.length > 0;
          lines = deliver(state, destination.id, 50)
        )
          for (const line of lines) destination.received.add(line);
        const lacks = state.store.missing(destination.id);
        const isLacking = (line: string): boolean => {
          const at = BigInt(line.slice(line.lastIndexOf(' ') + 1));
          const deviceId = /device_id=(\w)/.exec(line)?.[1] ?? '';
          return lacks.some((lack) => lack.deviceId === deviceId && lack.fromNs <= at && at < lack.toNs);
        };
        expect(all.filter((line) => !destination.received.has(line) && !isLacking(line))).toEqual([]);
        expect(state.store.backlog(destination.id).pendingLines).toBe(0);
        if (destination.isFaithful)
          expect(json(lacks), 'points that an active destination waits for are never dropped').toBe(
            destination.lacksAtFirst,
          );
      }
    }),
    { numRuns: 150 },
  );
});

test('the sums agree with the blocks, whatever was compacted and cleared', () => {
  fc.assert(
    fc.property(fc.array(anOp, { minLength: 5, maxLength: 40 }), (ops) => {
      using it = world();
      const { state } = it;
      live(ops, it);
      const [sums] = state.rows(
        'SELECT count(*) AS blocks, ifnull(sum(lines), 0) AS lines, ifnull(sum(length(data)), 0) AS bytes FROM block',
      );
      expect(
        state.rows(
          'SELECT ifnull(sum(blocks), 0) AS blocks, ifnull(sum(lines), 0) AS lines, ifnull(sum(bytes), 0) AS bytes FROM log_sum',
        ),
      ).toEqual([sums]);
    }),
    { numRuns: 60 },
  );
});
