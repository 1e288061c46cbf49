/**
 * What the files of the project refer to: a reader finds it in the project. No number of an issue or of a section that
 * only its author knew, and no file beside the checkout or on somebody's machine.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { blank } from './support/source-text.ts';
import { caseTitlesOf, titlesOf } from './support/test-titles.ts';

const ROOT = join(import.meta.dirname, '..');

/** What leads nowhere: the reason belongs into words, or into docs/design.md with a link to it. */
const DANGLING =
  /\bissues? #?\d+|\bdesign \d+\.\d|\b\d+\.\d of the design\b|§ ?\d|\bthe design (?:says|names|asks|tells)\b/i;

/** Places that a clone does not have: beside it, or with an absolute path. Examples in the documentation say `/home/me`. */
const OUTSIDE =
  /(?:\.\.\/)+shared\/(?:grafana|design|findings|research|tools|api-v1|house\.md|words\.md)|(?<![\w.:/-]\S*)\/work\/\w|(?<![\w.])\/home\/(?!me\b|node\b)\w+|\/Users\/\w+|\/root\/\w/;

/** What others made, or a database holds. */
const FOREIGN =
  /^(?:package-lock\.json$|test\/deploy\/schemas\/|test\/fixtures\/state\/|test\/references\.test\.ts$)|\.(?:png|ico|db|gz|woff2)$/;

const tracked = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
  cwd: ROOT,
  encoding: 'utf8',
})
  .split('\0')
  .filter((path) => path !== '' && !FOREIGN.test(path) && isFile(join(ROOT, path)));

/** Whether there is text of its own: a link to a folder has none. */
function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

function linesWith(pattern: RegExp): string[] {
  return tracked.flatMap((path) =>
    readFileSync(join(ROOT, path), 'utf8')
      .split('\n')
      .flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [])),
  );
}

test('nothing refers to an issue or a section that is not there', () => {
  expect(tracked.length).toBeGreaterThan(500);
  expect(linesWith(DANGLING)).toEqual([]);
});

test.each([
  ' * delivery to a real InfluxDB (issue 4).',
  'the figures of Issue #12',
  ' * A replay (design 1.2): sends archived points once more.',
  'the names in 1.2 of the design',
  'see § 3',
  'as the design says',
])('a reference is found in: %s', (line) => {
  expect(line).toMatch(DANGLING);
});

test.each(['an issue of certificates', 'the design of a page', 'issued 3 times', 'version 1.2 of the API'])(
  'no reference is found in: %s',
  (line) => {
    expect(line).not.toMatch(DANGLING);
  },
);

test('nothing needs a file from outside the project', () => {
  expect(linesWith(OUTSIDE)).toEqual([]);
});

test.each([
  "const FOLDER = '../shared/grafana-schemas';",
  'see ../../shared/design.md',
  'cd /work/main',
  'cat /root/notes.md',
  '/home/somebody/tidemark',
])('a path outside is found in: %s', (line) => {
  expect(line).toMatch(OUTSIDE);
});

test.each(["import { span } from '../shared/words.ts';", 'data_dir: /home/me/data', 'https://example.org/work/'])(
  'no path outside is found in: %s',
  (line) => {
    expect(line).not.toMatch(OUTSIDE);
  },
);

/** A path of the project's own code, as text names it. What Grafana's sources are called stands without a folder. */
const NAMED_PATH = /`([\w.-]+(?:\/[\w.-]+)+\.(?:ts|mjs))`/g;

/** The places that a path may be named from: the top, `src`, `test`, the file's own folder and the one above. */
function isThere(path: string, from: string): boolean {
  const own = dirname(from);
  return ['', 'src', 'test', own, dirname(own)].some((folder) => existsSync(join(ROOT, folder, path)));
}

test('every file that a text names is there', () => {
  const named = tracked
    .filter((path) => /\.(?:ts|mjs|js|md)$/.test(path) && path !== 'CHANGELOG.md')
    .flatMap((from) =>
      [...readFileSync(join(ROOT, from), 'utf8').matchAll(NAMED_PATH)].map(([, path = '']) => ({ from, path })),
    );
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter(({ from, path }) => !isThere(path, from))).toEqual([]);
});

/** A file of the project's own code, as text names it without its folder. Two helpers name files of Grafana's. */
const NAMED_FILE = /`([a-z][\w-]*\.(?:ts|mjs))`/g;
const NAMES_GRAFANA = /^test\/grafana\/support\/promql-/;

