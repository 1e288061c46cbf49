/**
 * Holds the shape of `src`: the import table (types count too), no cycles, and who may touch the process, the clock and
 * chance. Every rule is tried on planted files too: a checker that finds nothing proves nothing.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join, relative, sep } from 'node:path';
import { describe, expect, test } from 'vitest';
import { BORDER_MUTANTS } from './safety/border-mutants.ts';
import { editedTexts, MUTANTS } from './safety/mutants.ts';
import {
  cycleBetweenFiles,
  cycleBetweenParts,
  functionsOf,
  hasHeader,
  importsOf,
  impureImports,
  MAX_FILES,
  MAX_FUNCTION_LINES,
  MAX_LINES,
  PURE,
  partOf,
  type SourceFile,
  TABLE,
  violations,
  writersOf,
} from './support/architecture.ts';
import { mirrorViolations } from './support/mirror.ts';
import { blank } from './support/source-text.ts';

const SRC = join(import.meta.dirname, '..', 'src');

function filesIn(folder: string): SourceFile[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({ path: relative(folder, path).split(sep).join('/'), text: readFileSync(path, 'utf8') }));
}

const files = filesIn(SRC);

const tests = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
  .map((path) => path.split(sep).join('/'))
  .filter((path) => path.endsWith('.test.ts'));

function canStrip(text: string): boolean {
  try {
    stripTypeScriptTypes(text);
    return true;
  } catch {
    return false;
  }
}

/** The names that a file exports where it declares them. */
function exportsOf(text: string): string[] {
  const declared = /^export (?:async )?(?:function\*?|const|let|class|interface|type|enum) (\w+)/gm;
  return [...text.matchAll(declared)].map(([, name = '']) => name);
}

/** In how many files each word occurs. */
function usersOf(all: readonly SourceFile[]): Map<string, number> {
  const users = new Map<string, number>();
  for (const { text } of all)
    for (const word of new Set(text.match(/\w+/g))) users.set(word, (users.get(word) ?? 0) + 1);
  return users;
}

/** The paths that a pattern such as `^api\/(?:parse|urls)\.ts$` names one by one; none for any other pattern. */
function alternativesOf(source: string): string[] {
  const [, folder, names] = /^\^([\w/\\]+)\\\/\(\?:([\w|/\\-]+)\)\\\.ts\$$/.exec(source) ?? [];
  const path = (name: string): string => `${folder}/${name}.ts`.replaceAll('\\', '');
  return folder === undefined || names === undefined ? [] : names.split('|').map(path);
}

