/**
 * Secrets in the configuration: their two forms, what cannot be one, and that no refusal ever repeats one, wherever in
 * the configuration it was put by mistake.
 */
import { describe, expect, test } from 'vitest';
import { loadConfig, loadDemoConfig } from '../../src/config/load.ts';
import { UserError } from '../../src/core/faults.ts';
import { createScrub, Secret } from '../../src/core/secret.ts';
import { concealing } from '../../src/influx/answers.ts';

const URL = { TIDEMARK_API_URL: 'https://api.test/external/v1' };
const CANARY = 'sk_live_CANARY_4242';

function messageOf(environment: Record<string, string>, files: Record<string, string> = {}): string {
  const all = new Map(Object.entries(files));
  const readFile = (path: string): string => {
    const text = all.get(path);
    if (text === undefined) throw Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' });
    return text;
  };
  try {
    loadConfig({ file: null, environment, readFile, nowMs: Date.UTC(2026, 10, 21) });
  } catch (error) {
    if (error instanceof UserError) return error.message;
    throw error;
  }
  throw new Error('accepted');
}

describe('texts that cannot be a secret', () => {
  test.each([
    [
      'an empty file',
      '',
      /api\.key_file \(TIDEMARK_API_KEY_FILE\): the file key is empty; write only the key into this file$/m,
    ],
    ['a file of one newline', '\n', /the file key is empty/],
    ['two lines', `${CANARY}\nmore\n`, /the file key has line breaks or other control characters/],
    ['two trailing newlines', `${CANARY}\n\n`, /line breaks or other control characters/],
    ['a tab', `${CANARY}\t`, /control characters/],
    [
      'a key with the word before it that goes into the header',
      `Bearer ${CANARY}\n`,
      /the file key has a space in it; write only the key, without "Bearer"$/m,
    ],
    ['more words behind the key', `${CANARY} extra`, /the file key has a space in it/],
    ['blanks at an end', ` ${CANARY}`, /the file key has a space in it/],
    ['letters that no header carries', `${CANARY}é`, /the file key contains characters that no HTTP header can carry/],
    ['a mark of byte order', `\uFEFF${CANARY}`, /no HTTP header can carry/],
    ['a whole document', `api:\n  key: ${CANARY}\n`, /line breaks/],
    ['a very long text', CANARY.repeat(300), /longer than 4096 characters/],
    ['three characters', 'abc', /shorter than 4 characters/],
  ])('%s', (_what, text, words) => {
    const message = messageOf({ ...URL, TIDEMARK_API_KEY_FILE: 'key' }, { key: text });
    expect(message).toMatch(words);
    expect(message).not.toContain('CANARY');
    if (text.length > 1) expect(messageOf({ ...URL, TIDEMARK_API_KEY: text })).not.toContain('CANARY');
  });

  test('an empty file is accepted once only the key is in it', () => {
    const environment = { ...URL, TIDEMARK_API_KEY_FILE: 'key' };
    expect(messageOf(environment, { key: '' })).toContain('; write only the key into this file');
    expect(() => messageOf(environment, { key: `${CANARY}\n` })).toThrow('accepted');
  });

  test('a password may have a space in it, but not at an end', () => {
    const environment = { ...URL, TIDEMARK_API_KEY: CANARY };
    expect(() => messageOf({ ...environment, TIDEMARK_LISTEN_PASSWORD: 'horse staple' })).toThrow('accepted');
    expect(messageOf({ ...environment, TIDEMARK_LISTEN_PASSWORD: 'horse ' })).toMatch(/begins or ends with a space$/m);
  });

  test('a file that is not there is named', () => {
    expect(messageOf({ ...URL, TIDEMARK_API_KEY_FILE: '/run/key' })).toContain(
      'api.key_file (TIDEMARK_API_KEY_FILE): this file does not exist: /run/key; create it, or correct the path',
    );
  });

  test('a key put where its path belongs is not repeated', () => {
    const message = messageOf({ ...URL, TIDEMARK_API_KEY_FILE: 'sk_live_CANARY_0123456789' });
    expect(message).toContain('this file does not exist: (its name is not shown');
    expect(message).not.toContain('CANARY');
  });
});

