/**
 * The planner: it decides which request is worth most now.
 *
 * It receives events (listings, pages, rejections, devices that appear and leave) and returns the next request. It has
 * no clock and does no IO: the same events give the same requests. A planner that has forgotten something costs
 * requests, never readings, because the coverage is stored elsewhere.
 *
 * Its state is a record (`PlannerState`). `decide.ts` holds the order of its decisions; the functions here change the
 * record, one for each event. All times are the server's, in ms.
 */

import type { Purpose } from '../core/ports.ts';
import { MINUTE_MS } from '../core/time.ts';
import {
  budgetAfterRequest,
  type DayFigures,
  deficitAt,
  fillRate,
  requestRate,
  spareAt,
  withFigures,
} from './day-budget.ts';
import { admitHistories, bestListEveryMs, decide, type PlannerState, queuesOf, requestIn } from './decide.ts';
import type { PollAnswer } from './device-outlook.ts';
import {
  advance,
  beginDevice,
  dropDevice,
  endDeviceRest,
  noteDeviceAnswer,
  noteDeviceFailure,
  noteDeviceListed,
  type PlannedDevice,
  pickLive,
  ratesOf,
  readingsPerMs,
  releaseDevice,
  setRules,
  setUnlisted,
} from './device-queue.ts';
import {
  endHistoryRest,
  type OpenHistory,
  pauseHistory,
  releaseHistory,
  removeHistory,
  setOpenHistory,
} from './history-queue.ts';
import {
  type DaySupply,
  type Decision,
  type HistoryDecision,
  type PlannerFigures,
  type PollDecision,
  purposeOf,
  type Rest,
} from './planner-types.ts';
import {
  bookRequest,
  NARROW_RESERVES,
  type Reserves,
  renewCommitment,
  rulesInForce,
  USUAL_RESERVES,
} from './reserves.ts';
import { learnChanges, type PlannedStream, streamEvents, WHOLE_STREAMS, type WholeStream } from './streams.ts';

/** How much each poll changes the estimate of the lag at which devices are polled. */
const LEARN_LAG = 0.02;
/** How long a backfill does not request a device after an unusable answer. */
const BACKFILL_REST_MS = MINUTE_MS;
/** After the device list has failed for this long, devices are polled without it: its last answer is out of date. */
const UNLISTED_MS = 10 * MINUTE_MS;

/**
 * Returns the most valuable request. A second call at the same time returns the same one. A postponed stream gets its
 * turn if nothing else has anything to request.
 */
export function takeDecision(state: PlannerState, nowMs: number): Decision | Rest {
  const decision = decide(state, nowMs);
  if (decision.kind !== 'rest' || state.postpone === null) return decision;
  state.postpone = null;
  return decide(state, nowMs);
}

/** Records that a decision is carried out. One of the next six functions ends it, or `turnOff` of its stream. */
export function noteBegan(state: PlannerState, decision: Decision, nowMs: number): void {
  state.postpone = null;
  if (decision.kind === 'reread') state.reread.isUnderWay = true;
  else if (!('deviceId' in decision)) changeStream(state, decision.kind, streamEvents.began);
  else {
    const { deviceId, lane } = decision;
    if (lane === 'live') learnLiveLag(state, deviceId, nowMs);
    beginDevice(state.devices, deviceId);
    for (const queue of queuesOf(state)) pauseHistory(queue, deviceId);
  }
}

function learnLiveLag(state: PlannerState, deviceId: string, nowMs: number): void {
  advance(state.devices, nowMs);
  const pick = pickLive(state.devices, nowMs);
  if (pick?.deviceId !== deviceId || !Number.isFinite(pick.lagMs)) return;
  state.liveLagMs += (pick.lagMs - state.liveLagMs) * LEARN_LAG;
}

/**
 * Records the answer to a poll. While the readings do not fit the quota, live work does not close the gap below the
 * page.
 */
