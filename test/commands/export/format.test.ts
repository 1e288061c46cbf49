/**
 * The formats of --export (csv, ndjson, lp), read back by independent parsers and compared with the archived values.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createFormatter } from '../../../src/commands/export/format.ts';
import { descriptiveTag, encodeLine, type FieldValue, identityTag } from '../../../src/core/lines/line-protocol.ts';
import { parseTimestamp } from '../../../src/core/time.ts';
import { parseCsv } from '../../support/csv.ts';
import { parseReferenceLine } from '../../support/reference-parser.ts';

interface Reported {
  readonly device: string;
  readonly name: string;
  readonly sensor: string;
  readonly value: FieldValue;
  readonly at: bigint;
}

const FIELDS = { number: 'value', boolean: 'flag', string: 'text' } as const;

function lineOf({ device, name, sensor, value, at }: Reported): string {
  const field = FIELDS[typeof value as keyof typeof FIELDS];
  const line = encodeLine({
    measurement: 'telemetry',
    tags: [
      ['device_id', identityTag(device)],
      ['sensor', identityTag(sensor)],
      ['device_name', descriptiveTag(name)],
      ['workspace_id', identityTag('w')],
    ],
    fields: [[field, value]],
    at,
  });
  if (line === null) throw new Error('no line');
  return line;
}

const RANGES_LISTED: Reported = { device: 'd', name: 'n', sensor: 's', value: 21.5, at: 1_700_000_000_123_456_789n };

const csv = (...reported: Partial<Reported>[]): string =>
  createFormatter('csv').text(reported.map((each) => lineOf({ ...RANGES_LISTED, ...each })));

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.string({
    unit: fc.constantFrom('=', '+', '-', '@', '"', ',', '\r', '\n', '\t', ' ', "'", '\\', 'a', '＝'),
    maxLength: 8,
  }),
);
const reported: fc.Arbitrary<Reported> = fc.record({
  device: text,
  name: text,
  sensor: text,
  value: fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean(), text),
  at: fc.bigInt({ min: 0n, max: 9_223_372_036_854_775_000n }),
});

describe('csv', () => {
  test('has a header, a row a value, the exact time, and the type of the value', () => {
    expect(createFormatter('csv').header).toBe('time,device_id,device_name,sensor,value,type\r\n');
    expect(csv({}, { value: -0.5, at: 0n }, { value: true, at: 1_700_000_000_000_000_000n }, { value: '7' })).toBe(
      [
        '2023-11-14T22:13:20.123456789Z,d,n,s,21.5,number',
        '1970-01-01T00:00:00Z,d,n,s,-0.5,number',
        '2023-11-14T22:13:20Z,d,n,s,true,boolean',
        '2023-11-14T22:13:20.123456789Z,d,n,s,7,text',
        '',
      ].join('\r\n'),
    );
  });

  test.each([
    ['=HYPERLINK("http://x";"y")', `"'=HYPERLINK(""http://x"";""y"")"`],
    ['+1', "'+1"],
    ['-2+3', "'-2+3"],
    ['@SUM(A1)', "'@SUM(A1)"],
    [' =1', "' =1"],
    ['＝1', "'＝1"],
    ['Ofen, links', '"Ofen, links"'],
    ['say "x"', '"say ""x"""'],
    ['a=b', 'a=b'],
  ])('a name %j is a cell and no formula', (name, cell) => {
    expect(csv({ name }).split('d,').slice(1).join('d,')).toBe(`${cell},s,21.5,number\r\n`);
    expect(csv({ value: name }).endsWith(`,${cell},text\r\n`)).toBe(true);
  });

  test('equals the archived values when a CSV parser reads it back, and begins no cell like a formula', () => {
    fc.assert(
      fc.property(fc.array(reported, { maxLength: 20 }), (all) => {
        const lines = all.map(lineOf);
        const rows = parseCsv(createFormatter('csv').text(lines));
        expect(rows).toHaveLength(all.length);
        rows.forEach((row, index) => {
          const { tags, fields, at } = parseReferenceLine(lines[index] ?? '');
          const [time = '', id = '', name = '', sensor = '', value = '', type = ''] = row;
          expect(row).toHaveLength(6);
          expect(parseTimestamp(time)).toBe(at);
          const [[key, wanted] = ['', '']] = [...fields];
          expect(type).toBe({ value: 'number', flag: 'boolean', text: 'text' }[key]);
          const plain = (cell: string): string => (/^'\s*[=+\-@＝＋－＠]/u.test(cell) ? cell.slice(1) : cell);
          expect([id, name, sensor].map(plain)).toEqual(
            ['device_id', 'device_name', 'sensor'].map((tag) => plain(tags.get(tag) ?? '')),
          );
          if (type === 'number') expect(Number(value)).toBe(Number(wanted));
          else expect(plain(value)).toBe(plain(String(wanted)));
          const cells = type === 'text' ? [id, name, sensor, value] : [id, name, sensor];
          for (const cell of cells) expect(cell).not.toMatch(/^\s*[=+\-@＝＋－＠]/u);
        });
      }),
      { numRuns: 300 },
    );
  });
});

describe('ndjson', () => {
  test('is an object a line, numbers to the digit', () => {
    const formatter = createFormatter('ndjson');
    expect(formatter.header).toBe('');
    expect(
      formatter.text([
        lineOf({ ...RANGES_LISTED, value: 1e21 }),
        lineOf({ ...RANGES_LISTED, value: false, name: 'a "b"' }),
      ]),
    ).toBe(
      [
        '{"time":"2023-11-14T22:13:20.123456789Z","device_id":"d","device_name":"n","sensor":"s","workspace_id":"w","value":1e+21}',
        '{"time":"2023-11-14T22:13:20.123456789Z","device_id":"d","device_name":"a \\"b\\"","sensor":"s","workspace_id":"w","value":false}',
        '',
      ].join('\n'),
    );
  });

  test('equals the archived values', () => {
    fc.assert(
      fc.property(fc.array(reported, { maxLength: 20 }), (all) => {
        const lines = all.map(lineOf);
        const rows = createFormatter('ndjson').text(lines).split('\n').slice(0, -1);
        expect(rows).toHaveLength(all.length);
        rows.forEach((row, index) => {
          const { tags, fields, at } = parseReferenceLine(lines[index] ?? '');
          const { time, value, ...rest } = JSON.parse(row);
          expect(parseTimestamp(time)).toBe(at);
          expect(value).toBe([...fields.values()][0]);
          expect(Object.fromEntries(Object.entries(rest).filter(([, tag]) => tag !== ''))).toEqual(
            Object.fromEntries(tags),
          );
        });
      }),
      { numRuns: 300 },
    );
  });
});

test('lp is the lines as they are', () => {
  const lines = [lineOf(RANGES_LISTED), 'workspace,workspace_id=w devices=1 5'];
  expect(createFormatter('lp').text(lines)).toBe(`${lines.join('\n')}\n`);
  expect(createFormatter('lp').text([]) + createFormatter('lp').header).toBe('');
});

test('more series than are remembered, and ones that begin alike, keep their own columns', () => {
  const all = Array.from({ length: 9000 }, (_, index) => ({
    ...RANGES_LISTED,
    sensor: `s${index % 4500}`,
    value: index,
  }));
  const alike = ['s', 's ', 's 1', 's', 's1'].map((sensor, index) => ({ ...RANGES_LISTED, sensor, value: index }));
  const rows = parseCsv(createFormatter('csv').text([...all, ...alike].map(lineOf)));
  expect(rows.map(([, , , sensor]) => sensor)).toEqual([...all, ...alike].map(({ sensor }) => sensor));
});
