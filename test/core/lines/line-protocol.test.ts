/** Points as line protocol: names, escaping, limits and reading back, by a reference parser and a real InfluxDB. */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  descriptiveTag,
  encodeLine,
  FIELD_KEYS,
  type Field,
  identityTag,
  MEASUREMENTS,
  TAG_KEYS,
  type Tag,
} from '../../../src/core/lines/line-protocol.ts';
import { kindOf, readFieldValue, readLine, seriesOf } from '../../../src/core/lines/line-reader.ts';
import { type Influxd, influxdAvailable, startInfluxd } from '../../support/influxd.ts';
import { parseReferenceLine } from '../../support/reference-parser.ts';

/** Texts as a hostile or broken device would choose them. */
const HOSTILE = [
  'a,b=c d',
  'ends\\',
  '\\',
  '\\,',
  'two\\\\ends\\\\',
  ' lead and tail ',
  ' ',
  '"quoted"',
  'line\nbreak',
  'x\r\ntelemetry value=666 1',
  'tab\tand\u0000nul',
  '\u0085next\u2028line\u2029para',
  'lone \ud800 surrogate',
  'time',
  '__proto__',
  '#comment',
  '_field',
  'ünï🙂code',
  'e\u0301 is not é',
  '1i',
  'true',
  '=',
  ',',
  'x~0badcafe',
  '',
];

const anyText = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }), fc.constantFrom(...HOSTILE));
const anyAt = fc.bigInt({ min: 0n, max: 9_223_372_036_854_775_000n });
const anyFields = fc.uniqueArray(
  fc.tuple(fc.constantFrom(...FIELD_KEYS), fc.oneof(fc.double(), fc.boolean(), anyText)),
  { selector: ([key]) => key, maxLength: 5 },
);
const anyPoint = fc.record({
  measurement: fc.constantFrom(...MEASUREMENTS),
  tags: fc.tuple(anyText, anyText, anyText).map(([device, sensor, name]): Tag[] => [
    ['device_id', identityTag(device)],
    ['sensor', identityTag(sensor)],
    ['device_name', descriptiveTag(name)],
  ]),
  fields: anyFields,
  at: anyAt,
});

/** A line that must be there. */
function lineOf(sensor: string, fields: readonly Field[], at = 1n): string {
  const line = encodeLine({ measurement: 'telemetry', tags: [['sensor', identityTag(sensor)]], fields, at });
  if (line === null) throw new Error('no line');
  return line;
}

describe('names', () => {
  test('no tag key is a field key, none is reserved, and all begin with a letter', () => {
    const names = [...TAG_KEYS, ...FIELD_KEYS];
    expect(new Set(names).size).toBe(names.length);
    for (const name of [...names, ...MEASUREMENTS]) {
      expect(name).toMatch(/^[a-z][a-z_]*$/);
      expect(name).not.toBe('time');
    }
  });
});

describe('tag values', () => {
  test('plain names stay as they are', () => {
    for (const name of ['temperature', 'a,b=c d', '"quoted"', 'ünï🙂code', 'time', ' x '])
      expect(identityTag(name)).toBe(name);
  });

  test('backslashes become slashes and control characters spaces, with a mark on identifiers', () => {
    expect(identityTag('a\\b')).toMatch(/^a\/b~[0-9a-f]{8}$/);
    expect(identityTag('a\nb')).toMatch(/^a b~[0-9a-f]{8}$/);
    expect(descriptiveTag('a\\\u2028b\u0085')).toBe('a/ b ');
    expect(descriptiveTag('\ud800')).toBe('\ufffd');
  });

  test('an empty name keeps a tag where it identifies and has none where it describes', () => {
    expect(identityTag('')).toMatch(/^~[0-9a-f]{8}$/);
    expect(descriptiveTag('')).toBe('');
    const tags: Tag[] = [
      ['device_id', identityTag('d')],
      ['device_name', descriptiveTag('')],
    ];
    expect(encodeLine({ measurement: 'device', tags, fields: [['online', 1]], at: 5n })).toBe(
      'device,device_id=d online=1 5',
    );
  });

  test('are cut to 1 KiB of UTF-8 without splitting a character', () => {
    for (const unit of ['x', 'é', '€', '🙂', '\\']) {
      const long = unit.repeat(1200);
      for (const cut of [identityTag(long), descriptiveTag(long)]) {
        expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(1024);
        expect(Buffer.byteLength(cut)).toBeGreaterThan(1020);
        expect(cut.isWellFormed()).toBe(true);
      }
    }
    expect(identityTag('x'.repeat(1024))).toBe('x'.repeat(1024));
  });

  test('different names never become one series', () => {
    fc.assert(
      fc.property(anyText, anyText, (a, b) => {
        fc.pre(a !== b);
        expect(identityTag(a)).not.toBe(identityTag(b));
        // Not even where one is what became of the other.
        fc.pre(identityTag(a) !== a);
        expect(identityTag(identityTag(a))).not.toBe(identityTag(a));
      }),
      { numRuns: 1000 },
    );
    const alike = [
      'a\\b',
      'a/b',
      'a\nb',
      'a b',
      'a\tb',
      'a\rb',
      '\ud800',
      '\ud801',
      '\ufffd',
      '',
      `${'x'.repeat(1024)}y`,
      `${'x'.repeat(1024)}z`,
    ];
    expect(new Set(alike.map(identityTag)).size).toBe(alike.length);
  });
});

