/** Facts that databases report beside writes. */
import { describe, expect, test } from 'vitest';
import { DAY_MS } from '../../src/core/time.ts';
import { readBucketRetention, readFlags, readRetentionPolicies } from '../../src/influx/facts.ts';

test.each([
  ['{"buckets":[{"name":"b","retentionRules":[{"everySeconds":86400}]}]}', DAY_MS],
  ['{"buckets":[{"name":"b","retentionRules":[]}]}', Number.POSITIVE_INFINITY],
  ['{"buckets":[{"name":"b","retentionRules":[{"everySeconds":0}]}]}', Number.POSITIVE_INFINITY],
  ['{"buckets":[{"name":"another","retentionRules":[]}]}', null],
  ['{"buckets":[]}', null],
  ['{"buckets":[{"name":"b","retentionRules":[{"everySeconds":"x"}]}]}', null],
  ['{"buckets":[null]}', null],
  ['<html>', null],
  ['null', null],
  [null, null],
])('InfluxDB 2: %s', (text, ms) => {
  expect(readBucketRetention(text, 'b')).toBe(ms);
});

describe('InfluxDB 1', () => {
  const policies = (rows: readonly (readonly unknown[])[]): string =>
    JSON.stringify({ results: [{ series: [{ columns: ['name', 'duration', 'default'], values: rows }] }] });
  test.each([
    ['', 7 * DAY_MS],
    ['short', 90 * 60_000],
    ['autogen', Number.POSITIVE_INFINITY],
    ['missing', null],
  ])('of the policy %j', (policy, ms) => {
    const rows = [
      ['autogen', '0s', false],
      ['week', '168h0m0s', true],
      ['short', '1h30m0s', false],
    ];
    expect(readRetentionPolicies(policies(rows), policy)).toBe(ms);
  });

  test.each(['{"results":[{"error":"no"}]}', '{"error":"unable to parse"}', '', null, '[]'])(
    'nothing from %j',
    (text) => {
      expect(readRetentionPolicies(text, '')).toBeNull();
    },
  );
});

describe('VictoriaMetrics', () => {
  const flag = (name: string, value: string): string => `flag{name="${name}", value="${value}", is_set="true"} 1\n`;

  test.each([
    ['1', 31 * DAY_MS],
    ['100y', 36_500 * DAY_MS],
    ['14d', 14 * DAY_MS],
    ['1.5', 46.5 * DAY_MS],
    ['soon', null],
  ])('a retention of %s', (text, ms) => {
    expect(readFlags({ metrics: flag('retentionPeriod', text), flags: null }).retentionMs).toBe(ms);
  });

  test.each<[string | null, string | null, number | null]>([
    [flag('dedup.minScrapeInterval', '1ms'), null, 1],
    [flag('dedup.minScrapeInterval', '0s'), null, 0],
    [flag('dedup.minScrapeInterval', '1m30s'), null, 90_000],
    [null, '-dedup.minScrapeInterval="1ms"\n-storageDataPath="/x"\n', 1],
    [null, '-storageDataPath="/x"\n', 0],
    ['', '-auth.config="/etc/x"\n', null],
    ['vm_other 1\n', '-remoteWrite.url="secret"\n', null],
    [null, null, null],
  ])('a deduplication by %j and %j', (metrics, flags, ms) => {
    expect(readFlags({ metrics, flags }).dedupMs).toBe(ms);
  });

  test('its version, where it reports one', () => {
    const reported = (short: string) =>
      readFlags({ metrics: `vm_app_version{version="x", short_version="${short}"} 1`, flags: null }).version;
    expect([reported('v1.101.0'), reported(''), reported('<b>')]).toEqual(['v1.101.0', null, null]);
  });
});
