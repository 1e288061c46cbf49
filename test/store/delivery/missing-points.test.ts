/** The missing points of each destination in a real state file: adding, joining, finding and counting them. */
import { describe, expect, test } from 'vitest';
import type { FoundPoints, MissingPoints } from '../../../src/core/state/log.ts';
import { StaleStateError } from '../../../src/core/state/telemetry.ts';
import { DAY_NS } from '../../../src/core/time.ts';
import { patient } from '../../support/patience.ts';
import { type ScratchStore, scratchStore } from '../support.ts';

const START = { block: 0, line: 0 };

const lack = (fromNs: bigint, toNs: bigint, changes: Partial<MissingPoints> = {}): MissingPoints => ({
  deviceId: 'd',
  fromNs,
  toNs,
  reason: 'skipped_destination',
  points: 1,
  ...changes,
});

/** Acknowledges one more line of the log, with `lacks` as missing points. */
function leave({ store }: ScratchStore, id: number, lacks: readonly MissingPoints[]): void {
  store.append(['a'], 'live');
  const from = store.position(id, 'live');
  store.acknowledge({
    destinationId: id,
    lane: 'live',
    from,
    to: { block: from.block + 1, line: 0 },
    rejected: [],
    missing: lacks,
    atMs: 1,
  });
}

describe('the missing points of a destination', () => {
  test('is kept with the position, by device, reason and time, and survives a restart', () => {
    using state = scratchStore();
    const { id } = state.store.useDestination('influx', 'x');
    const cleared = lack(5n, 9n, { reason: 'cleared', points: 7 });
    const ofNone = lack(1n, 2n, { deviceId: '' });
    leave(state, id, [lack(30n, 40n), lack(5n, 9n), cleared, ofNone]);
    state.reopen();
    expect(state.store.missing(id)).toEqual([ofNone, cleared, lack(5n, 9n), lack(30n, 40n)]);
  });

  test('become one range where ranges touch or overlap, with the sum of the points, now and later', () => {
    using state = scratchStore();
    const { id } = state.store.useDestination('influx', 'x');
    leave(state, id, [lack(10n, 20n), lack(40n, 50n), lack(20n, 30n, { points: 4 })]);
    expect(state.store.missing(id)).toEqual([lack(10n, 30n, { points: 5 }), lack(40n, 50n)]);
    leave(state, id, [lack(25n, 45n), lack(61n, 62n)]);
    expect(state.store.missing(id)).toEqual([lack(10n, 50n, { points: 7 }), lack(61n, 62n)]);
  });

  test('is summed by its reason', () => {
    using state = scratchStore();
    const { id } = state.store.useDestination('influx', 'x');
    const cleared = lack(5n, 9n, { reason: 'cleared', points: 7 });
    leave(state, id, [
      cleared,
      lack(1n, 2n, { deviceId: '' }),
      lack(30n, 40n),
      lack(5n, 9n),
      lack(6n, 7n, { deviceId: 'e' }),
    ]);
    expect(state.store.missingSums(id)).toEqual([
      { reason: 'cleared', points: 7, devices: 1, fromNs: 5n, toNs: 9n },
      { reason: 'skipped_destination', points: 4, devices: 2, fromNs: 1n, toNs: 40n },
    ]);
    expect(state.store.missingSums(state.store.useDestination('second', 'x').id)).toEqual([]);
  });

  test('is apart for another destination, device and reason', () => {
    using state = scratchStore();
    const one = state.store.useDestination('influx', 'x').id;
    const two = state.store.useDestination('second', 'x').id;
    leave(state, one, [lack(10n, 20n), lack(10n, 20n, { deviceId: 'e' }), lack(10n, 20n, { reason: 'cleared' })]);
    leave(state, two, [lack(15n, 25n)]);
    expect(state.store.missing(one)).toHaveLength(3);
    expect(state.store.missing(two)).toEqual([lack(15n, 25n)]);
  });

  test('beyond a retention are one range for a history that was refused page by page', () => {
    using state = scratchStore();
    const { id } = state.store.useDestination('influx', 'x');
    const page = (day: bigint): MissingPoints => lack(day * DAY_NS, day * DAY_NS + 1n, { reason: 'beyond_retention' });
    leave(state, id, [page(1n), page(3n), page(9n)]);
    leave(state, id, [page(2n)]);
    expect(state.store.missing(id)).toEqual([{ ...page(1n), toNs: 3n * DAY_NS + 1n, points: 3 }, page(9n)]);
  });

  test('is not kept where the position is not moved', () => {
    using state = scratchStore();
    const { id } = state.store.useDestination('influx', 'x');
    const stale = { destinationId: id, lane: 'live', from: { block: 7, line: 0 }, to: { block: 8, line: 0 } } as const;
    expect(() => state.store.acknowledge({ ...stale, rejected: [], missing: [lack(1n, 2n)], atMs: 1 })).toThrow(
      StaleStateError,
    );
    expect(state.store.missing(id)).toEqual([]);
    expect(state.store.position(id, 'live')).toEqual(START);
  });
});

