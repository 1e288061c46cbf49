/** No form of a secret gets through the last search, and a URL loses what may be one. */
import { Buffer } from 'node:buffer';
import { describe, expect, test } from 'vitest';
import { createScrub, SECRET_MARK, Secret, withoutQueries } from '../../src/core/secret.ts';

const KEY = 'k"y/+ 4242';

describe('a secret is taken out', () => {
  test.each([
    ['as it is', KEY],
    ['inside of JSON', JSON.stringify(KEY).slice(1, -1)],
    ['in a URL', encodeURIComponent(KEY)],
    ['in base64', Buffer.from(KEY).toString('base64')],
  ])('%s, wherever it stands and however often', (_what, form) => {
    const scrub = createScrub([new Secret(KEY)]);
    expect(scrub(`a ${form}b${form}`)).toBe(`a ${SECRET_MARK}b${SECRET_MARK}`);
  });

  test('whole, where another secret begins like it', () => {
    const scrub = createScrub([new Secret('tm_key'), new Secret('tm_key_of_more')]);
    expect(scrub('tm_key_of_more tm_key')).toBe(`${SECRET_MARK} ${SECRET_MARK}`);
  });

  test('from the moment on at which it is known', () => {
    const secrets = [new Secret('first')];
    const scrub = createScrub(secrets);
    expect(scrub('first second')).toBe(`${SECRET_MARK} second`);
    secrets.push(new Secret('second'));
    expect(scrub('first second')).toBe(`${SECRET_MARK} ${SECRET_MARK}`);
  });

  test('with its password alone, where it is user and password', () => {
    expect(createScrub([new Secret('user:hunter2')])('the password hunter2')).toBe(`the password ${SECRET_MARK}`);
  });

  test('and nothing else changes, also where there is no secret', () => {
    expect(createScrub([])('a text')).toBe('a text');
    expect(createScrub([new Secret('u:p')])('up: u:p')).toBe('up: u:p');
  });
});

test.each([
  ['http://db:8086/write?u=a&p=b failed', 'http://db:8086/write… failed'],
  ['https://user:pw@db/x', 'https://db/x'],
  ['HTTPS://user:pw@db/x?y#z', 'HTTPS://db/x…'],
  ['"http://db/x#part"', '"http://db/x…"'],
  ['http://a?b and http://c/d?e', 'http://a… and http://c/d…'],
  ['is it there? no #1 a@b', 'is it there? no #1 a@b'],
])('%s becomes %s', (text, without) => {
  expect(withoutQueries(text)).toBe(without);
});