describe('the tree', () => {
  const written = files.filter(({ path }) => !/^store\/open\/(first-steps|migrations)\.ts$/.test(path));

  test('every file keeps the import table and the limits, and touches no clock, timer or process that it may not', () => {
    const broken = files.flatMap((file) => violations(file).map((violation) => `${file.path} ${violation}`));
    expect(broken).toEqual([]);
  });

  test(`src has at most ${MAX_FILES} files`, () => {
    expect(files.length).toBeLessThanOrEqual(MAX_FILES);
  });

  test('Node takes the types out of every file as it is: `npm start` runs the sources', () => {
    const refused = files.filter(({ path, text }) => path.endsWith('.ts') && !canStrip(text));
    expect(refused.map(({ path }) => path)).toEqual([]);
    expect(canStrip("for (const of of ['a']) use(of);")).toBe(false);
  });

  test('every entry in the list of pure files still has files', () => {
    expect(PURE.filter((entry) => !files.some(({ path }) => entry.test(path)))).toEqual([]);
    const paths = new Set(files.map(({ path }) => path));
    const named = PURE.flatMap(({ source }) => alternativesOf(source));
    expect(named.length).toBeGreaterThan(50);
    expect(named.filter((path) => !paths.has(path))).toEqual([]);
  });

  test('pure files import only pure files, except types', () => {
    expect(impureImports(files)).toEqual([]);
  });

  test('no two parts import each other, by values or by types, over any number of steps', () => {
    expect(cycleBetweenParts(files)).toBeNull();
  });

  test('no two files import each other, by values or by types, over any number of steps', () => {
    expect(cycleBetweenFiles(files)).toBeNull();
  });

  test('only observers listen to events: parts that have to act are called', () => {
    const listening = files.filter(({ text }) =>
      /(?<!server\.|function |await )\blisten\(/.test(blank(text, { keepStrings: false })),
    );
    expect(listening.map(({ path }) => path).toSorted()).toEqual([
      'app/open-sync.ts',
      // Metrics, and the newest events of the status page.
      'app/service.ts',
    ]);
  });

  test.each([
    ['position', 'store/delivery/positions.ts'],
    ['quarantine', 'store/delivery/quarantine.ts'],
    ['coverage', 'store/device/telemetry.ts'],
    ['stall', 'store/archive/maintenance.ts'],
  ])('one file writes the table %s', (table, writer) => {
    expect(writersOf(table, written)).toEqual([writer]);
  });

  test.each([
    ['device_revision', 'device/telemetry.ts'],
    ['day_sum', 'device/telemetry.ts'],
    ['missing', 'delivery/missing-points.ts'],
    ['time_offset', 'archive/archive.ts'],
    ['cleared', 'archive/clearing.ts'],
    ['gap', 'device/gaps.ts'],
    ['empty_range', 'device/gaps.ts'],
    ['missed_overlap', 'device/gaps.ts'],
    ['recheck', 'device/gaps.ts'],
    ['device', 'device/inventory.ts'],
    ['alert', 'device/inventory.ts'],
    ['replay', 'delivery/replay.ts'],
    ['job', 'jobs.ts'],
  ])('one file writes the table %s, and the removal of a device deletes from it', (table, writer) => {
    expect(writersOf(table, written).toSorted()).toEqual(['store/device/forget.ts', `store/${writer}`].toSorted());
  });

  test('a block is written by the archive alone: appended, merged, cleared, or rewritten without a removed device', () => {
    expect(writersOf('block', written).toSorted()).toEqual([
      'store/archive/archive.ts',
      'store/archive/clearing.ts',
      'store/archive/compaction.ts',
      'store/device/forget-lines.ts',
    ]);
  });

  test('every export has a user in another file: of the source, of the tests or of the dashboards', () => {
    const root = join(SRC, '..');
    const others = [join(root, 'test'), join(root, 'grafana', 'source')].flatMap(filesIn);
    const users = usersOf([...files, ...others.filter(({ path }) => path.endsWith('.ts'))]);
    const unused = files.flatMap(({ path, text }) =>
      exportsOf(text).flatMap((name) => ((users.get(name) ?? 0) < 2 ? [`${path}: ${name}`] : [])),
    );
    expect(unused).toEqual([]);
    expect(files.flatMap(({ text }) => exportsOf(text)).length).toBeGreaterThan(1000);
  });

  test('every unit has a test of its own name, or an entry that says which test tries it', () => {
    expect(mirrorViolations(files, tests)).toEqual([]);
  });

  test('every test file begins with a header comment', () => {
    const headless = tests.filter((path) => !hasHeader(readFileSync(join(import.meta.dirname, path), 'utf8')));
    expect(headless).toEqual([]);
    expect(tests.length).toBeGreaterThan(300);
  });

  test('the checker sees the tree: its files, their imports and all folders of the table', () => {
    expect(files.length).toBeGreaterThan(20);
    expect(files.flatMap(({ text }) => importsOf(text)).length).toBeGreaterThan(50);
    expect(files.flatMap(functionsOf).length).toBeGreaterThan(1000);
    const parts = new Set(files.map(({ path }) => partOf(path)));
    expect([...parts].filter((part) => !TABLE.has(part))).toEqual([]);
    expect(parts).toContain('core');
  });
});

describe('the broken variants of the program', () => {
  const read = (file: string): string => files.find(({ path }) => path === file)?.text ?? '';
  const faultsOf = (variant: Parameters<typeof editedTexts>[0]): string[] => {
    try {
      editedTexts(variant, read);
      return [];
    } catch (error) {
      return [String(error)];
    }
  };

  test('each finds the lines that it edits, exactly once', () => {
    const variants = [...MUTANTS, ...BORDER_MUTANTS];
    expect(variants.length).toBeGreaterThan(90);
    expect(variants.flatMap(faultsOf)).toEqual([]);
  });

  test.each([
    ['nowhere', 'there is no such line', 'core/time.ts'],
    ['twice', 'export', 'core/time.ts'],
    ['in a file that there is not', 'export', 'core/none.ts'],
  ])('a variant whose lines stand %s is found', (_where, find, file) => {
    expect(faultsOf({ name: 'planted', edits: [{ file, find, replace: '' }] })).toHaveLength(1);
  });

  test('an edit sees the edits before it', () => {
    const edits = [
      { file: 'a.ts', find: 'one', replace: 'two $&' },
      { file: 'a.ts', find: 'two', replace: 'three' },
    ];
    expect(editedTexts({ name: 'planted', edits }, () => 'one')).toEqual(new Map([['a.ts', 'three $&']]));
  });
});

const HEADER = '/** A planted file. */\n';

describe('the checker', () => {
  test.each([
    [
      'a folder next door',
      'api/x.ts',
      "import { a } from '../store/archive.ts';",
      'api imports store: ../store/archive.ts',
    ],
    [
      'a type from next door',
      'sim/x.ts',
      "import type { A } from '../api/schemas.ts';",
      'sim imports api: ../api/schemas.ts',
    ],
    ['a type in place', 'influx/x.ts', "let a: import('../store/a.ts').A;", 'influx imports store: ../store/a.ts'],
    [
      'a dynamic import',
      'observe/x.ts',
      "await import('../ingest/loop.ts');",
      'observe imports ingest: ../ingest/loop.ts',
    ],
    ['an import for effect', 'ingest/x.ts', "import '../api/client.ts';", 'ingest imports api: ../api/client.ts'],
    ['a re-export', 'core/x.ts', "export { a } from '../api/client.ts';", 'core imports api: ../api/client.ts'],
    [
      'an import over lines',
      'ingest/x.ts',
      "import {\n  a,\n  b,\n} from '../store/a.ts';",
      'ingest imports store: ../store/a.ts',
    ],
    [
      'the composition root from below',
      'ingest/x.ts',
      "import { a } from '../app/open-sync.ts';",
      'ingest imports app: ../app/open-sync.ts',
    ],
    ['main from app', 'app/x.ts', "import { a } from '../main.ts';", 'app imports main: ../main.ts'],
    [
      'config from the command line',
      'cli/x.ts',
      "import { a } from '../config/config.ts';",
      'cli imports config: ../config/config.ts',
    ],
    [
      'a command next door',
      'commands/verify/x.ts',
      "import { a } from '../once/job.ts';",
      'a command imports another: ../once/job.ts',
    ],
    [
      'more than a job of another command',
      'commands/daemon/x.ts',
      "import { a } from '../once/once.ts';",
      'a command imports another: ../once/once.ts',
    ],
    [
      'the table of all commands',
      'commands/verify/x.ts',
      "import { a } from '../run.ts';",
      'a command imports another: ../run.ts',
    ],
    ['Node in core', 'core/x.ts', "import { a } from 'node:crypto';", 'core imports node:crypto'],
    ['a package in core', 'core/x.ts', "import { z } from 'zod';", 'core imports the package zod'],
    [
      'a package of another folder',
      'api/x.ts',
      "import D from 'better-sqlite3';",
      'api imports the package better-sqlite3',
    ],
    [
      'a part of another package',
      'ingest/x.ts',
      "import a from 'undici/types';",
      'ingest imports the package undici/types',
    ],
    [
      'the tests',
      'api/x.ts',
      "import { a } from '../../test/support/influxd.ts';",
      'imports from outside src: ../../test/support/influxd.ts',
    ],
    [
      'a folder that the table does not know',
      'misc/x.ts',
      "import { a } from '../core/time.ts';",
      'misc has no place in the import table',
    ],
    ['process', 'app/x.ts', "const home = process.env['HOME'];", 'touches process'],
    ['process by its module', 'app/x.ts', "import process from 'node:process';", 'imports node:process'],
    ['process through globalThis', 'store/x.ts', 'globalThis.process.exit(1);', 'touches process'],
    ['the clock', 'ingest/x.ts', 'const now = Date.now();', 'reaches for the world: Date.now'],
    ['the clock by a date', 'core/x.ts', 'const now = new Date();', 'reaches for the world: new Date()'],
    [
      'the clock inside a template',
      'store/x.ts',
      `const text = \`at \${Date.now()}\`;`,
      'reaches for the world: Date.now',
    ],
    ['chance', 'core/x.ts', 'const a = Math.random();', 'reaches for the world: Math.random'],
    ['a timer', 'ingest/x.ts', 'setTimeout(run, 5);', 'reaches for the world: setTimeout'],
    [
      'a limit of time',
      'ingest/x.ts',
      'const limit = AbortSignal.timeout(5);',
      'reaches for the world: AbortSignal.timeout',
    ],
    ['the clock beside a limit of time', 'influx/sink.ts', 'Date.now();', 'reaches for the world: Date.now'],
    [
      'a timer by its module',
      'sim/x.ts',
      "import { setTimeout } from 'node:timers/promises';",
      'imports node:timers/promises',
    ],
    ['another clock', 'observe/x.ts', 'performance.now();', 'reaches for the world: performance.now'],
    ['an import by a computed name', 'app/x.ts', 'await import(name);', 'imports what only runs can tell'],
  ])('finds %s', (_what, path, code, violation) => {
    expect(violations({ path, text: HEADER + code })).toContain(violation);
  });

  test.each([
    ['a wait', 'ingest/judge-page.ts', 'await store.flush();', 'await'],
    ['a function that waits', 'scheduler/decide.ts', 'const decide = async () => 1;', 'async'],
    ['a module of Node', 'api/quota.ts', "import { hash } from 'node:crypto';", 'node:crypto'],
    [
      'the context of a sync',
      'ingest/rejected-answers.ts',
      'function weigh({ store }: SyncContext): void {}',
      'SyncContext',
    ],
    ['the store', 'scheduler/demand.ts', "function look(store: Pick<Store, 'fact'>): void {}", 'Store'],
    ['a part of the store', 'report/series.ts', 'let rows: TelemetryStore;', 'TelemetryStore'],
    ['the clock', 'core/retry.ts', 'const now = Date.now();', 'Date.now'],
    ['chance', 'core/retry.ts', 'const draw = Math.random();', 'Math.random'],
    ['the clock of an argument', 'core/retry.ts', 'const now = clock.nowMs();', 'nowMs'],
    ['another clock of an argument', 'observe/progress.ts', 'const now = monoMs();', 'monoMs'],
    ['an event', 'scheduler/decide.ts', "observe({ type: 'decided' });", 'observe'],
  ])('finds %s in a pure file, and not elsewhere', (_what, path, code, found) => {
    const violation = `is to be pure, but has ${found}`;
    expect(violations({ path, text: HEADER + code })).toContain(violation);
    expect(violations({ path: 'ingest/page-scan.ts', text: HEADER + code })).not.toContain(violation);
  });

  test.each([
    ['a value', "import { scan } from './page-scan.ts';", true],
    ['a value beside a type', "import { scan, type Scan } from './page-scan.ts';", true],
    ['an effect', "import './page-scan.ts';", true],
    ['a re-export', "export { scan } from './page-scan.ts';", true],
    ['a type', "import type { Scan } from './page-scan.ts';", false],
    ['a pure file', "import { judgePage } from './judge-page.ts';", false],
    ['constants of the ports', "import { STREAMS } from '../core/ports.ts';", false],
    ['a value after code', "export const a = 1;\nimport { scan } from './page-scan.ts';", true],
  ])('finds whether a pure file may import %s', (_what, code, isFound) => {
    const found = ['ingest/rejected-answers.ts is to be pure, but imports ingest/page-scan.ts'];
    expect(impureImports([{ path: 'ingest/rejected-answers.ts', text: HEADER + code }])).toEqual(isFound ? found : []);
    expect(impureImports([{ path: 'ingest/page-scan.ts', text: HEADER + code }])).toEqual([]);
  });

  test('finds a missing header and a file that is too long', () => {
    expect(violations({ path: 'core/x.ts', text: 'export const a = 1;\n' })).toEqual([
      'begins without a header comment',
    ]);
    const long = HEADER + 'export {};\n'.repeat(MAX_LINES);
    expect(violations({ path: 'core/x.ts', text: long })).toEqual([
      `has ${MAX_LINES + 1} lines, more than ${MAX_LINES}`,
    ]);
  });

  test('finds functions that are too long: comments and inner functions count, blank lines do not', () => {
    const inner = '  const inner = () => 1;\n\n  // A comment.\n'.repeat((MAX_FUNCTION_LINES - 2) / 2);
    const fits = `${HEADER}export function outer() {\n${inner}}\n`;
    expect(violations({ path: 'core/x.ts', text: fits })).toEqual([]);
    const long = fits.replace('{', '{\n  // One more.');
    const tooLong = `outer has ${MAX_FUNCTION_LINES + 1} lines, more than ${MAX_FUNCTION_LINES}`;
    expect(violations({ path: 'core/x.ts', text: long })).toEqual([tooLong]);
    const closure = long.replace('export function outer()', 'const outer = () =>');
    expect(violations({ path: 'page/client/x.js', text: closure })).toEqual([tooLong]);
    expect(
      violations({ path: 'core/x.ts', text: `const all = { outer() ${long.slice(long.indexOf('{'))} };` }),
    ).toEqual(['begins without a header comment', tooLong]);
  });

  test.each([
    ['its own command', 'commands/verify/x.ts', "import { a } from './report.ts';"],
    ['code that commands share', 'commands/verify/x.ts', "import { a } from '../shared/range.ts';"],
    ['a job, from the daemon', 'commands/daemon/x.ts', "import { a } from '../once/job.ts';"],
    ['a command, from the table of all', 'commands/run.ts', "import { a } from './once/command.ts';"],
  ])('lets in %s', (_what, path, code) => {
    expect(violations({ path, text: HEADER + code })).toEqual([]);
  });

  test.each([
    ['a comment', '// process.env, Date.now() and import("../store/a.ts")'],
    ['a longer comment', '/* import { a } from "../store/a.ts"; setTimeout() */'],
    ['a string', "const words = 'in use by another process. Date.now() is not called';"],
    ['the text of a template', `const words = \`a process \${1 + 1} Date.now()\`;`],
    ['a regular expression', 'const pattern = /process\\/[/\'"]Math.random/;'],
    ['a method that is called from', "const bytes = Buffer.from('zod');"],
    ['a date made of something', 'const day = new Date(at);'],
    [
      'its own folder, core, and its package',
      "import { a } from './b.ts';\nimport { c } from '../core/time.ts';\nimport { d } from 'undici';",
    ],
  ])('leaves alone %s', (_what, code) => {
    expect(violations({ path: 'api/x.ts', text: HEADER + code })).toEqual([]);
  });

  test.each([
    ['an insertion', "db.prepare('INSERT INTO position (id) VALUES (?)');", true],
    ['one that may be left out', "db.prepare('INSERT OR IGNORE INTO position (id) VALUES (?)');", true],
    ['a replacement', "db.prepare('INSERT OR REPLACE INTO position VALUES (?)');", true],
    ['a change', "db.prepare('UPDATE position SET line = 0');", true],
    ['a removal over lines', 'db.exec(`DELETE\n  FROM position`);', true],
    ['a computed name', `for (const each of ['lack', 'position']) db.exec(\`DELETE FROM \${each}\`);`, true],
    ['a computed name of others', `for (const each of ['lack']) db.exec(\`DELETE FROM \${each}\`);`, false],
    ['a question', "db.prepare('SELECT block FROM position');", false],
    ['another table', "db.prepare('DELETE FROM position_text');", false],
    ['a comment', '// DELETE FROM position', false],
  ])('finds whether %s writes a table', (_what, code, isFound) => {
    expect(writersOf('position', [{ path: 'store/x.ts', text: HEADER + code }])).toEqual(isFound ? ['store/x.ts'] : []);
  });

  test('finds a circle of parts that is made of types alone', () => {
    const circle: SourceFile[] = [
      { path: 'api/a.ts', text: "import type { B } from '../store/b.ts';" },
      { path: 'store/b.ts', text: "import type { C } from '../ingest/c.ts';" },
      { path: 'ingest/c.ts', text: "import type { A } from '../api/a.ts';" },
    ];
    expect(cycleBetweenParts(circle)).toBe('api > store > ingest > api');
    expect(cycleBetweenParts(circle.slice(0, 2))).toBeNull();
    expect(cycleBetweenFiles(circle)).toBe('api/a.ts > store/b.ts > ingest/c.ts > api/a.ts');
    expect(cycleBetweenFiles(circle.slice(0, 2))).toBeNull();
  });

  test('finds a unit that nothing tries, and entries that are not true any more', () => {
    const unit = (path: string) => ({ path, text: 'export function work() {}' });
    const units = ['core/a.ts', 'core/b.ts', 'core/c.ts', 'core/d.ts', 'core/d-rules.ts'].map(unit);
    const named = ['core/a.test.ts', 'core/b-more.test.ts', 'core/c/all.test.ts', 'core/d-rules.test.ts'];
    expect(mirrorViolations(units, named, {})).toEqual(['core/d.ts has no test of its own name']);
    expect(mirrorViolations(units, named, { 'core/a.test.ts': ['core/d.ts'] })).toEqual([]);
    expect(mirrorViolations([{ path: 'core/e.ts', text: 'export type E = 1;' }], [], {})).toEqual([]);
    expect(mirrorViolations(units.slice(0, 1), named, { 'core/x.test.ts': ['core/a.ts', 'core/y.ts'] })).toEqual([
      'there is no core/x.test.ts',
      'there is no core/y.ts',
      'core/a.ts has a test of its own name',
    ]);
  });

  test('finds an export that only its own file names', () => {
    const own = { path: 'core/a.ts', text: 'export const used = 1;\nexport async function unused() {}\nunused();' };
    const users = usersOf([own, { path: 'core/b.ts', text: "import { used } from './a.ts';" }]);
    expect(exportsOf(own.text).map((name) => [name, users.get(name)])).toEqual([
      ['used', 2],
      ['unused', 1],
    ]);
  });

  test('the table itself has no circle', () => {
    const asFiles = [...TABLE].map(([name, { parts }]) => ({
      path: `${name}/x.ts`,
      text: parts.map((other) => `import '../${other}/x.ts';`).join('\n'),
    }));
    expect(cycleBetweenParts(asFiles)).toBeNull();
  });

  test('blanking keeps every line where it was', () => {
    for (const { text } of files)
      expect(blank(text, { keepStrings: false }).split('\n')).toHaveLength(text.split('\n').length);
  });
});
