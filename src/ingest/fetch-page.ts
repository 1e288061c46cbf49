/**
 * Requests pages of telemetry, and records what the answers show about windows and devices.
 *
 * The rules are in `window-limits.ts`. Some of these facts are stored in the state and outlive the process; the others
 * last as long as the process.
 */
import { ApiFault } from '../core/faults.ts';
import { isNumber, orNone, orNull, parseAs, shapeOf } from '../core/json.ts';
import type { Purpose, Reply, RequestLane } from '../core/ports.ts';
import type { Reading, TelemetryPage } from '../core/records.ts';
import { ForgottenError } from '../core/state/telemetry.ts';
import { ceilToSecond, DAY_MS, type EpochMs, maxNs, msToNs } from '../core/time.ts';
import { commitInTurns } from './commit.ts';
import type { SyncContext } from './context.ts';
import { type PageRequest, SLACK_NS } from './page-request.ts';
import {
  FIRST_LEAD_NS,
  isDeviceGone,
  learnFromRejection,
  type NotFound,
  showsAnyAge,
  type WindowKnowledge,
  type WindowRejection,
  type WindowRules,
  windowLimits,
} from './window-limits.ts';

/** This fact is `yes` once a request with only `after` was rejected. */
const BOTH_BOUNDS = 'windows_need_both_bounds';
/** The fact with the plan's days under which older readings were served. */
const SERVED_BEYOND = 'served_beyond_days';
/**
 * The fact with the plan's days, the days beyond which a request was rejected for its age, and the time of the
 * rejection in ms, as a JSON list.
 */
const REJECTED_BEYOND = 'refused_beyond_days';
/**
 * The fact with the days that the last rejection of a range has named, and its time in ms, as a JSON list. It replaces
 * the plan if the account is not read. It does not show that an age is rejected: the width may have been the cause.
 */
const NAMED_DAYS = 'named_max_days';

/** How long a rejection counts. After that, one request finds out again, because the service may have been at fault. */
const REJECTION_COUNTS_MS = DAY_MS;

/** The facts that answers have shown about the service's windows, and the state that stores some of them. */
interface LearntWindows extends Pick<SyncContext, 'store' | 'serverClock'> {
  learntWidth: WindowKnowledge['learntWidth'];
  /** Whether the server's time was known when the width was learned. */
  isWidthSure: boolean;
  leadNs: bigint;
  bothBounds: boolean;
  /** The number of answers about devices so far. */
  answers: number;
  /** The first 404 of each device that no page has followed. */
  readonly notFound: Map<string, NotFound>;
}

/** Loads the stored facts about windows. */
export function createLearntWindows({ store, serverClock }: Pick<SyncContext, 'store' | 'serverClock'>): LearntWindows {
  const bothBounds = store.fact(BOTH_BOUNDS) === 'yes';
  const learnt = { learntWidth: null, isWidthSure: false, leadNs: FIRST_LEAD_NS, bothBounds };
  return { store, serverClock, ...learnt, answers: 0, notFound: new Map() };
}

/** Returns the rules by which windows are requested now. */
export function windowRules({ store, serverClock, learntWidth, leadNs, bothBounds }: LearntWindows): WindowRules {
  const served = store.fact(SERVED_BEYOND);
  const passedMs = serverClock.passedMs();
  return {
    learntWidth,
    leadNs,
    bothBounds,
    servedBeyondDays: served === null ? null : Number(served),
    rejectedBeyond: rejectedBeyond(store.fact(REJECTED_BEYOND), serverClock.nowMs()),
    planDays: knownPlanDays(store, serverClock.nowMs()),
    nowNs: msToNs(serverClock.nowMs()),
    latestNs: msToNs(serverClock.latestPresentMs()),
    passedNs: passedMs === null ? null : msToNs(passedMs),
  };
}

/** The days of the plan: from the account, or, if that was never read, from a recent rejection. */
function knownPlanDays(store: Pick<SyncContext['store'], 'account' | 'fact'>, nowMs: EpochMs): number | null {
  const account = store.account();
  if (account !== null) return account.plan.historyMaxDays;
  const named = parseAs(store.fact(NAMED_DAYS), isNamedDays);
  if (named === null) return null;
  const [days, atMs] = named;
  return isRecent(atMs, nowMs) ? days : null;
}

