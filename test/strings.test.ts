/**
 * The texts of the program: all of them in one list, for a reader who has not seen the project, and every remedy with
 * the test that follows it.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { TRIALS } from './fixtures/remedies.ts';
import { AROUND, TITLES, TROUBLESHOOTING } from './fixtures/remedies-around.ts';
import {
  commentsOf,
  deployedStrings,
  textsOfCompose,
  textsOfJson,
  textsOfScript,
  textsOfUnit,
  textsOfYaml,
} from './support/deployed-strings.ts';
import {
  imperatives,
  obligations,
  type PublicString,
  publicStrings,
  remedies,
  remediesAround,
  remediesOfPage,
  textsOf,
} from './support/public-strings.ts';

function listed(title: string, strings: readonly PublicString[]): string {
  let page = `# ${title}\n\nMade from the sources: \`npx vitest run test/strings.test.ts -u\`\n`;
  let last = '';
  for (const { file, text } of strings) {
    if (file !== last) page += `\n## ${file}\n\n`;
    last = file;
    page += `- ${text}\n`;
  }
  return page;
}

test('test/fixtures/strings.md lists the texts of the sources (update it with vitest -u)', async () => {
  await expect(listed('Texts of the program', publicStrings())).toMatchFileSnapshot('fixtures/strings.md');
});

test('test/fixtures/deployed-strings.md lists the texts of dashboards, rules, units, scripts, compose files and the chart', async () => {
  const page = listed('Texts of the files around the program', deployedStrings());
  await expect(page).toMatchFileSnapshot('fixtures/deployed-strings.md');
});

test('of dashboards, rules and scripts, the visible texts are listed', () => {
  const panel = {
    title: 'Points in a second',
    targets: [{ expr: 'rate(points [5m])' }],
    id: 'last seen',
    Time: 'Time',
  };
  expect(textsOfJson(JSON.stringify(panel))).toEqual(['Points in a second', 'last seen']);
  expect(textsOfYaml('summary: "It is down"\nexpr: up == 0\nname: tidemark-down')).toEqual(['It is down']);
  expect(commentsOf('# One line,\n# and another.\nkey: 1\n  # Another one.\n')).toEqual([
    'One line, and another.',
    'Another one.',
  ]);
  expect(commentsOf('# How long it keeps points.\n# retention: 30d\n#A_B=1\n# In: the page.\n')).toEqual([
    'How long it keeps points.',
    'In: the page.',
  ]);
  expect(textsOfCompose(['# For a demo.\nURL: $', '{URL:?put it into .env (URL=x)}'].join(''))).toEqual([
    'For a demo.',
    'put it into .env (URL=x)',
  ]);
  expect(textsOfUnit('# Once a day.\n[Unit]\nDescription=Backup of %i\nAfter=x.target')).toEqual([
    'Once a day.',
    'Backup of %i',
  ]);
  expect(textsOfScript(`[ -f x ] || fail 'no file "x"'\necho "Done with \\"$name\\"." >&2`)).toEqual([
    'no file "x"',
    'Done with "$name".',
  ]);
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

test.each([
  ['connection refused; check api.url and that the server is up', ['Check api.url and that the server is up']],
  ['…: this is not a file. Correct data_dir.', ['Correct data_dir']],
  ['if this lasts, check the log', ['If this lasts, check the log']],
  ['The next start finishes it, or run the command again.', ['Run the command again']],
  ['Stopped. Nothing was removed. Run it again. Then raise the limit', ['Run it again']],
  ['a check that uses the state; stopped by the user: nothing runs', []],
])('of %s, what a person is to do is found', (text, sentences) => {
  expect(imperatives(text)).toEqual(sentences);
});

test.each([
  ['the server is odd; influx.url must be the base URL of it. More', ['Influx.url must be the base URL of it']],
  ['root is needed: sudo install.sh home', ['Root is needed: sudo install.sh home']],
  ['--api-url is required without a terminal', ['--api-url is required without a terminal']],
  ['nothing is lost; all must have come', []],
])('of %s, what has to be so is found', (text, sentences) => {
  expect(obligations(text)).toEqual(sentences);
});

test('of a table, the advice of its last column is found', () => {
  expect(remediesOfPage('| what | do |\n| --- | --- |\n| run it | fix it and restart |\n\nRun it again.')).toEqual([
    'Fix it and restart',
  ]);
});

test('every advice around the program is in test/fixtures/remedies-around.ts, and none that is not given', () => {
  const page = readFileSync(join(import.meta.dirname, '..', 'docs', 'troubleshooting.md'), 'utf8');
  expect(Object.keys(AROUND).toSorted()).toEqual(remediesAround(deployedStrings()));
  expect(Object.keys(TROUBLESHOOTING).toSorted()).toEqual(remediesOfPage(page));
});

test('every remedy is in test/fixtures/remedies.ts, and none that is not given', () => {
  expect(Object.keys(TRIALS).toSorted()).toEqual(remedies());
});

test('the tests that are named there exist, and a remedy that none follows names one that shows it', () => {
  const trials = [TRIALS, AROUND, TROUBLESHOOTING].flatMap((list) => Object.entries(list));
  const named = trials.map(([remedy, trial]): [string, string[]] => [
    remedy,
    'tried' in trial
      ? [trial.tried]
      : [...trial.seen.matchAll(/(?:test|config)\/\S+\.(?:ts|yml)/g)].map(([file]) => file),
  ]);
  expect(named.length).toBeGreaterThan(300);
  expect(named.flatMap(([, files]) => files).filter((file) => !existsSync(file))).toEqual([]);
  const unseen = named.filter(([, files]) => files.length === 0).map(([remedy]) => remedy);
  expect(unseen).toEqual(TITLES);
});
