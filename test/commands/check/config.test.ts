import { expect, test } from 'vitest';
import { type CheckParts, configLines, readForCheck } from '../../../src/commands/check/config.ts';
import type { CheckLine } from '../../../src/commands/check/report.ts';

/** The lines on a configuration that the environment gives, by their names. */
function linesOf(environment: Readonly<Record<string, string>>): (name: string) => CheckLine | undefined {
  const given = { TIDEMARK_API_URL: 'https://api.example/external/v1', TIDEMARK_API_KEY: 'tm_key', ...environment };
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

test('certificates that nobody checks are warned of', () => {
  expect(linesOf({})('NODE_TLS_REJECT_UNAUTHORIZED')).toBeUndefined();
  expect(linesOf({ NODE_TLS_REJECT_UNAUTHORIZED: '1' })('NODE_TLS_REJECT_UNAUTHORIZED')).toBeUndefined();
  const line = linesOf({ NODE_TLS_REJECT_UNAUTHORIZED: '0' })('NODE_TLS_REJECT_UNAUTHORIZED');
  expect(line).toMatchObject({ status: 'warn', remedy: expect.stringMatching(/Unset it.*api\.ca_file/) });
});

test('a short token of a database on this machine is warned of', () => {
  const database = { TIDEMARK_INFLUX_URL: 'http://127.0.0.1:8086', TIDEMARK_INFLUX_BUCKET: 'b' };
  expect(linesOf({ ...database, TIDEMARK_INFLUX_TOKEN: 'long' })('influx.token')?.status).not.toBe('warn');
  expect(linesOf({ ...database, TIDEMARK_INFLUX_TOKEN: 'u:p' })('influx.token')).toMatchObject({
    status: 'warn',
    message: expect.stringContaining('shorter than 4 characters'),
    remedy: 'Use a longer one as soon as others can reach the database.',
  });
});
