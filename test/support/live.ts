/**
 * A long life in few words: the live rounds of a daemon, once a virtual minute, over the parts of one sync. What it
 * archives is delivered by the next `once`.
 */
import type { Sync } from '../../src/app/open-sync.ts';
import type { AppEvent } from '../../src/core/events.ts';
import { MINUTE_MS } from '../../src/core/time.ts';
import { syncDevices } from '../../src/ingest/devices.ts';
import { horizonNow } from '../../src/ingest/horizon.ts';
import { noteCoverage } from '../../src/scheduler/coverage-points.ts';
import { ALL_ROUNDS, syncTelemetry } from '../../src/scheduler/telemetry.ts';
import type { Rig } from './rig.ts';

export interface LiveLife {
  readonly events: readonly AppEvent[];
  readonly sync: Sync;
}

/**
 * Lives for so many minutes. `each` is called before every round, with its number: there the world is changed.
 *
 * @returns what was told, in a state that is open until `use` has returned.
 */
export async function liveFor(
  rig: Rig,
  minutes: number,
  {
    each = () => {},
    use = () => {},
  }: {
    readonly each?: (minute: number, life: LiveLife) => void | Promise<void>;
    readonly use?: (life: LiveLife) => void | Promise<void>;
  } = {},
): Promise<readonly AppEvent[]> {
  const events: AppEvent[] = [];
  const sync = rig.open({ observe: (event) => void events.push(event) });
  const { signal } = new AbortController();
  const { context, scanner } = sync;
  const life = { events, sync };
  try {
    for (let minute = 0; minute < minutes; minute += 1) {
      const beganMs = rig.clock.monoMs();
      await each(minute, life);
      if (minute % 5 === 0) await syncDevices(context, signal);
      const horizon = horizonNow(context);
      if (horizon !== null) {
        await syncTelemetry(context, { scanner, horizon, rounds: ALL_ROUNDS.slice(0, 1), isOver: () => false }, signal);
        noteCoverage(context, horizon);
      }
      await rig.clock.sleep(Math.max(0, MINUTE_MS - (rig.clock.monoMs() - beganMs)));
    }
    await use(life);
  } finally {
    sync.close();
  }
  return events;
}
