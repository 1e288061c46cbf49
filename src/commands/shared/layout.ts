/**
 * Lays out text for people: at most 80 columns, or the width of the terminal; numbers with their units, and names that
 * cannot break a line.
 */
import { counted, grouped, plainText } from '../../core/text.ts';

/** The width of text in a file, in a pipe, or on a terminal of unknown width, in columns. */
export const WIDTH = 80;

/** The narrowest and the widest layout. Lines longer than the second are hard to read. */
const [LEAST_WIDTH, MOST_WIDTH] = [50, 200];

/** The width for an output; a terminal of unknown width has 0 columns. */
export function widthOf({
  isTTY,
  columns,
}: {
  readonly isTTY: boolean;
  readonly columns?: number | undefined;
}): number {
  return isTTY && columns ? Math.min(MOST_WIDTH, Math.max(LEAST_WIDTH, columns)) : WIDTH;
}

/** `row` and `wrap` for one width. */
export interface Layout {
  readonly width: number;
  readonly row: (label: string, text: string) => string;
  readonly wrap: (line: string, indent?: number) => string;
}

/** Binds `row` and `wrap` to a width in columns. */
export function layoutOf(width: number): Layout {
  return {
    width,
    row: (label, text) => row(label, text, width),
    wrap: (line, indent) => wrap(line, indent, width),
  };
}

/** Characters that terminals show two columns wide: scripts of East Asia, emoji. */
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
const COMBINING = /\p{M}/u;

/** How many columns a text takes. */
export function columnsOf(text: string): number {
  // Nearly all texts contain only plain characters.
  if (/^[\u0020-\u02ff]*$/.test(text)) return text.length;
  let columns = 0;
  for (const sign of text) columns += COMBINING.test(sign) ? 0 : WIDE.test(sign) ? 2 : 1;
  return columns;
}

/** A text of any origin in exactly this many columns. */
export function cell(text: string, columns: number): string {
  const plain = plainText(text, columns);
  if (columnsOf(plain) <= columns) return plain + ' '.repeat(columns - columnsOf(plain));
  let kept = '';
  for (const sign of plain) {
    if (columnsOf(kept + sign) > columns - 1) break;
    kept += sign;
  }
  return `${kept}…${' '.repeat(columns - 1 - columnsOf(kept))}`;
}

/** A name of any origin, shortened to a number of columns. */
export function nameText(text: string, columns = 40): string {
  return cell(text, columns).trimEnd();
}

/** The column at which the text of a row begins. */
export const LABEL = 12;

/** A line with a label; text that does not fit continues below, indented to the text. */
export function row(label: string, text: string, width = WIDTH): string {
  return wrap(`${label.padEnd(LABEL)}${text}`, LABEL, width);
}

/**
 * Breaks a line into lines of at most `width` columns, each with its end.
 *
 * @param indent the indentation of the later lines; by default two more than the first line's.
 */
export function wrap(line: string, indent = (/^ */.exec(line)?.[0].length ?? 0) + 2, width = WIDTH): string {
  let rest = line;
  let text = '';
  while (columnsOf(rest) > width) {
    const cut = wrapColumn(rest, { indent, width });
    text += `${rest.slice(0, cut).trimEnd()}\n`;
    rest = `${' '.repeat(indent)}${rest.slice(cut).trimStart()}`;
  }
  return `${text}${rest.trimEnd()}\n`;
}

/** Where a line is broken: at the last space that fits, otherwise where it is full. */
function wrapColumn(line: string, { indent, width }: { readonly indent: number; readonly width: number }): number {
  let [columns, space, end] = [0, -1, 0];
  for (const sign of line) {
    columns += columnsOf(sign);
    if (columns > width) break;
    if (sign === ' ' && end > indent) space = end;
    end += sign.length;
  }
  // A word ends exactly where the line is full.
  if (line[end] === ' ') return end;
  return space > indent ? space : end;
}

/** A count for people, rounded, with separators between its thousands. */
export function count(value: number): string {
  return grouped(Math.round(value));
}

/** The same, with the noun that is counted. */
export function plural(value: number, what: string): string {
  return counted(Math.round(value), what);
}

/** A time of the state (RFC 3339) to the second. */
export function formatTime(text: string): string {
  return text.replace('T', ' ').replace(/(?:\.\d+)?Z$/, ' UTC');
}

/** A time without its seconds, for ranges. */
export function minute(text: string): string {
  return text.slice(0, 16).replace('T', ' ');
}
