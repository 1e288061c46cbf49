/** Secrets that are read again: what counts as one, and that each is known before it is used. */
import { expect, test } from 'vitest';
import { createSecretReader } from '../../src/app/settings.ts';
import { createScrub, Secret } from '../../src/core/secret.ts';

test('a secret that is read again is kept out of what is shown from then on, and known once', () => {
  const first = new Secret('the-first-one');
  const secrets = [first];
  const scrub = createScrub(secrets);
  let text = 'the-first-one\n';
  const read = createSecretReader({ readFile: () => text, secrets });
  expect(read('/token')).toBe(first);
  text = 'the-second-one\n';
  const second = read('/token');
  expect(second?.reveal()).toBe('the-second-one');
  expect(read('/token')).toBe(second);
  expect(scrub('the-first-one and the-second-one')).toBe('[secret] and [secret]');
  expect(secrets).toHaveLength(2);
});

test('a file that is away, empty or no text gives none', () => {
  const gone = (): never => {
    throw Object.assign(new Error('gone'), { code: 'ENOENT' });
  };
  const secrets: Secret[] = [];
  for (const readFile of [gone, () => '', () => '\n']) {
    expect(createSecretReader({ readFile, secrets })('/token')).toBeNull();
  }
  expect(secrets).toEqual([]);
});
