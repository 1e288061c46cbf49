/** The names in the queries of the dashboards are those that the program writes, and none of these goes unused. */
import { describe, expect, test } from 'vitest';
import { QUERIES } from './support/asked.ts';
import { ALL_KEYS, ALL_MEASUREMENTS, keysOf, measurementsOf } from './support/names.ts';

describe('names in the queries', () => {
  test.each(QUERIES)('%s: measurements, tags and fields that are written', (_, query) => {
    expect(measurementsOf(query).length).toBeGreaterThan(0);
    expect(measurementsOf(query).filter((name) => !ALL_MEASUREMENTS.has(name))).toEqual([]);
    expect(keysOf(query).filter((key) => !ALL_KEYS.has(key))).toEqual([]);
  });

  test('every name that the program writes is used', () => {
    expect(new Set(QUERIES.flatMap(([, query]) => measurementsOf(query)))).toEqual(ALL_MEASUREMENTS);
    expect(new Set(QUERIES.flatMap(([, query]) => keysOf(query)))).toEqual(ALL_KEYS);
  });

  test('a name that is not written would be found', () => {
    expect(keysOf('SELECT last(lag) FROM coverage WHERE $timeFilter GROUP BY devise_id')).toEqual(['lag', 'devise_id']);
  });
});
