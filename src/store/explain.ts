/**
 * Turns errors of SQLite, the file system and the archive's compression into messages with a next step.
 *
 * It covers every fault of a file that has an outside cause. Any other error is a bug of this program and passes
 * through unchanged.
 */
import { accessSync, constants, existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { StateFullError } from '../core/archive-room.ts';
import { type Advice, codeOf, UserError } from '../core/faults.ts';
import { isRecord } from '../core/json.ts';
import { plainText, shellText } from '../core/text.ts';

/** The state is damaged: the data that was read is not the data that was written. */
export class DamageError extends Error {
  override readonly name = 'DamageError';
  readonly code = 'SQLITE_CORRUPT';
}

/**
 * Does some work with the state at `path`.
 *
 * @throws UserError (exit 1) instead of the error of the file system or the database; a `StateFullError` if the disk
 * was full or failed: nothing was written then, and the program may continue without further writes.
 */
export function explained<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw explain(path, error);
  }
}

/**
 * Wraps every call of an object, and of the objects in it, in the same way, because any use of a file may fail. It
 * wraps the complete store; the parts of the store throw the original errors.
 */
export function explainedCalls<T extends object>(path: string, calls: T): T {
  const wrap = (call: unknown): unknown => {
    if (typeof call === 'function') return (...values: unknown[]) => explained(path, () => call(...values));
    return isRecord(call) ? explainedCalls(path, call) : call;
  };
  // Each call keeps its own arguments and result, which a mapped type cannot express.
  return Object.fromEntries(Object.entries(calls).map(([name, call]) => [name, wrap(call)])) as T;
}

/** A reader may have found the damage while a daemon uses the files. */
export const DAMAGE_REMEDY =
  'Stop Tidemark and restore a backup into an empty data_dir, or move tidemark.db, tidemark.db-wal, tidemark.db-shm and tidemark.lock away together and start again: the history is then read from the API again.';

/** Linux mounts a file system read-only when it finds errors in it. Writing to it then may lose more data. */
export const READ_ONLY_REMEDY =
  'Mount it for writing (if it was before, check the disk first: the system may have found errors on it), or set data_dir to another directory.';

type Problem = 'damaged' | 'full' | 'busy' | 'no-directory' | 'long-name' | 'loop' | 'read-only' | 'unwritable' | 'io';

/** The prefixes of error codes from SQLite, Node and zstd; the first match counts. */
const PROBLEMS: readonly (readonly [start: string, problem: Problem])[] = [
  ['SQLITE_CORRUPT', 'damaged'],
  ['SQLITE_NOTADB', 'damaged'],
  ['ZSTD_', 'damaged'],
  ['Z_', 'damaged'],
  ['SQLITE_FULL', 'full'],
  ['ENOSPC', 'full'],
  ['SQLITE_BUSY', 'busy'],
  ['SQLITE_LOCKED', 'busy'],
  ['ENOTDIR', 'no-directory'],
  // A link to a missing target, such as a disk that is not mounted.
  ['ENOENT', 'no-directory'],
  ['EEXIST', 'no-directory'],
  ['ELOOP', 'loop'],
  ['ENAMETOOLONG', 'long-name'],
  ['EINVAL', 'no-directory'],
  ['SQLITE_READONLY', 'unwritable'],
  ['SQLITE_CANTOPEN', 'unwritable'],
  ['SQLITE_PERM', 'unwritable'],
  ['SQLITE_AUTH', 'unwritable'],
  ['EACCES', 'unwritable'],
  ['EPERM', 'unwritable'],
  ['EROFS', 'read-only'],
  ['SQLITE_IOERR', 'io'],
  ['EIO', 'io'],
  // The quota of a user, which free space on the disk does not help.
  ['EDQUOT', 'io'],
];

/** The remedy if the directory of the state cannot be used at all. */
export const DIRECTORY_REMEDY = 'Set data_dir to another directory, or mount the missing file system.';

const ADVICE: Readonly<Record<Problem, (message: string, path: string) => Advice>> = {
  damaged: (message) => ({
    what: `the state file is damaged (${message})`,
    remedy: DAMAGE_REMEDY,
  }),
  full: () => ({
    what: 'the disk is full',
    remedy: 'Free space on the disk and start again; the data stored before is safe.',
  }),
  busy: () => ({
    what: 'another program has locked the state file',
    remedy:
      'Close that program (such as a database browser or a backup tool) and start again; the data stored before is safe.',
  }),
  'no-directory': (message, path) => ({
    what: `${missingText(dirname(path))} (${message})`,
    remedy: DIRECTORY_REMEDY,
  }),
  'long-name': (message) => ({
    what: `this path, or a name in it, is too long (${message})`,
    remedy: 'Set data_dir to another directory, with a shorter path.',
  }),
  loop: (message) => ({
    what: `a link in this path leads back to itself (${message})`,
    remedy: 'Correct that link, or set data_dir to another directory.',
  }),
  'read-only': (message) => ({
    what: `the file system is mounted read-only (${message})`,
    remedy: READ_ONLY_REMEDY,
  }),
  unwritable: (message, path) => {
    const user = ownUser();
    const directory = dirname(path);
    if (isMissing(directory)) {
      return {
        what: `this user (${user}) cannot create '${directory}' (${message})`,
        remedy: `As root: mkdir -p ${shellText(directory)} && chown ${user} ${shellText(directory)}; or set data_dir to another directory.`,
      };
    }
    return {
      what: `this user (${user}) cannot write the state (${message})`,
      remedy: placeRemedy(path, user),
    };
  },
  io: (message) => ({
    what: `the file system failed (${message})`,
    remedy: 'Check the disk (free space, quota, health) and start again; the data stored before is safe.',
  }),
};

