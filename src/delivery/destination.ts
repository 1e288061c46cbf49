/**
 * Which destination a configured database is: known by kind, URL, organisation and bucket, announced when it is a new
 * one, and asked once what it is where nobody has said.
 *
 * Promise: nothing is sent before the kind is known, since what a line says depends on it; what was learnt is kept in
 * the state, as the destination's identity.
 */

import type { Observe } from '../core/events.ts';
import { LATER_HINT } from '../core/faults.ts';
import { DESTINATION_KINDS, type DestinationKind, describeIdentity, withKind } from '../core/lines/dialect.ts';
import type { Sink, UnknownServer, WriteAnswer } from '../core/ports.ts';
import type { DestinationState } from '../core/state/log.ts';
import type { KnownDestination } from '../core/state/quarantine.ts';
import type { Store } from '../core/state/state.ts';

/** How a destination is known, and how it is served. */
export interface DestinationOptions {
  readonly sink: Sink;
  /** Kind, URL, organisation and bucket (`identityOf`): change one and it is another destination. */
  readonly identity: string;
  readonly batchLines: number;
  /** How long one write may take, in ms. */
  readonly timeoutMs?: number;
  /**
   * What kind of database it is; left out: InfluxDB. Where it is not known, `identity` is of the kind `auto`, and
   * `sink` is not used.
   */
  readonly kind?: DestinationKind | UnknownServer;
}

/** A destination that can be delivered to. */
export interface Served {
  readonly kind: DestinationKind;
  readonly sink: Sink;
}

export interface Destination {
  /** Its number in the state; another one may take its place while the kind is being learnt. */
  id(): number;
  /** Finds out what kind it is, asking the database where nothing else says so. @returns why that is not known. */
  open(signal: AbortSignal): Promise<Served | Blocked>;
}

/** Why a destination takes nothing for now. */
export interface Blocked {
  readonly words: string;
  /** What a person can do; empty where waiting is all. */
  readonly hint: string;
  /** How long the server asked to wait, in milliseconds; `null` where it did not. */
  readonly waitMs: number | null;
}

/** What an answer about the destination as a whole says. */
export function blockedBy(answer: Extract<WriteAnswer, { readonly kind: 'held' | 'later' }>): Blocked {
  const { words } = answer;
  return answer.kind === 'held'
    ? { words, hint: answer.hint, waitMs: null }
    : { words, hint: LATER_HINT, waitMs: answer.waitMs };
}

/** Opens a destination in the state. */
export function openDestination(
  { store, observe }: { store: Store; observe: Observe },
  { sink, identity, kind = 'influxdb' }: DestinationOptions,
): Destination {
  const { name } = sink;
  const announce = (state: DestinationState, previous: string | null): void => {
    if (!state.created && previous === null) return;
    const before = previous === null || isUnknown(previous) ? null : describeIdentity(previous);
    const points = store.backlog(state.id).pendingLines;
    observe({ type: 'destination-new', destination: name, known: !state.created, before, points });
  };
  const openKnown = (found: string): DestinationState => {
    const state = store.destination(name, found);
    announce(state, state.previous);
    return state;
  };

  if (typeof kind === 'string') {
    const { id } = openKnown(identity);
    const served = { kind, sink };
    return { id: () => id, open: () => Promise.resolve(served) };
  }
  const known = store.knownIdentity(
    name,
    DESTINATION_KINDS.map((each) => withKind(identity, each)),
  );
  if (known !== null) {
    const { id } = openKnown(known);
    const found = DESTINATION_KINDS.find((each) => withKind(identity, each) === known) ?? 'influxdb';
    const served = { kind: found, sink: kind.sinkFor(found) };
    return { id: () => id, open: () => Promise.resolve(served) };
  }
  const unknown = store.destination(name, identity);
  let { id } = unknown;
  let served: Served | null = null;
  return {
    id: () => id,
    open: async (signal) => {
      if (served !== null) return served;
      const answer = await kind.ask(signal);
      if (answer.kind !== 'known') return blockedBy(answer);
      const state = store.identify(id, withKind(identity, answer.server));
      id = state.id;
      served = { kind: answer.server, sink: kind.sinkFor(answer.server) };
      observe({ type: 'destination-kind', destination: name, kind: answer.server });
      announce(state, unknown.previous);
      return served;
    },
  };
}

/** Whether an identity is of a database that never said what it is: nothing was sent to it. */
function isUnknown(identity: string): boolean {
  return identity.startsWith('["auto"');
}

/** A database that can be sent to. */
export interface Reachable {
  /** Its number in the state. */
  readonly id: number;
  readonly name: string;
  readonly kind: DestinationKind;
  readonly sink: Sink;
}

/**
 * The configured databases that have been delivered to, as what was kept of them says: nothing is asked and nothing is
 * written to find that out. Of the others nothing is in quarantine, and nothing waits for them that is theirs.
 */
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
