/** The configuration: the result of file and environment together, the demo, and the schema. */
import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { loadDemoConfig } from '../../src/config/load.ts';
import { fileForm, keyEntries, variableOf } from '../../src/config/schema.ts';
import { InvalidText } from '../../src/config/values.ts';
import { DAY_MS, MINUTE_MS } from '../../src/core/time.ts';
import { exampleConfig } from '../support/example-config.ts';
import { API, load, loadWithApi, mistakesOf, NOW_MS, PEM, reader } from './support.ts';

describe('the configuration from file and environment', () => {
  test('the two required keys alone give every default', () => {
    const { config } = load({ yaml: 'api:\n  url: https://api.test/external/v1\n  key: key-4242\n' });
    expect(config).toMatchObject({
      api: {
        url: 'https://api.test/external/v1',
        keyFile: null,
        share: 0.8,
        concurrency: 4,
        timeoutMs: 30_000,
        ca: null,
      },
      influx: null,
      workspaceId: null,
      dataDir: './data',
      archive: { retentionMs: 30 * DAY_MS, maxBytes: 2 * 1024 ** 3 },
      sync: { history: { kind: 'age', ageMs: 30 * DAY_MS }, gracePeriodMs: 2 * MINUTE_MS },
      listen: { host: '127.0.0.1', port: 9464 },
      log: { level: 'info', format: 'auto' },
    });
    expect(config.api.key.reveal()).toBe('key-4242');
  });

  test('every key of the file takes effect', () => {
    const yaml = `
api: {url: 'http://127.0.0.1:8080/external/v1/', key_file: api-key, share: 0.25, concurrency: 2, timeout: 1m, ca_file: ca.pem}
influx: {url: 'http://db:8086/', token_file: token, org: o, bucket: db/rp, kind: influxdb, ca_file: ca.pem, timeout: 5s, batch_lines: 100}
workspace: {id: w-1}
data_dir: /var/lib/tidemark
sync: {history: 2w, grace_period: 0s}
archive: {retention: 90d, max_size: 512MiB}
listen: '[::1]:0'
log: {level: debug, format: json}
`;
    const { config, secrets } = load({ yaml, files: { 'api-key': 'a-b:c\n', token: 'user:pass\r\n', 'ca.pem': PEM } });
    expect(config).toMatchObject({
      api: {
        url: 'http://127.0.0.1:8080/external/v1',
        keyFile: 'api-key',
        share: 0.25,
        concurrency: 2,
        timeoutMs: MINUTE_MS,
        ca: PEM,
      },
      influx: {
        url: 'http://db:8086',
        tokenFile: 'token',
        org: 'o',
        bucket: 'db/rp',
        kind: 'influxdb',
        timeoutMs: 5000,
        batchLines: 100,
        ca: PEM,
      },
      workspaceId: 'w-1',
      dataDir: '/var/lib/tidemark',
      archive: { retentionMs: 90 * DAY_MS, maxBytes: 512 * 1024 ** 2 },
      sync: { history: { kind: 'age', ageMs: 14 * DAY_MS }, gracePeriodMs: 0 },
      listen: { host: '::1', port: 0 },
      log: { level: 'debug', format: 'json' },
    });
    expect(secrets.map((secret) => secret.reveal())).toEqual(['a-b:c', 'user:pass']);
  });

  test('the environment wins, key by key, even over a value that is wrong', () => {
    const { config } = loadWithApi({
      yaml: 'sync:\n  grace_period: nonsense\n  history: 5d\nlog:\n  level: warn\n',
      environment: { TIDEMARK_SYNC_GRACE_PERIOD: '3m', TIDEMARK_LOG_LEVEL: 'error' },
    });
    expect(config.sync).toMatchObject({ history: { kind: 'age', ageMs: 5 * DAY_MS }, gracePeriodMs: 180_000 });
    expect(config.log.level).toBe('error');
  });

  test('patterns come as a list in the file, as one text with commas anywhere', () => {
    const spec = (yaml: string, environment: Record<string, string> = {}) =>
      loadWithApi({ yaml, environment }).config.sync.leftOut;
    expect(spec('')).toEqual({ include: [], exclude: [], excludeSensors: [], includesLocation: true });
    expect(spec('sync: {include: [hub-*, "Kitchen, left", 007], exclude: [], location: false}')).toEqual({
      include: ['hub-*', 'Kitchen, left', '007'],
      exclude: [],
      excludeSensors: [],
      includesLocation: false,
    });
    const text = 'rssi , Cold store,env.*';
    const patterns = ['rssi', 'Cold store', 'env.*'];
    expect(spec(`sync:\n  exclude_sensors: ${text}\n`).excludeSensors).toEqual(patterns);
    expect(spec('sync:\n  exclude_sensors:\n    - rssi\n    - Cold store\n    - env.*\n').excludeSensors).toEqual(
      patterns,
    );
    expect(spec('sync: {exclude_sensors: [x]}', { TIDEMARK_SYNC_EXCLUDE_SENSORS: text }).excludeSensors).toEqual(
      patterns,
    );
  });

  test('an empty variable counts as unset, known or not', () => {
    const environment = { TIDEMARK_LOG_LEVEL: '', TIDEMARK_API_KEY_FILE: '', TIDEMARK_NONSENSE: '' };
    expect(loadWithApi({ environment }).config.log.level).toBe('info');
  });

  test('variables of Kubernetes and of other programs are ignored', () => {
    const environment = {
      TIDEMARK_SERVICE_HOST: '10.0.0.1',
      TIDEMARK_SERVICE_PORT_HTTP: '1',
      TIDEMARK_PORT: 'tcp://10.0.0.1:9464',
      TIDEMARK_PORT_9464_TCP_ADDR: '10.0.0.1',
      PATH: '/bin',
      TIDEMARKS: 'x',
    };
    expect(loadWithApi({ environment }).config.listen.port).toBe(9464);
  });

  test.each([
    ['90d', { kind: 'age', ageMs: 90 * DAY_MS }],
    ['1w', { kind: 'age', ageMs: 7 * DAY_MS }],
    ['36h', { kind: 'age', ageMs: 1.5 * DAY_MS }],
    ['all', { kind: 'age', ageMs: 30 * DAY_MS, isAll: true }],
    ['2026-01-31', { kind: 'since', since: BigInt(Date.UTC(2026, 0, 31)) * 1_000_000n }],
    [
      '2026-01-31T01:00:00.5+01:00',
      { kind: 'since', since: BigInt(Date.UTC(2026, 0, 31)) * 1_000_000n + 500_000_000n },
    ],
  ])('sync.history accepts %s', (text, history) => {
    expect(loadWithApi({ yaml: `sync:\n  history: ${text}\n` }).config.sync.history).toEqual(history);
  });

  test.each([
    ['localhost:0', { host: 'localhost', port: 0 }],
    ['0.0.0.0:65535', { host: '0.0.0.0', port: 65_535 }],
    ['[::]:9464', { host: '::', port: 9464 }],
  ])('listen accepts %s', (text, listen) => {
    expect(loadWithApi({ environment: { TIDEMARK_LISTEN: text } }).config.listen).toEqual(listen);
  });

  test('YAML scalars are texts: a key never becomes a number, date or boolean', () => {
    const { config } = load({ yaml: 'api:\n  url: https://api.test/external/v1\n  key: 0012345678901234567890\n' });
    expect(config.api.key.reveal()).toBe('0012345678901234567890');
  });

  test('a missing default file and an empty one are fine', () => {
    expect(load({ environment: API }).config.api.share).toBe(0.8);
    for (const yaml of ['', '# nothing\n', 'influx:\nsync: ~\n', '\uFEFFlog:\n  level: info\n']) {
      expect(loadWithApi({ yaml }).config.influx).toBeNull();
    }
  });

  test('--config names the file', () => {
    const { config } = loadWithApi({
      file: 'own.yaml',
      files: { 'own.yaml': 'log: {level: warn}' },
      yaml: 'log: {level: debug}',
    });
    expect(config.log.level).toBe('warn');
  });

  test('secrets name the variables to delete, and never appear in output', () => {
    const environment = {
      TIDEMARK_INFLUX_TOKEN: 'token-4242',
      TIDEMARK_INFLUX_URL: 'http://db',
      TIDEMARK_INFLUX_BUCKET: 'b',
    };
    const loaded = loadWithApi({ environment });
    expect(loaded.secretVariables).toEqual(['TIDEMARK_API_KEY', 'TIDEMARK_INFLUX_TOKEN']);
    const { config, secrets } = loaded;
    expect(
      `${config.api.key}${JSON.stringify(config)}${inspect(config, { depth: 9, showHidden: true })}`,
    ).not.toContain('4242');
    expect({ ...config.api.key }).toEqual({});
    expect(secrets.map((secret) => secret.reveal())).toEqual(['key-4242', 'token-4242']);
  });
});

