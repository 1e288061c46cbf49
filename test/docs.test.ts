import { expect, test } from 'vitest';
import { configurationPage } from './support/configuration-page.ts';

test('docs/configuration.md is what the schema says (renew it with npx vitest run test/docs.test.ts -u)', async () => {
  await expect(configurationPage()).toMatchFileSnapshot('../docs/configuration.md');
});
