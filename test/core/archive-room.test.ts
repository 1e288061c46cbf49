/** When reading stops for want of room, and when it resumes. */
import { describe, expect, test } from 'vitest';
import { clearingMarks, judgeSpace, type NoSpace, type SpaceFigures } from '../../src/core/archive-room.ts';
import { MINUTE_MS } from '../../src/core/time.ts';

const MIB = 1024 ** 2;
const FIGURES: SpaceFigures = {
  usedBytes: 0,
  freeBytes: 0,
  walBytes: 0,
  directory: '/state',
  diskFreeBytes: null,
  refusal: null,
};
const LIMITS = { maxBytes: 1000 * MIB, minFreeBytes: 256 * MIB };

function cause(
  before: NoSpace['cause'] | null,
  figures: Partial<SpaceFigures>,
  maxBytes: number | null = LIMITS.maxBytes,
) {
  const was = before === null ? null : { cause: before, what: '', remedy: '', reason: '' };
  return judgeSpace(was, { ...FIGURES, ...figures }, { ...LIMITS, maxBytes })?.cause ?? null;
}

describe('reading stops', () => {
  test.each<[string, NoSpace['cause'] | null, Partial<SpaceFigures>, NoSpace['cause'] | null]>([
    ['not at the size limit', null, { usedBytes: 1000 * MIB }, null],
    ['above the size limit', null, { usedBytes: 1000 * MIB + 1 }, 'size'],
    ['and does not resume less than a reserve below the size limit', 'size', { usedBytes: 968 * MIB + 1 }, 'size'],
    ['and resumes a reserve below the size limit', 'size', { usedBytes: 968 * MIB }, null],
    ['for the disk independently of the size', 'disk', { usedBytes: 999 * MIB }, null],
    ['not where the disk has the required free space', null, { diskFreeBytes: 256 * MIB }, null],
    ['where the disk has less than the required free space', null, { diskFreeBytes: 256 * MIB - 1 }, 'disk'],
    [
      'and does not resume below a quarter more than the required free space',
      'disk',
      { diskFreeBytes: 320 * MIB - 1 },
      'disk',
    ],
    ['and resumes with a quarter more than the required free space', 'disk', { diskFreeBytes: 320 * MIB }, null],
    [
      'where the disk has no room for twice the length of a long log',
      null,
      { diskFreeBytes: 300 * MIB, walBytes: 151 * MIB },
      'disk',
    ],
    ['for the disk first where disk and size are full', null, { diskFreeBytes: 0, usedBytes: 2000 * MIB }, 'disk'],
    [
      'for a failed write before anything else',
      null,
      { refusal: { agoMs: 0, message: 'x' }, diskFreeBytes: 0 },
      'refused',
    ],
    ['not any more a minute after a failed write', null, { refusal: { agoMs: MINUTE_MS, message: 'x' } }, null],
    ['not where the free space is unknown', null, { diskFreeBytes: null }, null],
  ])('%s', (_what, before, figures, expected) => {
    expect(cause(before, figures)).toBe(expected);
  });

  test('never for the size where there is no limit', () => {
    expect(cause(null, { usedBytes: 1e15 }, null)).toBeNull();
  });
});

test('the reason begins with the full resource, and includes a remedy', () => {
  const none = judgeSpace(null, { ...FIGURES, usedBytes: 2000 * MIB }, LIMITS);
  expect(none?.reason.startsWith(none.what)).toBe(true);
  expect(none?.reason).toMatch(
    /when a database accepts the points that wait for it, or when you raise archive\.max_size\.$/,
  );
  const alone = judgeSpace(null, { ...FIGURES, usedBytes: 2000 * MIB }, { ...LIMITS, hasDestinations: false });
  expect(alone?.reason).toMatch(/or configure a database \(influx\.url\)/);
  const disk = judgeSpace(null, { ...FIGURES, diskFreeBytes: 1 }, LIMITS);
  expect(disk?.what).toMatch(/^\/state: only 1 bytes of its disk are free$/);
});

test.each([64, 1000, 100_000])(
  'with a limit of %i MiB clearing ends below where it begins, within the limit',
  (mib) => {
    const { above, downTo } = clearingMarks(mib * MIB);
    expect(above).toBeLessThan(mib * MIB);
    expect(downTo).toBeLessThan(above);
    expect(mib * MIB - downTo).toBeLessThanOrEqual(64 * MIB);
  },
);