describe('the demo', () => {
  const demo = (environment: Record<string, string>) =>
    loadDemoConfig({ environment, nowMs: NOW_MS, readFile: reader({ files: { token: 'abcd' } }) });

  test('needs nothing, reads no file, and leaves place and port to itself', () => {
    const readFile = (path: string): string => {
      throw new Error(`read ${path}`);
    };
    expect(loadDemoConfig({ environment: {}, nowMs: NOW_MS, readFile }).config).toMatchObject({
      api: { share: 0.8, concurrency: 4, timeoutMs: 30_000 },
      influx: null,
      dataDir: null,
      listen: null,
      log: { level: 'info' },
    });
  });

  test('goes by the environment otherwise', () => {
    const { config } = demo({
      TIDEMARK_DATA_DIR: '/data',
      TIDEMARK_LISTEN: '0.0.0.0:9464',
      TIDEMARK_INFLUX_URL: 'http://db',
      TIDEMARK_INFLUX_BUCKET: 'b',
      TIDEMARK_INFLUX_TOKEN_FILE: 'token',
      TIDEMARK_SYNC_HISTORY: '90d',
    });
    expect(config).toMatchObject({
      dataDir: '/data',
      listen: { port: 9464 },
      influx: { bucket: 'b', tokenFile: 'token' },
    });
    expect(config.sync.history).toEqual({ kind: 'age', ageMs: 90 * DAY_MS });
  });

  test('never uses the address of the real API, and requires that its key is deleted', () => {
    const { config, secretVariables } = demo({ ...API, TIDEMARK_API_KEY_FILE: 'none', TIDEMARK_API_CA_FILE: 'none' });
    expect(JSON.stringify(config)).not.toContain('api.test');
    expect(Object.keys(config.api)).toEqual(['share', 'concurrency', 'timeoutMs']);
    expect(secretVariables).toEqual(['TIDEMARK_API_KEY']);
  });

  test('still refuses wrong values', () => {
    expect(mistakesOf(() => demo({ TIDEMARK_LISTEN: '9464', TIDEMARK_NONE: '1' }))).toHaveLength(2);
  });
});

