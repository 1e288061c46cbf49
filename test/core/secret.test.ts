/** A secret is shown only on request. */
import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { formsOfSecret, SECRET_MARK, Secret } from '../../src/core/secret.ts';

const secret = new Secret('tm_live_4242');

test.each([
  ['joined to a text', `${secret}`],
  ['added to a text', `key: ${[secret, 'x'].join(' ')}`],
  ['serialised', JSON.stringify({ api: { key: secret } })],
  ['inspected', inspect({ deep: { list: [secret] } }, { depth: 9, showHidden: true })],
  ['spread into another object', JSON.stringify({ ...secret })],
  ['listed by its members', JSON.stringify([Object.keys(secret), Object.entries(secret)])],
  ['in the message of an error', String(new Error(`refused: ${secret}`))],
])('a secret %s is not shown', (_what, shown) => {
  expect(shown).not.toContain('4242');
});

test('a secret is revealed on request, and masked in texts', () => {
  expect(secret.reveal()).toBe('tm_live_4242');
  expect(`${secret}`).toBe(SECRET_MARK);
});

test.each([
  ['a key', 'tm_live_4242', ['tm_live_4242']],
  ['user and password', 'user:pass:word', ['user:pass:word', 'pass:word']],
  ['a long user with a short password', 'somebody:pw', ['somebody:pw']],
  ['too short for a search: only as a credential', 'u:p', ['Token u:p', 'Bearer u:p', 'Basic dTpw']],
])('%s is searched for as %j', (_what, text, forms) => {
  expect(formsOfSecret(text)).toEqual(forms);
});
