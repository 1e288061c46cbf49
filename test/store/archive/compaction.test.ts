/**
 * The rules that keep the archive small, one by one.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { dueToSkip, stallAt } from '../../../src/archive/maintenance.ts';
import { clearingMarks, judgeSpace, type NoSpace, type SpaceFigures } from '../../../src/core/archive-room.ts';
import type { Stall } from '../../../src/core/state/archive.ts';
import { DAY_MS, HOUR_MS } from '../../../src/core/time.ts';
import { groupLineRanges } from '../../../src/store/archive/clearing.ts';
import {
  chooseRun,
  FULL_BLOCK_BYTES,
  type HotBlock,
  RUN_BLOCKS,
  RUN_CANDIDATES,
} from '../../../src/store/archive/compaction.ts';

const MIB = 1024 * 1024;

describe('a run of blocks to compact', () => {
  const NOW = 10 * DAY_MS + HOUR_MS;
  const blocks = (count: number, { atMs = NOW, level = 0, bytes = 100, from = 1 } = {}): HotBlock[] =>
    Array.from({ length: count }, (_, index) => ({ seq: from + index, level, atMs, bytes }));
  const seqs = (from: number, count: number): number[] => blocks(count, { from }).map(({ seq }) => seq);

  test('waits today until there are enough of them', () => {
    expect(chooseRun([], NOW)).toBeNull();
    expect(chooseRun(blocks(RUN_BLOCKS - 1), NOW)).toBeNull();
    expect(chooseRun(blocks(RUN_BLOCKS), NOW)).toEqual({ seqs: seqs(1, RUN_BLOCKS), level: 1 });
    const gathered = blocks(3, { level: 1 });
    expect(chooseRun([...gathered, ...blocks(31, { from: 4 })], NOW)).toBeNull();
    expect(chooseRun([...gathered, ...blocks(40, { from: 4 })], NOW)).toEqual({ seqs: seqs(4, RUN_BLOCKS), level: 1 });
  });

  test('includes the rest of a day that is over for good, and never two days', () => {
    const yesterday = blocks(3, { atMs: NOW - DAY_MS });
    expect(chooseRun(yesterday, NOW)).toEqual({ seqs: [1, 2, 3], level: 2 });
    expect(chooseRun([...yesterday, ...blocks(9, { from: 4 })], NOW)).toEqual({ seqs: [1, 2, 3], level: 2 });
    expect(chooseRun(blocks(1, { atMs: NOW - DAY_MS }), NOW)).toEqual({ seqs: [1], level: 2 });
  });

  test('is for good as soon as it is large enough, and one block may be larger than that', () => {
    const large = blocks(3, { bytes: FULL_BLOCK_BYTES / 2 - 1, level: 1 });
    expect(chooseRun(large, NOW)).toEqual({ seqs: [1, 2], level: 2 });
    expect(chooseRun(blocks(2, { bytes: FULL_BLOCK_BYTES * 3, level: 1 }), NOW)).toEqual({ seqs: [1], level: 2 });
  });

  test('merges as many pages of a backfill as fit, once there is one more', () => {
    const page = FULL_BLOCK_BYTES / 4 - 1;
    expect(chooseRun(blocks(4, { bytes: page }), NOW)).toBeNull();
    expect(chooseRun(blocks(5, { bytes: page }), NOW)).toEqual({ seqs: [1, 2, 3, 4], level: 2 });
    const mixed = [...blocks(3, { bytes: page }), ...blocks(2, { from: 4 }), ...blocks(2, { from: 6, bytes: page })];
    expect(chooseRun(mixed, NOW)).toEqual({ seqs: [1, 2, 3, 4, 5], level: 2 });
  });

  test('ends: any blocks are compacted for good, in a few rounds each, never out of order', () => {
    const block = fc.record({
      day: fc.integer({ min: 0, max: 3 }),
      bytes: fc.integer({ min: 1, max: FULL_BLOCK_BYTES }),
    });
    fc.assert(
      fc.property(fc.array(block, { maxLength: 150 }), (made) => {
        let hot: HotBlock[] = made
          .toSorted((a, b) => a.day - b.day)
          .map(({ day, bytes }, index) => ({ seq: index + 1, level: 0, atMs: day * DAY_MS, bytes }));
        let touched = 0;
        for (
          let run = chooseRun(hot.slice(0, RUN_CANDIDATES), NOW);
          run !== null;
          run = chooseRun(hot.slice(0, RUN_CANDIDATES), NOW)
        ) {
          const { seqs: chosen, level } = run;
          const members = hot.filter(({ seq }) => chosen.includes(seq));
          expect(members.length).toBe(chosen.length);
          expect(new Set(members.map(({ atMs }) => atMs)).size).toBe(1);
          // None of their hot blocks lies among them.
          const at = hot.findIndex(({ seq }) => seq === chosen[0]);
          expect(hot.slice(at, at + chosen.length).map(({ seq }) => seq)).toEqual(chosen);
          touched += chosen.length;
          const bytes = members.reduce((sum, member) => sum + member.bytes, 0);
          const merged = level === 2 ? [] : [{ seq: chosen[0] ?? 0, level, atMs: members[0]?.atMs ?? 0, bytes }];
          hot = [...hot.slice(0, at), ...merged, ...hot.slice(at + chosen.length)];
        }
        expect(hot).toEqual([]);
        expect(touched).toBeLessThanOrEqual(made.length * 3);
      }),
    );
  });
});

describe('the standing of a destination', () => {
  const KEEP = 3 * DAY_MS;
  const stall = (changes: Partial<Stall>): Stall => ({
    position: 'p',
    stalledMs: 0,
    seenMs: 0,
    skippedTo: null,
    ...changes,
  });

  test('grows only while it has something to take and stays where it is', () => {
    const before = stall({ stalledMs: 5000 });
    expect(stallAt(before, { position: 'p', pendingLines: 1, nowMs: 1000 }).stalledMs).toBe(6000);
    expect(stallAt(before, { position: 'p', pendingLines: 0, nowMs: 1000 }).stalledMs).toBe(0);
    expect(stallAt(before, { position: 'q', pendingLines: 1, nowMs: 1000 }).stalledMs).toBe(0);
    expect(stallAt(before, { position: 'p', pendingLines: 1, nowMs: -HOUR_MS }).stalledMs, 'a clock set back').toBe(
      5000,
    );
    expect(stallAt(before, { position: 'p', pendingLines: 1, nowMs: 90 * DAY_MS }).stalledMs).toBe(5000 + HOUR_MS);
  });

  test('a skipped destination counts again with the first line that it acknowledges', () => {
    const aside = stall({ skippedTo: 7 });
    expect(stallAt(aside, { position: 'p', pendingLines: 0, nowMs: 1 }).skippedTo).toBe(7);
    expect(stallAt(aside, { position: 'q', pendingLines: 1, nowMs: 1 }).skippedTo).toBeNull();
  });

  test('skips a destination that stalls for longer than archive.retention while another moves', () => {
    const [stands, moves, aside] = [stall({ stalledMs: KEEP + 1 }), stall({}), stall({ skippedTo: 3 })];
    const due = (...all: Stall[]): number[] => dueToSkip(new Map(all.entries()), KEEP);
    expect(due(stands, moves)).toEqual([0]);
    expect(due(stall({ stalledMs: KEEP }), moves)).toEqual([]);
    expect(due(stands, stands)).toEqual([]);
    expect(due(stands, aside)).toEqual([]);
    const untried = stallAt(null, { position: '', pendingLines: 9, nowMs: 1 });
    expect(due(stands, untried), 'one that has never taken anything').toEqual([]);
  });
});

describe('the room', () => {
  const figures = (changes: Partial<SpaceFigures>): SpaceFigures => ({
    usedBytes: 0,
    freeBytes: 0,
    walBytes: 0,
    directory: '/data',
    diskFreeBytes: null,
    refusal: null,
    ...changes,
  });
  const limits = { maxBytes: 100 * MIB, minFreeBytes: 256 * MIB };
  const size: NoSpace = { cause: 'size', what: '', remedy: '', reason: '' };

  test('ends above archive.max_size, and begins again only clearly below it', () => {
    const judge = (before: NoSpace | null, usedBytes: number) =>
      judgeSpace(before, figures({ usedBytes }), limits)?.cause;
    expect(judge(null, 100 * MIB)).toBeUndefined();
    expect(judge(null, 100 * MIB + 1)).toBe('size');
    expect(judge(size, 99 * MIB)).toBe('size');
    expect(judge(size, 95 * MIB)).toBeUndefined();
    expect(judgeSpace(null, figures({ usedBytes: 1e15 }), { ...limits, maxBytes: null })).toBeNull();
  });

  test('mentions a database only where one is configured', () => {
    const reason = (hasDestinations: boolean) =>
      judgeSpace(null, figures({ usedBytes: 101 * MIB }), { ...limits, hasDestinations })?.reason;
    expect(reason(true)).toMatch(
      /when a database accepts the points that wait for it, or when you raise archive\.max_size\.$/,
    );
    expect(reason(false)).toMatch(/^the archive is full: 101 MiB of archive\.max_size 100 MiB, and without a database/);
    expect(reason(false)).not.toContain('destination');
  });

  test('is cleared for before it ends, to below where it begins again', () => {
    const { above, downTo } = clearingMarks(100 * MIB);
    expect([above, downTo]).toEqual([95 * MIB, 90 * MIB]);
    expect(clearingMarks(2048 * MIB)).toEqual({ above: 2016 * MIB, downTo: 1984 * MIB });
  });

  test('ends with the disk below twice the write-ahead log too', () => {
    const judge = (walBytes: number) =>
      judgeSpace(null, figures({ diskFreeBytes: 300 * MIB, walBytes }), limits)?.cause;
    expect([judge(0), judge(150 * MIB), judge(151 * MIB)]).toEqual([undefined, undefined, 'disk']);
  });
});

test('the cleared ranges separate readings from other lines, and merge only without a reading between', () => {
  const lines = ['telemetry,a=b v=1 10', 'telemetry,a=b v=1 5', 'telemetry,a=c v=1 5', 'telemetry,a=b v=1 6'];
  const others = ['coverage_hour v=1 3', 'no time', 'coverage_hour v=1 900'];
  const telemetry = (from: bigint, to: bigint, points: number) => ({ kind: 'telemetry', from, to, points });
  const other = { kind: 'other', from: 3n, to: 901n, points: 2 };
  expect(groupLineRanges([...lines, ...others], [])).toEqual([telemetry(5n, 7n, 3), telemetry(10n, 11n, 1), other]);
  expect(groupLineRanges(lines, [{ from: 8n, to: 99n }])).toHaveLength(2);
  expect(groupLineRanges(lines, [{ from: 7n, to: 10n }])).toEqual([telemetry(5n, 11n, 4)]);
});
