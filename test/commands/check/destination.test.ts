/**
 * `--check`, destinations: real databases, as they should be and not.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CheckReport } from '../../../src/commands/check/report.ts';
import { destinationIdentity } from '../../../src/core/lines/dialect.ts';
import { DAY_MS, MINUTE_MS, msToNs } from '../../../src/core/time.ts';
import { openStore } from '../../../src/store/store.ts';
import { pageCommit } from '../../store/support.ts';
import { type Influxd, influxdAvailable, startInfluxd } from '../../support/influxd.ts';
import { startInfluxdb3 } from '../../support/influxdb3.ts';
import { patient } from '../../support/patience.ts';
import { FAULTS, startV2Proxy, type V2Proxy } from '../../support/v2-proxy.ts';
import { startVictoria, type Victoria, victoriaAvailable } from '../../support/victoria.ts';
import { bad, type CheckStage, line, openStage, serve, TOKEN } from './support.ts';

/** The results about the database alone, without the API. */
async function destination(
  stage: CheckStage,
  env: Readonly<Record<string, string>>,
  args: readonly string[] = [],
): Promise<CheckReport> {
  const report = await stage.report(
    { TIDEMARK_API_URL: 'http://127.0.0.1:1/external/v1', TIDEMARK_INFLUX_TIMEOUT: '1s', ...env },
    args,
  );
  expect(report.requests).toBe(0);
  return { ...report, checks: report.checks.filter(({ area }) => ['destination', 'dashboards'].includes(area)) };
}

