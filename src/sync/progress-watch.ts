/**
 * Whether the work moves: for a one-off that ends when nothing has come of it for a while.
 *
 * Progress is what stays: something landed or delivered. Waiting for allowance is progress too, as long as it lasts
 * (design 1.2); requests that bring nothing are not.
 */
import type { AppEvent } from '../core/events.ts';
import type { Clock } from '../core/ports.ts';

export interface ProgressWatch {
  /** Takes an event in. */
  observe(event: AppEvent): void;
  /** For how long nothing has moved, in milliseconds. */
  idleMs(): number;
}

/** @param serverNowMs the server's time, in which waits for allowance are told. */
export function createProgressWatch(clock: Clock, serverNowMs: () => number): ProgressWatch {
  let movedAtMs = clock.monoMs();
  return {
    observe: (event) => {
      if (isProgress(event)) movedAtMs = Math.max(movedAtMs, clock.monoMs());
      if (event.type === 'allowance-wait') {
        const waitMs = Math.max(0, event.untilMs - serverNowMs());
        movedAtMs = Math.max(movedAtMs, clock.monoMs() + waitMs);
      }
    },
    idleMs: () => Math.max(0, clock.monoMs() - movedAtMs),
  };
}

function isProgress(event: AppEvent): boolean {
  if (event.type === 'page-landed') return event.newPoints > 0 || event.proven;
  return event.type === 'lines-delivered' && event.lines > 0;
}
