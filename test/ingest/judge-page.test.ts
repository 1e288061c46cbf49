/**
 * Which range a page covers: a table of pages and verdicts, one row for each branch of the judgement. Complete scans
 * against services of all kinds: `whole-scans.test.ts`.
 */
import { describe, expect, test } from 'vitest';
import type { CoveredRange } from '../../src/core/coverage.ts';
import type { Interval } from '../../src/core/intervals.ts';
import type { Cursor, Reading, TelemetryPage } from '../../src/core/records.ts';
import type { EpochNs } from '../../src/core/time.ts';
import { type JudgeContext, type Judgement, judgePage } from '../../src/ingest/judge-page.ts';
import { type OpenGap, type PageRequest, requestFor, SLACK_NS } from '../../src/ingest/page-request.ts';
import { at, edgeOf, pageOf, reading, readingAt } from '../core/support/readings.ts';

/** The gap from second 100 to second 200, with the stored readings around it. */
const GAP = { from: at(100), to: at(200) };
const NEAR = reading(200.5);
const FAR = reading(98);

/** The request for the gap: bounded by 96 and 203 with both overlap readings, by 98 and 202 without them. */
function ask(changes: Partial<OpenGap> = {}, more: Partial<PageRequest> = {}): PageRequest {
  const open = { deviceId: 'd1', gap: GAP, near: edgeOf(NEAR), far: edgeOf(FAR), live: false, ...changes };
  return { ...requestFor(open, { widthNs: null, nowNs: at(10_000), bothBounds: false }), ...more };
}

const ALONE = { near: null, far: null };
const ABOVE_ALONE = { near: null };
const CHAINED = { cursor: 'this' as Cursor, below: at(180) };

/** Readings at the given seconds, in the order given. */
const readings = (...seconds: number[]): Reading[] => seconds.map((second) => reading(second));
const atNs = (...instants: EpochNs[]): Reading[] => instants.map((instant) => readingAt(instant));
/** A page that names a next one, and one that does not. */
const more = (...list: readonly Reading[]): TelemetryPage => pageOf(list, 'more');
const last = (...list: readonly Reading[]): TelemetryPage => pageOf(list);

/** The facts beside the page. */
const seenEmpty = { emptyBefore: 1 };
const waived = { accepts: 'any' } as const;
const restated = { accepts: 'replaced' } as const;
const shownFrom = (seconds: number): Partial<JudgeContext> => ({ visibleFromNs: at(seconds), emptyBefore: 1 });

function judge(request: PageRequest, page: TelemetryPage, known: Partial<JudgeContext> = {}): Judgement {
  return judgePage(request, page, {
    visibleFromNs: null,
    emptyBefore: 0,
    accepts: 'none',
    seenAt: null,
    ...known,
  });
}

const down = (from: EpochNs): Interval => ({ from, to: GAP.to });
const bounds = (covers: CoveredRange | null): Interval | null => covers && { from: covers.from, to: covers.to };

type Row = readonly [
  reader: string,
  request: PageRequest,
  page: TelemetryPage,
  known: Partial<JudgeContext>,
  verdict: { readonly covers: Interval; readonly next: Judgement['next']; readonly reason?: string },
];

