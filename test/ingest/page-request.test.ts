/**
 * The rules of a page scan, one by one. Whole scans against servers of all kinds: `whole-scans.test.ts`.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Cursor, Reading } from '../../src/core/records.ts';
import { DAY_NS, type EpochNs, formatSeconds, HOUR_NS, SECOND_NS } from '../../src/core/time.ts';
import { type JudgeContext, type Judgement, judgePage } from '../../src/ingest/judge-page.ts';
import {
  nextRequest,
  type OpenGap,
  type PageRequest,
  requestFor,
  SLACK_NS,
  type WindowLimits,
  windowSpanNs,
} from '../../src/ingest/page-request.ts';
import { at, edgeOf, pageOf, reading, readingAt } from '../core/support/readings.ts';

const NO_LIMITS: WindowLimits = { spanNs: null, nowNs: at(10_000), bothBounds: false };
const FRESH: JudgeContext = { visibleFromNs: null, emptyBefore: 0, overlapWaived: false };

/** The gap from second 100 to second 200, with the readings held around it. */
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

/** What was judged worthless, and why. */
function expectNothing(judged: Judgement, reason: RegExp): void {
  expect(judged).toMatchObject({ covers: null, next: 'again', reason: expect.stringMatching(reason) });
}

describe('the question', () => {
  test('names both bounds for a gap in history, each wider by the slack than the overlap readings', () => {
    const asked = ask();
    expect(asked).toMatchObject({ gap: GAP, near: edgeOf(NEAR), far: edgeOf(FAR), cursor: null, nearSeen: false });
    expect(asked.after).toBe(at(96));
    expect(asked.before).toBe(at(203));
  });

  test('reaches over the edges of the gap where nothing is held beside it', () => {
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

  test('reaches back over silence to the reading that is held at the far end', () => {
    const last = edgeOf(reading(-90_000));
    expect(ask({ far: last })).toMatchObject({ far: last, after: at(-90_002), gap: GAP });
  });
});

describe('a window that the plan bounds', () => {
  const spanNs = HOUR_NS;
  const wide = { from: at(-100_000), to: at(200) };

  test('takes the newest part of the gap, and gives up the overlap reading that it cannot reach', () => {
    const asked = ask({ gap: wide, far: edgeOf(reading(-100_001)) }, { spanNs });
    expect(asked.gap).toEqual({ from: at(203 - 3600 + 2), to: at(200) });
    expect(asked).toMatchObject({ far: null, near: edgeOf(NEAR), after: at(203 - 3600), before: at(203) });
  });

  test('drops the far overlap reading rather than a part of the gap', () => {
    const asked = ask({ far: edgeOf(reading(-90_000)) }, { spanNs });
    expect(asked).toMatchObject({ gap: GAP, far: null, near: edgeOf(NEAR), after: at(98) });
  });

  test('drops the near overlap reading rather than the gap where silence lies between them', () => {
    const asked = ask({ near: edgeOf(reading(200 + 1801)) }, { spanNs });
    expect(asked).toMatchObject({ gap: GAP, near: null, nearSeen: true, far: edgeOf(FAR), before: at(202) });
    expect(ask({ near: edgeOf(reading(200 + 1800)) }, { spanNs }).near).not.toBeNull();
  });

  test('names the end of an old gap where the present is out of its reach', () => {
    const asked = ask({ live: true, ...WITHOUT_OVERLAP }, { spanNs, nowNs: at(200 + 3599) });
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
      spanNs: fc.bigInt({ min: HOUR_NS, max: 40n * DAY_NS }),
      bothBounds: fc.boolean(),
    })
    .map(({ to, length, nearAbove, farBelow, live, settleNs, spanNs, bothBounds }) => ({
      asked: question({
        gap: { from: to - length, to },
        near: live || nearAbove === null ? null : edge(to + nearAbove),
        far: farBelow === null ? null : edge(to - length - farBelow),
        live,
      }),
      limits: { spanNs, nowNs: to + settleNs, bothBounds },
    }));

  test('is never wider than allowed', () => {
    fc.assert(
      fc.property(anyCase, ({ asked, limits }) => {
        const { after, before } = requestFor(asked, limits);
        expect((before ?? limits.nowNs) - after).toBeLessThanOrEqual(limits.spanNs);
      }),
      { numRuns: 500 },
    );
  });

  test('covers with slack what it would prove and the overlap readings that it keeps', () => {
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

  test('takes the whole gap, or as much of its newest part as there is room for', () => {
    fc.assert(
      fc.property(anyCase, ({ asked, limits }) => {
        const { after, before, gap } = requestFor(asked, limits);
        expect(gap.to).toBe(asked.gap.to);
        expect(asked.gap.from <= gap.from && gap.from < gap.to).toBe(true);
        const room = limits.spanNs - ((before ?? limits.nowNs) - after);
        expect(gap.from === asked.gap.from || room <= 4n * SLACK_NS).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  test('is an hour narrower than the figure of the plan', () => {
    expect(windowSpanNs(null)).toBeNull();
    expect(windowSpanNs(30)).toBe(30n * DAY_NS - HOUR_NS);
    expect(windowSpanNs(1.9)).toBe(23n * HOUR_NS);
    expect(windowSpanNs(0)).toBe(HOUR_NS);
  });
});

describe('a page that has more behind it', () => {
  test('proves the stretch above its oldest reading, that instant not included', () => {
    const page = full([NEAR, ...readings(190, 170, 150)]);
    const judged = judgePage(ask(), page, FRESH);
    expect(judged.covers).toEqual({
      from: at(150) + 1n,
      to: at(200),
      first: edgeOf(reading(150)),
      last: edgeOf(reading(190)),
    });
    expect(judged).toMatchObject({ next: 'time', reason: null, oldest: edgeOf(reading(150)) });
    expect(judged.readings).toBe(page.readings);
  });

  test('closes the gap once it reaches below it, without showing what is held further down', () => {
    const judged = judgePage(ask(), full([NEAR, ...readings(150, 99)]), FRESH);
    expect(judged).toMatchObject({ next: 'done', covers: GAP });
  });

  test('does not close the gap at its very edge: that instant may have more readings', () => {
    const judged = judgePage(ask(), full([NEAR, ...readings(150, 140, 130, 100)]), FRESH);
    expect(judged).toMatchObject({ next: 'time', covers: { from: GAP.from + 1n } });
  });

  test('needs no overlap reading where none is held above', () => {
    const judged = judgePage(ask(WITHOUT_OVERLAP), full(readings(199, 180, 150)), FRESH);
    expect(judged).toMatchObject({ next: 'time', covers: { from: at(150) + 1n, to: at(200) } });
  });

  test('proves nothing when it passes the reading that it goes on from without showing it', () => {
    const judged = judgePage(ask(), full(readings(201, 190, 150)), FRESH);
    expectNothing(judged, /goes on from/);
    expect(judged).toMatchObject({ overlapMissing: true, nearSeen: false });
    expect(judged.readings).toHaveLength(3);
  });

  test('proves nothing when the overlap reading has come back with other values', () => {
    const other = reading(200.5, { t: 'altered' });
    expectNothing(judgePage(ask(), full([other, ...readings(190, 150)]), FRESH), /goes on from/);
  });

  test('proves nothing when the overlap reading has come back a nanosecond off', () => {
    const moved = { ...NEAR, recordedAt: NEAR.recordedAt + 1n };
    expectNothing(judgePage(ask(), full([moved, ...readings(190, 150)]), FRESH), /goes on from/);
  });

  test('finds the overlap reading among other readings of its instant', () => {
    const twin = reading(200.5, { t: 'twin' });
    const judged = judgePage(ask(), full([twin, NEAR, ...readings(190, 170, 150)]), FRESH);
    expect(judged.next).toBe('time');
  });

  test('that passes the reading at the far end has to show it', () => {
    expectNothing(judgePage(ask(), full([NEAR, ...readings(150, 97)]), FRESH), /far end/);
    expect(judgePage(ask(), full([NEAR, reading(150), FAR, reading(97)]), FRESH).next).toBe('done');
  });

  test('proves nothing by itself when it is empty, but its cursor is followed', () => {
    const judged = judgePage(ask(), full([]), FRESH);
    expect(judged).toMatchObject({ covers: null, next: 'cursor', nearSeen: false });
  });

  test('a reading that is missing several times over is a restatement: the walk goes on without it', () => {
    const waived = { ...FRESH, overlapWaived: true };
    const judged = judgePage(ask(), full(readings(199, 170, 150)), waived);
    expect(judged).toMatchObject({ next: 'time', covers: { from: at(150) + 1n, to: at(200) }, overlapMissing: false });
  });
});

describe('a page that ends its window', () => {
  test('proves all that was asked when it shows both overlap readings', () => {
    const judged = judgePage(ask(), pageOf([NEAR, reading(150), FAR]), FRESH);
    expect(judged).toMatchObject({ next: 'done', reason: null });
    expect(judged.covers).toEqual({ ...GAP, first: edgeOf(reading(150)), last: edgeOf(reading(150)) });
  });

  test('proves that there is nothing when it shows the overlap readings alone', () => {
    const judged = judgePage(ask(), pageOf([NEAR, FAR]), FRESH);
    expect(judged.covers).toEqual({ ...GAP, first: null, last: null });
  });

  test.each([
    ['the near one', [reading(150), FAR], /goes on from/],
    ['the far one', [NEAR, reading(150)], /far end/],
    ['both', [], /goes on from/],
  ])('proves nothing without its overlap readings: %s', (_, list, reason) => {
    const judged = judgePage(ask(), pageOf(list), FRESH);
    expectNothing(judged, reason);
    expect(judged.overlapMissing).toBe(true);
    expect(judged.readings).toHaveLength(list.length);
  });

  test('lacks its overlap reading however often it was empty before', () => {
    expectNothing(judgePage(ask({ near: null }), pageOf([]), { ...FRESH, emptyBefore: 5 }), /far end/);
  });

  test('that is empty proves nothing the first time and all the second time, where no held reading can confirm it', () => {
    const asked = ask(WITHOUT_OVERLAP);
    const first = judgePage(asked, pageOf([]), FRESH);
    expectNothing(first, /empty/);
    expect(first.overlapMissing).toBe(false);
    const second = judgePage(asked, pageOf([]), { ...FRESH, emptyBefore: 1 });
    expect(second).toMatchObject({ next: 'done', covers: { ...GAP, first: null, last: null } });
  });

  test('needs the second empty answer even where missing overlap readings are accepted', () => {
    const waived = { ...FRESH, overlapWaived: true };
    expectNothing(judgePage(ask(), pageOf([]), waived), /empty/);
    expect(judgePage(ask(), pageOf([]), { ...waived, emptyBefore: 1 }).next).toBe('done');
  });

  test('counts in whatever order it came, for it was read to its end', () => {
    const judged = judgePage(ask(), pageOf([FAR, reading(150), reading(120), NEAR]), FRESH);
    expect(judged.covers).toEqual({ ...GAP, first: edgeOf(reading(120)), last: edgeOf(reading(150)) });
  });
});

describe('a page that is not what was asked for', () => {
  test('proves nothing and keeps nothing when it is of another device', () => {
    const judged = judgePage(ask(), { ...pageOf([NEAR, reading(150), FAR]), deviceId: 'd2' }, FRESH);
    expectNothing(judged, /another device/);
    expect(judged.readings).toEqual([]);
  });

  test('is taken where it does not say of which device it is', () => {
    expect(judgePage(ask(), { ...pageOf([NEAR, FAR]), deviceId: null }, FRESH).next).toBe('done');
  });

  test('proves nothing when its readings are not newest first, but keeps them', () => {
    const judged = judgePage(ask(), full([NEAR, ...readings(150, 160, 140)]), FRESH);
    expectNothing(judged, /newest first/);
    expect(judged.readings).toHaveLength(4);
    expect(judged.overlapMissing).toBe(false);
  });

  test('may have several readings of one instant', () => {
    const offsets = [reading(160, { a: 1 }), reading(160, { a: 2 }), reading(160, { a: 1 })];
    expect(judgePage(ask(), full([NEAR, ...readings(180, 170), ...offsets]), FRESH).next).not.toBe('again');
  });

  test('has the slack as tolerance beyond the asked bounds, and not a nanosecond more', () => {
    const asked = ask(WITHOUT_OVERLAP);
    const high = at(202) + SLACK_NS;
    const low = at(98) - SLACK_NS;
    const judge = (list: readonly EpochNs[]): Judgement =>
      judgePage(asked, full(list.map((instant) => readingAt(instant))), FRESH);
    expect(judge([high, at(150), at(140), at(130)]).next).toBe('time');
    expectNothing(judge([high + 1n, at(150), at(140)]), /outside/);
    expect(judge([at(150), low]).next).toBe('done');
    expectNothing(judge([at(150), low - 1n]), /outside/);
  });

  test('may be as new as it likes while live', () => {
    const asked = ask({ live: true, ...WITHOUT_OVERLAP });
    expect(judgePage(asked, full(readings(99_999, 180, 150, 140)), FRESH).next).toBe('time');
  });
});

describe('what the plan may hide', () => {
  const judgeEnd = (
    list: readonly Reading[],
    visible: EpochNs,
    changes: Partial<OpenGap> = WITHOUT_OVERLAP,
  ): Judgement => judgePage(ask(changes), pageOf(list), { ...FRESH, visibleFromNs: visible, emptyBefore: 1 });

  test('an end of the data is no proof below what is surely shown', () => {
    const judged = judgeEnd(readings(190, 180), at(150));
    expect(judged).toMatchObject({ next: 'done', reason: 'beyond plan', covers: { from: at(150), to: at(200) } });
  });

  test('it is one down to the oldest reading that was shown all the same', () => {
    expect(judgeEnd(readings(190, 120), at(150))).toMatchObject({ reason: 'beyond plan', covers: { from: at(120) } });
  });

  test('it is one where all that was asked is surely shown', () => {
    expect(judgeEnd(readings(190), at(100))).toMatchObject({ reason: null, covers: GAP });
  });

  test('it is one where the reading at the far end is shown', () => {
    const judged = judgeEnd([reading(190), FAR], at(150), { near: null });
    expect(judged).toMatchObject({ reason: null, covers: GAP });
  });

  test('an empty window that lies below it altogether proves nothing, and no stretch beyond the gap', () => {
    const judged = judgeEnd([], at(5000));
    expect(judged).toMatchObject({ next: 'done', reason: 'beyond plan' });
    expect(judged.covers).toMatchObject({ from: GAP.to, to: GAP.to });
  });

  test('an overlap reading below it need not be shown, one above it must', () => {
    expect(judgeEnd([], at(150), { near: null })).toMatchObject({ next: 'done', covers: { from: at(150) } });
    expectNothing(judgeEnd([], at(90), { near: null }), /far end/);
    expect(judgeEnd([], at(5000), {})).toMatchObject({ next: 'done', reason: 'beyond plan' });
    expectNothing(judgeEnd([], at(150), {}), /goes on from/);
  });

  test('a page that has more behind it proves what it shows at any age', () => {
    const judged = judgePage(ask(WITHOUT_OVERLAP), full(readings(190, 170, 150)), {
      ...FRESH,
      visibleFromNs: at(5000),
    });
    expect(judged).toMatchObject({ next: 'time', reason: null, covers: { from: at(150) + 1n } });
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
    expect(go(asked, page)).toEqual({ ...asked, cursor: 'more', nearSeen: true, below: at(150) });
  });

  test('is by cursor where asking by time would bring back most of the page', () => {
    const asked = ask(WITHOUT_OVERLAP);
    expect(go(asked, full(readings(190, 152.5, 152, 151, 150)))?.cursor).toBe('more');
    expect(go(asked, full(readings(190, 180, 151, 150)))?.cursor).toBeNull();
  });

  test('is by cursor until the overlap reading was seen, and the pages of the chain prove together', () => {
    const asked = ask({ near: edgeOf(reading(200, { a: 9 })) });
    const crowd = full([1, 2, 3].map((a) => reading(200, { a })));
    const first = judgePage(asked, crowd, FRESH);
    expect(first).toMatchObject({ covers: null, next: 'cursor', nearSeen: false });
    const second = nextRequest(asked, first, { page: crowd, gap: GAP, far: edgeOf(FAR), limits: NO_LIMITS });
    expect(second).toEqual({ ...asked, cursor: 'more', nearSeen: false, below: at(200) });
    if (second === null) return;
    const rest = full([reading(200, { a: 9 }), ...readings(180, 170, 160)]);
    const judged = judgePage(second, rest, FRESH);
    expect(judged).toMatchObject({ next: 'time', nearSeen: true, covers: { from: at(160) + 1n, to: at(200) } });
    expectNothing(judgePage(second, full(readings(190, 180)), FRESH), /goes on from/);
  });

  test('a chain that has seen its overlap reading need not see it again', () => {
    const chained: PageRequest = { ...ask(), cursor: 'more' as Cursor, nearSeen: true };
    const judged = judgePage(chained, pageOf([reading(150), FAR]), FRESH);
    expect(judged).toMatchObject({ next: 'done', covers: GAP });
  });

  test('is by cursor where the page ended at the overlap reading that it went on from: time did not move', () => {
    // A service that rounds bounds up to the second serves readings above `before`, here two of four.
    const near = reading(150);
    const asked = ask({ gap: { from: at(100), to: at(150) + 1n }, near: edgeOf(near) });
    const page = full([reading(152.9), reading(152.5), reading(151.5), near]);
    expect(judgePage(asked, page, FRESH)).toMatchObject({ next: 'cursor', nearSeen: true });
  });

  test('is not, once the window was read to its end, or the answer proved nothing', () => {
    expect(go(ask(), pageOf([NEAR, FAR]))).toBeNull();
    expect(go(ask(), full(readings(190, 150)))).toBeNull();
    expect(go(ask(), full([NEAR, ...readings(150, 99)]))).toBeNull();
  });

  test('goes on into the rest of the gap that the window was too narrow for', () => {
    const gap = { from: at(-100_000), to: at(200) };
    const limits = { ...NO_LIMITS, spanNs: HOUR_NS };
    const asked = requestFor(question({ gap, ...WITHOUT_OVERLAP }), limits);
    const page = full(readings(190, 100, -3000));
    const next = nextRequest(asked, judgePage(asked, page, FRESH), { page, gap, far: null, limits });
    expect(next?.gap.to).toBe(at(-3000) + 1n);
    expect(next?.gap.from).toBeLessThan(asked.gap.from);
  });
});
