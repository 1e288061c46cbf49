/**
 * A verdict in words, for scenarios that tell what is wrong.
 */
import type { Verdict } from './judge.ts';

/** What is wrong; an empty list where nothing is, and there were more than `least` points to judge by. */
export function complaints({ missing, invented, expected }: Verdict, least: number): string[] {
  const few = expected <= least ? [`the judge expected only ${expected} points`] : [];
  const some = (label: string, list: readonly string[]): string[] =>
    list.length === 0 ? [] : [`${list.length} ${label}, such as ${list.slice(0, 3).join(' | ')}`];
  return [...few, ...some('missing', missing), ...some('invented', invented)];
}
