import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { VERSION } from '../src/version.ts';
import { configurationPage } from './support/configuration-page.ts';

test('docs/configuration.md is what the schema says (renew it with npx vitest run test/docs.test.ts -u)', async () => {
  await expect(configurationPage()).toMatchFileSnapshot('../docs/configuration.md');
});

test('the version is that of package.json', () => {
  expect(VERSION).toBe(JSON.parse(readFileSync('package.json', 'utf8')).version);
});
