/**
 * The meaning of a database's answer to a write. Known answers of all supported servers are read, and arbitrary ones
 * are safe.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { WriteAnswer } from '../../src/core/ports.ts';
import { describeFailure, readAnswer, type ServerAnswer, settingNames } from '../../src/influx/answers.ts';

const asIs = (text: string): string => text;

function read(status: number, body = '', headers: ServerAnswer['headers'] = {}): WriteAnswer {
  return readAnswer({ status, headers, body }, asIs);
}

const v1 = (error: string): string => JSON.stringify({ error });
const v2 = (code: string, message: string): string => JSON.stringify({ code, message });

describe('answers that count as written', () => {
  test('only a 204 acknowledges', () => {
    expect(read(204)).toEqual({ kind: 'accepted' });
    for (let status = 100; status < 700; status += 1) {
      if (status === 204) continue;
      for (const body of ['', v1('partial write'), '<html>', '{}', 'ok']) {
        expect(read(status, body).kind, String(status)).not.toBe('accepted');
      }
    }
  });

  test('nothing that could be a body makes another status count', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 999 }), fc.oneof(fc.string(), fc.json()), (status, body) => {
        fc.pre(status !== 204);
        expect(read(status, body).kind).not.toBe('accepted');
      }),
    );
  });

  test('any other success or redirect is not a database: blocked, with the key to check', () => {
    for (const status of [200, 201, 202, 203, 205, 206, 226, 300, 301, 302, 303, 304, 307, 308]) {
      const answer = read(status, '<html><head><title>Log in</title></head>');
      expect(answer).toMatchObject({ kind: 'blocked', message: `HTTP ${status}: Log in` });
      expect(answer).toHaveProperty('hint', expect.stringContaining('influx.url'));
    }
  });

  test('201 is the answer of older clouds to a batch that they accepted in part', () => {
    expect(read(201, v2('invalid', 'partial write: 1 points rejected')).kind).toBe('rejected');
    expect(read(201, v2('ok', 'created')).kind).toBe('blocked');
  });
});

test('an InfluxDB that is too old is named, with what to do', () => {
  const answer = { status: 404, headers: { 'x-influxdb-version': '1.6.7~rc0' }, body: '404 page not found' };
  expect(readAnswer(answer, (text) => text)).toMatchObject({
    kind: 'blocked',
    message: 'HTTP 404: InfluxDB 1.6.7~rc0 is too old',
    hint: 'Tidemark needs InfluxDB 1.8 or later: upgrade it',
  });
  const newer = readAnswer({ ...answer, headers: { 'x-influxdb-version': '1.8.10' } }, (text) => text);
  expect(newer).toMatchObject({ hint: expect.stringContaining('the server has no /api/v2/write') });
});

describe('400 and 422', () => {
  const conflict =
    'field type conflict: input field "value" on measurement "telemetry" is type string, already exists as type float dropped=1';

  test.each([
    ['1.x, a line that cannot be parsed', 400, v1("unable to parse 'garbage no fields': invalid field format")],
    ['1.x, a part', 400, v1("partial write: unable to parse 'x': invalid field format dropped=0")],
    ['1.x, a type conflict', 400, v1(`partial write: ${conflict}`)],
    ['1.x, too many series', 400, v1('partial write: max-series-per-database limit exceeded: (1000000) dropped=5')],
    [
      '2.x, a type conflict',
      422,
      v2('unprocessable entity', `failure writing points to database: partial write: ${conflict}`),
    ],
    ['3, v2 path before 3.8', 400, v2('invalid', 'parsing for line protocol failed')],
    [
      '3, v2 path',
      400,
      v2('invalid', "line protocol parse failed: invalid column type for column 'value', expected float"),
    ],
    [
      '3, too many columns',
      422,
      v2('invalid', 'Update to schema would exceed number of columns per table limit of 500 columns'),
    ],
    [
      '3, v3 path',
      400,
      JSON.stringify({
        error: 'partial write of line protocol occurred',
        data: [{ error_message: 'invalid column type', line_number: 2 }],
      }),
    ],
    [
      'serverless',
      400,
      JSON.stringify({
        code: 'invalid',
        line: 2,
        message: 'failed to parse line protocol: errors encountered on line(s)',
      }),
    ],
  ])('rejected: %s', (_name, status, body) => {
    expect(read(status, body)).toMatchObject({ kind: 'rejected', retention: false });
  });

  test.each([
    [400, v1('partial write: points beyond retention policy dropped=1')],
    [
      422,
      v2(
        'unprocessable entity',
        'failure writing points to database: partial write: points beyond retention policy dropped=3',
      ),
    ],
    [
      422,
      v2(
        'unprocessable entity',
        'partial write: dropped 2 points outside retention policy of duration 1h0m0s - oldest point telemetry,device_id=wal,sensor=timeout at 1970-01-01T00:00:00Z dropped because',
      ),
    ],
  ])('rejected for its age: %i %s', (status, body) => {
    expect(read(status, body)).toMatchObject({ kind: 'rejected', retention: true });
  });

  test.each([
    ['a full disk', v1('partial write: write /data/wal/x/_00001.wal: no space left on device dropped=1')],
    ['the WAL', v2('invalid', 'error from wal: line protocol could not be written')],
    ['the persister', v2('invalid', 'error from persister: partial write')],
    ['the catalog', v2('invalid', 'catalog update error: partial write')],
    ['a compactor', v2('invalid', 'cannot write line protocol to a compactor-only server')],
    ['a cache', v1('partial write: engine: cache-max-memory-size exceeded: (1/2) dropped=5000')],
    ['a time-out', v1('partial write: timeout dropped=3')],
    ['files', v1('partial write: open /x: too many open files dropped=3')],
    ['no word of the data', v2('invalid', 'organization is required')],
    ['another shape', JSON.stringify({ message: 'unable to parse line protocol' })],
    ['another shape, too', JSON.stringify(['partial write'])],
    ['null', 'null'],
    ['a page', '<html>partial write: unable to parse</html>'],
    ['text', 'unable to parse line protocol'],
    ['nothing', ''],
  ])('the server or a proxy is at fault, not the lines: %s', (_name, body) => {
    for (const status of [400, 422]) expect(read(status, body).kind).toBe('later');
  });

  test.each([
    [v1('partial write: points beyond retention policy dropped=1'), 1],
    [
      v2(
        'unprocessable entity',
        'failure writing points to database: partial write: points beyond retention policy dropped=5000',
      ),
      5000,
    ],
    [
      v2(
        'unprocessable entity',
        'partial write: dropped 17 points outside retention policy of duration 720h0m0s - oldest point telemetry,device_id=dropped=3 at 1970-01-01T00:00:00Z dropped because it violates a Retention Policy Lower Bound at 2026-01-01T00:00:00Z',
      ),
      17,
    ],
  ])('%j shows how many points were too old', (body, dropped) => {
    expect(read(422, body)).toMatchObject({ kind: 'rejected', retention: true, dropped });
  });

  test('points too far ahead are not too old, and a count of other faults is not one of age', () => {
    const ahead =
      'partial write: dropped 2 points outside retention policy of duration 720h0m0s - newest point x at 2036-01-01T00:00:00Z dropped because it violates a Retention Policy Upper Bound at 2026-01-01T00:00:00Z';
    expect(read(422, v2('unprocessable entity', ahead))).toEqual({
      kind: 'rejected',
      message: expect.any(String),
      retention: false,
    });
    const clash = read(400, v1('partial write: field type conflict: input field "value" dropped=4'));
    expect(clash).toMatchObject({ retention: false, conflict: true, dropped: 4 });
    expect(read(400, v1('partial write: max-series-per-database limit exceeded: (9) dropped=5'))).toEqual({
      kind: 'rejected',
      message: expect.any(String),
      retention: false,
    });
    expect(read(422, v2('unprocessable entity', 'points outside retention policy'))).not.toHaveProperty('dropped');
  });

  test('the name of a device does not turn a rejection into a fault of the server', () => {
    const named = "unable to parse 'telemetry,device_id=wal,sensor=no\\ space\\ left value=x 1': invalid number";
    expect(read(400, v1(`partial write: ${named} dropped=0`)).kind).toBe('rejected');
    expect(
      read(400, v1('partial write: field type conflict: input field "wal" on measurement "timeout" is type float'))
        .kind,
    ).toBe('rejected');
  });

  test('an error that was too long to be read completely still counts by its status', () => {
    const whole = v1(`partial write: ${'unable to parse \'a "quoted" line wal\': missing fields\n'.repeat(3000)}`);
    expect(read(400, whole.slice(0, 65_536)).kind).toBe('rejected');
    expect(read(400, v2('invalid', `line protocol parse failed: '${'x'.repeat(1e5)}`).slice(0, 65_536)).kind).toBe(
      'rejected',
    );
    expect(read(400, '{"data": "line protocol').kind).toBe('later');
  });
});

describe('problems that a person has to fix', () => {
  test.each([
    [401, v2('unauthorized', 'unauthorized access'), 'influx.token', 'user:password'],
    // No token is set, and the address is that of something else.
    [401, '', 'influx.token: missing', 'correct influx.url'],
    [403, v2('forbidden', 'insufficient permissions for write'), 'influx.token', 'influx.bucket'],
    [404, v1('database not found: "b"'), 'influx.bucket', 'create it'],
    [404, v2('not found', 'organization name "x" not found'), 'influx.org', 'InfluxDB 2 needs the name'],
    [400, v2('invalid', 'Please provide either orgID or org'), 'influx.org', 'InfluxDB 2 needs the name'],
    [
      400,
      v2(
        'invalid',
        'write buffer error: catalog update error: Adding a new database would exceed limit of 5 databases',
      ),
      'influx.bucket',
      'has reached its limit of databases',
    ],
    [
      400,
      v2('invalid', "namespace name 'a b/c?' contains invalid character"),
      'influx.bucket',
      'does not allow this name',
    ],
    [404, '404 page not found', 'influx.url', 'base URL'],
    [405, '', 'influx.url', 'base URL'],
    [415, '', 'influx.url', 'base URL'],
  ])('%i %s blocks the destination and names the keys', (status, body, key, remedy) => {
    const answer = read(status, body);
    expect(answer.kind).toBe('blocked');
    expect(answer).toHaveProperty('hint', expect.stringContaining(key));
    expect(answer).toHaveProperty('hint', expect.stringContaining(remedy));
  });

  test('an InfluxDB configured as VictoriaMetrics blocks and names the kind', () => {
    const readAs = (status: number, body: string, headers: ServerAnswer['headers'] = {}): WriteAnswer =>
      readAnswer({ status, headers, body }, asIs, 'victoriametrics');
    const held = { kind: 'blocked', hint: expect.stringMatching(/^influx\.kind: .*influx\.bucket/) };
    const build = { 'x-influxdb-build': 'OSS' };
    expect(readAs(400, v1('database is required'))).toMatchObject({
      ...held,
      message: 'HTTP 400: database is required',
    });
    expect(readAs(404, '404 page not found', build)).toMatchObject(held);
    expect(readAs(400, v2('invalid', 'Please provide either orgID or org'), build)).toMatchObject(held);
    // Its status about the token, or about its load, counts first.
    expect(readAs(401, v1('authorization failed'), build)).toHaveProperty('hint', expect.stringContaining('token'));
    expect(readAs(503, v1('timeout'), build).kind).toBe('later');
    expect(readAs(400, 'cannot parse the line').kind).toBe('later');
    expect(read(400, v1('database is required')).kind).toBe('later');
  });

  test.each([
    ['unsupported path requested: "/foo/api/v2/write"', '/foo'],
    ['auth error: cannot parse accountID from "api": strconv.Atoi: parsing "api": invalid syntax', '/insert'],
  ])('a path that VictoriaMetrics does not have blocks and names the address: %s', (words, path) => {
    const body = (port: number): string =>
      `remoteAddr: "127.0.0.1:${port}"; requestURI: ${path}/api/v2/write?precision=ms; ${words}\n`;
    const answer = read(400, body(1));
    expect(answer).toEqual({
      kind: 'blocked',
      message: `HTTP 400: ${words}`,
      hint: 'influx.url: VictoriaMetrics has no such path; the address is http://host:8428, of a cluster http://vminsert:8480/insert/0/influx',
    });
    expect(read(400, body(2)), 'whatever the port of the request').toEqual(answer);
    expect(read(400, v1(`unable to parse '${words}'`)).kind, 'words of a line').toBe('rejected');
  });

  test('413 leads to smaller requests', () => {
    expect(read(413, '{"error":"Request Entity Too Large"}')).toEqual({
      kind: 'too-large',
      message: 'HTTP 413: Request Entity Too Large',
    });
  });
});

describe('later', () => {
  test('a rejection for an unknown reason is marked, as it may need a person', () => {
    expect(read(400, v1('something new'))).toMatchObject({
      kind: 'later',
      unknown: { status: 400, message: 'something new' },
    });
    const ofRequest = (id: string): unknown => read(400, v1(`something new (request ${id})`));
    expect(ofRequest('4f-9a2')).toMatchObject({ unknown: { status: 400, message: 'something new (request #)' } });
    expect(read(503, v1('something new'))).not.toHaveProperty('unknown');
  });

  test.each([408, 425, 429, 500, 502, 503, 504, 507, 599, 100])('%i keeps the lines', (status) => {
    expect(read(status, '<h1>Bad Gateway</h1>')).toMatchObject({ kind: 'later', waitMs: null });
  });

  test.each([
    ['30', 30_000],
    [' 30 ', 30_000],
    ['1.5', 1500],
    ['300', 300_000],
    ['0', null],
    ['-1', null],
    ['soon', null],
    ['', null],
    ['1e9', null],
    ['999999999', 3_600_000],
    ['Sat, 21 Nov 2026 10:01:00 GMT', 60_000],
    ['Sat, 21 Nov 2026 09:00:00 GMT', null],
    ['Sat, 21 Nov 2036 10:00:00 GMT', 3_600_000],
  ])('Retry-After %j is read in seconds or as a date: %j ms', (asked, waitMs) => {
    const headers = { 'retry-after': asked, date: 'Sat, 21 Nov 2026 10:00:00 GMT' };
    expect(read(429, '', headers)).toEqual({ kind: 'later', status: 429, message: 'HTTP 429', waitMs });
    expect(read(503, '', headers)).toHaveProperty('waitMs', waitMs);
  });

  test('a date without a Date to compare it with requests no wait', () => {
    expect(read(503, '', { 'retry-after': 'Sat, 21 Nov 2026 10:01:00 GMT' })).toHaveProperty('waitMs', null);
  });
});

describe('the message', () => {
  test('is one short line without control and direction characters, for any body', () => {
    const nasty = fc.string({ unit: 'binary', maxLength: 2000 });
    fc.assert(
      fc.property(
        fc.constantFrom(200, 400, 401, 404, 413, 503),
        nasty,
        fc.constantFrom(asIs, v1),
        (status, text, wrap) => {
          const { message } = { message: '', ...read(status, wrap(text)) };
          expect([...message].length).toBeLessThanOrEqual(200);
          expect(message).not.toMatch(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/u);
        },
      ),
    );
  });

  test('conceal before they shorten, so that no part of a secret is left', () => {
    const token = 'sekret-token-0123456789';
    for (let padding = 100; padding < 200; padding += 1) {
      const answer = readAnswer({ status: 502, headers: {}, body: `${'x'.repeat(padding)}${token}` }, (text) =>
        text.replaceAll(token, '[secret]'),
      );
      expect(answer).toHaveProperty('message', expect.not.stringContaining('sekret'));
    }
  });
});

test.each([200, 401, 403, 404, 405])(
  'the hint of status %i names the keys of the destination and of no other',
  (status) => {
    const answer = readAnswer({ status, headers: {}, body: '' }, asIs, 'influxdb', settingNames('b'));
    expect(answer).toHaveProperty('hint', expect.stringMatching(/^destinations\.b\.[a-z]/));
    expect(answer).toHaveProperty('hint', expect.not.stringMatching(/influx\.[a-z]/));
  },
);

test.each([
  ['ENOTFOUND', 'the host of influx.url was not found', 'check influx.url and the name servers of this machine'],
  ['CERT_HAS_EXPIRED', 'the certificate of the database has expired', 'renew it, or check the clock of this machine'],
  ['CERT_NOT_YET_VALID', 'the certificate of the database is not valid yet', 'check the clock of this machine'],
  ['ECONNRESET', 'the connection was closed before a response came', ''],
  ['EOTHER', 'the request failed (EOTHER)', ''],
])('a request that fails with %s names the place to look at', (code, message, hint) => {
  expect(describeFailure(Object.assign(new Error(''), { code }), settingNames('influx'))).toEqual({ message, hint });
});
