/**
 * The quarantine as a second process reads it: no lock, nothing written, and as one moment shows it.
 */

import { createQuarantineReader, type QuarantineReader } from './delivery/quarantine.ts';
import { noState, readOnce } from './open/read-only.ts';
import { hasShape } from './shape.ts';

/**
 * Reads the quarantine of the state in a directory.
 *
 * @throws UserError (exit 1) where there is none, or one of another version.
 */
export function readQuarantine<T>(directory: string, read: (quarantine: QuarantineReader) => T): T {
  const seen = readOnce(directory, (db, path) =>
    hasShape(db, path) ? { found: read(createQuarantineReader(db)) } : null,
  );
  if (seen === null) throw noState(directory);
  return seen.found;
}
