/**
 * Reads the sources of the configuration, YAML or the environment, into the same flat list of given values by path. It
 * checks only whether a path exists and does not interpret the values.
 *
 * Promises: all mistakes are collected and none is thrown. A mistake names a place and never a value. A YAML scalar is
 * read as its text (no number, date or boolean is guessed), so that both sources mean the same.
 */
import { createRequire } from 'node:module';
import type * as Yaml from 'yaml';
import type { LineCounter, Pair, YAMLError } from 'yaml';
import { codeOf, readFailure } from '../core/faults.ts';
import { isRecord } from '../core/json.ts';
import { isGuessable, SECRET_MARK } from '../core/secret.ts';
import { nearest, plainText } from '../core/text.ts';

/** A value as it was written, and its place. */
export interface Given {
  readonly text: string;
  /** Set if it was given as a list. */
  readonly items?: readonly string[];
  readonly source: 'file' | 'environment';
  readonly location: Location;
}

/** Which key or variable it is, and where it is given. */
export interface Location {
  /** `api.url`; `null` for a mistake of the complete file. */
  readonly key: string | null;
  /** `config/tidemark.yaml, line 3`, `TIDEMARK_API_URL`; `null` if the key is enough. */
  readonly at: string | null;
}

/** A mistake in the configuration. None of its texts repeats a value. */
export interface Mistake extends Location {
  /** A phrase: what is wrong, or what was expected. */
  readonly what: string;
  /** The remedy as a phrase; absent if `what` states what was expected. */
  readonly remedy?: string | undefined;
}

/** The place of a key that is not given. */
export function ofKey(key: string): Location {
  return { key, at: null };
}

/** A location in words: `api.url (config/tidemark.yaml, line 3)`. */
export function locationText({ key, at }: Location): string {
  return key === null ? (at ?? '') : at === null ? key : `${key} (${at})`;
}

/** A mistake in one line: `place: what; remedy`. */
export function mistakeText(mistake: Mistake): string {
  const { what, remedy } = mistake;
  const location = locationText(mistake);
  return `${location === '' ? '' : `${location}: `}${what}${remedy === undefined ? '' : `; ${remedy}`}`;
}

/** The values of one source by path (`api.key`, `api.key_file`), and its mistakes. */
export interface SourceReading {
  readonly given: ReadonlyMap<string, Given>;
  readonly mistakes: readonly Mistake[];
  /** Whether the source was read to its end. Only then does an absent key count as missing. */
  readonly whole: boolean;
}

/** The names that a source may contain. */
export interface KnownNames {
  /** Full paths, including those of secret files. */
  readonly paths: ReadonlySet<string>;
  /** The paths that accept a list as well as a text. */
  readonly lists: ReadonlySet<string>;
  /** Sections whose keys are names that the user chooses, and the section whose keys each of their entries has. */
  readonly families: ReadonlyMap<string, string>;
  /** Paths of earlier versions with their current names. */
  readonly renamed: ReadonlyMap<string, string>;
}

/** The default file, unless `--config` names one. */
export const DEFAULT_FILE = 'config/tidemark.yaml';

const require = createRequire(import.meta.url);

/**
 * Loads the YAML parser with the first file. It is a third of the code of a start, and containers are configured by the
 * environment.
 */
export function yaml(): typeof Yaml {
  return require('yaml');
}

/** Messages for YAML's errors. The parser's own may repeat the wrong text. */
const YAML_WORDS: Readonly<Partial<Record<YAMLError['code'], string>>> = {
  BAD_INDENT: 'the indentation does not match the lines above',
  BAD_SCALAR_START: 'a value begins with a character that YAML reserves; put the value in quotes',
  BLOCK_AS_IMPLICIT_KEY: 'two keys in one line, or a value with a colon and a space that needs quotes',
  DUPLICATE_KEY: 'this key appears twice',
  MISSING_CHAR: 'a quote, a bracket or a colon is missing',
  MULTIPLE_DOCS: 'a second YAML document begins here (---); only one is allowed',
  TAB_AS_INDENT: 'a tab is used for indentation; use spaces',
  TAG_RESOLVE_FAILED: 'tags (!) are not supported',
};

