/**
 * Text for people: what is left of hostile text, and what counts as nearly the same word.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  byteSize,
  databaseText,
  duration,
  durationInWords,
  grouped,
  nearest,
  percent,
  plainText,
  withoutIds,
} from '../../src/core/text.ts';
import { MINUTE_MS } from '../../src/core/time.ts';

test('numbers are grouped as Node groups them', () => {
  for (const value of [0, 7, 999, 1000, 12_345, 1_234_567.891, 1000.5, 0.125, 0.1234, 99_999.999_6, -1234, 1e15]) {
    expect(grouped(value)).toBe(value.toLocaleString('en-GB'));
  }
  fc.assert(
    fc.property(fc.maxSafeInteger(), (value) => {
      expect(grouped(value)).toBe(value.toLocaleString('en-GB'));
    }),
  );
});

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

  test('a text that was cut shows that, one that just fits does not', () => {
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

  test('is no further away than the caller allows', () => {
    expect([nearest('onec', ['once'], 2), nearest('onec', ['once'], 1)]).toEqual(['once', null]);
  });

  test('to a known word is that word', () => {
    const words = ['listen', 'listing', 'lists'];
    for (const word of words) expect(nearest(word, words)).toBe(word);
  });
});

describe('figures for people', () => {
  test('bytes are reported in the units of the configuration', () => {
    expect([0, 1023, 1024, 1536, 100 * 1024, 5 * 1024 ** 2, 2048 * 1024 ** 2, 9.9e15].map(byteSize)).toEqual([
      '0 bytes',
      '1023 bytes',
      '1 KiB',
      '1.5 KiB',
      '100 KiB',
      '5 MiB',
      '2 GiB',
      '9004 TiB',
    ]);
  });

  test('a percentage is never 100 % before all is done, and never less than it is in tenths', () => {
    expect([0, 0.0005, 0.057, 0.5, 0.57, 0.8, 0.99999, 1 - 1e-12, 1, 1.307].map((share) => percent(share))).toEqual([
      '0 %',
      '0 %',
      '5.7 %',
      '50 %',
      '57 %',
      '80 %',
      '99.9 %',
      '99.9 %',
      '100 %',
      '130.7 %',
    ]);
    expect([0.437, 0.57, 0.99999, 1].map((share) => percent(share, 0))).toEqual(['43 %', '57 %', '99 %', '100 %']);
  });

  test.each([
    [0, '0 s'],
    [0.42, '0.4 s'],
    [9.96, '10 s'],
    [89, '89 s'],
    [119.6, '2 min'],
    [5399, '90 min'],
    [7199, '2 h'],
    [129_600, '36 h'],
    [172_799, '2 days'],
    [30 * 86_400, '30 days'],
    [3650 * 86_400, '3,650 days'],
  ])('%d seconds are %s', (seconds, words) => {
    expect(duration(seconds)).toBe(words);
  });

  test.each([
    [0, '0 s'],
    [0.001, '1 s'],
    [119, '119 s'],
    [119.001, '2 min'],
    [119 * 60, '119 min'],
    [120 * 60, '2 h'],
    [47 * 3600, '47 h'],
    [48 * 3600 + 0.001, '2.1 days'],
  ])('a wait of %d seconds is %s', (seconds, words) => {
    expect(duration(seconds, 'up')).toBe(words);
  });
});

test('a database without a name of its own is called the database', () => {
  expect([databaseText('influx', 1), databaseText('influx', 2), databaseText('barn', 1)]).toEqual([
    'the database',
    'influx',
    'barn',
  ]);
});

test('a round duration is put into the words of a sentence', () => {
  const minutes = [1, 2, 10, 15, 30, 60, 120, 24 * 60];
  expect(minutes.map((count) => durationInWords(count * MINUTE_MS))).toEqual([
    'a minute',
    'two minutes',
    'ten minutes',
    '15 minutes',
    'half an hour',
    'an hour',
    'two hours',
    '24 hours',
  ]);
});

test('texts that differ only in ids are equal without them', () => {
  const [one, other] = ['request 4f-9a2 failed after 12.5ms: HTTP 503', 'request 7c failed after 9ms: HTTP 503'];
  expect([withoutIds(one), withoutIds(one)]).toEqual(['request # failed after #: HTTP #', withoutIds(other)]);
  expect(withoutIds(one, 4)).toBe('request # failed after #: HTTP 503');
});
