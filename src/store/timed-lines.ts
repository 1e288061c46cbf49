/**
 * Lines in the order of their time, out of blocks that overlap: gathered within bounds that can be drawn in, sorted, each
 * once. Pure.
 *
 * Times are nanoseconds, beyond what a double holds: a double tells most of them apart, and where it does not, the digits
 * do. Lines of one instant keep the order in which they were added.
 */
import type { EpochNs } from '../core/time.ts';

export interface TimedLines {
  /** Adds those of some lines that lie within the bounds. */
  add(lines: readonly string[]): void;
  /** How long all that was added is, in characters. */
  length(): number;
  /** From now on only what lies before counts. */
  cut(to: EpochNs): void;
  /** Where about half of what was added lies before; `null` where all of it is of one instant. */
  middle(): EpochNs | null;
  to(): EpochNs;
  /** In their order; of lines that are the same to the letter one. */
  sorted(): string[];
}

/** A line and its time: as it stands there, and as near as a double comes. */
interface Timed {
  readonly line: string;
  readonly near: number;
}

/** Gathers lines of a half-open stretch. */
export function gatherLines(from: EpochNs, end: EpochNs): TimedLines {
  let kept: Timed[] = [];
  let size = 0;
  let to = end;
  const bounds = { from: bound(from), to: bound(end) };
  return {
    add: (lines) => {
      for (const line of lines) {
        const near = Number(line.slice(line.lastIndexOf(' ') + 1));
        if (isBefore(line, near, bounds.from) || !isBefore(line, near, bounds.to)) continue;
        kept.push({ line, near });
        size += line.length + 1;
      }
    },
    length: () => size,
    cut: (before) => {
      to = before;
      bounds.to = bound(before);
      kept = kept.filter(({ line, near }) => isBefore(line, near, bounds.to));
      size = kept.reduce((sum, { line }) => sum + line.length + 1, 0);
    },
    middle: () => {
      kept.sort(byTime);
      const first = kept[0];
      if (first === undefined) return null;
      // Not the middle itself where that is of the first instant: something has to lie before.
      for (let at = kept.length >> 1; at < kept.length; at += 1) {
        const line = kept[at];
        if (line !== undefined && byTime(first, line) < 0) return exact(line.line);
      }
      return null;
    },
    to: () => to,
    sorted: () => {
      if (kept.some((timed, index) => index > 0 && byTime(kept[index - 1] ?? timed, timed) > 0)) kept.sort(byTime);
      return onceEach(kept);
    },
  };
}

interface Bound {
  readonly at: EpochNs;
  readonly near: number;
}

const bound = (at: EpochNs): Bound => ({ at, near: Number(at) });

/** Rounding never turns an order round, so only what is equal as doubles has to be looked at exactly. */
function isBefore(line: string, near: number, to: Bound): boolean {
  return near === to.near ? exact(line) < to.at : near < to.near;
}

function byTime(a: Timed, b: Timed): number {
  if (a.near !== b.near) return a.near - b.near;
  const [first, second] = [digitsOf(a.line), digitsOf(b.line)];
  if (first === second) return 0;
  return BigInt(first) < BigInt(second) ? -1 : 1;
}

const digitsOf = (line: string): string => line.slice(line.lastIndexOf(' ') + 1);

const exact = (line: string): EpochNs => BigInt(digitsOf(line));

/** Leaves out what stands there a second time; that can only be within one instant. */
function onceEach(sorted: readonly Timed[]): string[] {
  const lines: string[] = [];
  let start = 0;
  for (let index = 0; index < sorted.length; index += 1) {
    const timed = sorted[index];
    if (timed === undefined) continue;
    if (timed.near !== sorted[index - 1]?.near) start = lines.length;
    if (!isAmong(lines, start, timed.line)) lines.push(timed.line);
  }
  return lines;
}

function isAmong(lines: readonly string[], from: number, line: string): boolean {
  for (let index = from; index < lines.length; index += 1) if (lines[index] === line) return true;
  return false;
}
