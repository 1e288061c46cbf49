/**
 * Yesterday, read again: readings that came so late that no live request has seen them (design 2.1).
 *
 * It claims nothing and lands what is new, which counts as late. Who calls it decides when there is allowance to spare.
 * Stopping half-way is free: what has landed stays, and the day is due until it was read to its end.
 */
import { coveredIntervals } from '../core/coverage.ts';
import { type Interval, intersect } from '../core/intervals.ts';
import type { Store } from '../core/state/state.ts';
import { DAY_MS, DAY_NS, type EpochMs, HOUR_MS } from '../core/time.ts';
import { landPage } from './commit.ts';
import type { SyncContext } from './context.ts';
import { readWindow, type WindowPage } from './read-window.ts';

/** How long after midnight the day before is read again at the earliest: what comes within this is awaited. */
const AFTER_MIDNIGHT_MS = HOUR_MS;

/** The day (since 1970) that is read again now, once for each device; `null` in the first hour of a day. */
export function rereadableDay(nowMs: EpochMs): number | null {
  return nowMs % DAY_MS < AFTER_MIDNIGHT_MS ? null : Math.floor(nowMs / DAY_MS) - 1;
}

/**
 * The devices of which yesterday is worth another look: those that are there, hold something of it and were not read
 * again since. Where lines of it are cleared away already, what is new could not be told: it is left alone. Whether a
 * device is left out by the configuration is for the caller to know.
 *
 * @param nowMs the server's time.
 */
export function rereadDue(
  store: Pick<Store, 'devices' | 'rereadDays' | 'telemetry' | 'cleared'>,
  nowMs: EpochMs,
): readonly string[] {
  const day = rereadableDay(nowMs);
  if (day === null) return [];
  const done = store.rereadDays();
  return store
    .devices()
    .filter(({ record, goneSinceMs }) => goneSinceMs === null && (done.get(record.deviceId) ?? -1) < day)
    .map(({ record }) => record.deviceId)
    .filter((deviceId) => {
      const held = heldOf(store, deviceId, day);
      return held !== null && store.cleared(deviceId, held.from, held.to).length === 0;
    });
}

/** From the first to the last instant of the day that is held; `null` where nothing of it is. */
function heldOf(store: Pick<Store, 'telemetry'>, deviceId: string, day: number): Interval | null {
  const whole = { from: BigInt(day) * DAY_NS, to: BigInt(day + 1) * DAY_NS };
  const held = intersect(coveredIntervals(store.telemetry(deviceId).spans), [whole]);
  const [first, last] = [held[0], held.at(-1)];
  return first === undefined || last === undefined ? null : { from: first.from, to: last.to };
}

/**
 * Reads what is held of a day of a device again.
 *
 * @returns whether it was read to its end; where not (odd answers, a device that is gone) it stays due.
 * @throws ApiFault where the fault is not about this device.
 */
export async function rereadDay(
  context: SyncContext,
  { deviceId, day }: { readonly deviceId: string; readonly day: number },
  signal: AbortSignal,
): Promise<boolean> {
  const window = heldOf(context.store, deviceId, day);
  const land = (page: WindowPage): void => {
    landPage(context, { deviceId, lane: 'sweep', proven: null, ...page });
  };
  if (window !== null && !(await readWindow(context, { deviceId, window, take: land }, signal))) return false;
  context.store.keepReread(deviceId, day);
  return true;
}
