/** The way to a real database: InfluxDB 1.6 behind the stand-in for version 2, written to by the real sink. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { encodeLine, type FieldValue, identityTag } from '../../src/core/lines/line-protocol.ts';
import type { Sink } from '../../src/core/ports.ts';
import { Secret } from '../../src/core/secret.ts';
import { resolveBatch } from '../../src/delivery/resolve.ts';
import { createInfluxSink } from '../../src/influx/sink.ts';
import { type Influxd, influxdAvailable, startInfluxd } from '../support/influxd.ts';
import { FAULTS, startV2Proxy, throttled, type V2Proxy } from '../support/v2-proxy.ts';

const TOKEN = 'a-token-of-the-test';
const T0 = 1_700_000_000_123_456_789n;
const never = new AbortController().signal;
const noControl = { controlFor: (): null => null, maxRequests: 1000 };

function line(n: number, value: FieldValue, field: 'value' | 'text' | 'flag' = 'value'): string {
  const at = T0 + BigInt(n);
  const tags = [
    ['device_id', identityTag('d,1')],
    ['sensor', identityTag('t e m p')],
  ] as const;
  return encodeLine({ measurement: 'telemetry', tags, fields: [[field, value]], at }) ?? '';
}

/** The line of a bug in another writer: text in the field of numbers. */
function clash(n: number): string {
  return line(n, 'oops', 'text').replace(' text=', ' value=');
}

