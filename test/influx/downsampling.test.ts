/**
 * The queries of docs/scaling.md do in a real InfluxDB what the page says: hours are summed up by the continuous query,
 * and a span that was filled later by the query that is to be run by hand.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { HOUR_NS } from '../../src/core/time.ts';
import { influxdAvailable, startInfluxd } from '../support/influxd.ts';

const PAGE = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'scaling.md'), 'utf8');

/** The statements of the page. */
const STATEMENTS = [...PAGE.matchAll(/```sql\n([\s\S]*?)```/g)].flatMap(([, block = '']) =>
  block.split('\n').filter((line) => line.trim() !== ''),
);

/** Within the span that the page's last statement names. */
const FROM_NS = BigInt(Date.parse('2026-02-01T00:00:00Z')) * 1_000_000n;

describe.runIf(influxdAvailable())('the queries about downsampling', () => {
  test('make hours of readings, under the same tags', async () => {
    await using influxd = await startInfluxd();
    await influxd.query('', 'CREATE DATABASE devices');
    const lines = ['a', 'b'].flatMap((device, which) =>
      [1, 2, 3, 4].map((value, at) => {
        const ns = FROM_NS + (BigInt(at) * HOUR_NS) / 2n;
        return `telemetry,device_id=${device},sensor=t,device_name=${device},workspace_id=w value=${value + 10 * which} ${ns}`;
      }),
    );
    await influxd.write('devices', lines.join('\n'));
    expect(STATEMENTS).toHaveLength(3);
    for (const statement of STATEMENTS) await influxd.query('', statement);

    const kept = await fetch(`${influxd.url}/query?q=${encodeURIComponent('SHOW CONTINUOUS QUERIES')}`);
    expect(await kept.text()).toContain('["telemetry_1h","CREATE CONTINUOUS QUERY telemetry_1h ON devices');
    const hours = await influxd.query(
      'devices',
      'SELECT "mean", "min", "max", "readings" FROM "years"."telemetry_1h" WHERE sensor = \'t\' GROUP BY device_id',
    );
    expect(hours).toMatchObject([
      { device_id: 'a', mean: 1.5, min: 1, max: 2, readings: 2 },
      { device_id: 'a', mean: 3.5, min: 3, max: 4, readings: 2 },
      { device_id: 'b', mean: 11.5, min: 11, max: 12, readings: 2 },
      { device_id: 'b', mean: 13.5, min: 13, max: 14, readings: 2 },
    ]);
  });
});