describe.runIf(influxdAvailable())('InfluxDB', () => {
  let influxd: Influxd;
  let proxy: V2Proxy;
  beforeAll(async () => {
    influxd = await startInfluxd({ databases: ['b'] });
    await influxd.query('', 'CREATE RETENTION POLICY week ON b DURATION 7d REPLICATION 1');
    proxy = await startV2Proxy({ upstream: influxd.url, token: TOKEN });
  });
  afterAll(async () => {
    await proxy?.close();
    await influxd?.close();
  });
  const env = (bucket = 'b', token = TOKEN): Record<string, string> => ({
    TIDEMARK_INFLUX_URL: proxy.url,
    TIDEMARK_INFLUX_BUCKET: bucket,
    TIDEMARK_INFLUX_TOKEN: token,
  });

  test('as it should be: not a point is written, and one with --write-probe', async () => {
    await using stage = await openStage();
    const report = await destination(stage, env());
    expect(bad(report)).toEqual([]);
    expect(line(report, 'retention')).toMatchObject({
      message: 'the database keeps points forever',
      facts: { unlimited: true },
    });
    expect(line(report, 'write')).toMatchObject({
      message: 'the database accepts an empty write request: address, token and bucket are right',
      facts: { probe_written: false },
    });
    expect(await influxd.query('b', 'SHOW MEASUREMENTS')).toEqual([]);
    const probed = await destination(stage, env(), ['--write-probe']);
    expect(bad(probed)).toEqual([]);
    expect(line(probed, 'write').facts).toEqual({ probe_written: true });
    const points = await influxd.query('b', 'SELECT * FROM tidemark_probe');
    expect(points).toMatchObject([{ value: 1 }]);
    expect(Math.abs(Number((points[0]?.['time'] as bigint) / 1_000_000n) - Date.now())).toBeLessThan(10_000);
  });

  test('a retention that is shorter than the history: a warning', async () => {
    await using stage = await openStage();
    const report = await destination(stage, env('b/week'));
    expect(bad(report)).toEqual(['warn retention']);
    expect(line(report, 'retention')).toMatchObject({
      message: expect.stringMatching(/^the database keeps points for only 7 days, but sync\.history goes back 30 days/),
      facts: { retention_seconds: 604_800 },
      remedy: 'Set a longer retention in the database, or shorten sync.history.',
    });
    expect(bad(await destination(stage, { ...env('b/week'), TIDEMARK_SYNC_HISTORY: '6d' }))).toEqual([]);
    await influxd.query('', 'ALTER RETENTION POLICY week ON b DURATION 52w');
    expect(bad(await destination(stage, env('b/week')))).toEqual([]);
  });

  test('a missing database fails the write', async () => {
    await using stage = await openStage();
    const report = await destination(stage, env('missing'));
    expect(bad(report)).toEqual(['fail write']);
    expect(line(report, 'write')).toMatchObject({
      remedy: expect.stringMatching(/influx\.bucket: no such bucket or database/),
    });
    expect(report.exit_code).toBe(1);
  });

  test('a wrong token fails the write', async () => {
    await using stage = await openStage();
    const report = await destination(stage, env('b', 'CANARYuser:CANARYwrong'));
    expect(bad(report)).toEqual(['fail write']);
    expect(line(report, 'write').remedy).toMatch(/influx\.token: missing, or not accepted/);
  });

  test('in an outage, and behind a login page', async () => {
    await using stage = await openStage();
    try {
      proxy.setFaults(() => FAULTS.unavailable);
      const down = await destination(stage, env());
      expect(bad(down)).toEqual(['fail write']);
      expect(line(down, 'write').remedy).toBe(
        'The database is overloaded or has a problem: check its log and run --check again.',
      );
      proxy.setFaults(() => FAULTS.loginPage);
      const page = await destination(stage, env());
      expect(line(page, 'write').remedy).toMatch(/influx\.url: the server there is not a database/);
    } finally {
      proxy.setFaults(null);
    }
    expect(bad(await destination(stage, env()))).toEqual([]);
  });

  test('at an address that refuses an empty write, and a point for a reason that nothing explains', async () => {
    await using stage = await openStage();
    try {
      proxy.setFaults(() => ({ kind: 'answer', status: 400, body: 'no reason given' }));
      const unclear = await destination(stage, env());
      expect(line(unclear, 'write')).toMatchObject({ status: 'warn', remedy: expect.stringMatching(/--write-probe/) });
      const refused = await destination(stage, env(), ['--write-probe']);
      expect(line(refused, 'write')).toMatchObject({
        status: 'fail',
        message: expect.stringMatching(/^the database rejects a point .*no reason given/),
        remedy: 'Check that influx.url is the base address of the database, and check its log.',
      });
    } finally {
      proxy.setFaults(null);
    }
  });

  test('its own address, where nothing accepts writes of version 2', async () => {
    await using stage = await openStage();
    const report = await destination(stage, { TIDEMARK_INFLUX_URL: influxd.url, TIDEMARK_INFLUX_BUCKET: 'b' });
    expect(line(report, 'kind').message).toMatch(
      /^InfluxDB 1\.6\.7\S* answers; Tidemark needs InfluxDB 1\.8 or later$/,
    );
    expect(bad(report)).toEqual(['fail kind', 'fail write']);
    expect(line(report, 'write').remedy).toBe('Upgrade it to InfluxDB 1.8 or later.');
  });

  test('it is called a VictoriaMetrics', async () => {
    await using stage = await openStage();
    const report = await destination(stage, { ...env(), TIDEMARK_INFLUX_KIND: 'victoriametrics' });
    expect(report.exit_code).toBe(1);
    expect(bad(report)).toContain('fail write');
  });

  test('two of them, one of which is down: each is reported by its name', async () => {
    await using stage = await openStage();
    const file = `${stage.directory}/config.yaml`;
    const { writeFileSync } = await import('node:fs');
    writeFileSync(
      file,
      `influx: {url: "${proxy.url}", bucket: b}\ndestinations: {second: {url: "http://127.0.0.1:1", bucket: b}}\n`,
    );
    const report = await destination(stage, { TIDEMARK_INFLUX_TOKEN: TOKEN }, ['--config', file]);
    expect(report.checks.map(({ destination: name }) => name)).toEqual([
      'influx',
      'influx',
      'influx',
      'influx',
      'second',
      'influx',
    ]);
    expect(report.checks.at(-1)).toMatchObject({ area: 'dashboards', name: 'queries', status: 'ok' });
    expect(line(report, 'kind').destination).toBe('influx');
    const dead = report.checks.at(-2);
    expect(dead).toMatchObject({ name: 'reachable', status: 'fail' });
    // The advice once, not in the message as well.
    expect(dead).toMatchObject({
      message: 'the database refuses the connection',
      remedy: 'Check that it is running and that destinations.second.url is right.',
    });
    writeFileSync(file, `destinations: {second: {url: "${proxy.url}", bucket: b}}\n`);
    const found = await destination(stage, { TIDEMARK_INFLUX_TOKEN: TOKEN }, ['--config', file]);
    expect(found.checks.filter(({ name }) => name === 'reachable')).toEqual([]);
  });
});

