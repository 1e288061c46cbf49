/**
 * Devices that are gone are looked at once a day (design 2.1): one that answers again is back.
 *
 * Gone by two listings without it, it comes back with a listing that has it; gone by its own 404 while it was listed
 * all the same, with an answer.
 */
import { ApiFault } from '../core/faults.ts';
import { DAY_MS } from '../core/time.ts';
import type { SyncContext } from './context.ts';
import { keptDevices } from './exclusion.ts';
import type { Puller } from './pull.ts';

const LOOKED_AT = 'gone_looked_at_ms';

/** Looks at all that are gone, unless that was done within a day. @throws ApiFault but for a 404 or a missing scope. */
export async function lookAtTheGone(context: SyncContext, puller: Puller, signal: AbortSignal): Promise<void> {
  const { store, serverClock, observe } = context;
  const gone = keptDevices(context).filter(({ goneSinceMs }) => goneSinceMs !== null);
  const nowMs = serverClock.nowMs();
  const last = store.fact(LOOKED_AT);
  if (last === null) return store.keepFact(LOOKED_AT, String(nowMs));
  if (nowMs - Number(last) < DAY_MS) return;
  for (const { record } of gone) {
    const { deviceId } = record;
    if (!(await answers(puller, deviceId, signal))) continue;
    store.markBack(deviceId);
    observe({ type: 'device-returned', deviceId });
  }
  // Only now: what breaks a look off has the rest of them looked at with the next listing.
  store.keepFact(LOOKED_AT, String(nowMs));
}

async function answers(puller: Puller, deviceId: string, signal: AbortSignal): Promise<boolean> {
  try {
    await puller.peek(deviceId, signal);
    return true;
  } catch (error) {
    if (!(error instanceof ApiFault) || !['not-found', 'scope-missing'].includes(error.kind)) throw error;
    return false;
  }
}
