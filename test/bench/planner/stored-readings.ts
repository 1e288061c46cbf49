/**
 * The readings that a client of the bench has stored, and the age of the oldest missing one, integrated over time and
 * devices.
 */
import type { LiveGap } from '../../../src/scheduler/device-outlook.ts';
import type { Device } from './fleet.ts';

/** The stored readings of one device, by their numbers. */
export interface StoredReadings {
  readonly device: Device;
  /** All up to this one are stored or given up. */
  low: number;
  /** Above a gap: all after `gapEnd` up to `high` are stored; without one, both are `low`. */
  gapEnd: number;
  high: number;
  /** Readings fetched, and given up, since the beginning. */
  carried: number;
  lost: number;
  /** Of what follows `low`: the area under its age so far, and up to when. */
  area: number;
  countedMs: number;
}

export function storedFrom(device: Device, atMs: number, reading: number): StoredReadings {
  return { device, low: reading, gapEnd: reading, high: reading, carried: 0, lost: 0, area: 0, countedMs: atMs };
}

/** Counts the age up to now; to be called before anything changes. */
export function countAge(stored: StoredReadings, nowMs: number): void {
  const oldestMs = stored.device.timeOf(stored.low + 1);
  const ageThen = Math.max(0, stored.countedMs - oldestMs);
  const ageNow = Math.max(0, nowMs - oldestMs);
  stored.area += (ageNow ** 2 - ageThen ** 2) / 2;
  stored.countedMs = nowMs;
}

/** Counts from now on only, and keeps what is stored. */
export function countAnew(stored: StoredReadings, nowMs: number): void {
  countAge(stored, nowMs);
  Object.assign(stored, { carried: 0, lost: 0, area: 0 });
}

export interface PageTaken {
  readonly newReadings: number;
  /** The instants of the page, newest first, and the stored one below it where it reaches down to that. */
  readonly instantsMs: readonly number[];
  /** From the first to the last reading that are missing below the page. */
  readonly liveGap: LiveGap | null;
}

/**
 * Returns the newest page of the missing readings: of the gap, where there is one.
 *
 * @param how `givesUp`: what lies below it; `untilMs`: it stops there.
 */
export function takePage(
  stored: StoredReadings,
  nowMs: number,
  { pageSize, givesUp, untilMs }: { pageSize: number; givesUp: boolean; untilMs?: number | null },
): PageTaken {
  countAge(stored, nowMs);
  const isGap = stored.gapEnd > stored.low;
  const top = isGap ? stored.gapEnd : stored.device.newestAt(Math.min(nowMs, untilMs ?? nowMs));
  const from = Math.max(stored.low + 1, top - pageSize + 1);
  const count = top - from + 1;
  stored.carried += count;
  stored.high = Math.max(stored.high, top);
  const reachesDown = from === stored.low + 1;
  if (!reachesDown && givesUp) stored.lost += from - stored.low - 1;
  if (reachesDown || givesUp) {
    stored.low = stored.high;
    stored.gapEnd = stored.high;
  } else stored.gapEnd = from - 1;
  const instantsMs: number[] = [];
  for (let reading = top; reading >= from - (reachesDown ? 1 : 0); reading -= 1)
    instantsMs.push(stored.device.timeOf(reading));
  const { device, low, gapEnd } = stored;
  const liveGap = gapEnd > low ? { fromMs: device.timeOf(low + 1), toMs: device.timeOf(gapEnd) } : null;
  return { newReadings: count, instantsMs, liveGap };
}
