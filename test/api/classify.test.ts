/**
 * The meaning of an answer of the API: its body, or a fault of one kind, decided by status and code. Pure functions,
 * with arbitrary headers and bodies.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Classified, classifyAnswer, type RequestContext, readDate } from '../../src/api/classify.ts';
import type { ApiFault, ApiFaultKind } from '../../src/core/faults.ts';

const KEY = 'tm_canary_4711';
const NOW_MS = Date.UTC(2026, 10, 21, 12);
const ASKED: RequestContext = { request: 'GET /devices', hasCursor: false, nowMs: NOW_MS, secret: KEY };

interface Served {
  readonly status: number;
  readonly body?: unknown;
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

function classify({ status, body, text, headers = {} }: Served, asked: Partial<RequestContext> = {}): Classified {
  const bytes = new TextEncoder().encode(text ?? JSON.stringify(body ?? {}));
  return classifyAnswer({ status, headers, body: bytes }, { ...ASKED, ...asked });
}

function faultOf(served: Served, asked: Partial<RequestContext> = {}): ApiFault {
  const meaning = classify(served, asked);
  if (meaning.kind === 'ok') throw new Error('it was taken for an answer');
  return meaning.fault;
}

const error = (members: Readonly<Record<string, unknown>>): { error: typeof members } => ({ error: members });

test('a 200 with JSON is its body', () => {
  expect(classify({ status: 200, body: { a: [1] } })).toEqual({ kind: 'ok', body: { a: [1] } });
  expect(classify({ status: 200, text: 'null' })).toEqual({ kind: 'ok', body: null });
});

describe('an answer of very many values', () => {
  const tooMany = 'GET /devices: the response has more than 30,000 values';

  test.each([
    ['empty lists', `{"data":[${'[],'.repeat(120_000)}[]]}`],
    ['members', `{"data":[{${Array.from({ length: 120_000 }, (_, n) => `"${n}":1`).join()}}]}`],
    ['lists in lists', `${'['.repeat(120_000)}${']'.repeat(120_000)}`],
  ])('is refused before it is parsed: %s', (_what, text) => {
    expect(faultOf({ status: 200, text })).toMatchObject({
      kind: 'malformed',
      message: tooMany,
      facts: { isTooLarge: true },
    });
  });

  test('is no answer of few that are long, whatever stands in their texts', () => {
    const body = { data: [{ name: '[{,"\\,'.repeat(40_000), other: 'x\\"' }] };
    expect(classify({ status: 200, body })).toEqual({ kind: 'ok', body });
  });
});

const TABLE: readonly (readonly [what: string, served: Served, kind: ApiFaultKind])[] = [
  ['200 without JSON', { status: 200, text: '{"data":[' }, 'malformed'],
  ['200 without a body', { status: 200, text: '' }, 'malformed'],
  ['200 with an HTML page', { status: 200, text: '<!DOCTYPE html><p>Log in' }, 'server-fault'],
  [
    '200 that calls itself HTML',
    { status: 200, text: '{}', headers: { 'content-type': 'text/html; charset=utf-8' } },
    'server-fault',
  ],
  ['204', { status: 204, text: '' }, 'server-fault'],
  ['206', { status: 206 }, 'server-fault'],
  ['301', { status: 301, headers: { location: 'https://elsewhere.example/' } }, 'server-fault'],
  ['304', { status: 304, text: '' }, 'server-fault'],
  [
    '400 invalid_request',
    { status: 400, body: error({ code: 'invalid_request', message: 'limit is odd' }) },
    'invalid-request',
  ],
  ['400 without a word', { status: 400, text: '' }, 'invalid-request'],
  ['400 range_too_large', { status: 400, body: error({ code: 'range_too_large' }) }, 'range-too-large'],
  ['400 that names max_days', { status: 400, body: error({ code: 'whatever', max_days: 30 }) }, 'range-too-large'],
  ['401', { status: 401, body: error({ code: 'nobody_knows' }) }, 'unauthorized'],
  ['401 without a word', { status: 401, text: '' }, 'unauthorized'],
  [
    '403 insufficient_scope',
    { status: 403, body: error({ code: 'insufficient_scope', required_scope: 'alerts:read' }) },
    'scope-missing',
  ],
  ['403 with another code', { status: 403, body: error({ code: 'plan_required' }) }, 'no-api-access'],
  ['403 without a word', { status: 403, text: '' }, 'no-api-access'],
  ['403 of a firewall', { status: 403, text: '<html><body>Blocked' }, 'server-fault'],
  ['404', { status: 404, body: error({ code: 'not_found' }) }, 'not-found'],
  ['404 of a web server', { status: 404, text: '<html>nginx' }, 'server-fault'],
  ['405', { status: 405, body: error({ code: 'method_not_allowed' }) }, 'invalid-request'],
  ['408 of a gateway', { status: 408, text: '' }, 'server-fault'],
  ['410', { status: 410 }, 'invalid-request'],
  ['414', { status: 414 }, 'invalid-request'],
  ['429', { status: 429, body: error({ code: 'spent' }) }, 'throttled'],
  ['429 with a page', { status: 429, text: '<html>slow down' }, 'throttled'],
  ['500', { status: 500, body: error({ code: 'internal' }) }, 'server-fault'],
  ['502 with a page', { status: 502, text: '<html>Bad gateway' }, 'server-fault'],
  ['503', { status: 503, text: '' }, 'server-fault'],
  ['a status that no one knows', { status: 799, text: '' }, 'server-fault'],
];

test.each(TABLE)('%s is %j as a fault of the right kind', (_what, served, kind) => {
  expect(faultOf(served)).toMatchObject({ kind, facts: { request: 'GET /devices', status: served.status } });
});

test('a rejection without the error object of the API is attributed to something in between', () => {
  const other = faultOf({ status: 400, text: 'unsupported path requested: "/external/v1/account"' });
  expect(other.message).toBe(
    'GET /devices: the response does not look like one of the API (400). Check that api.url is right and that no proxy answers',
  );
  const own = faultOf({ status: 400, body: error({ code: 'invalid_request', message: 'limit is odd' }) });
  expect(own.message).toBe(
    'GET /devices: the API rejected the request (400 invalid_request); message of the server: limit is odd',
  );
});

describe('a 400 on a request with a cursor', () => {
  const kindOf = (body: unknown): ApiFaultKind => faultOf({ status: 400, body }, { hasCursor: true }).kind;

  test('is about the cursor when its message begins with the word', () => {
    for (const message of ['cursor is not valid', 'cursor: altered', 'Cursor expired']) {
      expect(kindOf(error({ code: 'invalid_request', message }))).toBe('bad-cursor');
    }
  });

  test('is about something else when the documented code comes with another message', () => {
    expect(kindOf(error({ code: 'invalid_request', message: 'limit must be 1 to 200; the cursor is fine' }))).toBe(
      'invalid-request',
    );
  });

  test('is about the cursor when nothing explains it: the rest of the request was accepted before', () => {
    for (const body of [error({ code: 'cursor_expired' }), error({}), {}, null])
      expect(kindOf(body)).toBe('bad-cursor');
  });

  test('is about the range when its text mentions the range', () => {
    expect(kindOf(error({ code: 'range_too_large', message: 'cursor spans too much' }))).toBe('range-too-large');
  });

  test('is not about a cursor that was not sent', () => {
    const body = error({ code: 'invalid_request', message: 'cursor is not valid' });
    expect(faultOf({ status: 400, body }).kind).toBe('invalid-request');
  });
});

test('the text of a message decides nothing else', () => {
  fc.assert(
    fc.property(fc.constantFrom(...TABLE), fc.string(), ([, served, kind], message) => {
      if (served.text !== undefined) return;
      const body = {
        ...(served.body as object),
        error: { ...((served.body as { error?: object })?.error ?? {}), message },
      };
      expect(faultOf({ ...served, body }).kind).toBe(kind);
    }),
  );
});

test('the details of the error are kept: scope, widest range, code', () => {
  expect(
    faultOf({ status: 403, body: error({ code: 'insufficient_scope', required_scope: 'alerts:read' }) }).facts,
  ).toMatchObject({
    code: 'insufficient_scope',
    scope: 'alerts:read',
  });
  expect(faultOf({ status: 400, body: error({ code: 'range_too_large', max_days: 30 }) }).facts.maxDays).toBe(30);
  for (const odd of [0, -1, '30', null, {}]) {
    expect(
      faultOf({ status: 400, body: error({ code: 'range_too_large', max_days: odd }) }).facts.maxDays,
    ).toBeUndefined();
  }
});

describe('the wait of a 429', () => {
  const waitOf = (headers: Readonly<Record<string, string>>): number | undefined =>
    faultOf({ status: 429, headers }).facts.waitMs;

  test.each<[Record<string, string>, number]>([
    [{}, 60],
    [{ 'retry-after': '7' }, 7],
    [{ 'retry-after': ' 7 ' }, 7],
    [{ 'retry-after': '0' }, 1],
    [{ 'retry-after': '2.2' }, 3],
    [{ 'retry-after': '86400' }, 86_400],
    [{ 'retry-after': '999999999' }, 90_000],
    [{ 'retry-after': '-5' }, 60],
    [{ 'retry-after': 'soon' }, 60],
    [{ 'retry-after': '12345678901234567890' }, 60],
    [{ 'retry-after': new Date(NOW_MS + 90_000).toUTCString() }, 90],
    [{ 'retry-after': new Date(NOW_MS - 90_000).toUTCString() }, 1],
    [{ 'retry-after': 'Mon, 01 Jan 2001 00:00:00 GMT' }, 60],
    [{ 'retry-after': '5', 'x-ratelimit-reset': '3000' }, 5],
    [{ 'x-ratelimit-reset': '42' }, 42],
    [{ 'x-ratelimit-reset-after': '42', 'x-quota-reset': '7' }, 42],
    [{ 'x-ratelimit-reset': String(NOW_MS / 1000 + 33) }, 33],
    [{ 'x-ratelimit-reset': '4102444800' }, 60],
    [{ 'retry-after': 'soon', 'x-retry-in': '9' }, 9],
    [{ 'x-should-retry': 'true' }, 60],
    [{ 'x-wait': '9' }, 60],
  ])('%j: %i s', (headers, seconds) => {
    expect(waitOf(headers)).toBe(seconds * 1000);
  });

  test('lies between a second and 25 hours, whatever the headers', () => {
    const names = fc.constantFrom('retry-after', 'x-ratelimit-reset', 'x-retry', 'reset');
    fc.assert(
      fc.property(
        fc.dictionary(names, fc.oneof(fc.string(), fc.nat().map(String), fc.double().map(String))),
        (headers) => {
          expect(waitOf(headers)).toBeGreaterThanOrEqual(1000);
          expect(waitOf(headers)).toBeLessThanOrEqual(25 * 3_600_000);
        },
      ),
    );
  });

  test('is also kept for a 503, but only with the header of a wait', () => {
    expect(faultOf({ status: 503, headers: { 'retry-after': '120' } }).facts.waitMs).toBe(120_000);
    expect(faultOf({ status: 503, headers: { 'x-ratelimit-reset': '120' } }).facts.waitMs).toBeUndefined();
    expect(faultOf({ status: 404, headers: { 'retry-after': '120' } }).facts.waitMs).toBeUndefined();
  });
});

describe('the text of a fault', () => {
  test('of a 404 is about the address where an endpoint itself is missing, else about the workspace', () => {
    const said = (request: string): string => faultOf({ status: 404 }, { request }).message;
    expect(said('GET /account')).toContain('Check api.url');
    expect(said('GET /devices')).toContain('Check api.url');
    expect(said('GET /devices/x/telemetry')).toContain('no such resource in the workspace of this key');
    expect(said('GET /alerts/7')).toContain('no such resource in the workspace of this key');
  });

  test('never has the key, nor anything that a terminal would obey', () => {
    const message = `bad key ${KEY}, \u001b[31mred\u202e ${'x'.repeat(5000)}`;
    const fault = faultOf({ status: 401, body: error({ code: KEY, message, required_scope: KEY }) });
    const said = JSON.stringify([fault.message, fault.stack, fault.facts]);
    expect(said).not.toContain(KEY);
    expect(fault.message).toContain('[secret]');
    expect(fault.message).not.toMatch(/\p{Cc}|\u202e/u);
    expect(fault.message.length).toBeLessThan(600);
  });

  test('any bytes whatever give a body or a fault', () => {
    const answers = fc.record({
      status: fc.integer({ min: 100, max: 999 }),
      headers: fc.dictionary(fc.string(), fc.string()),
      body: fc.oneof(
        fc.uint8Array(),
        fc.json().map((json) => new TextEncoder().encode(json)),
      ),
      hasCursor: fc.boolean(),
    });
    fc.assert(
      fc.property(answers, ({ hasCursor, ...answer }) => {
        const meaning = classifyAnswer(answer, { ...ASKED, hasCursor });
        if (answer.status !== 200) expect(meaning.kind).toBe('fault');
      }),
      { numRuns: 500 },
    );
  });
});

test('a Date is read where its time can be stored, and counts as missing where it cannot', () => {
  const dateOf = (year: number): string => new Date(Date.UTC(year, 0, 1)).toUTCString();
  expect(readDate({ date: dateOf(2026) })).toBe(Date.UTC(2026, 0, 1));
  expect(readDate({ date: dateOf(2262) })).toBe(Date.UTC(2262, 0, 1));
  for (const year of [1969, 2263, 2500, 9999]) expect(readDate({ date: dateOf(year) })).toBeNull();
  expect(readDate({ date: 'Fri, 11 Apr 2262 23:59:59 GMT' })).toBeNull();
});