/** The state of reading a document. */
interface ReadState {
  readonly file: string;
  readonly known: KnownNames;
  readonly lines: LineCounter;
  readonly given: Map<string, Given>;
  readonly mistakes: Mistake[];
}

/** Where the configuration file is, and how to read it. */
interface FileInput {
  /** The file that `--config` names; `null` for the default file, which may be missing. */
  readonly file: string | null;
  /** Reads a file as UTF-8. Throws as `node:fs` does. */
  readonly readFile: (path: string) => string;
}

/** The values of a file that does not exist. */
export const NO_FILE: SourceReading = { given: new Map(), mistakes: [], whole: true };

/** Reads the configuration file. A missing default file gives nothing. */
export function readConfigFile({ file, readFile }: FileInput, known: KnownNames): SourceReading {
  const path = file ?? DEFAULT_FILE;
  let text: string;
  try {
    text = readFile(path);
  } catch (error) {
    const missing = ['ENOENT', 'ENOTDIR'].includes(codeOf(error));
    if (file === null && missing) return NO_FILE;
    const failure = readFailure(error);
    const mistake = {
      key: file === null ? null : '--config',
      at: null,
      what: `${failure.what} ${path}`,
      remedy: missing ? 'create it, or name another with --config' : failure.remedy,
    };
    return { given: new Map(), mistakes: [mistake], whole: false };
  }
  return readYaml({ path, text }, known);
}

/** The mistake for a key whose file could not be read. */
export function unreadable(error: unknown, path: string): Pick<Mistake, 'what' | 'remedy'> {
  const { what, remedy } = readFailure(error);
  return { what: `${what}${shownPath(path)}`, remedy };
}

/**
 * Returns a path in a form that may be shown. It may be the secret itself, given instead of a path: secrets may contain
 * slashes, but do not begin like a path.
 */
