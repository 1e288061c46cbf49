/** Queries a destination for the points of a range, with retries. */
import type { Interval } from '../../core/intervals.ts';
import type { Clock } from '../../core/ports.ts';
import type { PointSource, ReadProblem, TakePoint } from '../../core/state/verify.ts';
import { SECOND_MS } from '../../core/time.ts';

/** How long is waited before each further try. */
const REST_MS: readonly number[] = [SECOND_MS, 3 * SECOND_MS, 10 * SECOND_MS];

/**
 * Queries a destination for a range. A temporary failure repeats the query from the beginning of the range.
 *
 * @param begin creates the collector of the points, once for each attempt.
 * @returns the collector, or the problem.
 */
export async function queryPatiently<T extends object>(
  { source, clock }: { readonly source: PointSource; readonly clock: Clock },
  of: { readonly device: string } & Interval,
  begin: () => { readonly gathered: T; readonly take: TakePoint },
  signal: AbortSignal,
): Promise<T | ReadProblem> {
  for (let nth = 0; ; nth += 1) {
    const { gathered, take } = begin();
    const problem = await source.points(of, take, signal);
    if (problem === null) return gathered;
    const restMs = REST_MS[nth];
    if (problem.kind === 'refused' || restMs === undefined) return problem;
    await clock.sleep(restMs, signal);
  }
}
