/** Several databases: `destinations` in the file, each by a name of its own. */
import { describe, expect, test } from 'vitest';
import { createSyncOptions } from '../../src/app/settings.ts';
import { loadConfig } from '../../src/config/load.ts';
import { UserError } from '../../src/core/faults.ts';

const API = 'api:\n  url: https://api.test/external/v1\n  key: key-4242\n';
const INFLUX = 'influx:\n  url: http://db:8086\n  bucket: b\n';

function load(yaml: string, files: Readonly<Record<string, string>> = {}, environment = {}) {
  const readFile = (path: string): string => {
    const text = { ...files, 'config/tidemark.yaml': API + yaml }[path];
    if (text === undefined) throw Object.assign(new Error(path), { code: 'ENOENT' });
    return text;
  };
  return loadConfig({ file: null, readFile, environment, nowMs: Date.UTC(2026, 10, 21) });
}

function mistakesOf(yaml: string, environment = {}): string[] {
  try {
    load(yaml, {}, environment);
  } catch (error) {
    if (error instanceof UserError) return error.message.split('\n  ').slice(1);
    throw error;
  }
  return [];
}

describe('destinations', () => {
  test('have the keys of influx, by their names, each with its own secret from a file', () => {
    const yaml = `${INFLUX}destinations:
  second: {url: 'http://two:8086/', token_file: two, org: o, bucket: b/rp, kind: influxdb, timeout: 5s, batch_lines: 10}
  victoria:
    url: https://three:8428
    token: user:password
    kind: victoriametrics
`;
    const { config, secrets } = load(yaml, { two: 'token-two\n' });
    expect(config.destinations).toMatchObject([
      {
        name: 'second',
        url: 'http://two:8086',
        tokenFile: 'two',
        org: 'o',
        bucket: 'b/rp',
        timeoutMs: 5000,
        batchLines: 10,
      },
      {
        name: 'victoria',
        url: 'https://three:8428',
        tokenFile: null,
        bucket: '',
        kind: 'victoriametrics',
        batchLines: 5000,
      },
    ]);
    expect(secrets.map((secret) => secret.reveal())).toEqual(['key-4242', 'token-two', 'user:password']);
    const options = createSyncOptions(config).destinations;
    expect(options.map(({ sink }) => sink.name)).toEqual(['influx', 'second', 'victoria']);
    // Frozen: another text would send everything once more to every database of every user.
    expect(options.map(({ identity }) => identity)).toEqual([
      '["auto","http://db:8086","","b"]',
      '["influxdb","http://two:8086","o","b/rp"]',
      '["victoriametrics","https://three:8428","",""]',
    ]);
  });

  test('need no section influx, and none of them is needed', () => {
    expect(load('destinations:\n  a: {url: http://a, bucket: b}\n').config.influx).toBeNull();
    for (const yaml of ['', 'destinations:\n', 'destinations: ~\n']) expect(load(yaml).config.destinations).toEqual([]);
  });

  test('report all their mistakes at once, by their paths', () => {
    const yaml = `destinations:
  influx: {url: http://a, bucket: b}
  Two: {url: http://a, bucket: b}
  3rd: {url: http://a, bucket: b}
  four: {url: ftp://a, bukcet: b, timeout: 5}
  five:
  six: text
  seven: {token: abcd, token_file: x, url: http://a, bucket: b}
  eight: {ca_file: missing.pem, url: http://a, bucket: b, name: x, database: x, username: x}
  nine: {kind: victoriametrics}
`;
    expect(mistakesOf(yaml).map((text) => text.replaceAll('config/tidemark.yaml, ', ''))).toEqual([
      expect.stringMatching(/^destinations \(line 7\): expected a name of letters/),
      'line 8: unknown key destinations.four.bukcet; did you mean destinations.four.bucket?',
      'destinations.six (line 10): expected a section, its keys indented on the lines below',
      'line 12: unknown key destinations.eight.name',
      'line 12: unknown key destinations.eight.database; did you mean destinations.eight.bucket?',
      'line 12: unknown key destinations.eight.username; did you mean destinations.eight.token, as user:password?',
      'destinations.influx (line 5): this name is taken by the section influx; choose another one',
      expect.stringMatching(/^destinations.Two \(line 6\): expected a name of at most 32 lowercase letters/),
      expect.stringMatching(/^destinations.four.url \(line 8\): expected an address/),
      expect.stringMatching(/^destinations.four.timeout \(line 8\): expected a time with its unit/),
      'destinations.four.bucket: is missing, although destinations.four (line 8) is given; a database needs destinations.four.url and destinations.four.bucket (not needed with destinations.four.kind: victoriametrics)',
      expect.stringMatching(/^destinations.five.url: is missing, although destinations.five \(line 9\) is given/),
      expect.stringMatching(/^destinations.five.bucket: is missing/),
      expect.stringMatching(/^destinations.six.url: is missing/),
      expect.stringMatching(/^destinations.six.bucket: is missing/),
      'destinations.seven.token (line 11): destinations.seven.token_file (line 11) is also set; remove one of them',
      expect.stringMatching(/^destinations.eight.ca_file \(line 12\): this file does not exist/),
      'destinations.nine.url: is missing, although destinations.nine (line 13) is given; a database needs destinations.nine.url',
    ]);
    expect(mistakesOf('destinations: [a]\n')).toEqual([
      'destinations (config/tidemark.yaml, line 4): expected names, each with a section below',
    ]);
  });

  test('are of the file alone', () => {
    expect(mistakesOf('', { TIDEMARK_DESTINATIONS: 'x' })[0]).toContain('unknown variable');
    expect(mistakesOf('', { TIDEMARK_DESTINATIONS_SECOND_URL: 'x' })[0]).toContain('unknown variable');
  });
});
