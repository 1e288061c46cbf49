/** The writes and reports of the commit of a judged page, on a real state. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { StateFullError } from '../../src/core/archive-room.ts';
import type { AppEvent } from '../../src/core/events.ts';
import { MAX_OFFSET_NS } from '../../src/core/lines/offsets.ts';
import { readingDigest } from '../../src/core/lines/points.ts';
import type { Reading, RejectedRecord } from '../../src/core/records.ts';
import { type PageCommit, StaleStateError } from '../../src/core/state/telemetry.ts';
import { HOUR_MS, MINUTE_MS, msToNs, SECOND_MS } from '../../src/core/time.ts';
import { commitInTurns, commitJudged, isAnyStored } from '../../src/ingest/commit.ts';
import type { SyncContext } from '../../src/ingest/context.ts';
import { liftGaps, nameGap } from '../../src/ingest/named-gaps.ts';
import { createFallWatch } from '../../src/ingest/server-time.ts';
import { device, pageCommit, readAll, type ScratchStore, scratchStore } from '../store/support.ts';
import { createVirtualClock } from '../support/virtual-clock.ts';

const NOW_MS = 1_780_000_000_000;
const GRACE_MS = 2 * MINUTE_MS;

type JudgedPage = Parameters<typeof commitJudged>[1];

let state: ScratchStore;
let events: AppEvent[];
let calls: string[];
/** The clock of the server: whether it has fallen back, and from when on nothing is covered. */
let server: { nowMs: number; presentAtMostMs: number | null; fellToMs: number | null };
let context: SyncContext;

beforeEach(() => {
  state = scratchStore();
  state.store.pinWorkspace({ apiId: null, tag: 'w' });
  events = [];
  calls = [];
  server = { nowMs: NOW_MS, presentAtMostMs: null, fellToMs: null };
  context = {
    store: state.store,
    clock: createVirtualClock(NOW_MS),
    serverClock: {
      nowMs: () => server.nowMs,
      passedMs: () => server.nowMs,
      isKnown: () => true,
      presentAtMostMs: () => server.presentAtMostMs,
      fellToMs: () => server.fellToMs,
    },
    observe: (event: AppEvent) => void events.push(event),
    settings: { gracePeriodMs: GRACE_MS, polls: { idlePollMs: HOUR_MS } },
    filterNotes: { touchesSensors: false, noteSensorsRead: () => {} },
    noteCommitted: ({ newPoints }: { newPoints: number }) => void calls.push(`committed ${newPoints}`),
    noteArchived: () => void calls.push('archived'),
    noteStateFull: () => void calls.push('full'),
  } as unknown as SyncContext;
});

afterEach(() => state[Symbol.dispose]());

/** The reading of a number of seconds ago. */
function reading(secondsAgo: number, value = secondsAgo): Reading {
  return { recordedAt: msToNs(NOW_MS - secondsAgo * SECOND_MS), values: [['level', value]] };
}

function edge(at: Reading) {
  return { at: at.recordedAt, digest: readingDigest(at) };
}

/** A page with these readings, newest first, that covers all between them. */
function pageOf(readings: readonly Reading[], changes: Partial<JudgedPage> = {}): JudgedPage {
  const [newest, oldest] = [readings.at(0), readings.at(-1)];
  const covers =
    newest === undefined || oldest === undefined
      ? null
      : { from: oldest.recordedAt, to: newest.recordedAt + 1n, first: edge(oldest), last: edge(newest) };
  return {
    deviceId: 'd',
    lane: 'live',
    reply: { value: { readings, rejected: [], nextCursor: null }, answeredAtMs: NOW_MS, requestId: 1 } as never,
    readings,
    covers,
    ...changes,
  };
}

function withRejected(page: JudgedPage, rejected: readonly RejectedRecord[]): JudgedPage {
  return { ...page, reply: { ...page.reply, value: { ...page.reply.value, rejected } } };
}

const typesOf = (): string[] => events.map(({ type }) => type);
const linesOf = (): readonly string[] => readAll(state, 'live').lines;
const coveredOf = () => state.store.telemetry('d').covered.map(({ from, to }) => [from, to]);