describe('an empty file of a token', () => {
  const files = new Map([
    ['key', CANARY],
    ['token', ''],
    ['filled', 'the-token'],
  ]);
  const influxOf = (environment: Record<string, string>) =>
    loadConfig({
      file: null,
      environment: { ...URL, TIDEMARK_API_KEY_FILE: 'key', ...environment },
      readFile: (path) => {
        const text = files.get(path);
        if (text === undefined) throw Object.assign(new Error(path), { code: 'ENOENT' });
        return text;
      },
      nowMs: 0,
    }).config.influx;
  const DATABASE = { TIDEMARK_INFLUX_URL: 'http://db:8428', TIDEMARK_INFLUX_KIND: 'victoriametrics' };

  test('is no token, and stays the file that may hold one later', () => {
    const influx = influxOf({ ...DATABASE, TIDEMARK_INFLUX_TOKEN_FILE: 'token' });
    expect([influx?.token, influx?.tokenFile]).toEqual([null, 'token']);
    expect(influxOf({ ...DATABASE, TIDEMARK_INFLUX_TOKEN_FILE: 'filled' })?.token?.reveal()).toBe('the-token');
  });

  test('configures no database by itself; a filled one needs its database', () => {
    expect(influxOf({ TIDEMARK_INFLUX_TOKEN_FILE: 'token' })).toBeNull();
    expect(() => influxOf({ TIDEMARK_INFLUX_TOKEN_FILE: 'filled' })).toThrow(/influx\.url: is missing/);
  });
});

describe('both forms', () => {
  test.each<[string, Record<string, string>, string]>([
    ['in the environment', { TIDEMARK_API_KEY: CANARY, TIDEMARK_API_KEY_FILE: 'key' }, ''],
    ['in the file', {}, `api:\n  key: ${CANARY}\n  key_file: key\n`],
    ['one here and one there', { TIDEMARK_API_KEY_FILE: 'key' }, `api:\n  key: ${CANARY}\n`],
  ])('are an error: %s', (_what, environment, yaml) => {
    const message = messageOf({ ...URL, ...environment }, { key: CANARY, 'config/tidemark.yaml': yaml });
    expect(message).toMatch(/api\.key \(.*\): api\.key_file \(.*\) is also set; remove one of them/);
    expect(message).not.toContain('CANARY');
  });
});

describe('a secret that went astray is not repeated', () => {
  test.each([
    ['as the section', `api: ${CANARY}\n`],
    ['as a key below the key', `api:\n  key:\n    ${CANARY}: x\n`],
    ['in a list', `api:\n  key: [${CANARY}]\n`],
    ['as the whole file', CANARY],
    ['behind a missing quote', `api:\n  key: "${CANARY}\n`],
    ['before stray words', `api:\n  key: "x" ${CANARY}\n`],
    ['beside a second colon', `api:\n  key: ${CANARY}: ${CANARY}\n`],
    ['behind a reserved sign', `api:\n  key: @${CANARY}\n`],
    ['as an alias', `api:\n  key: *${CANARY}\n`],
    ['as a tag', `api:\n  key: !${CANARY} x\n`],
    ['as an anchor', `api:\n  key: &${CANARY} [x]\n`],
    [
      'as the value of other keys',
      `api:\n  url: ${CANARY}\n  share: ${CANARY}\n  timeout: ${CANARY}\n  concurrency: ${CANARY}\n`,
    ],
    ['as the value of keys elsewhere', `listen: ${CANARY}\nlog:\n  level: ${CANARY}\nsync:\n  history: ${CANARY}\n`],
    ['in an address', `api:\n  url: https://user:${CANARY}@api.test/external/v1\n`],
    ['in the query of an address', `influx:\n  url: http://db/?token=${CANARY}\n`],
    ['under an unknown key', `api:\n  kye: ${CANARY}\n`],
    ['under a key that is not in force', `destinations:\n  a: {token: ${CANARY}}\n`],
  ])('%s', (_what, yaml) => {
    expect(messageOf({}, { 'config/tidemark.yaml': yaml })).not.toContain('CANARY');
  });

  test('a secret as an unknown variable is not shown', () => {
    expect(messageOf({ ...URL, TIDEMARK_APIKEY: CANARY })).toMatch(/TIDEMARK_APIKEY.*did you mean TIDEMARK_API_KEY\?/);
    expect(messageOf({ ...URL, TIDEMARK_APIKEY: CANARY })).not.toContain('CANARY');
  });

  test('as a key of the file, when it is known as the secret from elsewhere', () => {
    const message = messageOf({ TIDEMARK_API_KEY: CANARY }, { 'config/tidemark.yaml': `${CANARY}: x\n` });
    expect(message).toContain('unknown key [secret]');
    expect(message).not.toContain('CANARY');
  });

  test('the search works: a refusal that did repeat it would be seen', () => {
    expect(messageOf({ ...URL, [`TIDEMARK_${CANARY}`]: 'x', TIDEMARK_API_KEY: 'abcd' })).toContain('CANARY');
  });
});

