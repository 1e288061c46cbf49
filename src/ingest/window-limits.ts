/**
 * The limits of a telemetry window: from the plan, from the readings that were served, and from rejections.
 *
 * Pure. The plan's limit applies to the width of a window. The API document does not state whether it applies to the
 * age of readings as well. So the end of the data below that age covers nothing, until a reading of that age was
 * served.
 */
import type { ApiFault } from '../core/faults.ts';
import type { Reading } from '../core/records.ts';
import { DAY_NS, type EpochMs, type EpochNs, HOUR_NS, MINUTE_MS, maxNs, minNs, SECOND_NS } from '../core/time.ts';
import { maxWidthNs, type PageRequest, type WindowLimits } from './page-request.ts';

/** The narrowest window that is requested. */
const NARROWEST_NS = HOUR_NS;

/** The server's clock is known only to a few seconds, so no range this close to the plan's age counts as covered. */
const EDGE_NS = 5n * SECOND_NS;

/** A reading must be older than the plan's age by this much to show that age does not matter. */
const AGE_MARGIN_NS = HOUR_NS;

/**
 * The time that a request for old readings has to arrive before its window is too old; doubled if that is too short.
 */
export const FIRST_LEAD_NS = 10n * SECOND_NS;

/** If a request is rejected despite this lead time, its age is not the cause. */
const LONGEST_LEAD_NS = HOUR_NS;

/** The facts that answers have shown about windows. Each member applies only under the plan that it names. */
export interface WindowKnowledge {
  /** The width that was left after a rejection; `null` before one. */
  readonly learntWidth: { readonly planDays: number | null; readonly widthNs: bigint } | null;
  /** The age that a rejection has named; `null` before one. */
  readonly rejectedBeyond: { readonly planDays: number | null; readonly days: number } | null;
  /** The plan's figure under which older readings were served anyway; `null` before that. */
  readonly servedBeyondDays: number | null;
  /** The time that a request for old readings has to arrive; {@link FIRST_LEAD_NS} until that was too short. */
  readonly leadNs: bigint;
  /** Whether the service rejects a request with `after` alone, or counts it as wider than it is. */
  readonly bothBounds: boolean;
}

/** The rules by which windows are requested at one moment. */
export interface WindowRules extends WindowKnowledge {
  /** The widest window that the plan allows, in days; `null`: any. */
  readonly planDays: number | null;
  /** The server's time now, as well as it is known. */
  readonly nowNs: EpochNs;
  /** The latest time that may be the present, and one that has certainly passed; `null` while none is known. */
  readonly latestNs: EpochNs;
  readonly passedNs: EpochNs | null;
}

/** Returns the limits of a window now. */
export function windowLimits({ learntWidth, planDays, nowNs, bothBounds }: WindowRules): WindowLimits {
  return {
    widthNs: learntWidth?.planDays === planDays ? learntWidth.widthNs : maxWidthNs(planDays),
    nowNs,
    bothBounds,
  };
}

/** Returns how far back a window may reach without being rejected; `null`: any age, as far as is known. */
export function servedFrom(rules: WindowRules): EpochNs | null {
  const { rejectedBeyond, planDays, leadNs } = rules;
  return rejectedBeyond?.planDays === planDays ? ageEdge(rules, rejectedBeyond.days) + leadNs : null;
}

/** Returns the time from which readings are surely shown; `null`: readings of any age. */
export function visibleFrom(rules: WindowRules): EpochNs | null {
  const { planDays, servedBeyondDays, latestNs } = rules;
  return planDays === null || servedBeyondDays === planDays ? null : latestNs - daysNs(planDays) + EDGE_NS;
}

/**
 * Returns the time before which readings cannot be read: they are hidden, or requests for them are rejected; `null`:
 * any age is served.
 */
export function planEdge(rules: WindowRules): EpochNs | null {
  const edges = [visibleFrom(rules), servedFrom(rules)].flatMap((edge) => edge ?? []);
  return edges.length === 0 ? null : edges.reduce(maxNs);
}

/** Whether served readings show, for the first time under this plan, that its age does not matter. */
export function showsAnyAge(rules: WindowRules, readings: readonly Reading[]): boolean {
  const { planDays, servedBeyondDays, passedNs } = rules;
  if (planDays === null || servedBeyondDays === planDays || passedNs === null) return false;
  const oldest = passedNs - daysNs(planDays) - AGE_MARGIN_NS;
  return readings.some(({ recordedAt }) => recordedAt < oldest);
}

