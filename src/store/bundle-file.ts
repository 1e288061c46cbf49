/**
 * The file of a support bundle: it has its name only once it is whole, only its owner may read it, and it never takes the
 * place of another one.
 */
import { closeSync, fsyncSync, linkSync, openSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { UserError } from '../core/faults.ts';
import type { Random } from '../core/ports.ts';
import { plainText } from '../core/text.ts';

/** Looks whether a bundle can be put there, before anything else is done. @throws UserError (exit 1) */
export function requireBundlePlace(given: string): void {
  const file = resolve(given);
  const shown = plainText(given);
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat?.isDirectory() === true) {
    throw new UserError(`--bundle: ${shown} is a directory. Give the name of a new file in it.`, 1);
  }
  if (stat !== undefined) {
    throw new UserError(
      `--bundle: ${shown} is there already, and is never overwritten. Give another name, or remove it.`,
      1,
    );
  }
  if (statSync(dirname(file), { throwIfNoEntry: false })?.isDirectory() !== true) {
    throw new UserError(`--bundle: there is no directory ${plainText(dirname(given))}. Make it first.`, 1);
  }
}

/** Writes it. @throws UserError (exit 1) where that cannot be done; nothing is left then. */
export function writeBundle(given: string, text: string, random: Random): void {
  const file = resolve(given);
  const part = `${file}.${Math.floor(random() * 2 ** 32).toString(16)}.part`;
  try {
    const handle = openSync(part, 'wx', 0o600);
    try {
      writeSync(handle, text);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    takeName(part, file, given);
  } catch (error) {
    if (error instanceof UserError) throw error;
    const code = codeOf(error);
    throw new UserError(
      `--bundle: ${plainText(given)} could not be written (${code}). Nothing is left of it. Give a place that this user may write.`,
      1,
    );
  } finally {
    rmSync(part, { force: true });
  }
}

function takeName(part: string, file: string, given: string): void {
  try {
    // A link is refused where the name is taken, which a change of name is not.
    linkSync(part, file);
  } catch (error) {
    if (codeOf(error) === 'EEXIST') requireBundlePlace(given);
    // File systems without links.
    renameSync(part, file);
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
}