describe('lines', () => {
  test('numbers are floats, minus zero is zero, and non-finite values are left out', () => {
    expect(lineOf('s', [['value', -0]])).toBe('telemetry,sensor=s value=0 1');
    expect(lineOf('s', [['value', 21]])).toBe('telemetry,sensor=s value=21 1');
    expect(
      lineOf('s', [
        ['value', 5e-324],
        ['open', 1e21],
      ]),
    ).toBe('telemetry,sensor=s value=5e-324,open=1e+21 1');
    expect(
      lineOf('s', [
        ['value', Number.NaN],
        ['flag', false],
      ]),
    ).toBe('telemetry,sensor=s flag=false 1');
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      expect(encodeLine({ measurement: 'telemetry', tags: [], fields: [['value', value]], at: 1n })).toBeNull();
    }
    expect(encodeLine({ measurement: 'telemetry', tags: [], fields: [], at: 1n })).toBeNull();
  });

  test('texts are quoted, kept on one line, and cut to 16 KiB with a hash of the full text', () => {
    expect(lineOf('s', [['text', 'say "hi" \\ \n']])).toBe('telemetry,sensor=s text="say \\"hi\\" \\\\  " 1');
    const [a, b] = ['a', 'b'].map((end) => lineOf('s', [['text', '€'.repeat(10_000) + end]]));
    expect(a).not.toBe(b);
    expect(Buffer.byteLength(a ?? '')).toBeLessThan(16 * 1024 + 100);
    expect(a).toMatch(/€~[0-9a-f]{8}" 1$/);
    const [tab, space] = ['\t', ' '].map((middle) =>
      lineOf('s', [['text', `${'x'.repeat(9)}${middle}${'y'.repeat(20_000)}`]]),
    );
    expect(tab).not.toBe(space);
  });

  test('any point gives a line that every server reads as the same point', () => {
    fc.assert(
      fc.property(anyPoint, (point) => {
        const line = encodeLine(point);
        const kept = point.fields.filter(([, value]) => typeof value !== 'number' || Number.isFinite(value));
        if (kept.length === 0) {
          expect(line).toBeNull();
          return;
        }
        const read = parseReferenceLine(line ?? '');
        expect(read.measurement).toBe(point.measurement);
        expect(read.at).toBe(point.at);
        expect([...read.tags]).toEqual(point.tags.filter(([, value]) => value !== ''));
        expect([...read.fields.keys()]).toEqual(kept.map(([key]) => key));
        for (const [key, value] of kept) {
          if (typeof value !== 'string') expect(read.fields.get(key) === value).toBe(true);
          else expect(read.fields.get(key)).toBe(value.toWellFormed().replace(/[\p{Cc}\u2028\u2029]/gu, ' '));
        }
      }),
      { numRuns: 2000 },
    );
  });

  test('a point always gives the same bytes, and different identities give different series', () => {
    fc.assert(
      fc.property(anyPoint, anyText, (point, other) => {
        expect(encodeLine(point)).toBe(encodeLine(structuredClone(point)));
        const line = encodeLine({ ...point, fields: [['value', 1]] }) ?? '';
        const tags: Tag[] = point.tags.map(([key, value]) => [key, key === 'sensor' ? identityTag(other) : value]);
        fc.pre(tags[1]?.[1] !== point.tags[1]?.[1]);
        expect(seriesOf(encodeLine({ ...point, tags, fields: [['value', 1]] }) ?? '')).not.toBe(seriesOf(line));
      }),
    );
  });
});