test('every file that a text names without its folder is there', () => {
  const files = new Set(tracked.map((path) => basename(path)));
  const named = tracked
    .filter((path) => /\.(?:ts|mjs|js|md)$/.test(path) && path !== 'CHANGELOG.md' && !NAMES_GRAFANA.test(path))
    .flatMap((from) =>
      [...readFileSync(join(ROOT, from), 'utf8').matchAll(NAMED_FILE)].map(([, file = '']) => ({ from, file })),
    );
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter(({ file }) => !files.has(file))).toEqual([]);
});

test('every file that refers to a table in its header has one there', () => {
  const without = tracked
    .filter((path) => path.startsWith('src/') && path.endsWith('.ts'))
    .filter((path) => {
      const text = readFileSync(join(ROOT, path), 'utf8');
      const header = text.slice(0, text.indexOf('*/'));
      return /table in the header/.test(text) && !/^ \* (?:\||.* {3})/m.test(header);
    });
  expect(without).toEqual([]);
});

/** A comment that begins with a clause in place of a noun: it does not name the thing that it is about. */
const NAMELESS = /^\s*(?:\/\*\*|\*|\/\/) (?:What|Whatever|Whoever|That which) [^?]*$/;

test('every comment of sources and tests names its subject', () => {
  const lines = tracked
    .filter((path) => /^(?:src|test)\/.*\.(?:ts|js)$/.test(path) && path !== 'test/references.test.ts')
    .flatMap((path) =>
      readFileSync(join(ROOT, path), 'utf8')
        .split('\n')
        .map((line) => `${path}: ${line}`),
    );
  expect(lines.filter((line) => NAMELESS.test(line.slice(line.indexOf(' ') + 1)))).toEqual([]);
});

/** A comment that begins as no sentence of the field does: it has to be read twice. */
const INVERTED = /^\s*(?:\/\*\*|\*|\/\/) (?:Of (?:an?|the|those)|Has (?:an?|the|every)|At most so|So many)\b/;

/** The longest line of a comment in the sources. The formatter breaks code and leaves comments as they are. */
const LONGEST_COMMENT = 120;

test('every comment begins like a sentence, and in the sources it fits its line', () => {
  const wrong = tracked
    .filter((path) => /^(?:src|test)\/.*\.(?:ts|js)$/.test(path) && path !== 'test/references.test.ts')
    .flatMap((path) => {
      const text = readFileSync(join(ROOT, path), 'utf8');
      const code = blank(text, { keepStrings: true }).split('\n');
      const comments = text.split('\n').map((line, index) => (code[index]?.trim() === '' ? line : ''));
      const longest = path.startsWith('src/') ? LONGEST_COMMENT : Number.POSITIVE_INFINITY;
      return comments.flatMap((line, index) =>
        INVERTED.test(line) || line.length > longest ? [`${path}:${index + 1}: ${line}`] : [],
      );
    });
  expect(wrong).toEqual([]);
});

test.each(['/** Of a device that rests. */', ' * Has the stream read. */', '// At most so many.', '// So many bytes.'])(
  'no beginning of a sentence is found in: %s',
  (line) => {
    expect(line).toMatch(INVERTED);
  },
);

test.each([
  '/** What was requested. */',
  ' * Whoever asks waits.',
  '  // What is read',
  '// Whatever comes, it is kept.',
])('no subject is found in: %s', (line) => {
  expect(line).toMatch(NAMELESS);
});

test.each(['/** The request. */', '// Look at what was requested.', '// What is it? A page.'])(
  'a subject is found in: %s',
  (line) => {
    expect(line).not.toMatch(NAMELESS);
  },
);

/**
 * Words for which the sources have another: gap, range, page scan, idle poll, covered, missing, outage, acknowledge;
 * reports, requests, accepted, trusted, continues.
 */
const WITHDRAWN =
  /\b(?:settl\w*|sweep\w*|holes?|walk(?:s|ed)?|stretch(?:es)?|claim\w*|lacks|lacking|troubles?|tells|told|ask(?:s|ed)?|said|believ\w*|held|unfit|whoever|nobody|go(?:es|ne)? on)\b/i;

test('no title of a test uses a withdrawn word', () => {
  const titles = tracked
    .filter((path) => path.endsWith('.test.ts'))
    .flatMap((path) => {
      const text = readFileSync(join(ROOT, path), 'utf8');
      return [...titlesOf(text), ...caseTitlesOf(text)].map((title) => `${path}: ${title}`);
    });
  expect(titles.length).toBeGreaterThan(4000);
  expect(titles.filter((title) => WITHDRAWN.test(title.slice(title.indexOf(' '))))).toEqual([]);
});