describe('a page covers', () => {
  test.each<Row>([
    // A page that names a next one.
    [
      'the range above its oldest reading, but not that instant, which may have more readings',
      ask(),
      more(NEAR, ...readings(190, 170, 150)),
      {},
      { covers: down(at(150) + 1n), next: 'time' },
    ],
    [
      'the range above its oldest reading where no stored reading lies above the gap',
      ask(ALONE),
      more(...readings(199, 180, 150)),
      {},
      { covers: down(at(150) + 1n), next: 'time' },
    ],
    [
      'the whole gap once it reaches below it, the stored reading further down not shown',
      ask(),
      more(NEAR, ...readings(150, 99)),
      {},
      { covers: GAP, next: 'done' },
    ],
    [
      'the whole gap where it shows the stored reading that it passes',
      ask(),
      more(NEAR, reading(150), FAR, reading(97)),
      {},
      { covers: GAP, next: 'done' },
    ],
    [
      'all but the lowest instant where it ends there: that may have more readings',
      ask(),
      more(NEAR, ...readings(150, 140, 130, 100)),
      {},
      { covers: down(GAP.from + 1n), next: 'time' },
    ],
    [
      'the range above its oldest reading where the overlap reading shares its instant with another',
      ask(),
      more(reading(200.5, { t: 'twin' }), NEAR, ...readings(190, 170, 150)),
      {},
      { covers: down(at(150) + 1n), next: 'time' },
    ],
    [
      'the range above its oldest instant where several readings share that instant, equal ones too',
      ask(),
      more(NEAR, ...readings(180, 170, 165), reading(160, { a: 1 }), reading(160, { a: 2 }), reading(160, { a: 1 })),
      {},
      { covers: down(at(160) + 1n), next: 'time' },
    ],
    [
      'the range above its oldest reading without the overlap reading, where the service has restated its history',
      ask(),
      more(...readings(201, 170, 150)),
      restated,
      { covers: down(at(150) + 1n), next: 'time' },
    ],
    [
      'the range above its oldest reading at any age: the plan does not hide readings that the page shows',
      ask(ALONE),
      more(...readings(190, 170, 150)),
      shownFrom(5000),
      { covers: down(at(150) + 1n), next: 'time' },
    ],
    [
      'the range above its oldest reading where the request has no upper bound and a reading is newer than the gap',
      ask({ live: true, ...ALONE }),
      more(...readings(99_999, 180, 150, 140)),
      {},
      { covers: down(at(140) + 1n), next: 'time' },
    ],
    [
      'the range above its oldest reading where a reading is outside the bounds by the slack: a service may round them',
      ask(ALONE),
      more(...atNs(at(202) + SLACK_NS, at(150), at(140), at(130))),
      {},
      { covers: down(at(130) + 1n), next: 'time' },
    ],
    [
      'the whole gap with a reading below the bound by the slack',
      ask(ALONE),
      more(...atNs(at(150), at(98) - SLACK_NS)),
      {},
      { covers: GAP, next: 'done' },
    ],
    [
      'the range above its oldest reading, and its cursor follows where a request by time would repeat most of the page',
      ask(ALONE),
      more(...readings(190, 152.5, 152, 151, 150)),
      {},
      { covers: down(at(150) + 1n), next: 'cursor' },
    ],
    [
      'the range above its only instant, and its cursor follows where that instant fills the page',
      ask(ALONE),
      more(...[1, 2, 3].map((a) => reading(150, { a }))),
      {},
      { covers: down(at(150) + 1n), next: 'cursor' },
    ],
    [
      'the range above its oldest reading where an earlier page of the chain has shown the overlap reading',
      ask({}, { ...CHAINED, nearSeen: true }),
      more(...readings(170, 160, 150)),
      {},
      { covers: down(at(150) + 1n), next: 'time' },
    ],
    [
      'the range above its oldest reading where it is the page of a chain that shows the overlap reading',
      ask({ near: edgeOf(reading(180)) }, CHAINED),
      more(...readings(180, 170, 165, 160)),
      {},
      { covers: down(at(160) + 1n), next: 'time' },
    ],
    // A page that ends its range.
    [
      'all that was requested where it shows both overlap readings',
      ask(),
      last(NEAR, reading(150), FAR),
      {},
      { covers: GAP, next: 'done' },
    ],
    [
      'a gap without readings where it shows both overlap readings',
      ask(),
      last(NEAR, FAR),
      {},
      { covers: GAP, next: 'done' },
    ],
    [
      'a gap without readings where it shows both overlap readings but does not name its device',
      ask(),
      { ...last(NEAR, FAR), deviceId: null },
      {},
      { covers: GAP, next: 'done' },
    ],
    [
      'all that was requested where it ends a chain that has shown the overlap reading before',
      ask({}, { ...CHAINED, nearSeen: true }),
      last(reading(150), FAR),
      {},
      { covers: GAP, next: 'done' },
    ],
    [
      'an empty gap where a second answer is empty and no stored reading could contradict it',
      ask(ALONE),
      last(),
      seenEmpty,
      { covers: GAP, next: 'done' },
    ],
    [
      'an empty gap where a second answer is empty and the overlap readings are known to be gone',
      ask(),
      last(),
      { ...waived, ...seenEmpty },
      { covers: GAP, next: 'done' },
    ],
    // The range that the plan may hide.
    [
      'an end of the data only as far back as the plan surely shows readings',
      ask(ALONE),
      last(...readings(190, 180)),
      shownFrom(150),
      { covers: down(at(150)), next: 'done', reason: 'beyond_plan' },
    ],
    [
      'a gap that the plan may hide down to the oldest reading of the page',
      ask(ALONE),
      last(...readings(190, 120)),
      shownFrom(150),
      { covers: down(at(120)), next: 'done', reason: 'beyond_plan' },
    ],
    // A sign of life.
    [
      'all that was requested where it has a reading above the gap, though not of the time of a newer sign of life',
      ask(ABOVE_ALONE),
      last(readingAt(GAP.to), FAR),
      { seenAt: GAP.to + 60n * 10n ** 9n },
      { covers: GAP, next: 'done' },
    ],
    [
      'all that was requested where it has a reading of the time of a sign of life, or of a second before it',
      ask(ABOVE_ALONE),
      last(reading(180), FAR),
      { seenAt: at(181) },
      { covers: GAP, next: 'done' },
    ],
    [
      'all that was requested where it continues from a stored reading that is newer than the sign of life',
      ask(),
      last(NEAR, reading(150), FAR),
      { seenAt: at(180) },
      { covers: GAP, next: 'done' },
    ],
    [
      'the whole gap where the plan surely shows all of it',
      ask(ALONE),
      last(reading(190)),
      shownFrom(100),
      { covers: GAP, next: 'done' },
    ],
    [
      'the whole gap where it shows the stored reading at the far end',
      ask(ABOVE_ALONE),
      last(reading(190), FAR),
      shownFrom(150),
      { covers: GAP, next: 'done' },
    ],
    [
      'nothing of a gap that the plan may hide altogether, and nothing beyond it',
      ask(ALONE),
      last(),
      shownFrom(5000),
      { covers: { from: GAP.to, to: GAP.to }, next: 'done', reason: 'beyond_plan' },
    ],
    [
      'the range that the plan surely shows, without a far overlap reading that the plan may hide by now',
      ask(ABOVE_ALONE),
      last(),
      shownFrom(150),
      { covers: down(at(150)), next: 'done', reason: 'beyond_plan' },
    ],
    [
      'nothing, without a complaint, where the plan may hide both overlap readings',
      ask(),
      last(),
      shownFrom(5000),
      { covers: { from: GAP.to, to: GAP.to }, next: 'done', reason: 'beyond_plan' },
    ],
  ])('%s', (_, request, page, known, { covers, next, reason = null }) => {
    const judged = judge(request, page, known);
    expect({ ...judged, covers: bounds(judged.covers) }).toMatchObject({ covers, next, reason, overlapMissing: null });
    expect(judged.readings).toBe(page.readings);
  });
});

