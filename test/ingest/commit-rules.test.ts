/**
 * The commit of a judged page: lines, offsets, sums of days and coverage. Pages are arbitrary and the store is in
 * memory.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CoveredRange } from '../../src/core/coverage.ts';
import { hash64 } from '../../src/core/hash.ts';
import { readingDigest, readingHash } from '../../src/core/lines/points.ts';
import type { JsonValue, Reading } from '../../src/core/records.ts';
import type { DaySum } from '../../src/core/state/telemetry.ts';
import { DAY_NS, type EpochNs, HOUR_NS, SECOND_NS } from '../../src/core/time.ts';
import { extentOf, withoutStored } from '../../src/ingest/commit-rules.ts';
import { createMemory, type Memory, sumDays } from '../core/support/memory.ts';
import { at, bare, edgeOf, reading, readingAt, T0 } from '../core/support/readings.ts';
import { parseReferenceLine } from '../support/reference-parser.ts';

/** 2026-01-15T00:00:00Z: the beginning of the day of the tests. */
const DAY_START = (T0 / DAY_NS) * DAY_NS;

/** Readings newest first, as pages have them. */
const newestFirst = (list: readonly Reading[]): Reading[] =>
  list.toSorted((a, b) => (a.recordedAt > b.recordedAt ? -1 : a.recordedAt < b.recordedAt ? 1 : 0));

function pagesOf(list: readonly Reading[], size: number): Reading[][] {
  const all = newestFirst(list);
  return Array.from({ length: Math.ceil(all.length / size) }, (_, index) =>
    all.slice(index * size, (index + 1) * size),
  );
}

const anyValue: fc.Arbitrary<JsonValue> = fc.oneof(
  fc.integer({ min: 0, max: 3 }),
  fc.boolean(),
  fc.constantFrom('on', 'a "b", c=d', ''),
  fc.constant(null),
  fc.constant({ x: 1, y: [2, 3] }),
);
const anyReading = (anyAt: fc.Arbitrary<EpochNs>): fc.Arbitrary<Reading> =>
  fc.tuple(anyAt, fc.dictionary(fc.constantFrom('t', 'h', 'odd, name'), anyValue)).map(([recordedAt, object]) => ({
    recordedAt,
    values: Object.entries(object),
  }));

/** Instants on both sides of midnight, some of them shared, some a nanosecond apart. */
const anyInstant = fc.oneof(
  fc.integer({ min: -4, max: 4 }).map((steps) => DAY_START + BigInt(steps)),
  fc.integer({ min: -90_000, max: 90_000 }).map((seconds) => DAY_START + BigInt(seconds) * SECOND_NS),
);
const anyReadings = fc.array(anyReading(anyInstant), { maxLength: 25 });

/** The expected day sums, counted from the lines alone. */
function countDays(lines: readonly string[]): Omit<DaySum, 'readings'>[] {
  const days = new Map<number, { points: number; high: bigint; low: bigint }>();
  for (const line of lines) {
    const { tags, at: written } = parseReferenceLine(line);
    const [series = ''] = line.split(/(?<!\\) /);
    const field = line.slice(series.length + 1, line.lastIndexOf(' '));
    const { hi, lo } = hash64(`${written} ${tags.get('sensor')} ${field}`);
    const day = Number(written / DAY_NS);
    const sum = days.get(day) ?? { points: 0, high: 0n, low: 0n };
    days.set(day, { points: sum.points + 1, high: sum.high + BigInt(hi), low: sum.low + BigInt(lo) });
  }
  return [...days]
    .map(([day, { points, high, low }]) => ({
      day,
      points,
      hashHigh: Number(high % 2n ** 32n),
      hashLow: Number(low % 2n ** 32n),
    }))
    .sort((a, b) => a.day - b.day);
}

function landAll(pages: readonly (readonly Reading[])[]): Memory {
  const memory = createMemory();
  for (const readings of pages) memory.commit({ readings });
  return memory;
}

