/**
 * Which stretches of time the lines of a block are of: what is told of it once it is gone. Pure.
 *
 * Readings are told apart from all other lines, because for them it has to be known afterwards where a value may have
 * been held (`landing.ts`). So two of them are told as one stretch only where all between them is held in full, and no
 * other reading of it is possible.
 */
import type { Interval, Intervals } from '../core/intervals.ts';
import { DAY_NS, type EpochNs, maxNs, minNs } from '../core/time.ts';

export type LineKind = 'telemetry' | 'other';

/** A stretch that holds lines of one kind, and how many. */
export interface LineSpan extends Interval {
  readonly kind: LineKind;
  readonly points: number;
}

/**
 * The stretches of some lines, each kind by itself and in the order of time. Lines that carry no time are left out.
 *
 * @param covered what is held in full of their device.
 */
export function spansOf(lines: readonly string[], covered: Intervals): LineSpan[] {
  const spans: LineSpan[] = [];
  for (const kind of ['telemetry', 'other'] as const) {
    const first = spans.length;
    for (const [at, points] of timesOf(lines, kind)) {
      const last = spans.length > first ? spans.at(-1) : undefined;
      const span = { kind, from: at, to: at + 1n, points };
      if (last !== undefined && isOneStretch(kind, { from: last.to, to: at }, covered)) {
        spans[spans.length - 1] = joinSpans(last, span);
      } else spans.push(span);
    }
  }
  return spans;
}

/** The times of the first and the last line that is no telemetry; `null` where there is none. */
export function sideReach(lines: readonly string[]): { readonly first: EpochNs; readonly last: EpochNs } | null {
  const times: EpochNs[] = [];
  for (const line of lines) {
    if (line.startsWith('telemetry,')) continue;
    const digits = line.slice(line.lastIndexOf(' ') + 1);
    if (/^-?\d{1,19}$/.test(digits)) times.push(BigInt(digits));
  }
  const [one] = times;
  return one === undefined ? null : { first: times.reduce(minNs, one), last: times.reduce(maxNs, one) };
}

/** Whether lines of a kind before and after a gap may be told as one stretch. */
export function isOneStretch(kind: LineKind, { from, to }: Interval, covered: Intervals): boolean {
  // Facts are told every hour or so, and none of them is ever looked for by its time.
  if (kind === 'other') return to - from <= DAY_NS;
  return from >= to || covered.some((span) => span.from <= from && to <= span.to);
}

/** One stretch over both and all that is between them. */
export function joinSpans(a: LineSpan, b: LineSpan): LineSpan {
  return { ...a, from: minNs(a.from, b.from), to: maxNs(a.to, b.to), points: a.points + b.points };
}

/** The times of the lines of a kind, ascending, and how many lines each has. */
function timesOf(lines: readonly string[], kind: LineKind): [EpochNs, number][] {
  const counts = new Map<string, number>();
  for (const line of lines) {
    if (line.startsWith('telemetry,') !== (kind === 'telemetry')) continue;
    const digits = line.slice(line.lastIndexOf(' ') + 1);
    counts.set(digits, (counts.get(digits) ?? 0) + 1);
  }
  return [...counts]
    .filter(([digits]) => /^-?\d{1,19}$/.test(digits))
    .map(([digits, count]): [EpochNs, number] => [BigInt(digits), count])
    .sort(([a], [b]) => (a < b ? -1 : 1));
}
