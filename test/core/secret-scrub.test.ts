/** No form of a secret gets through the last search, and a URL loses what may be one. */
import { Buffer } from 'node:buffer';
import { globSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  createScrub,
  isGuessable,
  type Scrub,
  SECRET_MARK,
  Secret,
  scrubbed,
  scrubName,
  withoutQueries,
} from '../../src/core/secret.ts';

const KEY = 'k"y/+ 4242';

describe('a secret is removed', () => {
  test.each([
    ['as it is', KEY],
    ['inside of JSON', JSON.stringify(KEY).slice(1, -1)],
    ['in a URL', encodeURIComponent(KEY)],
    ['in base64', Buffer.from(KEY).toString('base64')],
  ])('%s, wherever it stands and however often', (_what, form) => {
    const scrub = createScrub([new Secret(KEY)]);
    expect(scrub(`a ${form}b${form}`)).toBe(`a ${SECRET_MARK}b${SECRET_MARK}`);
  });

  test('completely, where another secret begins like it', () => {
    const scrub = createScrub([new Secret('tm_key'), new Secret('tm_key_of_more')]);
    expect(scrub('tm_key_of_more tm_key')).toBe(`${SECRET_MARK} ${SECRET_MARK}`);
  });

  test('from the moment on at which it is known', () => {
    const secrets = [new Secret('hunter1')];
    const scrub = createScrub(secrets);
    expect(scrub('hunter1 hunter2')).toBe(`${SECRET_MARK} hunter2`);
    secrets.push(new Secret('hunter2'));
    expect(scrub('hunter1 hunter2')).toBe(`${SECRET_MARK} ${SECRET_MARK}`);
  });

  test('with its password alone, where it is user and password', () => {
    expect(createScrub([new Secret('user:hunter2')])('the password hunter2')).toBe(`the password ${SECRET_MARK}`);
  });

  test('while all other text stays, also where there is no secret', () => {
    expect(createScrub([])('a text')).toBe('a text');
    expect(createScrub([new Secret('u:p')])('up: u:p')).toBe('up: u:p');
  });
});

describe('a secret that is a plain word', () => {
  test.each([
    ['tidemark', 'tidemark_build_info'],
    ['admin:second', 'lag_seconds'],
    ['telemetry', 'stream="telemetry"'],
    ['tidemark', '/etc/tidemark/lab/tidemark_api_key'],
  ])('%s stays in %s, and goes from the response of a server', (secret, text) => {
    expect(createScrub([new Secret(secret)])(text)).toBe(text);
    expect(createScrub([new Secret(secret)], { isAnswer: true })(text)).toContain(SECRET_MARK);
  });

  test.each([
    'Authorization: Token admin:second',
    `Basic ${btoa('admin:second')}`,
    `x-echo: ${btoa('second')}`,
    'admin:second',
    encodeURIComponent('admin:second'),
  ])('is hidden as a credential: %s', (text) => {
    const shown = createScrub([new Secret('admin:second')])(text);
    expect(shown).toContain(SECRET_MARK);
    expect(shown).not.toMatch(/second|c2Vjb25k|YWRtaW46c2Vjb25k/);
  });

  test.each([
    'tidemark2',
    'se-cond!',
    'the-second-one',
    'Hunter2',
    '1234',
    'lag_seconds',
    'xKqPzRtMw',
    'second:lag_seconds',
    'correcthorsestaple',
  ])('%s is none', (secret) => {
    expect(isGuessable(secret)).toBe(false);
    expect(createScrub([new Secret(secret)])(`a ${secret} b`)).toBe(`a ${SECRET_MARK} b`);
  });

  test('is each word of a name of the sources', () => {
    const sources = globSync(
      'src/{api,app,archive,commands,config,core,delivery,influx,ingest,observe,report,scheduler}/**/*.ts',
    );
    const text = sources.map((file) => readFileSync(file, 'utf8')).join('\n');
    const names = [/'([a-z]+(?:_[a-z\d]+)+)'/g, /\b(tidemark(?:_[a-z\d]+)+)\b/g, /\b([a-z]+(?:_[a-z\d]+)+)\??: /g]
      .flatMap((pattern) => [...text.matchAll(pattern)].map(([, name = '']) => name))
      .filter((name) => /[a-z]{4}/.test(name));
    expect(names.length).toBeGreaterThan(300);
    const hideAll: Scrub = () => 'hidden';
    expect([...new Set(names)].filter((name) => scrubName(name, hideAll) === 'hidden')).toEqual([]);
  });
});

describe('data', () => {
  test('keeps its shape, its figures and its names, whatever the secret', () => {
    const data = { lag_seconds: 12_345, at: null, list: ['a 2345 b', true], own: { 'hub 2345': '"2345"' } };
    for (const secret of ['null', 'true', '":"', 'g_se', '"},{"'])
      expect(scrubbed(data, createScrub([new Secret(secret)]))).toEqual(data);
    const clean = { ...data, list: [`a ${SECRET_MARK} b`, true], own: { [`hub ${SECRET_MARK}`]: `"${SECRET_MARK}"` } };
    expect(scrubbed(data, createScrub([new Secret('2345')]))).toEqual(clean);
  });
});

test.each([
  ['http://db:8086/write?u=a&p=b failed', 'http://db:8086/write… failed'],
  ['https://user:pw@db/x', 'https://db/x'],
  ['HTTPS://user:pw@db/x?y#z', 'HTTPS://db/x…'],
  ['"http://db/x#part"', '"http://db/x…"'],
  ['http://a?b and http://c/d?e', 'http://a… and http://c/d…'],
  ['is it there? no #1 a@b', 'is it there? no #1 a@b'],
])('%s becomes %s', (text, without) => {
  expect(withoutQueries(text)).toBe(without);
});
