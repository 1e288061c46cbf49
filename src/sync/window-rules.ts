/**
 * What the service allows of a telemetry window: from the plan, and from what it was seen to do (design 2.1, 2.6).
 *
 * The plan's figure bounds the span of a window; whether it bounds the age too, the API document does not say. So an
 * end of the data older than that proves nothing, until a reading that old was served.
 */
import type { Reading } from '../core/records.ts';
import { DAY_NS, type EpochNs, HOUR_NS, msToNs } from '../core/time.ts';
import { type Ask, type WindowLimits, windowSpanNs } from '../core/walk.ts';
import { planOf } from './account.ts';
import type { SyncContext } from './context.ts';

export interface WindowRules {
  limits(): WindowLimits;
  /** Takes in that a window was refused as too wide. @returns whether a narrower one is worth trying. */
  narrow(refused: Ask, maxDays: number | null): boolean;
  /** Takes in that a request with `after` alone was refused. @returns whether the other shape is worth trying. */
  useBothBounds(): boolean;
  /** How old readings may be and still surely be shown, given what was just served; `null`: any age. */
  visibleFrom(served: readonly Reading[]): EpochNs | null;
  /** Takes in that telemetry was answered, and tells whether any was since the start. */
  noteAnswered(): void;
  hasAnswered(): boolean;
}

/** Facts that outlive the process. */
const BOTH_BOUNDS = 'windows_need_both_bounds';
const SERVED_BEYOND = 'served_beyond_days';

/** The narrowest window that is tried. */
const NARROWEST_NS = HOUR_NS;

/** A window that was asked in time may be answered later: so much beyond the plan's figure still counts as inside. */
const AGE_MARGIN_NS = HOUR_NS;

export function createWindowRules({ store, serverClock }: Pick<SyncContext, 'store' | 'serverClock'>): WindowRules {
  let learnt: { planDays: number | null; spanNs: bigint } | null = null;
  let answered = false;
  let bothBounds = store.fact(BOTH_BOUNDS) === 'yes';
  const nowNs = (): EpochNs => msToNs(serverClock.nowMs());
  const planDays = (): number | null => planOf(store.account()).historyMaxDays;
  return {
    limits: () => {
      const days = planDays();
      if (learnt !== null && learnt.planDays !== days) learnt = null;
      return { spanNs: learnt?.spanNs ?? windowSpanNs(days), nowNs: nowNs(), bothBounds };
    },
    narrow: ({ after, before }, maxDays) => {
      const refusedNs = (before ?? nowNs()) - after;
      if (refusedNs <= NARROWEST_NS) return false;
      const told = windowSpanNs(maxDays);
      const halved = refusedNs / 2n < NARROWEST_NS ? NARROWEST_NS : refusedNs / 2n;
      learnt = { planDays: planDays(), spanNs: told !== null && told < refusedNs ? told : halved };
      return true;
    },
    useBothBounds: () => {
      if (bothBounds) return false;
      bothBounds = true;
      store.keepFact(BOTH_BOUNDS, 'yes');
      return true;
    },
    visibleFrom: (served) => {
      const days = planDays();
      if (days === null || store.fact(SERVED_BEYOND) === String(days)) return null;
      const edge = nowNs() - BigInt(days) * DAY_NS - AGE_MARGIN_NS;
      if (!served.some(({ recordedAt }) => recordedAt < edge)) return edge;
      store.keepFact(SERVED_BEYOND, String(days));
      return null;
    },
    noteAnswered: () => {
      answered = true;
    },
    hasAnswered: () => answered,
  };
}
