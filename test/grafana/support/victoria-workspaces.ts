/**
 * VictoriaMetrics as the real daemon fills them, for the queries of the dashboards in PromQL.
 */

import { destinationAt, victoriaPlace } from '../../commands/verify/support.ts';
import type { Bench } from '../../support/bench.ts';
import { startVictoria, type Victoria } from '../../support/victoria.ts';
import type { Choose } from './viewer.ts';
import { type Filled, fill } from './workspaces.ts';

/** A VictoriaMetrics with what a daemon wrote into it. */
export interface FilledVictoria extends AsyncDisposable {
  readonly victoria: Victoria;
  readonly filled: Filled;
}

/** Starts one and lets the daemon live in a workspace for a while. */
export async function fillVictoria(
  bench: Bench,
  ...[world, options]: [Parameters<typeof fill>[1], object?]
): Promise<FilledVictoria> {
  const victoria = await startVictoria();
  const filled = await fill(bench, world, {
    ...options,
    destinationsOf: (rig) => [destinationAt(rig, victoriaPlace(victoria))],
  });
  await victoria.exported('{device_id="none"}');
  return {
    victoria,
    filled,
    [Symbol.asyncDispose]: async () => {
      filled[Symbol.dispose]();
      await victoria[Symbol.asyncDispose]();
    },
  };
}

/** Chooses devices by their ids. */
export const choosing =
  (...deviceIds: string[]): Choose =>
  (variable) =>
    variable === 'device' ? deviceIds : undefined;
