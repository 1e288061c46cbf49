/**
 * A day point by point: missing, different, extra and known to be missing points, and the facts of a sum alone.
 */
import { describe, expect, test } from 'vitest';
import {
  beginExamination,
  collectInto,
  emptyFindings,
  endExamination,
  examineRange,
  type Findings,
  type RangeInput,
  type Returned,
} from '../../../src/commands/verify/examine.ts';
import { addPoint, emptySum } from '../../../src/core/lines/points.ts';
import type { ArchivedLine } from '../../../src/core/state/verify.ts';

const line = (sensor: string, value: number, at: number): string =>
  `telemetry,device_id=d,sensor=${sensor},device_name=d,workspace_id=w value=${value} ${at}`;
const acknowledged = (...lines: string[]): ArchivedLine[] =>
  lines.map((each) => ({ line: each, isAcknowledged: true }));

interface Case {
  readonly archived?: readonly ArchivedLine[];
  readonly there?: readonly (readonly [at: number, sensor: string, value: number])[];
  readonly change?: Partial<RangeInput>;
  readonly quarantined?: readonly string[];
  readonly cleared?: RangeInput['archived']['cleared'];
  /** Points that the day's sum counts; without it the day is not ended by its sum. */
  readonly counted?: readonly (readonly [at: number, sensor: string, value: number])[];
  readonly texts?: number;
  readonly historyFrom?: bigint;
  readonly knownMissingPoints?: number;
}

function examine(given: Case): { findings: Findings; resend: string[] } {
  const { archived = [], there = [], change = {}, quarantined = [], cleared = [], counted } = given;
  const day = beginExamination(given.historyFrom ?? 0n);
  const returned: Returned = new Map();
  const take = collectInto(returned);
  for (const [at, sensor, value] of there) take(`${at}`, sensor, `value=${value}`);
  const kind = change.kind ?? 'influxdb';
  const range = { from: 0n, to: 10n ** 18n };
  const archivedDay = { lines: archived, quarantined, cleared };
  const covered = [range];
  examineRange(day, {
    kind,
    archived: archivedDay,
    returned,
    findMoved: () => [],
    knownMissing: [],
    covered,
    range,
    ...change,
  });
  if (counted === undefined) return day;
  const sum = emptySum();
  for (const [at, sensor, value] of counted) addPoint(sum, `${at} ${sensor} value=${value}`);
  const keptDay = { day: 0, readings: 1, texts: given.texts ?? 0, ...sum };
  return {
    findings: endExamination(day, { kind, archived: keptDay, knownMissingPoints: given.knownMissingPoints ?? 0 }),
    resend: day.resend,
  };
}

