/**
 * Going through the archive by time: everything once and in order, however blocks overlap, and whatever is merged or
 * cleared between two steps.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { encodeTagValue, identityTag } from '../../../src/core/lines/line-protocol.ts';
import { END_OF_TIME, type ReadPiece, type ReadRange } from '../../../src/core/state/archive.ts';
import { DAY_MS } from '../../../src/core/time.ts';
import { pageCommit, type ScratchStore, scratchStore } from '../support.ts';

const ALL: ReadRange = { from: 0n, to: END_OF_TIME, devices: [], kinds: 'all' };
const TELEMETRY: ReadRange = { ...ALL, kinds: 'telemetry' };
const BASE = 1_700_000_000_000_000_000n;

const timeOf = (line: string): bigint => BigInt(line.slice(line.lastIndexOf(' ') + 1));
const reading = (device: string, at: bigint, value = 1, sensor = 's'): string =>
  `telemetry,device_id=${encodeTagValue(identityTag(device))},sensor=${sensor} value=${value} ${BASE + at}`;
const hour = (device: string, at: bigint, readings = 3): string =>
  `coverage_hour,device_id=${device} readings=${readings} ${BASE + at}`;

/** Lands lines as a page would. */
function land(
  state: ScratchStore,
  deviceId: string,
  lines: readonly string[],
  sideLines: readonly string[] = [],
): void {
  const times = lines.map(timeOf).toSorted((a, b) => (a < b ? -1 : 1));
  const { revision } = state.store.telemetry(deviceId);
  const [firstNs, lastNs] = [times[0] ?? null, times.at(-1) ?? null];
  state.store.commitPage(pageCommit({ deviceId, revision, lines, sideLines, firstNs, lastNs }));
}

interface Walked {
  readonly lines: string[];
  readonly pieces: ReadPiece[];
}

/** Goes through all of it. `between` is called before every step but the first. */
function walk(state: ScratchStore, span: ReadRange, { bytes = 200, between = () => {} } = {}): Walked {
  const { archiveReader } = state.store.replays;
  const pieces: ReadPiece[] = [];
  for (let place = archiveReader.begin(span); place !== null; place = pieces.at(-1)?.next ?? null) {
    if (pieces.length > 0) between();
    pieces.push(archiveReader.read(span, place, bytes));
  }
  return { lines: pieces.flatMap(({ lines }) => lines), pieces };
}

/** Each part in the order of time: first what is of no device's own blocks, then device after device by id. */
function expectOrdered({ pieces }: Walked): void {
  const parts = pieces.map(({ deviceId }) => deviceId).filter((id, index, all) => index === 0 || id !== all[index - 1]);
  expect(new Set(parts).size).toBe(parts.length);
  const ids = parts.filter((id) => id !== null);
  expect(ids).toEqual([...ids].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))));
  if (parts.includes(null)) expect(parts[0]).toBeNull();
  for (const part of parts) {
    const times = pieces.filter(({ deviceId }) => deviceId === part).flatMap(({ lines }) => lines.map(timeOf));
    expect(times.every((at, index) => index === 0 || at >= (times[index - 1] ?? at))).toBe(true);
  }
}

const signature = (state: ScratchStore, nowMs: number): void => {
  const readers = { configured: [], active: [] };
  for (const group of state.maintenance.compactionGroups(nowMs)) state.maintenance.compact(group, readers, nowMs);
};

