/**
 * The facts that planning passes on to the planner, and those that it keeps: the present, the rest, the goals, and the
 * doubts about the plan.
 */
import { describe, expect, test } from 'vitest';
import { HISTORY_LANES } from '../../src/core/ports.ts';
import { DAY_NS, HOUR_MS, MINUTE_MS, msToNs, SECOND_MS } from '../../src/core/time.ts';
import { wantedNow } from '../../src/ingest/wanted-range.ts';
import { ratesOf } from '../../src/scheduler/device-queue.ts';
import { createWantedGoal, type Goal } from '../../src/scheduler/goal.ts';
import { setOpenHistory } from '../../src/scheduler/history-queue.ts';
import {
  noteBegan,
  noteDecisionFailed,
  noteStreamRead,
  requestedStreams,
  takeDecision,
  turnOff,
} from '../../src/scheduler/planner.ts';
import type { Rest } from '../../src/scheduler/planner-types.ts';
import {
  advancePlanning,
  beginOneOff,
  beginPlanning,
  checkDemand,
  endRests,
  enterStream,
  hasStarted,
  nextGoalGap,
  noteBooked,
  noteCommitted,
  noteDone,
  noteLimitMismatch,
  notePlanChanged,
  noteWithdrawn,
  openHistoryIn,
  type Planning,
  plannedMs,
  relistDevices,
  removeDevice,
  reopenDevice,
  requestStream,
  setGoal,
  setRest,
  viewDevice,
} from '../../src/scheduler/planning.ts';
import { device, pageCommit, scratchStore } from '../store/support.ts';
import { createSessionWorld, listBefore, mute, START_MS } from './session-world.ts';

/** Planning over two devices that are known and of which nothing is stored; the server's time is known. */
function createWorld(state: ReturnType<typeof scratchStore>) {
  listBefore(state, [mute('a'), mute('b')]);
  const world = createSessionWorld(state);
  world.hear();
  return world;
}

const asked = ({ polled }: Planning): string[] => [...polled].toSorted();

/** A goal of one device that counts the calls to it. */
function countingGoal(deviceId: string) {
  const counts = { sent: 0, committed: 0 };
  const goal: Goal = {
    covers: (each) => each === deviceId,
    open: (each) => ({ day: 0, week: 0, rest: each === deviceId ? 1000 : 0 }),
    next: () => null,
    freeAtMs: () => Number.NEGATIVE_INFINITY,
    noteSent: () => {
      counts.sent += 1;
    },
    noteCommitted: () => {
      counts.committed += 1;
    },
  };
  return { goal, counts };
}

describe('the start', () => {
  test('uses the known devices, and lists them if they were not listed', () => {
    using state = scratchStore();
    const { planning } = createWorld(state);
    expect(hasStarted(planning)).toBe(false);
    beginPlanning(planning, { areListed: false });
    expect(hasStarted(planning)).toBe(true);
    expect(asked(planning)).toEqual(['a', 'b']);
    expect(requestedStreams(planning.planner)).toEqual(['devices']);
  });

  test.each([true, false])('goes by the device list only if that was read: %s', (areListed) => {
    using state = scratchStore();
    listBefore(state, [device('a', { lastSeenAt: msToNs(START_MS - MINUTE_MS) })]);
    const { planning, hear } = createSessionWorld(state);
    hear();
    beginPlanning(planning, { areListed });
    const { planner } = planning;
    let decision = takeDecision(planner, START_MS);
    while (decision.kind !== 'rest' && decision.kind !== 'poll') {
      noteBegan(planner, decision, START_MS);
      decision = takeDecision(planner, START_MS);
    }
    expect(decision).toMatchObject({ kind: 'poll', lane: 'live', deviceId: 'a' });
    expect('needsRate' in decision, 'without a list its page is to show the rate').toBe(!areListed);
  });

  test('polls a device that was never seen with the live work, unless the list shows it as offline', () => {
    using state = scratchStore();
    const unseen = { lastSeenAt: null };
    listBefore(state, [device('on', { ...unseen, online: null }), device('off', { ...unseen, online: false })]);
    const { planning, hear } = createSessionWorld(state);
    hear();
    beginPlanning(planning, { areListed: true });
    const { planner } = planning;
    const polls: string[] = [];
    for (
      let decision = takeDecision(planner, START_MS);
      decision.kind !== 'rest';
      decision = takeDecision(planner, START_MS)
    ) {
      if (decision.kind === 'poll') polls.push(`${decision.lane} ${decision.deviceId}`);
      noteBegan(planner, decision, START_MS);
    }
    expect(polls).toEqual(['live on', 'idle-poll off']);
  });

  test('of a one-off includes only the devices of its goal, and the streams that it names', () => {
    using state = scratchStore();
    const { planning } = createWorld(state);
    const { goal } = countingGoal('b');
    beginOneOff(planning, { lane: 'first-history', goal, streams: [] });
    expect(asked(planning)).toEqual(['b']);
    expect(takeDecision(planning.planner, advancePlanning(planning))).toEqual({
      kind: 'history',
      lane: 'first-history',
      deviceId: 'b',
      recency: 'rest',
    });
  });
});