export function shownPath(path: string): string {
  if (/^\.{0,2}\//.test(path) || path.length <= 12) return ` ${plainText(path, 100)}`;
  return ' (its name is not shown, as it looks like the secret itself; expected a path)';
}

/** Reads a YAML file: every value stays text, and mistakes have their lines. */
function readYaml({ path, text }: { path: string; text: string }, known: KnownNames): SourceReading {
  const lines = new (yaml().LineCounter)();
  const document = yaml().parseDocument(text.replace(/^\uFEFF/, ''), {
    prettyErrors: false,
    schema: 'failsafe',
    lineCounter: lines,
  });
  const broken = yamlMistakes(path, [...document.errors, ...document.warnings], lines);
  if (broken.length > 0) return { given: new Map(), mistakes: broken, whole: false };
  const state = { file: path, known, lines, given: new Map<string, Given>(), mistakes: [], whole: true };
  if (!visitSection(state, document.contents, '')) {
    const what = 'expected sections with keys, such as "api:" with an indented "url:" below';
    return { given: new Map(), mistakes: [{ key: null, at: path, what }], whole: false };
  }
  return state;
}

/**
 * The mistakes for YAML's errors, one for each line. Where a line is indented further than the key above it, which has
 * a value, the parser takes both for one long key and reports it by its first line. `MULTILINE_IMPLICIT_KEY` also has
 * its last line.
 */
function yamlMistakes(path: string, errors: readonly YAMLError[], lines: LineCounter): Mistake[] {
  const lineAt = (offset: number): number => lines.linePos(offset).line;
  const joined = errors.filter(({ code }) => code === 'MULTILINE_IMPLICIT_KEY');
  const ends = new Map(joined.map(({ pos: [start, end] }) => [start, lineAt(end)]));
  const reported = new Set<number>();
  return errors.flatMap(({ code, pos: [start] }) => {
    const first = lineAt(start);
    const last = ends.get(start) ?? first;
    const isKnown = reported.has(first);
    reported.add(first).add(last);
    if (isKnown) return [];
    const mistake = { key: null, at: `${path}, line ${first}`, what: YAML_WORDS[code] ?? 'this is not valid YAML' };
    if (last === first) return [mistake];
    if (code !== 'BLOCK_AS_IMPLICIT_KEY')
      return [{ ...mistake, what: `a colon is missing, or line ${last} is indented too far` }];
    const what = `this line is indented further than line ${first}, which already has a value`;
    return [{ key: null, at: `${path}, line ${last}`, what, remedy: 'give both lines the same indentation' }];
  });
}

/**
 * Reads a section.
 *
 * @returns `false` if the node is not a section
 */
function visitSection(state: ReadState, node: unknown, prefix: string): boolean {
  if (isNothing(node)) return true;
  if (!yaml().isMap(node)) return false;
  for (const pair of node.items) visitPair(state, pair, prefix);
  return true;
}

function visitPair(state: ReadState, { key, value }: Pair, prefix: string): void {
  const { known, mistakes } = state;
  const at = `${state.file}, line ${lineNumber(key, state.lines)}`;
  const name = scalarText(key) ?? '';
  const path = `${prefix}${name}`;
  const location = { key: path, at };
  const family = known.families.get(path);
  if (family !== undefined) {
    if (!visitFamily(state, value, { path, family }))
      mistakes.push({ ...location, what: 'expected names, each with a section below' });
  } else if (known.paths.has(path) && (prefix !== '' || !name.includes('.'))) {
    takeValue(state, value, { path, location });
  } else if (prefix === '' && sectionsOf(known.paths).has(path)) {
    if (visitSection(state, value, `${path}.`)) return;
    mistakes.push({ ...location, what: NO_SECTION });
  } else mistakes.push({ key: null, at, ...unknownKey(name, prefix, known) });
}

const NO_SECTION = 'expected a section, its keys indented on the lines below';

/**
 * Reads sections with names that the user chooses: it records `destinations.second` as given, and the keys in it.
 *
 * @returns `false` if the node is not a section
 */
function visitFamily(state: ReadState, node: unknown, { path, family }: { path: string; family: string }): boolean {
  if (isNothing(node)) return true;
  if (!yaml().isMap(node)) return false;
  for (const { key, value } of node.items) {
    const at = `${state.file}, line ${lineNumber(key, state.lines)}`;
    const name = scalarText(key) ?? '';
    if (!/^[A-Za-z][\w-]{0,39}$/.test(name)) {
      const what = 'expected a name of letters, digits, - and _, beginning with a letter';
      state.mistakes.push({ key: path, at, what });
      continue;
    }
    const own = `${path}.${name}`;
    const location = { key: own, at };
    state.given.set(own, { text: '', source: 'file', location });
    const below = { ...state, known: knownBelow(state.known, family, own) };
    if (!visitSection(below, value, `${own}.`)) state.mistakes.push({ ...location, what: NO_SECTION });
  }
  return true;
}

/** The sections under `destinations`, such as `destinations.second`, in the order of the file. */
export function destinationSections(given: ReadonlyMap<string, Given>): string[] {
  return [...given.keys()].filter((path) => /^destinations\.[^.]+$/.test(path));
}

/** The names in a section that has the keys of another one. */
function knownBelow({ paths, lists }: KnownNames, like: string, own: string): KnownNames {
  const below = (names: ReadonlySet<string>): ReadonlySet<string> =>
    new Set([...names].filter((path) => path.startsWith(`${like}.`)).map((path) => own + path.slice(like.length)));
  return { paths: below(paths), lists: below(lists), families: new Map(), renamed: new Map() };
}

/** Reads the value of a key: a text, or a list if the key accepts one. */
function takeValue(
  { known, given, mistakes }: ReadState,
  value: unknown,
  { path, location }: { readonly path: string; readonly location: Location },
): void {
  const takesList = known.lists.has(path);
  const items = takesList ? itemTexts(value) : null;
  const text = items === null ? scalarText(value) : items.join();
  if (items !== null && text !== null) given.set(path, { text, items, source: 'file', location });
  else if (text !== null) given.set(path, { text, source: 'file', location });
  else
    mistakes.push({
      ...location,
      what: `expected ${takesList ? 'one value or a list of values' : 'a single value, not a list or a section'}`,
    });
}

/** The text of a scalar; `null` if it has none or is something else. */
function scalarText(node: unknown): string | null {
  if (isNothing(node)) return '';
  return yaml().isScalar(node) && typeof node.value === 'string' ? node.value : null;
}

/** The texts of a list; `null` if it is not a list of texts. */
function itemTexts(node: unknown): string[] | null {
  if (!yaml().isSeq(node)) return null;
  const items = node.items.map(scalarText);
  return items.every((item) => item !== null) ? items : null;
}

/** Whether there is no value after the colon, or YAML's word for none. */
function isNothing(node: unknown): boolean {
  if (node === null) return true;
  return yaml().isScalar(node) && node.type === 'PLAIN' && ['', '~', 'null'].includes(String(node.value));
}

function lineNumber(node: unknown, lines: LineCounter): number {
  const range = yaml().isScalar(node) || yaml().isMap(node) || yaml().isAlias(node) ? node.range : undefined;
  return lines.linePos(range?.[0] ?? 0).line;
}

function sectionsOf(paths: Iterable<string>): ReadonlySet<string> {
  return new Set([...paths].filter((path) => path.includes('.')).map((path) => path.replace(/\..*$/, '')));
}

/** The mistake for an unknown key. It shows the name only if that looks like a key. */
function unknownKey(name: string, prefix: string, known: KnownNames): Pick<Mistake, 'what' | 'remedy'> {
  const path = `${prefix}${name}`;
  if (known.paths.has(path)) {
    const [section, key] = name.split('.');
    return { what: `write ${path} as a section: "${section}:" and on the next line, indented, "${key}:"` };
  }
  const renamed = known.renamed.get(path);
  if (renamed !== undefined) return { what: `${path} is now ${renamed}`, remedy: 'rename the key' };
  const shown = /^[A-Za-z][\w.-]{0,39}$/.test(name) ? ` ${path}` : '';
  const names = [...known.paths, ...known.families.keys(), ...(prefix === '' ? sectionsOf(known.paths) : [])];
  return { what: `unknown key${shown}`, ...suggestion(path, names) };
}

/** Other names for the settings of a database, such as those of InfluxDB 1. */
const OTHER_NAMES: ReadonlyMap<string, string> = new Map([
  ['database', 'bucket'],
  ['user', 'token'],
  ['username', 'token'],
  ['password', 'token'],
]);

/**
 * The remedy for an unknown path: the known one that was probably meant. That is the same key in another section, or a
 * similar path. That the section is the same makes no key similar.
 */
function suggestion(path: string, known: readonly string[], nameOf = (meant: string) => meant): { remedy?: string } {
  const last = lastPart(path).toLowerCase();
  const own = OTHER_NAMES.get(last) ?? last;
  const usual = `${path.slice(0, path.length - last.length)}${own}`;
  const meant =
    known.find((each) => each === usual) ??
    known.find((each) => lastPart(each) === last) ??
    nearest(path, known, Math.min(Math.floor(last.length / 3) + 1, Math.floor(path.length / 2)));
  if (meant === null) return {};
  const form = own === 'token' && meant === usual && last !== own ? ', as user:password' : '';
  return { remedy: `did you mean ${nameOf(meant)}${form}?` };
}

function lastPart(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1);
}