describe('where the archive keeps the lines', () => {
  test.each<[string, Case, Partial<Findings>, string[]]>([
    ['all there', { archived: acknowledged(line('a', 1, 5)), there: [[5, 'a', 1]] }, {}, []],
    ['missing', { archived: acknowledged(line('a', 1, 5)) }, { missing: 1 }, [line('a', 1, 5)]],
    [
      'different',
      { archived: acknowledged(line('a', 1, 5)), there: [[5, 'a', 2]] },
      { different: 1 },
      [line('a', 1, 5)],
    ],
    ['extra', { there: [[5, 'a', 2]] }, { extra: 1 }, []],
    [
      'extra at times that are not covered',
      {
        there: [
          [5, 'a', 2],
          [9, 'a', 2],
        ],
        change: { covered: [{ from: 0n, to: 9n }] },
      },
      { extra: 2, extra_in_gaps: 1 },
      [],
    ],
    [
      'extra in a gap of the history, and before it',
      {
        there: [
          [2, 'a', 2],
          [3, 'a', 2],
          [5, 'a', 2],
          [9, 'a', 2],
        ],
        change: { covered: [{ from: 5n, to: 9n }] },
        historyFrom: 5n,
      },
      { extra: 4, extra_in_gaps: 3, extra_before_history: 2 },
      [],
    ],
    [
      'there twice',
      {
        archived: acknowledged(line('a', 1, 5)),
        there: [
          [5, 'a', 1],
          [5, 'a', 1],
        ],
      },
      { extra: 1 },
      [],
    ],
    [
      'another sensor',
      { archived: acknowledged(line('a', 1, 5)), there: [[5, 'b', 1]] },
      { missing: 1, extra: 1 },
      [line('a', 1, 5)],
    ],
    ['waiting', { archived: [{ line: line('a', 1, 5), isAcknowledged: false }] }, { pending: 1 }, []],
    [
      'waiting, and there',
      { archived: [{ line: line('a', 1, 5), isAcknowledged: false }], there: [[5, 'a', 1]] },
      {},
      [],
    ],
    ['refused', { archived: acknowledged(line('a', 1, 5)), quarantined: [line('a', 1, 5)] }, { quarantined: 1 }, []],
    ['refused, without its block', { quarantined: [line('a', 1, 5)] }, { quarantined: 1 }, []],
    [
      'missing, as many as are named',
      {
        archived: acknowledged(line('a', 1, 5), line('a', 2, 6)),
        change: { knownMissing: [{ from: 0n, to: 9n, points: 1 }] },
      },
      { known_missing: 1, missing: 1 },
      [line('a', 2, 6)],
    ],
    [
      'numbers that a database packs',
      {
        archived: acknowledged(line('a', 0.1, 5_000_000)),
        there: [[5_000_000, 'a', 0.1000000000001]],
        change: { kind: 'victoriametrics' },
      },
      {},
      [],
    ],
    [
      'rounded digits in an InfluxDB are another value',
      { archived: acknowledged(line('a', 0.1, 5)), there: [[5, 'a', 0.1000000000001]] },
      { different: 1 },
      [line('a', 0.1, 5)],
    ],
  ])('%s', (_name, given, found, resend) => {
    const examined = examine(given);
    expect(examined.findings).toEqual({ ...emptyFindings(), ...found });
    expect(examined.resend).toEqual(resend);
  });
});

describe('where the archive has cleared the lines', () => {
  const cleared = [{ from: 0n, to: 100n }];
  const two = [
    [5, 'a', 1],
    [6, 'a', 2],
  ] as const;
  test.each<[string, Case, Partial<Findings>]>([
    ['equal by the sum of the day', { cleared, there: two, counted: two }, {}],
    ['fewer points than the sum', { cleared, there: [[5, 'a', 1]], counted: two }, { missing: 1, not_in_archive: 1 }],
    [
      'fewer points, as many as are known to be missing',
      { cleared, there: [[5, 'a', 1]], counted: two, knownMissingPoints: 3 },
      { known_missing: 1 },
    ],
    [
      'as many points with other values',
      {
        cleared,
        there: [
          [5, 'a', 1],
          [6, 'a', 3],
        ],
        counted: two,
      },
      { different: 1, not_in_archive: 1 },
    ],
    ['more points than the sum', { cleared, there: [...two, [7, 'a', 3]], counted: two }, { extra: 1 }],
    [
      'more points, one of which may be a late reading',
      { cleared, archived: acknowledged(line('a', 3, 7)), there: [...two, [7, 'a', 3]], counted: two },
      { unverifiable: 1 },
    ],
    [
      'a kept line beside cleared ones is compared by itself',
      { cleared, archived: acknowledged(line('a', 9, 200)), there: two, counted: [...two, [200, 'a', 9]] },
      { missing: 1 },
    ],
    [
      'a line that the database refused counts as quarantined',
      { cleared, quarantined: [line('a', 2, 6)], there: [[5, 'a', 1]], counted: two },
      { quarantined: 1 },
    ],
    [
      'texts, which VictoriaMetrics does not store, are not missing',
      { cleared, there: [[5, 'a', 1]], counted: two, texts: 1, change: { kind: 'victoriametrics' } },
      {},
    ],
  ])('%s', (_name, given, found) => {
    expect(examine(given).findings).toEqual({ ...emptyFindings(), ...found });
  });
});
