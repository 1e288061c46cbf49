/**
 * Sending missing points again in --verify --repair, and the missing points that are found. The database is a function.
 */
import { describe, expect, test } from 'vitest';
import { createResender, foundPoints } from '../../../src/commands/verify/repair.ts';
import type { Sink, WriteAnswer } from '../../../src/core/ports.ts';
import type { MissingPoints } from '../../../src/core/state/log.ts';
import type { ArchivedDay } from '../../../src/core/state/verify.ts';
import { DAY_NS } from '../../../src/core/time.ts';

const NOON = DAY_NS / 2n;
const at = (day: number): bigint => BigInt(day) * DAY_NS;
const archived = (day: number, points = 100): ArchivedDay => ({
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

describe('points that were missing at a destination and were found there', () => {
  const compared = { fromDay: 10, toDay: 20 };
  const days = [11, 12, 15].map((day) => archived(day));

  test('is all that was compared except the days with a difference; empty days do not interrupt it', () => {
    const lacks = [lack(at(9), at(18) + NOON)];
    const found = foundPoints(lacks, {
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

  test('is nothing where nothing is kept, and of nothing that cannot be repaired', () => {
    const none = { days, differing: [], compared, clearedOthers };
    const lacks = [lack(at(16), at(18)), lack(at(11), at(12), 'beyond_retention'), lack(at(11), at(12), 'dropped')];
    expect(foundPoints(lacks, none)).toEqual([]);
    expect(foundPoints([lack(at(11) + NOON, at(12), 'skipped_destination')], none)).toHaveLength(1);
  });

  test('is a part of it where the archive has let go of points that are no readings', () => {
    const parts = { days, differing: [], compared, clearedOthers: () => 24 };
    expect(foundPoints([lack(at(11), at(13), 'skipped_destination')], parts)).toEqual([
      ['d', `${at(11)}`, `${at(13)}`, 200, 24],
    ]);
  });

  test('that part is reported for every range that removes it, whatever the reason for which it was missing', () => {
    const parts = { days, differing: [], compared, clearedOthers: () => 24 };
    const lacks = [lack(at(11), at(12)), lack(at(15), at(16)), lack(at(11), at(13), 'skipped_destination')];
    expect(foundPoints(lacks, parts).map(([, from, , , left]) => [from, left])).toEqual([
      [`${at(11)}`, 24],
      [`${at(15)}`, undefined],
      [`${at(11)}`, 24],
    ]);
  });
});

describe('sending again', () => {
  const lineOf = (value: number, second: number): string =>
    `telemetry,device_id=d,sensor=s value=${value} ${second}000000000`;
  /** A database that rejects negative values, and requests of more than `most` lines. */
  const resenderTo = (most = 1000) => {
    const sizes: number[] = [];
    const sink: Sink = {
      name: 'influx',
      write: (lines): Promise<WriteAnswer> => {
        sizes.push(lines.length);
        if (lines.length > most) return Promise.resolve({ kind: 'too-large', message: 'HTTP 413' });
        const isBad = lines.some((line) => line.includes('value=-'));
        return Promise.resolve(
          isBad ? { kind: 'rejected', message: 'HTTP 400: bad', retention: false } : { kind: 'accepted' },
        );
      },
    };
    const state = { movedTo: () => [] };
    const parts = { destination: { kind: 'influxdb', sink }, state, clock: { nowMs: () => 0 }, batchLines: 8 } as const;
    return { sizes, ...createResender(parts) };
  };
  const never = new AbortController().signal;
  const lines = (count: number, value: number): string[] => Array.from({ length: count }, (_, at) => lineOf(value, at));

  test('lines that are all rejected are counted, as others like them were accepted before', async () => {
    const resender = resenderTo();
    expect(await resender.send(lines(8, 1), never)).toBeNull();
    expect(await resender.send(lines(8, -1), never)).toBeNull();
    expect(resender.rejections()).toEqual({ lines: 8, tooOld: 0, message: 'HTTP 400: bad' });
  });

  test('where nothing was ever accepted, the destination is blocked, and nothing counts as rejected', async () => {
    const resender = resenderTo();
    expect(await resender.send(lines(8, -1), never)).toMatchObject({ kind: 'down', message: 'HTTP 400: bad' });
    expect(resender.rejections().lines).toBe(0);
  });

  test('batches are smaller after one that was too large', async () => {
    const { send, sizes } = resenderTo(4);
    expect(await send(lines(16, 1), never)).toBeNull();
    expect(sizes).toEqual([8, 4, 4, 4, 4]);
  });
});
