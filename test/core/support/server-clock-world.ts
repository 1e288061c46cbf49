/** A host and a server whose clocks a test moves, and the estimate of the server's time from its answers. */
import type { Clock } from '../../../src/core/ports.ts';
import { createServerClock } from '../../../src/core/server-clock.ts';

export const T0 = Date.UTC(2026, 10, 21, 12);

/** A host and a server: both clocks move with time, the host's monotonic one not while it sleeps. */
export function world({
  skewMs = 0,
  others,
}: {
  skewMs?: number;
  others?: Parameters<typeof createServerClock>[1];
} = {}) {
  let monoMs = 5_000_000;
  let wallMs = T0 + skewMs;
  let serverMs = T0;
  const clock: Clock = {
    nowMs: () => wallMs,
    monoMs: () => monoMs,
    sleep: () => Promise.reject(new Error('no sleep')),
  };
  const serverClock = createServerClock(clock, others);
  const pass = (ms: number): void => {
    monoMs += ms;
    wallMs += ms;
    serverMs += ms;
  };
  return {
    serverClock,
    pass,
    serverMs: () => serverMs,
    wallMs: () => wallMs,
    moveServer: (ms: number) => {
      serverMs += ms;
    },
    moveWall: (ms: number) => {
      wallMs += ms;
    },
    sleepHost: (ms: number) => {
      wallMs += ms;
      serverMs += ms;
    },
    /** A request whose answer is made after `thereMs` and received `backMs` later; `Date` is cut to the second. */
    ask: ({ thereMs = 50, backMs = 50, date = true, lieMs = 0 } = {}) => {
      const sentMonoMs = monoMs;
      pass(thereMs);
      const dateMs = date ? Math.floor((serverMs + lieMs) / 1000) * 1000 : null;
      pass(backMs);
      serverClock.noteDate({ dateMs, sentMonoMs, receivedMonoMs: monoMs });
    },
  };
}
