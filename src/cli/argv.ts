/**
 * Parses the command line to a `Command`.
 *
 * Promises: every mistake is a `UserError` with exit code 2 that states what is wrong and what to do. It never repeats
 * values or unexpected words, because they may be keys. The arguments are the only input.
 */
import { parseArgs } from 'node:util';
import { LOG_LEVELS, type LogLevel } from '../core/events.ts';
import { UserError } from '../core/faults.ts';
import { readWhatIf, type WhatIfText } from '../core/fleet.ts';
import type { DestinationKind } from '../core/lines/dialect.ts';
import { nearest, plainText } from '../core/text.ts';
import {
  type Command,
  EXPORT_FORMATS,
  FLAGS,
  type Flag,
  INIT_TARGETS,
  type InitCommand,
  type InitTarget,
  MODES,
  type Mode,
  QUARANTINE_ACTIONS,
  VALUE_FLAGS,
} from './command.ts';

const SEE_HELP = 'tidemark --help lists all modes and flags.';

/**
 * Parses the command line.
 *
 * @param argv the words after the program's name
 * @throws UserError (exit code 2) for the first mistake
 */
export function parseArguments(argv: readonly string[]): Command {
  const given = readWords(argv);
  const modes = MODES.filter(({ flag }) => given.has(flag)).map(({ flag }) => flag);
  if (given.has('help')) return { mode: 'help', topic: helpTopic(modes.filter((mode) => mode !== 'help')) };
  const valueless = FLAGS.find(({ flag, value }) => value === 'required' && given.get(flag)?.[0] === '');
  if (valueless !== undefined) throw needsValue(valueless);
  const [mode, ...others] = modes;
  if (others.length > 0) {
    throw mistake(`${modes.map(dashed).join(' and ')} are modes, and only one can run at a time`, 'Give one of them.');
  }
  if (mode === undefined) return daemon(given);
  rejectUnknownFlags(mode, given);
  if (mode === 'version') return { mode };
  return mode === 'help' ? { mode, topic: null } : READERS[mode](given);
}

function helpTopic(modes: readonly Mode[]): Mode | null {
  return modes.length === 1 ? (modes[0] ?? null) : null;
}

function daemon(given: Given): Command {
  const stray = [...given.keys()].find((flag) => !DAEMON_FLAGS.has(flag));
  if (stray !== undefined) {
    throw usage(`${dashed(stray)} needs a mode as well`, `${listed(modesOf(stray).map(dashed), 'or')}.`);
  }
  return { mode: 'daemon', configFile: single(given, 'config'), logLevel: logLevel(given) };
}

const DAEMON_FLAGS: ReadonlySet<string> = new Set(['config', 'log-level']);

/** Reads all flags with their values, and the name of a mode without its dashes. Each must be known and given once. */
function readWords(argv: readonly string[]): Given {
  const options = Object.fromEntries(
    FLAGS.map(({ flag, value, short }) => [
      flag,
      { type: value === 'required' ? 'string' : 'boolean', ...(short === undefined ? {} : { short }) } as const,
    ]),
  );
  const { tokens } = parseArgs({ args: argv.map(withValueForHelp), options, strict: false, tokens: true });
  const given = new Map<string, readonly string[]>();
  for (const token of tokens) {
    if (token.kind === 'option-terminator') continue;
    if (token.kind === 'positional') readPositional(token.value, given);
    else readFlag(token, given);
  }
  return given;
}

const HELP_FLAGS: readonly string[] = ['--help', '-h'];

/** `--export --help` requests the help of a mode, so the missing value of the mode does not matter. */
function withValueForHelp(word: string, index: number, argv: readonly string[]): string {
  const next = argv[index + 1];
  const wantsHelp = argv.some((other) => HELP_FLAGS.includes(other) || other === 'help');
  const isLast = next === undefined || HELP_FLAGS.includes(next);
  const isMissing =
    wantsHelp && isLast && MODES.some(({ flag, value }) => value === 'required' && dashed(flag) === word);
  return isMissing ? `${word}=?` : word;
}

interface FlagToken {
  readonly name: string;
  readonly rawName: string;
  readonly value: string | undefined;
  readonly inlineValue: boolean | undefined;
}

function readFlag({ name, rawName, value, inlineValue }: FlagToken, given: Map<string, readonly string[]>): void {
  const isShort = !rawName.startsWith('--');
  const flag = FLAGS.find((known) => known.flag === name && (!isShort || rawName === `-${known.short}`));
  if (flag === undefined) throw unknownFlag(rawName);
  if (given.has(name) && !flag.repeatable && name !== 'help') throw givenTwice(name);
  given.set(name, [...(given.get(name) ?? []), flagValue(flag, value, inlineValue === true)]);
}

