import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { VERSION } from '../src/app/version.ts';
import type { ExitCode } from '../src/core/faults.ts';
import { PROGRAM_EVENTS, SYNC_EVENTS } from '../src/observe/event-table.ts';
import { configurationPage } from './support/configuration-page.ts';
import { logsPage } from './support/logs-page.ts';
import { metricsPage } from './support/metrics-page.ts';

test('docs/configuration.md is what the schema says (renew it with npx vitest run test/docs.test.ts -u)', async () => {
  await expect(configurationPage()).toMatchFileSnapshot('../docs/configuration.md');
});

test('docs/metrics.md is what the table says (renew it with npx vitest run test/docs.test.ts -u)', async () => {
  await expect(metricsPage()).toMatchFileSnapshot('../docs/metrics.md');
});

test('docs/logs.md is what the tables say (renew it with npx vitest run test/docs.test.ts -u)', async () => {
  await expect(logsPage()).toMatchFileSnapshot('../docs/logs.md');
});

test('the version is that of package.json', () => {
  expect(VERSION).toBe(JSON.parse(readFileSync('package.json', 'utf8')).version);
});

test('the README tells every exit code', () => {
  const codes = [0, 1, 2, 3, 77, 78] satisfies ExitCode[];
  const table = readFileSync('README.md', 'utf8').split('### How it ends')[1] ?? '';
  expect([...table.matchAll(/^\| (\d+) \| /gm)].map(([, code]) => Number(code))).toEqual(codes);
});

describe('docs/troubleshooting.md', () => {
  const page = readFileSync('docs/troubleshooting.md', 'utf8');
  const lines = [...Object.keys(SYNC_EVENTS), ...Object.keys(PROGRAM_EVENTS)];
  /** In brackets stands the name of the event behind the line that is quoted. */
  const named = [...page.matchAll(/\(`([a-z-]+)`/g)].map(([, name = '']) => name);

  test('names events that there are', () => {
    expect(named.length).toBeGreaterThan(20);
    expect(named.filter((name) => !lines.includes(name))).toEqual([]);
  });

  test('tells of every event that an operator sees', () => {
    const seen = Object.entries(SYNC_EVENTS).filter(([, { level }]) => level !== 'debug');
    expect(seen.map(([name]) => name).filter((name) => !named.includes(name))).toEqual([]);
  });
});
