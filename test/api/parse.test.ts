import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseAccount, parseDevicePage, parseTelemetryPage } from '../../src/api/parse.ts';
import { ApiFault } from '../../src/core/faults.ts';
import { parseTimestamp } from '../../src/core/time.ts';

const REQUEST = 'GET /x';
const AT = '2026-11-21T12:00:00.123456789Z';

function faultOf(parse: () => unknown): ApiFault {
  try {
    parse();
  } catch (error) {
    if (error instanceof ApiFault) return error;
    throw error;
  }
  throw new Error('it was accepted');
}

/** What `JSON.parse` gives for a text: the only way in which an answer comes in. */
const telemetry = (json: string) => parseTelemetryPage(JSON.parse(json), REQUEST);

describe('a telemetry page', () => {
  test('keeps times to the nanosecond, and values as they were served', () => {
    const page = telemetry(`{"device_id":"d","data":[
      {"recorded_at":"${AT}","values":{"t":1.5,"s":"on","b":true,"n":null,"o":{"x":[1]}}},
      {"recorded_at":"2026-11-21T11:00:00Z","values":{}}],"next_cursor":"c=="}`);
    expect(page).toEqual({
      deviceId: 'd',
      readings: [
        {
          recordedAt: 1_795_262_400_123_456_789n,
          values: [
            ['t', 1.5],
            ['s', 'on'],
            ['b', true],
            ['n', null],
            ['o', { x: [1] }],
          ],
        },
        { recordedAt: parseTimestamp('2026-11-21T11:00:00Z'), values: [] },
      ],
      rejected: [],
      nextCursor: 'c==',
    });
  });

  test('keeps sensors that are called like parts of JavaScript', () => {
    const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'length', '', '1'];
    const values = names.map((name) => `${JSON.stringify(name)}:1`).join();
    const [reading] = telemetry(`{"data":[{"recorded_at":"${AT}","values":{${values}}}]}`).readings;
    expect(reading?.values.map(([name]) => name).sort()).toEqual([...names].sort());
    expect(Object.getPrototypeOf({})).toBe(Object.prototype);
  });

  test('keeps a number that is too large as the number that JSON gives', () => {
    const [reading] = telemetry(`{"data":[{"recorded_at":"${AT}","values":{"x":1e400}}]}`).readings;
    expect(reading?.values).toEqual([['x', Number.POSITIVE_INFINITY]]);
  });

  test('takes missing values for none', () => {
    const page = telemetry(`{"data":[{"recorded_at":"${AT}"},{"recorded_at":"${AT}","values":null}]}`);
    expect(page.readings.map(({ values }) => values)).toEqual([[], []]);
    expect([page.deviceId, page.nextCursor]).toEqual([null, null]);
  });

  test.each([
    ['no object', '7'],
    ['null', 'null'],
    ['a list', '[]'],
    ['no time', '{"values":{"t":1}}'],
    ['a time that is null', '{"recorded_at":null}'],
    ['a time that is a number', '{"recorded_at":1795262400}'],
    ['a day that does not exist', '{"recorded_at":"2026-02-30T00:00:00Z"}'],
    ['no zone', '{"recorded_at":"2026-02-01T00:00:00"}'],
    ['inherited names only', '{"__proto__":{"recorded_at":"2026-11-21T12:00:00Z"}}'],
    ['values that are a list', `{"recorded_at":"${AT}","values":[1,2]}`],
    ['values that are a number', `{"recorded_at":"${AT}","values":5}`],
    [
      'values that are nested without end',
      `{"recorded_at":"${AT}","values":{"x":${'['.repeat(5000)}${']'.repeat(5000)}}}`,
    ],
  ])('sets a reading aside that is or has %s, and keeps the rest', (_what, json) => {
    const page = telemetry(`{"data":[{"recorded_at":"${AT}"},${json},{"recorded_at":"${AT}"}]}`);
    expect([page.readings.length, page.rejected.length]).toEqual([2, 1]);
    expect(page.rejected[0]?.reason).toMatch(/./);
  });

  test('keeps what it sets aside as JSON, shortened without a broken character', () => {
    const record = { recorded_at: 'never', note: `${'x'.repeat(1957)}😀${'y'.repeat(5000)}` };
    const [rejected] = parseTelemetryPage({ data: [record, { recorded_at: 'soon' }] }, REQUEST).rejected;
    expect(rejected?.record.length).toBeLessThanOrEqual(2001);
    expect(rejected?.record.isWellFormed()).toBe(true);
    expect(rejected?.record).toMatch(/^\{"recorded_at":"never","note":"x+/);
  });

  test.each([
    ['null', 'null'],
    ['a list', '[]'],
    ['no data', '{}'],
    ['data that is an object', '{"data":{}}'],
    ['data that is null', '{"data":null}'],
    ['an empty cursor, which the document rules out', '{"data":[],"next_cursor":""}'],
    ['a cursor that is a number', '{"data":[],"next_cursor":7}'],
    ['a cursor that is an object', '{"data":[],"next_cursor":{}}'],
    ['a cursor that is half a character', '{"data":[],"next_cursor":"\\ud800"}'],
    ['a cursor without measure', `{"data":[],"next_cursor":"${'c'.repeat(4097)}"}`],
    ['more records than can be asked for', `{"data":[${'7,'.repeat(1000)}7]}`],
  ])('that is or has %s is malformed', (_what, json) => {
    expect(faultOf(() => telemetry(json))).toMatchObject({ kind: 'malformed', facts: { request: REQUEST } });
  });

  test('is parsed at far more than a hundred thousand readings a second', () => {
    const data = Array.from({ length: 200 }, (_, i) => ({
      recorded_at: `2026-11-21T12:00:${String(i % 60).padStart(2, '0')}.123456Z`,
      values: { temperature: 20 + i, humidity: 40.5, pressure: 1013.25 },
    }));
    const json = JSON.stringify({ device_id: 'd', data });
    // A million readings: at the promised rate, ten seconds, and the limit of a test is sixty.
    for (let i = 0; i < 5000; i += 1) expect(telemetry(json).readings.length).toBe(200);
  });
});

test('any JSON whatever gives a record or a fault, nothing else', () => {
  const names = [
    'data',
    'next_cursor',
    'device_id',
    'recorded_at',
    'values',
    'workspace_id',
    'plan',
    'usage',
    '__proto__',
  ];
  const json = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      fc.jsonValue(),
      tie('object'),
      fc.array(tie('value'), { maxLength: 4 }),
    ),
    object: fc.dictionary(fc.oneof(fc.constantFrom(...names), fc.string()), tie('value'), { maxKeys: 6 }),
  })).value;
  fc.assert(
    fc.property(json, (value) => {
      const body = JSON.parse(JSON.stringify(value) ?? 'null');
      for (const parse of [parseAccount, parseDevicePage, parseTelemetryPage]) {
        try {
          parse(body, REQUEST);
        } catch (error) {
          expect(error).toBeInstanceOf(ApiFault);
        }
      }
    }),
    { numRuns: 500 },
  );
});