/** Stores the days of the plan that a rejection names, if the account is not known. */
function noteNamedDays({ store, serverClock }: LearntWindows, { kind, facts }: ApiFault): void {
  if (kind !== 'range-too-large' || facts.maxDays === undefined || store.account() !== null) return;
  store.saveFact(NAMED_DAYS, JSON.stringify([facts.maxDays, serverClock.nowMs()]));
}

/** The days of the plan, and when a rejection named them. */
const isNamedDays = shapeOf<readonly [days: number, atMs: EpochMs]>([isNumber, isNumber]);

/** The days of the plan and of the rejected age, and when it was rejected; `null` if the age is doubted. */
const isRejectedAge = shapeOf<readonly [planDays: number | null, days: number, atMs: EpochMs | undefined]>([
  orNull(isNumber),
  isNumber,
  // The state of an older version has no time.
  orNone(isNumber),
]);

function rejectedBeyond(fact: string | null, nowMs: EpochMs): WindowKnowledge['rejectedBeyond'] {
  const rejected = parseAs(fact, isRejectedAge);
  if (rejected === null) return null;
  const [planDays, days, atMs = 0] = rejected;
  return isRecent(atMs, nowMs) ? { planDays, days } : null;
}

/** Whether a rejection still counts. A rejection from the future was recorded by a clock that was ahead. */
function isRecent(rejectedAtMs: EpochMs, nowMs: EpochMs): boolean {
  return Math.abs(nowMs - rejectedAtMs) < REJECTION_COUNTS_MS;
}

/**
 * Drops a rejected age that is younger than the plan's: the plan may have been another one for a while. Called at the
 * start of a process, so that one request finds out again.
 */
export function forgetDoubtfulAge({ store }: Pick<SyncContext, 'store'>): void {
  const rejected = parseAs(store.fact(REJECTED_BEYOND), isRejectedAge);
  if (rejected === null) return;
  const [planDays, days, atMs = 0] = rejected;
  const isDoubtful = planDays !== null && days < planDays && atMs > 0;
  if (isDoubtful) store.saveFact(REJECTED_BEYOND, JSON.stringify([planDays, days]));
}

/** Stores what a rejection has shown about windows. */
function saveLimits(learnt: LearntWindows, limits: Partial<WindowKnowledge>): void {
  const { store } = learnt;
  if (limits.bothBounds === true) {
    if (!learnt.bothBounds) store.saveFact(BOTH_BOUNDS, 'yes');
    learnt.bothBounds = true;
  }
  if (limits.rejectedBeyond != null) {
    const { planDays, days } = limits.rejectedBeyond;
    store.saveFact(REJECTED_BEYOND, JSON.stringify([planDays, days, learnt.serverClock.nowMs()]));
  }
  learnt.leadNs = limits.leadNs ?? learnt.leadNs;
  if (limits.learntWidth == null) return;
  learnt.learntWidth = limits.learntWidth;
  learnt.isWidthSure = learnt.serverClock.passedMs() !== null;
}

/**
 * Records the readings of a page. Readings beyond the plan's age show that this age does not matter. Then all gaps of
 * all devices are worth another request at once.
 */
export function noteServed(learnt: LearntWindows, readings: readonly Reading[]): void {
  const rules = windowRules(learnt);
  if (!showsAnyAge(rules, readings)) return;
  learnt.store.saveFact(SERVED_BEYOND, String(rules.planDays));
  for (const { record } of learnt.store.devices()) learnt.store.clearGaps(record.deviceId);
}

/**
 * Records that a page without an upper bound did not end at the present: it has readings with times that no clock has
 * reached, or it ends before a time at which the device is known to have a reading, because the service's own clock may
 * be behind. From now on requests have an upper bound.
 */
export function noteOpenEnd(learnt: LearntWindows): void {
  learnt.bothBounds = true;
}

/**
 * Drops a width that was learned under another plan, for good. Once the server's clock is known, it also drops a width
 * from before that: the age by a wrong clock may have been the cause of the rejections.
 */
function forgetDoubtfulWidth(learnt: LearntWindows): void {
  const { learntWidth, isWidthSure, serverClock } = learnt;
  if (learntWidth === null) return;
  const isDoubtful = !isWidthSure && serverClock.passedMs() !== null;
  if (isDoubtful || learntWidth.planDays !== windowRules(learnt).planDays) learnt.learntWidth = null;
}

