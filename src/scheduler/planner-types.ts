/**
 * The interface of the planner: its settings, its events and its decisions.
 */

import type { HISTORY_LANES, PollSettings, Purpose } from '../core/ports.ts';
import type { DayFigures } from './day-budget.ts';
import type { PollAnswer } from './device-outlook.ts';
import type { PlannedDevice, Rates, StoredDevice } from './device-queue.ts';
import type { OpenHistory, Recency } from './history-queue.ts';
import type { WholeStream } from './streams.ts';

/** The settings of the planner, from the configuration and the plan. */
export interface PlannerSettings {
  readonly polls: PollSettings;
  /** The mean interval of the schedules `sync.telemetry`, `.devices`, `.alerts` and `.account`, in ms. */
  readonly telemetryMs: number;
  readonly devicesMs: number;
  readonly alertsMs: number;
  readonly accountMs: number;
  /** Returns the next time of a stream's schedule after `lastMs`; without it the intervals above apply. */
  readonly turnAfter?: (kind: WholeStream, lastMs: number) => number;
  /** Records per page, until `setPageSize` is called. */
  readonly pageSize: number;
  /** `sync.grace_period`, in ms. */
  readonly gracePeriodMs: number;
  /** `api.share`. */
  readonly share: number;
  /** The longest rest of a stream after its own failures, in ms; without it the usual one. */
  readonly longestRestMs?: number;
}

/** Requests one page of the newest readings of a device. */
export interface PollDecision {
  readonly kind: 'poll';
  readonly lane: 'live' | 'idle-poll';
  readonly deviceId: string;
  /** Whether the range below the page becomes a gap with a reason and is not requested. */
  readonly newestOnly: boolean;
  /** The end of the request, in ms: newer readings are left to the next request; `null`: all are requested. */
  readonly untilMs: number | null;
  /** Whether the page should show how often the device reports: it contains as many older readings as fit. */
  readonly isToLearn?: boolean;
}

/** Requests one page of the missing history of a device, newest first. */
export interface HistoryDecision {
  readonly kind: 'history';
  readonly lane: (typeof HISTORY_LANES)[number];
  readonly deviceId: string;
  readonly recency: Recency;
}

/** `devices`: the next page of a listing, or its first one. `alerts` may take several requests. */
export interface StreamDecision {
  readonly kind: WholeStream;
  readonly lane: 'inventory' | 'alerts';
}

/** Reads a covered range of yesterday again; the caller chooses the device. */
export interface RereadDecision {
  readonly kind: 'reread';
  readonly lane: 'idle-poll';
}

export type Decision = PollDecision | HistoryDecision | StreamDecision | RereadDecision;

/** Returns the purpose that the requests of a decision are booked under. */
export function purposeOf(decision: Decision): Purpose {
  const { lane } = decision;
  return 'deviceId' in decision
    ? { lane, stream: 'telemetry', deviceId: decision.deviceId }
    : { lane, stream: decision.kind === 'reread' ? 'telemetry' : decision.kind };
}

/**
 * No request is due before that time, unless an event changes that. `day`: the day's budget is spread, and no lane may
 * send. `spare`: live work has nothing due, and the lanes below it wait for the day's budget. `idle`: nothing is due.
 */
export interface Rest {
  readonly kind: 'rest';
  readonly untilMs: number;
  readonly reason: 'day' | 'spare' | 'idle';
  /** For `spare`: when the lanes below live work may send. */
  readonly spareMs?: number;
}

/** The part of the day's budget for lanes below the live lane, in requests; infinite if no limit is known. */
export interface DaySupply {
  /** The requests that may be sent at once. */
  readonly spare: number;
  /** The requests that are missing in the bucket before it has any to spare. Until then only the reserve is sent. */
  readonly deficit: number;
  /** The requests that the bucket gains per ms, for all lanes together. */
  readonly fillPerMs: number;
  /** The smallest part of all requests that a backfill gets. */
  readonly backfillReserve: number;
}

/** The figures of the planner, for the status page and for warnings. */
export interface PlannerFigures {
  /** The mean lag at which devices were polled recently, in ms. */
  readonly liveLagMs: number;
  readonly listEveryMs: number;
  readonly droppedHints: number;
  /** Live requests without idle polls, and how many of them returned nothing new. */
  readonly livePolls: number;
  readonly liveEmpty: number;
  /** The missing history of all devices together, in ms. */
  readonly openHistoryMs: OpenHistory;
  readonly devices: number;
}

/** The planner. All times are the server's, in ms. */
export interface Planner {
  /** Returns the most valuable request. A second call at the same time returns the same one. */
  takeNext(nowMs: number): Decision | Rest;
  /** Records that a decision is carried out. Exactly one of the next six calls ends it. */
  noteBegan(decision: Decision, nowMs: number): void;
  notePollCommitted(decision: PollDecision, answer: PollAnswer, nowMs: number): void;
  noteHistoryCommitted(decision: HistoryDecision, open: OpenHistory): void;
  /** Records a complete device list and the signs of life in it. */
  noteDevicesListed(devices: readonly PlannedDevice[], nowMs: number): void;
  /** Records that the list is out of date: until the next one, devices are polled without it. */
  noteUnlisted(): void;
  /** Records that the alerts or the account were read to their end. */
  noteStreamRead(kind: 'alerts' | 'account', nowMs: number): void;
  /**
   * Sets whether a range is to be read again, also after each reread. Rereads have the lowest priority; a reread that
   * is owed uses the reserve of idle polls.
   */
  setReread(isDue: boolean, isOwed: boolean): void;
  /** Records that a decision failed. `isOwn`: because of this device or stream, which then rests for a while. */
  noteDecisionFailed(decision: Decision, fault: { isOwn: boolean }, nowMs: number): void;
  /** Ends the rest of a device because its failures were not its own. */
  endRest(deviceId: string): void;
  /** Records a booked request of any part of the program. A decision causes one or more. */
  noteRequestBooked(purpose: Pick<Purpose, 'lane' | 'stream'>, nowMs: number): void;
  /** Sets the figures of the quota window of the day, for example after each answer. */
  setDay(day: DayFigures, nowMs: number): void;
  setPageSize(records: number): void;
  /** Adds a device with its stored facts: at the start, when it returns, and when other work has polled it. */
  noteDeviceStored(deviceId: string, stored: StoredDevice): void;
  /** Records that a device is gone, excluded or removed: it is not polled. */
  noteDeviceLeft(deviceId: string): void;
  /** Records the missing history of a device. */
  setOpenHistory(lane: HistoryDecision['lane'], deviceId: string, open: OpenHistory): void;
  /** Sets the time before which no backfill request is sent. */
  restBackfill(untilMs: number): void;
  /** Makes a stream due now: the plan may have changed, or a person requests it. */
  requestNow(kind: WholeStream): void;
  /** Returns the streams that were requested and not read since. */
  requestedStreams(): readonly WholeStream[];
  /** Records that the key does not have the scope: the stream is not read before that time. */
  turnOff(stream: WholeStream | 'telemetry', untilMs: number): void;
  figures(): PlannerFigures;
  /** Returns the day's budget for history and backfill. */
  daySupply(nowMs: number): DaySupply;
  /**
   * Returns the time until which no reading of a device is overdue, if the device list does not follow the device;
   * `null` for other devices, and if no rate is known.
   */
  nextReadingMs(deviceId: string): number | null;
  /** Returns how fast the devices report, as far as is known. Checks each device. */
  rates(): Rates;
}
