/**
 * Random values without state: every value is a function of a seed and its purpose.
 *
 * No value depends on an earlier one. So the millionth reading costs as much as the first, and the same seed and
 * purpose give the same value in any order and in any process.
 */

/** A whole number of 32 bits, from which one value is drawn. */
export type Seed = number;

const TWO_32 = 2 ** 32;

/** A seed from any text or number, by FNV-1a. */
export function seedOf(text: string | number): Seed {
  let hash = 0x811c9dc5;
  for (const char of String(text)) hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193);
  return scramble(hash);
}

/** The seed for one of many things under `seed`. `key` is any safe integer. */
export function mix(seed: Seed, key: number): Seed {
  const low = scramble(seed ^ Math.imul(key | 0, 0x9e3779b1));
  return key >= 0 && key < TWO_32 ? low : scramble(low ^ Math.imul(Math.floor(key / TWO_32) | 0, 0x85ebca6b));
}

/** The seed for a named thing under `seed`. */
export function mixText(seed: Seed, key: string): Seed {
  return mix(seed, seedOf(key));
}

/** Draws a number from a seed, uniform in [0, 1); the same seed always gives the same number. */
export function unit(seed: Seed): number {
  return (scramble(seed ^ 0x5bd1e995) >>> 0) / TWO_32;
}

/** A whole number from `min` to `max`, both included. */
export function whole(seed: Seed, min: number, max: number): number {
  return min + Math.floor(unit(seed) * (max - min + 1));
}

/** Picks an item of a list that is not empty. */
export function pick<T>(seed: Seed, list: readonly T[]): T {
  const chosen = list[whole(seed, 0, list.length - 1)];
  if (chosen === undefined) throw new RangeError('nothing to pick from');
  return chosen;
}

/** Whether an event with probability `share` occurs for this seed. */
export function chance(seed: Seed, share: number): boolean {
  return share > 0 && unit(seed) < share;
}

/** The finaliser of MurmurHash3: every bit of the input changes about half of the output bits. */
function scramble(value: number): number {
  let hash = value;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
