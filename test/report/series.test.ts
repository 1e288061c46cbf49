/**
 * The series of a device's sensors against a plain computation, and that what is kept stays small.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { encodeTagValue, identityTag } from '../../src/core/lines/line-protocol.ts';
import { MAX_SENSORS, SERIES_CELLS, type SensorSeries } from '../../src/core/page-facts.ts';
import { DAY_MS, HOUR_MS, SECOND_MS } from '../../src/core/time.ts';
import { createGrid, createSeriesCells, lastValues } from '../../src/report/series.ts';

const FROM_MS = Date.UTC(2026, 5, 15, 12, 34, 56, 789);
const NS = 1_000_000n;

function line(sensor: string, field: string, at: bigint, name = 'd'): string {
  const tags = `device_id=d,sensor=${encodeTagValue(identityTag(sensor))},device_name=${encodeTagValue(identityTag(name))}`;
  return `telemetry,${tags},workspace_id=w ${field} ${at}`;
}

function seriesOf(lines: readonly string[], rangeMs = HOUR_MS): { sensors: readonly SensorSeries[]; leftOut: number } {
  const cells = createSeriesCells(createGrid(FROM_MS, FROM_MS + rangeMs));
  cells.add(lines);
  return cells.result();
}

describe('the grid', () => {
  test.each([
    [60_000, 1],
    [6 * HOUR_MS, 72],
    [DAY_MS, 288],
    [7 * DAY_MS, 2016],
    [30 * DAY_MS, 8640],
  ])('of %d ms has cells of whole seconds that hold all of it', (rangeMs, seconds) => {
    const { fromMs, cellMs, cells } = createGrid(FROM_MS, FROM_MS + rangeMs);
    expect(cellMs).toBe(seconds * SECOND_MS);
    expect(fromMs % cellMs).toBe(0);
    expect(fromMs).toBeLessThanOrEqual(FROM_MS);
    expect(fromMs + cellMs).toBeGreaterThan(FROM_MS);
    expect(fromMs + cells * cellMs).toBeGreaterThanOrEqual(FROM_MS + rangeMs);
    expect(fromMs + (cells - 1) * cellMs).toBeLessThan(FROM_MS + rangeMs);
    expect(cells).toBeLessThanOrEqual(SERIES_CELLS + 1);
  });

  test('stays where it is while time continues', () => {
    const middles = (later: number) => {
      const { fromMs, cellMs } = createGrid(FROM_MS + later, FROM_MS + later + DAY_MS);
      return fromMs % cellMs;
    };
    expect([0, 1, 60_000, 86_399_999].map(middles)).toEqual([0, 0, 0, 0]);
  });
});

describe('a series', () => {
  const reading = fc.record({
    sensor: fc.constantFrom('t', 'a,b =', '__proto__', ''),
    // Often the same ones: what meets in a cell is what counts.
    atNs: fc.oneof(fc.constantFrom(0n, 1n, 60_000n * NS), fc.bigInt({ min: 0n, max: BigInt(HOUR_MS) * NS - 1n })),
    value: fc.oneof(
      fc.constantFrom(0, Number.MAX_VALUE, -Number.MAX_VALUE),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
    ),
  });

  interface Given {
    readonly sensor: string;
    readonly atNs: bigint;
    readonly value: number;
  }

  /** Holds a series against the values that it was made of. */
  function expectPlain({ sensor, values, last, times, min, mean, max }: SensorSeries, given: readonly Given[]): void {
    const own = given.filter((each) => String(identityTag(each.sensor)) === sensor);
    const { fromMs, cellMs, cells } = createGrid(FROM_MS, FROM_MS + HOUR_MS);
    expect(values).toBe(own.length);
    expect(last.value).toBe(String(own.at(-1)?.value));
    expect([times, min, mean, max].map(({ length }) => length)).toEqual([cells, cells, cells, cells]);
    for (const [cell, middle] of times.entries()) {
      const [from, to] = [cell, cell + 1].map((at) => BigInt(fromMs + at * cellMs - FROM_MS) * NS);
      expect(middle * 1000).toBe(fromMs + (cell + 0.5) * cellMs);
      const inside = own.filter(({ atNs }) => atNs >= (from ?? 0n) && atNs < (to ?? 0n)).map(({ value }) => value);
      const [least, most] = [Math.min(...inside), Math.max(...inside)];
      const found = [min[cell], mean[cell], max[cell]].map((value) => value ?? null);
      if (inside.length === 0) expect(found).toEqual([null, null, null]);
      else {
        // A line has no minus zero.
        expect([found[0], found[2]]).toEqual([least + 0, most + 0]);
        // A quarter of it, as the sum of the greatest numbers would be infinite.
        const plain = inside.reduce((sum, value) => sum + value / inside.length / 4, 0);
        const scale = Math.max(Math.abs(least), Math.abs(most));
        expect(Math.abs((found[1] ?? Number.NaN) / 4 - plain)).toBeLessThanOrEqual(scale * 1e-9 + 1e-300);
        expect(found[1]).toBeGreaterThanOrEqual(least);
        expect(found[1]).toBeLessThanOrEqual(most);
      }
    }
  }

  test('equals a plain computation', () => {
    fc.assert(
      fc.property(fc.array(reading, { maxLength: 40 }), (readings) => {
        const sorted = readings.toSorted((a, b) => (a.atNs < b.atNs ? -1 : 1));
        const base = BigInt(FROM_MS) * NS;
        const lines = sorted.map(({ sensor, atNs, value }) => line(sensor, `value=${value}`, base + atNs));
        const { sensors } = seriesOf(lines);
        const names = [...new Set(sorted.map(({ sensor }) => String(identityTag(sensor))))];
        expect(sensors.map(({ sensor }) => sensor).toSorted()).toEqual(names.toSorted());
        for (const sensor of sensors) expectPlain(sensor, sorted);
      }),
      { numRuns: 40 },
    );
  });

  test('uses numbers alone, whatever texts contain, and continues under another name of the device', () => {
    const at = BigInt(FROM_MS) * NS;
    const { sensors, leftOut } = seriesOf([
      line('door', 'flag=true', at),
      line('note', 'text="x value=7 value=8"', at),
      line('s', 'text="1"', at),
      line('s', 'value=1.50', at + 1n),
      line('s', 'value=2', at + 2n, 'renamed value=9'),
    ]);
    expect(leftOut).toBe(0);
    expect(sensors).toHaveLength(1);
    expect(sensors[0]).toMatchObject({
      sensor: 's',
      values: 2,
      last: { value: '2', at: '2026-06-15T12:34:56.789000002Z' },
    });
  });

  test('of many sensors the first by name are kept, in whatever order they come, and the rest is counted', () => {
    const names = Array.from({ length: 90 }, (_, at) => `s${(at * 37) % 90}`);
    const lines = [0n, 1n, 2n].flatMap((round) =>
      names.map((name, at) => line(name, `value=${at}`, BigInt(FROM_MS) * NS + round)),
    );
    const { sensors, leftOut } = seriesOf(lines);
    expect(sensors.map(({ sensor }) => sensor)).toEqual(Array.from({ length: MAX_SENSORS }, (_, at) => `s${at}`));
    expect(sensors.every(({ values }) => values === 3)).toBe(true);
    expect(leftOut).toBe(90 - MAX_SENSORS);
  });

  test('of sensors without end the count ends at ten thousand', () => {
    const names = Array.from({ length: 12_000 }, (_, at) => `${at}`.padStart(5, '0'));
    const { sensors, leftOut } = seriesOf(names.map((name) => line(name, 'value=1', BigInt(FROM_MS) * NS)));
    expect(sensors).toHaveLength(MAX_SENSORS);
    expect(leftOut).toBe(10_000);
  });
});

describe('the last values', () => {
  test('are each sensor newest one in its own digits, by name, up to the limit', () => {
    const values = lastValues(
      [
        line('s10', 'value=1e-7', 5n),
        line('s9', 'value=21.50', 5n),
        line('s9', 'value=22', 4n),
        line('open', 'flag=false', 5n),
        line('note', `text="say \\"${'y'.repeat(200)}"`, 5n),
        line('x'.repeat(900), 'value=3', 6n),
      ],
      4,
    );
    expect(values).toEqual([
      { sensor: 'note', value: `say "${'y'.repeat(94)}…`, at: '1970-01-01T00:00:00.000000005Z' },
      { sensor: 'open', value: 'false', at: '1970-01-01T00:00:00.000000005Z' },
      { sensor: 's9', value: '21.50', at: '1970-01-01T00:00:00.000000005Z' },
      { sensor: 's10', value: '1e-7', at: '1970-01-01T00:00:00.000000005Z' },
    ]);
    expect(lastValues([line('x'.repeat(900), 'value=3', 6n)], 4)[0]?.sensor).toBe(`${'x'.repeat(199)}…`);
    expect(lastValues([], 4)).toEqual([]);
  });
});
