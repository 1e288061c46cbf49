/**
 * The order in which people look for names: in any case, and numbers in them by how large they are. Pure.
 */

/** Longer runs of digits are compared as text. */
const MOST_DIGITS = 15;

/** A text by which names can be compared as they are: made once for each, as there may be ten thousand of them. */
export function orderKey(name: string): string {
  return folded(name).replace(/\d+/g, (digits) => digits.padStart(MOST_DIGITS, '0'));
}

/** A text for which case and the way in which accents are written do not count. */
export function folded(text: string): string {
  return text.normalize('NFC').toLowerCase();
}

/** Code unit by code unit: the same everywhere, whatever language is set. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
