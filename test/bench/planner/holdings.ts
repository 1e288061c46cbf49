/**
 * What a client of the bench holds, and how old the oldest reading is that it lacks, integrated over time and devices.
 */
import type { LiveGap } from '../../../src/scheduler/device-outlook.ts';
import type { Device } from './fleet.ts';

/** What is held of one device, by the numbers of its readings. */
export interface Held {
  readonly device: Device;
  /** All up to this one are held or given up. */
  low: number;
  /** Above a gap: all after `holeTo` up to `high` are held; without one, both are `low`. */
  holeTo: number;
  high: number;
  /** Readings fetched, and given up, since the beginning. */
  carried: number;
  lost: number;
  /** Of what follows `low`: the area under its age so far, and up to when. */
  area: number;
  countedMs: number;
}

export function hold(device: Device, atMs: number, reading: number): Held {
  return { device, low: reading, holeTo: reading, high: reading, carried: 0, lost: 0, area: 0, countedMs: atMs };
}

/** Counts the age up to now; to be called before anything changes. */
export function countAge(held: Held, nowMs: number): void {
  const oldestMs = held.device.timeOf(held.low + 1);
  const ageThen = Math.max(0, held.countedMs - oldestMs);
  const ageNow = Math.max(0, nowMs - oldestMs);
  held.area += (ageNow ** 2 - ageThen ** 2) / 2;
  held.countedMs = nowMs;
}

/** Counts from now on only, and keeps what is held. */
export function countAnew(held: Held, nowMs: number): void {
  countAge(held, nowMs);
  Object.assign(held, { carried: 0, lost: 0, area: 0 });
}

export interface PageTaken {
  readonly newReadings: number;
  /** The instants of the page, newest first, and the held one below it where it reaches down to that. */
  readonly instantsMs: readonly number[];
  /** From the first to the last reading that are missing below the page. */
  readonly liveGap: LiveGap | null;
}

/**
 * Takes the newest page of what is missing: of the gap, where there is one.
 *
 * @param how `givesUp`: what lies below it; `untilMs`: it stops there.
 */
export function takePage(
  held: Held,
  nowMs: number,
  { pageSize, givesUp, untilMs }: { pageSize: number; givesUp: boolean; untilMs?: number | null },
): PageTaken {
  countAge(held, nowMs);
  const isHole = held.holeTo > held.low;
  const top = isHole ? held.holeTo : held.device.newestAt(Math.min(nowMs, untilMs ?? nowMs));
  const from = Math.max(held.low + 1, top - pageSize + 1);
  const count = top - from + 1;
  held.carried += count;
  held.high = Math.max(held.high, top);
  const reachesDown = from === held.low + 1;
  if (!reachesDown && givesUp) held.lost += from - held.low - 1;
  if (reachesDown || givesUp) {
    held.low = held.high;
    held.holeTo = held.high;
  } else held.holeTo = from - 1;
  const instantsMs: number[] = [];
  for (let reading = top; reading >= from - (reachesDown ? 1 : 0); reading -= 1)
    instantsMs.push(held.device.timeOf(reading));
  const { device, low, holeTo } = held;
  const liveGap = holeTo > low ? { fromMs: device.timeOf(low + 1), toMs: device.timeOf(holeTo) } : null;
  return { newReadings: count, instantsMs, liveGap };
}