test('reaches back to its oldest reading, and without one as far as its bounds surely do', () => {
  const request = ask(ABOVE_ALONE);
  expect(judge(request, last(reading(190), FAR)).reachedTo).toBe(FAR.recordedAt);
  expect(judge(request, last(reading(190)), waived).reachedTo).toBe(request.after + 2n * SLACK_NS);
  expect(judge(request, last(reading(190)), { ...waived, ...shownFrom(150) }).reachedTo, 'not to its end').toBeNull();
});

type Nothing = readonly [
  reader: string,
  request: PageRequest,
  page: TelemetryPage,
  known: Partial<JudgeContext>,
  reason: RegExp,
];

const DISORDERED: readonly Nothing[] = [
  ['is not newest first', ask(), more(NEAR, ...readings(150, 160, 140)), {}, /newest first/],
  [
    'is not newest first, though it shows both overlap readings and ends the range',
    ask(),
    last(FAR, ...readings(120, 150), NEAR),
    {},
    /newest first/,
  ],
  [
    'stops short of a sign of life inside the gap',
    ask(ABOVE_ALONE),
    last(reading(150), FAR),
    { seenAt: at(180) },
    /device was last seen/,
  ],
  [
    'stops short of the gap and of a sign of life above it',
    ask(ABOVE_ALONE),
    last(reading(150), FAR),
    { seenAt: GAP.to + 10n ** 9n },
    /device was last seen/,
  ],
  [
    'stops short of a sign of life inside the gap and names a next page',
    ask(ALONE),
    more(...readings(150, 120)),
    { seenAt: at(180) },
    /device was last seen/,
  ],
  [
    'ends the range with a reading that was not requested',
    ask(),
    last(NEAR, reading(150), FAR, reading(40)),
    {},
    /outside/,
  ],
  [
    'continues above the page before it',
    ask({}, { ...CHAINED, nearSeen: true }),
    more(...readings(181, 170)),
    {},
    /newest first/,
  ],
  [
    'is above the bounds by more than the slack',
    ask(ALONE),
    more(...atNs(at(202) + SLACK_NS + 1n, at(150))),
    {},
    /outside/,
  ],
  [
    'is below the bounds by more than the slack',
    ask(ALONE),
    more(...atNs(at(150), at(98) - SLACK_NS - 1n)),
    {},
    /outside/,
  ],
  [
    'names itself as the next page',
    ask({}, CHAINED),
    pageOf(readings(180), 'this'),
    {},
    /next_cursor leads to pages that were served before/,
  ],
  [
    'names one more page after many that had only what the chain has shown before',
    ask({}, { ...CHAINED, chain: { shown: new Set([edgeOf(reading(180)).digest]), idlePages: 20 } }),
    pageOf(readings(180), 'another'),
    {},
    /next_cursor leads to pages that were served before/,
  ],
  [
    'is empty for the first time, where no stored reading could support it',
    ask(ALONE),
    last(),
    {},
    /must be confirmed/,
  ],
  [
    'is empty for the first time, where overlap readings are known to be gone',
    ask(),
    last(),
    waived,
    /must be confirmed/,
  ],
];

