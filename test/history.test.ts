/**
 * The messages of the last commits, by rule 5 of `CONTRIBUTING.md`: a subject of 15 to 70 characters without a full
 * stop, and a body where more than 20 lines of the sources change, whose lines have at most 120 characters. Moved lines
 * and the generated shape of the state do not count, nor do merges.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');

/** Older commits were made before the rule was tested. */
const SINCE = '2026-11-28T03:55:00Z';
/** The same for the width of a body. */
const WIDTH_SINCE = '2026-11-29T08:30:00Z';
const LAST = 30;
const SUBJECT = { least: 15, most: 70 };
const MOST_WITHOUT_BODY = 20;
const WIDTH = 120;

const SOURCE = /^src\/.*\.ts$/;
const GENERATED = 'src/store/open/shape.ts';

/** A line such as `Signed-off-by: …` explains nothing. */
const TRAILER = /^[A-Z][a-z]+(?:-[A-Za-z]+)+: /;

interface Commit {
  readonly subject: string;
  readonly body: string;
  /** Added and removed lines of the sources. */
  readonly lines: number;
}

function git(cwd: string, ...args: string[]): string {
  const who = ['-c', 'user.name=a', '-c', 'user.email=a@b.example', '-c', 'commit.gpgsign=false'];
  return execFileSync('git', [...who, ...args], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

/** The last commits of a checkout, newest first, without merges and without the first one. */
function commitsOf(cwd: string, since: string): Commit[] {
  const range = [`-${LAST}`, `--since-as-filter=${since}`, '--no-merges', '--min-parents=1'];
  const text = git(cwd, 'log', ...range, '--numstat', '-M', '--format=%x01%s%x02%b%x02');
  return text
    .split('\u0001')
    .slice(1)
    .map((entry) => {
      const [subject = '', body = '', changes = ''] = entry.split('\u0002');
      const rows = changes.split('\n').map((row) => row.split('\t'));
      const ofSources = rows.filter(([, , path = '']) => SOURCE.test(path) && path !== GENERATED);
      const lines = ofSources.reduce((sum, [added, removed]) => sum + Number(added) + Number(removed), 0);
      return { subject, body, lines };
    });
}

function faultsOf({ subject, body, lines }: Commit): string[] {
  const explains = body.split('\n').some((line) => line.trim() !== '' && !TRAILER.test(line));
  const isLong = subject.length < SUBJECT.least || subject.length > SUBJECT.most;
  return [
    ...(isLong ? [`${subject}: ${subject.length} characters`] : []),
    ...(subject.endsWith('.') ? [`${subject}: ends with a full stop`] : []),
    ...(lines > MOST_WITHOUT_BODY && !explains ? [`${subject}: ${lines} lines of src and no body`] : []),
  ];
}

function wideLinesOf({ subject, body }: Commit): string[] {
  const wide = body.split('\n').filter(({ length }) => length > WIDTH);
  return wide.map(({ length }) => `${subject}: a line of ${length} characters`);
}

/** Why the history of a checkout cannot be judged; `null` where it can. */
function whyUnjudged(cwd: string): string | null {
  if (!existsSync(join(cwd, '.git'))) return 'there is no history here';
  return git(cwd, 'rev-parse', '--is-shallow-repository').trim() === 'true' ? 'this clone is shallow' : null;
}

/** A repository of its own, with a source file of 80 lines in its first commit. */
function repository(): { readonly path: string; commit(...messages: string[]): void } {
  const path = mkdtempSync(join(tmpdir(), 'tidemark-history-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  const commit = (...messages: string[]): void => {
    git(path, 'add', '--all');
    git(path, 'commit', '-q', '--allow-empty', ...messages.flatMap((each) => ['-m', each]));
  };
  git(path, 'init', '-q');
  mkdirSync(join(path, 'src', 'store', 'open'), { recursive: true });
  writeFileSync(join(path, 'src', 'a.ts'), numbered(80));
  commit('One');
  return { path, commit };
}

const numbered = (lines: number): string => Array.from({ length: lines }, (_, line) => `line ${line};\n`).join('');

test('the last commits have a subject and, where they are large, a body', ({ skip }) => {
  const reason = whyUnjudged(ROOT);
  if (reason !== null) return skip(reason);
  expect(commitsOf(ROOT, SINCE).flatMap(faultsOf)).toEqual([]);
  expect(commitsOf(ROOT, WIDTH_SINCE).flatMap(wideLinesOf)).toEqual([]);
});

test('CONTRIBUTING.md has the same numbers', () => {
  const [, rule = ''] =
    /\n5\. (Commit messages: .*?)\n\n/s.exec(readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8')) ?? [];
  const words = rule.replaceAll(/\s+/g, ' ');
  expect(words).toContain(`subject of ${SUBJECT.least} to ${SUBJECT.most} characters`);
  expect(words).toContain(`more than ${MOST_WITHOUT_BODY} lines in \`src\``);
  expect(words).toContain(`lines of at most ${WIDTH} characters`);
  expect(words).toContain('`test/history.test.ts`');
});

test.each([
  ['Bound it', 1, '', ['Bound it: 8 characters']],
  [`Bound the work ${'of a connection '.repeat(4)}now`, 1, '', [expect.stringMatching(/: 82 characters$/)]],
  ['Bound work per HTTP connection.', 1, '', [expect.stringMatching(/ends with a full stop$/)]],
  ['Bound work per HTTP connection', 21, '', [expect.stringMatching(/: 21 lines of src and no body$/)]],
  ['Bound work per HTTP connection', 21, 'Signed-off-by: A <a@b.example>\n', [expect.stringMatching(/no body$/)]],
  ['Bound work per HTTP connection', 21, 'A client could hold all slots.\n', []],
  ['Bound work per HTTP connection', 20, '', []],
  [
    'Bound work per HTTP connection',
    1,
    `It ${'failed '.repeat(17)}\n`,
    [expect.stringMatching(/: a line of 122 characters$/)],
  ],
])('the message "%s" of a change of %i lines with the body "%s"', (subject, lines, body, faults) => {
  const commit = { subject, lines, body };
  expect([...faultsOf(commit), ...wideLinesOf(commit)]).toEqual(faults);
});

test('changed lines of sources count; moved and generated ones, tests, merges and the first commit do not', () => {
  const { path, commit } = repository();
  const judged = (): Pick<Commit, 'subject' | 'lines'>[] =>
    commitsOf(path, '2000-01-01').map(({ subject, lines }) => ({ subject, lines }));
  expect(judged()).toEqual([]);
  git(path, 'mv', 'src/a.ts', 'src/store/b.ts');
  writeFileSync(join(path, GENERATED), numbered(90));
  writeFileSync(join(path, 'a.test.ts'), numbered(90));
  commit('Move a source file');
  git(path, 'checkout', '-q', '-b', 'other');
  writeFileSync(join(path, 'src', 'c.ts'), numbered(60));
  commit('Add a source file', 'It has sixty lines.');
  git(path, 'checkout', '-q', '-');
  git(path, 'merge', '-q', '--no-ff', '-m', 'Merge', 'other');
  writeFileSync(join(path, 'src', 'c.ts'), numbered(57));
  commit('Remove three lines');
  const found = judged().toSorted((a, b) => a.lines - b.lines);
  expect(found).toEqual([
    { subject: 'Move a source file', lines: 0 },
    { subject: 'Remove three lines', lines: 3 },
    { subject: 'Add a source file', lines: 60 },
  ]);
  const large = commitsOf(path, '2000-01-01').find(({ lines }) => lines === 60);
  expect(large?.body.trim()).toBe('It has sixty lines.');
  expect(commitsOf(path, '2090-01-01')).toEqual([]);
});

test('a shallow clone and a folder without history are not judged', () => {
  const { path, commit } = repository();
  commit('Change nothing at all');
  expect(whyUnjudged(path)).toBeNull();
  const clone = join(path, 'clone');
  git(path, 'clone', '-q', '--depth', '1', `file://${path}`, clone);
  expect(whyUnjudged(clone)).toBe('this clone is shallow');
  expect(whyUnjudged(join(path, 'src'))).toBe('there is no history here');
});