/** Why a request returned no page, if the reason concerns this request or this device alone. */
export type WindowRejection =
  /** The window rules have changed: the request has to be made again by the new ones. */
  | { readonly kind: 'changed' }
  /** The request reaches further back than the service serves any client. */
  | { readonly kind: 'too-old' }
  /** The answer could not be understood, or the request was rejected. */
  | { readonly kind: 'odd'; readonly reason: string }
  /** Another 404, although the service answers about other devices. */
  | { readonly kind: 'gone' }
  /** 404 for the first time, or no other device was answered since: the service may be at fault. */
  | { readonly kind: 'unreachable' };

/** A rejection, and what it shows about windows. */
interface LearntLimits {
  readonly rejection: WindowRejection;
  readonly learnt: Partial<WindowKnowledge>;
}

type Bounds = Pick<PageRequest, 'after' | 'before'>;

/**
 * Reads a fault other than 404.
 *
 * @returns the rejection and what it shows.
 * @throws ApiFault the same fault, if it concerns neither the request nor its device.
 */
export function learnFromRejection(rules: WindowRules, fault: ApiFault, request: Bounds): LearntLimits {
  const odd: LearntLimits = { rejection: { kind: 'odd', reason: fault.message }, learnt: {} };
  switch (fault.kind) {
    case 'range-too-large':
      return learnFromTooLarge(rules, request, fault.facts.maxDays ?? null) ?? odd;
    case 'invalid-request':
      return request.before === null ? changedLimits({ bothBounds: true }) : odd;
    case 'bad-cursor':
    case 'malformed':
      return odd;
    default:
      throw fault;
  }
}

function changedLimits(learnt: Partial<WindowKnowledge>): LearntLimits {
  return { rejection: { kind: 'changed' }, learnt };
}

/**
 * Evaluates the rejection of a range.
 *
 * @returns `null` if neither the width nor the age can be the cause.
 */
function learnFromTooLarge(rules: WindowRules, { after, before }: Bounds, maxDays: number | null): LearntLimits | null {
  const { learntWidth, planDays, leadNs, nowNs } = rules;
  const rejectedNs = (before ?? nowNs) - after;
  const days = maxDays ?? planDays;
  // The age is the cause if the plan allows the width, and the far end is older than the limit.
  if (days !== null && rejectedNs <= daysNs(days) && after < ageEdge(rules, days) + leadNs) return tooOld(rules, days);
  // A service whose clock is ahead measures a range without an end up to its own present.
  if (days !== null && before === null && rejectedNs <= daysNs(days)) return changedLimits({ bothBounds: true });
  // A request for another device may have learned it while this request was under way.
  if (learntWidth?.planDays === planDays && learntWidth.widthNs < rejectedNs) return changedLimits({});
  if (rejectedNs <= NARROWEST_NS) {
    // No plan allows less width. If the plan is unknown, the age in whole days is at least the plan's figure.
    const ageDays = Number((nowNs - after) / DAY_NS);
    return days === null && ageDays > 0 ? tooOld(rules, ageDays) : null;
  }
  const named = maxWidthNs(maxDays);
  const halved = maxNs(rejectedNs / 2n, NARROWEST_NS);
  return changedLimits({ learntWidth: { planDays, widthNs: named !== null && named < rejectedNs ? named : halved } });
}

/** Returns `null` if the age cannot be the cause. */
function tooOld({ planDays, rejectedBeyond, leadNs }: WindowRules, days: number): LearntLimits | null {
  const isKnown = rejectedBeyond?.planDays === planDays && rejectedBeyond.days === days;
  if (isKnown && leadNs >= LONGEST_LEAD_NS) return null;
  const learnt = isKnown ? { leadNs: minNs(leadNs * 2n, LONGEST_LEAD_NS) } : { rejectedBeyond: { planDays, days } };
  return { rejection: { kind: 'too-old' }, learnt };
}

/** A 404 about a device: when it came, and how many answers about devices had come by then. */
export interface NotFound {
  readonly atMs: EpochMs;
  readonly answers: number;
}

/**
 * Whether a device is gone: its first 404 is a minute old and other devices were answered since. A single 404 may be
 * the service's fault: a route that fails for a minute must not make all devices count as gone.
 */
export function isDeviceGone(first: NotFound | undefined, now: NotFound): boolean {
  return first !== undefined && now.answers > first.answers && now.atMs - first.atMs >= MINUTE_MS;
}

function daysNs(days: number): bigint {
  return BigInt(Math.floor(days)) * DAY_NS;
}

function ageEdge({ nowNs }: WindowRules, days: number): EpochNs {
  return nowNs - daysNs(days);
}