describe('a token of less than four characters', () => {
  const DATABASE = { ...URL, TIDEMARK_API_KEY: CANARY, TIDEMARK_INFLUX_BUCKET: 'b', TIDEMARK_INFLUX_TOKEN: 'u:p' };
  const load = (url: string) => {
    const environment = { ...DATABASE, TIDEMARK_INFLUX_URL: url };
    return loadConfig({ file: null, environment, readFile: () => '', nowMs: 1e12 });
  };

  test.each(['http://localhost:8086', 'http://127.0.0.1:8086', 'http://[::1]:8086'])('may be used at %s', (url) => {
    const { config, warnings } = load(url);
    expect(config.influx?.token?.reveal()).toBe('u:p');
    expect(warnings).toEqual([
      {
        key: 'influx.token',
        at: 'TIDEMARK_INFLUX_TOKEN',
        what: expect.stringMatching(/^the token is shorter than 4 characters/),
        remedy: 'use a longer one if other machines can reach the database',
      },
    ]);
  });

  test.each(['http://db:8086', 'http://10.0.0.1:8086', 'http://127.0.0.1.example'])('is refused at %s', (url) => {
    expect(() => load(url)).toThrow(/influx\.token .*shorter than 4 characters; use a longer token/);
  });

  test('is hidden where it is a credential, and nowhere else', () => {
    const scrub = createScrub([new Secret('u:p')]);
    expect(scrub('Authorization: Token u:p, cpu:power u:p')).toBe('Authorization: [secret], cpu:power u:p');
    expect(concealing('u:p')('sent "Token u:p"')).toBe('sent "[secret]"');
    expect(concealing('u:p')(`sent "Basic ${btoa('u:p')}"`)).toBe('sent "[secret]"');
  });

  test('a key of the API is never so short', () => {
    expect(messageOf({ ...URL, TIDEMARK_API_KEY: 'abc' })).toContain('shorter than 4 characters');
    const local = { TIDEMARK_API_URL: 'http://127.0.0.1/external/v1', TIDEMARK_API_KEY: 'abc' };
    expect(messageOf(local)).toContain('shorter than 4 characters');
  });
});

