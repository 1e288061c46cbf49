/**
 * Reads yesterday again, device by device, while there is allowance to spare (design 2.1).
 *
 * To spare is what the day's share has left beyond what the rest of the day needs if it goes on as it did: live work
 * never waits for this, and history that is still missing comes first.
 */
import type { AllowanceUse } from '../core/fact-lines.ts';
import { ApiFault } from '../core/faults.ts';
import type { SyncContext } from './context.ts';
import { exclusionNow } from './exclusion.ts';
import { rereadableDay, rereadDay, rereadDue } from './reread.ts';

/** The part of the day's allowance that has to be left. */
const LEFT_AT_LEAST = 0.4;

/**
 * Reads again what is due, and stops where the allowance is no longer to spare.
 *
 * @returns whether the key may read telemetry; without the scope that is told, as by every other reader of it.
 * @throws ApiFault of any other kind.
 */
export async function rereadYesterday(context: SyncContext, signal: AbortSignal): Promise<boolean> {
  const { store, serverClock, allowance, observe } = context;
  const nowMs = serverClock.nowMs();
  const day = rereadableDay(nowMs);
  if (day === null) return true;
  const isExcluded = exclusionNow(context);
  try {
    for (const deviceId of rereadDue(store, nowMs)) {
      if (!hasToSpare(allowance())) return true;
      if (!isExcluded(deviceId)) await rereadDay(context, { deviceId, day }, signal);
    }
  } catch (error) {
    if (!(error instanceof ApiFault) || error.kind !== 'scope-missing') throw error;
    observe({ type: 'stream-off', stream: 'telemetry', scope: error.facts.scope ?? 'telemetry:read' });
    return false;
  }
  return true;
}

/** Where the day's limit is not known there is nothing to spare. */
function hasToSpare({ spentDay, leftDay }: AllowanceUse): boolean {
  return leftDay !== null && leftDay >= LEFT_AT_LEAST * (leftDay + spentDay);
}
