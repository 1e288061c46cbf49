/**
 * Text for people: what is left of hostile text, and what counts as nearly the same word.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { nearest, plainText } from '../../src/core/text.ts';

describe('plain text', () => {
  test.each([
    ['plain', 'plain'],
    ['Büro 東京 🙂', 'Büro 東京 🙂'],
    ['two\r\nlines\tand', 'two lines and'],
    ['\u001b[31mred\u0007', '[31mred'],
    ['\u202egnirts\u2069\u200b\ufeff', 'gnirts'],
    ['half \ud83d', 'half \ufffd'],
    ['', ''],
  ])('%j is shown as %j', (text, shown) => {
    expect(plainText(text)).toBe(shown);
  });

  test('is one line without control or direction characters, no longer than allowed, and stays as it is', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 1, max: 30 }), (text, maxLength) => {
        const shown = plainText(text, maxLength);
        expect(shown).not.toMatch(/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u);
        expect([...shown].length).toBeLessThanOrEqual(maxLength);
        expect(shown.isWellFormed()).toBe(true);
        expect(plainText(shown, maxLength)).toBe(shown);
      }),
    );
  });

  test('a text that was cut says so, one that just fits does not', () => {
    expect(plainText('abcde', 5)).toBe('abcde');
    expect(plainText('abcdef', 5)).toBe('abcd…');
  });
});

describe('the nearest word', () => {
  test.each([
    ['onec', 'once'],
    ['api.shar', 'api.share'],
    ['API.KEY', 'api.key'],
    ['frobnicate', null],
    ['', null],
    ['x'.repeat(10_000), null],
  ])('to %j is %j', (word, meant) => {
    expect(nearest(word, ['once', 'api.share', 'api.key', 'demo'])).toBe(meant);
  });

  test('to a known word is that word', () => {
    const words = ['listen', 'listing', 'lists'];
    for (const word of words) expect(nearest(word, words)).toBe(word);
  });
});
