/**
 * Lengths of time and lines as people read them on a screen of 80 columns.
 */
import { grouped } from '../../core/text.ts';

const WIDTH = 80;

/** A length of time as people say it. */
export function span(seconds: number): string {
  if (seconds < 90) return `${grouped(Math.round(seconds * 10) / 10)} s`;
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min`;
  return seconds < 48 * 3600 ? `${(seconds / 3600).toFixed(1)} h` : `${(seconds / 86_400).toFixed(1)} days`;
}

/** The line in lines of at most 80 columns, the later ones set in; each with its end. */
export function wrapped(line: string): string {
  const indent = `${/^ */.exec(line)?.[0] ?? ''}  `;
  let rest = line;
  let text = '';
  while (rest.length > WIDTH) {
    const cut = rest.lastIndexOf(' ', WIDTH);
    if (cut <= indent.length) break;
    text += `${rest.slice(0, cut)}\n`;
    rest = `${indent}${rest.slice(cut + 1)}`;
  }
  return `${text}${rest}\n`;
}
