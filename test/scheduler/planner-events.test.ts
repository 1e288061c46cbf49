/**
 * The functions of the planner, each by itself: what it changes in the state of the planner. `decide.test.ts` has the
 * order of the decisions.
 */
import { beforeEach, describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import { fillRate, spareAt } from '../../src/scheduler/day-budget.ts';
import { createPlannerState, type PlannerState } from '../../src/scheduler/decide.ts';
import { advance, noteDeviceStored, type QueueState, setUnlisted } from '../../src/scheduler/device-queue.ts';
import { nextHistoryMs, type OpenHistory, pickHistory, setOpenHistory } from '../../src/scheduler/history-queue.ts';
import {
  endRest,
  figuresOf,
  noteBegan,
  noteDecisionFailed,
  noteDeviceLeft,
  noteDevicesListed,
  noteHistoryCommitted,
  notePollCommitted,
  noteRequestBooked,
  noteStreamRead,
  plannerDaySupply,
  requestedStreams,
  requestNow,
  setDay,
  setPageSize,
  setReread,
  takeDecision,
  turnOff,
} from '../../src/scheduler/planner.ts';
import type { Decision, HistoryDecision, PollDecision } from '../../src/scheduler/planner-types.ts';
import { NARROW_RESERVES, USUAL_RESERVES } from '../../src/scheduler/reserves.ts';
import { UNREAD_STREAM, WHOLE_STREAMS } from '../../src/scheduler/streams.ts';
import { SETTINGS } from '../bench/planner/clients.ts';

const NOW = 100 * DAY_MS;
const OPEN: OpenHistory = { day: 5000, week: 0, rest: 0 };
const POLL: PollDecision = { kind: 'poll', lane: 'live', deviceId: 'a', newestOnly: false, untilMs: null };
const HISTORY: HistoryDecision = { kind: 'history', lane: 'first-history', deviceId: 'a', recency: 'day' };
const BACKFILL: HistoryDecision = { ...HISTORY, lane: 'backfill' };
const LISTING: Decision = { kind: 'devices', lane: 'inventory' };
const REREAD: Decision = { kind: 'reread', lane: 'idle-poll' };

let state: PlannerState;

/** All streams are read just now; the device `a` has two hours of readings to poll, and history in both lanes. */
beforeEach(() => {
  state = createPlannerState(SETTINGS);
  for (const kind of WHOLE_STREAMS) state.streams[kind] = { ...UNREAD_STREAM, readMs: NOW };
  store('a', NOW - 2 * HOUR_MS);
  for (const queue of Object.values(state.histories)) setOpenHistory(queue, 'a', OPEN);
  advance(state.devices, NOW);
});

function store(deviceId: string, newestMs: number): void {
  const rate = { intervalMs: MINUTE_MS, deviationMs: 0 };
  noteDeviceStored(state.devices, deviceId, { newestMs, polledMs: newestMs, rate });
}

function stateOf(deviceId: string): QueueState {
  return state.devices.devices.get(deviceId)?.state ?? 'absent';
}

function restOf(deviceId: string): number | undefined {
  return state.devices.devices.get(deviceId)?.facts.restMs;
}

function pickOf(lane: HistoryDecision['lane']): string | undefined {
  return pickHistory(state.histories[lane])?.deviceId;
}

/** Makes the quota so small that it cannot carry the readings. */
function overcommit(): void {
  setDay(state, { limit: 1, budget: 1, spent: 0, others: null }, NOW);
}

describe('the next decision', () => {
  test('is the postponed stream where nothing else is due', () => {
    noteDeviceLeft(state, 'a');
    state.streams.alerts = UNREAD_STREAM;
    state.postpone = 'alerts';
    expect(takeDecision(state, NOW)).toEqual({ kind: 'alerts', lane: 'alerts' });
    expect(state.postpone).toBeNull();
  });

  test('is something else where that is due, and the stream stays postponed', () => {
    state.streams.alerts = UNREAD_STREAM;
    state.postpone = 'alerts';
    expect(takeDecision(state, NOW)).toMatchObject({ kind: 'poll', deviceId: 'a' });
    expect(state.postpone).toBe('alerts');
  });
});

describe('a decision that begins', () => {
  test('removes its device from the queues, and ends the postponement', () => {
    state.postpone = 'alerts';
    noteBegan(state, HISTORY, NOW);
    expect([stateOf('a'), pickOf('first-history'), pickOf('backfill')]).toEqual(['polling', undefined, undefined]);
    expect(state.postpone).toBeNull();
  });

  test('about live work moves the lag by a fiftieth of the difference', () => {
    noteBegan(state, HISTORY, NOW);
    expect(state.liveLagMs, 'history has no lag').toBe(MINUTE_MS);
    notePollCommitted(state, POLL, { newReadings: 0, instantsMs: [], liveGap: null }, NOW);
    store('a', NOW - 2 * HOUR_MS);
    noteBegan(state, POLL, NOW);
    expect(state.liveLagMs).toBeCloseTo(MINUTE_MS + (119 * MINUTE_MS - MINUTE_MS) * 0.02);
  });

  test('about live work that is not the most urgent moves no lag', () => {
    store('b', NOW - HOUR_MS);
    noteBegan(state, { ...POLL, deviceId: 'b' }, NOW);
    expect(state.liveLagMs).toBe(MINUTE_MS);
  });

  test('marks its stream, or the reread, as under way', () => {
    noteBegan(state, LISTING, NOW);
    noteBegan(state, REREAD, NOW);
    expect(WHOLE_STREAMS.filter((kind) => state.streams[kind].isUnderWay)).toEqual(['devices']);
    expect(state.reread.isUnderWay).toBe(true);
  });
});

describe('a committed poll', () => {
  const gap = { fromMs: NOW - 2 * HOUR_MS, toMs: NOW - HOUR_MS };

  test('is counted in the live lane alone', () => {
    const answer = (newReadings: number) => ({ newReadings, instantsMs: [], liveGap: null });
    notePollCommitted(state, POLL, answer(1), NOW);
    notePollCommitted(state, POLL, answer(0), NOW);
    notePollCommitted(state, { ...POLL, lane: 'idle-poll' }, answer(0), NOW);
    expect([state.livePolls, state.liveEmpty]).toEqual([2, 1]);
  });

  test('gives the device back to both queues, with the gap below its page', () => {
    noteBegan(state, POLL, NOW);
    notePollCommitted(state, POLL, { newReadings: 200, instantsMs: [NOW], liveGap: gap }, NOW);
    expect([stateOf('a'), pickOf('first-history'), pickOf('backfill')]).toEqual(['waiting', 'a', 'a']);
    expect(state.devices.devices.get('a')?.facts).toMatchObject({ newestMs: NOW, polledMs: NOW, liveGap: gap });
  });

  test('leaves the gap below its page alone while the readings exceed the budget', () => {
    overcommit();
    notePollCommitted(state, POLL, { newReadings: 200, instantsMs: [NOW], liveGap: gap }, NOW);
    expect(state.devices.devices.get('a')?.facts.liveGap).toBeNull();
  });

  test('shows nothing beyond the end of its range', () => {
    const untilMs = NOW - HOUR_MS;
    notePollCommitted(state, { ...POLL, untilMs }, { newReadings: 0, instantsMs: [], liveGap: null }, NOW);
    expect(state.devices.devices.get('a')?.facts.newestMs).toBe(untilMs);
  });
});

test('a committed page of history sets the missing time of its lane, and returns the device', () => {
  noteBegan(state, HISTORY, NOW);
  noteHistoryCommitted(state, HISTORY, { day: 0, week: 7, rest: 0 });
  expect(state.histories['first-history'].openMs).toEqual({ day: 0, week: 7, rest: 0 });
  expect(state.histories.backfill.openMs).toEqual(OPEN);
  expect([stateOf('a'), pickOf('first-history'), pickOf('backfill')]).toEqual(['waiting', 'a', 'a']);
});

test('a listing adds its devices, counts the quiet ones with news, and ends a failure of the list', () => {
  const quiet = state.devices.devices.get('a');
  if (quiet !== undefined) quiet.facts.isQuiet = true;
  Object.assign(state, { listFailingFromMs: NOW - DAY_MS });
  setUnlisted(state.devices, true);
  state.changes.listedMs = NOW - DAY_MS;
  noteDevicesListed(
    state,
    [
      { deviceId: 'a', seenMs: NOW, isActive: true },
      { deviceId: 'b', seenMs: null, isActive: true },
    ],
    NOW + 1,
  );
  expect([...state.devices.devices.keys()]).toEqual(['a', 'b']);
  expect([state.listFailingFromMs, state.devices.rules.isUnlisted]).toEqual([null, false]);
  expect(state.streams.devices).toEqual({ ...UNREAD_STREAM, readMs: NOW + 1 });
  expect(state.changes.listedMs).toBe(NOW + 1);
  // One and a half in a day, at the weight of one listing, from the one a day that is assumed.
  expect((state.changes.learntPerMs ?? 0) * DAY_MS).toBeCloseTo(1 + 0.3 * ((1.5 * 24) / 25 - 1), 3);
});

test('a stream that was read is due again by its schedule', () => {
  state.streams.alerts = { ...UNREAD_STREAM, isUnderWay: true, isRequested: true, failures: 3 };
  noteStreamRead(state, 'alerts', NOW + 5);
  expect(state.streams.alerts).toEqual({ ...UNREAD_STREAM, readMs: NOW + 5 });
});

test('a reread that is set is not under way', () => {
  state.reread.isUnderWay = true;
  setReread(state, true, false);
  expect(state.reread).toEqual({ isDue: true, isOwed: false, isUnderWay: false });
  setReread(state, false, true);
  expect(state.reread).toEqual({ isDue: false, isOwed: true, isUnderWay: false });
});

describe('a failed decision', () => {
  test('by a fault of its own has the device rest, with its history', () => {
    noteBegan(state, POLL, NOW);
    noteDecisionFailed(state, POLL, true, NOW);
    expect([stateOf('a'), restOf('a')]).toEqual(['waiting', NOW + MINUTE_MS]);
    expect(nextHistoryMs(state.histories['first-history'])).toBe(NOW + MINUTE_MS);
    expect(nextHistoryMs(state.histories.backfill)).toBe(NOW + MINUTE_MS);
    expect(state.postpone).toBeNull();
  });

  test('by a fault of the service has no rest, and postpones its stream', () => {
    noteBegan(state, HISTORY, NOW);
    noteDecisionFailed(state, HISTORY, false, NOW);
    expect([stateOf('a'), restOf('a')]).toEqual(['waiting', Number.NEGATIVE_INFINITY]);
    expect([pickOf('first-history'), pickOf('backfill')]).toEqual(['a', 'a']);
    expect(state.postpone).toBe('telemetry');
  });

  test('of a backfill has the backfill rest alone', () => {
    noteBegan(state, BACKFILL, NOW);
    noteDecisionFailed(state, BACKFILL, true, NOW);
    expect([stateOf('a'), restOf('a'), pickOf('first-history')]).toEqual(['waiting', Number.NEGATIVE_INFINITY, 'a']);
    expect(nextHistoryMs(state.histories.backfill)).toBe(NOW + MINUTE_MS);
  });

  test('of a backfill by a fault of the service does not rest', () => {
    noteBegan(state, BACKFILL, NOW);
    noteDecisionFailed(state, BACKFILL, false, NOW);
    expect([stateOf('a'), pickOf('backfill')]).toEqual(['waiting', 'a']);
  });

  test('to read again is over by a fault of its own, and due again otherwise', () => {
    for (const isOwn of [true, false]) {
      Object.assign(state.reread, { isDue: isOwn, isOwed: true, isUnderWay: true });
      noteDecisionFailed(state, REREAD, isOwn, NOW);
      expect(state.reread).toEqual({ isDue: !isOwn, isOwed: true, isUnderWay: false });
    }
  });

  test('of a stream has it rest, no longer than the settings allow', () => {
    const patient = createPlannerState({ ...SETTINGS, longestRestMs: 2 * SECOND_MS });
    const alerts: Decision = { kind: 'alerts', lane: 'alerts' };
    noteDecisionFailed(state, alerts, true, NOW);
    noteDecisionFailed(patient, alerts, true, NOW);
    expect([state.streams.alerts.restMs, patient.streams.alerts.restMs]).toEqual([NOW + 5000, NOW + 2000]);
    noteDecisionFailed(state, alerts, false, NOW + 1);
    expect([state.streams.alerts.failures, state.postpone]).toEqual([1, 'alerts']);
  });

  test.each([true, false])('of the device list has devices polled without it after ten minutes: own %s', (isOwn) => {
    noteDecisionFailed(state, LISTING, isOwn, NOW);
    noteDecisionFailed(state, LISTING, isOwn, NOW + 10 * MINUTE_MS - 1);
    expect([state.listFailingFromMs, state.devices.rules.isUnlisted]).toEqual([NOW, false]);
    noteDecisionFailed(state, LISTING, isOwn, NOW + 10 * MINUTE_MS);
    expect(state.devices.rules.isUnlisted).toBe(true);
  });
});

test('the end of a rest makes the device and its history due', () => {
  noteDecisionFailed(state, POLL, true, NOW);
  endRest(state, 'a');
  expect(restOf('a')).toBe(Number.NEGATIVE_INFINITY);
  expect([pickOf('first-history'), pickOf('backfill')]).toEqual(['a', 'a']);
});

test('a device that has left is in no queue', () => {
  noteDeviceLeft(state, 'a');
  expect([stateOf('a'), pickOf('first-history'), pickOf('backfill')]).toEqual(['absent', undefined, undefined]);
});

describe('a booked request', () => {
  const backfill = { lane: 'backfill', stream: 'telemetry' } as const;

  test('is paid by its lane and by the day, and other lanes with work earn their reserve', () => {
    setDay(state, { limit: 20_000, budget: 20_000, spent: 0, others: null }, NOW);
    const before = spareAt(state.budget, NOW);
    noteRequestBooked(state, backfill, NOW);
    expect(spareAt(state.budget, NOW)).toBe(before - 1);
    expect(state.credit.backfill).toBeCloseTo(USUAL_RESERVES.backfill - 1);
    expect(state.credit['first-history']).toBe(USUAL_RESERVES['first-history']);
    expect(state.credit.alerts, 'no work').toBe(0);
  });

  test('gives the lanes less while the readings exceed the budget', () => {
    overcommit();
    noteRequestBooked(state, backfill, NOW);
    expect(state.credit['first-history']).toBe(NARROW_RESERVES['first-history']);
  });

  test('finds the work of a device whose rest is over by then', () => {
    noteDecisionFailed(state, HISTORY, true, NOW);
    noteRequestBooked(state, backfill, NOW + MINUTE_MS - 1);
    expect(state.credit['first-history']).toBe(0);
    noteRequestBooked(state, backfill, NOW + MINUTE_MS);
    expect(state.credit['first-history']).toBe(USUAL_RESERVES['first-history']);
  });
});

test('the figures of the day decide whether the readings fit the budget, and so the rules for devices', () => {
  expect(state.devices.rules.isInTurn).toBe(false);
  overcommit();
  expect([state.commitment.isOver, state.devices.rules.isInTurn]).toEqual([true, true]);
  setDay(state, { limit: null, budget: null, spent: 0, others: null }, NOW);
  expect([state.commitment.isOver, state.devices.rules.isInTurn]).toEqual([false, false]);
});

test('another page size counts in the rules for devices; the same one leaves them as they are', () => {
  const { rules } = state.devices;
  setPageSize(state, SETTINGS.pageSize);
  expect(state.devices.rules).toBe(rules);
  setPageSize(state, 50);
  expect([state.pageSize, state.devices.rules.pageSize]).toEqual([50, 50]);
});

test('a requested stream is due until it was read', () => {
  requestNow(state, 'alerts');
  expect(requestedStreams(state)).toEqual(['alerts']);
  expect(state.streams.alerts.isUrgent).toBe(true);
  noteStreamRead(state, 'alerts', NOW);
  expect(requestedStreams(state)).toEqual([]);
});

test('a stream is off until a time, and telemetry too', () => {
  turnOff(state, 'alerts', NOW + 1);
  turnOff(state, 'telemetry', NOW + 2);
  expect([state.streams.alerts.restMs, state.streams.devices.restMs]).toEqual([NOW + 1, Number.NEGATIVE_INFINITY]);
  expect(state.telemetryOffMs).toBe(NOW + 2);
});

test('the figures are those of the state, and do not change with it', () => {
  Object.assign(state, { liveLagMs: 7, livePolls: 3, liveEmpty: 2 });
  state.devices.droppedHints = 4;
  const figures = figuresOf(state);
  expect(figures).toMatchObject({ liveLagMs: 7, livePolls: 3, liveEmpty: 2, droppedHints: 4, devices: 1 });
  expect(figures.listEveryMs).toBe(MINUTE_MS);
  noteDeviceLeft(state, 'a');
  expect(figures.openHistoryMs).toEqual(OPEN);
});

test('the supply of the day is the budget for work other than live, with the reserve of a backfill', () => {
  expect(plannerDaySupply(state, NOW)).toEqual({
    spare: Number.POSITIVE_INFINITY,
    deficit: 0,
    fillPerMs: Number.POSITIVE_INFINITY,
    backfillReserve: USUAL_RESERVES.backfill,
  });
  overcommit();
  const { spare, fillPerMs, backfillReserve } = plannerDaySupply(state, NOW);
  expect([spare, backfillReserve]).toEqual([0, NARROW_RESERVES.backfill]);
  expect(fillPerMs).toBe(fillRate(state.budget));
});
