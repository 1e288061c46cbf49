/**
 * Whether the work moves: for a one-off that ends when nothing has come of it for a while.
 *
 * Progress is what stays: something landed or delivered. Waiting for allowance is progress too, as long as it lasts;
 * requests that bring nothing are not.
 */
import type { AppEvent } from '../core/events.ts';
import type { Clock } from '../core/ports.ts';

export interface ProgressWatch {
  /** Takes an event in. */
  observe(event: AppEvent): void;
  /** For how long nothing more was proven to be held, in milliseconds. */
  pullIdleMs(): number;
  /** For how long nothing has moved at all. */
  idleMs(): number;
}

/** @param serverNowMs the server's time, in which waits for allowance are told. */
export function createProgressWatch(clock: Clock, serverNowMs: () => number): ProgressWatch {
  let pulledAtMs = clock.monoMs();
  let deliveredAtMs = pulledAtMs;
  const since = (atMs: number): number => Math.max(0, clock.monoMs() - atMs);
  return {
    observe: (event) => {
      // New readings that prove nothing come for ever: they are no progress towards the end.
      if (event.type === 'page-landed' && event.proven) pulledAtMs = Math.max(pulledAtMs, clock.monoMs());
      if (event.type === 'lines-delivered' && event.lines > 0) deliveredAtMs = clock.monoMs();
      // The even pace alone is no waiting: a request that fails again and again keeps it too.
      if (event.type === 'allowance-wait' && event.reason !== 'pace') {
        const waitMs = Math.max(0, event.untilMs - serverNowMs());
        pulledAtMs = Math.max(pulledAtMs, clock.monoMs() + waitMs);
      }
    },
    pullIdleMs: () => since(pulledAtMs),
    idleMs: () => since(Math.max(pulledAtMs, deliveredAtMs)),
  };
}