/** A store with another process of the same daemon: before a commit, something else is committed. */
function interfering(times: number): void {
  const { store } = state;
  let left = times;
  const between = (): void => {
    left -= 1;
    const { revision, covered, deviceId } = store.telemetry('d');
    store.commitPage(pageCommit({ deviceId, revision, covered }));
  };
  const interfered = {
    ...store,
    commitPage: (commit: PageCommit) => {
      if (left > 0) between();
      return store.commitPage(commit);
    },
  };
  Object.assign(context, { store: interfered });
}

/** @returns the ranges that stored lines were searched in since. */
function searching(): () => readonly (readonly [bigint, bigint])[] {
  const ranges: [bigint, bigint][] = [];
  const { store } = state;
  const stored: typeof store.stored = (deviceId, from, to) => {
    ranges.push([from, to]);
    return store.stored(deviceId, from, to);
  };
  Object.assign(context, { store: { ...store, stored } });
  return () => ranges;
}

describe('a page', () => {
  test('goes into the archive and into the coverage at once, and its commit is reported before the delivery', () => {
    const readings = [reading(200), reading(300), reading(400)];
    expect(commitJudged(context, pageOf(readings))).toEqual({ newReadings: 3, reopened: null });
    expect(linesOf()).toHaveLength(3);
    expect(coveredOf()).toEqual([[reading(400).recordedAt, reading(200).recordedAt + 1n]]);
    expect(events).toEqual([
      { type: 'page-committed', deviceId: 'd', lane: 'live', served: 3, readings: 3, newPoints: 3 },
    ]);
    expect(calls).toEqual(['committed 3', 'archived']);
  });

  test('that comes again adds no point', () => {
    const page = pageOf([reading(200), reading(300)]);
    commitJudged(context, page);
    const before = linesOf();
    expect(commitJudged(context, page).newReadings).toBe(0);
    expect(linesOf()).toEqual(before);
    expect(events.at(-1)).toMatchObject({ type: 'page-committed', served: 2, readings: 0, newPoints: 0 });
  });

  test('unpacks no block for the readings of the page before it', () => {
    const [a, b, c, d] = [reading(100), reading(200), reading(300), reading(400)];
    commitJudged(context, pageOf([b, c, d]));
    const searched = searching();
    expect(commitJudged(context, pageOf([a, b, c, d]))).toEqual({ newReadings: 1, reopened: null });
    expect(searched()).toEqual([[a.recordedAt - MAX_OFFSET_NS, a.recordedAt + MAX_OFFSET_NS]]);
    expect(linesOf()).toHaveLength(4);
  });

  test('is searched for where a reading of the page before it comes with another value or another sensor', () => {
    const [a, b, c, d] = [reading(100), reading(200), reading(300), reading(400)];
    commitJudged(context, pageOf([b, c, d]));
    const values: Reading['values'] = [...c.values, ['humidity', 5]];
    commitJudged(context, pageOf([a, b, { ...c, values }, d]));
    expect(linesOf().filter((line) => line.includes('sensor=humidity'))).toHaveLength(1);
    commitJudged(context, pageOf([a, b, reading(300, 7), d]));
    expect(linesOf()).toHaveLength(6);
  });

  test('is written again after its device was forgotten', () => {
    const page = pageOf([reading(200), reading(300), reading(400)]);
    const { forgetting, saveInventory } = state.store;
    const list = (): void => {
      const listed = [
        { record: device('d'), name: 'd', line: `device,device_id=d online=1 ${NOW_MS}000000`, digest: '' },
      ];
      saveInventory({ listed, missing: [], atMs: NOW_MS });
    };
    list();
    commitJudged(context, page);
    forgetting.begin('d', false);
    while (forgetting.step('d', []).state === 'going-on');
    list();
    expect(commitJudged(context, page).newReadings).toBe(3);
    expect(linesOf().filter((line) => line.startsWith('telemetry,'))).toHaveLength(3);
  });

  test('without readings that covers nothing changes nothing', () => {
    expect(commitJudged(context, pageOf([]))).toEqual({ newReadings: 0, reopened: null });
    expect([state.store.telemetry('d').revision, events, calls]).toEqual([0, [], []]);
  });

  test('without readings that covers a range is committed', () => {
    const covers = { from: 5n, to: 9n, first: null, last: null };
    commitJudged(context, pageOf([], { covers }));
    expect(coveredOf()).toEqual([[5n, 9n]]);
  });

  test('is not committed before the workspace is known', () => {
    using unknown = scratchStore();
    Object.assign(context, { store: unknown.store });
    expect(() => commitJudged(context, pageOf([reading(200)]))).toThrow('before the workspace was known');
    expect(calls).toEqual([]);
  });

  test('is of the history in every lane but the live one', () => {
    commitJudged(context, pageOf([reading(200)], { lane: 'backfill' }));
    expect([linesOf().length, readAll(state, 'history').lines.length]).toEqual([0, 1]);
  });
});