/** Why a directory cannot be used: a part of its path is not a directory, or is missing. */
function missingText(directory: string): string {
  const file = pathAndParents(directory).find(isOther);
  return file === undefined
    ? `the directory ${directory} is missing and cannot be made`
    : `the directory ${directory} cannot be made, because ${file} is not a directory`;
}

/** Whether a path exists and is not a directory. */
function isOther(path: string): boolean {
  try {
    return !statSync(path).isDirectory();
  } catch {
    return false;
  }
}

/** A path and the paths above it, the shortest first. */
function pathAndParents(path: string): readonly string[] {
  return path === dirname(path) ? [path] : [...pathAndParents(dirname(path)), path];
}

function explain(path: string, error: unknown): unknown {
  if (error instanceof UserError) return error;
  const found = adviceOn(path, error);
  if (found === null) return error;
  const { problem, what, remedy } = found;
  const where = `${path}: ${what}`;
  if (problem === 'full' || problem === 'io') return new StateFullError(where, remedy, 1);
  return new UserError(where, remedy, 1, { ends: 'process' });
}

/** Explains an error of the file system or the database for the file at `path`; returns `null` for any other error. */
export function adviceOn(path: string, error: unknown): (Advice & { readonly problem: Problem }) | null {
  if (!(error instanceof Error) || !('code' in error)) return null;
  const code = String(error.code);
  const found = PROBLEMS.find(([start]) => code.startsWith(start))?.[1];
  if (found === undefined) return null;
  const problem = found === 'unwritable' && isReadOnly(path) ? 'read-only' : found;
  return { problem, ...ADVICE[problem](plainText(error.message), path) };
}

/** Whether a directory is missing. If this user may not look into a directory above it, it may exist. */
function isMissing(directory: string): boolean {
  try {
    statSync(directory);
    return false;
  } catch (error) {
    return codeOf(error) === 'ENOENT';
  }
}

/** Whether the file system of a path, or of the nearest existing directory above it, is mounted read-only. */
function isReadOnly(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return false;
  } catch (error) {
    return codeOf(error) === 'ENOENT' && path !== dirname(path) ? isReadOnly(dirname(path)) : codeOf(error) === 'EROFS';
  }
}

/** How this user can get a directory to write a state to. Only an empty directory may get another owner. */
function placeRemedy(path: string, user: string): string {
  const directory = dirname(path);
  const names = namesIn(directory);
  // Another owner would take the state away from a process that uses it.
  if (names === null || names.some((name) => name.startsWith('tidemark.')))
    return `${rightsText(path, user)}, or set data_dir to another directory.`;
  return !hasOtherFiles(directory)
    ? `Make this user the owner: chown ${user} ${shellText(directory)} (in a container: of the mounted volume or directory), or set data_dir to another directory.`
    : OWN_DIRECTORY_REMEDY;
}

/** The advice instead of a `chown` for a directory that another program may need. */
export const OWN_DIRECTORY_REMEDY = 'That directory has other files in it: set data_dir to a directory of its own.';

/** Whether a directory has files that do not belong to a state. It may belong to another program, or to the system. */
export function hasOtherFiles(directory: string): boolean {
  // A new file system contains this directory from the beginning.
  return namesIn(directory)?.some((name) => name !== 'lost+found' && !name.startsWith('tidemark.')) ?? false;
}

/** The names in a directory; `null` if they cannot be read. */
function namesIn(directory: string): readonly string[] | null {
  try {
    return readdirSync(directory);
  } catch (error) {
    return codeOf(error) === 'ENOENT' ? [] : null;
  }
}

/** How this user gets the right to write while a process may use the state: never by taking it from its owner. */
function rightsText(file: string, user: string): string {
  const directory = dirname(file);
  const path = existsSync(file) ? file : directory;
  const owner = ownerOf(path);
  if (owner === user) {
    const place = shellText(directory);
    return `Give this user write permission: chmod u+rwx ${place} && chmod u+rw ${place}/tidemark.*`;
  }
  // A process of the other owner would have created its lock there. Without one, somebody has copied the file.
  const lockOwner = ownerOf(join(directory, 'tidemark.lock'));
  const isCopy = path === file && ownerOf(directory) === user && (lockOwner === null || lockOwner === user);
  if (isCopy) return `As root: chown ${user} ${shellText(file)}`;
  return `Run Tidemark as the user that owns ${path}${owner === null ? '' : ` (${owner})`}`;
}

function ownerOf(path: string): string | null {
  try {
    return String(statSync(path).uid);
  } catch {
    return null;
  }
}

/** The user of this process in the form that `chown` expects. In a container the user may have no name. */
function ownUser(): string {
  try {
    return String(statSync('/proc/self').uid);
  } catch {
    return '"$(id -u)"';
  }
}