/** Withdrawn words that no test needs for anything else, unless it quotes what an older version wrote. */
const WITHDRAWN_EVERYWHERE =
  /\b(?:holdings|holes?|landings?|landed|seal(?:s|ed)?|stretch(?:es)?|sweeps?|told(?=\())\b|\b(?:const|let|function) told\b/;

test('no helper, value or comment of a test has a withdrawn name', () => {
  const lines = tracked
    .filter((path) => /^test\/.*\.ts$/.test(path) && path !== 'test/store/open/migrations.test.ts')
    .flatMap((path) =>
      readFileSync(join(ROOT, path), 'utf8')
        .split('\n')
        .map((line) => `${path}: ${line}`),
    );
  expect(lines.length).toBeGreaterThan(50_000);
  expect(lines.filter((line) => WITHDRAWN_EVERYWHERE.test(line))).toEqual([]);
});

/** Words that the sources have for nothing any more: in identifiers, whose parts count as words, and in comments. */
const WITHDRAWN_IN_SOURCES =
  /^(?:settl\w*|sweep\w*|holes?|walk(?:s|ed|ing)?|stretch(?:es)?|claim\w*|lacks|lacked|lacking|troubles?|tells?|telling|told|(?:un)?ask(?:s|ed|ing)?|said|believ\w*|held|unfit|whoever|nobody|holdings?|paces?|paced|pacing|mutes?|muted|doorbells?|brakes?|witness\w*|suspects?|landings?|landed|keepers?|untold)$/i;

/** In comments these are verbs; as a name they name nothing. */
const WITHDRAWN_NAMES = /^(?:looks?|looked|looking)$/i;

/** Identifiers that stay, each with its reason. */
const ALLOWED_NAMES: Readonly<Record<string, string>> = {
  allSettled: 'a method of Promise',
  asking: 'a stored key: the progress of a job of `--check` in the state',
};

/** `of` as a value, parameter or property: a preposition names nothing. The loop `for (… of …)` is not meant. */
const NAMED_OF = /(?<![\w$.])of(?=\(|\??:| = |,| })|\.of\b(?<!\b(?:Array|Buffer)\.of)/;

/** Files with `of` as a documented key: the log field and the label of `quota_short`. */
const DOCUMENTED_OF = /^src\/observe\/(?:event-row|event-table|metrics-table)\.ts$/;

/** The lines of a source that have a withdrawn word, each with the word. */
function withdrawnIn(path: string, text: string): string[] {
  const code = blank(text, { keepStrings: false }).split('\n');
  const uncommented = blank(text, { keepStrings: true }).split('\n');
  return text.split('\n').flatMap((line, index) => {
    const comment = [...line].map((sign, at) => (uncommented[index]?.[at] === sign ? ' ' : sign)).join('');
    const names = (code[index]?.match(/[A-Za-z_$][\w$]*/g) ?? []).filter((name) => !(name in ALLOWED_NAMES));
    const parts = names.flatMap((name) => name.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g) ?? []);
    const found = [
      ...parts.filter((part) => WITHDRAWN_IN_SOURCES.test(part) || WITHDRAWN_NAMES.test(part)),
      ...(comment.match(/[A-Za-z]+/g) ?? []).filter((word) => WITHDRAWN_IN_SOURCES.test(word)),
      ...(NAMED_OF.test(code[index] ?? '') && !DOCUMENTED_OF.test(path) ? ['of'] : []),
    ];
    return found.map((word) => `${path}:${index + 1}: ${word}`);
  });
}

test('no identifier and no comment of the sources has a withdrawn word', () => {
  const sources = tracked.filter((path) => /^src\/.*\.(?:ts|js)$/.test(path));
  expect(sources.length).toBeGreaterThan(250);
  expect(sources.flatMap((path) => withdrawnIn(path, readFileSync(join(ROOT, path), 'utf8')))).toEqual([]);
});

test.each([
  ['const mute = 1;', 'mute'],
  ['const isMuteAgain = 1;', 'Mute'],
  ['const UNASKED_MS = 1;', 'UNASKED'],
  ['f(a.look());', 'look'],
  ['a(); // Nobody reads it.', 'Nobody'],
  ['/** The pace. */', 'pace'],
  ['function of(a) {}', 'of'],
  ['const of = 1;', 'of'],
  ['f({ of, a });', 'of'],
  ['f(a, of: string);', 'of'],
  ['a.of(b);', 'of'],
])('in the source %s the withdrawn word %s is found', (source, word) => {
  expect(withdrawnIn('src/a.ts', source)).toEqual([`src/a.ts:1: ${word}`]);
});

test.each([
  "a('nobody is told');",
  'await Promise.allSettled(a);',
  'for (const a of (b ?? [])) c(a);',
  'for (const [a] of [b]) c(a);',
  '// It looks at all of them.',
  'const LOOKBACK_MS = 1;',
  'Array.of(1);',
])('in the source %s no withdrawn word is found', (source) => {
  expect(withdrawnIn('src/a.ts', source)).toEqual([]);
});

