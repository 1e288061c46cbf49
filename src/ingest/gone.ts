/**
 * Devices that are gone are looked at once a day (design 2.1): one that answers again is back.
 *
 * Gone by two listings without it, it comes back with a listing that has it; gone by its own 404 while it was listed
 * all the same, with an answer.
 */

import { ApiFault, type ApiFaultKind } from '../core/faults.ts';
import { DAY_MS, HOUR_MS } from '../core/time.ts';
import type { SyncContext } from './context.ts';
import { keptDevices } from './kept-devices.ts';
import type { Puller } from './pull.ts';

const LOOKED_AT = 'gone_looked_at_ms';

/** It is gone still, or the key may not look. */
const NO_ANSWER: ReadonlySet<ApiFaultKind> = new Set(['not-found', 'scope-missing']);

/** What one device may be met with for ever: that must not keep the list of the others from being taken in. */
const SILENCE: ReadonlySet<ApiFaultKind> = new Set(['server-fault', 'unreachable', 'malformed']);

/** How soon it is looked again where a look was met with that. */
const AGAIN_MS = HOUR_MS;

/** Looks at all that are gone, unless that was done within a day. @throws ApiFault for what is not about one device. */
export async function lookAtTheGone(context: SyncContext, puller: Puller, signal: AbortSignal): Promise<void> {
  const { store, serverClock, observe } = context;
  const gone = keptDevices(context).filter(({ goneSinceMs }) => goneSinceMs !== null);
  const nowMs = serverClock.nowMs();
  const last = store.fact(LOOKED_AT);
  if (last === null) return store.keepFact(LOOKED_AT, String(nowMs));
  if (nowMs - Number(last) < DAY_MS) return;
  let wasSilent = false;
  for (const { record } of gone) {
    const { deviceId } = record;
    const answer = await answerOf(puller, deviceId, signal);
    wasSilent ||= answer === 'silence';
    if (answer !== 'page') continue;
    store.markBack(deviceId);
    observe({ type: 'device-returned', deviceId });
  }
  // Only now: what breaks a look off has the rest of them looked at with the next listing.
  store.keepFact(LOOKED_AT, String(wasSilent ? nowMs - DAY_MS + AGAIN_MS : nowMs));
}

async function answerOf(puller: Puller, deviceId: string, signal: AbortSignal): Promise<'page' | 'gone' | 'silence'> {
  try {
    await puller.peek(deviceId, signal);
    return 'page';
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    if (NO_ANSWER.has(error.kind)) return 'gone';
    if (SILENCE.has(error.kind)) return 'silence';
    throw error;
  }
}