function flagValue({ flag, value: wanted, hint }: Flag, value: string | undefined, inline: boolean): string {
  if (wanted !== 'required') {
    if (inline && wanted === 'none') throw usage(`${dashed(flag)} takes no value`, 'write it without the equals sign.');
    return value ?? '';
  }
  const takenAsValue =
    value !== undefined && !inline && value.startsWith('-') && !(value === '-' && flag.endsWith('-file'));
  if (value === undefined || value === '' || takenAsValue) throw needsValue({ flag, hint });
  return value;
}

function needsValue({
  flag,
  hint = 'VALUE',
}: {
  readonly flag: string;
  readonly hint?: string | undefined;
}): UserError {
  return usage(`${dashed(flag)} needs a value`, `${dashed(flag)} ${hint}.`);
}

/** Reads a word without dashes: the value of a mode, such as `csv` in `export csv`, or the name of a mode. */
function readPositional(word: string, given: Map<string, readonly string[]>): void {
  const mode = awaitingValue(given);
  if (mode !== undefined && word !== '') {
    given.set(mode, [word]);
    return;
  }
  const named = MODES.find(({ flag }) => flag === word);
  if (named !== undefined) {
    if (given.has(word) && word !== 'help') throw givenTwice(word);
    given.set(word, ['']);
    return;
  }
  throw strayWord(word);
}

/** The last given mode that a value may follow; `undefined` if there is none. */
function awaitingValue(given: Given): Mode | undefined {
  const last = [...given.keys()].at(-1);
  const open = MODES.filter(({ flag, value }) => value !== 'none' && given.get(flag)?.[0] === '');
  // A required value may come later, as in `export --from 7d csv`.
  return open.find(({ flag, value }) => value === 'required' || flag === last)?.flag;
}

/** The error for a word that is neither a flag nor a mode. It does not repeat the word, which may be a key. */
function strayWord(word: string): UserError {
  if (word === 'daemon')
    return usage('The daemon has no mode', 'run tidemark without one, with --config FILE if needed.');
  const meant = nearest(word.replace(/^-+/, ''), FLAG_NAMES);
  if (meant === null)
    return mistake('One argument (not shown, as it may be a secret) is neither a mode nor a flag', SEE_HELP);
  const isMode = !word.startsWith('-') && MODES.some(({ flag }) => flag === meant);
  return isMode
    ? mistake('One argument is neither a mode nor a flag', `Did you mean ${meant}?`)
    : usage('Flags begin with two dashes', `did you mean ${dashed(meant)}?`);
}

const FLAG_NAMES = FLAGS.map(({ flag }) => flag);

function unknownFlag(rawName: string): UserError {
  const name = rawName.replace(/^-+/, '');
  const byLetter = name.length === 1 ? FLAG_NAMES.find((flag) => flag.startsWith(name.toLowerCase())) : undefined;
  const meant = byLetter ?? nearest(name, FLAG_NAMES);
  const other = meant === null ? SEE_HELP : `Did you mean ${dashed(meant)}?`;
  const remedy = /key|token|secret|password/i.test(name)
    ? 'Keys and tokens come from files or the environment, such as TIDEMARK_API_KEY_FILE, never from the command line.'
    : other;
  return mistake(`Unknown flag ${plainText(rawName, 40)}`, remedy);
}

/** Rejects flags that have no meaning in this mode. */
function rejectUnknownFlags(mode: Mode, given: Given): void {
  const allowed: readonly string[] = VALUE_FLAGS[mode];
  for (const flag of given.keys()) {
    if (flag === mode || allowed.includes(flag)) continue;
    if (mode === 'demo' && flag === 'config') {
      throw usage('--demo reads no configuration file', 'leave --config out, or set TIDEMARK_ variables for it.');
    }
    const where = listed(modesOf(flag).map(dashed), 'and');
    throw usage(`${dashed(flag)} cannot be used with ${dashed(mode)}`, `it is a flag of ${where}.`);
  }
}

function modesOf(flag: string): Mode[] {
  return MODES.map((mode) => mode.flag).filter((mode) => VALUE_FLAGS[mode].includes(flag));
}

type Readable = Exclude<Mode, 'help' | 'version'>;

