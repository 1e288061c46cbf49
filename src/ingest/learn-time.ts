/**
 * The server's time where its answers do not tell it: the newest reading is the evidence (design 2.1).
 */

import { ApiFault } from '../core/faults.ts';
import type { SyncContext } from './context.ts';
import { freshestFirst, keptDevices } from './kept-devices.ts';
import type { Puller } from './pull.ts';

/** Learns the server's time, if no `Date` tells it. @throws ApiFault but for a missing scope. */
export async function learnTime(context: SyncContext, puller: Puller, signal: AbortSignal): Promise<void> {
  const { serverClock } = context;
  // Without `Date` the known time stands still between readings: a look at the newest one moves it on.
  if (serverClock.claimableMs() !== null && !serverClock.isDateAbsent()) return;
  try {
    await learnTimeFromReadings(context, puller, signal);
  } catch (error) {
    if (!(error instanceof ApiFault) || error.kind !== 'scope-missing') throw error;
  }
}

/**
 * Where the service sends no `Date`, the newest reading is what is known of its time (design 2.1): takes in the newest
 * page of one device after the other until one has a reading. As an empty answer alone proves nothing, a second look
 * comes before it is believed that there is none anywhere.
 */
async function learnTimeFromReadings(context: SyncContext, puller: Puller, signal: AbortSignal): Promise<void> {
  if (await lookForReading(context, puller, signal)) return;
  if (context.serverClock.claimableMs() === null) await lookForReading(context, puller, signal);
}

async function lookForReading(context: SyncContext, puller: Puller, signal: AbortSignal): Promise<boolean> {
  for (const { record } of freshestFirst(keptDevices(context))) {
    try {
      if (await puller.peek(record.deviceId, signal)) return true;
    } catch (error) {
      if (!(error instanceof ApiFault) || error.kind !== 'not-found') throw error;
    }
  }
  return false;
}
