/**
 * Signs that the plan is another one than the account told last: it is to be read out of turn, not at each of them.
 */
import type { AppEvent } from '../core/events.ts';
import type { ApiFaultKind } from '../core/faults.ts';
import type { Clock } from '../core/ports.ts';
import { MINUTE_MS } from '../core/time.ts';

/** Refusals by which a plan that has changed shows itself. */
const DOUBTFUL: ReadonlySet<ApiFaultKind> = new Set(['invalid-request', 'range-too-large']);

/** The account is read out of turn for a refusal no more often than this. */
const REFUSAL_EVERY_MS = 10 * MINUTE_MS;

/** For a limit that the plan does not have it is read sooner: nothing but the account tells which one counts. */
const LIMIT_EVERY_MS = MINUTE_MS;

/** Hears of events. @param doubt is called where the account is worth reading now. */
export function createPlanDoubts(clock: Pick<Clock, 'monoMs'>, doubt: () => void): (event: AppEvent) => void {
  let doubtedAtMs = Number.NEGATIVE_INFINITY;
  const doubtEvery = (restMs: number): void => {
    if (clock.monoMs() - doubtedAtMs < restMs) return;
    doubtedAtMs = clock.monoMs();
    doubt();
  };
  return (event) => {
    if (event.type === 'plan-doubted') doubtEvery(LIMIT_EVERY_MS);
    const isRefusal = event.type === 'request-done' && event.fault !== null && DOUBTFUL.has(event.fault);
    if (isRefusal) doubtEvery(REFUSAL_EVERY_MS);
  };
}