describe('the lines of a reading', () => {
  test('are one for each sensor value, at its instant, with the tags of the device', () => {
    const recorded = readingAt(T0 + 1n, { t: 21.5, open: false, mode: 'eco', gps: { lat: 1 }, gone: null });
    const { lines, newReadings, firstNs, lastNs } = createMemory().compose({ readings: [recorded] });
    const tags = (sensor: string): [string, string][] => [
      ['device_id', 'd1'],
      ['sensor', sensor],
      ['device_name', 'Pump'],
      ['workspace_id', 'w1'],
    ];
    expect(lines.map(parseReferenceLine)).toEqual([
      { measurement: 'telemetry', tags: new Map(tags('t')), fields: new Map([['value', 21.5]]), at: T0 + 1n },
      { measurement: 'telemetry', tags: new Map(tags('open')), fields: new Map([['flag', false]]), at: T0 + 1n },
      { measurement: 'telemetry', tags: new Map(tags('mode')), fields: new Map([['text', 'eco']]), at: T0 + 1n },
      { measurement: 'telemetry', tags: new Map(tags('gps.lat')), fields: new Map([['value', 1]]), at: T0 + 1n },
    ]);
    expect({ newReadings, firstNs, lastNs }).toEqual({ newReadings: 1, firstNs: T0 + 1n, lastNs: T0 + 1n });
  });

  test('keep the order of tags that the line form has', () => {
    const { lines } = createMemory().compose({ readings: [readingAt(T0, { t: 1 })] });
    expect(lines).toEqual([`telemetry,device_id=d1,sensor=t,device_name=Pump,workspace_id=w1 value=1 ${T0}`]);
  });

  test('come oldest first, with the first and last instant', () => {
    const pageCommit = createMemory().compose({
      readings: [reading(9, { t: 1 }), reading(5, { t: 2 }), reading(5, { t: 3 })],
    });
    const times = pageCommit.lines.map((line) => parseReferenceLine(line).at);
    expect(times).toEqual([at(5), at(5) + 1n, at(9)]);
    expect([pageCommit.firstNs, pageCommit.lastNs]).toEqual([at(5), at(9)]);
  });

  test('carry the name that the device had when the reading was made', () => {
    const memory = createMemory([
      { fromNs: 0n, name: 'Old' },
      { fromNs: at(10), name: 'New' },
    ]);
    const { lines } = memory.compose({ readings: [reading(10), reading(9)] });
    expect(lines.map((line) => parseReferenceLine(line).tags.get('device_name'))).toEqual(['Old', 'New']);
  });

  test('carry the id where no name was ever seen', () => {
    const { lines } = createMemory([]).compose({ readings: [reading(1)] });
    expect(parseReferenceLine(lines[0] ?? '').tags.get('device_name')).toBe('d1');
  });

  test('a reading without values brings none and is not counted', () => {
    const empty = { recordedAt: at(1), values: [['t', null]] as const };
    expect(createMemory().compose({ readings: [empty] })).toMatchObject({
      lines: [],
      newReadings: 0,
      firstNs: null,
      lastNs: null,
      daySums: [],
    });
  });

  test('values that cannot be points are named with their reading, next to those that the page itself rejected', () => {
    const bad = readingAt(at(1), { t: Number.POSITIVE_INFINITY, h: 2 });
    const { lines, rejected } = createMemory().compose({ readings: [bad], rejected: [{ reason: 'x', record: '{}' }] });
    expect(lines).toHaveLength(1);
    expect(rejected.map(({ reason, droppedValues }) => [reason, droppedValues])).toEqual([
      ['x', undefined],
      ['not a finite number', 1],
    ]);
    expect(rejected[1]?.record).toContain('"recorded_at":"2026-01-15T12:00:01Z"');
    expect(rejected[1]?.record).toContain('"Infinity"');
  });

  test('of a reading of very many values no more is written down than the record shows', () => {
    let written = 0;
    const values = Array.from({ length: 20_000 }, (_, sensor): Reading['values'][number] => {
      const pair = [`s${sensor}`, sensor] as const;
      const toJSON = (): unknown => {
        written += 1;
        return [...pair];
      };
      return Object.assign(pair, { toJSON });
    });
    const { lines, rejected } = createMemory().compose({ readings: [{ recordedAt: at(1), values }] });
    expect(lines).toHaveLength(2048);
    expect(rejected).toMatchObject([{ reason: 'too many values in one reading', droppedValues: 20_000 - 2048 }]);
    const { record = '' } = rejected[0] ?? {};
    const whole = JSON.stringify(values.map(([sensor, value]) => [sensor, value]));
    expect(record).toBe(`{"recorded_at":"2026-01-15T12:00:01Z","values":${whole}`.slice(0, 2000));
    expect(written).toBeLessThanOrEqual(2000);
  });
});

