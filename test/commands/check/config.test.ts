/** The configuration checks of --check: warnings about careless settings, and errors with a remedy. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type CheckParts, configLines, readForCheck } from '../../../src/commands/check/config.ts';
import type { CheckLine } from '../../../src/commands/check/report.ts';
import { TEST_CERTIFICATE } from '../../api/support/certificate.ts';

const DATABASE = { TIDEMARK_INFLUX_URL: 'https://db.example:8086', TIDEMARK_INFLUX_BUCKET: 'b' };
const API = { TIDEMARK_API_URL: 'https://api.example/external/v1', TIDEMARK_API_KEY: 'tm_key' };

/** The lines on a configuration that the environment gives, by their names. */
function linesOf(environment: Readonly<Record<string, string>>): (name: string) => CheckLine | undefined {
  const given = { ...API, ...environment };
  const noFile = (path: string): never => {
    throw Object.assign(new Error(path), { code: 'ENOENT' });
  };
  const { read, secretVariables, warnings } = readForCheck({
    file: null,
    readFile: noFile,
    environment: given,
    nowMs: 1e12,
  });
  const command = { configFile: null } as CheckParts['command'];
  const parts = { command, read, secretVariables, warnings } as CheckParts;
  const lines = configLines(parts, given);
  return (name) => lines.find((line) => line.name === name);
}

test('disabled checks of certificates cause a warning', () => {
  expect(linesOf({})('NODE_TLS_REJECT_UNAUTHORIZED')).toBeUndefined();
  expect(linesOf({ NODE_TLS_REJECT_UNAUTHORIZED: '1' })('NODE_TLS_REJECT_UNAUTHORIZED')).toBeUndefined();
  const line = linesOf({ NODE_TLS_REJECT_UNAUTHORIZED: '0' })('NODE_TLS_REJECT_UNAUTHORIZED');
  expect(line).toMatchObject({
    status: 'warn',
    remedy: 'Unset it. For a certificate authority of your own, set api.ca_file and influx.ca_file.',
  });
  const own = { TIDEMARK_API_CA_FILE: 'ca.pem', TIDEMARK_INFLUX_CA_FILE: 'ca.pem', ...DATABASE };
  const { read, warnings } = readForCheck({
    file: null,
    readFile: (path) => {
      if (path === 'ca.pem') return TEST_CERTIFICATE;
      throw Object.assign(new Error(path), { code: 'ENOENT' });
    },
    environment: { ...API, ...own },
    nowMs: 1e12,
  });
  expect([read.mistakes, warnings, read.config?.api.ca, read.config?.influx?.ca]).toEqual([
    [],
    [],
    TEST_CERTIFICATE,
    TEST_CERTIFICATE,
  ]);
});

test('a short token of a database on this machine is warned of', () => {
  const database = { TIDEMARK_INFLUX_URL: 'http://127.0.0.1:8086', TIDEMARK_INFLUX_BUCKET: 'b' };
  expect(linesOf({ ...database, TIDEMARK_INFLUX_TOKEN: 'w-yz' })('influx.token')?.status).not.toBe('warn');
  expect(linesOf({ ...database, TIDEMARK_INFLUX_TOKEN: 'u:p' })('influx.token')).toMatchObject({
    status: 'warn',
    message: expect.stringContaining('shorter than 4 characters'),
    remedy: 'Use a longer one if other machines can reach the database.',
  });
  const elsewhere = { ...database, TIDEMARK_INFLUX_URL: 'http://db.example:8086', TIDEMARK_INFLUX_TOKEN: 'u:p' };
  expect(linesOf(elsewhere)('influx.token')).toMatchObject({
    status: 'fail',
    message: 'TIDEMARK_INFLUX_TOKEN: the secret is shorter than 4 characters',
    remedy: 'Use a longer token; only a database on this machine may have such a short one.',
  });
});

test('a secret that is a plain word is warned of', () => {
  const database = { TIDEMARK_INFLUX_URL: 'http://127.0.0.1:8086', TIDEMARK_INFLUX_BUCKET: 'b' };
  for (const secret of ['tidemark', 'tidemark:second', 'admin:Telemetry', 'admin:swordfish'])
    expect(linesOf({ ...database, TIDEMARK_INFLUX_TOKEN: secret })('influx.token')).toMatchObject({
      status: 'warn',
      message: expect.stringMatching(
        /^TIDEMARK_\w+: this secret, or the password behind the colon in it, is an ordinary word/,
      ),
      remedy: 'Use a long random one.',
    });
  expect(linesOf({ TIDEMARK_API_KEY: 'telemetry' })('api.key')).toMatchObject({
    status: 'warn',
    message: expect.stringMatching(/^TIDEMARK_API_KEY: this key is an ordinary word/),
    remedy: 'Check that it is the complete key.',
  });
  expect(linesOf({ TIDEMARK_LISTEN_PASSWORD: 'telemetry' })('listen_password')?.status).toBe('warn');
  expect(linesOf({ TIDEMARK_LISTEN_PASSWORD: 'horse staple' })('listen_password')?.status).not.toBe('warn');
});

