/**
 * Checks the data directory: its permissions, its free disk space, and whether files can be created in it. It opens no
 * file that SQLite may have open.
 */
import {
  accessSync,
  constants,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  type Stats,
  statfsSync,
  statSync,
} from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { codeOf } from '../../core/faults.ts';
import type { Disk } from '../../core/ports.ts';
import { lockPath, statePath } from '../open/database.ts';
import { isOfKernel } from '../open/new-file.ts';

/** A file or directory with its owner and permissions, and whether this user can write it. */
export interface OwnedPath {
  readonly path: string;
  /** The nine bits of permission, such as 0o700. */
  readonly mode: number;
  readonly ownerUid: number;
  readonly groupGid: number;
  /** Why this user cannot write it, as an error code; `null` if it can. */
  readonly refusal: string | null;
}

/** The location of a state, as the file system shows it. */
export interface DataDirFacts {
  /** An absolute path. */
  readonly directory: string;
  /**
   * `there`: a directory; `missing`: it does not exist, and `nearest` is where it would be created; `other`: it, or a
   * part of its path, is no directory, or no file can be made in it.
   */
  readonly kind: 'there' | 'missing' | 'other';
  /** The directory, or the nearest existing one above it; `null` if it cannot be checked. */
  readonly nearest: OwnedPath | null;
  /** The files of a state that exist. */
  readonly files: readonly OwnedPath[];
  /** The id of this user; -1 if the system has no such ids. */
  readonly uid: number;
}

/** Checks the location of a state. Never throws. */
export function inspectDataDir(dataDir: string): DataDirFacts {
  const directory = resolve(dataDir);
  const { uid } = userInfo();
  const { path, isDirectory, code } = findNearest(directory);
  const found = readOwnedPath(path);
  // If this user may not look there, `nearest` has the refusal.
  const isOther = !isDirectory || !(code === null || code === 'ENOENT' || code === 'EACCES') || isOfKernel(directory);
  if (found === null || isOther) return { directory, kind: 'other', nearest: found, files: [], uid };
  const nearest = { ...found, refusal: found.refusal ?? creationRefusal(path, relative(path, directory)) };
  if (path !== directory) return { directory, kind: 'missing', nearest, files: [], uid };
  const state = statePath(directory);
  const files = [state, `${state}-wal`, `${state}-shm`, lockPath(directory)]
    .filter((path) => statOf(path).stats?.isFile() === true)
    .flatMap((path) => readOwnedPath(path) ?? []);
  return { directory, kind: 'there', nearest, files, uid };
}

/** The deepest existing part of a path, and why the rest does not exist. */
function findNearest(whole: string): { path: string; isDirectory: boolean; code: string | null } {
  let failed: string | null = null;
  for (let path = whole; ; path = dirname(path)) {
    const { stats, code } = statOf(path);
    if (stats !== null) return { path, isDirectory: stats.isDirectory(), code: failed };
    failed ??= code;
    // A dangling link prevents the creation of a directory with its name.
    if (isLink(path)) failed = 'ENOTDIR';
    if (path === dirname(path)) return { path, isDirectory: true, code };
  }
}

/**
 * Creates the missing part of a path below a temporary directory and removes it again, because permissions do not show
 * whether a file system accepts more directories and these names.
 *
 * @returns why it cannot be created, as an error code; `null` if it can
 */
function creationRefusal(directory: string, missing: string): string | null {
  let temporary: string | null = null;
  try {
    temporary = mkdtempSync(join(directory, '.tidemark-check-'));
    mkdirSync(join(temporary, missing), { recursive: true });
    return null;
  } catch (error) {
    return codeOf(error);
  } finally {
    if (temporary !== null) rmSync(temporary, { recursive: true, force: true });
  }
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink();
  } catch {
    return false;
  }
}

/** The permission bits of a file; `null` if it cannot be checked. Follows links. */
export function modeOf(path: string): number | null {
  const { stats } = statOf(path);
  return stats === null ? null : stats.mode & 0o777;
}

/**
 * Whether a directory above a file denies other users access to it; `false` for a file that cannot be found. Follows
 * links.
 */
export function isEnclosed(path: string): boolean {
  try {
    for (let at = realpathSync(path); at !== dirname(at); at = dirname(at)) {
      if (((modeOf(dirname(at)) ?? 0o001) & 0o001) === 0) return true;
    }
  } catch {
    // Nothing is known about a file that cannot be found.
  }
  return false;
}

function readOwnedPath(path: string): OwnedPath | null {
  const { stats } = statOf(path);
  if (stats === null) return null;
  return {
    path,
    mode: stats.mode & 0o777,
    ownerUid: stats.uid,
    groupGid: stats.gid,
    refusal: accessRefusal(path, stats),
  };
}

function accessRefusal(path: string, stats: Stats): string | null {
  try {
    accessSync(path, stats.isDirectory() ? constants.W_OK | constants.X_OK : constants.W_OK);
    return null;
  } catch (error) {
    return codeOf(error);
  }
}

function statOf(path: string): { readonly stats: Stats | null; readonly code: string | null } {
  try {
    return { stats: statSync(path), code: null };
  } catch (error) {
    return { stats: null, code: codeOf(error) };
  }
}

/**
 * Creates the disk of a directory.
 *
 * @param directory may not exist yet.
 */
export function createDisk(directory: string): Disk {
  return {
    directory,
    freeBytes: () => {
      try {
        const { bavail, bsize, blocks } = statfsSync(directory);
        // File systems without a limit, among them network file systems, report 0 of 0.
        return blocks === 0 ? null : bavail * bsize;
      } catch {
        return null;
      }
    },
  };
}