describe('the present', () => {
  test('does not fall back by a little', () => {
    using state = scratchStore();
    const { planning, context } = createWorld(state);
    beginPlanning(planning, { areListed: true });
    const before = advancePlanning(planning);
    const { planner } = planning;
    Object.assign(context.serverClock, { nowMs: () => START_MS - 5 * SECOND_MS });
    expect([plannedMs(planning), advancePlanning(planning)]).toEqual([before, before]);
    expect(planning.planner).toBe(planner);
  });

  test('that has fallen back begins anew, and keeps the streams that a job waits for', () => {
    using state = scratchStore();
    const { planning, context } = createWorld(state);
    beginPlanning(planning, { areListed: true });
    requestStream(planning, 'alerts', false);
    const { planner } = planning;
    Object.assign(context.serverClock, { nowMs: () => START_MS - HOUR_MS });
    expect(advancePlanning(planning)).toBe(START_MS - HOUR_MS);
    expect(planning.planner).not.toBe(planner);
    expect(requestedStreams(planning.planner)).toEqual(['alerts']);
  });

  test('begins anew where coverage was taken back, once', () => {
    using state = scratchStore();
    const { planning } = createWorld(state);
    beginPlanning(planning, { areListed: true });
    const { planner } = planning;
    noteWithdrawn(planning);
    advancePlanning(planning);
    const anew = planning.planner;
    expect(anew).not.toBe(planner);
    advancePlanning(planning);
    expect(planning.planner).toBe(anew);
  });
});

describe('a device', () => {
  test('that has left is not polled because of its gaps', () => {
    using state = scratchStore();
    const { planning } = createWorld(state);
    beginPlanning(planning, { areListed: true });
    setGoal(planning, 'backfill', countingGoal('a').goal);
    expect(openHistoryIn(planning, 'backfill', 'a').rest).toBe(1000);
    expect(viewDevice(planning, 'a')).not.toBeNull();
    removeDevice(planning, 'a');
    expect(viewDevice(planning, 'a')).toBeNull();
    expect(openHistoryIn(planning, 'backfill', 'a')).toEqual({ day: 0, week: 0, rest: 0 });
    expect(nextGoalGap(planning, { lane: 'backfill', deviceId: 'a', recency: 'rest' })).toBeNull();
  });

  test('is viewed only once the server’s time is known', () => {
    using state = scratchStore();
    listBefore(state, [mute('a')]);
    const { planning, hear } = createSessionWorld(state);
    beginPlanning(planning, { areListed: true });
    expect(viewDevice(planning, 'a')).toBeNull();
    hear();
    const { from, to } = viewDevice(planning, 'a')?.wanted ?? { from: 0n, to: 0n };
    expect(to - from).toBe(8n * DAY_NS - msToNs(2 * MINUTE_MS + SECOND_MS));
  });
});

test('confirmed empty answers of a device prevent a poll for its signs of life after a restart', () => {
  using state = scratchStore();
  const seen = { lastSeenAt: msToNs(START_MS - MINUTE_MS) };
  listBefore(state, [device('a', seen), device('b', seen)]);
  const world = createSessionWorld(state);
  world.hear();
  const to = msToNs(START_MS - 10 * MINUTE_MS);
  const empty = { from: to - 9n * DAY_NS, to, sinceMs: 0, answers: 3, dueMs: null };
  for (const [deviceId, confirmed] of [
    ['a', 3],
    ['b', 2],
  ] as const) {
    const { revision } = state.store.telemetry(deviceId);
    const covered = [{ from: empty.from, to, first: null, last: null }];
    state.store.commitPage(pageCommit({ deviceId, revision, covered }));
    state.store.saveEmptyRange(deviceId, { ...empty, confirmed });
  }
  beginPlanning(world.planning, { areListed: true });
  const { planner } = world.planning;
  const polled: string[] = [];
  for (
    let decision = takeDecision(planner, START_MS);
    decision.kind !== 'rest';
    decision = takeDecision(planner, START_MS)
  ) {
    if (decision.kind === 'poll') polled.push(decision.deviceId);
    noteBegan(planner, decision, START_MS);
  }
  expect(polled).toEqual(['b']);
});

