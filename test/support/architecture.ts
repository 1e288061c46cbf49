/**
 * The shape of `src` as rules (design, part 3): who may import whom, who may touch the process, the clock and chance.
 * The checker is a function of path and text, so that it can be tried on files that do not exist.
 */
import { posix } from 'node:path';
import { blank } from './source-text.ts';

/** What a part of `src` may import: other parts, packages, and Node's own modules. */
interface Allowance {
  readonly parts: readonly string[];
  readonly packages: readonly string[];
  readonly node: boolean;
}

const FOLDERS = ['core', 'api', 'store', 'influx', 'schedule', 'observe', 'page', 'sim', 'sync', 'commands'];

function part(parts: readonly string[], packages: readonly string[], node = true): Allowance {
  return { parts, packages, node };
}

/** The import table. A part may always import itself. */
export const TABLE: ReadonlyMap<string, Allowance> = new Map([
  ['core', part([], [], false)],
  ['api', part(['core'], ['undici', 'p-queue', 'zod'])],
  ['store', part(['core'], ['better-sqlite3'])],
  ['influx', part(['core'], ['@influxdata/influxdb-client'])],
  ['schedule', part(['core'], ['node-cron'], false)],
  ['observe', part(['core'], ['pino', 'pino-pretty', 'prom-client'])],
  ['page', part(['core'], ['uplot'])],
  ['sim', part(['core'], [])],
  ['sync', part(['core'], [], false)],
  ['commands', part(['core', 'sync'], [], false)],
  ['cli', part(['core'], [])],
  ['config', part(['core', 'schedule'], ['yaml'])],
  ['real-clock', part(['core'], [])],
  ['version', part([], [])],
  ['app', part([...FOLDERS, 'cli', 'config', 'real-clock', 'version'], [])],
  ['voice', part(['core', 'observe', 'config', 'real-clock'], [])],
  ['run', part([...FOLDERS, 'cli', 'config', 'real-clock', 'version', 'app', 'voice'], [])],
  ['main', part([...FOLDERS, 'cli', 'config', 'real-clock', 'version', 'app', 'voice', 'run'], [])],
]);

/** The part that a path below `src` belongs to: its folder, or for files at the top their first word. */
export function partOf(path: string): string {
  const [folder, rest] = path.split('/');
  if (rest !== undefined) return folder ?? '';
  const name = path.replace(/\.ts$/, '');
  return TABLE.has(name) ? name : (name.split('-')[0] ?? name);
}

/**
 * Files that may read a clock, set timers or draw at random; in the browser there is nobody to give them. Everything else
 * takes these as arguments.
 */
const WORLDLY =
  /^(?:main\.ts|real-clock\.ts|page\/client\/[\w-]+\.js|api\/transport\.ts|sim\/(?:server[\w-]*|virtual-clock)\.ts)$/;

const WORLD =
  /\b(?:Date\.now|Math\.random|performance\.(?:now|timeOrigin)|(?:set|clear)(?:Timeout|Interval|Immediate)|randomUUID|randomBytes|randomInt|getRandomValues)\b|\bnew Date\(\s*\)|\bDate\(\s*\)/g;

/** Imports that are made while the program runs. */
const CALLED = /(?<![.\w])(?:import|require)\s*\(/g;

export const MAX_LINES = 300;

/** A file, its path relative to `src`. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

/** What a file imports, in whichever way: values, types, for effect, re-exports, dynamically. */
export function importsOf(text: string): string[] {
  return targetsAfter(/(?<![.\w])(?:import\b|require\b|from\b(?!\s*\())/g, text).filter((target) => target !== null);
}

/** The literals that follow a pattern; `null` where something else follows. Words inside strings are no code. */
function targetsAfter(pattern: RegExp, text: string): (string | null)[] {
  const kept = blank(text, { keepStrings: true });
  const code = blank(text, { keepStrings: false });
  return [...code.matchAll(pattern)].map(({ index, 0: head }) => {
    const rest = kept.slice(index + head.length);
    return /^\s*\(?\s*(['"])([^'"\n]+)\1/.exec(rest)?.[2] ?? null;
  });
}

/** Every rule that a file breaks, in words. */
export function violations({ path, text }: SourceFile): string[] {
  const found: string[] = [];
  const code = blank(text, { keepStrings: false });
  if (!/^(?:#!.*\n)?\/\*\*/.test(text)) found.push('begins without a header comment');
  const lines = text.trimEnd().split('\n').length;
  if (lines > MAX_LINES) found.push(`has ${lines} lines, more than ${MAX_LINES}`);
  if (path !== 'main.ts' && /\bprocess\b(?!\s*:)/.test(code)) found.push('touches process');
  if (!WORLDLY.test(path)) {
    for (const [use] of code.matchAll(WORLD)) found.push(`reaches for the world: ${use}`);
  }
  if (targetsAfter(CALLED, text).includes(null)) found.push('imports what only runs can tell');
  return [...found, ...importsOf(text).flatMap((target) => importViolation(path, target) ?? [])];
}

function importViolation(path: string, target: string): string | null {
  const own = partOf(path);
  const allowed = TABLE.get(own);
  if (allowed === undefined) return `${own} has no place in the import table`;
  if (target.startsWith('.')) {
    const resolved = posix.join(posix.dirname(path), target);
    if (resolved.startsWith('..')) return `imports from outside src: ${target}`;
    const other = partOf(resolved);
    return other === own || allowed.parts.includes(other) ? null : `${own} imports ${other}: ${target}`;
  }
  if (target.startsWith('node:')) {
    if (target === 'node:process' || (target.startsWith('node:timers') && !WORLDLY.test(path)))
      return `imports ${target}`;
    return allowed.node ? null : `${own} imports ${target}`;
  }
  return allowed.packages.some((name) => target === name || target.startsWith(`${name}/`))
    ? null
    : `${own} imports the package ${target}`;
}

/** Parts that import each other in a circle, as a path such as `a > b > a`; `null` where there is none. */
export function cycleBetweenParts(files: readonly SourceFile[]): string | null {
  const edges = new Map<string, Set<string>>();
  for (const { path, text } of files) {
    const own = partOf(path);
    for (const target of importsOf(text).filter((name) => name.startsWith('.'))) {
      const other = partOf(posix.join(posix.dirname(path), target));
      if (other !== own) edges.set(own, (edges.get(own) ?? new Set()).add(other));
    }
  }
  for (const start of edges.keys()) {
    const cycle = walk(start, [start], edges);
    if (cycle !== null) return cycle.join(' > ');
  }
  return null;
}

function walk(at: string, path: readonly string[], edges: ReadonlyMap<string, ReadonlySet<string>>): string[] | null {
  for (const next of edges.get(at) ?? []) {
    if (next === path[0]) return [...path, next];
    if (path.includes(next)) continue;
    const found = walk(next, [...path, next], edges);
    if (found !== null) return found;
  }
  return null;
}
