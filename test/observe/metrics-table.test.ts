/** The table of metrics keeps the rules by which Prometheus names and counts. */
import { describe, expect, test } from 'vitest';
import { METRICS, type MetricRow, PER_DEVICE } from '../../src/observe/metrics-table.ts';

const ROWS: readonly (readonly [string, MetricRow])[] = Object.entries({ ...METRICS, ...PER_DEVICE });
/** Units that a name ends with. */
const BASE_UNITS = ['seconds', 'bytes', 'ratio'];

describe.each(ROWS)('%s', (name, { kind, unit, labels, help, buckets }) => {
  test('has a name, a unit, labels and a help text as Prometheus wants them', () => {
    expect(name).toMatch(/^tidemark_[a-z\d]+(_[a-z\d]+)*$/);
    expect(name.endsWith('_total'), 'a counter ends in _total, nothing else does').toBe(kind === 'counter');
    if (BASE_UNITS.includes(unit)) expect(name).toMatch(new RegExp(`_${unit}(_|$)`));
    expect(new Set(labels).size).toBe(labels.length);
    expect(labels.every((label) => /^[a-z_]+$/.test(label) && label !== 'le')).toBe(true);
    expect(help).toMatch(/^[A-Za-z].*\.$/s);
    expect(buckets === undefined, 'buckets belong to histograms').toBe(kind !== 'histogram');
    expect([...(buckets ?? [])]).toEqual([...(buckets ?? [])].sort((a, b) => a - b));
  });
});

test('a label per device is only among the metrics that are off by default', () => {
  const perDevice = (rows: Readonly<Record<string, MetricRow>>): string[] =>
    Object.keys(rows).filter((name) => rows[name]?.labels.some((label) => label.startsWith('device')));
  expect(perDevice(METRICS)).toEqual([]);
  expect(perDevice(PER_DEVICE).length).toBeGreaterThan(0);
});