describe('a goal', () => {
  test('goes before the history of the device', () => {
    using state = scratchStore();
    const { planning, context } = createWorld(state);
    const wantedRange = wantedNow(context);
    if (wantedRange === null) throw new Error('the time is known');
    const goal = createWantedGoal(context, wantedRange);
    beginOneOff(planning, { lane: 'first-history', goal, streams: [] });
    const piece = nextGoalGap(planning, { lane: 'first-history', deviceId: 'a', recency: 'day' });
    expect(piece).toMatchObject({ lane: 'live', limit: wantedRange.limit });
    expect(piece?.range.to).toBe(wantedRange.limit);
  });

  test('of a backfill counts the requests and pages of its lane alone', () => {
    using state = scratchStore();
    const { planning } = createWorld(state);
    beginPlanning(planning, { areListed: true });
    const { goal, counts } = countingGoal('a');
    setGoal(planning, 'backfill', goal);
    expect(openHistoryIn(planning, 'backfill', 'a').rest).toBe(1000);
    for (const lane of ['live', 'backfill'] as const) {
      noteBooked(planning, { lane, stream: 'telemetry', deviceId: 'a' });
      noteCommitted(planning, { lane, newReadings: 1, newPoints: 1 });
    }
    expect(counts).toEqual({ sent: 1, committed: 1 });
    setGoal(planning, 'backfill', null);
    expect(openHistoryIn(planning, 'backfill', 'a').rest).toBe(0);
  });
});

describe('a stream', () => {
  test('of a one-off is over once it was read, or could not be', () => {
    using state = scratchStore();
    const { planning } = createWorld(state);
    beginOneOff(planning, { lane: 'first-history', goal: null, streams: ['alerts', 'devices'] });
    enterStream(planning, 'alerts', null);
    expect(planning.oneOff?.streams).toEqual(['devices']);
    enterStream(planning, 'devices', START_MS + HOUR_MS);
    expect(planning.oneOff?.streams).toEqual([]);
    expect(takeDecision(planning.planner, advancePlanning(planning) + 10 * MINUTE_MS).kind).toBe('rest');
  });

  test('wakes the loop when a stream is requested', async () => {
    using state = scratchStore();
    const { planning, clock } = createWorld(state);
    beginPlanning(planning, { areListed: true });
    const woken = planning.wakeUp.wait(HOUR_MS, new AbortController().signal);
    requestStream(planning, 'alerts', false);
    await woken;
    expect(clock.monoMs()).toBe(0);
  });
});

test('a rest is stored and wakes its waiter; `null` removes it', async () => {
  using state = scratchStore();
  const { planning, clock } = createWorld(state);
  const rest: Rest = { kind: 'rest', untilMs: 1, reason: 'idle' };
  setRest(planning, rest);
  await planning.rested.wait(HOUR_MS, new AbortController().signal);
  expect([planning.rest, clock.monoMs()]).toEqual([rest, 0]);
  setRest(planning, null);
  expect(planning.rest).toBeNull();
});

describe('a doubt about the plan', () => {
  test.each([
    [
      'a rejected range',
      (planning: Planning) => noteDone(planning, 'range-too-large', { lane: 'live', stream: 'telemetry' }),
      10,
    ],
    ['an unknown limit', noteLimitMismatch, 1],
  ])('by %s has the account read, but not at each', async (_what, unconfirmed, everyMinutes) => {
    using state = scratchStore();
    const { planning, clock } = createWorld(state);
    beginPlanning(planning, { areListed: true });
    const readAgain = (): boolean => {
      const isRequested = requestedStreams(planning.planner).includes('account');
      noteStreamRead(planning.planner, 'account', plannedMs(planning));
      return isRequested;
    };
    unconfirmed(planning);
    expect(readAgain()).toBe(true);
    unconfirmed(planning);
    expect(readAgain()).toBe(false);
    await clock.sleep(everyMinutes * MINUTE_MS);
    unconfirmed(planning);
    expect(readAgain()).toBe(true);
  });
});

