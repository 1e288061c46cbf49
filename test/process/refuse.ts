import { openStore } from '../../src/store/store.ts';
import type { Stage } from './support.ts';

/** Puts lines into the quarantine of a state that nobody has open, as if the database had refused them. */
export function refuse(stage: Stage, lines: readonly string[]): void {
  const open = openStore(stage.dataDir);
  try {
    const [destination] = open.store.quarantine.destinations();
    const id = destination?.id ?? 0;
    const from = open.store.position(id, 'live');
    const refused = lines.map((line) => ({ line, message: 'field type conflict, as it was then' }));
    open.store.acknowledge({
      destinationId: id,
      lane: 'live',
      from,
      to: from,
      rejected: refused,
      missing: [],
      atMs: 1,
    });
  } finally {
    open.close();
  }
}
