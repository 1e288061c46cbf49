/** The records of what is missing of a device and why, and of what is to be read again. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Gap, RecheckProgress } from '../../../src/core/state/telemetry.ts';
import { DAY_MS } from '../../../src/core/time.ts';
import { createGaps } from '../../../src/store/device/gaps.ts';
import { openDatabase } from '../../../src/store/open/database.ts';
import { device, scratch, scratchStore } from '../support.ts';

const gap = (changes: Partial<Gap>): Gap => ({
  deviceId: 'a',
  fromNs: 10n,
  toNs: 20n,
  reason: 'page_rejected',
  retryAtMs: 1_781_527_896_789,
  ...changes,
});

describe('gaps', () => {
  test('come back as they were named, of one device or of all, until they are cleared', () => {
    using state = scratchStore();
    const [first, second, other] = [
      gap({}),
      gap({ fromNs: 30n, toNs: 31n, reason: 'beyond_plan' }),
      gap({ deviceId: 'b' }),
    ];
    for (const each of [second, other, first]) state.store.nameGap(each);
    state.reopen();
    expect(state.store.gaps('a')).toEqual([first, second]);
    expect(state.store.gaps()).toEqual([first, second, other]);
    state.store.clearGaps('a');
    expect(state.store.gaps()).toEqual([other]);
  });

  test('keep the range that a newer gap inside of them does not name', () => {
    using state = scratchStore();
    state.store.nameGap(gap({ fromNs: 10n, toNs: 40n }));
    state.store.nameGap(gap({ fromNs: 20n, toNs: 30n, reason: 'unreachable' }));
    expect(state.store.gaps()).toEqual([
      gap({ fromNs: 10n, toNs: 20n }),
      gap({ fromNs: 20n, toNs: 30n, reason: 'unreachable' }),
      gap({ fromNs: 30n, toNs: 40n }),
    ]);
  });

  test('that are named again take the new words and time', () => {
    using state = scratchStore();
    state.store.nameGap(gap({}));
    state.store.nameGap(gap({ toNs: 15n, reason: 'unreachable', retryAtMs: 5 }));
    expect(state.store.gaps()).toEqual([gap({ toNs: 15n, reason: 'unreachable', retryAtMs: 5 })]);
  });

  test('never overlap, and the newest name of an instant counts', () => {
    const ranges = fc.array(
      fc.tuple(fc.bigInt(0n, 30n), fc.bigInt(1n, 12n), fc.constantFrom('unreachable', 'page_rejected', 'beyond_plan')),
      { maxLength: 12 },
    );
    fc.assert(
      fc.property(ranges, (named) => {
        using state = scratchStore();
        for (const [fromNs, length, reason] of named) {
          // A gap that begins where the newest one does was named before its upper part was covered.
          const kept = state.store.gaps('a').filter((each) => each.fromNs !== fromNs);
          const newest = gap({ fromNs, toNs: fromNs + length, reason });
          state.store.nameGap(newest);
          const after = state.store.gaps('a');
          expect(reasonsOf(after)).toEqual(reasonsOf([newest, ...kept]));
          expect(
            after.reduce((sum, each) => sum + each.toNs - each.fromNs, 0n),
            'no two overlap',
          ).toBe(BigInt(reasonsOf(after).filter((each) => each !== null).length));
        }
      }),
      { numRuns: 25 },
    );
  });

  test('of one device are not those of another', () => {
    using state = scratchStore();
    state.store.nameGap(gap({}));
    state.store.nameGap(gap({ deviceId: 'b', fromNs: 12n, toNs: 15n, reason: 'unreachable' }));
    expect(state.store.gaps('a')).toEqual([gap({})]);
  });

  test('that were named in a transaction that was rolled back are not remembered', () => {
    using place = scratch();
    const { db, close } = openDatabase(place.path, null);
    const gaps = createGaps(db);
    gaps.nameGap(gap({}));
    const work = db.transaction(() => {
      gaps.nameGap(gap({ fromNs: 12n, toNs: 15n, reason: 'unreachable' }));
      expect(gaps.gaps('a')).toHaveLength(3);
      throw new Error('rolled back');
    });
    expect(work).toThrow('rolled back');
    expect(gaps.gaps('a')).toEqual([gap({})]);
    close();
  });

  test('are tried again no earlier than they rest', () => {
    using state = scratchStore();
    state.store.nameGap(gap({ retryAtMs: 12.25 }));
    expect(state.store.gaps('a')).toEqual([gap({ retryAtMs: 13 })]);
  });
});

/** The reason of each of the first 50 instants, by the first gap that has it. */
function reasonsOf(gaps: readonly Gap[]): (string | null)[] {
  const at = Array.from({ length: 50 }, (_, index) => BigInt(index));
  return at.map((each) => gaps.find(({ fromNs, toNs }) => fromNs <= each && each < toNs)?.reason ?? null);
}