describe('replacements for versions that are not available', () => {
  test('InfluxDB 2: an empty write that is refused for being empty, and the rule of its bucket', async () => {
    await using stage = await openStage();
    await using influx2 = await serve((request, response) => {
      const headers = {
        'x-influxdb-build': 'OSS',
        'x-influxdb-version': 'v2.7.11',
        'content-type': 'application/json',
      };
      const isWrite = request.url?.startsWith('/api/v2/write');
      const buckets = { buckets: [{ name: 'b', retentionRules: [{ type: 'expire', everySeconds: 86_400 }] }] };
      response.writeHead(isWrite ? 400 : 200, headers);
      response.end(isWrite ? '{"code":"invalid","message":"writing requires points"}' : JSON.stringify(buckets));
    });
    const report = await destination(stage, { TIDEMARK_INFLUX_URL: influx2.url, TIDEMARK_INFLUX_BUCKET: 'b' });
    expect(line(report, 'kind').message).toBe('InfluxDB v2.7.11');
    expect(bad(report)).toEqual(['warn retention']);
    const called = { TIDEMARK_INFLUX_URL: influx2.url, TIDEMARK_INFLUX_KIND: 'victoriametrics' };
    expect(line(await destination(stage, called), 'kind')).toMatchObject({
      status: 'fail',
      remedy: 'Set influx.kind to influxdb, or leave it out.',
    });
    const renamed = { ...called, TIDEMARK_INFLUX_KIND: 'influxdb', TIDEMARK_INFLUX_BUCKET: 'b' };
    expect(line(await destination(stage, renamed), 'kind').status).toBe('ok');
    expect(line(report, 'retention').facts).toEqual({ retention_seconds: 86_400, unlimited: false });
    const byId = { TIDEMARK_INFLUX_URL: influx2.url, TIDEMARK_INFLUX_BUCKET: '0123456789abcdef' };
    expect(line(await destination(stage, byId), 'bucket')).toMatchObject({
      message: 'influx.bucket looks like the id of a bucket: points can be written to it, but not queried',
      remedy: expect.stringContaining('Set influx.bucket to the name of the bucket'),
    });
    expect(
      report.checks.map(({ name }) => name),
      'with the name of the bucket',
    ).not.toContain('bucket');
  });

  test('a database that refuses an empty write for its own reasons needs a probe with a point', async () => {
    await using stage = await openStage();
    await using odd = await serve((request, response) => {
      let body = '';
      request.on('data', (chunk) => (body += String(chunk)));
      request.on('end', () => {
        response.writeHead(body === '' ? 400 : 204, { 'x-influxdb-build': 'x' });
        response.end(body === '' ? '{"error":"no"}' : '');
      });
    });
    const report = await destination(stage, { TIDEMARK_INFLUX_URL: odd.url, TIDEMARK_INFLUX_BUCKET: 'b' });
    expect(bad(report)).toEqual(['warn write']);
    expect(line(report, 'write').remedy).toMatch(/^Run --check --write-probe/);
    const probed = await destination(stage, { TIDEMARK_INFLUX_URL: odd.url, TIDEMARK_INFLUX_BUCKET: 'b' }, [
      '--write-probe',
    ]);
    expect(line(probed, 'write')).toMatchObject({ status: 'ok', facts: { probe_written: true } });
  });

  test('an InfluxDB that rejects queries: the right to read, and the mapping of version 2', async () => {
    await using stage = await openStage();
    await using influx2 = await serve((request, response) => {
      const headers = { 'x-influxdb-build': 'OSS', 'x-influxdb-version': 'v2.7.11' };
      response.writeHead(request.url?.startsWith('/api/v2/write') ? 204 : 401, headers).end();
    });
    const report = await destination(stage, { TIDEMARK_INFLUX_URL: influx2.url, TIDEMARK_INFLUX_BUCKET: 'b' });
    expect(line(report, 'queries')).toMatchObject({
      status: 'warn',
      remedy:
        'Give influx.token read permission for the bucket. InfluxDB 2 may also need a DBRP mapping for the bucket (docs/databases.md).',
    });
  });

  test('a database that never answers ends with its timeout', async () => {
    await using stage = await openStage();
    await using silent = await serve(() => {});
    const beganMs = performance.now();
    const report = await destination(stage, { TIDEMARK_INFLUX_URL: silent.url, TIDEMARK_INFLUX_BUCKET: 'b' });
    expect(performance.now() - beganMs).toBeLessThan(patient(3000));
    expect(bad(report)).toEqual(['fail reachable']);
    expect(line(report, 'reachable')).toMatchObject({
      message: 'no answer within influx.timeout',
      remedy: 'Check that the database is running and that influx.url, the network and influx.ca_file are right.',
    });
    await using answering = await serve((_request, response) => response.writeHead(204).end());
    const followed = await destination(stage, { TIDEMARK_INFLUX_URL: answering.url, TIDEMARK_INFLUX_BUCKET: 'b' });
    expect(line(followed, 'reachable').status).toBe('ok');
  });
});