/** The parser of each mode. It throws (exit code 2) for the first missing or wrong value. */
const READERS: { readonly [M in Readable]: (given: Given) => Command } = {
  once: (given) => ({ mode: 'once', ...common(given) }),
  init: (given) => ({
    mode: 'init',
    configFile: single(given, 'config'),
    workspace: workspace(given),
    apiUrl: single(given, 'api-url'),
    apiKeyFile: single(given, 'api-key-file'),
    influxUrl: single(given, 'influx-url'),
    influxTokenFile: single(given, 'influx-token-file'),
    influxOrg: single(given, 'influx-org'),
    influxBucket: single(given, 'influx-bucket'),
    influxKind: influxKind(given),
    history: single(given, 'history'),
    listen: single(given, 'listen'),
    dataDir: single(given, 'data-dir'),
    overwrite: given.has('overwrite'),
  }),
  demo: (given) => ({ mode: 'demo', apiOnly: given.has('api-only'), logLevel: logLevel(given) }),
  health: (given) => ({ mode: 'health', configFile: single(given, 'config'), json: given.has('json') }),
  plan: (given) => ({
    mode: 'plan',
    ...scope(given),
    ...rate(given),
    whatIf: (given.get('what-if') ?? []).map(assumption),
  }),
  backfill: (given) => ({
    mode: 'backfill',
    ...scope(given),
    ...rate(given),
    recheck: given.has('recheck'),
    dryRun: given.has('dry-run'),
  }),
  status: (given) => ({ mode: 'status', ...common(given), device: onlyDevice(given, 'status') }),
  check: (given) => ({
    mode: 'check',
    ...common(given),
    writeProbe: given.has('write-probe'),
    startup: given.has('startup'),
    verbose: given.has('verbose'),
    bundle: single(given, 'bundle'),
  }),
  verify: (given) => ({
    mode: 'verify',
    ...scope(given),
    destination: single(given, 'destination'),
    repair: given.has('repair'),
    sample: single(given, 'sample'),
  }),
  export: (given) => ({
    mode: 'export',
    ...scope(given),
    format: requireChoice('export', single(given, 'export') ?? '', EXPORT_FORMATS),
  }),
  replay: (given) => ({
    mode: 'replay',
    ...scope(given),
    destination: single(given, 'destination'),
    maxRate: single(given, 'max-rate'),
  }),
  quarantine: (given) => ({
    mode: 'quarantine',
    ...scope(given),
    action: requireChoice('quarantine', single(given, 'quarantine') || 'list', QUARANTINE_ACTIONS),
    destination: single(given, 'destination'),
    reason: single(given, 'reason'),
  }),
  backup: (given) => ({ mode: 'backup', ...common(given), file: single(given, 'backup') ?? '' }),
  forget: (given) => {
    const device = onlyDevice(given, 'forget');
    if (device === null) throw usage('--forget needs a device', '--forget --device ID.');
    return { mode: 'forget', ...common(given), device };
  },
};

/** The options that every mode with a configuration has. */
function common(given: Given) {
  return { configFile: single(given, 'config'), logLevel: logLevel(given), json: given.has('json') };
}

/** The options of modes that work on a time range and some devices. */
function scope(given: Given) {
  return {
    ...common(given),
    from: single(given, 'from'),
    to: single(given, 'to'),
    devices: given.get('device') ?? [],
  };
}

function rate(given: Given) {
  return { finishBy: single(given, 'finish-by'), maxShare: single(given, 'max-share') };
}

/** The device of a mode that accepts one device only. */
function onlyDevice(given: Given, mode: Mode): string | null {
  const [device, ...others] = given.get('device') ?? [];
  if (others.length > 0) throw mistake(`${dashed(mode)} takes one device at a time`, 'Give --device once.');
  return device ?? null;
}

const INFLUX_FLAGS = ['influx-url', 'influx-token-file', 'influx-org', 'influx-bucket', 'influx-kind'] as const;

/** All kinds, derived from their type: the code that translates lines is not loaded here. */
const INFLUX_KINDS = Object.keys({
  influxdb: true,
  victoriametrics: true,
} satisfies Record<DestinationKind, true>) as DestinationKind[];

/** Refuses flags about a database without an address. On Kubernetes they can be about that of the Kustomize base. */
function requireDatabase(given: Given): void {
  const url = single(given, 'influx-url');
  if (url !== null && url !== 'none') return;
  const isOfBase = url === null && single(given, 'for') === 'kubernetes';
  const about = isOfBase ? (['influx-kind'] as const) : INFLUX_FLAGS.filter((flag) => flag !== 'influx-url');
  const first = about.find((flag) => given.has(flag));
  if (first !== undefined) throw usage(`${dashed(first)} needs a database`, 'give --influx-url URL.');
}

