/**
 * The texts of the program that people may see: the string and template literals of `src` that read like words, by
 * file. What a program, not a person, reads (statements of SQL, style sheets, names of columns) is left out, as are the
 * texts of the simulator. Holes of templates are shown as `…`, except for names of settings.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAst } from 'rolldown/parseAst';

const SOURCES = join(import.meta.dirname, '..', '..', 'src');

/** Statements and fragments for SQLite and InfluxQL, and style sheets. */
const FOR_PROGRAMS =
  /^\s*--\s[\s\S]*|CREATE TABLE|^\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|ALTER|PRAGMA|WITH|FROM|WHERE|AND|OR|ORDER|BEGIN|ATTACH|DETACH|VACUUM|REINDEX|SAVEPOINT|RELEASE|ROLLBACK|SHOW|JOIN|LEFT|UNION|VALUES|ON)\b[\s\S]*|^\s*[.:@#]?[\w-]+[^{}]*\{[^{}]*:[^{}]*\}[\s\S]*$/;

/** A word, something between and more; or a heading of one word. */
const READS_LIKE_WORDS = /\p{L}{2}[^\n]*\s+\S*[\p{L}…]|…[:;,.]?\s+\p{L}{2}|^\p{Lu}\p{Ll}{2,}[.:]?$/u;

interface Syntax {
  readonly type: string;
  readonly [member: string]: unknown;
}

export interface PublicString {
  readonly file: string;
  readonly text: string;
}

/** Every text of `src`, in the order of files and lines, each once per file. */
export function publicStrings(): readonly PublicString[] {
  const files = globSync('**/*.{ts,tsx}', { cwd: SOURCES })
    .filter((file) => !file.startsWith('sim/') && file !== 'page/style.ts')
    .sort();
  return files.flatMap((file) => textsIn(treeOf(file)).map((text) => ({ file: `src/${file}`, text })));
}

const trees = new Map<string, unknown>();

/** The syntax of a file of `src`, read once. */
function treeOf(file: string): unknown {
  const tree = trees.get(file) ?? parseAst(readFileSync(join(SOURCES, file), 'utf8'), { lang: 'ts' });
  trees.set(file, tree);
  return tree;
}

/** The texts of one source, each once, in order. */
export function textsOf(source: string): readonly string[] {
  return textsIn(parseAst(source, { lang: 'ts' }));
}

function textsIn(tree: unknown): readonly string[] {
  const found = new Set<string>();
  visit(tree, (text) => {
    for (const part of withoutTags(text)) if (READS_LIKE_WORDS.test(part)) found.add(part);
  });
  return [...found];
}

function visit(node: unknown, add: (text: string) => void): void {
  if (Array.isArray(node)) {
    for (const each of node) visit(each, add);
    return;
  }
  if (
    !isSyntax(node) ||
    (/^(?:TS(?:TypeAliasDeclaration|InterfaceDeclaration|TypeAnnotation|LiteralType)|Import|Export(?:All|Named)D)/.test(
      node.type,
    ) &&
      node.declaration === undefined)
  )
    return;
  const text = textOf(node);
  if (text !== null) add(text);
  for (const [member, child] of Object.entries(node)) {
    if (member === 'key' || member === 'typeAnnotation' || (text !== null && member !== 'expressions')) continue;
    visit(child, add);
  }
}

/** The text of a literal, a template, or a sum that begins with one; `null` for anything else. */
function textOf(node: Syntax): string | null {
  if (node.type === 'Literal') return typeof node.value === 'string' ? node.value : null;
  if (node.type !== 'TemplateLiteral') return null;
  const quasis = node.quasis as readonly { readonly value: { readonly cooked: string | null } }[];
  const gaps = node.expressions as readonly Gap[];
  const parts = quasis.map(({ value }) => value.cooked ?? '');
  const filled = gaps.map((gap) => settingOf(gap) ?? '…');
  return parts.map((part, nth) => part + (filled[nth] ?? '')).join('');
}

interface Gap {
  readonly object?: { readonly name?: string };
  readonly property?: { readonly name?: string };
}

/** The name of a setting, such as `influx.url`: the section of a destination is `influx` for most people. */
function settingOf({ object, property }: Gap): string | null {
  return object?.name === 'influx' || object?.name === 'api' ? `${object.name}.${property?.name}` : null;
}

/** The text between the tags of a piece of HTML, or all of the text where there are none. */
function withoutTags(text: string): readonly string[] {
  const parts = /<\/?[a-z]/.test(text) ? text.split(/<[^>]*>?|^[^<]*>/) : [text];
  return parts.map((part) => part.replace(/\s+/g, ' ').trim()).filter((part) => !FOR_PROGRAMS.test(part));
}

function isSyntax(value: unknown): value is Syntax {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';
}

/** Members and variables with remedies. */
const REMEDY_NAME = /^(?:remedy|hint)$|(?:HINT|HINTS|REMEDY|REMEDIES)$/;

/** The classes and functions whose second argument is the remedy of an error. */
const ERROR_NAME = /^(?:UserError|StateFullError|mistake|usage)$/;

/** Verbs in the program's advice. A verb that it begins to use belongs here. */
const VERBS =
  'add|allow|ask|change|check|choose|close (?:it|that|the)|configure|copy|correct|create|delete|disable|drop|edit|enable|enlarge|enter|find|fix|free space|give(?! up)|grant|increase|install|keep|leave|let|lower|make|mount|move|name a|open (?:it|that|the)|put|raise|read its?|reduce|remove|rename|renew|repeat|replace|report it|request /|restart(?! later)|restore|retry|run|see(?! also)|send|set|shorten|start|stop(?! requested)|switch|take|try|turn|type|unset|update|upgrade|use|wait for|write';

/** A sentence, or what follows a colon, a semicolon or an "or", that begins with one; a condition may stand before it. */
const IMPERATIVE = new RegExp(
  `(?:^|[.;:?] |, or |until you |… )((?:(?:if|when|to|for)\\b[^.;:]*?, )?(?:please )?(?:${VERBS})\\b.*?)(?=\\. |$)`,
  'giu',
);

/** A sentence, or a part of one, about what something must be or what is needed: the reader has to provide it. */
const OBLIGATION = /(?:^|[;:] |\. )((?:(?![;:] |\. ).)*?\b(?:must be|(?:is|are) (?:required|needed))\b.*?)(?=\. |$)/giu;

/** Files whose texts describe flags, keys and metrics, and advise nothing about a problem. */
const DESCRIPTIONS = /^src\/(?:cli\/topics|cli\/flags|config\/schema|observe\/metrics-table)\.ts$/;

/** The sentences of a text that tell a person what to do, in one form wherever they stand. */
export function imperatives(text: string): readonly string[] {
  return [...text.matchAll(IMPERATIVE)].map(([, sentence = '']) => oneForm(sentence));
}

/** The sentences of a text about what is needed, in one form wherever they stand. */
export function obligations(text: string): readonly string[] {
  return [...text.matchAll(OBLIGATION)].map(([, sentence = '']) => oneForm(sentence));
}

/** Every advice in the texts of the files around the program, each once, sorted. */
export function remediesAround(strings: readonly PublicString[]): readonly string[] {
  return [...new Set(strings.flatMap(({ text }) => [...imperatives(text), ...obligations(text)]))].sort();
}

/** Every advice in the last column of the tables of a page, each once, sorted. */
export function remediesOfPage(page: string): readonly string[] {
  const cells = page.split('\n').flatMap((line) => /^\| .* \| (.*) \|$/.exec(line)?.[1] ?? []);
  return [...new Set(cells.flatMap(imperatives))].sort();
}

function oneForm(sentence: string): string {
  return sentence.charAt(0).toUpperCase() + sentence.slice(1).replace(/[.:]$/, '');
}

/**
 * Every remedy of the sources, each once, sorted: the texts of several words in members, tables and errors, as they stand
 * there, and the sentences of all other texts that tell a person what to do.
 */
export function remedies(): readonly string[] {
  const named = namedRemedies();
  const listed = new Set(named.map(oneForm));
  const others = publicStrings()
    .filter(({ file, text }) => !DESCRIPTIONS.test(file) && !named.includes(text))
    .flatMap(({ text }) => [...imperatives(text), ...obligations(text)])
    .filter((sentence) => !listed.has(sentence));
  return [...new Set([...named, ...others])].sort();
}

function namedRemedies(): readonly string[] {
  const found = new Set<string>();
  for (const file of globSync('**/*.ts', { cwd: SOURCES })) {
    findRemedies(treeOf(file), (text) => {
      if (/\p{L}{2}\s+\S/u.test(text)) found.add(text.trim());
    });
  }
  return [...found];
}

function findRemedies(node: unknown, add: (text: string) => void): void {
  if (Array.isArray(node)) {
    for (const each of node) findRemedies(each, add);
    return;
  }
  if (!isSyntax(node)) return;
  const { key, id } = node as { readonly key?: { readonly name?: string }; readonly id?: { readonly name?: string } };
  if (node.type === 'Property' && REMEDY_NAME.test(key?.name ?? '')) addTexts(node.value, add);
  if (node.type === 'VariableDeclarator' && REMEDY_NAME.test(id?.name ?? '')) addTexts(node.init, add);
  if (isError(node)) addTexts((node.arguments as unknown[])[1], add);
  for (const child of Object.values(node)) findRemedies(child, add);
}

function isError({ type, callee }: Syntax): boolean {
  if ((type !== 'NewExpression' && type !== 'CallExpression') || !isSyntax(callee)) return false;
  return callee.type === 'Super' || ERROR_NAME.test(String(callee.name));
}

/** Adds the texts that an expression can become: both sides of a condition, the values of a table, what a function returns. */
function addTexts(node: unknown, add: (text: string) => void): void {
  if (!isSyntax(node)) return;
  const text = textOf(node);
  if (text !== null) add(text);
  const parts: Readonly<Record<string, readonly unknown[]>> = {
    ConditionalExpression: [node.consequent, node.alternate],
    ArrowFunctionExpression: [node.body],
    ObjectExpression:
      node.type === 'ObjectExpression' ? (node.properties as { value: unknown }[]).map(({ value }) => value) : [],
    ArrayExpression: node.type === 'ArrayExpression' ? (node.elements as unknown[]) : [],
    CallExpression: node.type === 'CallExpression' ? (node.arguments as unknown[]) : [],
  };
  for (const part of parts[node.type] ?? []) addTexts(part, add);
}
