/**
 * Files that only their owner may read: the state holds the customer's data (design, part 3).
 */
import { closeSync, openSync } from 'node:fs';
import { codeOf } from '../core/faults.ts';

/**
 * Makes an empty file with mode 0600 where there is none, so that at no moment anybody else can open it.
 *
 * One that exists is not even opened: closing it would take SQLite's locks on it away, as POSIX has it.
 */
export function createPrivate(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}