test('a proxy is named, and not reported as working: nothing was sent through it yet', () => {
  expect(linesOf({})('proxy')).toBeUndefined();
  expect(linesOf({ HTTPS_PROXY: 'http://proxy.example:3128' })('proxy')).toMatchObject({
    status: 'skip',
    message: expect.stringMatching(/^HTTPS_PROXY: requests go through the proxy, .* show whether it works$/),
  });
});

test.each<[string, Readonly<Record<string, string>>, Partial<CheckLine> & { readonly name: string }]>([
  [
    'a value that cannot be used',
    { TIDEMARK_API_TIMEOUT: '30' },
    {
      name: 'api.timeout',
      message: 'TIDEMARK_API_TIMEOUT: expected a time with its unit (s, m, h, d or w), from 1s to 10m',
      remedy: 'Correct it; docs/configuration.md describes every key.',
    },
  ],
  [
    'an unknown variable',
    { TIDEMARK_LISTN: 'x:1' },
    { name: 'TIDEMARK_LISTN', message: 'unknown variable', remedy: 'Did you mean TIDEMARK_LISTEN?' },
  ],
  [
    'a variable of an earlier version',
    { TIDEMARK_SYNC_SWEEP: '6h' },
    { name: 'TIDEMARK_SYNC_SWEEP', message: 'is now TIDEMARK_SYNC_IDLE_POLL', remedy: 'Rename the variable.' },
  ],
  [
    'a secret that is given twice',
    { TIDEMARK_API_KEY_FILE: 'key' },
    {
      name: 'api.key',
      message: 'TIDEMARK_API_KEY: api.key_file (TIDEMARK_API_KEY_FILE) is also set',
      remedy: 'Remove one of them.',
    },
  ],
  [
    'a key with a space in it',
    { TIDEMARK_API_KEY: 'Bearer sim_CANARY' },
    {
      name: 'api.key',
      message: 'TIDEMARK_API_KEY: the secret has a space in it',
      remedy: 'Write only the key, without "Bearer".',
    },
  ],
  [
    'a database without a bucket',
    { TIDEMARK_INFLUX_URL: 'http://db.example:8086' },
    {
      name: 'influx.bucket',
      message: 'is missing, although influx.url (TIDEMARK_INFLUX_URL) is given',
      remedy: expect.stringMatching(/^A database needs influx\.url and influx\.bucket/),
    },
  ],
])('%s has a line under its own name, with what to do', (_what, environment, line) => {
  expect(linesOf(environment)(line.name)).toMatchObject({ ...line, status: 'fail', exit_code: 78 });
});

test('a value that cannot be used: corrected as docs/configuration.md describes its key', () => {
  expect(linesOf({ TIDEMARK_API_TIMEOUT: '30' })('api.timeout')?.remedy).toBe(
    'Correct it; docs/configuration.md describes every key.',
  );
  const page = readFileSync(join(import.meta.dirname, '..', '..', '..', 'docs', 'configuration.md'), 'utf8');
  const [, described = ''] = /^\| `api\.timeout` \| `TIDEMARK_API_TIMEOUT` \| `([^`]+)` \|/m.exec(page) ?? [];
  const lines = linesOf({ TIDEMARK_API_TIMEOUT: described });
  expect([described, lines('api.timeout'), lines('values')?.status]).toEqual(['30s', undefined, 'ok']);
});

test('a mistake in the file has the name of its key; one in its form is of the file', () => {
  const named = (text: string): string[] => {
    const { read, ...rest } = readForCheck({ file: 'own.yaml', readFile: () => text, environment: API, nowMs: 1e12 });
    const command = { configFile: 'own.yaml' } as CheckParts['command'];
    return configLines({ command, read, ...rest } as unknown as CheckParts, API)
      .filter(({ status }) => status === 'fail')
      .map(({ name, message }) => `${name}: ${message}`);
  };
  expect(named('log:\n  level: loud\n')).toEqual([
    'log.level: own.yaml, line 2: expected one of error, warn, info, debug',
  ]);
  expect(named('lgo:\n  level: info\n')).toEqual(['file: own.yaml, line 1: unknown key lgo']);
  expect(named('[a]\n')).toEqual([
    'file: own.yaml: expected sections with keys, such as "api:" with an indented "url:" below',
  ]);
});
