/**
 * The file of a support bundle: it has its name only once it is whole, only its owner may read it, and it never takes the
 * place of another one.
 */
import { closeSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs';
import { resolve } from 'node:path';
import { codeOf, UserError } from '../core/faults.ts';
import type { Random } from '../core/ports.ts';
import { plainText } from '../core/text.ts';
import { takeName } from './open/new-file.ts';

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
    takeName('--bundle', part, given);
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