describe.runIf(victoriaAvailable())('VictoriaMetrics', () => {
  /** How many series there are; what was written a moment ago shows itself within a second or two. */
  async function samplesOf(victoria: Victoria, args: readonly string[]): Promise<number> {
    for (let tries = 0; args.length > 0 && tries < 50; tries += 1) {
      const count = (await victoria.exported()).length;
      if (count > 0) return count;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return (await victoria.exported()).length;
  }

  /** Later flags win over those of the support. */
  async function reported(
    flags: readonly string[],
    env: Readonly<Record<string, string>> = {},
    args: readonly string[] = [],
  ): Promise<{ report: CheckReport; samples: number }> {
    await using victoria: Victoria = await startVictoria(...flags);
    await using stage = await openStage();
    const report = await destination(
      stage,
      { TIDEMARK_INFLUX_URL: victoria.url, TIDEMARK_INFLUX_KIND: 'victoriametrics', ...env },
      args,
    );
    return { report, samples: flags.some((flag) => /httpAuth/.test(flag)) ? 0 : await samplesOf(victoria, args) };
  }

  test('with its deduplication at 1 ms, and for ever: all is well, and nothing is written', async () => {
    const { report, samples } = await reported([]);
    expect(bad(report)).toEqual([]);
    expect(line(report, 'deduplication')).toMatchObject({ status: 'ok', facts: { dedup_ms: 1 } });
    expect(line(report, 'retention').facts).toMatchObject({ retention_seconds: 3_153_600_000 });
    expect(samples).toBe(0);
    expect(line(report, 'kind').message).toMatch(/^VictoriaMetrics/);
    expect(line(report, 'write').message).toMatch(/: the address is right \(no token is configured\)$/);
  });

  test('its default retention of a month: a warning, although the history is shorter', async () => {
    const { report } = await reported(['-retentionPeriod=1']);
    expect(bad(report)).toEqual(['warn retention']);
    expect(line(report, 'retention')).toMatchObject({
      message: expect.stringMatching(/^the database keeps points for only 31 days, the default of VictoriaMetrics: /),
      remedy: 'Start VictoriaMetrics with a longer -retentionPeriod, unless a month is enough for you.',
      facts: { retention_seconds: 2_678_400 },
    });
    expect(bad((await reported(['-retentionPeriod=32d'])).report)).toEqual([]);
  });

  test('a probe is one sample', async () => {
    const { report, samples } = await reported([], {}, ['--write-probe']);
    expect([bad(report), samples]).toEqual([[], 1]);
  });

  test.each([
    ['0s', /^deduplication is off: points that are sent again/, 0],
    ['30s', /^VictoriaMetrics keeps only one of several readings within 30 s/, 30_000],
    ['5ms', /^VictoriaMetrics keeps only one of several readings within 5 ms/, 5],
  ])('with a deduplication of %s', async (interval, words, ms) => {
    const { report } = await reported([`-dedup.minScrapeInterval=${interval}`]);
    expect(bad(report)).toEqual(['fail deduplication']);
    expect(line(report, 'deduplication')).toMatchObject({
      message: expect.stringMatching(words),
      remedy: expect.stringMatching(/-dedup\.minScrapeInterval=1ms/),
      facts: { dedup_ms: ms },
    });
    expect(report.exit_code).toBe(1);
  });

  test('found by itself, and called an InfluxDB', async () => {
    const auto = await reported([], { TIDEMARK_INFLUX_KIND: 'auto', TIDEMARK_INFLUX_BUCKET: 'x' });
    expect([bad(auto.report), line(auto.report, 'kind').facts]).toEqual([
      [],
      { kind: 'victoriametrics', version: null },
    ]);
    const { report } = await reported([], { TIDEMARK_INFLUX_KIND: 'influxdb', TIDEMARK_INFLUX_BUCKET: 'x' });
    expect(bad(report)).toEqual(['fail kind']);
    expect(line(report, 'kind').remedy).toMatch(/Set influx\.kind to victoriametrics/);
  });

  test('a user and a password are checked, right or wrong', async () => {
    const flags = ['-httpAuth.username=CANARYuser', `-httpAuth.password=${TOKEN.split(':')[1]}`];
    const right = await reported(flags, { TIDEMARK_INFLUX_TOKEN: TOKEN });
    expect(bad(right.report)).toEqual([]);
    const { report } = await reported(flags, { TIDEMARK_INFLUX_TOKEN: 'CANARYuser:CANARYother' });
    expect(bad(report)).toContain('fail write');
    expect(line(report, 'write').remedy).toMatch(/influx\.token/);
  });

  test('a path that it does not have: the address without it', async () => {
    await using victoria = await startVictoria();
    await using stage = await openStage();
    const env = { TIDEMARK_INFLUX_URL: `${victoria.url}/foo`, TIDEMARK_INFLUX_KIND: 'victoriametrics' };
    for (const args of [[], ['--write-probe']]) {
      const report = await destination(stage, env, args);
      expect([bad(report), report.exit_code]).toEqual([['fail write'], 1]);
      expect(line(report, 'write')).toMatchObject({
        message: 'HTTP 400: unsupported path requested: "/foo/api/v2/write"',
        remedy: expect.stringMatching(
          /^influx\.url: VictoriaMetrics has no such path; the address is http:\/\/host:8428, /,
        ),
      });
    }
    const auto = { ...env, TIDEMARK_INFLUX_KIND: 'auto', TIDEMARK_INFLUX_BUCKET: 'x' };
    expect(line(await destination(stage, auto), 'write').remedy).toMatch(
      /^influx\.url: VictoriaMetrics has no such path/,
    );
    expect(bad(await destination(stage, { ...env, TIDEMARK_INFLUX_URL: victoria.url }))).toEqual([]);
  });

  test('a proxy that hides its flags: a warning that names the setting', async () => {
    await using stage = await openStage();
    await using front = await serve((request, response) => {
      const isWrite = request.url?.startsWith('/api/v2/write') ?? false;
      response.writeHead(isWrite ? 204 : 200, { 'x-server-hostname': 'vmauth' });
      response.end(isWrite ? undefined : '-auth.config="/etc/auth.yml"\n');
    });
    const env = { TIDEMARK_INFLUX_URL: front.url, TIDEMARK_INFLUX_KIND: 'victoriametrics' };
    const report = await destination(stage, env);
    expect(bad(report)).toEqual(['warn deduplication']);
    expect(line(report, 'deduplication')).toMatchObject({
      facts: { dedup_ms: null },
      remedy: expect.stringMatching(
        /^Check that VictoriaMetrics was started with -dedup\.minScrapeInterval=1ms \(in a cluster/,
      ),
    });
    // Looked at behind the proxy: a database that was started so.
    const started = await reported(['-dedup.minScrapeInterval=1ms']);
    expect(line(started.report, 'deduplication')).toMatchObject({ status: 'ok', facts: { dedup_ms: 1 } });
  });
});

test.each([
  [
    'five databases already',
    ['a', 'b', 'c', 'd', 'e'],
    'fresh',
    /it has 5 databases, and Core allows 5/,
    'fail bucket',
  ],
  ['a name that it refuses', ['a'], 'a b?c', /a name has only letters/, 'fail bucket'],
  ['room for one more', ['a', 'b', 'c', 'd'], 'fresh', /it creates one with the first point/, 'warn bucket'],
])('the database of an InfluxDB 3 with %s', async (_, databases, bucket, message, found) => {
  await using server = await startInfluxdb3({ databases });
  await using stage = await openStage();
  const env = {
    TIDEMARK_INFLUX_URL: server.url,
    TIDEMARK_INFLUX_BUCKET: bucket,
    TIDEMARK_INFLUX_TOKEN: server.token,
  };
  const report = await destination(stage, env);
  expect(bad(report)).toEqual([found]);
  expect(line(report, 'bucket').message).toMatch(message);
  expect(line(report, 'bucket').remedy).toMatch(/influx\.bucket/);
  if (found === 'warn bucket')
    expect(line(report, 'bucket').remedy).toBe('If you meant an existing database, correct influx.bucket.');
  expect(bad(await destination(stage, { ...env, TIDEMARK_INFLUX_BUCKET: 'a' }))).toEqual([]);
  expect([...server.databases]).toEqual(databases);
});

test('a retention that InfluxDB 3 does not report is known once --verify has recorded the hidden points', async () => {
  await using server = await startInfluxdb3({ databases: ['home', 'longer'] });
  await using stage = await openStage();
  const env = {
    TIDEMARK_INFLUX_URL: server.url,
    TIDEMARK_INFLUX_BUCKET: 'home',
    TIDEMARK_INFLUX_TOKEN: server.token,
    TIDEMARK_INFLUX_KIND: 'influxdb',
  };
  const before = await destination(stage, env);
  expect(line(before, 'retention').status).not.toBe('warn');

  const { store, close } = openStore(stage.dataDir);
  const { id } = store.useDestination(
    'influx',
    destinationIdentity({ kind: 'influxdb', url: server.url, org: '', bucket: 'home' }),
  );
  const toMs = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS - 40 * DAY_MS;
  const toNs = msToNs(toMs);
  store.commitPage(pageCommit({ deviceId: 'hub-1' }));
  const reason = 'beyond_retention';
  const missed = [{ deviceId: 'hub-1', fromNs: toNs - 9n, toNs, reason, points: 1200 }] as const;
  store.amendMissing(id, { found: [], missed });
  close();
  const long = { ...env, TIDEMARK_SYNC_HISTORY: '90d' };
  const after = await destination(stage, long);
  const shown = new Date(toMs).toISOString().slice(0, 16);
  expect(line(after, 'retention')).toMatchObject({
    status: 'warn',
    message: expect.stringContaining(`accepted 1,200 points older than ${shown}Z, but does not return them`),
    remedy: 'Use a database with a longer retention, or shorten sync.history.',
  });
  for (const followed of [
    { ...long, TIDEMARK_INFLUX_BUCKET: 'longer' },
    { ...env, TIDEMARK_SYNC_HISTORY: '30d' },
  ])
    expect(line(await destination(stage, followed), 'retention').status).not.toBe('warn');
});
