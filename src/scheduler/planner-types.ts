/**
 * The settings, decisions and figures of the planner.
 */

import type { HISTORY_LANES, PollSettings, Purpose } from '../core/ports.ts';
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
  readonly needsRate?: boolean;
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