describe('going through the archive', () => {
  test('merges overlapping blocks into one order, with equal timestamps, late readings and both lanes', () => {
    using state = scratchStore();
    land(state, 'b', [reading('b', 50n), reading('b', 40n), reading('b', 40n, 2, 't')]);
    land(state, 'b', [reading('b', 45n), reading('b', 39n)]);
    land(state, 'a', [reading('a', 10n), reading('a', 9n)], [hour('a', 3n)]);
    land(state, 'b', [reading('b', 41n)]);
    state.store.append(['workspace,workspace_id=w devices=2 1700000000000000007'], 'live');
    land(state, 'a', [], [hour('a', 500n)]);
    const walked = walk(state, ALL, { bytes: 60 });
    expectOrdered(walked);
    expect(walked.lines).toEqual([
      'workspace,workspace_id=w devices=2 1700000000000000007',
      hour('a', 3n),
      reading('a', 9n),
      reading('a', 10n),
      hour('a', 500n),
      ...[39n, 40n].map((at) => reading('b', at)),
      reading('b', 40n, 2, 't'),
      ...[41n, 45n, 50n].map((at) => reading('b', at)),
    ]);
    expect(walk(state, TELEMETRY).lines.every((line) => line.startsWith('telemetry,'))).toBe(true);
  });

  test('accepts a half-open range and named devices', () => {
    using state = scratchStore();
    for (const id of ['a', 'b', 'od,d ='])
      land(
        state,
        id,
        [1n, 2n, 3n, 4n].map((at) => reading(id, at)),
      );
    state.store.append(
      ['a', 'b', 'od,d ='].map(
        (id) =>
          `device,device_id=${encodeTagValue(identityTag(id))},device_name=x,workspace_id=w label=",device_id=b," ${BASE + 2n}`,
      ),
      'live',
    );
    const span = { from: BASE + 2n, to: BASE + 4n, kinds: 'all' as const };
    const named = walk(state, { ...span, devices: ['od,d =', 'a', 'gone'] }).lines;
    expect(named.map((line) => line.replace(/^(\w+),device_id=((?:\\.|[^,\\])*),.* (\d+)$/, '$1 $2 $3'))).toEqual([
      `device a ${BASE + 2n}`,
      `device od\\,d\\ \\= ${BASE + 2n}`,
      ...[2n, 3n].map((at) => `telemetry a ${BASE + at}`),
      ...[2n, 3n].map((at) => `telemetry od\\,d\\ \\= ${BASE + at}`),
    ]);
    expect(walk(state, { ...span, from: BASE + 4n, to: BASE + 4n, devices: [] }).lines).toEqual([]);
  });

  test('distinguishes nanoseconds that a double does not', () => {
    using state = scratchStore();
    const times = Array.from({ length: 300 }, (_, index) => BigInt(index));
    const shuffled = times.toSorted((a, b) => Number(((a * 7919n) % 300n) - ((b * 7919n) % 300n)));
    for (let from = 0; from < 300; from += 10) {
      land(
        state,
        'd',
        shuffled.slice(from, from + 10).map((at) => reading('d', at)),
      );
    }
    expect(walk(state, TELEMETRY, { bytes: 100 }).lines).toEqual(times.map((at) => reading('d', at)));
    const part = walk(state, { ...TELEMETRY, from: BASE + 17n, to: BASE + 203n }, { bytes: 100 }).lines;
    expect(part).toEqual(times.slice(17, 203).map((at) => reading('d', at)));
  });

  test('gives a line once that the archive has twice', () => {
    using state = scratchStore();
    land(state, 'd', [reading('d', 1n), reading('d', 2n)]);
    land(state, 'd', [reading('d', 2n), reading('d', 2n, 7), reading('d', 3n)]);
    expect(walk(state, TELEMETRY).lines).toEqual([
      reading('d', 1n),
      reading('d', 2n),
      reading('d', 2n, 7),
      reading('d', 3n),
    ]);
  });

  test('gives the largest count of an hour alone, in whatever block it is', () => {
    using state = scratchStore();
    land(state, 'd', [reading('d', 5n)], [hour('d', 0n, 9), hour('d', 60n, 7)]);
    land(state, 'd', [reading('d', 7n)], [hour('d', 60n, 10)]);
    // This block begins before the others, so that it is read first.
    land(state, 'd', [reading('d', -70n)], [hour('d', -60n, 1), hour('d', 0n, 10)]);
    const hours = walk(state, ALL).lines.filter((line) => !line.startsWith('telemetry'));
    expect(hours).toEqual([hour('d', -60n, 1), hour('d', 0n, 10), hour('d', 60n, 10)]);
  });

  test('keeps a step small where every block spans everything', () => {
    using state = scratchStore();
    const count = 60;
    for (let block = 0; block < count; block += 1) {
      land(
        state,
        'd',
        Array.from({ length: 50 }, (_, nth) => reading('d', BigInt(nth * 1000 + block))),
      );
    }
    const bytes = 4000;
    const walked = walk(state, TELEMETRY, { bytes });
    expectOrdered(walked);
    expect(walked.lines).toHaveLength(count * 50);
    const lengths = walked.pieces.map(({ lines }) => lines.join('\n').length);
    expect(Math.max(...lengths)).toBeLessThanOrEqual(2 * bytes);
    expect(walked.pieces.length).toBeLessThan(2.5 * ((count * 50 * 60) / bytes));
  });

  test('reads all lines of one instant together, however many', () => {
    using state = scratchStore();
    const lines = Array.from({ length: 500 }, (_, nth) => reading('d', 5n, nth, `s${nth}`));
    land(state, 'd', [reading('d', 4n), ...lines, reading('d', 6n)]);
    const walked = walk(state, TELEMETRY, { bytes: 100 });
    expect(walked.lines).toEqual([reading('d', 4n), ...lines, reading('d', 6n)]);
  });
});