describe('a state that has changed since the page was judged', () => {
  test('has the commit computed again', () => {
    interfering(4);
    expect(commitJudged(context, pageOf([reading(200), reading(300)])).newReadings).toBe(2);
    expect(state.store.telemetry('d').revision).toBe(5);
    expect(linesOf()).toHaveLength(2);
  });

  test('again and again rejects the complete page: nothing is archived, covered or reported', () => {
    interfering(5);
    expect(() => commitJudged(context, pageOf([reading(200), reading(300)]))).toThrow(StaleStateError);
    expect([linesOf(), coveredOf(), events, calls]).toEqual([[], [], [], []]);
  });
});

describe('a page of many values', () => {
  const wide = (secondsAgo: number): Reading => ({
    recordedAt: msToNs(NOW_MS - secondsAgo * SECOND_MS),
    values: Array.from({ length: 1000 }, (_, index) => [`sensor-${index}`, secondsAgo] as const),
  });
  const readings = Array.from({ length: 12 }, (_, index) => wide(200 + index));

  test('is committed in parts with turns for other work, and covers nothing before the last one', async () => {
    const covered: number[] = [];
    const { clock } = context;
    Object.assign(context, {
      clock: {
        ...clock,
        sleep: async () => {
          covered.push(coveredOf().length);
          await Promise.resolve();
        },
      },
    });
    const done = await commitInTurns(context, pageOf(readings));
    expect(done.newReadings).toBe(12);
    expect(covered).toEqual([0, 0, 0]);
    expect(coveredOf()).toHaveLength(1);
    expect(linesOf()).toHaveLength(12_000);
    expect(new Set(typesOf()), 'none of them is late').toEqual(new Set(['page-committed']));
  });

  test('whose first part was committed before the program was killed is completed without a second point', async () => {
    const stopped = new Error('killed');
    const { clock } = context;
    Object.assign(context, { clock: { ...clock, sleep: () => Promise.reject(stopped) } });
    await expect(commitInTurns(context, pageOf(readings))).rejects.toBe(stopped);
    expect(linesOf()).toHaveLength(3000);
    Object.assign(context, { clock });
    expect((await commitInTurns(context, pageOf(readings))).newReadings).toBe(9);
    expect(new Set(linesOf()).size).toBe(12_000);
    expect(linesOf()).toHaveLength(12_000);
  });
});

test('a new reading in a covered range is reported as late, and makes the grace period longer', () => {
  commitJudged(context, pageOf([reading(600), reading(900)]));
  events.length = 0;
  commitJudged(context, pageOf([reading(600), reading(700), reading(900)]));
  expect(events.find(({ type }) => type === 'readings-late')).toMatchObject({
    deviceId: 'd',
    count: 1,
    worstMs: 700 * SECOND_MS,
    gracePeriodMs: 12 * MINUTE_MS,
  });
  expect(state.store.telemetry('d').late).toMatchObject({ readings: 1, gracePeriodMs: 12 * MINUTE_MS });
});

test.each([['isRecheck'], ['wasHidden']] as const)(
  'a new reading in a covered range is not late where the page is read again: %s',
  (why) => {
    commitJudged(context, pageOf([reading(600), reading(900)]));
    commitJudged(context, pageOf([reading(600), reading(700), reading(900)], { [why]: true }));
    expect(typesOf()).not.toContain('readings-late');
    expect(linesOf()).toHaveLength(3);
  },
);

