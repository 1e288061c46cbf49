/**
 * Reads yesterday again, device by device (design 2.1): the planner gives it what all else leaves of the allowance.
 */

import type { SyncContext } from './context.ts';
import { exclusionNow } from './kept-devices.ts';
import { rereadableDay, rereadDay, rereadDue } from './reread.ts';

export interface Rereading {
  /** Looks anew which devices are due. Takes a look at each. @returns whether any is. */
  look(): boolean;
  /** Reads yesterday of the next device. @returns whether there is another. @throws ApiFault */
  next(signal: AbortSignal): Promise<boolean>;
}

/** Nothing is known to be due before the first look. */
export function createRereading(context: SyncContext): Rereading {
  const { store, serverClock } = context;
  let due: string[] = [];
  return {
    look: () => {
      const isExcluded = exclusionNow(context);
      due = rereadDue(store, serverClock.nowMs()).filter((deviceId) => !isExcluded(deviceId));
      return due.length > 0;
    },
    next: async (signal) => {
      const deviceId = due.shift();
      const day = rereadableDay(serverClock.nowMs());
      if (deviceId !== undefined && day !== null) await rereadDay(context, { deviceId, day }, signal);
      return due.length > 0;
    },
  };
}
