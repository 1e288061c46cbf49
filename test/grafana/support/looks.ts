/**
 * The visible content of a dashboard.
 */
import { type Board, type Panel, shownPanels } from './boards.ts';
import type { Viewer } from './viewer.ts';

/** A panel by the name that it is shown under; of a repeated one the value that it is repeated for. */
export type Look = readonly [name: string, panel: Panel, scoped?: string];

/** Each panel once, and repeated ones once for each value of their variable, or for so many of them. */
export function looksOf(
  one: Board,
  { lists }: Pick<Viewer, 'lists'>,
  mostRepeats = Number.POSITIVE_INFINITY,
): readonly Look[] {
  return shownPanels(one).flatMap((panel): Look[] => {
    if (panel.repeat === undefined) return [[panel.title, panel]];
    const values = (lists.get(panel.repeat) ?? []).map(({ value }) => value);
    return values.slice(0, mostRepeats).map((value) => [`${panel.title} ${value}`, panel, value]);
  });
}
