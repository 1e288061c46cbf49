/**
 * The databases of the configuration that the state knows already, as what was kept of them says: nothing is asked and
 * nothing is written to find that out.
 */
import { DESTINATION_KINDS, type DestinationKind, withKind } from '../core/lines/dialect.ts';
import type { Sink } from '../core/ports.ts';
import type { KnownDestination } from '../core/state/quarantine.ts';
import type { DestinationOptions } from './destination.ts';

/** A database that can be sent to. */
export interface Reachable {
  /** Its number in the state. */
  readonly id: number;
  readonly name: string;
  readonly kind: DestinationKind;
  readonly sink: Sink;
}

/** Those that have been delivered to: of the others nothing is in quarantine, and nothing waits for them that is theirs. */
export function reachableOf(
  known: readonly KnownDestination[],
  configured: readonly DestinationOptions[],
): readonly Reachable[] {
  return configured.flatMap(({ sink, identity, kind = 'influxdb' }) => {
    const { name } = sink;
    const kinds = typeof kind === 'string' ? [kind] : DESTINATION_KINDS;
    for (const each of kinds) {
      const own = typeof kind === 'string' ? identity : withKind(identity, each);
      const found = known.find((one) => one.name === name && one.identity === own);
      if (found === undefined) continue;
      return [{ id: found.id, name, kind: each, sink: typeof kind === 'string' ? sink : kind.sinkFor(each) }];
    }
    return [];
  });
}