describe('points that were found', () => {
  const found = (fromNs: bigint, toNs: bigint, points: number) => ({ deviceId: 'd', fromNs, toNs, points });
  const amend = ({ store }: ScratchStore, id: number, ...ranges: FoundPoints[]): void =>
    store.amendMissing(id, { found: ranges, missed: [] });

  test('is missing no more, and the points before and after it still are', () => {
    using state = scratchStore();
    const { id } = state.store.useDestination('influx', 'x');
    leave(state, id, [lack(10n, 100n, { points: 9 })]);
    // The examined range has many more points than were missing.
    amend(state, id, found(40n, 60n, 5000));
    expect(state.store.missing(id).map(({ fromNs, toNs }) => [fromNs, toNs])).toEqual([
      [10n, 40n],
      [60n, 100n],
    ]);
    expect(state.store.missing(id).every(({ points }) => points > 0)).toBe(true);
    amend(state, id, found(0n, 40n, 1), found(60n, 200n, 1));
    expect(state.store.missing(id)).toEqual([]);
  });

  test('points that were found missing count once, however often they are found', () => {
    using state = scratchStore();
    const { id } = state.store.useDestination('influx', 'x');
    const missed = [lack(10n, 20n, { reason: 'cleared', points: 7 }), lack(30n, 40n, { reason: 'cleared', points: 0 })];
    leave(state, id, [lack(5n, 20n, { points: 9 })]);
    for (let time = 0; time < 3; time += 1) {
      state.store.amendMissing(id, { found: [], missed });
      expect(state.store.missing(id)).toEqual([...missed, lack(5n, 10n, { points: 2 })]);
    }
  });

  test('removes nothing from other reasons, devices and destinations', () => {
    using state = scratchStore();
    const { id } = state.store.useDestination('influx', 'x');
    const other = state.store.useDestination('second', 'y').id;
    const stay = [lack(1n, 9n, { reason: 'beyond_retention' }), lack(1n, 9n, { deviceId: 'e' })];
    leave(state, id, [lack(1n, 9n), lack(1n, 9n, { reason: 'cleared' }), ...stay]);
    leave(state, other, [lack(1n, 9n)]);
    amend(state, id, found(1n, 9n, 1));
    expect(state.store.missing(id)).toEqual(stay);
    expect(state.store.missing(other)).toEqual([lack(1n, 9n)]);
  });

  test('points that were not compared stay missing, and no others', () => {
    using state = scratchStore();
    const { id } = state.store.useDestination('influx', 'x');
    leave(state, id, [lack(10n, 100n, { points: 5000 }), lack(20n, 30n, { reason: 'cleared', points: 40 })]);
    for (let time = 0; time < 3; time += 1) {
      amend(state, id, { ...found(20n, 30n, 1000), left: 7 }, found(60n, 100n, 500));
      // The days between were not examined: their missing points stay.
      expect(state.store.missing(id)).toEqual([
        lack(10n, 20n, { points: 3999 }),
        lack(20n, 30n, { points: 7 }),
        lack(30n, 60n, { points: 1 }),
      ]);
    }
    amend(state, id, found(10n, 20n, 1), { ...found(20n, 30n, 1000), left: 7 }, found(30n, 60n, 1));
    expect(state.store.missing(id)).toEqual([lack(20n, 30n, { points: 7 })]);
  });
});

describe('many ranges', () => {
  test('single points without end are added in a time that grows with their number alone', () => {
    using state = scratchStore();
    const { id } = state.store.useDestination('influx', 'x');
    const many = Array.from({ length: 20_000 }, (_, n) =>
      lack(BigInt(n * 10), BigInt(n * 10 + 1), { reason: 'dropped' }),
    );
    const beganMs = performance.now();
    leave(state, id, many);
    expect(state.store.missingSums(id)).toMatchObject([{ reason: 'dropped', points: 20_000 }]);
    // Each with a look at all before it took two minutes.
    expect(performance.now() - beganMs).toBeLessThan(patient(20_000));
  });
});