export function notePollCommitted(
  state: PlannerState,
  decision: PollDecision,
  answer: PollAnswer,
  nowMs: number,
): void {
  const { deviceId, lane, untilMs } = decision;
  if (lane === 'live') state.livePolls += 1;
  if (lane === 'live' && answer.newReadings === 0) state.liveEmpty += 1;
  const liveGap = state.commitment.isOver ? null : answer.liveGap;
  noteDeviceAnswer(state.devices, deviceId, { ...answer, liveGap, untilMs }, nowMs);
  releaseHistories(state, deviceId, true);
  renew(state, nowMs);
}

/** Records a committed page of history, and the history that is missing after it. */
export function noteHistoryCommitted(
  state: PlannerState,
  { deviceId, lane }: HistoryDecision,
  open: OpenHistory,
): void {
  releaseDevice(state.devices, deviceId);
  setOpenHistory(state.histories[lane], deviceId, open);
  releaseHistories(state, deviceId, true);
}

/** Records a complete device list and the signs of life in it. From now on devices are polled by it. */
export function noteDevicesListed(state: PlannerState, devices: readonly PlannedDevice[], nowMs: number): void {
  for (const device of devices) if (noteDeviceListed(state.devices, device, nowMs)) state.changes.count += 1;
  state.listFailingFromMs = null;
  setUnlisted(state.devices, false);
  noteStreamRead(state, 'devices', nowMs);
  learnChanges(state.changes, nowMs, state.devices.devices.size);
  renew(state, nowMs);
}

/** Records that a stream was read to its end. */
export function noteStreamRead(state: PlannerState, kind: WholeStream, nowMs: number): void {
  state.streams[kind] = streamEvents.done(nowMs);
}

/**
 * Sets whether a range is to be read again, and ends the current reread. Rereads have the lowest priority; one that is
 * owed uses the reserve of idle polls.
 */
export function setReread({ reread }: PlannerState, isDue: boolean, isOwed: boolean): void {
  reread.isDue = isDue;
  reread.isOwed = isOwed;
  reread.isUnderWay = false;
}

/**
 * Records that a decision failed.
 *
 * @param isOwn whether its device or stream caused it and rests now. Otherwise its stream is postponed.
 */
export function noteDecisionFailed(state: PlannerState, decision: Decision, isOwn: boolean, nowMs: number): void {
  if (!isOwn) state.postpone = purposeOf(decision).stream;
  if (decision.kind === 'reread') setReread(state, !isOwn, state.reread.isOwed);
  else if ('deviceId' in decision) noteRequestFailed(state, decision, isOwn, nowMs);
  else {
    if (decision.kind === 'devices') noteListingFailure(state, nowMs);
    changeStream(state, decision.kind, (stream) =>
      streamEvents.failed(stream, isOwn, nowMs, state.settings.longestRestMs),
    );
  }
}

function noteListingFailure(state: PlannerState, nowMs: number): void {
  state.listFailingFromMs ??= nowMs;
  if (nowMs - state.listFailingFromMs >= UNLISTED_MS) setUnlisted(state.devices, true);
}

function noteRequestFailed(
  state: PlannerState,
  { deviceId, lane }: PollDecision | HistoryDecision,
  isOwn: boolean,
  nowMs: number,
): void {
  if (lane === 'backfill') {
    // Its newest end is polled as usual: only the backfill is not retried at once.
    releaseHistories(state, deviceId, true);
    releaseDevice(state.devices, deviceId);
    if (isOwn) releaseHistory(state.histories.backfill, deviceId, false, nowMs + BACKFILL_REST_MS);
  } else if (isOwn) {
    releaseHistories(state, deviceId, false, noteDeviceFailure(state.devices, deviceId, nowMs));
  } else {
    releaseDevice(state.devices, deviceId);
    releaseHistories(state, deviceId, false);
  }
}

function releaseHistories(state: PlannerState, deviceId: string, isAnswered: boolean, restMs?: number): void {
  for (const queue of queuesOf(state)) releaseHistory(queue, deviceId, isAnswered, restMs);
}

