/** The configuration: every mistake in file and environment is reported at once, with its place. */
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { variableOf } from '../../src/config/schema.ts';
import { API, load, loadWithApi, mistakesOf, NOW_MS } from './support.ts';

describe('mistakes', () => {
  test('an empty configuration refers to the command that creates one', () => {
    expect(mistakesOf(() => load({})).join()).toContain(
      'api.url: is missing; run tidemark init (in a checkout: npm start -- init), which asks for everything, or set it in config/tidemark.yaml (--config names another file)',
    );
    expect(mistakesOf(() => load({ environment: { TIDEMARK_API_KEY: 'x'.repeat(20) } })).join()).not.toContain('init');
    const systemd = mistakesOf(() => load({ environment: { TIDEMARK_DATA_DIR: '/var/lib/tidemark/home' } }));
    expect(systemd.join()).toContain(
      'run tidemark-workspace home init, which asks for everything, or set TIDEMARK_API_URL',
    );
    expect(systemd.join()).not.toMatch(/config\/tidemark\.yaml|npm/);
  });

  test('all are reported at once, from both sources, in one refusal', () => {
    const yaml = 'api:\n  shar: 1\n  share: 2\nmetrics:\n  per_device: a\nlog:\n  level: loud\n';
    const lines = mistakesOf(() => load({ yaml, environment: { TIDEMARK_API_TIMEOUT: '30', TIDEMARK_LISTN: 'x:1' } }));
    expect(lines).toEqual([
      'config/tidemark.yaml, line 2: unknown key api.shar; did you mean api.share?',
      'TIDEMARK_LISTN: unknown variable; did you mean TIDEMARK_LISTEN?',
      expect.stringMatching(/^api\.url: is missing; .*TIDEMARK_API_URL.*\/external\/v1$/),
      expect.stringMatching(/^api\.key: is missing; .*api\.key_file or TIDEMARK_API_KEY_FILE/),
      'api.share (config/tidemark.yaml, line 3): expected a number above 0 and up to 1, such as 0.8',
      expect.stringMatching(/^api\.timeout \(TIDEMARK_API_TIMEOUT\): expected a time with its unit .* from 1s to 10m$/),
      'metrics.per_device (config/tidemark.yaml, line 5): expected true or false',
      'log.level (config/tidemark.yaml, line 7): expected one of error, warn, info, debug',
    ]);
  });

  test.each<[string, string[], string]>([
    ['api.url', ['ftp://x/external/v1', 'x/external/v1', 'https://', 'https:/x/external/v1'], 'https:// or http://'],
    ['api.url', ['https://x/v1', 'https://x/external/v1/devices', 'https://x'], 'ending in /external/v1'],
    ['api.url', ['https://u:p@x/external/v1', 'https://u@x/external/v1'], 'without a user name or password'],
    ['api.url', ['https://x/external/v1?a=b', 'https://x/external/v1#a'], 'without ? or #'],
    ['api.share', ['0', '0.0', '1.1', '-0.5', '80%', '.', 'NaN', '1e-1', 'half'], 'a number above 0 and up to 1'],
    ['api.concurrency', ['0', '65', '1.5', '-1', 'four', '0x4'], 'a whole number from 1 to 64'],
    ['api.timeout', ['30', '0s', '500ms', '11m', '1.5m', '30 s', '30S', 's'], 'a time with its unit'],
    ['influx.url', ['db:8086', 'http://'], 'https:// or http://'],
    ['influx.kind', ['v2', 'InfluxDB', 'prometheus'], 'one of auto, influxdb, victoriametrics'],
    ['influx.timeout', ['0s', '1h'], 'from 1s to 10m'],
    ['influx.batch_lines', ['0', '50001', '5k'], 'a whole number from 1 to 50000'],
    ['influx.bucket', ['a\nb', 'a\u0000b'], 'one line of text'],
    ['workspace.id', ['a\u001b[0m'], 'one line of text'],
    [
      'sync.history',
      ['0d', '30', 'yesterday', '2026-02-30', '2026-1-1', '99999w', '2026-01-01T00:00:00'],
      'an age such as 30d',
    ],
    ['sync.history', ['2026-11-22', '2026-11-21'], 'a time in the past'],
    ['sync.include', ['a,,b', ',', 'a,', ' , a'], 'is empty; expected patterns such as'],
    ['sync.exclude', ['x'.repeat(201), 'a,b\u0001'], 'is not a single line of at most 200 characters'],
    ['sync.exclude_sensors', ['x,'.repeat(1000)], 'at most 1000 patterns'],
    ['sync.location', ['yes', '1', 'True', 'off'], 'true or false'],
    ['sync.grace_period', ['61m', '2', '-1s'], 'from 0s to 1h'],
    ['archive.retention', ['59m', '30', '36501d'], 'from 1h to 36500d'],
    ['archive.max_size', ['2GB', '2', '63MiB', '5000GiB'], 'from 64MiB to 4096GiB'],
    [
      'listen',
      ['9464', ':9464', 'localhost', 'localhost:', 'localhost:65536', '::1:9464', '[::g]:1', '[]:1', 'a b:1', 'a:1:2'],
      'host:port',
    ],
    ['log.level', ['INFO', 'trace', 'verbose'], 'one of error, warn, info, debug'],
    ['log.format', ['text'], 'one of auto, json, pretty'],
  ])('%s refuses %j', (path, texts, words) => {
    const influx = { TIDEMARK_INFLUX_URL: 'http://db', TIDEMARK_INFLUX_BUCKET: 'b' };
    for (const text of texts) {
      const lines = mistakesOf(() => loadWithApi({ environment: { ...influx, [variableOf(path)]: text } }));
      expect(lines).toHaveLength(1);
      expect(lines[0]).toMatch(new RegExp(`^${path.replace('.', '\\.')} \\(${variableOf(path)}\\): `));
      expect(lines[0]).toContain(words);
    }
  });

  test.each<[string, string, RegExp]>([
    [
      'a key by its old name',
      'sync:\n  settle: 1m\n',
      /^config\/tidemark.yaml, line 2: sync.settle is now sync.grace_period; rename the key/,
    ],
    ['an unknown section', 'infux:\n  url: x\n', /^config\/tidemark.yaml, line 1: unknown key infux/],
    ['a key far from all others', 'frobnication:\n  deep: 1\n', /line 1: unknown key frobnication$/],
    ['a key of another section', 'log:\n  share: 1\n', /line 2: unknown key log\.share/],
    [
      'a dotted key',
      'api.share: 0.5\n',
      /line 1: write api\.share as a section: "api:" and on the next line, indented, "share:"/,
    ],
    ['a section that is a value', 'log: info\n', /^log \(config\/tidemark.yaml, line 1\): expected a section/],
    ['a value that is a section', 'log:\n  level:\n    info: 1\n', /^log\.level .*line 2\): expected a single value/],
    ['a list with an empty item', 'sync:\n  include: [a, ""]\n', /^sync\.include .*line 2\): pattern 2 is empty/],
    ['a list with a list in it', 'sync:\n  exclude: [a, [b]]\n', /^sync\.exclude .*: expected one value or a list of/],
    [
      'a list with a section in it',
      'sync:\n  exclude:\n    - a: b\n',
      /^sync\.exclude .*: expected one value or a list of/,
    ],
    ['a list without items that is no list', 'sync:\n  include:\n', /^sync\.include .*: is empty/],
    ['a value that is a list', 'data_dir: [a, b]\n', /^data_dir .*: expected a single value/],
    ['a key without a value', 'log:\n  level:\n', /^log\.level .*: is empty; give a value, or remove the key/],
    ['a key with empty quotes', 'data_dir: ""\n', /^data_dir .*: is empty/],
    ['a list as a whole', '- a\n', /^config\/tidemark.yaml: expected sections with keys/],
    ['a text as a whole', 'hello\n', /^config\/tidemark.yaml: expected sections with keys/],
    ['an alias', 'log:\n  level: &a info\n  format: *a\n', /^log\.format .*: expected a single value/],
    ['a tag', 'log:\n  level: !secret x\n', /line 2: tags \(!\) are not supported/],
    ['bytes', 'data_dir: !!binary aGVsbG8=\n', /^data_dir .*: expected a single value/],
    ['a merge', '<<: {log: {level: info}}\n', /line 1: unknown key$/],
    ['a key given twice', 'log:\n  level: info\n  level: warn\n', /line 3: this key appears twice/],
    ['a missing quote', 'log:\n  level: "info\n', /line \d: a quote, a bracket or a colon is missing/],
    ['a tab', 'log:\n\tlevel: info\n', /line 2: .*/],
    ['a second document', '---\nlog: {}\n---\nlog: {}\n', /line 3: a second YAML document begins here/],
    [
      'a key without its colon',
      'log:\n  level\n  format: json\n',
      /, line 2: a colon is missing, or line 3 is indented too far$/,
    ],
    [
      'an item of a list that is indented too far',
      'sync:\n  exclude:\n    - a\n     - b: c\n',
      /, line 3: a colon is missing, or line 4 is indented too far$/,
    ],
  ])('%s', (_what, yaml, words) => {
    const lines = mistakesOf(() => loadWithApi({ yaml }));
    expect(lines[0]).toMatch(words);
  });

  test.each([
    ['history: 30d\n', 'sync.history'],
    ['retention: 30d\n', 'archive.retention'],
    ['log: {share: 1}\n', 'api.share'],
    ['log: {Level: info, levl: info}\n', 'log.level', 'log.level'],
    ['influxdb: {url: x}\n', 'influx'],
    ['influx: {database: x, URL: x, orgg: x}\n', 'influx.bucket', 'influx.url', 'influx.org'],
    ['influx: {username: x, password: x}\n', 'influx.token, as user:password', 'influx.token, as user:password'],
    ['sync: {histroy: 30d, password: x, foo: x}\n', 'sync.history', null, null],
    ['influx: {foo: x, keep: x, username2: x}\n', null, null, null],
    ['foo: x\nusername: x\nname: x\nversion: 3\n', null, null, null, null],
  ])('the keys of %j suggest what was probably meant', (yaml, ...meant) => {
    const lines = mistakesOf(() => loadWithApi({ yaml }));
    const asked = lines.filter((line) => line.includes('unknown key'));
    expect(asked.map((line) => /; did you mean (.*)\?$/.exec(line)?.[1] ?? null)).toEqual(meant);
  });

  test.each([
    ['HISTORY', 'SYNC_HISTORY'],
    ['SYNC_HSTORY', 'SYNC_HISTORY'],
    ['API_HISTORY', 'SYNC_HISTORY'],
    ['RETENTION', 'ARCHIVE_RETENTION'],
    ['URL', 'API_URL'],
    ['KEY_FILE', 'API_KEY_FILE'],
    ['DATA_DRI', 'DATA_DIR'],
    ['INFLUXDB_URL', 'INFLUX_URL'],
    ['INFLUX_DATABASE', 'INFLUX_BUCKET'],
    ['INFLUX_PASSWORD', 'INFLUX_TOKEN, as user:password'],
    ['INFLUX_FOO', null],
    ['HOME', null],
    ['', null],
  ])('the variable TIDEMARK_%s suggests %s', (name, meant) => {
    const [line] = mistakesOf(() => loadWithApi({ environment: { [`TIDEMARK_${name}`]: 'x' } }));
    expect(line).toMatch(/unknown variable/);
    expect(/; did you mean TIDEMARK_(.*)\?$/.exec(line ?? '')?.[1] ?? null).toBe(meant);
  });

  test('a line that is indented too far is named, and once', () => {
    const tooFar = (line: number, above: number): string =>
      `config/tidemark.yaml, line ${line}: this line is indented further than line ${above}, which already has a value; give both lines the same indentation`;
    const inLines = (yaml: string): string[] => mistakesOf(() => loadWithApi({ yaml }));
    expect(inLines('api:\n  url: https://api.test/external/v1\n   key_file: y\n')).toEqual([tooFar(3, 2)]);
    expect(inLines('api:\n  url: x\n   share: 1\n   timeout: 2s\n   concurrency: 2\n')).toEqual([tooFar(3, 2)]);
    expect(inLines('api:\n  url: x\n   share: 1\nlog:\n  level: info\n\n   format: json\n')).toEqual([
      tooFar(3, 2),
      tooFar(7, 5),
    ]);
    expect(inLines('api: x\n  url: y\n')).toEqual([tooFar(2, 1)]);
    expect(inLines('  api:\n url: x\n')).toEqual(['config/tidemark.yaml, line 2: this is not valid YAML']);
    expect(inLines('log:\n  level: info format: json\n')).toEqual([
      'config/tidemark.yaml, line 2: two keys in one line, or a value with a colon and a space that needs quotes',
    ]);
  });

  test('where the file is broken, keys that it may contain are not reported missing', () => {
    const lines = mistakesOf(() =>
      load({ yaml: 'api:\n  url: "https\n', environment: { TIDEMARK_LOG_LEVEL: 'loud' } }),
    );
    expect(lines.some((line) => line.includes('is missing;'))).toBe(false);
    expect(lines.some((line) => line.startsWith('log.level'))).toBe(true);
  });

  test.each<[string | null, RegExp]>([
    ['none.yaml', /^--config: this file does not exist: none\.yaml; create it/],
    ['denied', /^--config: this user may not read the file: denied; let this user read it/],
    ['folder', /^--config: expected a file, but this is a directory: folder; give the path of a file$/],
  ])('a --config file that cannot be read is a mistake (%s)', (file, words) => {
    expect(mistakesOf(() => loadWithApi({ file }))[0]).toMatch(words);
  });

  test('a default file that is there and may not be read is a mistake', () => {
    const readFile = (): string => {
      throw Object.assign(new Error('no'), { code: 'EACCES' });
    };
    const lines = mistakesOf(() => loadConfig({ file: null, environment: API, readFile, nowMs: NOW_MS }));
    expect(lines[0]).toBe(
      'this user may not read the file: config/tidemark.yaml; let this user read it and enter its directory: change owner, group or mode',
    );
  });

  test.each<[Record<string, string>, string[]]>([
    [{ TIDEMARK_INFLUX_URL: 'http://db' }, ['influx.bucket']],
    [{ TIDEMARK_INFLUX_BUCKET: 'b' }, ['influx.url']],
    [{ TIDEMARK_INFLUX_TOKEN: 'abcd' }, ['influx.url', 'influx.bucket']],
    [{ TIDEMARK_INFLUX_BATCH_LINES: '10' }, ['influx.url', 'influx.bucket']],
  ])('half a database is a mistake: %j', (environment, paths) => {
    const lines = mistakesOf(() => loadWithApi({ environment }));
    expect(lines.map((line) => line.split(':')[0])).toEqual(paths);
    for (const line of lines)
      expect(line).toContain(`although influx.${Object.keys(environment)[0]?.slice(16).toLowerCase()}`);
  });
});
