/**
 * The planner: it decides which request is worth most now.
 *
 * It receives events (listings, pages, refusals, devices that come and go) and returns the next request. It has no
 * clock and does no IO: the same events give the same requests. A planner that has forgotten something costs
 * requests, never readings, because the coverage is stored elsewhere. `decide.ts` holds the order of its decisions.
 */

import type { Purpose } from '../core/ports.ts';
import { MINUTE_MS } from '../core/time.ts';
import {
  admitHistories,
  bestListEveryMs,
  createPlannerState,
  decide,
  type PlannerState,
  queuesOf,
  requestIn,
} from './decide.ts';
import type { PollAnswer } from './device-outlook.ts';
import {
  advance,
  beginDevice,
  dropDevice,
  endDeviceRest,
  type ListedLiveRange,
  noteDeviceAnswer,
  noteDeviceFailure,
  noteDeviceListed,
  noteDeviceStored,
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
  type Decision,
  type HistoryDecision,
  type Planner,
  type PlannerFigures,
  type PlannerSettings,
  type PollDecision,
  purposeOf,
  type Rest,
} from './planner-types.ts';
import { bookRequest, NARROW_RESERVES, renewCommitment, rulesOf, USUAL_RESERVES } from './reserves.ts';
import { learnChanges, type Stream as StreamState, streamEvents, WHOLE_STREAMS, type WholeStream } from './streams.ts';

/** The lag at which devices are polled moves by this part with each poll. */
const LEARN_LAG = 0.02;
/** How long a backfill does not request a device after an unusable answer. */
const BACKFILL_REST_MS = MINUTE_MS;
/** After the device list has failed for so long, devices are polled without it: its last answer is out of date. */
const UNLISTED_MS = 10 * MINUTE_MS;

/** Decides; the stream that was put off gets its turn where no one else has anything to ask for. */
function next(state: PlannerState, nowMs: number): Decision | Rest {
  const decision = decide(state, nowMs);
  if (decision.kind !== 'rest' || state.postpone === null) return decision;
  state.postpone = null;
  return decide(state, nowMs);
}

