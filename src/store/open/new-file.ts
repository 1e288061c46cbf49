/**
 * A file that somebody named and that is not there yet: it has its name only once it is whole, and never takes the place of
 * another one.
 */
import { linkSync, renameSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { codeOf, UserError } from '../../core/faults.ts';
import { plainText } from '../../core/text.ts';

/**
 * Looks whether a file can be made there, before anything else is done.
 *
 * @param option the one that names it: `--backup`. @throws UserError (exit 1)
 */
export function requireNewFile(option: string, given: string): void {
  const file = resolve(given);
  const shown = plainText(given);
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat?.isDirectory() === true) {
    throw new UserError(`${option}: ${shown} is a directory. Give the name of a new file in it.`, 1);
  }
  if (stat !== undefined) {
    throw new UserError(
      `${option}: ${shown} is there already, and is never overwritten. Give another name, or remove it.`,
      1,
    );
  }
  if (statSync(dirname(file), { throwIfNoEntry: false })?.isDirectory() !== true) {
    throw new UserError(`${option}: there is no directory ${plainText(dirname(given))}. Make it first.`, 1);
  }
}

/** Gives what was written beside it the name. @throws UserError (exit 1) where another file has it by now. */
export function takeName(option: string, part: string, given: string): void {
  const file = resolve(given);
  try {
    // A link is refused where the name is taken, which a change of name is not.
    linkSync(part, file);
  } catch (error) {
    if (codeOf(error) === 'EEXIST') requireNewFile(option, given);
    // File systems without links.
    renameSync(part, file);
  }
}
