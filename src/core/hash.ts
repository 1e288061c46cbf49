/**
 * A hash of text: 64 bits in two halves, fast, well mixed, and the same on every machine.
 *
 * It distinguishes texts that no one has chosen so that they collide: shortened names, the digests of days. It is not
 * cryptographic. The state and the databases keep its results, so they must never change; `hash.test.ts` checks that.
 */

/** A 64 bit hash as two unsigned 32 bit halves. */
interface Hash64 {
  readonly hi: number;
  readonly lo: number;
}

/**
 * The multipliers of MurmurHash3 (x86, 128 bit). The mixing step is the one that MurmurHash3 uses for two of its lanes.
 */
const C1 = 0x239b961b;
const C2 = 0xab0e9789;
const C3 = 0x38b34ae5;

/** Seeds that give the empty text a hash that is not zero, so that it counts in a sum. */
const SEED_HI = 0x9e3779b9;
const SEED_LO = 0x85ebca77;

/**
 * Hashes the UTF-16 code units of a text, two at a time. Lone surrogates count as what they are.
 *
 * @param parts the parts of the text in order. The result equals the hash of the joined text, without allocating that
 * text.
 * @returns both halves, each from 0 to 2^32 - 1. Every bit depends on every code unit, so sums of hashes are sound
 * order-independent digests of sets.
 */
export function hash64(...parts: readonly string[]): Hash64 {
  let length = 0;
  for (const part of parts) length += part.length;
  let hi = SEED_HI ^ length;
  let lo = SEED_LO ^ length;
  // The last code unit of a part, which waits for the first one of the next part; -1 for none.
  let waiting = -1;
  for (const part of parts) {
    let index = 0;
    if (waiting !== -1 && part !== '') {
      const pair = waiting | (part.charCodeAt(index++) << 16);
      hi = mixHigh(hi, lo, pair);
      lo = mixLow(hi, lo, pair);
      waiting = -1;
    }
    for (; index + 1 < part.length; index += 2) {
      const pair = part.charCodeAt(index) | (part.charCodeAt(index + 1) << 16);
      hi = mixHigh(hi, lo, pair);
      lo = mixLow(hi, lo, pair);
    }
    if (index < part.length) waiting = part.charCodeAt(index);
  }
  if (waiting !== -1) {
    hi = mixHigh(hi, lo, waiting);
    lo = mixLow(hi, lo, waiting);
  }
  hi = avalanche((hi ^ length) + lo);
  lo = avalanche((lo ^ length) + hi);
  hi = (hi + lo) | 0;
  return { hi: hi >>> 0, lo: (lo + hi) >>> 0 };
}

function mixHigh(hi: number, lo: number, pair: number): number {
  const mixed = hi ^ Math.imul(rotate(Math.imul(pair, C1), 15), C2);
  return (Math.imul((rotate(mixed, 19) + lo) | 0, 5) + 0x561ccd1b) | 0;
}

function mixLow(hi: number, lo: number, pair: number): number {
  const mixed = lo ^ Math.imul(rotate(Math.imul(pair, C2), 16), C3);
  return (Math.imul((rotate(mixed, 17) + hi) | 0, 5) + 0x0bcaa747) | 0;
}

/** {@link hash64} as 16 lower-case hexadecimal digits. */
export function hashHex(text: string): string {
  const { hi, lo } = hash64(text);
  return hi.toString(16).padStart(8, '0') + lo.toString(16).padStart(8, '0');
}

function rotate(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits));
}

/** The finalizer of MurmurHash3: a bijection in which every input bit moves every output bit. */
function avalanche(sum: number): number {
  let word = sum | 0;
  word = Math.imul(word ^ (word >>> 16), 0x85ebca6b);
  word = Math.imul(word ^ (word >>> 13), 0xc2b2ae35);
  return word ^ (word >>> 16);
}