test('titles are found in every kind of call', () => {
  const source = ['tes', 't("a walk", x); describ', "e.runIf(a())('holes', y); tes", 't.each(ALL)(\n`it lacks b`'].join(
    '',
  );
  expect(titlesOf(source)).toEqual(['a walk', 'holes', 'it lacks b']);
  expect(titlesOf(source).every((title) => WITHDRAWN.test(title))).toBe(true);
});

test.each([
  ["te_st.each([['a hole', 1], ['b', 2]])('%s', (what) => {});", ['a hole', 'b']],
  ["te_st.each<[string, number]>([['a hole', 1]])('%s', (what) => {});", ['a hole']],
  ["te_st.each([[1, 'a'], [2, 'b']])('%i is %s', (n, what) => {});", ['a', 'b']],
  ["te_st.each([[1, 'a'], [2, 'b']])('%s is %s', (n, what) => {});", ['a', 'b']],
  ["te_st.each(['a', 'b'])('%s', (what) => {});", ['a', 'b']],
  ["te_st.each([{ name: 'a hole', of: 'b' }])('$name', ({ name }) => {});", ['a hole']],
  ["const ROWS = [['a hole', 1]];\ndescr_ibe.each(ROWS)('%s', (what) => {});", ['a hole']],
  ["const KEYS = { 'a hole': 1, b: 2 };\nte_st.each(Object.entries(KEYS))('%s', (what) => {});", ['a hole']],
  ["te_st.runIf(a()).each([['a hole']])('%s', (what) => {});", ['a hole']],
  ["te_st.each([...['x'].flatMap((a) => { return [[`$_{a} hole`, 1]]; })])('%s', () => {});", ['x', '$_{a} hole']],
  ["te_st.each([['data', 1]])('has no place', (what) => {});", []],
])('of %j, the texts in its titles are found', (source, titles) => {
  expect(caseTitlesOf(source.replaceAll('_', '')).toSorted()).toEqual(
    titles.map((title) => title.replaceAll('_', '')).toSorted(),
  );
});

/**
 * The documented parameters that a declaration does not have. One that is taken apart where it is declared has the name
 * of a part or of its type: `context` for `{ store }: SyncContext`.
 */
function unknownParameters(source: string): string[] {
  return [...source.matchAll(/\/\*\*(?:(?!\*\/)[\s\S])*\*\//g)].flatMap(({ index, 0: comment }) => {
    const documented = [...comment.matchAll(/@param (\w+)/g)].map(([, name]) => name ?? '');
    const declared = documented.length === 0 ? '' : headOf(source.slice(index + comment.length));
    const isTakenApart = /[(,]\s*(?:\.\.\.)?[[{]/.test(declared);
    return documented.filter((name) => {
      const ofType = isTakenApart ? `|\\w*${name.charAt(0).toUpperCase()}${name.slice(1)}` : '';
      return !new RegExp(`\\b(?:${name}${ofType})\\b`).test(declared);
    });
  });
}

/** A declaration up to the end of its parameters. */
function headOf(text: string): string {
  let depth = 0;
  for (let at = text.indexOf('('); at < text.length; at += 1) {
    if (text[at] === '(') depth += 1;
    if (text[at] === ')') depth -= 1;
    if (depth === 0) return text.slice(0, at + 1);
  }
  return text;
}

test('every documented parameter is there', () => {
  const sources = tracked.filter((path) => path.startsWith('src/') && path.endsWith('.ts'));
  const wrong = sources.flatMap((path) =>
    unknownParameters(readFileSync(join(ROOT, path), 'utf8')).map((name) => `${path}: ${name}`),
  );
  expect(wrong).toEqual([]);
});

test.each([
  ['/** @param keep stores it. */\nexport type Worker = (save: () => void) => void;', ['keep']],
  ['/** @param save stores it. */\nexport type Worker = (save: () => void) => void;', []],
  ['/** @param file what is read. */\nfunction read({ path }: File): void {}', []],
  ['/** @param context what is read. */\nfunction read({ store }: SyncContext): void {}', []],
  ['/** @param path what is read. */\nfunction read({ path }: { path: string }): void {}', []],
  ['/** @param since when it began. */\nfunction read({ sinceMs }: { sinceMs: number }): void {}', ['since']],
  ['/** @param file what is read. */\nfunction read(file: Profile): void {}', []],
  ['/** @param file what is read. */\nfunction read(path: File): void {}', ['file']],
])('of %s, the documented parameters that are not there are found', (source, names) => {
  expect(unknownParameters(source)).toEqual(names);
});
