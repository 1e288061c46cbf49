/**
 * A long run, simplified: the live polls of a daemon, once a virtual minute, over the parts of one sync. What it
 * archives is delivered by the next `once`.
 */

import type { Sync } from '../../src/app/open-sync.ts';
import type { AppEvent } from '../../src/core/events.ts';
import type { Clock } from '../../src/core/ports.ts';
import { DAY_NS, type EpochNs, MINUTE_MS, maxNs } from '../../src/core/time.ts';
import type { SyncSettings } from '../../src/ingest/context.ts';
import { limitFor } from '../../src/ingest/coverage-rules.ts';
import { syncDevices } from '../../src/ingest/devices.ts';
import { freshestFirst, includedDevices } from '../../src/ingest/filter.ts';
import { wantedNow } from '../../src/ingest/wanted-range.ts';
import { noteCoverage } from '../../src/scheduler/coverage-points.ts';
import type { Rig } from './rig.ts';

export interface LiveLife {
  readonly events: readonly AppEvent[];
  readonly sync: Sync;
}

/**
 * Runs for so many minutes. `each` is called before every round, with its number, and may change the simulation.
 *
 * @returns what was reported, in a state that is open until `use` has returned.
 */
export async function liveFor(
  rig: Rig,
  minutes: number,
  {
    each = () => {},
    use = () => {},
    settings = rig.settings,
    clock = rig.clock,
  }: {
    readonly each?: (minute: number, life: LiveLife) => void | Promise<void>;
    readonly use?: (life: LiveLife) => void | Promise<void>;
    readonly settings?: SyncSettings;
    readonly clock?: Clock;
  } = {},
): Promise<readonly AppEvent[]> {
  const events: AppEvent[] = [];
  const sync = rig.open({ observe: (event) => void events.push(event), settings, clock });
  const { signal } = new AbortController();
  const { context } = sync;
  const life = { events, sync };
  try {
    for (let minute = 0; minute < minutes; minute += 1) {
      const beganMs = rig.clock.monoMs();
      await each(minute, life);
      if (minute % 5 === 0) await syncDevices(context, signal);
      const wantedRange = wantedNow(context);
      if (wantedRange !== null) {
        await pullSince(sync, wantedRange.limit - DAY_NS, signal);
        noteCoverage(context, wantedRange);
      }
      await rig.clock.sleep(Math.max(0, MINUTE_MS - (rig.clock.monoMs() - beganMs)));
    }
    await use(life);
  } finally {
    sync.close();
  }
  return events;
}

/** Reads every device that is there, from a time up to the coverage limit. */
export async function pullSince({ context, scanner }: Sync, since: EpochNs, signal: AbortSignal): Promise<void> {
  const wantedRange = wantedNow(context);
  if (wantedRange === null) return;
  const from = maxNs(since, wantedRange.wantedFrom);
  const { concurrency } = context.settings;
  await forEachAtOnce(freshestFirst(includedDevices(context)), concurrency, async ({ record: { deviceId } }) => {
    const limit = limitFor(wantedRange, context.store.telemetry(deviceId));
    await scanner.scan({ deviceId, range: { from, to: limit }, limit, lane: 'live', until: 'closed' }, signal);
  });
  context.filterNotes.noteTelemetryRead();
}

/**
 * Runs `work` for each item, at most `width` at once, in their order. The first failure stops the taking of new items
 * and is thrown once those in hand have ended.
 */
async function forEachAtOnce<T>(items: Iterable<T>, width: number, work: (item: T) => Promise<void>): Promise<void> {
  const queue = items[Symbol.iterator]();
  const failures: unknown[] = [];
  const worker = async (): Promise<void> => {
    for (let next = queue.next(); !next.done && failures.length === 0; next = queue.next()) {
      try {
        await work(next.value);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, width) }, worker));
  if (failures.length > 0) throw failures[0];
}
