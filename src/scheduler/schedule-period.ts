/**
 * How often a schedule is due, as one figure: what an estimate of the requests of a day goes by.
 */
import type { Schedule } from '../core/schedule.ts';
import { DAY_MS, type EpochMs, HOUR_MS } from '../core/time.ts';

/** Whole weeks, near a year: neither the days of the week nor those of the month weigh too much. */
const SAMPLE_MS = 52 * 7 * DAY_MS;

/**
 * The mean distance between two turns of a schedule, in ms; infinite where it has no two.
 *
 * It goes by what cron expressions have in common: each day that is due has the same hours, each of these the same turns. So
 * one hour, one day and the days of a year tell all, however many turns there are.
 *
 * @param fromMs where the year begins.
 */
export function meanPeriodMs(schedule: Schedule, fromMs: EpochMs): number {
  const today = Math.floor(fromMs / DAY_MS) * DAY_MS;
  const first = schedule.next(today - 1);
  if (first === null) return Number.POSITIVE_INFINITY;
  const hourMs = Math.floor(first / HOUR_MS) * HOUR_MS;
  const dayMs = Math.floor(first / DAY_MS) * DAY_MS;
  const turns = countTurns(schedule, { from: first, to: hourMs + HOUR_MS, next: (atMs) => atMs });
  const hours = countTurns(schedule, { from: first, to: dayMs + DAY_MS, next: (atMs) => endOf(atMs, HOUR_MS) });
  const days = countTurns(schedule, { from: first, to: dayMs + SAMPLE_MS, next: (atMs) => endOf(atMs, DAY_MS) });
  if (days > 1) return SAMPLE_MS / (days * hours * turns);
  const second = schedule.next(endOf(first, DAY_MS));
  return second === null ? Number.POSITIVE_INFINITY : (second - first) / (hours * turns);
}

/** Counts from one turn on to the next one after `next` of it, until `to`. */
function countTurns(
  schedule: Schedule,
  { from, to, next }: { from: EpochMs; to: EpochMs; next: (atMs: EpochMs) => EpochMs },
): number {
  let count = 0;
  for (let at: EpochMs | null = from; at !== null && at < to; at = schedule.next(next(at))) count += 1;
  return count;
}

/** The last millisecond of the hour or day that a time lies in. */
function endOf(atMs: EpochMs, lengthMs: number): EpochMs {
  return Math.floor(atMs / lengthMs) * lengthMs + lengthMs - 1;
}
