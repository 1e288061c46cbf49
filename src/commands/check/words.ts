/**
 * Lengths of time as people read them.
 */
import { grouped } from '../../core/text.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/time.ts';

/** A span by its largest unit: `45 s`, `12 min`, `3.5 h`, `30 days`. */
export function spanWords(ms: number): string {
  if (ms < 2 * MINUTE_MS) return `${Math.ceil(ms / SECOND_MS)} s`;
  if (ms < 2 * HOUR_MS) return `${Math.ceil(ms / MINUTE_MS)} min`;
  if (ms < 2 * DAY_MS) return `${short(ms / HOUR_MS)} h`;
  return `${short(ms / DAY_MS)} days`;
}

function short(value: number): string {
  return grouped(Math.round(value * 10) / 10);
}