test('rejected records are reported once, however often they come', () => {
  const rejected: RejectedRecord[] = [
    { reason: 'no time', record: '{"a":1}' },
    { reason: 'no time', record: '{"a":2}' },
    { reason: 'a list', record: '{"b":1}', droppedValues: 2 } as RejectedRecord,
    { reason: 'a list', record: '{"b":2}', droppedValues: 3 } as RejectedRecord,
  ];
  const page = withRejected(pageOf([reading(200)]), rejected);
  for (let count = 0; count < 2; count += 1) commitJudged(context, page);
  expect(events.filter(({ type }) => type !== 'page-committed')).toEqual([
    { type: 'records-rejected', stream: 'telemetry', count: 2, reason: 'no time' },
    { type: 'values-dropped', deviceId: 'd', count: 5, reason: 'a list' },
  ]);
});

describe('a server clock that falls back', () => {
  /** Covers up to now by a clock that is an hour ahead; then that shows. */
  const coverAhead = (): void => {
    commitJudged(context, pageOf([reading(60), reading(3 * 3600)]));
    server = { nowMs: NOW_MS - HOUR_MS, presentAtMostMs: NOW_MS - HOUR_MS, fellToMs: NOW_MS - HOUR_MS };
  };
  const saved = (): void => {
    const change = { record: device('d'), name: 'd', line: null, digest: 'd' };
    state.store.saveInventory({ listed: [change], missing: [], atMs: NOW_MS });
  };

  test('withdraws the coverage beyond its present, once', () => {
    saved();
    let withdrawn = 0;
    const watch = createFallWatch(context, () => {
      withdrawn += 1;
    });
    watch();
    coverAhead();
    for (let count = 0; count < 3; count += 1) watch();
    expect(withdrawn).toBe(1);
    const end = coveredOf().at(-1)?.[1] ?? 0n;
    expect(end).toBeLessThanOrEqual(msToNs(NOW_MS - HOUR_MS - GRACE_MS));
    expect(events.filter(({ type }) => type === 'coverage-withdrawn')).toHaveLength(1);
    expect(linesOf(), 'no point is removed').toHaveLength(2);
  });

  test('is tried again with the next answer where the state is full', () => {
    saved();
    coverAhead();
    const { store } = state;
    let isFull = true;
    const commitPage = (commit: PageCommit) => {
      if (isFull) throw new StateFullError('the disk is full', null, 1);
      return store.commitPage(commit);
    };
    Object.assign(context, { store: { ...store, commitPage } });
    let withdrawn = 0;
    const watch = createFallWatch(context, () => {
      withdrawn += 1;
    });
    calls.length = 0;
    watch();
    expect([withdrawn, calls]).toEqual([0, ['full']]);
    isFull = false;
    watch();
    expect(withdrawn).toBe(1);
  });
});

test('a gap is named with the time of its next try, and lifted with the others of its reason', () => {
  nameGap(context, { deviceId: 'd', from: 5n, to: 9n, reason: 'unreachable' });
  nameGap(context, { deviceId: 'd', from: 20n, to: 30n, reason: 'beyond_plan' }, MINUTE_MS);
  expect(events.map((event) => ('reason' in event ? event.reason : null))).toEqual(['unreachable', 'beyond_plan']);
  const retries = () => state.store.gaps('d').map(({ retryAtMs }) => retryAtMs - NOW_MS);
  expect(retries()).toEqual([5 * MINUTE_MS, MINUTE_MS]);
  liftGaps(context, 'd', 'unreachable');
  expect(retries()).toEqual([0, MINUTE_MS]);
});

test('whether anything is stored in a range counts the beginning, not the end', () => {
  commitJudged(context, pageOf([reading(200)]));
  const at = reading(200).recordedAt;
  const isStored = (from: bigint, to: bigint): boolean => isAnyStored(state.store, 'd', { from, to });
  expect([isStored(at, at + 1n), isStored(at - 10n, at), isStored(at + 1n, at + 9n)]).toEqual([true, false, false]);
  expect(isStored(at - msToNs(30 * 24 * HOUR_MS), at + msToNs(MINUTE_MS)), 'far below the end').toBe(true);
});
