/**
 * A state that is empty before a database that is not: its names of devices are gone, so that those which were
 * renamed would be written anew. Looked for once, before the first points go to a database, by one cheap query.
 *
 * Promises: only where the state was empty when it was opened; what the query fails by is nobody's trouble (a token may be
 * for writing alone) and holds nothing up for long; once points were accepted they are our own, and nothing is asked.
 */

import type { Observe } from '../core/events.ts';
import type { DestinationKind } from '../core/lines/dialect.ts';
import type { Sink } from '../core/ports.ts';
import { SECOND_MS } from '../core/time.ts';
import type { DestinationOptions } from '../delivery/destination.ts';
import type { InfluxSinkOptions } from '../influx/sink.ts';

/** No first write waits for longer than this. */
const LOOK_MS = 5 * SECOND_MS;

interface LookingBack {
  /** How each database is reached, by its name. */
  readonly places: readonly InfluxSinkOptions[];
  /** The workspace to look for; `null` where there is nothing to look for, as the state was not empty. */
  readonly workspace: () => string | null;
  readonly observe: Observe;
}

/** Lets a destination be looked at before its first write. */
export function lookingBack(to: DestinationOptions, parts: LookingBack): DestinationOptions {
  const { sink, kind } = to;
  if (typeof kind !== 'object') return { ...to, sink: lookingSink(sink, kind ?? 'influxdb', parts) };
  const sinkFor: typeof kind.sinkFor = (known) => lookingSink(kind.sinkFor(known), known, parts);
  return { ...to, kind: { ask: kind.ask, sinkFor } };
}

function lookingSink(sink: Sink, kind: DestinationKind, parts: LookingBack): Sink {
  let isDone = false;
  return {
    name: sink.name,
    write: async (lines, signal) => {
      if (!isDone) isDone = await look(sink.name, kind, parts, signal);
      const answer = await sink.write(lines, signal);
      if (answer.kind !== 'later' && answer.kind !== 'held') isDone = true;
      return answer;
    },
  };
}

/** @returns whether there is nothing more to find out. */
async function look(
  name: string,
  kind: DestinationKind,
  { places, workspace, observe }: LookingBack,
  signal: AbortSignal,
): Promise<boolean> {
  const place = places.find((each) => each.name === name);
  const tag = workspace();
  if (place === undefined || tag === null) return true;
  // Loaded for the one question of a life, and not at each start.
  const { createPointSource } = await import('../influx/point-source.ts');
  const source = createPointSource({ ...place, timeoutMs: Math.min(LOOK_MS, place.timeoutMs) }, kind, tag);
  const found = await source.hasAny(signal);
  if (found === true) observe({ type: 'destination-older', destination: name });
  return typeof found === 'boolean' || found.kind === 'refused';
}
