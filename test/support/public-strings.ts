/**
 * The texts of the program that people may see: the string and template literals of `src` that read like words, by
 * file. What a program, not a person, reads (statements of SQL, style sheets, names of columns) is left out, as are the
 * texts of the simulator. Holes of templates are shown as `…`, except for `influx`.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAst } from 'rolldown/parseAst';

const SOURCES = join(import.meta.dirname, '..', '..', 'src');

/** Statements and fragments for SQLite and InfluxQL, and style sheets. */
const FOR_PROGRAMS =
  /^\s*--[\s\S]*|CREATE TABLE|^\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|ALTER|PRAGMA|WITH|FROM|WHERE|AND|OR|ORDER|BEGIN|ATTACH|DETACH|VACUUM|REINDEX|SAVEPOINT|RELEASE|ROLLBACK|SHOW|JOIN|LEFT|UNION|VALUES|ON)\b[\s\S]*|^\s*[.:@#]?[\w-]+[^{}]*\{[^{}]*:[^{}]*\}[\s\S]*$/;

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
  return files.flatMap((file) =>
    textsOf(readFileSync(join(SOURCES, file), 'utf8')).map((text) => ({ file: `src/${file}`, text })),
  );
}

/** The texts of one source, each once, in order. */
export function textsOf(source: string): readonly string[] {
  const found = new Set<string>();
  visit(parseAst(source, { lang: 'ts' }), (text) => {
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
  const gaps = node.expressions as readonly { readonly name?: string }[];
  const parts = quasis.map(({ value }) => value.cooked ?? '');
  // Before a key it is the section of a destination, which is `influx` for most people.
  const filled = gaps.map(({ name }, nth) => (name === 'influx' && parts[nth + 1]?.startsWith('.') ? name : '…'));
  return parts.map((part, nth) => part + (filled[nth] ?? '')).join('');
}

/** What stands between the tags of a piece of HTML, and the whole text where there are none. */
function withoutTags(text: string): readonly string[] {
  const parts = /<\/?[a-z]/.test(text) ? text.split(/<[^>]*>?|^[^<]*>/) : [text];
  return parts.map((part) => part.replace(/\s+/g, ' ').trim()).filter((part) => !FOR_PROGRAMS.test(part));
}

function isSyntax(value: unknown): value is Syntax {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';
}

/** Members and variables that hold what a person is told to do. */
const REMEDY_NAME = /^(?:remedy|hint)$|(?:HINT|HINTS|REMEDY|REMEDIES)$/;

/** Every remedy of the sources, each once, sorted: of several words, as it stands in members and tables of that name. */
export function remedies(): readonly string[] {
  const found = new Set<string>();
  for (const file of globSync('**/*.ts', { cwd: SOURCES })) {
    findRemedies(parseAst(readFileSync(join(SOURCES, file), 'utf8'), { lang: 'ts' }), (text) => {
      if (/\p{L}{2}\s+\S/u.test(text)) found.add(text.trim());
    });
  }
  return [...found].sort();
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
  for (const child of Object.values(node)) findRemedies(child, add);
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
