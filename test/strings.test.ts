/**
 * The texts of the program: all of them in one list, for a reader who has not seen the project, and every remedy with
 * the test that follows it.
 */
import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { TRIALS } from './fixtures/remedies.ts';
import { publicStrings, remedies, textsOf } from './support/public-strings.ts';

function listed(): string {
  let page = '# Texts of the program\n\nMade from the sources: `npx vitest run test/strings.test.ts -u`\n';
  let last = '';
  for (const { file, text } of publicStrings()) {
    if (file !== last) page += `\n## ${file}\n\n`;
    last = file;
    page += `- ${text}\n`;
  }
  return page;
}

test('test/fixtures/strings.md lists the texts of the sources (update it with vitest -u)', async () => {
  await expect(listed()).toMatchFileSnapshot('fixtures/strings.md');
});

test.each([
  ["throw new Error('the key is refused')", ['the key is refused']],
  [['say(`$', '{count} points of $', '{name}`)'].join(''), ['… points of …']],
  ["html`<p>No <b>device</b> is listed.</p><i class='a b'>x</i>`", ['is listed.']],
  ["import { a } from 'two words'; const x = { 'a key here': 1 };", []],
  ["db.prepare('SELECT id FROM device WHERE id = ?')", []],
])('of %s, what people may see is listed', (source, texts) => {
  expect(textsOf(source)).toEqual(texts);
});

test('every remedy is in test/fixtures/remedies.ts, and none that is not given', () => {
  expect(Object.keys(TRIALS).toSorted()).toEqual(remedies());
});

test('the tests that are named there exist', () => {
  const named = Object.values(TRIALS).flatMap((trial) =>
    'tried' in trial ? [trial.tried] : [...trial.seen.matchAll(/test\/\S+\.ts/g)].map(([file]) => file),
  );
  expect(named.length).toBeGreaterThan(60);
  expect(named.filter((file) => !existsSync(file))).toEqual([]);
});