/** Ends the rest of a device, for its newest readings and its history, because its failures were not its own. */
export function endRest(state: PlannerState, deviceId: string): void {
  endDeviceRest(state.devices, deviceId);
  for (const queue of queuesOf(state)) endHistoryRest(queue, deviceId);
}

/** Removes a device from all queues: it is gone, excluded or removed. */
export function noteDeviceLeft(state: PlannerState, deviceId: string): void {
  dropDevice(state.devices, deviceId);
  for (const queue of queuesOf(state)) removeHistory(queue, deviceId);
}

/**
 * Counts a booked request of any part of the program against the day's budget and the reserve of its lane. A decision
 * causes one or more requests.
 */
export function noteRequestBooked(state: PlannerState, purpose: Pick<Purpose, 'lane' | 'stream'>, nowMs: number): void {
  state.budget = budgetAfterRequest(state.budget, nowMs);
  admitHistories(state, nowMs);
  bookRequest(state.credit, purpose, (lane) => requestIn(state, lane, nowMs) !== null, reservesNow(state));
}

function reservesNow({ commitment }: PlannerState): Reserves {
  return commitment.isOver ? NARROW_RESERVES : USUAL_RESERVES;
}

/** Sets the figures of the quota window of the day, which decide whether the readings fit. */
export function setDay(state: PlannerState, day: DayFigures, nowMs: number): void {
  state.budget = withFigures(state.budget, day, nowMs);
  renew(state, nowMs);
}

/** Judges whether the readings fit, and orders the devices accordingly. */
function renew(state: PlannerState, nowMs: number): void {
  const { devices, pageSize, commitment, budget } = state;
  const load = {
    pageSize,
    readingsPerMs: readingsPerMs(devices),
    intervalsMs: () => ratesOf(devices).knownMs,
    carriedPerMs: requestRate(budget),
  };
  if (renewCommitment(commitment, load, nowMs)) renewRules(state);
}

function renewRules({ devices, commitment, settings, pageSize }: PlannerState): void {
  setRules(devices, rulesInForce(commitment, { ...settings, pageSize }));
}

/** Sets how many records a page has. */
export function setPageSize(state: PlannerState, records: number): void {
  if (records === state.pageSize) return;
  state.pageSize = records;
  renewRules(state);
}

/** Makes a stream due at once: the plan may have changed, or a person requests it. */
export function requestNow(state: PlannerState, kind: WholeStream): void {
  changeStream(state, kind, streamEvents.requested);
}

/** The streams that were requested and not read since. */
export function requestedStreams({ streams }: PlannerState): readonly WholeStream[] {
  return WHOLE_STREAMS.filter((kind) => streams[kind].isRequested);
}

/** Turns a stream off until a time, for example because the key does not have its scope. */
export function turnOff(state: PlannerState, stream: WholeStream | 'telemetry', untilMs: number): void {
  if (stream === 'telemetry') state.telemetryOffMs = untilMs;
  else changeStream(state, stream, (each) => streamEvents.off(each, untilMs));
}

function changeStream(
  { streams }: PlannerState,
  kind: WholeStream,
  event: (stream: PlannedStream) => PlannedStream,
): void {
  streams[kind] = event(streams[kind]);
}

/** Returns the planner's figures for reports and metrics. */
export function figuresOf(state: PlannerState): PlannerFigures {
  const { devices, histories, liveLagMs, livePolls, liveEmpty } = state;
  return {
    liveLagMs,
    listEveryMs: bestListEveryMs(state),
    droppedHints: devices.droppedHints,
    livePolls,
    liveEmpty,
    openHistoryMs: { ...histories['first-history'].openMs },
    devices: devices.devices.size,
  };
}

/** The day's budget for history and backfill. */
export function plannerDaySupply(state: PlannerState, nowMs: number): DaySupply {
  const { budget } = state;
  return {
    spare: spareAt(budget, nowMs),
    deficit: deficitAt(budget, nowMs),
    fillPerMs: fillRate(budget),
    backfillReserve: reservesNow(state).backfill,
  };
}
