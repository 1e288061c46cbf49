/** The lines of the log translated for each kind of database, and the identity of a destination. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  describeIdentity,
  destinationIdentity,
  type FindMoved,
  isKindUnknown,
  type MovedValue,
  translate,
  withKind,
} from '../../../src/core/lines/dialect.ts';
import { encodeLine, type Field, identityTag, type Point } from '../../../src/core/lines/line-protocol.ts';
import { readLine } from '../../../src/core/lines/line-reader.ts';

const none: FindMoved = () => [];
const never: FindMoved = () => {
  throw new Error('nothing can be displaced here');
};

const line = (fields: Point['fields'], at: bigint, device = 'd', sensor = 's'): string =>
  encodeLine({
    measurement: 'telemetry',
    tags: [
      ['device_id', identityTag(device)],
      ['sensor', identityTag(sensor)],
    ],
    fields,
    at,
  }) ?? '';

const victoria = (lines: readonly string[], find = none) => translate('victoriametrics', lines, find);

describe('the lines for InfluxDB', () => {
  test('is the lines of the log themselves, and nothing is looked up', () => {
    const lines = [line([['value', 1]], 1n), line([['text', 'x']], 1_000_001n)];
    expect(translate('influxdb', lines, never)).toEqual({ lines, origins: [0, 1] });
  });
});

describe('the lines for VictoriaMetrics', () => {
  test('is numbers: texts are left out, flags are 1 and 0, and a line with neither is not sent', () => {
    const fields: Field[] = [
      ['name', 'a "b", c=1 \\'],
      ['online', true],
      ['is_addon', false],
      ['latitude', -53.25],
    ] as never;
    const lines = [line([['text', 'on']], 4_000_000n), line(fields, 5_000_000n), line([['flag', true]], 6_000_000n)];
    expect(victoria(lines, never)).toEqual({
      lines: [
        'telemetry,device_id=d,sensor=s online=1,is_addon=0,latitude=-53.25 5',
        'telemetry,device_id=d,sensor=s flag=1 6',
      ],
      origins: [1, 2],
    });
  });

  test('has times in milliseconds, downwards, also before 1970', () => {
    const times = [0n, 1n, 999_999n, 1_000_000n, 1_700_000_000_123_999_999n, -1n, -1_000_000n, -1_000_001n];
    const sent = victoria(times.map((at) => line([['value', 1]], at))).lines;
    expect(sent.map((text) => text.split(' ').at(-1))).toEqual(['0', '0', '0', '1', '1700000000123', '-1', '-1', '-2']);
  });

  test('puts a value that is displaced by k nanoseconds k milliseconds beside its instant', () => {
    const at = 1_700_000_000_123_456_789n;
    const odd = 'de,vi=ce\\';
    const displaced: MovedValue[] = [
      { deviceId: odd, sensor: 's t', recordedNs: at, writtenNs: at + 1n },
      { deviceId: odd, sensor: 's t', recordedNs: at - 1n, writtenNs: at + 2n },
      { deviceId: 'other', sensor: 's t', recordedNs: at, writtenNs: at + 3n },
    ];
    const asked: bigint[][] = [];
    const find: FindMoved = (instants) => {
      asked.push([...instants]);
      return displaced;
    };
    const lines = [0n, 1n, 2n, 3n].map((more) => line([['value', 1]], at + more, odd, 's t'));
    const sent = victoria(lines, find).lines.map((text) => text.split(' ').at(-1));
    expect(sent).toEqual(['1700000000123', '1700000000124', '1700000000126', '1700000000123']);
    expect(asked).toEqual([[at, at + 1n, at + 2n, at + 3n]]);
  });

  test('needs no lookup for whole milliseconds and for other lines than telemetry', () => {
    const other = encodeLine({ measurement: 'alert', tags: [], fields: [['threshold', 1]], at: 1_000_001n }) ?? '';
    expect(victoria([line([['value', 1]], 5_000_000n), other], never).lines).toHaveLength(2);
  });

  test('is the same for the same line, whatever stands beside it, and valid whatever the names are', () => {
    const texts = fc.string({ unit: 'grapheme', maxLength: 30 });
    const values = fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean(), texts);
    const points = fc.record({
      device: texts,
      sensor: texts,
      value: values,
      at: fc.bigInt({ min: 0n, max: 2n ** 62n }),
    });
    fc.assert(
      fc.property(fc.array(points, { maxLength: 20 }), (list) => {
        const lines = list.map(({ device, sensor, value, at }) => {
          const field = typeof value === 'number' ? 'value' : typeof value === 'boolean' ? 'flag' : 'text';
          return line([[field, value]], at, device, sensor);
        });
        const whole = victoria(lines);
        whole.lines.forEach((text, nth) => {
          const origin = lines[whole.origins[nth] ?? -1] ?? '';
          expect(victoria([origin]).lines).toEqual([text]);
          const [sent, kept] = [readLine(text), readLine(origin)];
          expect(sent.tags).toEqual(kept.tags);
          expect(sent.at).toBe(kept.at / 1_000_000n);
          for (const [, raw] of sent.fields) expect(raw).toMatch(/^-?\d+(\.\d+)?(e[+-]\d+)?$/);
        });
        const numeric = list.filter(({ value }) => typeof value !== 'string').length;
        expect(whole.lines).toHaveLength(numeric);
      }),
    );
  });
});

describe('the identity of a destination', () => {
  const assign = { url: 'http://db:8086', org: 'o', bucket: 'b' };

  test('is frozen: another text would send everything once more', () => {
    expect(destinationIdentity({ kind: 'influxdb', ...assign })).toBe('["influxdb","http://db:8086","o","b"]');
    expect(withKind(destinationIdentity({ kind: 'auto', ...assign }), 'victoriametrics')).toBe(
      destinationIdentity({ kind: 'victoriametrics', ...assign }),
    );
  });

  test('shows whether the kind is known', () => {
    const kinds = ['auto', 'influxdb', 'victoriametrics'] as const;
    expect(kinds.map((kind) => isKindUnknown(destinationIdentity({ kind, ...assign })))).toEqual([true, false, false]);
    // Written by hand, or by another version with other spaces.
    expect(['[ "auto", "http://db" ]', '', '{}', '["automatic"]'].map(isKindUnknown)).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });

  test('is reported in words without credentials, whatever it is', () => {
    expect(describeIdentity(destinationIdentity({ kind: 'influxdb', ...assign }))).toBe(
      'InfluxDB at http://db:8086, bucket b',
    );
    const secret = destinationIdentity({
      kind: 'victoriametrics',
      url: 'http://u:pass@vm:8428/insert/0/influx',
      org: '',
      bucket: '',
    });
    expect(describeIdentity(secret)).toBe('VictoriaMetrics at http://vm:8428/insert/0/influx');
    for (const odd of ['', 'here', '{}', '[]', '[1,2]', '["influxdb","no url"]']) {
      expect(describeIdentity(odd)).toMatch(/^(another destination|InfluxDB at an address)$/);
    }
  });
});
