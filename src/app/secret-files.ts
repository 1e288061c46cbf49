/**
 * Secrets in files, which are read again while the program runs: the tokens of the databases, the API key, and the
 * password of the status page. A file that cannot be used any more is reported once, and the previous secret stays in
 * use.
 */
import type { Config } from '../config/config.ts';
import { shownPath } from '../config/sources.ts';
import { InvalidText, keyText, secretText } from '../config/values.ts';
import { type Advice, codeOf, readFailure } from '../core/faults.ts';
import { Secret } from '../core/secret.ts';
import { capitalized, shellText } from '../core/text.ts';
import type { KeySource } from '../scheduler/session.ts';

interface SecretParts {
  readonly readFile: (path: string) => string;
  /** The secrets to hide in all output. A secret that is read is added before any part can use it. */
  readonly secrets: Secret[];
  /** Called once with the reason why a file can no longer be used, and with the remedy. */
  readonly onUnusable: (message: string) => void;
}

/** The key that names the file of a secret, and for a token the address that it is sent to. */
interface SecretOrigin {
  readonly key: string;
  readonly url: string | null;
}

/** Reads the file of a secret again. Returns `null` if the file has no usable secret. */
export type ReadSecret = (file: string, origin: SecretOrigin) => Secret | null;

/**
 * Creates a function that reads the files of tokens, or of the password. It reports a text that is not one, and a file
 * that cannot be used.
 */
export function createSecretReader(
  { readFile, secrets, onUnusable }: SecretParts,
  what: 'token' | 'password' = 'token',
): ReadSecret {
  const problems = new Map<string, ProblemNote>();
  return (file, { key, url }) => {
    const problem = problems.get(key) ?? createProblemNote(`; the previous ${what} stays in use`, onUnusable);
    problems.set(key, problem);
    let text: string;
    try {
      text = readFile(file);
    } catch (error) {
      if (isForbidden(error)) problem.note(`${key}: ${readFailure(error).what}${shownPath(file)}`, readableText(file));
      return null;
    }
    // An empty file means no secret, or one that is about to be written.
    if (text.trim() === '') return null;
    const secret = secretText(text, url);
    if (secret instanceof InvalidText) {
      const remedy = capitalized(secret.remedy ?? `write only the new ${what} into this file`);
      problem.note(`${key}: the file${shownPath(file)} ${secret.reason}`, `${remedy}.`);
      return null;
    }
    problem.clear();
    const known = secrets.find((each) => each.reveal() === secret);
    if (known !== undefined) return known;
    const read = new Secret(secret);
    secrets.push(read);
    return read;
  };
}

/**
 * The problem of a file. It is reported by the second check in a row, because a file may be incomplete for a moment.
 */
interface ProblemNote {
  readonly note: (text: string, remedy: string) => void;
  readonly clear: () => void;
}

function createProblemNote(effect: string, report: (message: string) => void): ProblemNote {
  let last: { readonly text: string; readonly isReported: boolean } | null = null;
  return {
    note: (text, remedy) => {
      const isReported = last?.text === text;
      if (isReported && last?.isReported === false) report(`${text}${effect}. ${remedy}`);
      last = { text, isReported };
    },
    clear: () => {
      last = null;
    },
  };
}

/** Whether this user may not read a file. */
function isForbidden(error: unknown): boolean {
  return ['EACCES', 'EPERM'].includes(codeOf(error));
}

/** The password of the status page, which may be exchanged in its file while the program runs. */
export interface PasswordSource {
  /** Returns the password in use; `null`: none. */
  inUse(): Secret | null;
  /** Reads the file: a usable password is in use from now on. Only the service calls it, every ten seconds. */
  checkFile(): void;
}

/** Creates the source of the password of the status page. Without a file it never changes. */
export function createPasswordSource(
  { password, passwordFile }: Pick<Config['statusPage'], 'password' | 'passwordFile'>,
  parts: SecretParts,
): PasswordSource {
  const readSecret = createSecretReader(parts, 'password');
  let inUse = password;
  return {
    inUse: () => inUse,
    checkFile: () => {
      if (passwordFile === null) return;
      inUse = readSecret(passwordFile, { key: 'listen_password_file', url: null }) ?? inUse;
    },
  };
}

/** Creates the source of the API key: the key in use, and the file that may hold another one. */
export function createKeySource(
  { key, keyFile }: Pick<Config['api'], 'key' | 'keyFile'>,
  { readFile, secrets, onUnusable }: SecretParts,
): KeySource & { readonly inUse: () => Secret } {
  let inUse = key;
  const problem = createProblemNote('; the daemon keeps the previous key', onUnusable);
  const read = (): string | Advice => (keyFile === null ? inUse.reveal() : readKey(keyFile, readFile));
  const inFile = (): Secret => {
    const text = read();
    return typeof text !== 'string' || text === inUse.reveal() ? inUse : new Secret(text);
  };
  return {
    isFixed: keyFile === null,
    inUse: () => inUse,
    checkFile: () => {
      const text = read();
      if (typeof text === 'string') problem.clear();
      else problem.note(text.what, text.remedy);
    },
    hasChanged: () => inFile() !== inUse,
    adopt: () => {
      inUse = inFile();
      secrets.push(inUse);
    },
  };
}

const KEY_REMEDY = 'Write only the new key into this file.';

/** Reads the text of a key. */
function readKey(file: string, readFile: SecretParts['readFile']): string | Advice {
  try {
    const text = keyText(readFile(file));
    if (!(text instanceof InvalidText)) return text;
    const remedy = text.remedy === undefined ? KEY_REMEDY : `${capitalized(text.remedy)}.`;
    return { what: `api.key_file: the file${shownPath(file)} ${text.reason}`, remedy };
  } catch (error) {
    const remedy = isForbidden(error) ? readableText(file) : KEY_REMEDY;
    return { what: `api.key_file: ${readFailure(error).what}${shownPath(file)}`, remedy };
  }
}

/** The remedy for a file that the daemon's user may not read. */
function readableText(file: string): string {
  // The owner and group that install.sh sets.
  const workspace = /^\/etc\/tidemark\/([a-z0-9-]+)\/\w+$/.exec(file)?.[1];
  if (workspace !== undefined)
    return `Let the daemon read it: sudo chgrp tidemark-${workspace} ${shellText(file)} && sudo chmod 0640 ${shellText(file)}`;
  return 'Let the user of the daemon read this file and enter its directory: change owner, group or mode.';
}