const WITHOUT_OVERLAP: readonly Nothing[] = [
  [
    'passes the reading that it continues from without showing it',
    ask(),
    more(...readings(201, 190, 150)),
    {},
    /newer end/,
  ],
  [
    'shows the reading that it continues from with other values',
    ask(),
    more(reading(200.5, { t: 'altered' }), ...readings(190, 150)),
    {},
    /newer end/,
  ],
  [
    'shows the reading that it continues from a nanosecond off',
    ask(),
    more({ ...NEAR, recordedAt: NEAR.recordedAt + 1n }, ...readings(190, 150)),
    {},
    /newer end/,
  ],
  ['passes the reading at its far end without showing it', ask(), more(NEAR, ...readings(150, 97)), {}, /older end/],
  [
    'passes the reading that its chain continues from',
    ask({ near: edgeOf(reading(180, { a: 9 })) }, CHAINED),
    more(...readings(179, 170)),
    {},
    /newer end/,
  ],
  [
    'ends the range with another reading in place of the one at its far end',
    ask(),
    last(NEAR, reading(98, { t: 'altered' })),
    {},
    /older end/,
  ],
];

const SHORT_OF_OVERLAP: readonly Nothing[] = [
  ['ends the range without the reading that it continues from', ask(), last(reading(150), FAR), {}, /newer end/],
  ['begins below the reading that it continues from', ask(), more(...readings(199, 150)), {}, /newer end/],
  ['ends the range without the reading at its far end', ask(), last(NEAR, reading(150)), {}, /older end/],
  [
    'ends above the reading at its far end, the other altered',
    ask(),
    last(reading(202), reading(199)),
    {},
    /older end/,
  ],
  [
    'ends a chain of cursors without the reading at its far end',
    ask({}, { ...CHAINED, nearSeen: true }),
    last(reading(150)),
    {},
    /older end/,
  ],
  ['ends below the newest stored reading', ask(ABOVE_ALONE), last(reading(97.5)), {}, /older end/],
  ['is empty where both were to be shown', ask(), last(), {}, /newer end/],
  ['is empty again where one was to be shown', ask(ABOVE_ALONE), last(), { emptyBefore: 5 }, /older end/],
  ['misses a far reading that the plan surely shows', ask(ABOVE_ALONE), last(), shownFrom(90), /older end/],
  ['misses a near reading that the plan surely shows', ask(), last(), shownFrom(150), /newer end/],
];

