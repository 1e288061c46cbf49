/** The hash of a text: frozen values, halves, and collisions on similar texts. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hash64, hashHex } from '../../src/core/hash.ts';

test('is frozen: stored hashes in states and databases stay comparable', () => {
  expect(hashHex('')).toBe('e97612d9ffae718d');
  expect(hashHex('a')).toBe('fa3ca1fdd06a056d');
  expect(hashHex('aa')).toBe('860dbd3a1f37fce0');
  expect(hashHex('temperature')).toBe('61871a010c6b6c80');
  expect(hashHex('telemetry,device_id=d1,sensor=t')).toBe('c4cf7c0a4ee6c7d6');
  expect(hashHex('😀')).toBe('b4f66f78e74ea670');
  expect(hashHex('\ud800')).toBe('9cd8c324762f6d56');
});

test('gives two unsigned halves and the same 16 digits for any text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const { hi, lo } = hash64(text);
      expect([hi, lo].every((half) => Number.isInteger(half) && half >= 0 && half < 2 ** 32)).toBe(true);
      expect(hashHex(text)).toBe(((BigInt(hi) << 32n) | BigInt(lo)).toString(16).padStart(16, '0'));
    }),
  );
});

test('gives the parts of a text the hash of the text', () => {
  const part = fc.string({ unit: 'binary', maxLength: 5 });
  fc.assert(
    fc.property(fc.array(part, { maxLength: 5 }), (parts) => {
      expect(hash64(...parts)).toEqual(hash64(parts.join('')));
    }),
  );
});

test('distinguishes texts that differ in one character only, in length or in order', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (a, b) => {
      fc.pre(a !== b);
      expect(hashHex(a)).not.toBe(hashHex(b));
    }),
  );
  const alike = ['', '\u0000', '\u0000\u0000', '\u0000\u0000\u0000', 'ab', 'ba', 'a', 'a\u0000', '\u0000a'];
  expect(new Set(alike.map(hashHex)).size).toBe(alike.length);
});

test('has no more collisions in a half than chance, on texts as alike as readings are', () => {
  const seen = { hi: new Set<number>(), lo: new Set<number>(), low16: new Set<number>() };
  const count = 200_000;
  for (let index = 0; index < count; index += 1) {
    const { hi, lo } = hash64(
      `device-${index % 100}\u0000${1_700_000_000 + index}000000000\u0000temperature\u0000${index / 8}`,
    );
    seen.hi.add(hi);
    seen.lo.add(lo);
    seen.low16.add(lo & 0xffff);
  }
  // By chance, count² / 2³³ collide, about 5 of each.
  expect(count - seen.hi.size).toBeLessThan(25);
  expect(count - seen.lo.size).toBeLessThan(25);
  expect(seen.low16.size).toBeGreaterThan(62_000);
});

test('moves every bit of the result about half of the time when one bit of the text moves', () => {
  const flips = new Array<number>(64).fill(0);
  const trials = 4000;
  for (let trial = 0; trial < trials; trial += 1) {
    const text = `d${trial}-sensor-${trial * 7919}`;
    const place = trial % text.length;
    const moved = String.fromCharCode(text.charCodeAt(place) ^ (1 << (trial % 7)));
    const a = hash64(text);
    const b = hash64(text.slice(0, place) + moved + text.slice(place + 1));
    for (let bit = 0; bit < 32; bit += 1) {
      flips[bit] = (flips[bit] ?? 0) + (((a.lo ^ b.lo) >>> bit) & 1);
      flips[bit + 32] = (flips[bit + 32] ?? 0) + (((a.hi ^ b.hi) >>> bit) & 1);
    }
  }
  expect(Math.min(...flips) / trials).toBeGreaterThan(0.45);
  expect(Math.max(...flips) / trials).toBeLessThan(0.55);
});
