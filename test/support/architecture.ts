/**
 * The shape of `src` as rules: who may import whom, who may touch the process, the clock and chance. The checker is a
 * function of path and text, so that it can be tried on files that do not exist.
 */
import { posix } from 'node:path';
import { parseAst } from 'rolldown/parseAst';
import { blank } from './source-text.ts';

/** The allowed imports of a part of `src`: other parts, packages, and Node's own modules. */
interface Allowance {
  readonly parts: readonly string[];
  readonly packages: readonly string[];
  readonly node: boolean;
}

function part(parts: readonly string[], packages: readonly string[] = [], node = true): Allowance {
  return { parts, packages, node };
}

/** Each depends on one technology. */
const TECHNOLOGIES = ['api', 'influx', 'store', 'observe', 'page', 'sim'];
const BELOW_APP = [
  'core',
  ...TECHNOLOGIES,
  'ingest',
  'delivery',
  'archive',
  'scheduler',
  'report',
  'config',
  'cli',
] as const;

/** The import table. A part may always import itself; a command is a part of its own. */
export const TABLE: ReadonlyMap<string, Allowance> = new Map([
  ['core', part([], [], false)],
  ['api', part(['core'], ['undici', 'p-queue'])],
  ['influx', part(['core'], ['@influxdata/influxdb-client'])],
  ['store', part(['core'], ['better-sqlite3'])],
  ['observe', part(['core'], ['pino', 'prom-client'])],
  ['page', part(['core'], ['uplot'])],
  ['sim', part(['core'])],
  ['ingest', part(['core'], [], false)],
  ['delivery', part(['core'], [], false)],
  ['archive', part(['core'], [], false)],
  ['scheduler', part(['core', 'ingest'], [], false)],
  ['report', part(['core', 'scheduler', 'ingest', 'delivery', 'archive'], [], false)],
  ['config', part(['core'], ['yaml', 'node-cron'])],
  ['cli', part(['core'])],
  ['app', part(BELOW_APP)],
  ['commands', part([...BELOW_APP, 'app'])],
  ['main', part(['core', 'cli', 'app', 'commands'])],
]);

/** The part that a path below `src` belongs to: its folder, or the file at the top. */
export function partOf(path: string): string {
  const [folder, rest] = path.split('/');
  return rest === undefined ? path.replace(/\.ts$/, '') : (folder ?? '');
}

/** The command that a path belongs to, `shared` for what commands have in common; `null` for everything else. */
function commandOf(path: string): string | null {
  const [folder, command, rest] = path.split('/');
  return folder === 'commands' && rest !== undefined ? (command ?? null) : null;
}

/**
 * Whether a file of a command may import a file of `commands/`: its own, what is shared, and for the daemon the jobs of
 * the others. The files directly in `commands/` know all commands and are known to `main` alone.
 */
function mayImportCommand(path: string, target: string): boolean {
  const own = commandOf(path);
  const other = commandOf(target);
  if (own === null) return true;
  if (other === own || other === 'shared') return true;
  return own === 'daemon' && target.endsWith('/job.ts');
}

/**
 * Files that may read a clock, set timers or draw at random; in the browser there is nobody to give them. Everything
 * else gets these as arguments.
 */
const WORLDLY = /^(?:main\.ts|app\/real-clock\.ts|page\/client\/[\w-]+\.js|api\/transport\.ts|sim\/server\.ts)$/;

/** Files that may limit the time of a request or of a command, with a timer that nothing waits for. */
const LIMITING = /^(?:api\/reach|commands\/check\/api|commands\/shared\/get-page|influx\/sink)\.ts$/;

const TIME_LIMIT = 'AbortSignal.timeout';

const WORLD =
  /\b(?:AbortSignal\.timeout|Date\.now|Math\.random|performance\.(?:now|timeOrigin)|(?:set|clear)(?:Timeout|Interval|Immediate)|randomUUID|randomBytes|randomInt|getRandomValues)\b|\bnew Date\(\s*\)|\bDate\(\s*\)/g;

