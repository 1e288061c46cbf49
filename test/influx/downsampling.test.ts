/**
 * The queries of docs/scaling.md do in a real InfluxDB what the page promises: hours are summed up by the continuous
 * query, and a span that was filled later by the query that is to be run by hand. The copy of the dashboard "Sensors"
 * that the page describes reads these hours.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { HOUR_NS } from '../../src/core/time.ts';
import { QUERIES } from '../grafana/support/asked.ts';
import { influxdAvailable, startInfluxd } from '../support/influxd.ts';

const PAGE = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'scaling.md'), 'utf8');

/** The statements of the page. */
const STATEMENTS = [...PAGE.matchAll(/```sql\n([\s\S]*?)```/g)].flatMap(([, block = '']) =>
  block.split('\n').filter((line) => line.trim() !== ''),
);

/** Within the span that the page's last statement names. */
const FROM_NS = BigInt(Date.parse('2026-02-01T00:00:00Z')) * 1_000_000n;

/** The queries of the dashboard "Sensors" that read the readings. */
const SENSORS = QUERIES.filter(([where]) => where.startsWith('tidemark-sensors'))
  .map(([, query]) => query)
  .filter((query) => query.includes('FROM telemetry'));

/** A query for the hours after FROM_NS, with all workspaces, devices and sensors chosen. */
function filled(query: string): string {
  const ms = Number(FROM_NS / 1_000_000n);
  return query
    .replaceAll('$timeFilter', `time >= ${ms}ms AND time < ${ms}ms + 2h`)
    .replaceAll(/\$\{__to\}/g, `${ms + 2 * 3_600_000}`)
    .replaceAll('$__interval', '1h')
    .replaceAll(/\$\{\w+:regex\}/g, '.*');
}

describe.runIf(influxdAvailable())('the queries about downsampling', () => {
  test('make hours of readings, under the same tags', async () => {
    await using influxd = await startInfluxd();
    await influxd.query('', 'CREATE DATABASE devices');
    const lines = ['a', 'b'].flatMap((device, which) =>
      [1, 2, 3, 4].map((value, at) => {
        const ns = FROM_NS + (BigInt(at) * HOUR_NS) / 2n;
        return `telemetry,device_id=${device},sensor=battery_rssi,device_name=${device},workspace_id=w value=${value + 10 * which} ${ns}`;
      }),
    );
    await influxd.write('devices', lines.join('\n'));
    expect(STATEMENTS).toHaveLength(3);
    for (const statement of STATEMENTS) await influxd.query('', statement);

    const kept = await fetch(`${influxd.url}/query?q=${encodeURIComponent('SHOW CONTINUOUS QUERIES')}`);
    expect(await kept.text()).toContain('["telemetry_1h","CREATE CONTINUOUS QUERY telemetry_1h ON devices');
    const hours = await influxd.query(
      'devices',
      'SELECT "value", "min", "max", "readings" FROM "years"."telemetry_1h" GROUP BY device_id',
    );
    expect(hours).toMatchObject([
      { device_id: 'a', value: 1.5, min: 1, max: 2, readings: 2 },
      { device_id: 'a', value: 3.5, min: 3, max: 4, readings: 2 },
      { device_id: 'b', value: 11.5, min: 11, max: 12, readings: 2 },
      { device_id: 'b', value: 13.5, min: 13, max: 14, readings: 2 },
    ]);

    const replacement = /Replace each `FROM telemetry` in it by `(FROM [^`]+)`/.exec(PAGE.replaceAll('\n', ' '))?.[1];
    const copied = SENSORS.map((query) => query.replaceAll('FROM telemetry', replacement ?? ''));
    expect(copied.length).toBeGreaterThan(15);
    // The lowest devices are left out if they are among the highest too: here that is every one.
    const drawn = copied.filter((query) => !query.includes('device_id !~'));
    expect(drawn.length).toBe(copied.length - 1);
    for (const query of drawn) expect(await influxd.query('devices', filled(query)), query).not.toEqual([]);
    expect(
      await influxd.query('devices', filled(copied.find((query) => /AS minimum/.test(query)) ?? '')),
    ).toMatchObject([{ minimum: 1.5, mean: 7.5, maximum: 13.5 }]);
  });
});