describe('a commit', () => {
  test('computed twice from the same state and page is the same', () => {
    fc.assert(
      fc.property(anyReadings, anyReadings, (before, readings) => {
        const memory = landAll([newestFirst(before)]);
        const page = { readings: newestFirst(readings), covers: bare({ from: DAY_START, to: DAY_START + DAY_NS }) };
        expect(memory.compose(page)).toEqual(memory.compose(page));
      }),
    );
  });

  test('of stored readings adds nothing, in whatever pages they come again', () => {
    fc.assert(
      fc.property(
        anyReadings,
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 1, max: 9 }),
        (readings, first, then) => {
          const memory = landAll(pagesOf(readings, first));
          for (const page of pagesOf(readings, then)) {
            expect(memory.commit({ readings: page })).toMatchObject({
              lines: [],
              newReadings: 0,
              daySums: [],
              offsets: [],
            });
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  test('of stored readings adds nothing after the device was renamed', () => {
    const memory = createMemory();
    const readings = [reading(9, { t: 1 }), reading(9, { t: 2 }), reading(5)];
    memory.commit({ readings });
    memory.rename([
      { fromNs: 0n, name: 'Pump' },
      { fromNs: at(60), name: 'New' },
    ]);
    expect(memory.compose({ readings })).toMatchObject({ lines: [], newReadings: 0 });
  });

  test('writes every value of every reading that is not null, and each once', () => {
    fc.assert(
      fc.property(anyReadings, fc.integer({ min: 1, max: 9 }), (readings, size) => {
        const lines = landAll(pagesOf(readings, size)).lines();
        const flat = ({ recordedAt, values }: Reading): string[] =>
          values.flatMap(([sensor, value]) => {
            if (value === null) return [];
            if (typeof value !== 'object') return [`${recordedAt} ${sensor} ${JSON.stringify(value)}`];
            return [`${recordedAt} ${sensor}.x 1`, `${recordedAt} ${sensor}.y.0 2`, `${recordedAt} ${sensor}.y.1 3`];
          });
        expect(lines).toHaveLength(new Set(readings.flatMap(flat)).size);
        const places = lines.map(parseReferenceLine).map(({ tags, at: written }) => `${written} ${tags.get('sensor')}`);
        expect(new Set(places).size).toBe(lines.length);
      }),
      { numRuns: 300 },
    );
  });

  test('is computed from the revision that it names, and keeps the requested range', () => {
    const memory = createMemory();
    memory.commit({ readings: [reading(1)] });
    expect(memory.compose({ readings: [reading(2)] })).toMatchObject({
      deviceId: 'd1',
      revision: 1,
      lane: 'live',
      requestId: 7,
      atMs: 1_768_478_400_000,
    });
  });

  test('extends the coverage by exactly the range that the page covers', () => {
    const memory = createMemory();
    expect(memory.commit({ readings: [reading(5)] }).covered).toEqual([]);
    const covers = { from: at(0), to: at(10), first: edgeOf(reading(5)), last: edgeOf(reading(5)) };
    expect(memory.commit({ readings: [reading(5)], covers }).covered).toEqual([covers]);
    expect(memory.commit({ readings: [reading(20)] }).covered).toEqual([covers]);
  });

  test('counts a reading inside covered time as new when it was not seen before', () => {
    const memory = createMemory();
    memory.commit({ readings: [reading(5)], covers: bare({ from: at(0), to: at(10) }) });
    expect(memory.commit({ readings: [reading(7), reading(5)] })).toMatchObject({ newReadings: 1 });
  });
});

describe('the sums of days', () => {
  test('equal the counted lines', () => {
    fc.assert(
      fc.property(anyReadings, fc.integer({ min: 1, max: 9 }), (readings, size) => {
        const memory = landAll(pagesOf(readings, size));
        const sums = memory.daySums().filter(({ points }) => points > 0);
        expect(sums.map(({ readings: _, ...sum }) => sum)).toEqual(countDays(memory.lines()));
      }),
      { numRuns: 300 },
    );
  });

  test('do not depend on the order of pages', () => {
    const anyApart = fc.uniqueArray(anyReading(anyInstant), {
      selector: ({ recordedAt }) => recordedAt,
      maxLength: 20,
    });
    fc.assert(
      fc.property(anyApart, fc.integer({ min: 1, max: 9 }), (readings, size) => {
        const pages = pagesOf(readings, size);
        expect(landAll(pages.toReversed()).daySums()).toEqual(landAll(pages).daySums());
      }),
    );
  });

  test('count every reading that brought something new, on the day that it was recorded', () => {
    fc.assert(
      fc.property(anyReadings, fc.integer({ min: 1, max: 9 }), (readings, size) => {
        const memory = createMemory();
        const pageCommits = pagesOf(readings, size).map((page) => memory.commit({ readings: page }));
        const counted = memory.daySums().reduce((sum, day) => sum + day.readings, 0);
        expect(counted).toBe(pageCommits.reduce((sum, { newReadings }) => sum + newReadings, 0));
      }),
    );
    const memory = landAll([[readingAt(DAY_START), readingAt(DAY_START - 1n)]]);
    const day = Number(DAY_START / DAY_NS);
    expect(memory.daySums()).toMatchObject([
      { day: day - 1, readings: 1, points: 1 },
      { day, readings: 1, points: 1 },
    ]);
  });

  test('add up modulo 2^32', () => {
    const sum = { day: 1, readings: 1, points: 1, hashHigh: 2 ** 32 - 1, hashLow: 2 ** 31 };
    expect(sumDays([sum, sum])).toEqual([{ day: 1, readings: 2, points: 2, hashHigh: 2 ** 32 - 2, hashLow: 0 }]);
    const many = Array.from({ length: 500 }, (_, index) => reading(index, { t: index }));
    const memory = landAll([newestFirst(many)]);
    expect(memory.daySums().map(({ readings: _, ...rest }) => rest)).toEqual(countDays(memory.lines()));
  });
});

describe('complete hours', () => {
  const HOUR_START = (T0 / HOUR_NS) * HOUR_NS;
  const hourLines = (lines: readonly string[]): [bigint, unknown][] =>
    lines.map(parseReferenceLine).map(({ at: hour, fields }) => [hour, fields.get('readings')]);

  test('are written once, at their beginning, with how many readings they have', () => {
    const memory = createMemory();
    const inside = [reading(3599), reading(10), reading(0)];
    const covers = { ...bare({ from: HOUR_START, to: HOUR_START + 2n * HOUR_NS }) };
    const { sideLines } = memory.commit({ readings: inside, covers });
    expect(sideLines.map(parseReferenceLine)).toEqual([
      {
        measurement: 'coverage_hour',
        tags: new Map([
          ['device_id', 'd1'],
          ['device_name', 'Pump'],
          ['workspace_id', 'w1'],
        ]),
        fields: new Map([['readings', 3]]),
        at: HOUR_START,
      },
      expect.objectContaining({ fields: new Map([['readings', 0]]), at: HOUR_START + HOUR_NS }),
    ]);
    expect(memory.commit({ readings: inside, covers }).sideLines).toEqual([]);
  });

  test('include earlier pages, and readings of the uncovered end when their hour is full', () => {
    const memory = createMemory();
    memory.commit({ readings: [reading(3000)] });
    memory.commit({ readings: [reading(2000), reading(1000)], covers: bare({ from: at(900), to: at(2500) }) });
    expect(memory.sideLines()).toEqual([]);
    const rest = { readings: [reading(3000), reading(10)], covers: bare({ from: at(0), to: at(900) }) };
    expect(memory.commit(rest).sideLines).toEqual([]);
    const { sideLines } = memory.commit({ readings: [reading(3000)], covers: bare({ from: at(2500), to: at(3600) }) });
    expect(hourLines(sideLines)).toEqual([[HOUR_START, 4]]);
    expect(memory.state().hourReadings.size).toBe(0);
  });

  test('are written again with all their readings for a late one, which is not counted for another hour', () => {
    const memory = createMemory();
    memory.commit({ readings: [reading(10)], covers: bare({ from: at(0), to: at(3600) }) });
    const late = memory.commit({ readings: [reading(20)] });
    expect(late.newReadings).toBe(1);
    expect(late.sideLines.map((line) => parseReferenceLine(line).fields.get('readings'))).toEqual([2]);
    expect(late.hourReadings.size).toBe(0);
  });

  test('carry the device name of their beginning', () => {
    const memory = createMemory([
      { fromNs: 0n, name: 'Old' },
      { fromNs: at(1), name: 'New' },
    ]);
    const { sideLines } = memory.commit({ readings: [], covers: bare({ from: at(0), to: at(7200) }) });
    expect(sideLines.map((line) => parseReferenceLine(line).tags.get('device_name'))).toEqual(['Old', 'New']);
  });

  test('each come once, with all their readings, however the page scan is split into pages', () => {
    const anyStream = fc.uniqueArray(fc.integer({ min: 0, max: 5 * 3600 - 1 }), { maxLength: 60 });
    fc.assert(
      fc.property(
        anyStream,
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 0, max: 3599 }),
        (seconds, size, start) => {
          const readings = seconds.filter((second) => second >= start).map((second) => reading(second));
          const memory = createMemory();
          let top = at(5 * 3600);
          for (const page of pagesOf(readings, size)) {
            const from = (page.at(-1)?.recordedAt ?? top) + 1n;
            memory.commit({ readings: page, covers: bare({ from, to: top }) });
            top = from;
          }
          memory.commit({ readings: [], covers: bare({ from: at(start), to: top }) });
          const first = Math.ceil(start / 3600);
          const expected = [0, 1, 2, 3, 4].slice(first).map((hour) => {
            const inHour = seconds.filter((second) => Math.floor(second / 3600) === hour);
            return [at(hour * 3600), inHour.length];
          });
          expect(hourLines(memory.sideLines()).toSorted(([a], [b]) => (a < b ? -1 : 1))).toEqual(expected);
        },
      ),
    );
  });
});

test('the extent of a page goes from its oldest to its newest reading, whatever its order', () => {
  expect(extentOf([])).toBeNull();
  expect(extentOf([reading(5), reading(9), reading(1)])).toEqual({ from: at(1), to: at(9) });
});

const valueAt = (at: bigint, value: number): Reading => ({ recordedAt: at, values: [['t', value]] });
const edge = (of: Reading) => ({ at: of.recordedAt, digest: readingDigest(of) });
const span = (first: Reading, last: Reading): CoveredRange => ({
  from: first.recordedAt,
  to: last.recordedAt + 1n,
  first: edge(first),
  last: edge(last),
});

describe('the readings of a page without those known to be stored', () => {
  const covered = [span(valueAt(100n, 1), valueAt(200n, 2)), span(valueAt(400n, 3), valueAt(400n, 4))];

  test('do not contain those stored at an edge, on either side', () => {
    const page = [valueAt(500n, 9), valueAt(400n, 4), valueAt(400n, 3), valueAt(300n, 9), valueAt(200n, 2)];
    expect(withoutStored(page, { covered, lastPage: [] })).toEqual([page[0], page[3]]);
  });

  test('keep a reading with the time of an edge and other values', () => {
    const page = [valueAt(400n, 5), valueAt(200n, 1)];
    expect(withoutStored(page, { covered, lastPage: [] })).toEqual(page);
  });

  test('keep all if nothing is covered', () => {
    const page = [valueAt(400n, 5)];
    const unread = [{ from: 0n, to: 900n, first: null, last: null }];
    expect(withoutStored(page, { covered: unread, lastPage: [] })).toEqual(page);
  });

  test('do not contain those of the last page with the same values', () => {
    const page = [valueAt(600n, 9), valueAt(500n, 9), valueAt(300n, 9)];
    const lastPage = [valueAt(500n, 9), valueAt(300n, 8)].map(readingHash);
    expect(withoutStored(page, { covered, lastPage })).toEqual([page[0], page[2]]);
  });
});
