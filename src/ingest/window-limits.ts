/**
 * What the service allows of a telemetry window: from the plan, from what it was seen to do, and from what it refuses.
 *
 * The plan's figure bounds the span of a window; whether it bounds the age too, the API document does not say. So an
 * end of the data older than that proves nothing, until a reading that old was served.
 */
import type { ApiFault } from '../core/faults.ts';
import type { Reading } from '../core/records.ts';
import { DAY_NS, type EpochNs, HOUR_NS, MINUTE_MS, maxNs, msToNs, SECOND_NS } from '../core/time.ts';
import type { SyncContext } from './context.ts';
import { type PageRequest, type WindowLimits, windowSpanNs } from './page-request.ts';

/** Facts that outlive the process. */
const BOTH_BOUNDS = 'windows_need_both_bounds';
const SERVED_BEYOND = 'served_beyond_days';
/** The plan's figure and the days that the refusal spoke of. */
const REFUSED_BEYOND = 'refused_beyond_days';

/** The narrowest window that is tried. */
const NARROWEST_NS = HOUR_NS;

/** The server's clock is known to a few seconds: so near to the plan's age nothing is claimed. */
const EDGE_NS = 5n * SECOND_NS;

/** A reading has to be older than the plan's age by this to show that age does not matter. */
const AGE_MARGIN_NS = HOUR_NS;

/** What a service that refuses old windows is left for a request to be sent and answered; doubled where that is short. */
const FIRST_LEAD_NS = 10n * SECOND_NS;

/** What was learnt of the service in the life of this program. */
export interface WindowRules {
  readonly store: SyncContext['store'];
  readonly serverClock: SyncContext['serverClock'];
  /** The span that a refusal has left, and the plan's figure by which that counts. */
  span: { readonly planDays: number | null; readonly spanNs: bigint } | null;
  leadNs: bigint;
  /** Whether a request with `after` alone is refused. */
  bothBounds: boolean;
  /** Answers about devices so far. */
  answers: number;
  /** The devices that were answered by 404 last: when that was first, and how many answers had come by then. */
  readonly missing: Map<string, { readonly atMs: number; readonly answers: number }>;
}

/** The rules of a service as far as they were learnt before. */
export function createWindowRules({ store, serverClock }: Pick<SyncContext, 'store' | 'serverClock'>): WindowRules {
  const bothBounds = store.fact(BOTH_BOUNDS) === 'yes';
  return { store, serverClock, span: null, leadNs: FIRST_LEAD_NS, bothBounds, answers: 0, missing: new Map() };
}

/** What a window may be like now. */
export function windowLimits(rules: WindowRules): WindowLimits {
  const { span, bothBounds } = rules;
  const days = planDays(rules);
  const spanNs = span?.planDays === days ? span.spanNs : windowSpanNs(days);
  return { spanNs, nowNs: nowNs(rules), bothBounds };
}

/** Takes in that something is asked: what was learnt of the span under another plan is forgotten, for good. */
export function noteAsked(rules: WindowRules): void {
  if (rules.span !== null && rules.span.planDays !== planDays(rules)) rules.span = null;
}

/** How far back a window may reach without being refused; `null`: any age, as far as is known. */
export function servedFrom(rules: WindowRules): EpochNs | null {
  const kept = rules.store.fact(REFUSED_BEYOND);
  if (kept === null) return null;
  const [plan, days]: [number | null, number] = JSON.parse(kept);
  return plan === planDays(rules) ? ageEdge(rules, days) + rules.leadNs : null;
}

/** How old readings may be and still surely be shown; `null`: any age. */
export function visibleFrom(rules: WindowRules): EpochNs | null {
  const days = planDays(rules);
  return days === null || isAgeOpen(rules, days) ? null : ageEdge(rules, days) + EDGE_NS;
}

/** What is older is not to be had, as far as is known: not shown, or not even to be asked for; `null`: any age is. */
export function planEdge(rules: WindowRules): EpochNs | null {
  const edges = [visibleFrom(rules), servedFrom(rules)].flatMap((edge) => edge ?? []);
  return edges.length === 0 ? null : edges.reduce(maxNs);
}

/**
 * Takes in what was served. Readings beyond the plan's age show that this age does not matter: then what was thought
 * to be hidden is worth another look at once, of every device.
 */
