/**
 * The interface of the planner: its settings, its events and its decisions.
 */

import type { PollSettings, Purpose } from '../core/ports.ts';
import type { DayFigures } from './day-budget.ts';
import type { TailAnswer } from './device-outlook.ts';
import type { ListedTail, Rates, StoredTail } from './device-queue.ts';
import type { OpenHistory, Recency } from './history-queue.ts';
import type { WholeStream } from './streams.ts';

/** What is asked for by the configuration and the plan. */
export interface PlannerSettings {
  readonly polls: PollSettings;
  /** The distance of two turns of `sync.telemetry`, `.devices`, `.alerts`, `.account`, in ms. */
  readonly freshnessMs: number;
  readonly devicesMs: number;
  readonly alertsMs: number;
  readonly accountMs: number;
  /** The first turn of a stream's schedule after a time; by the distances above where this is left out. */
  readonly turnAfter?: (kind: WholeStream, lastMs: number) => number;
  /** Records per page, until `setPageSize` is called. */
  readonly pageSize: number;
  /** `api.share`. */
  readonly share: number;
  /** The longest that a stream rests after failures of its own, in ms; where this is left out, as long as usual. */
  readonly longestRestMs?: number;
}

/** One page of the newest end of a device. */
export interface TailDecision {
  readonly kind: 'tail';
  readonly lane: 'live' | 'sweep';
  readonly deviceId: string;
  /** What lies below the page is given up, as a named gap. */
  readonly newestOnly: boolean;
  /** What is newer than this is left to the next turn, in ms; `null`: nothing is. */
  readonly untilMs: number | null;
}

/** One page of the missing history of a device, newest first. */
export interface HistoryDecision {
  readonly kind: 'history';
  readonly lane: 'first-history' | 'backfill';
  readonly deviceId: string;
  readonly recency: Recency;
}

/** `devices`: the next page of a listing, its first one included; `alerts` may take several requests. */
export interface StreamDecision {
  readonly kind: WholeStream;
  readonly lane: 'inventory' | 'alerts';
}

/** One piece of what was held for complete and is read once more (yesterday); of which device, the caller knows. */
export interface RereadDecision {
  readonly kind: 'reread';
  readonly lane: 'sweep';
}

/** A request to make. */
export type Decision = TailDecision | HistoryDecision | StreamDecision | RereadDecision;

/** What it is booked under. */
export function purposeOf(decision: Decision): Purpose {
  const { lane } = decision;
  return 'deviceId' in decision
    ? { lane, stream: 'telemetry', deviceId: decision.deviceId }
    : { lane, stream: decision.kind === 'reread' ? 'telemetry' : decision.kind };
}

/**
 * Nothing before that time, unless something happens. `day`: the day's budget is spread, and no lane may send;
 * `spare`: live work may, but it has nothing due, and the lanes below it wait until the day has something to spare;
 * `idle`: nothing is due.
 */
export interface Rest {
  readonly kind: 'rest';
  readonly untilMs: number;
  readonly reason: 'day' | 'spare' | 'idle';
}

/** What the day's budget has for work below the live lane, in requests; infinite where no limit is known. */
export interface DaySupply {
  /** What may be taken at once. */
  readonly spare: number;
  /** By how much the bucket fills, per ms, for all lanes together. */
  readonly fillPerMs: number;
  /** The part of all requests that a backfill gets at least. */
  readonly backfillReserve: number;
}

/** The figures of the planner, for the status page and for warnings. */
export interface PlannerFigures {
  /** Whether not even the readings fit, so that only the newest page of each device is kept. */
  readonly isOvercommitted: boolean;
  /** At which age devices were asked lately, in ms. */
  readonly liveLagMs: number;
  readonly listEveryMs: number;
  readonly droppedHints: number;
  /** Live requests, sweeps apart, and those of them that brought nothing new. */
  readonly liveAsked: number;
  readonly liveEmpty: number;
  /** What is open of history, in ms of all devices together. */
  readonly openHistoryMs: OpenHistory;
  readonly devices: number;
  readonly readingsPerDay: number;
}

/** All times are the server's, in ms; they may be any clock's as long as it is one. */
export interface Planner {
  /** The request that is worth most. Changes nothing that counts: asking twice gives the same. */
  next(nowMs: number): Decision | Rest;
  /** It is being made. It comes back by exactly one of the next six. */
  began(decision: Decision, nowMs: number): void;
  tailCommitted(decision: TailDecision, answer: TailAnswer, nowMs: number): void;
  historyCommitted(decision: HistoryDecision, open: OpenHistory): void;
  /** A page of the listing has come. */
  listed(devices: readonly ListedTail[], page: { isLast: boolean }, nowMs: number): void;
  /** The alerts or the account were read to their end. */
  done(kind: 'alerts' | 'account', nowMs: number): void;
  /** Says whether there is something to read again, also after each that was: it gets what all else leaves. */
  setReread(isDue: boolean): void;
  /** It came to nothing. `isOwn`: by a fault of this device or stream, so that it rests for a while; else as before. */
  failed(decision: Decision, fault: { isOwn: boolean }, nowMs: number): void;
  /** A device rests no longer: its failures were not its own. */
  lift(deviceId: string): void;
  /** A request was booked, by any part of the program. A decision causes one or more. */
  booked(purpose: Pick<Purpose, 'lane' | 'stream'>, nowMs: number): void;
  /** The day's window as it stands: after each answer will do. */
  setDay(day: DayFigures, nowMs: number): void;
  setPageSize(records: number): void;
  /** What the state holds of a device that is there: at the start, when it is back, and where others have asked it. */
  held(deviceId: string, held: StoredTail): void;
  /** It is gone, excluded or forgotten: nothing is asked of it. */
  left(deviceId: string): void;
  /** What is open of a device's history. */
  open(lane: 'first-history' | 'backfill', deviceId: string, open: OpenHistory): void;
  /** No backfill request is sent before that time. */
  restBackfill(untilMs: number): void;
  /** It is due now: the plan is doubted, an owner asks. */
  hasten(kind: WholeStream): void;
  /** The streams that were hastened and not read since. */
  hastened(): readonly WholeStream[];
  /** The key does not have the scope: the stream is not read before that time. */
  off(stream: WholeStream | 'telemetry', untilMs: number): void;
  figures(): PlannerFigures;
  /** What the day's budget has for history and backfill. Changes nothing. */
  daySupply(nowMs: number): DaySupply;
  /** How fast the devices report, as far as is known. Takes a look at each. */
  rates(): Rates;
}
