/**
 * The output of the bench: a line for each figure, with its target and whether it is met.
 */

/** The measured values of a figure: one for each run. */
export interface Measured {
  readonly figure: string;
  readonly unit: string;
  readonly wanted: number;
  /** Whether more or less is better. */
  readonly better: 'more' | 'less';
  readonly values: readonly number[];
  /** Whether the largest of the values counts, as for the most that a figure may ever be; otherwise the middle one does. */
  readonly isLargest?: boolean;
}

export interface Verdict extends Measured {
  /** The value that counts. */
  readonly measured: number;
  /** The ratio to the target: 1 and more is met. */
  readonly ratio: number;
  readonly isMet: boolean;
}

/**
 * The middle one; of an even number, the mean of the two in the middle.
 *
 * @throws Error without values.
 */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)];
  const lower = sorted[Math.floor((sorted.length - 1) / 2)];
  if (upper === undefined || lower === undefined) throw new Error('there is nothing to take the middle of');
  return (lower + upper) / 2;
}

/** Judges a figure by the median of its runs, or by the largest of them. */
export function judgeFigure(figure: Measured): Verdict {
  const measured = figure.isLargest === true ? Math.max(...figure.values) : median(figure.values);
  const isExact = measured === figure.wanted;
  const ratio = isExact ? 1 : figure.better === 'more' ? measured / figure.wanted : figure.wanted / measured;
  return { ...figure, measured, ratio, isMet: ratio >= 1 };
}

const HEAD = ['figure', 'measured', 'wanted', 'ratio', '', 'runs'] as const;

/** The verdicts as a table of plain text. */
export function formatTable(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map(({ figure, unit, wanted, better, values, measured, ratio, isMet }) => [
    figure,
    `${formatNumber(measured)} ${unit}`,
    `${better === 'more' ? 'at least' : 'at most'} ${formatNumber(wanted)} ${unit}`,
    ratio.toFixed(2),
    isMet ? 'pass' : 'MISS',
    values.map(formatNumber).join(' '),
  ]);
  const table = [HEAD, ...rows];
  const widths = HEAD.map((_, column) => Math.max(...table.map((row) => (row[column] ?? '').length)));
  const line = (row: readonly string[]): string =>
    row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ');
  return `${table.map((row) => line(row).trimEnd()).join('\n')}\n`;
}

function formatNumber(value: number): string {
  const digits = Math.abs(value) < 10 ? 3 : Math.abs(value) < 1000 ? 1 : 0;
  return Number(value.toFixed(digits)).toLocaleString('en-US', { maximumFractionDigits: digits });
}