describe('reading back', () => {
  test('parses every line of the encoder like the reference', () => {
    fc.assert(
      fc.property(anyPoint, (point) => {
        const line = encodeLine(point);
        fc.pre(line !== null);
        const ours = readLine(line);
        const reference = parseReferenceLine(line);
        expect(ours.measurement).toBe(reference.measurement);
        expect(ours.at).toBe(reference.at);
        expect(ours.tags).toEqual([...reference.tags]);
        expect(ours.fields.map(([key, raw]) => [key, readFieldValue(raw)])).toEqual([...reference.fields]);
        expect(line).toBe(`${seriesOf(line)} ${ours.fields.map((field) => field.join('=')).join(',')} ${ours.at}`);
      }),
      { numRuns: 2000 },
    );
  });

  test('the kind of a line is its measurement and fields, whatever its tags and texts hold', () => {
    expect(kindOf(lineOf('a b,c', [['text', 'x,y=1 z" 2']]))).toBe('telemetry text');
    expect(
      kindOf(
        lineOf('a', [
          ['value', 1],
          ['flag', true],
        ]),
      ),
    ).toBe('telemetry value,flag');
  });

  test('a foreign line is an error that quotes it', () => {
    for (const text of [
      '',
      'x',
      'm value=1',
      'm  1',
      'm value= 1',
      'm,a value=1 1',
      'm value="a 1',
      'm value="a"b 1',
      'm value=1 1.5',
    ]) {
      expect(() => readLine(text), text).toThrow('not a valid line of line protocol');
    }
  });

  test('is linear: a long hostile line costs no more than its length', () => {
    const line = lineOf('\\, = '.repeat(170), [['text', '\\" ,='.repeat(3000)]]);
    expect(readFieldValue(readLine(line).fields[0]?.[1] ?? '')).toMatch(/^\\" ,=/);
  });
});

describe.runIf(influxdAvailable())('a real InfluxDB', () => {
  let influxd: Influxd;
  beforeAll(async () => {
    influxd = await startInfluxd();
  });
  afterAll(async () => await influxd.close());

  test('reads hostile names, texts and numbers back as the encoder means them', async () => {
    const numbers = [0, -0, 0.1, -1.5e-7, 5e-324, 1.7976931348623157e308, 1e21, 2 ** 53 + 2, 123456789.12345679];
    const points = HOSTILE.flatMap((text, index) => {
      const sensor = identityTag(text);
      const tags: Tag[] = [
        ['sensor', sensor],
        ['device_name', descriptiveTag(text)],
      ];
      const fields: Field[] = [
        ['value', numbers[index % numbers.length] ?? 0],
        ['text', text],
        ['flag', index % 2 === 0],
      ];
      return [{ measurement: 'telemetry', tags, fields, at: 1_700_000_000_123_456_789n + BigInt(index) } as const];
    });
    const status = await influxd.write('tidemark', points.map((point) => encodeLine(point)).join('\n'));
    expect(status).toBe(204);

    const rows = await influxd.query('tidemark', 'SELECT * FROM telemetry');
    expect(rows).toHaveLength(points.length);
    points.forEach(({ tags, fields, at }, index) => {
      const row = rows.find(({ time }) => time === at) ?? {};
      const { sensor, device_name, value, text, flag } = row;
      expect([sensor, device_name ?? ''], `names ${index}`).toEqual(tags.map(([, tag]) => tag));
      const plain = String(fields[1]?.[1])
        .toWellFormed()
        .replace(/[\p{Cc}\u2028\u2029]/gu, ' ');
      expect([value, text, flag], `values ${index}`).toEqual([Number(fields[0]?.[1]) + 0, plain, fields[2]?.[1]]);
    });
    const series = await influxd.query('tidemark', 'SHOW SERIES');
    expect(series).toHaveLength(HOSTILE.length);
  });
});
