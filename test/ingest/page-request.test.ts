/**
 * The rules of a page scan, one by one. Complete scans against servers of all kinds: `whole-scans.test.ts`.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readingDigest } from '../../src/core/lines/points.ts';
import type { Reading } from '../../src/core/records.ts';
import { DAY_NS, type EpochNs, formatSeconds, HOUR_NS, SECOND_NS } from '../../src/core/time.ts';
import { type JudgeContext, judgePage } from '../../src/ingest/judge-page.ts';
import {
  maxWidthNs,
  nextRequest,
  type OpenGap,
  type PageRequest,
  requestFor,
  SLACK_NS,
  type WindowLimits,
} from '../../src/ingest/page-request.ts';
import { at, edgeOf, pageOf, reading, readingAt } from '../core/support/readings.ts';

const NO_LIMITS: WindowLimits = { widthNs: null, nowNs: at(10_000), bothBounds: false };
const FRESH: JudgeContext = { visibleFromNs: null, emptyBefore: 0, accepts: 'none', seenAt: null };

/** The gap from second 100 to second 200, with the stored readings around it. */
const GAP = { from: at(100), to: at(200) };
const NEAR = reading(200.5);
const FAR = reading(98);

function question(changes: Partial<OpenGap> = {}): OpenGap {
  return { deviceId: 'd1', gap: GAP, near: edgeOf(NEAR), far: edgeOf(FAR), live: false, ...changes };
}

function ask(changes: Partial<OpenGap> = {}, limits: Partial<WindowLimits> = {}): PageRequest {
  return requestFor(question(changes), { ...NO_LIMITS, ...limits });
}

const WITHOUT_OVERLAP = { near: null, far: null };

/** Readings at the given seconds, in the order given. */
const readings = (...seconds: number[]): Reading[] => seconds.map((second) => reading(second));

/** A page that has more behind it. */
const full = (list: readonly Reading[]): ReturnType<typeof pageOf> => pageOf(list, 'more');

describe('the question', () => {
  test('names both bounds for a gap in history, each wider by the slack than the overlap readings', () => {
    const asked = ask();
    expect(asked).toMatchObject({ gap: GAP, near: edgeOf(NEAR), far: edgeOf(FAR), cursor: null, nearSeen: false });
    expect(asked.after).toBe(at(96));
    expect(asked.before).toBe(at(203));
  });

  test('reaches over the edges of the gap where nothing is covered beside it', () => {
    const asked = ask(WITHOUT_OVERLAP);
    expect(asked).toMatchObject({ after: at(98), before: at(202), nearSeen: true });
  });

  test('has bounds in whole seconds, so that sending them loses nothing, and none before 1970', () => {
    const anyQuestion = fc
      .tuple(fc.bigInt({ min: 0n, max: 9n * 10n ** 18n }), fc.bigInt({ min: 1n, max: 10n ** 15n }))
      .map(([from, length]) => question({ gap: { from, to: from + length }, ...WITHOUT_OVERLAP }));
    fc.assert(
      fc.property(anyQuestion, (asked) => {
        const { after, before } = requestFor(asked, NO_LIMITS);
        expect([after % SECOND_NS, (before ?? 0n) % SECOND_NS]).toEqual([0n, 0n]);
        expect(after >= 0n && (after === 0n || after <= asked.gap.from - SLACK_NS)).toBe(true);
        expect(before !== null && before >= asked.gap.to + SLACK_NS).toBe(true);
      }),
    );
    expect(formatSeconds(ask().after)).toBe('2026-01-15T12:01:36Z');
  });

  test('has no upper bound while live, so that whatever is newer comes along', () => {
    expect(ask({ live: true, near: null }).before).toBeNull();
  });

  test('names the present where the service wants both bounds', () => {
    expect(ask({ live: true, near: null }, { bothBounds: true, nowNs: at(300.2) }).before).toBe(at(303));
  });

  test('has its upper bound above the gap even if the clock fell back meanwhile', () => {
    expect(ask({ live: true, near: null }, { bothBounds: true, nowNs: at(50) }).before).toBe(at(202));
  });

  test('reaches back over silence to the stored reading at the far end', () => {
    const last = edgeOf(reading(-90_000));
    expect(ask({ far: last })).toMatchObject({ far: last, after: at(-90_002), gap: GAP });
  });
});

