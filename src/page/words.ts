/**
 * Numbers, lengths and moments as the page shows them. Times are UTC throughout.
 */
import type { DeviceState } from '../core/status.ts';
import { type Html, html, NOTHING } from './html.ts';

/** Rounded down: 100 % is said when it is true. */
export function percent(share: number): string {
  const tenths = Math.floor(share * 1000);
  return tenths % 1000 === 0 ? `${tenths / 10} %` : `${(tenths / 10).toFixed(1)} %`;
}

/** A length of time in its largest unit that tells enough. */
export function span(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min`;
  if (seconds < 36 * 3600) return `${trimmed(seconds / 3600)} h`;
  return `${trimmed(seconds / 86_400)} d`;
}

function trimmed(value: number): string {
  return value.toFixed(1).replace(/\.0$/, '');
}

/** A number in as many digits as can be read at a glance. */
export function figure(value: number): string {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e9 || size < 1e-4) return value.toExponential(3);
  return String(Number(value.toPrecision(size >= 1000 ? 7 : 5)));
}

const UNITS = ['bytes', 'kB', 'MB', 'GB', 'TB'];

/** Bytes in thousands. */
export function bytes(count: number): string {
  const power = count < 1000 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log10(count) / 3));
  const value = count / 1000 ** power;
  return `${power === 0 ? count : value.toFixed(value < 10 ? 1 : 0)} ${UNITS[power] ?? ''}`;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/**
 * A moment, as short as it can be understood beside the page's own time; whole in what a pointer and a program see.
 *
 * @param at RFC 3339 UTC; what is none is shown as it is.
 */
export function moment(at: string | null, now: string): Html {
  if (at === null) return NOTHING;
  return html`<time datetime="${at}" title="${at}">${momentText(at, now)}</time>`;
}

/** The same as text. */
export function momentText(at: string, now: string): string {
  const match = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}:\d{2})(:\d{2})/.exec(at);
  if (match === null) return at;
  const [, year, month, day, minutes, seconds] = match;
  if (at.slice(0, 10) === now.slice(0, 10)) return `${minutes}${seconds}`;
  const date = `${Number(day)} ${MONTHS[Number(month) - 1] ?? ''}`;
  return year === now.slice(0, 4) ? `${date} ${minutes}` : `${date} ${year}`;
}

/** How long ago; `null` for what is no time. */
export function ago(at: string, now: string): string | null {
  const seconds = (Date.parse(now) - Date.parse(at)) / 1000;
  if (!Number.isFinite(seconds)) return null;
  return seconds < 0 ? `in ${span(-seconds)}` : `${span(seconds)} ago`;
}

const STATES: Readonly<Record<DeviceState, string>> = {
  live: 'live',
  'catching-up': 'catching up',
  silent: 'silent',
  unreachable: 'unreachable',
  excluded: 'excluded',
};

/** The states in the order in which they are looked at: what needs a look first. */
export const STATE_ORDER: readonly DeviceState[] = ['unreachable', 'catching-up', 'silent', 'live', 'excluded'];

export function stateWords(state: DeviceState): string {
  return STATES[state];
}

/** A device's state: a mark whose shape tells it as well as its colour, and the word. */
export function stateMark(state: DeviceState): Html {
  return html`<span class="state s-${state}">${STATES[state]}</span>`;
}
