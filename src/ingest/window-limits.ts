/**
 * What the service allows of a telemetry window: from the plan, from what it was seen to do, and from what it refuses.
 *
 * The plan's figure bounds the span of a window; whether it bounds the age too, the API document does not say. So an
 * end of the data older than that proves nothing, until a reading that old was served.
 */
import type { ApiFault } from '../core/faults.ts';
import type { Reading } from '../core/records.ts';
import { DAY_NS, type EpochNs, HOUR_NS, MINUTE_MS, msToNs, SECOND_NS } from '../core/time.ts';
import type { SyncContext } from './context.ts';
import { type PageRequest, type WindowLimits, windowSpanNs } from './page-request.ts';

/** What a refusal for the range of a window leaves to do. */
type RangeVerdict = 'narrower' | 'too-old' | 'hopeless';

export interface WindowRules {
  limits(): WindowLimits;
  /**
   * Takes in that a window was refused for its range.
   *
   * @returns `narrower`: a narrower window is worth trying; `too-old`: it reaches beyond the age that the plan allows,
   * and `servedFrom` tells from now on how far one may; `hopeless`: neither can be the fault.
   */
  narrow(refused: PageRequest, maxDays: number | null): RangeVerdict;
  /** Takes in that a request with `after` alone was refused: from now on both bounds are given. */
  useBothBounds(): void;
  /** How far back a window may reach without being refused; `null`: any age, as far as is known. */
  servedFrom(): EpochNs | null;
  /** How old readings may be and still surely be shown; `null`: any age. */
  visibleFrom(): EpochNs | null;
  /**
   * Takes in what was served. Readings beyond the plan's age show that this age does not matter: then what was thought
   * to be hidden is worth another look at once, of every device.
   */
  noteServed(readings: readonly Reading[]): void;
  /** Takes in that telemetry of a device was answered. */
  noteAnswered(deviceId: string): void;
  /**
   * Takes in that telemetry of a device was answered by 404.
   *
   * @returns whether the device is gone: it was answered so a while ago already, and others were answered since. One 404
   * alone may be the service's: a route that is lost for a minute must not make all devices gone.
   */
  noteMissing(deviceId: string): boolean;
}

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
interface Learnt {
  readonly store: SyncContext['store'];
  readonly serverClock: SyncContext['serverClock'];
  /** The span that a refusal has left, and the plan's figure by which that counts. */
  span: { readonly planDays: number | null; readonly spanNs: bigint } | null;
  leadNs: bigint;
  bothBounds: boolean;
}

/** The rules of a service as far as they were learnt before. */
export function createWindowRules({ store, serverClock }: Pick<SyncContext, 'store' | 'serverClock'>): WindowRules {
  const bothBounds = store.fact(BOTH_BOUNDS) === 'yes';
  const learnt: Learnt = { store, serverClock, span: null, leadNs: FIRST_LEAD_NS, bothBounds };
  return {
    limits: () => {
      const days = planDays(learnt);
      const refused = learnt.span?.planDays === days ? learnt.span : null;
      return { spanNs: refused?.spanNs ?? windowSpanNs(days), nowNs: nowNs(learnt), bothBounds: learnt.bothBounds };
    },
    narrow: (refused, maxDays) => narrow(learnt, refused, maxDays),
    useBothBounds: () => {
      if (learnt.bothBounds) return;
      learnt.bothBounds = true;
      store.keepFact(BOTH_BOUNDS, 'yes');
    },
    servedFrom: () => {
      const kept = store.fact(REFUSED_BEYOND);
      if (kept === null) return null;
      const [plan, days]: [number | null, number] = JSON.parse(kept);
      return plan === planDays(learnt) ? ageEdge(learnt, days) + learnt.leadNs : null;
    },
    visibleFrom: () => {
      const days = planDays(learnt);
      return days === null || store.fact(SERVED_BEYOND) === String(days) ? null : ageEdge(learnt, days) + EDGE_NS;
    },
    noteServed: (readings) => {
      const days = planDays(learnt);
      if (days === null) return;
      const oldest = ageEdge(learnt, days) - AGE_MARGIN_NS;
      if (!readings.some(({ recordedAt }) => recordedAt < oldest) || store.fact(SERVED_BEYOND) === String(days)) return;
      store.keepFact(SERVED_BEYOND, String(days));
      for (const { record } of store.devices()) store.clearGaps(record.deviceId);
    },
    ...createNotFoundWatch(serverClock),
  };
}