describe('while the daemon works', () => {
  test('blocks that are compacted between two steps come once, in the same order', () => {
    const at = { ms: 1000 };
    using state = scratchStore({ nowMs: () => at.ms });
    const wanted: string[] = [];
    for (let page = 0; page < 200; page += 1) {
      const lines = [0n, 1n].map((nth) => reading('d', BigInt(((page * 37) % 200) * 10) + nth));
      land(state, 'd', lines, page % 20 === 0 ? [hour('d', BigInt(page))] : []);
      state.store.append([`coverage,device_id=d lag_seconds=1 ${BASE + BigInt(page)}`], 'live');
      wanted.push(...lines, `coverage,device_id=d lag_seconds=1 ${BASE + BigInt(page)}`);
      if (page % 20 === 0) wanted.push(hour('d', BigInt(page)));
    }
    const blocks = (): number => state.rows('SELECT seq FROM block').length;
    state.store.useDestination('x', 'x');
    const before = blocks();
    at.ms += DAY_MS;
    // No destination keeps blocks from compaction: every step merges another run of blocks.
    const readers = { configured: [1], active: [1] };
    for (const lane of ['live', 'history'] as const) {
      const end = state.store.endOf(lane);
      state.store.acknowledge({
        destinationId: 1,
        lane,
        from: { block: 0, line: 0 },
        to: end,
        rejected: [],
        missing: [],
        atMs: 1,
      });
    }
    const walked = walk(state, ALL, {
      bytes: 500,
      between: () => {
        for (const group of state.maintenance.compactionGroups(at.ms)) state.maintenance.compact(group, readers, at.ms);
      },
    });
    expect(blocks()).toBeLessThan(before / 10);
    expectOrdered(walked);
    expect(walked.lines.toSorted()).toEqual(wanted.toSorted());
    expect(walk(state, ALL).lines.toSorted()).toEqual(wanted.toSorted());
  });

  test('nothing that stays is left out where older blocks are cleared and new ones come', () => {
    const at = { ms: 1000 };
    using state = scratchStore({ nowMs: () => at.ms });
    for (let page = 0; page < 20; page += 1) land(state, 'd', [reading('d', BigInt(page) * 10n)]);
    at.ms += DAY_MS;
    for (let page = 20; page < 40; page += 1) land(state, 'd', [reading('d', BigInt(page) * 10n)]);
    state.store.useDestination('x', 'x');
    const end = state.store.endOf('live');
    const from = { block: 0, line: 0 };
    state.store.acknowledge({ destinationId: 1, lane: 'live', from, to: end, rejected: [], missing: [], atMs: 1 });
    let steps = 0;
    const walked = walk(state, TELEMETRY, {
      bytes: 100,
      between: () => {
        steps += 1;
        if (steps === 3) {
          const readers = { configured: [1], active: [1] };
          while (state.maintenance.clear({ ...readers, beforeMs: DAY_MS }).blocks > 0);
          land(state, 'd', [reading('d', 1n), reading('d', 999n)]);
        }
      },
    });
    expectOrdered(walked);
    const lasting = Array.from({ length: 20 }, (_, nth) => reading('d', BigInt(nth + 20) * 10n));
    expect(lasting.filter((line) => !walked.lines.includes(line))).toEqual([]);
    expect(new Set(walked.lines).size).toBe(walked.lines.length);
  });

  test('holds for any pages, steps and sealing', () => {
    const page = fc.record({
      device: fc.constantFrom('a', 'b', '\u{1f600}', '\uffee'),
      times: fc.array(fc.integer({ min: 0, max: 5000 }), { maxLength: 12 }),
      hours: fc.array(fc.integer({ min: 0, max: 5000 }), { maxLength: 2 }),
      isLater: fc.boolean(),
    });
    const scenario = fc.record({
      pages: fc.array(page, { maxLength: 60 }),
      bytes: fc.integer({ min: 1, max: 5000 }),
      sealEvery: fc.integer({ min: 1, max: 9 }),
      from: fc.integer({ min: 0, max: 3000 }),
      length: fc.integer({ min: 0, max: 6000 }),
    });
    fc.assert(
      fc.property(scenario, ({ pages, bytes, sealEvery, from, length }) => {
        const at = { ms: 1000 };
        using state = scratchStore({ nowMs: () => at.ms });
        const span = { ...ALL, from: BASE + BigInt(from), to: BASE + BigInt(from + length) };
        const committed = pages.flatMap(({ device, times, hours, isLater }) => {
          const lines = times.map((time, nth) => reading(device, BigInt(time), nth));
          const sides = hours.map((time) => hour(device, BigInt(time)));
          land(state, device, lines, sides);
          at.ms += isLater ? DAY_MS / 3 : 0;
          return [...lines, ...sides];
        });
        const wanted = new Set(committed.filter((line) => span.from <= timeOf(line) && timeOf(line) < span.to));
        let steps = 0;
        const between = (): void => {
          steps += 1;
          if (steps % sealEvery === 0) signature(state, at.ms + DAY_MS);
        };
        const walked = walk(state, span, { bytes, between });
        expectOrdered(walked);
        expect(walked.lines.toSorted()).toEqual([...wanted].toSorted());
      }),
      { numRuns: 60 },
    );
  });
});