/** Variables that Kubernetes sets for a service with this name. */
const KUBERNETES = /^TIDEMARK_(SERVICE_|PORT)/;

/**
 * Reads the environment. An empty variable counts as unset.
 *
 * @param variables every known variable and its path
 * @param renamedVariables variables of earlier versions with their current names
 */
export function readEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
  variables: ReadonlyMap<string, string>,
  renamedVariables: ReadonlyMap<string, string> = new Map(),
): SourceReading {
  const given = new Map<string, Given>();
  const mistakes: Mistake[] = [];
  for (const [name, text] of Object.entries(environment)) {
    if (!name.startsWith('TIDEMARK_') || text === undefined || text === '' || KUBERNETES.test(name)) continue;
    const path = variables.get(name);
    if (path !== undefined) {
      given.set(path, { text, source: 'environment', location: { key: path, at: name } });
      continue;
    }
    const renamed = renamedVariables.get(name);
    if (renamed !== undefined) {
      mistakes.push({ key: name, at: null, what: `is now ${renamed}`, remedy: 'rename the variable' });
      continue;
    }
    mistakes.push({
      key: plainText(name, 60),
      at: null,
      what: 'unknown variable',
      ...suggestedVariable(name, variables),
    });
  }
  return { given, mistakes, whole: true };
}