test('the day that was last read again is remembered for each', () => {
  using state = scratchStore();
  expect(state.store.rereadDays()).toEqual(new Map());
  state.store.saveReread('d', 20_000);
  state.store.saveReread('e', 20_000);
  state.store.saveReread('d', 20_001);
  state.reopen();
  expect(state.store.rereadDays()).toEqual(
    new Map([
      ['d', 20_001],
      ['e', 20_000],
    ]),
  );
});

describe('stored readings that empty answers do not contain', () => {
  const anchor = { at: 1_781_527_896_789_000_123n, sinceMs: 1_781_527_896_789, isGone: false };

  test('come back as they were kept, by device and time, until they are shown again', () => {
    using state = scratchStore();
    expect(state.store.missedOverlaps('a')).toEqual([]);
    const older = { ...anchor, at: 5n };
    for (const each of [anchor, older]) state.store.saveMissedOverlap('a', each);
    state.store.saveMissedOverlap('b', anchor);
    expect(state.store.missedOverlaps('a')).toEqual([older, anchor]);
    state.reopen();
    expect(state.store.missedOverlaps('a')).toEqual([older, anchor]);
    state.store.dropMissedOverlaps('a', [anchor.at, 7n]);
    expect([state.store.missedOverlaps('a'), state.store.missedOverlaps('b')]).toEqual([[older], [anchor]]);
  });

  test('count as gone in their place', () => {
    using state = scratchStore();
    state.store.saveMissedOverlap('a', anchor);
    state.store.saveMissedOverlap('a', { ...anchor, isGone: true });
    expect(state.store.missedOverlaps('a')).toEqual([{ ...anchor, isGone: true }]);
  });
});

test('empty ranges are due by their time, those of a device that is gone once it is back', () => {
  using state = scratchStore();
  const { store } = state;
  store.saveInventory({
    listed: ['a', 'b'].map((id) => ({ record: device(id), name: id, line: null, digest: 'digest' })),
    missing: [],
    atMs: 0,
  });
  const empty = { from: 5n, to: 9n, sinceMs: 0, answers: 3, confirmed: 1 };
  store.saveEmptyRange('a', { ...empty, dueMs: 70 });
  store.saveEmptyRange('b', { ...empty, dueMs: 60 });
  expect([store.dueEmptyRanges(59), store.dueEmptyRanges(70)]).toEqual([[], ['b', 'a']]);
  store.markGone('b', 65);
  expect(store.dueEmptyRanges(70)).toEqual(['a']);
  store.markBack('b');
  expect(store.dueEmptyRanges(70)).toEqual(['b', 'a']);
  store.saveEmptyWindow('a', { from: 1n, to: 2n, sinceMs: 0, dueMs: 59 });
  store.saveEmptyWindow('a', { from: 2n, to: 3n, sinceMs: 0, dueMs: 80 });
  expect(store.dueEmptyRanges(59), 'each device once, by what is due first').toEqual(['a']);
  expect(store.dueEmptyRanges(80)).toEqual(['a', 'b']);
  expect(store.emptyWindows('a').map(({ from }) => from)).toEqual([2n, 1n]);
  store.dropEmptyWindow('a', 1n);
  expect(store.dueEmptyRanges(59)).toEqual([]);
});

test('an empty range that is due in more than a day is due: a clock that was ahead has recorded it', () => {
  using state = scratchStore();
  const { store } = state;
  const empty = { from: 5n, to: 9n, sinceMs: 0, answers: 3, confirmed: 1 };
  store.saveEmptyRange('a', { ...empty, dueMs: 100 + DAY_MS });
  store.saveEmptyRange('b', { ...empty, dueMs: 101 + DAY_MS });
  store.saveEmptyRange('c', { ...empty, dueMs: null });
  expect(store.dueEmptyRanges(100)).toEqual(['b']);
  store.saveEmptyRange('b', null);
  expect([store.dueEmptyRanges(100), store.emptyRange('b')]).toEqual([[], null]);
});

test('a recheck resumes with the unread ranges, until it has ended', () => {
  using state = scratchStore();
  const requested = { from: 1n, to: 90n };
  const progress: RecheckProgress = {
    requested,
    unread: [
      { from: 3n, to: 5n },
      { from: 40n, to: 80n },
    ],
    atMs: 7.9,
  };
  state.store.saveRecheck('a', progress);
  state.reopen();
  expect(state.store.recheck('a')).toEqual({ ...progress, atMs: 7 });
  expect(state.store.recheck('b')).toBeNull();
  state.store.saveRecheck('a', { ...progress, unread: [] });
  expect(state.store.recheck('a')?.unread).toEqual([]);
  state.store.saveRecheck('a', null);
  expect(state.store.recheck('a')).toBeNull();
});
