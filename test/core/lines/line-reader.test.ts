/** Lines of this program are read as they were written, and no other text is accepted as one. */
import { describe, expect, test } from 'vitest';
import { kindOf, readFieldValue, readLine, readSeries, seriesOf } from '../../../src/core/lines/line-reader.ts';

const ODD = 'telemetry,device_id=a\\,b\\ c\\=d,sensor=x value=21.5,text="a, \\"b\\" = c\\\\ d",on=true -5';

describe('a line with separators in its tags and texts', () => {
  test('comes apart at the separators that are not escaped', () => {
    expect(readLine(ODD)).toEqual({
      measurement: 'telemetry',
      tags: [
        ['device_id', 'a,b c=d'],
        ['sensor', 'x'],
      ],
      fields: [
        ['value', '21.5'],
        ['text', '"a, \\"b\\" = c\\\\ d"'],
        ['on', 'true'],
      ],
      at: -5n,
    });
  });

  test('has a series that reads back to the same tags, and a kind without values', () => {
    expect(seriesOf(ODD)).toBe('telemetry,device_id=a\\,b\\ c\\=d,sensor=x');
    expect(readSeries(seriesOf(ODD))).toEqual(readLine(ODD).tags);
    expect(kindOf(ODD)).toBe('telemetry value,text,on');
  });
});

test.each([
  ['21.5', 21.5],
  ['-1e-7', -1e-7],
  ['true', true],
  ['false', false],
  ['"true"', 'true'],
  ['""', ''],
  ['"a \\"b\\" \\\\n"', 'a "b" \\n'],
] as const)('the value %s is %j', (raw, value) => {
  expect(readFieldValue(raw)).toBe(value);
});

test.each([
  ['nothing', ''],
  ['no fields', 'telemetry,device_id=a 5'],
  ['no time', 'telemetry value=1'],
  ['a time that is no whole number', 'telemetry value=1 5.5'],
  ['no measurement', ' value=1 5'],
  ['a tag without a value', 'telemetry,device value=1 5'],
  ['a tag without a key', 'telemetry,=a value=1 5'],
  ['a field without a value', 'telemetry value= 5'],
  ['a field without a key', 'telemetry =1 5'],
  ['a text that does not end', 'telemetry text="abc 5'],
  ['something behind a text', 'telemetry text="abc"d 5'],
])('%s is no line of this program', (_what, line) => {
  expect(() => readLine(line)).toThrow(/^not a valid line of line protocol/);
});

test('the error about a long text shows its beginning alone', () => {
  expect(() => readLine('x'.repeat(10_000))).toThrow(/^.{0,260}$/s);
});