function nowNs({ serverClock }: Learnt): EpochNs {
  return msToNs(serverClock.nowMs());
}

/** The widest window that the plan allows, in days; `null`: any. */
function planDays({ store }: Learnt): number | null {
  return store.account()?.plan.historyMaxDays ?? null;
}

function ageEdge(learnt: Learnt, days: number): EpochNs {
  return nowNs(learnt) - BigInt(Math.floor(days)) * DAY_NS;
}

function narrow(learnt: Learnt, refused: PageRequest, maxDays: number | null): RangeVerdict {
  const { store } = learnt;
  const { after, before } = refused;
  const plan = planDays(learnt);
  const refusedNs = (before ?? nowNs(learnt)) - after;
  const days = maxDays ?? plan;
  if (days !== null && isTooOld(learnt, { after, refusedNs, days })) {
    const learntNow = JSON.stringify([plan, days]);
    if (store.fact(REFUSED_BEYOND) === learntNow) learnt.leadNs *= 2n;
    else store.keepFact(REFUSED_BEYOND, learntNow);
    return 'too-old';
  }
  // Another device may have learnt it while this one was being refused.
  if (learnt.span !== null && learnt.span.planDays === plan && learnt.span.spanNs < refusedNs) return 'narrower';
  if (refusedNs <= NARROWEST_NS) return 'hopeless';
  const told = windowSpanNs(maxDays);
  const halved = refusedNs / 2n < NARROWEST_NS ? NARROWEST_NS : refusedNs / 2n;
  learnt.span = { planDays: plan, spanNs: told !== null && told < refusedNs ? told : halved };
  return 'narrower';
}

/** Whether the age is at fault: the span is one that the plan allows, and its far end is older than that. */
function isTooOld(
  learnt: Learnt,
  { after, refusedNs, days }: { readonly after: EpochNs; readonly refusedNs: bigint; readonly days: number },
): boolean {
  return refusedNs <= BigInt(Math.floor(days)) * DAY_NS && after < ageEdge(learnt, days) + learnt.leadNs;
}

function createNotFoundWatch(
  serverClock: SyncContext['serverClock'],
): Pick<WindowRules, 'noteAnswered' | 'noteMissing'> {
  let answers = 0;
  /** The devices that were answered by 404 last: when that was first, and how many answers had come by then. */
  const missing = new Map<string, { readonly atMs: number; readonly answers: number }>();
  return {
    noteAnswered: (deviceId) => {
      answers += 1;
      missing.delete(deviceId);
    },
    noteMissing: (deviceId) => {
      const nowMs = serverClock.nowMs();
      const first = missing.get(deviceId);
      if (first !== undefined) return answers > first.answers && nowMs - first.atMs >= MINUTE_MS;
      missing.set(deviceId, { atMs: nowMs, answers });
      return false;
    },
  };
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

const RANGE_REFUSALS: Readonly<Record<RangeVerdict, Refusal | null>> = {
  narrower: { kind: 'changed' },
  'too-old': { kind: 'too-old' },
  hopeless: null,
};

/** What a fault says of a request and its device; learns what it tells. @throws ApiFault where it is about neither. */
export function refusalOf(fault: ApiFault, request: PageRequest, rules: WindowRules): Refusal {
  const odd: Refusal = { kind: 'odd', reason: fault.message };
  switch (fault.kind) {
    case 'range-too-large':
      return RANGE_REFUSALS[rules.narrow(request, fault.facts.maxDays ?? null)] ?? odd;
    case 'invalid-request':
      if (request.before !== null) return odd;
      rules.useBothBounds();
      return { kind: 'changed' };
    case 'bad-cursor':
    case 'malformed':
      return odd;
    case 'not-found':
      return { kind: rules.noteMissing(request.deviceId) ? 'gone' : 'unreachable' };
    default:
      throw fault;
  }
}