describe('the schema', () => {
  test('every default and every example is a value of its kind', () => {
    for (const [path, key] of keyEntries()) {
      if (key.kind !== 'value') continue;
      for (const text of [key.default, key.example]) {
        if (text !== null && text !== undefined)
          expect([path, key.parse(text, NOW_MS)]).not.toEqual([path, expect.any(InvalidText)]);
      }
      expect(key.default ?? key.example).toBeDefined();
    }
  });

  test('no two keys share a variable, file forms included', () => {
    const paths = keyEntries().flatMap(([path, { kind }]) => (kind === 'secret' ? [path, fileForm(path)] : [path]));
    expect(new Set(paths.map(variableOf)).size).toBe(paths.length);
  });

  test.each(['evil.example:80', 'https://a.example', 'a..b', 'a b', ',', 'ü.example'])(
    'listen_names accepts only host names, not %s',
    (text) => {
      expect(() => loadWithApi({ environment: { TIDEMARK_LISTEN_NAMES: text } })).toThrow(
        'listen_names (TIDEMARK_LISTEN_NAMES): expected host names without a port',
      );
    },
  );

  test('config/tidemark.example.yaml follows the schema (update it with vitest -u)', async () => {
    await expect(exampleConfig()).toMatchFileSnapshot('../../config/tidemark.example.yaml');
  });

  test('the example file is usable as it stands, and with every line of it in force', () => {
    const files = {
      '/run/secrets/tidemark_api_key': 'abcd',
      '/run/secrets/tidemark_influx_token': 'efgh',
      '/run/secrets/tidemark-page-password': 'ijkl',
      '/etc/ssl/own-ca.pem': PEM,
    };
    expect(load({ yaml: exampleConfig(), files }).config.influx).toBeNull();
    const whole = exampleConfig().replace(/^( *)# ([a-z_]+: )/gm, '$1$2');
    const { config } = load({ yaml: whole, files });
    expect([config.influx?.bucket, config.statusPage.names, config.statusPage.password?.reveal()]).toEqual([
      'devices',
      ['tidemark.example.com'],
      'ijkl',
    ]);
  });
});
