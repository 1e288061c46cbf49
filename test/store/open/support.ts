/** Opens states that are to be refused, and makes one with some content. */
import { UserError } from '../../../src/core/faults.ts';
import { openStore } from '../../../src/store/store.ts';
import { pageCommit, type Scratch } from '../support.ts';

/** The message, where opening is refused. */
export function refusal(directory: string): UserError {
  try {
    openStore(directory).close();
  } catch (error) {
    if (error instanceof UserError) return error;
    throw error;
  }
  throw new Error('it was opened');
}

/** A state with some content in the directory, closed. */
export function fill(place: Scratch): void {
  const { store, close } = openStore(place.path);
  store.pinWorkspace({ apiId: 'ws', tag: 'ws' });
  store.commitPage(pageCommit({ lines: ['m v=1 1'], firstNs: 1n, lastNs: 1n }));
  close();
}