/** The kind of database in the flags of `init`. */
function influxKind(given: Given): InitCommand['influxKind'] {
  requireDatabase(given);
  const text = single(given, 'influx-kind');
  if (text === null) return null;
  const kind = requireChoice('influx-kind', text, INFLUX_KINDS);
  if (kind === 'victoriametrics' && given.has('influx-bucket')) {
    throw mistake('--influx-bucket cannot be used with --influx-kind victoriametrics, which has no buckets.', null);
  }
  return kind;
}

/**
 * Why `--listen` cannot be used with a target: its files set the port of the page, and `remedy` names the place.
 * `null`: the flag can be used.
 */
const PAGE_PORTS: Readonly<Record<InitTarget, { readonly runtime: string; readonly remedy: string } | null>> = {
  compose: { runtime: 'Compose', remedy: 'change the port in the file compose.workspace-NAME.yaml that init writes.' },
  systemd: null,
  kubernetes: { runtime: 'Kubernetes', remedy: 'the page has the port of its service.' },
};

/** The workspace of `init`, and where it will run. */
function workspace(given: Given): InitCommand['workspace'] {
  const name = single(given, 'workspace');
  const target = single(given, 'for');
  if (name === null) {
    if (target !== null) throw usage('--for needs a workspace', 'init --workspace NAME --for compose.');
    return null;
  }
  // Like the name of a service in Kubernetes.
  if (!/^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$/.test(name)) {
    throw mistake(
      '--workspace takes a name of at most 20 characters: a-z, 0-9 and "-", beginning with a letter, "-" not at its end.',
      null,
    );
  }
  if (given.has('data-dir'))
    throw mistake('--data-dir cannot be used with --workspace: each workspace has its own directory.', null);
  const where = requireChoice('for', target ?? 'compose', INIT_TARGETS);
  const fixed = given.has('listen') ? PAGE_PORTS[where] : null;
  if (fixed !== null) throw usage(`--listen cannot be used with --workspace for ${fixed.runtime}`, fixed.remedy);
  const ignored = INFLUX_FLAGS.find((flag) => given.has(flag));
  if (where === 'compose' && ignored !== undefined)
    throw mistake(
      `--${ignored} cannot be used with --workspace for Compose: it writes to the database of compose.yaml.`,
      null,
    );
  return { name, target: where };
}

function assumption(text: string): WhatIfText {
  const read = readWhatIf(text);
  if ('mistake' in read) throw mistake(`--what-if ${read.mistake.what}`, read.mistake.remedy);
  return read;
}

/** The values by flag, in order: several for repeated flags, an empty text for a flag without a value. */
type Given = ReadonlyMap<string, readonly string[]>;

/** The value of a flag that may be given once. */
function single(given: Given, flag: string): string | null {
  return given.get(flag)?.[0] ?? null;
}

/**
 * One of several words.
 *
 * @throws UserError (exit code 2) for any other word, which is not repeated because it may be a key
 */
function requireChoice<T extends string>(flag: string, text: string, choices: readonly T[]): T {
  const found = choices.find((known) => known === text);
  if (found !== undefined) return found;
  const meant = nearest(text, choices);
  const takes = `${dashed(flag)} takes ${listed(choices, 'or')}`;
  throw meant === null ? mistake(`${takes}.`, null) : mistake(takes, `Did you mean ${meant}?`);
}

function logLevel(given: Given): LogLevel | null {
  const text = single(given, 'log-level');
  return text === null ? null : requireChoice('log-level', text, LOG_LEVELS);
}

/** The error for a mistake on the command line. */
function mistake(what: string, remedy: string | null): UserError {
  return new UserError(what, remedy, 2);
}

/** A mistake whose remedy goes on in the same sentence, such as the right use. */
function usage(what: string, remedy: string): UserError {
  return new UserError(what, remedy, 2, { joint: ':' });
}

function givenTwice(flag: string): UserError {
  return mistake(`${dashed(flag)} was given twice`, 'Give it once.');
}

function dashed(flag: string): string {
  return `--${flag}`;
}

function listed(choices: readonly string[], last: 'and' | 'or'): string {
  if (choices.length <= 1) return choices.join('');
  return `${choices.slice(0, -1).join(', ')} ${last} ${choices.at(-1)}`;
}
