/**
 * What the service allows of a telemetry window: from the plan, and from what it was seen to do (design 2.1, 2.6).
 *
 * The plan's figure bounds the span of a window; whether it bounds the age too, the API document does not say. So an
 * end of the data older than that proves nothing, until a reading that old was served.
 */
import type { Reading } from '../core/records.ts';
import { DAY_NS, type EpochNs, HOUR_NS, MINUTE_MS, msToNs, SECOND_NS } from '../core/time.ts';
import { planOf } from './account.ts';
import type { SyncContext } from './context.ts';
import { type Ask, type WindowLimits, windowSpanNs } from './page-request.ts';

/** What a refusal for the range of a window leaves to do. */
export type RangeVerdict = 'narrower' | 'too-old' | 'hopeless';

export interface WindowRules {
  limits(): WindowLimits;
  /**
   * Takes in that a window was refused for its range.
   *
   * @returns `narrower`: a narrower window is worth trying; `too-old`: it reaches beyond the age that the plan allows,
   * and `servedFrom` tells from now on how far one may; `hopeless`: neither can be the fault.
   */
  narrow(refused: Ask, maxDays: number | null): RangeVerdict;
  /** Takes in that a request with `after` alone was refused: from now on both bounds are given. */
  useBothBounds(): void;
  /** How far back a window may reach without being refused; `null`: any age, as far as is known. */
  servedFrom(): EpochNs | null;
  /** How old readings may be and still surely be shown, given what was just served; `null`: any age. */
  visibleFrom(served: readonly Reading[]): EpochNs | null;
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

export function createWindowRules({ store, serverClock }: Pick<SyncContext, 'store' | 'serverClock'>): WindowRules {
  let learnt: { planDays: number | null; spanNs: bigint } | null = null;
  let leadNs = FIRST_LEAD_NS;
  let answers = 0;
  /** The devices that were answered by 404 last: when that was first, and how many answers had come by then. */
  const missing = new Map<string, { readonly atMs: number; readonly answers: number }>();
  let bothBounds = store.fact(BOTH_BOUNDS) === 'yes';
  const nowNs = (): EpochNs => msToNs(serverClock.nowMs());
  const planDays = (): number | null => planOf(store.account()).historyMaxDays;
  const ageEdge = (days: number): EpochNs => nowNs() - BigInt(Math.floor(days)) * DAY_NS;
  /** Whether the age is at fault: the span is one that the plan allows, and its far end is older than that. */
  const isTooOld = ({ after }: Ask, refusedNs: bigint, days: number | null): days is number =>
    days !== null && refusedNs <= BigInt(Math.floor(days)) * DAY_NS && after < ageEdge(days) + leadNs;
  return {
    limits: () => {
      const days = planDays();
      if (learnt !== null && learnt.planDays !== days) learnt = null;
      return { spanNs: learnt?.spanNs ?? windowSpanNs(days), nowNs: nowNs(), bothBounds };
    },
    narrow: (refused, maxDays) => {
      const { after, before } = refused;
      const refusedNs = (before ?? nowNs()) - after;
      const days = maxDays ?? planDays();
      if (isTooOld(refused, refusedNs, days)) {
        const learntNow = JSON.stringify([planDays(), days]);
        if (store.fact(REFUSED_BEYOND) === learntNow) leadNs *= 2n;
        else store.keepFact(REFUSED_BEYOND, learntNow);
        return 'too-old';
      }
      // Another device may have learnt it while this one was being refused.
      if (learnt !== null && learnt.planDays === planDays() && learnt.spanNs < refusedNs) return 'narrower';
      if (refusedNs <= NARROWEST_NS) return 'hopeless';
      const told = windowSpanNs(maxDays);
      const halved = refusedNs / 2n < NARROWEST_NS ? NARROWEST_NS : refusedNs / 2n;
      learnt = { planDays: planDays(), spanNs: told !== null && told < refusedNs ? told : halved };
      return 'narrower';
    },
    useBothBounds: () => {
      if (bothBounds) return;
      bothBounds = true;
      store.keepFact(BOTH_BOUNDS, 'yes');
    },
    servedFrom: () => {
      const kept = store.fact(REFUSED_BEYOND);
      if (kept === null) return null;
      const [plan, days]: [number | null, number] = JSON.parse(kept);
      return plan === planDays() ? ageEdge(days) + leadNs : null;
    },
    visibleFrom: (served) => {
      const days = planDays();
      if (days === null || store.fact(SERVED_BEYOND) === String(days)) return null;
      if (!served.some(({ recordedAt }) => recordedAt < ageEdge(days) - AGE_MARGIN_NS)) return ageEdge(days) + EDGE_NS;
      store.keepFact(SERVED_BEYOND, String(days));
      // What was thought to be hidden is worth another look at once.
      for (const { record } of store.devices()) store.clearGaps(record.deviceId);
      return null;
    },
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