describe.runIf(influxdAvailable())('a real InfluxDB', () => {
  let influxd: Influxd;
  let proxy: V2Proxy;
  let bucket = '';
  let sink: Sink;
  let run = 0;

  beforeAll(async () => {
    influxd = await startInfluxd();
    proxy = await startV2Proxy({ upstream: influxd.url, token: TOKEN });
  });
  afterAll(async () => {
    await proxy.close();
    await influxd.close();
  });
  beforeEach(async () => {
    run += 1;
    bucket = `b${run}`;
    await influxd.query('', `CREATE DATABASE ${bucket}`);
    proxy.setFaults(null);
    sink = sinkFor(bucket);
  });

  const sinkFor = (into: string, token = TOKEN, timeoutMs = 10_000): Sink =>
    createInfluxSink({ name: 'influx', url: proxy.url, token: new Secret(token), org: 'o', bucket: into, timeoutMs });

  test('is detected as too old where a VictoriaMetrics is expected', async () => {
    const place = { name: 'influx', url: influxd.url, token: null, org: '', bucket: '', timeoutMs: 10_000 };
    const answer = await createInfluxSink(place, 'victoriametrics').write([line(1, 1)], never);
    expect(answer).toMatchObject({
      kind: 'blocked',
      message: expect.stringMatching(/^HTTP 404: InfluxDB 1\.6\.7\S* is too old$/),
    });
  });

  const stored = async (): Promise<(readonly [bigint, unknown])[]> => {
    const rows = await influxd.query(bucket, 'SELECT time, value FROM telemetry');
    return rows.map(({ time, value }) => [time as bigint, value]);
  };

  test('stores every line to the nanosecond and the last digit', async () => {
    const values = Array.from({ length: 5000 }, (_, n) => Math.sin(n) * 10 ** ((n % 40) - 20));
    const lines = values.map((value, n) => line(n, value));
    expect(await resolveBatch(sink, lines, noControl, never)).toMatchObject({
      resolved: 5000,
      requests: 1,
      blocked: null,
    });
    expect(await stored()).toEqual(values.map((value, n) => [T0 + BigInt(n), value]));
    expect(proxy.writes.at(-1)?.headers['content-encoding']).toBe('gzip');
  });

  test('written again, the identical lines change nothing', async () => {
    const lines = Array.from({ length: 100 }, (_, n) => line(n, n / 3));
    for (let turn = 0; turn < 3; turn += 1) expect((await sink.write(lines, never)).kind).toBe('accepted');
    expect(await stored()).toEqual(lines.map((_, n) => [T0 + BigInt(n), n / 3]));
  });

  test('a type conflict rejects exactly the lines at fault, and all others are stored', async () => {
    const bad = new Set([1, 2, 700, 1999]);
    const lines = Array.from({ length: 2000 }, (_, n) => (bad.has(n) ? clash(n) : line(n, n / 7)));
    const resolution = await resolveBatch(sink, lines, noControl, never);
    expect(resolution).toMatchObject({ resolved: 2000, acceptedLines: 1996, blocked: null });
    expect(resolution.rejected.map(({ index }) => index)).toEqual([...bad]);
    expect(resolution.rejected[0]?.message).toMatch(/^HTTP 422: failure writing points .* field type conflict/);
    const good = lines.flatMap((_, n) => (bad.has(n) ? [] : [[T0 + BigInt(n), n / 7] as const]));
    expect(await stored()).toEqual(good);
  });

  test('a field that conflicts in all lines blocks the destination and quarantines nothing', async () => {
    await influxd.write(bucket, `telemetry flag="text of another program" ${T0}`);
    const lines = Array.from({ length: 200 }, (_, n) => line(n, true, 'flag'));
    const control = { ...noControl, controlFor: () => line(-1, false, 'flag') };
    const resolution = await resolveBatch(sink, lines, control, never);
    expect(resolution).toMatchObject({ resolved: 0, rejected: [] });
    expect(resolution.blocked?.hint).toContain('telemetry flag');
    expect(resolution.requests).toBeLessThan(40);
  });

  test('points older than the retention are reported as such, and the others stored', async () => {
    await influxd.query(
      '',
      `CREATE RETENTION POLICY short ON ${bucket} DURATION 52w REPLICATION 1 SHARD DURATION 1d DEFAULT`,
    );
    const now = BigInt(Date.now()) * 1_000_000n;
    const fresh = line(0, 1).replace(/\d+$/, `${now}`);
    const lines = [line(0, 1).replace(/\d+$/, '1'), fresh];
    const resolution = await resolveBatch(sink, lines, noControl, never);
    expect(resolution).toMatchObject({ resolved: 2, rejected: [{ index: 0, retention: true }], blocked: null });
    expect(await influxd.query(bucket, 'SELECT value FROM telemetry')).toEqual([{ time: now, value: 1 }]);
  });

  test('an invalid line among valid ones is found', async () => {
    const lines = [line(0, 1), line(1, 2).replace('value=2', 'value=2.2.2'), line(2, 3)];
    const resolution = await resolveBatch(sink, lines, noControl, never);
    expect(resolution.rejected).toMatchObject([{ index: 1, message: expect.stringContaining('unable to parse') }]);
    expect(await stored()).toEqual([
      [T0, 1],
      [T0 + 2n, 3],
    ]);
  });

  test('an error that quotes thousands of lines is still narrowed down', async () => {
    const lines = Array.from({ length: 5000 }, (_, n) =>
      n < 4990 ? line(n, n).replace(/value=\d+/, `value=${n}.x.`) : line(n, n),
    );
    const resolution = await resolveBatch(sink, lines, { controlFor: () => line(-1, 1), maxRequests: 30 }, never);
    expect(resolution.blocked).toBeNull();
    expect(resolution.rejected.length).toBeGreaterThan(3);
  });

  test('a wrong token, a missing bucket and a wrong path block, each with its remedy', async () => {
    const lines = [line(0, 1)];
    expect(await sinkFor(bucket, 'wrong').write(lines, never)).toMatchObject({
      kind: 'blocked',
      hint: expect.stringContaining('influx.token'),
    });
    expect(await sinkFor('nowhere').write(lines, never)).toMatchObject({
      kind: 'blocked',
      message: 'HTTP 404: database not found: "nowhere"',
      hint: expect.stringContaining('influx.bucket'),
    });
    const direct = createInfluxSink({ name: 'n', url: influxd.url, token: null, org: '', bucket, timeoutMs: 10_000 });
    expect(await direct.write(lines, never)).toMatchObject({
      kind: 'blocked',
      hint: expect.stringContaining('InfluxDB 1.8'),
    });
  });

  test('a write whose answer was lost is in, and is simply sent again', async () => {
    const first = proxy.writes.length;
    proxy.setFaults(({ nth }) => (nth === first ? FAULTS.applyAndCut : null));
    const lines = [line(0, 1.5), line(1, 2.5)];
    expect((await sink.write(lines, never)).kind).toBe('later');
    expect(await stored()).toHaveLength(2);
    expect((await sink.write(lines, never)).kind).toBe('accepted');
    expect(await stored()).toEqual([
      [T0, 1.5],
      [T0 + 1n, 2.5],
    ]);
  });

  test('faults keep every line and report no partial success', async () => {
    const lines = Array.from({ length: 10 }, (_, n) => line(n, n));
    for (const fault of [
      FAULTS.unavailable,
      FAULTS.cut,
      FAULTS.badGateway,
      FAULTS.loginPage,
      FAULTS.unauthorized,
      FAULTS.bucketMissing,
      FAULTS.diskFull,
      throttled(30),
    ]) {
      proxy.setFaults(() => fault);
      const resolution = await resolveBatch(sink, lines, { ...noControl, controlFor: () => line(-1, 0) }, never);
      expect(resolution, JSON.stringify(fault)).toMatchObject({ resolved: 0, rejected: [] });
      expect(resolution.blocked?.waitMs).toBe(fault.kind === 'answer' && fault.status === 429 ? 30_000 : null);
    }
    proxy.setFaults(() => FAULTS.hang);
    expect(await sinkFor(bucket, TOKEN, 50).write(lines, never)).toMatchObject({ kind: 'later' });
    proxy.setFaults(null);
    expect(await resolveBatch(sink, lines, noControl, never)).toMatchObject({ resolved: 10, blocked: null });
  });

  test('a database that dies and returns loses nothing that it acknowledged', async () => {
    const lines = Array.from({ length: 1000 }, (_, n) => line(n, n));
    expect((await sink.write(lines.slice(0, 500), never)).kind).toBe('accepted');
    await influxd.kill();
    expect(await sink.write(lines.slice(500), never)).toMatchObject({
      kind: 'later',
      message: expect.stringContaining('503'),
    });
    await influxd.restart();
    expect((await sink.write(lines.slice(500), never)).kind).toBe('accepted');
    expect(await stored()).toEqual(lines.map((_, n) => [T0 + BigInt(n), n]));
  });

  test('a body limit is met by halving', async () => {
    await using small = await startV2Proxy({ upstream: influxd.url, token: TOKEN, maxBytes: 20_000 });
    const lines = Array.from({ length: 1000 }, (_, n) => line(n, n));
    const narrow = createInfluxSink({
      name: 'n',
      url: small.url,
      token: new Secret(TOKEN),
      org: '',
      bucket,
      timeoutMs: 10_000,
    });
    expect(await resolveBatch(narrow, lines, noControl, never)).toMatchObject({
      resolved: 1000,
      tooLarge: true,
      blocked: null,
    });
    expect(await stored()).toHaveLength(1000);
  });
});