/** The parts that every telemetry request needs. */
export interface FetchParts {
  readonly context: SyncContext;
  readonly windows: LearntWindows;
}

type PageAnswer = { readonly kind: 'page'; readonly reply: Reply<TelemetryPage> } | WindowRejection;

/**
 * Requests a page.
 *
 * @returns the page, or why there is none if the cause concerns only this request or this device.
 * @throws ApiFault if the fault concerns more (unreachable, throttled, key, plan, scope, server fault).
 */
export async function fetchPage(
  { context, windows }: FetchParts,
  { request, lane }: { readonly request: PageRequest; readonly lane: RequestLane },
  signal: AbortSignal,
): Promise<PageAnswer> {
  const { deviceId, after, before, cursor } = request;
  forgetDoubtfulWidth(windows);
  try {
    const purpose = { lane, stream: 'telemetry', deviceId } as const;
    const reply = await context.api.telemetry({ deviceId, after, before, cursor }, purpose, signal);
    windows.answers += 1;
    windows.notFound.delete(deviceId);
    return { kind: 'page', reply };
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    if (error.kind === 'not-found') return { kind: noteNotFound(windows, deviceId) };
    noteNamedDays(windows, error);
    const { rejection, learnt } = learnFromRejection(windowRules(windows), error, request);
    saveLimits(windows, learnt);
    return rejection;
  }
}

/**
 * Records a 404 about a device.
 *
 * @returns whether the device is gone, or may only be unreachable.
 */
function noteNotFound({ notFound, answers, serverClock }: LearntWindows, deviceId: string): 'gone' | 'unreachable' {
  const now = { atMs: serverClock.nowMs(), answers };
  const first = notFound.get(deviceId);
  if (first === undefined) notFound.set(deviceId, now);
  return isDeviceGone(first, now) ? 'gone' : 'unreachable';
}

/**
 * Requests the newest page of a device: without bounds, and if that is rejected, with the widest possible window.
 *
 * @throws ApiFault
 */
async function fetchNewest(parts: FetchParts, deviceId: string, signal: AbortSignal): Promise<Reply<TelemetryPage>> {
  const purpose = { lane: 'live', stream: 'telemetry', deviceId } as const;
  try {
    return await parts.context.api.telemetry({ deviceId, after: null, before: null, cursor: null }, purpose, signal);
  } catch (error) {
    if (!(error instanceof ApiFault) || error.kind !== 'invalid-request') throw error;
    return await fetchWidest(parts, purpose, signal);
  }
}

/** Requests the widest window up to now. If the plan is unknown, rejections show how wide that is. */
async function fetchWidest(
  { context, windows }: FetchParts,
  purpose: Purpose & { readonly deviceId: string },
  signal: AbortSignal,
): Promise<Reply<TelemetryPage>> {
  for (;;) {
    const { widthNs, nowNs } = windowLimits(windowRules(windows));
    const before = ceilToSecond(nowNs) + SLACK_NS;
    const after = widthNs === null ? 0n : maxNs(before - widthNs, 0n);
    try {
      const { deviceId } = purpose;
      return await context.api.telemetry({ deviceId, after, before, cursor: null }, purpose, signal);
    } catch (error) {
      if (!(error instanceof ApiFault) || error.kind !== 'range-too-large') throw error;
      noteNamedDays(windows, error);
      const { rejection, learnt } = learnFromRejection(windowRules(windows), error, { after, before });
      if (rejection.kind !== 'changed') throw error;
      saveLimits(windows, learnt);
    }
  }
}

/**
 * Archives the newest page of a device without covering a range.
 *
 * @returns whether it had readings.
 */
export async function peek(parts: FetchParts, deviceId: string, signal: AbortSignal): Promise<boolean> {
  const { context } = parts;
  const reply = await fetchNewest(parts, deviceId, signal);
  if (reply.value.deviceId !== null && reply.value.deviceId !== deviceId) return false;
  const { readings } = reply.value;
  try {
    await commitInTurns(context, { deviceId, lane: 'live', reply, readings, covers: null });
    return readings.length > 0;
  } catch (error) {
    if (error instanceof ForgottenError) return false;
    throw error;
  }
}
