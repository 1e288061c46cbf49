/**
 * Warns when a new state meets a database that already has points of the workspace: the names of renamed devices are
 * lost with the old state, so their points would be written a second time under new names. One cheap query before the
 * first write to each database finds out.
 *
 * Promises: the query is made only if the state was empty when it was opened. Its failure stops nothing (a token may
 * allow only writing), and it delays the first write by a few seconds at most. After the first accepted points no query
 * is made any more, because the points are our own.
 */

import type { Observe } from '../core/events.ts';
import type { DestinationKind } from '../core/lines/dialect.ts';
import type { Sink } from '../core/ports.ts';
import { SECOND_MS } from '../core/time.ts';
import type { DestinationOptions } from '../delivery/destination.ts';
import type { InfluxSinkOptions } from '../influx/sink.ts';

/** The longest delay of a first write. */
const QUERY_MS = 5 * SECOND_MS;

interface OldPointsParts {
  /** How to connect to each database. */
  readonly databases: readonly InfluxSinkOptions[];
  /** The workspace to search for; `null` if the state was not empty, so that there is nothing to search for. */
  readonly workspace: () => string | null;
  readonly observe: Observe;
}

/** Returns the destination with a check for old points before its first write. */
export function checkingOldPoints(to: DestinationOptions, parts: OldPointsParts): DestinationOptions {
  const { sink, kind } = to;
  if (typeof kind !== 'object') return { ...to, sink: checkingSink(sink, kind ?? 'influxdb', parts) };
  const sinkFor: typeof kind.sinkFor = (known) => checkingSink(kind.sinkFor(known), known, parts);
  return { ...to, kind: { ask: kind.ask, sinkFor } };
}

function checkingSink(sink: Sink, kind: DestinationKind, parts: OldPointsParts): Sink {
  let isDone = false;
  return {
    name: sink.name,
    write: async (lines, signal) => {
      if (!isDone) isDone = await checkOldPoints(sink.name, kind, parts, signal);
      const answer = await sink.write(lines, signal);
      if (answer.kind !== 'later' && answer.kind !== 'blocked') isDone = true;
      return answer;
    },
  };
}

/**
 * Queries a database for points of the workspace.
 *
 * @returns whether the question is answered, so that it is not repeated
 */
async function checkOldPoints(
  name: string,
  kind: DestinationKind,
  { databases, workspace, observe }: OldPointsParts,
  signal: AbortSignal,
): Promise<boolean> {
  const database = databases.find((each) => each.name === name);
  const tag = workspace();
  if (database === undefined || tag === null) return true;
  // Loaded for this one query only, and not at each start.
  const { createPointSource } = await import('../influx/point-source.ts');
  const source = createPointSource({ ...database, timeoutMs: Math.min(QUERY_MS, database.timeoutMs) }, kind, tag);
  const found = await source.hasAny(signal);
  if (found === true) observe({ type: 'destination-older', destination: name });
  return typeof found === 'boolean' || found.kind === 'refused';
}
