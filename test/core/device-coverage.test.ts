/**
 * The coverage of a device in figures: gaps with their reasons, lag, state, share, and ranges that the device list
 * shows empty.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addRange, type CoveredRange, gapsIn } from '../../src/core/coverage.ts';
import { coveredShare, determineCoverage, emptyByListing, hasLag, wantedPart } from '../../src/core/device-coverage.ts';
import { type CoverageNow, type Gap, type GapReason, NEVER_LATE } from '../../src/core/state/telemetry.ts';
import { DAY_NS, formatExact, HOUR_MS, MINUTE_MS, nsToMs, parseTimestamp } from '../../src/core/time.ts';
import { at, BARE_DEVICE, bare, edgeOf, reading } from './support/readings.ts';

const WANTED = { from: at(0), to: at(100) };

const span = (from: number, to: number): CoveredRange => bare({ from: at(from), to: at(to) });
const device = (online: boolean | null = null, goneSinceMs: number | null = null) => ({
  record: { ...BARE_DEVICE, online },
  goneSinceMs,
});
const gap = (from: number, to: number, reason: GapReason): Gap => ({
  deviceId: 'd1',
  fromNs: at(from),
  toNs: at(to),
  reason,
  retryAtMs: 0,
});
const reported = (from: number, to: number, reason: string) => ({
  from: formatExact(at(from)),
  to: formatExact(at(to)),
  reason,
});

describe('the coverage of a device', () => {
  test('none yet: the full range is a pending gap', () => {
    expect(determineCoverage(device(), { covered: [], gaps: [] }, WANTED)).toEqual({
      state: 'catching-up',
      coveredTo: at(0),
      lagSeconds: 100,
      gapSeconds: 100,
      gaps: [reported(0, 100, 'pending')],
      isCurrent: false,
      isInitial: true,
    });
  });

  test('a complete device has no gap and no lag', () => {
    const coverage = determineCoverage(device(true), { covered: [span(-50, 100)], gaps: [] }, WANTED);
    expect(coverage).toEqual({
      state: 'live',
      coveredTo: at(100),
      lagSeconds: 0,
      gapSeconds: 0,
      gaps: [],
      isCurrent: true,
      isInitial: false,
    });
  });

  test('the lag is the gap at the newest end, the total all gaps together, to the millisecond', () => {
    const covered = [span(10, 20), span(30, 99.5)];
    expect(determineCoverage(device(), { covered, gaps: [] }, WANTED)).toMatchObject({
      lagSeconds: 0.5,
      gapSeconds: 20.5,
    });
    expect(determineCoverage(device(), { covered: [span(10, 100)], gaps: [] }, WANTED)).toMatchObject({
      lagSeconds: 0,
      gapSeconds: 10,
    });
  });

  test('the newest range is no gap while it is open no longer than until the next poll', () => {
    const covered = [span(0, 20), span(30, 98)];
    const gapsWithin = (openSeconds: number) => determineCoverage(device(), { covered, gaps: [], openSeconds }, WANTED);
    const older = reported(20, 30, 'pending');
    expect(gapsWithin(2)).toMatchObject({ lagSeconds: 2, isCurrent: true, gaps: [older] });
    expect(gapsWithin(1)).toMatchObject({
      lagSeconds: 2,
      isCurrent: false,
      gaps: [older, reported(98, 100, 'pending')],
    });
  });

  test('there is no lag in the initial sync, unless the newest range is open for too long', () => {
    const lagOf = (from: number, to: number, gaps: Parameters<typeof determineCoverage>[1]['gaps'] = []): boolean =>
      hasLag(determineCoverage(device(), { covered: [span(from, to)], gaps, openSeconds: 5 }, WANTED));
    expect([lagOf(10, 100), lagOf(10, 95), lagOf(10, 94)]).toEqual([false, false, true]);
    // Down to the beginning, or as far as it can be read.
    expect([lagOf(0, 100), lagOf(10, 100, [gap(0, 10, 'beyond_plan')])]).toEqual([true, true]);
  });

  test('each gap has its reason, and a part without a name is pending', () => {
    const gaps = [gap(5, 15, 'page_rejected'), gap(50, 60, 'beyond_plan')];
    const { gaps: open } = determineCoverage(device(), { covered: [span(10, 40)], gaps }, WANTED);
    expect(open).toEqual([
      reported(0, 5, 'pending'),
      reported(5, 10, 'page_rejected'),
      reported(40, 50, 'pending'),
      reported(50, 60, 'beyond_plan'),
      reported(60, 100, 'pending'),
    ]);
  });

  test('gaps of a device that is gone have that reason', () => {
    const { gaps: open, state } = determineCoverage(
      device(true, nsToMs(at(100))),
      { covered: [span(10, 100)], gaps: [] },
      WANTED,
    );
    expect(state).toBe('unreachable');
    expect(open).toEqual([reported(0, 10, 'device_gone')]);
  });

  test('the gaps are exactly the uncovered time, each instant once, also where names overlap', () => {
    const anyPiece = fc.tuple(fc.integer({ min: -10, max: 110 }), fc.integer({ min: 1, max: 60 }));
    const anyGap = fc.tuple(anyPiece, fc.constantFrom<GapReason>('beyond_plan', 'page_rejected'));
    fc.assert(
      fc.property(fc.array(anyPiece), fc.array(anyGap, { maxLength: 5 }), (pieces, named) => {
        const covered = pieces
          .map(([from, length]) => span(from, from + length))
          .reduce<readonly CoveredRange[]>(addRange, []);
        const gaps = named.map(([[from, length], reason]) => gap(from, from + length, reason));
        const { gaps: open, gapSeconds } = determineCoverage(device(), { covered, gaps }, WANTED);
        const listedEmpty = open.map(({ from, to }) => ({
          from: parseTimestamp(from) ?? 0n,
          to: parseTimestamp(to) ?? 0n,
        }));
        for (const [index, { from }] of listedEmpty.entries())
          expect(from >= (listedEmpty[index - 1]?.to ?? 0n)).toBe(true);
        const merged = listedEmpty.map(bare).reduce<readonly CoveredRange[]>(addRange, []);
        expect(merged.map(({ from, to }) => ({ from, to }))).toEqual(gapsIn(WANTED, covered));
        expect(gapSeconds).toBe(listedEmpty.reduce((sum, { from, to }) => sum + nsToMs(to - from) / 1000, 0));
      }),
    );
  });
});

describe('the state of a device', () => {
  const held = { covered: [{ ...span(-100, 100), last: edgeOf(reading(90)) }], gaps: [] };

  test('is the state that the device reports where nothing is open', () => {
    expect(determineCoverage(device(true), held, WANTED).state).toBe('live');
    expect(determineCoverage(device(false), held, WANTED).state).toBe('silent');
  });

  test('follows from the newest reading if the device reports no state: a day without one is silence', () => {
    expect(determineCoverage(device(), held, WANTED).state).toBe('live');
    const later = { from: WANTED.from, to: at(90) + DAY_NS };
    const longHeld = { covered: [{ ...held.covered[0], ...later, first: null, last: edgeOf(reading(90)) }], gaps: [] };
    expect(determineCoverage(device(), longHeld, later).state).toBe('silent');
    expect(determineCoverage(device(), longHeld, { ...later, to: later.to - 1n }).state).toBe('live');
    expect(determineCoverage(device(), { covered: [span(0, 100)], gaps: [] }, WANTED).state).toBe('silent');
  });

  test('is catching up while any wanted range is open, whatever the device reports', () => {
    expect(determineCoverage(device(true), { covered: [span(1, 100)], gaps: [] }, WANTED).state).toBe('catching-up');
  });

  test('is not catching up because of the newest range alone, which is open until the next poll', () => {
    const stateOf = (covered: readonly CoveredRange[], openSeconds: number): string =>
      determineCoverage(device(true), { covered, gaps: [], openSeconds }, WANTED).state;
    expect(stateOf([span(0, 90)], 10)).toBe('live');
    expect(stateOf([span(0, 90)], 9)).toBe('catching-up');
    expect(stateOf([span(1, 90)], 10), 'with a gap further back').toBe('catching-up');
    expect(stateOf([span(0, 90), span(91, 100)], 10), 'a gap is no newest range').toBe('catching-up');
    expect(stateOf([], 1000), 'nothing is held yet').toBe('catching-up');
  });
});

describe('the share that is covered', () => {
  test('goes from none to all, and only the wanted range counts', () => {
    expect(coveredShare([], WANTED)).toBe(0);
    expect(coveredShare([span(-100, 25), span(75, 300)], WANTED)).toBe(0.5);
    expect(coveredShare([span(0, 100)], WANTED)).toBe(1);
  });

  test('is all of it where the wanted range is empty', () => {
    expect(coveredShare([], { from: at(5), to: at(5) })).toBe(1);
    expect(coveredShare([], { from: at(6), to: at(5) })).toBe(1);
  });
});

describe('the wanted range of a device', () => {
  test('ends at the coverage limit, or when the device was gone, whichever comes first', () => {
    expect(wantedPart(device(), WANTED)).toBe(WANTED);
    expect(wantedPart(device(null, nsToMs(at(40)) + 0.7), WANTED)).toEqual({ from: at(0), to: at(40) });
    expect(wantedPart(device(null, nsToMs(at(400))), WANTED)).toEqual(WANTED);
  });

  test('is empty for a device that was gone before: no gap, no lag', () => {
    const gone = device(null, nsToMs(at(-40)));
    const wanted = wantedPart(gone, WANTED);
    expect(determineCoverage(gone, { covered: [], gaps: [] }, wanted)).toMatchObject({
      lagSeconds: 0,
      gapSeconds: 0,
      gaps: [],
    });
    expect(coveredShare([], wanted)).toBe(1);
  });
});

describe('ranges that are empty according to the device list', () => {
  const listed = (seenSeconds: number | null, listedSeconds: number) => ({
    record: { ...BARE_DEVICE, lastSeenAt: seenSeconds === null ? null : at(seenSeconds) },
    lastListedMs: nsToMs(at(listedSeconds)),
  });
  const covered = [span(0, 1000)];
  const emptyOf = (
    device: Parameters<typeof emptyByListing>[1],
    known: Pick<CoverageNow, 'covered' | 'newestNs' | 'isSilent'> & Partial<CoverageNow>,
    { nextMs = null, gracePeriodMs = 2 * MINUTE_MS }: { nextMs?: number | null; gracePeriodMs?: number } = {},
  ) =>
    emptyByListing({ settings: { gracePeriodMs }, nextReadingMs: () => nextMs }, device, {
      late: NEVER_LATE,
      ...known,
    });

  test('lies between the coverage and the listing, if nothing newer was seen', () => {
    expect(emptyOf(listed(990, 2000), { covered, newestNs: at(990), isSilent: false })).toEqual([
      { from: at(1000), to: at(2000) },
    ]);
    expect(emptyOf(listed(1500, 2000), { covered, newestNs: at(990), isSilent: false })).toEqual([]);
    expect(emptyOf(listed(null, 2000), { covered, newestNs: at(990), isSilent: false })).toEqual([]);
  });

  test('ends where a poll would cover to that is due when the next reading is, of a device that it does not follow', () => {
    const known = { covered, newestNs: at(990), isSilent: false };
    const untilDue = (seenSeconds: number | null, nextSeconds: number) =>
      emptyOf(listed(seenSeconds, 2000), known, { nextMs: nsToMs(at(nextSeconds)) });
    expect(untilDue(null, 1720)).toEqual([{ from: at(1000), to: at(1600) }]);
    expect(untilDue(null, 9000), 'the last list is older').toEqual([{ from: at(1000), to: at(2000) }]);
    expect(untilDue(null, 1120), 'it was polled since').toEqual([]);
    expect(untilDue(500, 1720), 'it has missed a reading').toEqual([{ from: at(1000), to: at(1600) }]);
    expect(untilDue(1500, 1720), 'it shows a newer one').toEqual([]);
  });

  test.each([2 * MINUTE_MS, 3 * HOUR_MS])(
    'with a grace period of %i ms begins above a newest reading that no covering page has shown',
    (gracePeriodMs) => {
      // The page that has shown the reading may have covered everything that is older than the grace period.
      const near = 1000 + gracePeriodMs / 1000 + 120;
      const known = (newestSeconds: number) => ({ covered, newestNs: at(newestSeconds), isSilent: false });
      expect(emptyOf(listed(near, 20_000), known(near), { gracePeriodMs })).toEqual([
        { from: at(1000), to: at(20_000) },
      ]);
      // Further up, a gap may lie below it.
      const far = near + 1;
      expect(emptyOf(listed(far, 20_000), known(far), { gracePeriodMs })).toEqual([{ from: at(far), to: at(20_000) }]);
    },
  );

  test('is that up to a due reading less the grace period that late readings have led to', () => {
    const late = { ...NEVER_LATE, gracePeriodMs: 5 * MINUTE_MS };
    const known = { covered, newestNs: at(990), isSilent: false, late };
    expect(emptyOf(listed(null, 2000), known, { nextMs: nsToMs(at(1720)) })).toEqual([
      { from: at(1000), to: at(1420) },
    ]);
  });

  test('is not ended by signs of life without readings', () => {
    const known = { covered, newestNs: null, isSilent: true };
    expect(emptyOf(listed(1990, 2000), known)).toEqual([{ from: at(1000), to: at(2000) }]);
    expect(emptyOf(listed(1990, 2000), { ...known, isSilent: false })).toEqual([]);
    // One that has reported before may do so again.
    expect(emptyOf(listed(1990, 2000), { ...known, newestNs: at(500) })).toEqual([]);
  });

  test('is the range since the last poll of an offline device that was never seen and never had a reading', () => {
    const known = { covered, newestNs: null, isSilent: false };
    const never = (online: boolean | null) => ({
      record: { ...BARE_DEVICE, lastSeenAt: null, online },
      lastListedMs: nsToMs(at(2000)),
    });
    expect(emptyOf(never(false), known)).toEqual([{ from: at(1000), to: at(2000) }]);
    // The list may have no last-seen time of a device that reports.
    expect(emptyOf(never(true), known)).toEqual([]);
    expect(emptyOf(never(null), known)).toEqual([]);
    expect(emptyOf(never(false), { ...known, covered: [] })).toEqual([]);
    expect(emptyOf(never(false), { ...known, newestNs: at(990) })).toEqual([]);
    // Its readings may be of sensors that are left out.
    const read = covered.map((range) => ({ ...range, last: { at: at(900), digest: 'd' } }));
    expect(emptyOf(never(false), { ...known, covered: read })).toEqual([]);
  });

  test('is nothing if the listing did not show a stored reading', () => {
    expect(emptyOf(listed(10, 2000), { covered, newestNs: at(990), isSilent: false })).toEqual([]);
    // Too young for the listing to know, or a matter of fractions of a second.
    expect(emptyOf(listed(10, 1040), { covered, newestNs: at(990), isSilent: false })).toEqual([
      { from: at(1000), to: at(1040) },
    ]);
    expect(emptyOf(listed(989, 2000), { covered, newestNs: at(990), isSilent: false })).toEqual([
      { from: at(1000), to: at(2000) },
    ]);
  });
});