/** Imports that are made while the program runs. */
const CALLED = /(?<![.\w])(?:import|require)\s*\(/g;

/**
 * Files that hold rules alone: what they return depends on their arguments. They wait for nothing, read no clock, emit no
 * event, import no module of Node's, and know neither the ports of a sync nor those of the store.
 */
export const PURE: readonly RegExp[] = [
  /^core\/(?!async|clock-samples|heartbeats|ports|server-clock|state\/)/,
  /^ingest\/(?:commit-rules|coverage-rules|empty-ranges|judge-page|page-request|rejected-answers|window-limits)\.ts$/,
  /^scheduler\/(?:day-budget|decide|demand|device-outlook|device-queue|device-view|estimate|heap|history-queue)\.ts$/,
  /^scheduler\/(?:planner|planner-types|report-rate|reserves|streams)\.ts$/,
  /^api\/(?:classify|page-size|parse|quota|throttle|urls)\.ts$/,
  /^influx\/(?:answers|facts)\.ts$/,
  /^cli\/(?!argv)/,
  /^config\/(?:cron|listen|schema|values)\.ts$/,
  /^sim\/(?!endpoints|server|simulator)/,
  /^report\/(?:device-list|device-snapshot|series)\.ts$/,
  /^observe\/(?:event-row|event-table|metrics-table|program-events|progress)\.ts$/,
  /^page\/(?:device|devices|html|overview|panels|style)\.ts$/,
  /^commands\/(?:check\/report|export\/format|plan\/cost|plan\/text|status\/device|status\/text|verify\/examine|verify\/result|verify\/retention|verify\/text)\.ts$/,
  /^commands\/shared\/(?:layout|options)\.ts$/,
];

/** Names of ports with the constants that belong to them: a pure file may use both. */
const PORTS = /^core\/(?:ports\.ts|state\/)/;

/** Names that no file of {@link PURE} may mention. */
const IMPURE =
  /\b(?:await|async|SyncContext|\w*(?:Store|Ledger)|Date\.now|Math\.random)\b|\b(?:monoMs|nowMs|observe)(?=\()/g;

export const MAX_LINES = 450;
/** Source files, scripts of the page included: a new one has to take the place of another. */
export const MAX_FILES = 280;

/** The longest function: non-blank lines from its head to its end, comments and functions inside it included. */
export const MAX_FUNCTION_LINES = 60;

/** A file, its path relative to `src`. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

/** The imports of a file, in any form: values, types, for effect, re-exports, dynamically. */
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

/** Imports and re-exports that are left once the types are removed. */
const FOR_VALUES = /(?<![.\w])(?:import|export)\b(?!\s*type\b)[^;]*?\bfrom\b|(?<![.\w])import(?=\s*;)/g;

/** The files that pure files import for their values though they are not pure themselves: each makes its importer impure. */
export function impureImports(files: readonly SourceFile[]): string[] {
  const isPure = (path: string): boolean => PURE.some((entry) => entry.test(path)) || PORTS.test(path);
  return files
    .filter(({ path }) => PURE.some((entry) => entry.test(path)))
    .flatMap(({ path, text }) =>
      targetsAfter(FOR_VALUES, text)
        .filter((target) => target?.startsWith('.'))
        .map((target) => posix.join(posix.dirname(path), target ?? ''))
        .filter((target) => !isPure(target))
        .map((target) => `${path} is to be pure, but imports ${target}`),
    );
}

/** Whether a file begins with a header comment, at most after the line that names its interpreter. */
export function hasHeader(text: string): boolean {
  return /^(?:#!.*\n)?\/\*\*/.test(text);
}

/** Every rule that a file breaks, in words. */
export function violations({ path, text }: SourceFile): string[] {
  const found: string[] = [];
  const code = blank(text, { keepStrings: false });
  if (!hasHeader(text)) found.push('begins without a header comment');
  const lines = text.trimEnd().split('\n').length;
  if (lines > MAX_LINES) found.push(`has ${lines} lines, more than ${MAX_LINES}`);
  if (path !== 'main.ts' && /\bprocess\b(?!\s*:)/.test(code)) found.push('touches process');
  found.push(...worldlyUses(path, code).map((use) => `reaches for the world: ${use}`));
  if (PURE.some((files) => files.test(path))) found.push(...impurities(code, text));
  for (const { name, lines } of functionsOf({ path, text })) {
    if (lines > MAX_FUNCTION_LINES) found.push(`${name} has ${lines} lines, more than ${MAX_FUNCTION_LINES}`);
  }
  if (targetsAfter(CALLED, text).includes(null)) found.push('imports what only runs can tell');
  return [...found, ...importsOf(text).flatMap((target) => importViolation(path, target) ?? [])];
}

/** The clocks, timers and draws that a file may not use. */
function worldlyUses(path: string, code: string): string[] {
  if (WORLDLY.test(path)) return [];
  const uses = [...code.matchAll(WORLD)].map(([use]) => use);
  return LIMITING.test(path) ? uses.filter((use) => use !== TIME_LIMIT) : uses;
}

/**
 * The reasons why a file does not hold rules alone.
 *
 * @param code its text without comments and strings.
 */
function impurities(code: string, text: string): string[] {
  const uses = [...code.matchAll(IMPURE)].map(([use]) => use);
  const modules = importsOf(text).filter((target) => target.startsWith('node:'));
  return [...new Set([...uses, ...modules])].map((each) => `is to be pure, but has ${each}`);
}

/** A node of a syntax tree. */
interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

const FUNCTIONS = ['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'];

/** All functions of a file, also those inside others. One without a name gets that of what it is assigned to. */
export function functionsOf({ path, text }: SourceFile): { readonly name: string; readonly lines: number }[] {
  const found: { name: string; lines: number }[] = [];
  const visit = (node: unknown, outer: string): void => {
    if (Array.isArray(node)) for (const part of node) visit(part, outer);
    if (!isSyntaxNode(node)) return;
    const name = nameOf(node) ?? outer;
    if (FUNCTIONS.includes(node.type)) found.push({ name, lines: filledLines(text.slice(node.start, node.end)) });
    for (const part of Object.values(node)) visit(part, name);
  };
  visit(parseAst(text, { lang: path.endsWith('.ts') ? 'ts' : 'js' }).body, 'a function');
  return found;
}

function isSyntaxNode(value: unknown): value is SyntaxNode {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';
}

/** The name that a declaration, an assignment or a property gives. */
function nameOf(node: SyntaxNode): string | null {
  const { id, key } = node as SyntaxNode & Readonly<Record<'id' | 'key', { readonly name?: string } | null>>;
  return id?.name ?? key?.name ?? null;
}

function filledLines(code: string): number {
  return code.split('\n').filter((line) => line.trim() !== '').length;
}

function importViolation(path: string, target: string): string | null {
  const own = partOf(path);
  const allowed = TABLE.get(own);
  if (allowed === undefined) return `${own} has no place in the import table`;
  if (target.startsWith('.')) return relativeViolation(path, target, allowed);
  if (target.startsWith('node:')) {
    if (target === 'node:process' || (target.startsWith('node:timers') && !WORLDLY.test(path)))
      return `imports ${target}`;
    return allowed.node ? null : `${own} imports ${target}`;
  }
  return allowed.packages.some((name) => target === name || target.startsWith(`${name}/`))
    ? null
    : `${own} imports the package ${target}`;
}

function relativeViolation(path: string, target: string, allowed: Allowance): string | null {
  const resolved = posix.join(posix.dirname(path), target);
  if (resolved.startsWith('..')) return `imports from outside src: ${target}`;
  const own = partOf(path);
  const other = partOf(resolved);
  if (other !== own) return allowed.parts.includes(other) ? null : `${own} imports ${other}: ${target}`;
  return own !== 'commands' || mayImportCommand(path, resolved) ? null : `a command imports another: ${target}`;
}

/** Parts that import each other in a circle, as a path such as `a > b > a`; `null` where there is none. */
export function cycleBetweenParts(files: readonly SourceFile[]): string | null {
  return cycleIn(files, partOf);
}

/** Files that import each other in a circle, by values or by types; `null` where there is none. */
export function cycleBetweenFiles(files: readonly SourceFile[]): string | null {
  return cycleIn(files, (path) => path);
}

function cycleIn(files: readonly SourceFile[], nodeOf: (path: string) => string): string | null {
  const edges = new Map<string, Set<string>>();
  for (const { path, text } of files) {
    const own = nodeOf(path);
    for (const target of importsOf(text).filter((name) => name.startsWith('.'))) {
      const other = nodeOf(posix.join(posix.dirname(path), target));
      if (other !== own) edges.set(own, (edges.get(own) ?? new Set()).add(other));
    }
  }
  const done = new Set<string>();
  for (const start of edges.keys()) {
    const cycle = walk([start], { edges, done });
    if (cycle !== null) return cycle.join(' > ');
  }
  return null;
}

interface Graph {
  readonly edges: ReadonlyMap<string, ReadonlySet<string>>;
  /** Nodes from which every path has been followed without meeting itself. */
  readonly done: Set<string>;
}

/**
 * Follows every path on from the last node.
 *
 * @returns the first path that comes back to one of its own nodes.
 */
function walk(path: readonly string[], { edges, done }: Graph): string[] | null {
  const at = path.at(-1) ?? '';
  for (const next of edges.get(at) ?? []) {
    if (path.includes(next)) return [...path.slice(path.indexOf(next)), next];
    const found = done.has(next) ? null : walk([...path, next], { edges, done });
    if (found !== null) return found;
  }
  done.add(at);
  return null;
}

/** A statement that changes the rows of a table: its name, or the beginning of one that the program computes. */
const WRITES = /\b(?:INSERT(?:\s+OR\s+\w+)?\s+INTO|REPLACE\s+INTO|UPDATE(?:\s+OR\s+\w+)?|DELETE\s+FROM)\s+(\w+|\$\{)/g;

const COMPUTED = '$' + '{';

/** The files that write a table. Where names are computed, every table counts whose name is a string in the file. */
export function writersOf(table: string, files: readonly SourceFile[]): string[] {
  return files
    .filter(({ text }) => {
      const code = blank(text, { keepStrings: true });
      const statements = [...text.matchAll(WRITES)].filter(({ index }) => code[index] !== ' ');
      const targets = statements.map(([, target]) => target);
      return targets.includes(table) || (targets.includes(COMPUTED) && code.includes(`'${table}'`));
    })
    .map(({ path }) => path);
}