describe('a secret in the wrong place', () => {
  const INFLUX = { TIDEMARK_INFLUX_URL: 'http://db:8086', TIDEMARK_INFLUX_BUCKET: 'b' };

  test.each([
    ['TIDEMARK_WORKSPACE_ID', CANARY],
    ['TIDEMARK_INFLUX_ORG', CANARY],
    ['TIDEMARK_INFLUX_BUCKET', ` ${CANARY} `],
    ['TIDEMARK_SYNC_EXCLUDE', CANARY],
    ['TIDEMARK_SYNC_INCLUDE', `hub-*, ${CANARY} ,b`],
    ['TIDEMARK_LISTEN_NAMES', `a.example.com,${CANARY}`],
  ])('%s: the value of another key is rejected and not repeated', (name, text) => {
    const message = messageOf({ ...URL, ...INFLUX, TIDEMARK_API_KEY: CANARY, [name]: text });
    expect(message).toContain(`(${name}): this value contains the secret of api.key (TIDEMARK_API_KEY)`);
    expect(message).not.toContain('CANARY');
  });

  test.each(['include', 'exclude', 'exclude_sensors'])('as an item of the list sync.%s', (key) => {
    const yaml = `sync:\n  ${key}:\n    - a\n    - " ${CANARY} "\n`;
    const message = messageOf({ ...URL, TIDEMARK_API_KEY: CANARY }, { 'config/tidemark.yaml': yaml });
    expect(message.split('\n').map((line) => line.trim())).toContain(
      `sync.${key} (config/tidemark.yaml, line 2): this value contains the secret of api.key (TIDEMARK_API_KEY); remove it here`,
    );
  });

  test('an item with a comma in it is distinguished from names that only begin like a secret', () => {
    const token = { TIDEMARK_INFLUX_TOKEN: 'canary,0815' };
    const load = (items: string) =>
      messageOf(
        { ...URL, ...INFLUX, TIDEMARK_API_KEY: CANARY, ...token },
        { 'config/tidemark.yaml': `sync:\n  exclude: ${items}\n` },
      );
    expect(load('[a, "canary,0815"]')).toContain('contains the secret of influx.token');
    expect(() => load('[canary, xcanary, canary-0]')).toThrow('accepted');
  });

  test('the API key within a longer value is refused; a short key or a plain word may be part of one by chance', () => {
    const load = (key: string, values: Record<string, string>) =>
      messageOf({ ...URL, ...INFLUX, TIDEMARK_API_KEY: key, ...values });
    const slashed = `${CANARY}/+=`;
    for (const [key, name, value] of [
      [CANARY, 'TIDEMARK_INFLUX_ORG', `x-${CANARY}`],
      [CANARY, 'TIDEMARK_INFLUX_BUCKET', `${CANARY}0`],
      [CANARY, 'TIDEMARK_INFLUX_URL', `http://db:8086/${CANARY}/x`],
      [slashed, 'TIDEMARK_INFLUX_URL', `http://db:8086/${encodeURIComponent(slashed)}`],
      [CANARY, 'TIDEMARK_SYNC_EXCLUDE', `a,x${CANARY}`],
      [CANARY, 'TIDEMARK_INFLUX_TOKEN', `user:${CANARY}`],
    ] as const) {
      const message = load(key, { [name]: value });
      expect(message).toContain(`(${name}): this value contains the secret of api.key (TIDEMARK_API_KEY)`);
      expect(message).not.toContain('CANARY');
    }
    for (const key of ['swordfish', 'b-4242'])
      expect(() => load(key, { TIDEMARK_INFLUX_BUCKET: `my-${key}` })).toThrow('accepted');
    for (const key of ['swordfish', 'b-4242'])
      expect(load(key, { TIDEMARK_INFLUX_BUCKET: key })).toContain('contains the secret of api.key');
  });

  test('the file that the secret belongs into is named', () => {
    const place = { TIDEMARK_API_KEY_FILE: 'secrets/tidemark_api_key', TIDEMARK_WORKSPACE_ID: CANARY };
    expect(messageOf({ ...URL, ...place }, { 'secrets/tidemark_api_key': CANARY })).toContain(
      'workspace.id (TIDEMARK_WORKSPACE_ID): this value contains the secret of api.key_file (TIDEMARK_API_KEY_FILE); remove it here: only the file secrets/tidemark_api_key may contain it',
    );
  });

  test('the key of the API is not sent to a database', () => {
    const message = messageOf({ ...URL, ...INFLUX, TIDEMARK_API_KEY: CANARY, TIDEMARK_INFLUX_TOKEN: CANARY });
    expect(message).toContain('influx.token (TIDEMARK_INFLUX_TOKEN): this value contains the secret of api.key');
  });

  test('the demo does not send the key of the API to a database', () => {
    const environment = { ...INFLUX, TIDEMARK_API_KEY: CANARY, TIDEMARK_INFLUX_TOKEN: CANARY };
    expect(() => loadDemoConfig({ environment, readFile: () => '', nowMs: 1e12 })).toThrow(
      /influx\.token .*contains the secret of api\.key .*only the API may receive the API key/,
    );
  });

  test('a token and a password may be the same', () => {
    const same = { TIDEMARK_INFLUX_TOKEN: 'canary-0815', TIDEMARK_LISTEN_PASSWORD: 'canary-0815' };
    expect(() => messageOf({ ...URL, ...INFLUX, TIDEMARK_API_KEY: CANARY, ...same })).toThrow('accepted');
  });
});
