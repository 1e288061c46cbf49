import { describe, expect, test } from 'vitest';
import { foundOf } from '../../../src/commands/verify/repair.ts';
import type { MissingPoints } from '../../../src/core/state/log.ts';
import type { KeptDay } from '../../../src/core/state/verify.ts';
import { DAY_NS } from '../../../src/core/time.ts';

const NOON = DAY_NS / 2n;
const at = (day: number): bigint => BigInt(day) * DAY_NS;
const kept = (day: number, points = 100): KeptDay => ({
  day,
  points,
  readings: 1,
  texts: 0,
  hashHigh: 0,
  hashLow: 0,
});
const clearedOthers = (): number => 0;
const lack = (fromNs: bigint, toNs: bigint, reason: MissingPoints['reason'] = 'cleared'): MissingPoints => ({
  deviceId: 'd',
  fromNs,
  toNs,
  reason,
  points: 5,
});

describe('what a destination lacked and was found to have', () => {
  const compared = { fromDay: 10, toDay: 20 };
  const days = [11, 12, 15].map((day) => kept(day));

  test('is all that was compared but for the days with a difference; days without anything are no hole in it', () => {
    const lacks = [lack(at(9), at(18) + NOON)];
    const found = foundOf(lacks, {
      days,
      differing: [12],
      compared,
      clearedOthers,
    });
    expect(found).toEqual([
      ['d', `${at(10)}`, `${at(12)}`, 100],
      ['d', `${at(13)}`, `${at(18) + NOON}`, 100],
    ]);
  });

  test('is nothing where nothing is kept, and of nothing that cannot be mended', () => {
    const none = { days, differing: [], compared, clearedOthers };
    const lacks = [lack(at(16), at(18)), lack(at(11), at(12), 'beyond retention'), lack(at(11), at(12), 'dropped')];
    expect(foundOf(lacks, none)).toEqual([]);
    expect(foundOf([lack(at(11) + NOON, at(12), 'set aside')], none)).toHaveLength(1);
  });

  test('is a part of it where the archive has let go of points that are no readings', () => {
    const parts = { days, differing: [], compared, clearedOthers: () => 24 };
    expect(foundOf([lack(at(11), at(13), 'set aside')], parts)).toEqual([['d', `${at(11)}`, `${at(13)}`, 200, 24]]);
  });

  test('that part is told of every stretch that takes it back, for whatever reason it was lacking as well', () => {
    const parts = { days, differing: [], compared, clearedOthers: () => 24 };
    const lacks = [lack(at(11), at(12)), lack(at(15), at(16)), lack(at(11), at(13), 'set aside')];
    expect(foundOf(lacks, parts).map(([, from, , , left]) => [from, left])).toEqual([
      [`${at(11)}`, 24],
      [`${at(15)}`, undefined],
      [`${at(11)}`, 24],
    ]);
  });
});
