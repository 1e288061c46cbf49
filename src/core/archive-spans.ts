/**
 * Which stretches of time the lines of a block are of: what is told of it once it is gone. Pure.
 *
 * Readings are told apart from all other lines, because for them it has to be known afterwards where a value may have
 * been held (`landing.ts`).
 */
import type { Interval } from './intervals.ts';
import { maxNs, minNs } from './time.ts';

export type LineKind = 'telemetry' | 'other';

/** A stretch that holds all lines of one kind, and how many. */
export interface LineSpan extends Interval {
  readonly kind: LineKind;
  readonly points: number;
}

/** The stretches of some lines, one of each kind that there is. Lines that carry no time are left out. */
export function spansOf(lines: readonly string[]): LineSpan[] {
  const spans = new Map<LineKind, LineSpan>();
  for (const line of lines) {
    const digits = line.slice(line.lastIndexOf(' ') + 1);
    if (!/^-?\d{1,19}$/.test(digits)) continue;
    const at = BigInt(digits);
    const kind: LineKind = line.startsWith('telemetry,') ? 'telemetry' : 'other';
    const span = { kind, from: at, to: at + 1n, points: 1 };
    const held = spans.get(kind);
    spans.set(kind, held === undefined ? span : joinSpans(held, span));
  }
  return [...spans.values()];
}

/** One stretch over both and all that is between them. */
export function joinSpans<T extends LineSpan>(a: T, b: LineSpan): T {
  return { ...a, from: minNs(a.from, b.from), to: maxNs(a.to, b.to), points: a.points + b.points };
}