describe('other changes of the plan of requests', () => {
  const GAP = { deviceId: 'a', fromNs: msToNs(START_MS - HOUR_MS), toNs: msToNs(START_MS - 30 * MINUTE_MS) };
  const retryAtMs = START_MS + 5 * MINUTE_MS;

  const POLL = { kind: 'poll', lane: 'live', newestOnly: false, untilMs: null } as const;

  /** Planning that has begun; the devices rest, and the planner has a history of them that is covered by now. */
  function begun(state: ReturnType<typeof scratchStore>) {
    const world = createWorld(state);
    beginPlanning(world.planning, { areListed: true });
    const { planner } = world.planning;
    for (const deviceId of ['a', 'b']) {
      noteDecisionFailed(planner, { ...POLL, deviceId }, true, START_MS);
      setOpenHistory(planner.histories['first-history'], deviceId, { day: 0, week: 0, rest: 1 });
    }
    return world;
  }

  const resting = ({ planner }: Planning): string[] =>
    [...planner.devices.devices.values()]
      .filter(({ facts }) => facts.restMs > START_MS)
      .map(({ deviceId }) => deviceId);

  /** The devices with missing history, in each lane, and the oldest part of it. */
  const missing = ({ planner: { histories } }: Planning): string[] =>
    HISTORY_LANES.flatMap((lane) =>
      [...histories[lane].entries.values()].map(({ deviceId, open }) => `${lane} ${deviceId} ${open.rest}`),
    );

  test('a goal without history of its own is opened for a device again, in its lane alone', () => {
    using state = scratchStore();
    const { planning } = begun(state);
    planning.goals.backfill = countingGoal('a').goal;
    reopenDevice(planning, 'a');
    reopenDevice(planning, 'gone');
    expect(missing(planning)).toEqual(['first-history b 1', 'backfill a 1000']);
  });

  test('the end of a rest makes a device and its gaps of that reason due', () => {
    using state = scratchStore();
    const { planning } = begun(state);
    const later = { fromNs: GAP.toNs, toNs: GAP.toNs + DAY_NS / 24n };
    state.store.nameGap({ ...GAP, reason: 'unreachable', retryAtMs });
    state.store.nameGap({ ...GAP, ...later, reason: 'page_rejected', retryAtMs });
    endRests(planning, ['a'], 'unreachable');
    expect(state.store.gaps('a').map((gap) => [gap.reason, gap.retryAtMs > START_MS])).toEqual([
      ['unreachable', false],
      ['page_rejected', true],
    ]);
    expect([resting(planning), missing(planning)]).toEqual([['b'], ['first-history b 1']]);
  });

  test('another plan makes rejected ranges due, of each device', () => {
    using state = scratchStore();
    const { planning } = begun(state);
    for (const deviceId of ['a', 'b']) state.store.nameGap({ ...GAP, deviceId, reason: 'page_rejected', retryAtMs });
    notePlanChanged(planning);
    expect(state.store.gaps().some((gap) => gap.retryAtMs > START_MS)).toBe(false);
    expect(resting(planning)).toEqual([]);
  });

  test('a new device list is requested from a one-off too, where the list is off', () => {
    using state = scratchStore();
    const { planning } = begun(state);
    const { streams } = planning.planner;
    turnOff(planning.planner, 'devices', Number.POSITIVE_INFINITY);
    relistDevices(planning);
    expect(streams.devices).toMatchObject({ isRequested: true, restMs: Number.POSITIVE_INFINITY });
    planning.oneOff = { lane: 'backfill', goal: null, streams: [] };
    relistDevices(planning);
    expect(streams.devices).toMatchObject({ isRequested: true, restMs: plannedMs(planning) });
  });

  test('the demand is compared by the schedules, the rates and the use of others', () => {
    using state = scratchStore();
    const { planning } = begun(state);
    const given: Parameters<Planning['demand']['check']>[0][] = [];
    const demand = { ...planning.demand, check: (each: (typeof given)[number]) => void given.push(each) };
    const parts = { ...planning.parts, day: () => ({ limit: 9, budget: 9, spent: 0, others: 7 }) };
    checkDemand({ ...planning, parts, demand });
    expect(given).toMatchObject([{ othersPerDay: 7, settings: { telemetryMs: MINUTE_MS, share: 0.8 } }]);
    expect(given[0]?.rates()).toEqual(ratesOf(planning.planner.devices));
  });
});
