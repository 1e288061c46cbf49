/** Faults and the words for them. */
import { describe, expect, test } from 'vitest';
import {
  ApiFault,
  codeOf,
  faultText,
  internalErrorText,
  isExitCode,
  rejectionText,
  TransportError,
  UserError,
} from '../../src/core/faults.ts';

describe('an error that a person has to act on', () => {
  test('has the problem, then the remedy, and separates the two', () => {
    const error = new UserError('listen: 0.0.0.0:80 is in use', 'Stop that program. Or take another.', 1);
    expect(error.message).toBe('listen: 0.0.0.0:80 is in use. Stop that program. Or take another.');
    expect([error.what, error.remedy, error.exitCode]).toEqual([
      'listen: 0.0.0.0:80 is in use',
      'Stop that program. Or take another.',
      1,
    ]);
  });

  test('joins a remedy to the sentence of the problem by a colon, if requested', () => {
    const error = new UserError('No database is configured', 'set influx.url.', 78, { joint: ':' });
    expect([error.message, error.what, error.remedy]).toEqual([
      'No database is configured: set influx.url.',
      'No database is configured',
      'set influx.url.',
    ]);
  });

  test('has one full stop after a problem that quotes the sentence of a server', () => {
    const joined = (['.', ';'] as const).map(
      (joint) => new UserError('HTTP 405: Not allowed.', 'check it.', 1, { joint }).message,
    );
    expect(joined).toEqual(['HTTP 405: Not allowed. check it.', 'HTTP 405: Not allowed; check it.']);
  });

  test('that states what was expected has no remedy', () => {
    const error = new UserError('--from: expected a time. In the past.', null, 2);
    expect([error.message, error.what, error.remedy]).toEqual([error.message, error.message, null]);
  });
});

test.each([
  [0, true],
  [3, true],
  [77, true],
  [4, false],
  [-1, false],
  [1.5, false],
  ['1', false],
  [null, false],
])('%j is an exit code of the program: %j', (code, isOne) => {
  expect(isExitCode(code)).toBe(isOne);
});

test('the code of an error is that of the system; an error without one has the given text', () => {
  expect(codeOf(Object.assign(new Error('x'), { code: 'ENOSPC' }))).toBe('ENOSPC');
  expect(codeOf(Object.assign(new Error('x'), { code: 28 }))).toBe('28');
  expect(codeOf(new Error('x'))).toBe('unknown error');
  expect(codeOf({ code: 'ENOSPC' }, 'none')).toBe('none');
});

test('an internal error requests a report, with one full stop at the end of any detail', () => {
  const words = 'internal error: no row. This is a bug; please report it with --check --bundle.';
  expect([internalErrorText('no row'), internalErrorText('no row.')]).toEqual([words, words]);
});

describe('a rejection of the API', () => {
  const rejection = (kind: ApiFault['kind'], scope?: string) =>
    rejectionText(new ApiFault(kind, 'x', { request: 'GET /x', ...(scope === undefined ? {} : { scope }) }));

  test.each([
    [
      'unauthorized',
      undefined,
      /unknown, revoked or expired\. Check that the key is complete; if it is, create a new key .* write it into the file of api\.key_file/,
    ],
    ['no-api-access', undefined, /^the plan of this workspace has no API access\. Switch to a plan/],
    ['scope-missing', 'alerts:read', /^the key lacks the scope alerts:read,/],
    ['scope-missing', undefined, /^the key lacks the scope devices:read,/],
  ] as const)('of the kind %s (%s) names what is missing, without a full stop', (kind, scope, words) => {
    expect(rejection(kind, scope)).toMatch(words);
    expect(rejection(kind, scope)).not.toMatch(/\.$/);
  });
});

test('a failed request has its remedy apart, with the names of the settings that a person uses', () => {
  const failed = new ApiFault(
    'server-fault',
    'GET /x: a redirect (301); message of the server: Moved.',
    { request: 'GET /x' },
    (api) => `Check ${api.url}`,
  );
  expect(failed.message).toBe('GET /x: a redirect (301); message of the server: Moved. Check api.url');
  expect([failed.remedyText(), failed.remedyText({ url: '--api-url' })]).toEqual(['Check api.url', 'Check --api-url']);
  const without = new TransportError('reset', 'the connection was closed');
  expect([without.message, without.remedyText()]).toEqual([without.what, null]);
});

test('faults of other versions are shown as they are, as plain text and cut', () => {
  expect(faultText('throttled')).toMatch(/429/);
  expect(faultText('toString')).toBe('toString');
  expect(faultText(`line\n${'x'.repeat(200)}`).length).toBeLessThan(70);
  expect(faultText('a\nb')).not.toContain('\n');
});
