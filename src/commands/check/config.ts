/**
 * The configuration checks of `--check`: reads as much of the configuration as possible, reports its mistakes and
 * careless settings, and describes it such that it may be shown to others.
 */

import { configuredDatabases } from '../../app/settings.ts';
import type { ProcessPorts, TerminalOutput } from '../../app/terminal.ts';
import type { CheckCommand } from '../../cli/command.ts';
import { type Config, ConfigError, type ConfigInput, type Loaded, type StateConfig } from '../../config/config.ts';
import { loadConfig, loadStateConfig, proxiesOf } from '../../config/load.ts';
import { fileForm, type Key, keyEntries, knownNames, knownVariables } from '../../config/schema.ts';
import {
  DEFAULT_FILE,
  destinationSections,
  type Given,
  type Mistake,
  readConfigFile,
  readEnvironment,
} from '../../config/sources.ts';
import { InvalidText, isLoopback } from '../../config/values.ts';
import { capitalized, shellText } from '../../core/text.ts';
import { isEnclosed, modeOf } from '../../store/views/data-dir.ts';
import { configKey } from './destination.ts';
import { type CheckLine, type CheckNotes, createNotes } from './report.ts';

/** The configuration as far as it can be read. */
interface ReadForCheck {
  /** The configuration with the API; `null` if it cannot be used. */
  readonly config: Config | null;
  /** The settings for the other checks; `null` if these cannot be used either. */
  readonly state: Config | StateConfig | null;
  readonly mistakes: readonly Mistake[];
  /** The configuration in a form that may be shown to others, valid or not. */
  readonly described: DescribedConfig;
}

/** Reads the configuration. An invalid one is no error here. */
export function readForCheck(input: ConfigInput): Loaded<Pick<Config, 'log'>> & { readonly read: ReadForCheck } {
  // Before the secrets are removed from the environment, because a secret that is not recognized could be shown.
  const described = describeConfig(input);
  const whole = tryTo(() => loadConfig(input));
  if (!(whole instanceof ConfigError)) {
    return { ...whole, read: { config: whole.config, state: whole.config, mistakes: [], described } };
  }
  const { mistakes } = whole;
  const part = tryTo(() => loadStateConfig(input));
  if (!(part instanceof ConfigError))
    return { ...part, read: { config: null, state: part.config, mistakes, described } };
  const log = { level: 'info', format: 'auto' } as const;
  return {
    config: { log },
    secrets: [],
    secretVariables: [],
    warnings: [],
    read: { config: null, state: null, mistakes, described },
  };
}

