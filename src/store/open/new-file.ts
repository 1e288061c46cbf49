/**
 * Creates files that only their owner may read, because they hold customer data. A file with a name given by the user
 * gets that name only when it is complete, and replaces another file only in `init`.
 */
import {
  closeSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';
import { codeOf, UserError } from '../../core/faults.ts';
import type { Random } from '../../core/ports.ts';
import { plainText } from '../../core/text.ts';
import { type EpochMs, MINUTE_MS } from '../../core/time.ts';

/**
 * Checks whether a file can be created there, before any other work is done.
 *
 * @param option the option that names the file: `--backup`.
 * @throws UserError (exit 1)
 */
export function requireNewFile(option: string, given: string): void {
  const file = resolve(given);
  const shown = plainText(given);
  const readStat = (path: string): Stats | undefined => {
    try {
      return statSync(path, { throwIfNoEntry: false });
    } catch (error) {
      throw new UserError(`${option}: ${shown} cannot be created (${codeOf(error)})`, 'Choose another path.', 1);
    }
  };
  const stat = readStat(file);
  if (stat?.isDirectory() === true) {
    throw new UserError(`${option}: ${shown} is a directory`, 'Choose the name of a new file in it.', 1);
  }
  if (stat !== undefined) {
    throw new UserError(
      `${option}: ${shown} already exists and is not overwritten`,
      'Choose another name, or remove it.',
      1,
    );
  }
  let nearest = dirname(file);
  while (readStat(nearest) === undefined) nearest = dirname(nearest);
  if (readStat(nearest)?.isDirectory() !== true) {
    throw new UserError(`${option}: ${plainText(nearest)} is not a directory`, 'Choose another path.', 1);
  }
  if (nearest !== dirname(file)) {
    throw new UserError(`${option}: there is no directory ${placeText(dirname(file), given)}`, 'Create it first.', 1);
  }
}

/**
 * A path in an error text. If it was given relative, the directory that it starts from, because under systemd that is
 * not where it was typed.
 */
export function placeText(directory: string, given: string): string {
  const start = isAbsolute(given)
    ? ''
    : ` (a relative path starts in the working directory, ${plainText(resolve('.'))})`;
  return `${plainText(directory)}${start}`;
}

/** The name of the temporary file, in the same directory, that is written first. */
export function newPartPath(file: string, random: Random): string {
  return `${file}.${Math.floor(random() * 2 ** 32).toString(16)}${PART}`;
}

const PART = '.tidemark-part';

/** The name of a temporary file, and of SQLite's files for it. */
const PART_NAME = /^((.+)\.[\da-f]{1,8}\.(?:tidemark-)?part)(?:-journal|-wal|-shm)?$/;

/** A file that is still being written has changed within this time. */
const STILL_WRITTEN_MS = MINUTE_MS;

/**
 * Removes the temporary files that a killed process left: those for the same file, and those for others in the same
 * directory that have not changed for a minute.
 *
 * @param isInUse whether a process is writing a temporary file.
 */
export function removeOldParts(file: string, nowMs: EpochMs, isInUse: (part: string) => boolean): void {
  const directory = dirname(file);
  for (const name of readdirSync(directory)) {
    const [, base, target] = PART_NAME.exec(name) ?? [];
    if (base === undefined) continue;
    const changedMs = statSync(join(directory, name), { throwIfNoEntry: false })?.mtimeMs ?? nowMs;
    const isOld = target === basename(file) || (name.includes(PART) && nowMs - changedMs > STILL_WRITTEN_MS);
    const part = join(directory, base);
    if (isOld && !isInUse(part)) removePart(part);
  }
}

/** Removes a temporary file, and SQLite's files for it. */
export function removePart(part: string): void {
  for (const end of ['', '-journal', '-wal', '-shm']) rmSync(`${part}${end}`, { force: true });
}

/**
 * Gives a written file its name.
 *
 * @throws UserError (exit 1) if another file has that name by now.
 */
export function takeName(option: string, part: string, given: string): void {
  const file = resolve(given);
  try {
    // A link fails if the name exists; a rename does not.
    linkSync(part, file);
  } catch (error) {
    if (codeOf(error) === 'EEXIST') requireNewFile(option, given);
    // For file systems without links.
    renameSync(part, file);
  }
}

/** Whether a path lies in a file system of the Linux kernel. No user can create a file there, not even root. */
export function isOfKernel(path: string): boolean {
  return /^\/(?:proc|sys)(?:\/|$)/.test(path);
}

/**
 * Rejects a path that leads through a dangling link, such as one to a disk that is not mounted: SQLite would create the
 * file at the target of the link, outside the data directory. It also rejects a path in which no file can be created.
 *
 * @throws UserError (exit 1)
 */
export function requireTarget(path: string): void {
  if (isOfKernel(path)) {
    throw new UserError(
      `${path}: nobody can create files in this file system`,
      'Set data_dir to another directory.',
      1,
    );
  }
  const target = danglingTarget(path);
  if (target !== null) {
    throw new UserError(
      `${path}: this is a link to ${plainText(target)}, which does not exist`,
      'Mount or restore the target of the link, or correct the link. Nothing was written.',
      1,
    );
  }
  if (path !== dirname(path)) requireTarget(dirname(path));
}

/** The target of a dangling link; `null` for any other path. */
function danglingTarget(path: string): string | null {
  try {
    if (!lstatSync(path).isSymbolicLink() || statSync(path, { throwIfNoEntry: false }) !== undefined) return null;
    return readlinkSync(path);
  } catch {
    // The open call reports that this user may not see it.
    return null;
  }
}

/**
 * Creates an empty file with mode 0600 if there is none, so that other users can never open it.
 *
 * An existing file is not even opened: by the rules of POSIX, closing it would release SQLite's locks on it.
 */
export function createPrivate(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}

/** A path that this user may write to, for an error text: under systemd and in a container there are few others. */
export function alternativeText(file: string, dataDir: string | null): string {
  const other = dataDir === null ? file : join(resolve(dataDir), basename(file));
  return other === file ? '' : `, such as ${plainText(other)}`;
}

/** A file to write, or to replace. */
export interface WrittenFile {
  readonly path: string;
  readonly text: string;
  /** The permissions, by default 0600. */
  readonly mode?: number;
  /** Whether a file that is replaced keeps its owner, group and their rights, because the daemon's user reads it. */
  readonly keepsOwner?: boolean;
}

/** Writes a file, and its directory if there is none. A file of that name is replaced when the new one is complete. */
export function replaceFile({ path, text, mode = 0o600, keepsOwner = false }: WrittenFile): void {
  const part = `${path}.part`;
  const before = keepsOwner ? statSync(path, { throwIfNoEntry: false }) : undefined;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  rmSync(part, { force: true });
  const file = openSync(part, 'wx', 0o600);
  try {
    writeFileSync(file, text);
    // By the open file: in a directory of another user the name may lead elsewhere by now.
    if (before !== undefined) fchownSync(file, before.uid, before.gid);
    // The umask of this process would remove the rights of others. No secret becomes readable for everyone.
    fchmodSync(file, before === undefined ? mode : before.mode & 0o770);
  } finally {
    closeSync(file);
  }
  renameSync(part, path);
}

/**
 * Writes a file.
 *
 * @throws UserError (exit 1) if that fails; then no file is left.
 */
export function writeBundle(
  given: string,
  text: string,
  { random, dataDir }: { readonly random: Random; readonly dataDir: string | null },
): void {
  const file = resolve(given);
  const part = newPartPath(file, random);
  try {
    const handle = openSync(part, 'wx', 0o600);
    try {
      writeSync(handle, text);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    takeName('--bundle', part, given);
  } catch (error) {
    if (error instanceof UserError) throw error;
    const code = codeOf(error);
    throw new UserError(
      `--bundle: ${placeText(file, given)} could not be written (${code})`,
      `Choose a directory that this user may write to${alternativeText(file, dataDir)}.`,
      1,
    );
  } finally {
    rmSync(part, { force: true });
  }
}