function suggestedVariable(name: string, variables: ReadonlyMap<string, string>): { remedy?: string } {
  const names = new Map([...variables].map(([variable, path]) => [path, variable]));
  const text = name.slice('TIDEMARK_'.length).toLowerCase();
  const section = [...sectionsOf(names.keys())].find((each) => text.startsWith(`${each}_`));
  const path = section === undefined ? text : `${section}.${text.slice(section.length + 1)}`;
  return suggestion(path, [...names.keys()], (meant) => names.get(meant) ?? meant);
}

/** All mistakes, without the texts that were given for a secret. */
export function mistakesOf({
  mistakes,
  hidden,
}: {
  readonly mistakes: readonly Mistake[];
  /** All texts that were given for a secret. */
  readonly hidden: readonly string[];
}): readonly Mistake[] {
  const texts = hidden.flatMap((text) => [text, text.trim()]).filter((text) => text.length >= 4);
  const without = (hide: readonly string[]) => (text: string) =>
    hide.reduce((rest, each) => rest.replaceAll(each, SECRET_MARK), text);
  // A key, a place and a remedy contain Tidemark's words; only `what` may repeat a value.
  const named = without(texts.filter((text) => !isGuessable(text)));
  return mistakes.map(({ key, at, what, remedy, ...rest }) => ({
    ...rest,
    key: key === null ? null : named(key),
    at: at === null ? null : named(at),
    what: without(texts)(what),
    ...(remedy === undefined ? {} : { remedy: named(remedy) }),
  }));
}

/** The names of the settings in a YAML text, without their values; an item of a list by its text before `=`. */
export function settingsIn(text: string): Set<string> {
  const document = yaml().parseDocument(text, { schema: 'failsafe' });
  return new Set(document.errors.length > 0 ? [] : namesBelow(document.toJS(), ''));
}

/** The section with all its keys as YAML, without comments; empty if the text does not have it. */
export function sectionIn(text: string, name: string): string {
  const document = yaml().parseDocument(text, { schema: 'failsafe' });
  const section: unknown = document.errors.length > 0 ? null : document.toJS()?.[name];
  return isRecord(section) ? yaml().stringify({ [name]: section }, { lineWidth: 0 }) : '';
}

function namesBelow(value: unknown, path: string): string[] {
  if (Array.isArray(value)) {
    return value.flatMap((item) =>
      typeof item === 'string' ? `${path} ${plainText(item.replace(/=[\s\S]*/, ''), 60)}` : namesBelow(item, path),
    );
  }
  if (!isRecord(value)) return path === '' ? [] : [path];
  return Object.entries(value).flatMap(([key, each]) => namesBelow(each, path === '' ? key : `${path}.${key}`));
}