function began(state: PlannerState, decision: Decision, nowMs: number): void {
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

function pollCommitted(state: PlannerState, decision: PollDecision, answer: PollAnswer, nowMs: number): void {
  const { deviceId, lane, untilMs } = decision;
  if (lane === 'live') state.livePolls += 1;
  if (lane === 'live' && answer.newReadings === 0) state.liveEmpty += 1;
  const liveGap = state.commitment.isOver ? null : answer.liveGap;
  noteDeviceAnswer(state.devices, deviceId, { ...answer, liveGap, untilMs }, nowMs);
  releaseHistories(state, deviceId, true);
  renew(state, nowMs);
}

function historyCommitted(state: PlannerState, { deviceId, lane }: HistoryDecision, open: OpenHistory): void {
  releaseDevice(state.devices, deviceId);
  setOpenHistory(state.histories[lane], deviceId, open);
  releaseHistories(state, deviceId, true);
}

function listed(state: PlannerState, devices: readonly ListedLiveRange[], nowMs: number): void {
  for (const device of devices) if (noteDeviceListed(state.devices, device, nowMs)) state.changes.count += 1;
  state.listFailingFromMs = null;
  setUnlisted(state.devices, false);
  state.streams.devices = streamEvents.done(nowMs);
  learnChanges(state.changes, nowMs, state.devices.devices.size);
  renew(state, nowMs);
}

function failed(state: PlannerState, decision: Decision, isOwn: boolean, nowMs: number): void {
  if (!isOwn) state.postpone = purposeOf(decision).stream;
  if (decision.kind === 'reread') Object.assign(state.reread, { isDue: !isOwn, isUnderWay: false });
  else if ('deviceId' in decision) deviceFailed(state, decision, isOwn, nowMs);
  else {
    if (isOwn && decision.kind === 'devices') noteListingFailure(state, nowMs);
    changeStream(state, decision.kind, (stream) =>
      streamEvents.failed(stream, isOwn, nowMs, state.settings.longestRestMs),
    );
  }
}

function noteListingFailure(state: PlannerState, nowMs: number): void {
  state.listFailingFromMs ??= nowMs;
  if (nowMs - state.listFailingFromMs >= UNLISTED_MS) setUnlisted(state.devices, true);
}

function deviceFailed(
  state: PlannerState,
  { deviceId, lane }: PollDecision | HistoryDecision,
  isOwn: boolean,
  nowMs: number,
): void {
  if (lane === 'backfill') {
    // Its newest end is polled as usual: only the backfill is not tried again at once.
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

function removeHistories(state: PlannerState, deviceId: string): void {
  for (const queue of queuesOf(state)) removeHistory(queue, deviceId);
}

function changeStream({ streams }: PlannerState, kind: WholeStream, event: (stream: StreamState) => StreamState): void {
  streams[kind] = event(streams[kind]);
}

function booked(state: PlannerState, purpose: Pick<Purpose, 'lane' | 'stream'>, nowMs: number): void {
  state.budget.sent(nowMs);
  admitHistories(state, nowMs);
  const reserves = state.commitment.isOver ? NARROW_RESERVES : USUAL_RESERVES;
  bookRequest(state.credit, purpose, (lane) => requestIn(state, lane, nowMs) !== null, reserves);
}

/** Judges whether the readings fit, and puts the devices in order for it. */
function renew(state: PlannerState, nowMs: number): void {
  const { devices, pageSize, commitment, budget } = state;
  const load = {
    pageSize,
    readingsPerMs: readingsPerMs(devices),
    intervalsMs: () => ratesOf(devices).knownMs,
    carriedPerMs: budget.perMs(),
  };
  if (renewCommitment(commitment, load, nowMs)) renewRules(state);
}

function renewRules({ devices, commitment, settings, pageSize }: PlannerState): void {
  setRules(devices, rulesOf(commitment, { ...settings, pageSize }));
}

function setPageSize(state: PlannerState, records: number): void {
  if (records === state.pageSize) return;
  state.pageSize = records;
  renewRules(state);
}

function off(state: PlannerState, stream: WholeStream | 'telemetry', untilMs: number): void {
  if (stream === 'telemetry') state.telemetryOffMs = untilMs;
  else changeStream(state, stream, (each) => streamEvents.off(each, untilMs));
}

function figuresOf(state: PlannerState): PlannerFigures {
  const { devices, histories, liveLagMs, livePolls, liveEmpty } = state;
  return {
    isOvercommitted: state.commitment.isOver,
    liveLagMs,
    listEveryMs: bestListEveryMs(state),
    droppedHints: devices.droppedHints,
    livePolls,
    liveEmpty,
    openHistoryMs: { ...histories['first-history'].openMs },
    devices: devices.devices.size,
  };
}

/**
 * Creates a planner without devices.
 *
 * @param state its state; tests pass one in order to inspect it.
 */
export function createPlanner(settings: PlannerSettings, state = createPlannerState(settings)): Planner {
  const { devices, histories, streams } = state;
  return {
    next: (nowMs) => next(state, nowMs),
    began: (decision, nowMs) => began(state, decision, nowMs),
    pollCommitted: (decision, answer, nowMs) => pollCommitted(state, decision, answer, nowMs),
    historyCommitted: (decision, open) => historyCommitted(state, decision, open),
    listed: (devices, nowMs) => listed(state, devices, nowMs),
    done: (kind, nowMs) => {
      streams[kind] = streamEvents.done(nowMs);
    },
    setReread: (isWanted, isOwed) => void Object.assign(state.reread, { isDue: isWanted, isOwed, isUnderWay: false }),
    failed: (decision, { isOwn }, nowMs) => failed(state, decision, isOwn, nowMs),
    lift: (deviceId) => {
      endDeviceRest(devices, deviceId);
      for (const queue of queuesOf(state)) endHistoryRest(queue, deviceId);
    },
    booked: (purpose, nowMs) => booked(state, purpose, nowMs),
    setDay: (day, nowMs) => {
      state.budget.setFigures(day, nowMs);
      renew(state, nowMs);
    },
    setPageSize: (records) => setPageSize(state, records),
    stored: (deviceId, stored) => noteDeviceStored(devices, deviceId, stored),
    left: (deviceId) => {
      dropDevice(devices, deviceId);
      removeHistories(state, deviceId);
    },
    open: (lane, deviceId, open) => setOpenHistory(histories[lane], deviceId, open),
    restBackfill: (untilMs) => {
      state.backfillRestMs = untilMs;
    },
    hasten: (kind) => changeStream(state, kind, streamEvents.hastened),
    hastened: () => WHOLE_STREAMS.filter((kind) => streams[kind].isHastened),
    off: (stream, untilMs) => off(state, stream, untilMs),
    figures: () => figuresOf(state),
    daySupply: (nowMs) => ({
      spare: state.budget.spare(nowMs),
      fillPerMs: state.budget.fillPerMs(),
      backfillReserve: (state.commitment.isOver ? NARROW_RESERVES : USUAL_RESERVES).backfill,
    }),
    rates: () => ratesOf(devices),
  };
}