describe('a window that the plan bounds', () => {
  const widthNs = HOUR_NS;
  const wide = { from: at(-100_000), to: at(200) };

  test('uses the newest part of the gap, and gives up the overlap reading that it cannot reach', () => {
    const asked = ask({ gap: wide, far: edgeOf(reading(-100_001)) }, { widthNs });
    expect(asked.gap).toEqual({ from: at(203 - 3600 + 2), to: at(200) });
    expect(asked).toMatchObject({ far: null, near: edgeOf(NEAR), after: at(203 - 3600), before: at(203) });
  });

  test('drops the far overlap reading rather than a part of the gap', () => {
    const asked = ask({ far: edgeOf(reading(-90_000)) }, { widthNs });
    expect(asked).toMatchObject({ gap: GAP, far: null, near: edgeOf(NEAR), after: at(98) });
  });

  test('drops the near overlap reading rather than the gap where silence lies between them', () => {
    const asked = ask({ near: edgeOf(reading(200 + 1801)) }, { widthNs });
    expect(asked).toMatchObject({ gap: GAP, near: null, nearSeen: true, far: edgeOf(FAR), before: at(202) });
    expect(ask({ near: edgeOf(reading(200 + 1800)) }, { widthNs }).near).not.toBeNull();
  });

  test('names the end of an old gap where the present is out of its reach', () => {
    const asked = ask({ live: true, ...WITHOUT_OVERLAP }, { widthNs, nowNs: at(200 + 3599) });
    expect(asked).toMatchObject({ gap: GAP, before: at(202), after: at(98) });
  });

  const edge = (instant: EpochNs): OpenGap['near'] => edgeOf(readingAt(instant));
  const anyLength = fc.bigInt({ min: 1n, max: 60n * DAY_NS });
  const anyCase = fc
    .record({
      to: fc.bigInt({ min: 400n * DAY_NS, max: 500n * DAY_NS }),
      length: anyLength,
      nearAbove: fc.option(fc.bigInt({ min: -1n, max: 60n * DAY_NS })),
      farBelow: fc.option(anyLength),
      live: fc.boolean(),
      settleNs: fc.bigInt({ min: 0n, max: HOUR_NS }),
      widthNs: fc.bigInt({ min: HOUR_NS, max: 40n * DAY_NS }),
      bothBounds: fc.boolean(),
    })
    .map(({ to, length, nearAbove, farBelow, live, settleNs, widthNs, bothBounds }) => ({
      asked: question({
        gap: { from: to - length, to },
        near: live || nearAbove === null ? null : edge(to + nearAbove),
        far: farBelow === null ? null : edge(to - length - farBelow),
        live,
      }),
      limits: { widthNs, nowNs: to + settleNs, bothBounds },
    }));

  test('is never wider than allowed', () => {
    fc.assert(
      fc.property(anyCase, ({ asked, limits }) => {
        const { after, before } = requestFor(asked, limits);
        expect((before ?? limits.nowNs) - after).toBeLessThanOrEqual(limits.widthNs);
      }),
      { numRuns: 500 },
    );
  });

  test('includes with slack the range to cover and the overlap readings that it keeps', () => {
    fc.assert(
      fc.property(anyCase, ({ asked, limits }) => {
        const { after, before, gap, near, far } = requestFor(asked, limits);
        const tops = [gap.to, near?.at ?? 0n];
        const bottoms = [gap.from, far?.at ?? gap.from];
        for (const top of tops) expect(before === null || before >= top + SLACK_NS).toBe(true);
        for (const bottom of bottoms) expect(after).toBeLessThanOrEqual(bottom - SLACK_NS);
      }),
      { numRuns: 500 },
    );
  });

  test('covers the full gap, or as much of its newest part as there is room for', () => {
    fc.assert(
      fc.property(anyCase, ({ asked, limits }) => {
        const { after, before, gap } = requestFor(asked, limits);
        expect(gap.to).toBe(asked.gap.to);
        expect(asked.gap.from <= gap.from && gap.from < gap.to).toBe(true);
        const room = limits.widthNs - ((before ?? limits.nowNs) - after);
        expect(gap.from === asked.gap.from || room <= 4n * SLACK_NS).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  test('is an hour narrower than the figure of the plan', () => {
    expect(maxWidthNs(null)).toBeNull();
    expect(maxWidthNs(30)).toBe(30n * DAY_NS - HOUR_NS);
    expect(maxWidthNs(1.9)).toBe(23n * HOUR_NS);
    expect(maxWidthNs(0)).toBe(HOUR_NS);
  });
});

describe('going on', () => {
  const go = (asked: PageRequest, page: ReturnType<typeof pageOf>, limits = NO_LIMITS): PageRequest | null =>
    nextRequest(asked, judgePage(asked, page, FRESH), { page, gap: GAP, far: edgeOf(FAR), limits });

  test('is by time, from the oldest reading, which is the next overlap reading', () => {
    const next = go(ask(), full([NEAR, ...readings(190, 170, 150.5)]));
    expect(next).toMatchObject({
      gap: { from: at(100), to: at(150.5) + 1n },
      near: edgeOf(reading(150.5)),
      far: edgeOf(FAR),
      before: at(153),
      after: at(96),
      cursor: null,
      nearSeen: false,
    });
  });

  test('is by cursor where one instant fills the page', () => {
    const asked = ask(WITHOUT_OVERLAP);
    const page = full([1, 2, 3].map((a) => reading(150, { a })));
    const chain = { shown: new Set(page.readings.map(readingDigest)), idlePages: 0 };
    expect(go(asked, page)).toEqual({ ...asked, cursor: 'more', nearSeen: true, below: at(150), chain });
  });

  test('is by cursor where a request by time would return most of the page again', () => {
    const asked = ask(WITHOUT_OVERLAP);
    expect(go(asked, full(readings(190, 152.5, 152, 151, 150)))?.cursor).toBe('more');
    expect(go(asked, full(readings(190, 180, 151, 150)))?.cursor).toBeNull();
  });

  test('is by cursor until the overlap reading was seen, within the same range', () => {
    const asked = ask({ near: edgeOf(reading(200, { a: 9 })) });
    const crowd = full([1, 2, 3].map((a) => reading(200, { a })));
    const chain = { shown: new Set(crowd.readings.map(readingDigest)), idlePages: 0 };
    expect(go(asked, crowd)).toEqual({ ...asked, cursor: 'more', nearSeen: false, below: at(200), chain });
  });

  test('is not, once the window was read to its end, or the answer proved nothing', () => {
    expect(go(ask(), pageOf([NEAR, FAR]))).toBeNull();
    expect(go(ask(), full(readings(190, 150)))).toBeNull();
    expect(go(ask(), full([NEAR, ...readings(150, 99)]))).toBeNull();
  });

  test('continues into the rest of the gap that the window was too narrow for', () => {
    const gap = { from: at(-100_000), to: at(200) };
    const limits = { ...NO_LIMITS, widthNs: HOUR_NS };
    const asked = requestFor(question({ gap, ...WITHOUT_OVERLAP }), limits);
    const page = full(readings(190, 100, -3000));
    const next = nextRequest(asked, judgePage(asked, page, FRESH), { page, gap, far: null, limits });
    expect(next?.gap.to).toBe(at(-3000) + 1n);
    expect(next?.gap.from).toBeLessThan(asked.gap.from);
  });
});