describe('a page covers nothing, but its readings are kept, where it', () => {
  test.each(DISORDERED)('%s', (_, request, page, known, reason) => {
    const judged = judge(request, page, known);
    expect(judged).toMatchObject({ covers: null, next: 'again', overlapMissing: null, oldest: null });
    expect(judged.reason).toMatch(reason);
    expect(judged.readings).toBe(page.readings);
  });

  test.each(WITHOUT_OVERLAP)('%s, which may be a restatement', (_, request, page, known, reason) => {
    const judged = judge(request, page, known);
    const overlapMissing = { how: 'replaced' };
    expect(judged).toMatchObject({ covers: null, next: 'again', overlapMissing, nearSeen: request.nearSeen });
    expect(judged.reason).toMatch(reason);
    expect(judged.readings).toBe(page.readings);
  });

  test.each(SHORT_OF_OVERLAP)('%s, also where restatements are accepted', (_, request, page, known, reason) => {
    for (const accepts of ['none', 'replaced'] as const) {
      const judged = judge(request, page, { ...known, accepts });
      expect(judged).toMatchObject({ covers: null, next: 'again', overlapMissing: { how: 'not reached' } });
      expect(judged.reason).toMatch(reason);
      expect(judged.readings).toBe(page.readings);
    }
  });
});

describe('a page', () => {
  test('of another device covers nothing, and its readings are dropped', () => {
    const judged = judge(ask(), { ...last(NEAR, reading(150), FAR), deviceId: 'd2' });
    expect(judged).toMatchObject({ covers: null, next: 'again', readings: [], overlapMissing: null });
    expect(judged.reason).toMatch(/another device/);
  });

  test('that is empty but names a next one covers nothing; its cursor is followed', () => {
    expect(judge(ask(), more())).toMatchObject({ covers: null, next: 'cursor', nearSeen: false, oldest: null });
    expect(judge(ask(ALONE), more())).toMatchObject({ covers: null, next: 'cursor', nearSeen: true });
  });

  test('that has not reached its overlap reading covers nothing until the rest of its chain does', () => {
    const near = reading(200, { a: 9 });
    const crowd = judge(ask({ near: edgeOf(near) }), more(...[1, 2, 3].map((a) => reading(200, { a }))));
    expect(crowd).toMatchObject({ covers: null, next: 'cursor', reason: null, nearSeen: false });
    const chained = ask({ near: edgeOf(near) }, { cursor: 'more' as Cursor, below: at(200) });
    expect(judge(chained, pageOf([near, ...readings(180, 170, 160)], 'next'))).toMatchObject({
      covers: down(at(160) + 1n),
      next: 'time',
      nearSeen: true,
    });
  });

  test('that ends at the reading it continues from is followed by cursor: time has not moved on', () => {
    // A service that rounds bounds up to the second serves readings above `before`, here three of four.
    const near = reading(150);
    const request = ask({ gap: { from: at(100), to: at(150) + 1n }, near: edgeOf(near) });
    expect(judge(request, more(...readings(152.9, 152.5, 151.5), near))).toMatchObject({
      next: 'cursor',
      nearSeen: true,
    });
  });

  test('that repeats its cursor is followed once its readings have moved on', () => {
    expect(judge(ask(ALONE, CHAINED), pageOf(readings(180, 170, 160, 150), 'this'))).toMatchObject({ next: 'time' });
  });
});

describe('the edges of what a page covers', () => {
  test('are its newest and oldest reading inside the range, those above and below left out', () => {
    const { covers, oldest } = judge(ask(), last(NEAR, ...readings(190, 150, 120), FAR));
    expect(covers).toEqual({ ...GAP, first: edgeOf(reading(120)), last: edgeOf(reading(190)) });
    expect(oldest).toEqual(edgeOf(FAR));
  });

  test('are the oldest reading itself where more lies below it, though its instant is not covered', () => {
    const { covers, oldest } = judge(ask(), more(NEAR, ...readings(190, 170, 150)));
    expect(covers).toEqual({ from: at(150) + 1n, to: GAP.to, first: edgeOf(reading(150)), last: edgeOf(reading(190)) });
    expect(oldest).toEqual(edgeOf(reading(150)));
  });

  test('are the first and the last served of readings that share an instant', () => {
    const [newest, oldest] = [reading(150, { a: 1 }), reading(150, { a: 2 })];
    const { covers } = judge(ask(), last(NEAR, newest, reading(150, { a: 3 }), oldest, FAR));
    expect(covers).toMatchObject({ first: edgeOf(oldest), last: edgeOf(newest) });
  });

  test('are none where the range is empty', () => {
    expect(judge(ask(), last(NEAR, FAR)).covers).toEqual({ ...GAP, first: null, last: null });
    expect(judge(ask(ALONE), last(), seenEmpty).covers).toEqual({ ...GAP, first: null, last: null });
  });
});