function tryTo<T>(work: () => T): T | ConfigError {
  try {
    return work();
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
}

/** The input of one run of `--check`. */
export interface CheckParts {
  readonly command: CheckCommand;
  readonly read: ReadForCheck;
  readonly secretVariables: readonly string[];
  readonly warnings: readonly Mistake[];
  readonly terminal: TerminalOutput;
}

/** Judges the configuration: mistakes, warnings, secrets, addresses and proxies, each as a line of `--check`. */
export function configLines(
  { command, read, secretVariables, warnings }: CheckParts,
  environment: ProcessPorts['environment'],
): CheckLine[] {
  const { mistakes, state: config } = read;
  const file = command.configFile ?? (modeOf(DEFAULT_FILE) === null ? null : DEFAULT_FILE);
  const notes = createNotes('configuration');
  for (const mistake of mistakes) notes.fail(mistake.key ?? 'file', { ...inSentences(mistake), exitCode: 78 });
  const where = file === null ? 'no file, only environment variables' : file;
  if (mistakes.length === 0) notes.ok('values', `${where}: all values are valid`);
  if (environment['NODE_TLS_REJECT_UNAUTHORIZED'] === '0') noteUncheckedTls(notes);
  if (config === null) {
    notes.skip('other checks', 'not run (state, API, databases, status page): correct the configuration first');
    return notes.lines;
  }
  const places = secretSourcesOf(config);
  const { password, passwordFile } = config.statusPage;
  const page = { secretKey: 'listen_password', hasSecret: password !== null, file: passwordFile };
  for (const place of [...places, page]) noteSecret(notes, place, { file, secretVariables });
  for (const place of places) noteAddress(notes, place);
  for (const warning of warnings) notes.warn(warning.key ?? 'file', inSentences(warning));
  const proxies = Object.keys(config.proxies).filter((name) => !/^no_proxy$/i.test(name));
  if (proxies.length > 0)
    notes.skip(
      'proxy',
      `${proxies.join(', ')}: requests go through the proxy, except to hosts in NO_PROXY; the checks of the API and the databases show whether it works`,
    );
  return notes.lines;
}

/** Converts a configuration mistake to a line of the check: the message with the key, and the remedy. */
function inSentences({ at, what, remedy }: Mistake): { readonly message: string; readonly remedy: string } {
  const text = remedy ?? 'correct it; docs/configuration.md describes every key';
  const sentence = capitalized(text);
  return {
    message: at === null ? what : `${at}: ${what}`,
    remedy: sentence.endsWith('?') ? sentence : `${sentence}.`,
  };
}

/** A setting with an address and a secret. */
interface SecretSource {
  readonly urlKey: string;
  readonly url: string;
  readonly secretKey: string;
  readonly hasSecret: boolean;
  readonly file: string | null;
}

function secretSourcesOf(config: Config | StateConfig): SecretSource[] {
  const { api } = config;
  return [
    ...('key' in api
      ? [{ urlKey: 'api.url', url: api.url, secretKey: 'api.key', hasSecret: true, file: api.keyFile }]
      : []),
    ...configuredDatabases(config).map(({ name, url, token, tokenFile }) => ({
      urlKey: configKey(name, 'url'),
      url,
      secretKey: configKey(name, 'token'),
      hasSecret: token !== null,
      file: tokenFile,
    })),
  ];
}

/** Where an orchestrator mounts secrets. Their permissions are the orchestrator's responsibility. */
const MOUNTED = /^\/(?:var\/)?run\/secrets\//;

interface SecretSources extends Pick<CheckParts, 'secretVariables'> {
  /** The file that was read; `null` if there is none. */
  readonly file: string | null;
}

function noteSecret(
  notes: CheckNotes,
  place: Omit<SecretSource, 'url' | 'urlKey'>,
  { file, secretVariables }: SecretSources,
): void {
  if (!place.hasSecret) {
    if (place.file !== null)
      notes.ok(`${place.secretKey}_file`, `${place.file}: the file is empty: no token is configured`);
    return;
  }
  const variable = `TIDEMARK_${place.secretKey.toUpperCase().replaceAll('.', '_')}`;
  const isInline = place.file === null && !secretVariables.includes(variable);
  const path = place.file ?? (isInline ? file : null);
  if (path === null || MOUNTED.test(path)) return;
  const name = place.file === null ? place.secretKey : `${place.secretKey}_file`;
  const mode = modeOf(path);
  if (mode === null) {
    notes.skip(name, `${path}: its permissions cannot be read`);
    return;
  }
  if ((mode & 0o004) === 0 || isEnclosed(path)) {
    notes.ok(name, `${path}: other users cannot read it`);
    return;
  }
  notes.warn(name, {
    message: `${path}: every user of this machine can read it (0${mode.toString(8)})`,
    // The group's rights stay: the daemon may run as another user and read the file through its group.
    remedy: `chmod o-rwx ${shellText(path)}`,
  });
}

/** Reports that Node accepts any certificate. */
function noteUncheckedTls(notes: CheckNotes): void {
  notes.warn('NODE_TLS_REJECT_UNAUTHORIZED', {
    message:
      'NODE_TLS_REJECT_UNAUTHORIZED is 0, so no certificate is checked: anybody on the network path can read the API key and the tokens',
    remedy: 'Unset it. For a certificate authority of your own, set api.ca_file and influx.ca_file.',
  });
}

function noteAddress(notes: CheckNotes, { urlKey, url, secretKey, hasSecret }: SecretSource): void {
  if (!hasSecret || !url.startsWith('http:') || isLoopback(url)) return;
  notes.warn(urlKey, {
    message: `http:// to another host: anybody who sees the traffic can read ${secretKey}`,
    remedy: `Set ${urlKey} to an https:// address if the server has one.`,
  });
}

/** The public description of a key. */
interface DescribedKey {
  readonly key: string;
  readonly source: 'file' | 'environment' | 'default';
  /** `null` for a key without a value. */
  readonly value: string | null;
}

/** A configuration as `--check` shows it: without secrets. */
export interface DescribedConfig {
  /** `null` if there is no file and only the environment is used. */
  readonly file: string | null;
  readonly keys: readonly DescribedKey[];
  /** The names of the proxy variables that are set; their values may contain passwords. */
  readonly proxies: readonly string[];
  /** Texts that must not be shown. */
  readonly hidden: readonly string[];
}

/**
 * Reads the configuration again and describes it: each key with its source, and its value unless that is a secret,
 * names devices, or is unusable (it may be anything then).
 *
 * Promises: it never throws, whatever is configured. A value of a secret key, or one elsewhere that looks like a
 * secret, is not shown but returned as hidden, so that it can be removed from all other output.
 */
function describeConfig(input: ConfigInput): DescribedConfig {
  const file = readConfigFile(input, knownNames());
  const given = new Map([...file.given, ...readEnvironment(input.environment, knownVariables()).given]);
  const hidden = new Set<string>();
  const described: DescribedKey[] = [];
  const parts = { given, hidden, input };
  for (const [path, key] of keyEntries()) described.push(...describeKey(path, key, parts));
  for (const section of destinationSections(given)) {
    for (const [path, key] of keyEntries().filter(([path]) => path.startsWith('influx.'))) {
      const own = `${section}${path.slice('influx'.length)}`;
      if (given.has(own) || given.has(fileForm(own))) described.push(...describeKey(own, key, parts));
    }
  }
  const hasFile = input.file !== null || file.given.size > 0 || file.mistakes.length > 0;
  const proxies = Object.keys(proxiesOf(input.environment));
  return { file: hasFile ? (input.file ?? DEFAULT_FILE) : null, keys: described, proxies, hidden: [...hidden] };
}

interface Parts {
  readonly given: ReadonlyMap<string, Given>;
  readonly hidden: Set<string>;
  readonly input: ConfigInput;
}

function describeKey(path: string, key: Key, parts: Parts): DescribedKey[] {
  if (key.kind === 'sections') return [];
  if (key.kind === 'secret') return describeSecret(path, parts);
  const given = parts.given.get(path);
  if (given === undefined) return [{ key: path, source: 'default', value: key.default }];
  const text = given.text.trim();
  const { source } = given;
  for (const each of given.items ?? [text]) if (isSecretLike(each)) parts.hidden.add(each);
  const count = key.parseItems !== undefined && path.startsWith('sync.') ? (given.items ?? text.split(',')).length : 0;
  if (count > 0) return [{ key: path, source, value: `(patterns: ${count}; not shown, as they name devices)` }];
  const isUsable = text !== '' && !(key.parse(text, parts.input.nowMs) instanceof InvalidText);
  return [{ key: path, source, value: isUsable ? shownValue(path, text) : '(set, but invalid: not shown)' }];
}

function describeSecret(path: string, { given, hidden, input }: Parts): DescribedKey[] {
  const [own, byFile] = [given.get(path), given.get(fileForm(path))];
  const described: DescribedKey[] = [];
  if (own !== undefined) {
    hidden.add(own.text).add(own.text.trim());
    described.push({ key: path, source: own.source, value: '(set, not shown)' });
  }
  if (byFile !== undefined) {
    const text = readContent(byFile.text.trim(), input.readFile);
    if (text !== null) hidden.add(text).add(text.trim());
    // A path that leads to no file may be the secret itself, given instead of the file's name.
    else hidden.add(byFile.text.trim());
    const value = text === null ? '(set, but the file cannot be read)' : '(read from a file, not shown)';
    described.push({ key: fileForm(path), source: byFile.source, value });
  }
  return described.length > 0 ? described : [{ key: path, source: 'default', value: null }];
}

function readContent(path: string, readFile: ConfigInput['readFile']): string | null {
  try {
    return readFile(path);
  } catch {
    return null;
  }
}

function shownValue(path: string, text: string): string {
  if (isSecretLike(text)) return '(set, not shown: it looks like a secret)';
  if (path === 'workspace.id') return '(set, not shown)';
  const url = path.endsWith('.url') ? URL.parse(text) : null;
  return url === null ? text : `${url.protocol}//${url.host}${url.pathname}`;
}

/**
 * Whether a text looks like a key or token: long, without blanks, with letters and digits, and neither an address nor a
 * path.
 */
function isSecretLike(text: string): boolean {
  if (text.length < 20 || !/^[\x21-\x7e]+$/.test(text) || /^(?:\.{0,2}\/|~|https?:\/\/)/.test(text)) return false;
  return /\d/.test(text) && /[a-zA-Z]/.test(text);
}