export function noteServed(rules: WindowRules, readings: readonly Reading[]): void {
  const days = planDays(rules);
  if (days === null) return;
  const oldest = ageEdge(rules, days) - AGE_MARGIN_NS;
  if (!readings.some(({ recordedAt }) => recordedAt < oldest) || isAgeOpen(rules, days)) return;
  rules.store.keepFact(SERVED_BEYOND, String(days));
  for (const { record } of rules.store.devices()) rules.store.clearGaps(record.deviceId);
}

/** Takes in that telemetry of a device was answered. */
export function noteAnswered(rules: WindowRules, deviceId: string): void {
  rules.answers += 1;
  rules.missing.delete(deviceId);
}

/** What a request came back with that is about this request or this device alone. */
export type Refusal =
  /** The question has to be put differently: the window rules have changed. */
  | { readonly kind: 'changed' }
  /** The question reaches further back than the service lets anybody ask. */
  | { readonly kind: 'too-old' }
  /** The answer could not be understood, or the question was refused. */
  | { readonly kind: 'odd'; readonly reason: string }
  /** 404 again, while the service answers about other devices. */
  | { readonly kind: 'gone' }
  /** 404 for the first time, or nothing else has been answered since: it may be the service. */
  | { readonly kind: 'unreachable' };

/** What a fault says of a request and its device; learns what it tells. @throws ApiFault where it is about neither. */
export function refusalOf(rules: WindowRules, fault: ApiFault, request: PageRequest): Refusal {
  const odd: Refusal = { kind: 'odd', reason: fault.message };
  switch (fault.kind) {
    case 'range-too-large':
      return narrow(rules, request, fault.facts.maxDays ?? null) ?? odd;
    case 'invalid-request':
      if (request.before !== null) return odd;
      if (!rules.bothBounds) rules.store.keepFact(BOTH_BOUNDS, 'yes');
      rules.bothBounds = true;
      return { kind: 'changed' };
    case 'bad-cursor':
    case 'malformed':
      return odd;
    case 'not-found':
      return { kind: isGone(rules, request.deviceId) ? 'gone' : 'unreachable' };
    default:
      throw fault;
  }
}

/** Takes in that a window was refused for its range. @returns `null` where neither span nor age can be the fault. */
function narrow(rules: WindowRules, { after, before }: PageRequest, maxDays: number | null): Refusal | null {
  const { store, span } = rules;
  const plan = planDays(rules);
  const refusedNs = (before ?? nowNs(rules)) - after;
  const days = maxDays ?? plan;
  // The age is at fault where the plan allows the span, and its far end is older than that.
  if (days !== null && refusedNs <= daysNs(days) && after < ageEdge(rules, days) + rules.leadNs) {
    const learnt = JSON.stringify([plan, days]);
    if (store.fact(REFUSED_BEYOND) === learnt) rules.leadNs *= 2n;
    else store.keepFact(REFUSED_BEYOND, learnt);
    return { kind: 'too-old' };
  }
  // Another device may have learnt it while this one was being refused.
  if (span?.planDays === plan && span.spanNs < refusedNs) return { kind: 'changed' };
  if (refusedNs <= NARROWEST_NS) return null;
  const told = windowSpanNs(maxDays);
  const halved = refusedNs / 2n < NARROWEST_NS ? NARROWEST_NS : refusedNs / 2n;
  rules.span = { planDays: plan, spanNs: told !== null && told < refusedNs ? told : halved };
  return { kind: 'changed' };
}

/**
 * Takes in that telemetry of a device was answered by 404.
 *
 * @returns whether the device is gone: it was answered so a while ago already, and others were answered since. One 404
 * alone may be the service's: a route that is lost for a minute must not make all devices gone.
 */
function isGone({ missing, answers, serverClock }: WindowRules, deviceId: string): boolean {
  const atMs = serverClock.nowMs();
  const first = missing.get(deviceId);
  if (first !== undefined) return answers > first.answers && atMs - first.atMs >= MINUTE_MS;
  missing.set(deviceId, { atMs, answers });
  return false;
}

function nowNs({ serverClock }: WindowRules): EpochNs {
  return msToNs(serverClock.nowMs());
}

/** The widest window that the plan allows, in days; `null`: any. */
function planDays({ store }: WindowRules): number | null {
  return store.account()?.plan.historyMaxDays ?? null;
}

function daysNs(days: number): bigint {
  return BigInt(Math.floor(days)) * DAY_NS;
}

function ageEdge(rules: WindowRules, days: number): EpochNs {
  return nowNs(rules) - daysNs(days);
}

/** Whether readings older than the plan's days were served. */
function isAgeOpen({ store }: WindowRules, days: number): boolean {
  return store.fact(SERVED_BEYOND) === String(days);
}
