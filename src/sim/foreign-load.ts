/**
 * Other clients of the workspace: they spend of the same allowance, at a rate that may change while the simulator runs.
 *
 * They are clients like any other: what is not left, they do not get.
 */
import { type EpochMs, MINUTE_MS } from '../core/time.ts';
import type { Allowance, AllowanceState } from './allowance.ts';
import type { SimSettings } from './settings.ts';

/** How many portions are counted one by one after a rest; what lies further back has left every minute by then. */
const MOST_PORTIONS = 5000;

/** The allowance as it is with the others, as the settings have them at each moment. */
export function shareAllowance(allowance: Allowance, settings: Pick<SimSettings, 'allowance'>): Allowance {
  let countedToMs: EpochMs | null = null;
  let rest = 0;
  const spendTo = (atMs: EpochMs): void => {
    const { perMinute, everyMs } = settings.allowance.foreign;
    if (countedToMs === null || perMinute <= 0 || everyMs <= 0) {
      countedToMs = atMs;
      return;
    }
    countedToMs = Math.max(countedToMs, atMs - MOST_PORTIONS * everyMs);
    for (let next = nextPortion(countedToMs, everyMs); next <= atMs; next += everyMs) {
      rest += (perMinute * everyMs) / MINUTE_MS;
      const count = Math.min(Math.floor(rest), leftOf(allowance.state(next)));
      rest -= Math.floor(rest);
      if (count > 0) allowance.spend(count, next);
    }
    countedToMs = atMs;
  };
  return {
    state: (atMs) => {
      spendTo(atMs);
      return allowance.state(atMs);
    },
    spend: (count, atMs) => {
      spendTo(atMs);
      allowance.spend(count, atMs);
    },
  };
}

/** The first moment after this one at which a portion is spent. */
function nextPortion(afterMs: EpochMs, everyMs: number): EpochMs {
  return (Math.floor(afterMs / everyMs) + 1) * everyMs;
}

function leftOf({ minute, day }: AllowanceState): number {
  return Math.min(minute.left, day.left);
}
