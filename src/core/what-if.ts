/**
 * `--what-if KEY=VALUE`: which keys there are, and what they change of the figures that a plan is computed from.
 *
 * Keys of the configuration keep their names; the shorter ones are the same keys.
 */
import type { Schedules } from './schedule.ts';
import { nearest } from './text.ts';

/** By name: what the key takes, for the help text and for messages. */
export const WHAT_IF_KEYS = {
  'api.share': 'a number above 0 and up to 1, such as 0.8',
  'sync.telemetry': 'a cron expression',
  'sync.devices': 'a cron expression',
  'sync.alerts': 'a cron expression',
  'sync.account': 'a cron expression',
  devices: 'how many devices',
  requests_per_minute: 'what a plan allows',
  requests_per_day: 'what a plan allows',
} as const;

export type WhatIfKey = keyof typeof WHAT_IF_KEYS;

/** Shorter names; `devices` is the number, so that schedule has none. */
const SHORT: ReadonlyMap<string, WhatIfKey> = new Map([
  ['share', 'api.share'],
  ['telemetry', 'sync.telemetry'],
  ['alerts', 'sync.alerts'],
  ['account', 'sync.account'],
]);

/** One of them as it was given. */
export interface WhatIfText {
  readonly key: WhatIfKey;
  readonly value: string;
}

/** What is to be taken for something else than it is. */
export interface WhatIf {
  readonly share?: number;
  readonly schedules?: Partial<Schedules>;
  readonly devices?: number;
  readonly perMinute?: number;
  readonly perDay?: number;
}

/** Takes `KEY=VALUE` apart. @returns it, or in words what is wrong, without repeating any of it. */
export function readWhatIf(text: string): WhatIfText | { readonly mistake: string } {
  const at = text.indexOf('=');
  const [name, value] = [text.slice(0, Math.max(at, 0)).trim(), text.slice(at + 1).trim()];
  if (at < 1 || value === '') return { mistake: 'takes KEY=VALUE, such as share=0.5' };
  const names = [...Object.keys(WHAT_IF_KEYS), ...SHORT.keys()];
  const key = SHORT.get(name) ?? names.find((known): known is WhatIfKey => known === name && known in WHAT_IF_KEYS);
  if (key !== undefined) return { key, value };
  const meant = nearest(name, names);
  const list = Object.keys(WHAT_IF_KEYS).join(', ');
  return { mistake: `does not know that key. ${meant === null ? '' : `Did you mean ${meant}? `}It knows ${list}` };
}

/**
 * A fleet of another size, mixed as this one is.
 *
 * @param intervalsMs of the devices that report. @param assumedMs what is taken where there is no device to go by.
 * @returns as many intervals and quiet devices as the number says.
 */
export function resizeFleet(
  { intervalsMs, quiet }: { readonly intervalsMs: readonly number[]; readonly quiet: number },
  { devices, assumedMs }: { devices: number; assumedMs: number },
): { intervalsMs: readonly number[]; quiet: number } {
  const now = intervalsMs.length + quiet;
  const reporting = now === 0 ? devices : Math.round((devices * intervalsMs.length) / now);
  const sorted = intervalsMs.toSorted((a, b) => a - b);
  // Each stands for as many as it should: the shape of the mix stays, whatever the number.
  const at = (index: number): number => sorted[Math.floor(((index + 0.5) * sorted.length) / reporting)] ?? assumedMs;
  return { intervalsMs: Array.from({ length: reporting }, (_, index) => at(index)), quiet: devices - reporting };
}
