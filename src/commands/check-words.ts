/**
 * Figures as people read them.
 */
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../core/time.ts';

/** `4,210`. */
export function numberWords(value: number): string {
  return value.toLocaleString('en-US');
}

/** `1 device`, `4,210 devices`. */
export function countWords(value: number, what: string): string {
  return `${numberWords(value)} ${what}${value === 1 ? '' : 's'}`;
}

/** A span by its largest unit: `45 s`, `12 min`, `3.5 h`, `30 days`. */
export function spanWords(ms: number): string {
  if (ms < 2 * MINUTE_MS) return `${Math.ceil(ms / SECOND_MS)} s`;
  if (ms < 2 * HOUR_MS) return `${Math.ceil(ms / MINUTE_MS)} min`;
  if (ms < 2 * DAY_MS) return `${short(ms / HOUR_MS)} h`;
  return `${short(ms / DAY_MS)} days`;
}

function short(value: number): string {
  return numberWords(Math.round(value * 10) / 10);
}
