/**
 * All queries of the dashboards in PromQL about the points, and a viewer who opens all of them.
 */

import { DAY_MS } from '../../../src/core/time.ts';
import { type Board, type Panel, queryOf, readBoards, shownPanels, VICTORIA_FOLDER } from './boards.ts';
import type { Frame } from './frames.ts';
import { looksOf } from './looks.ts';
import { openPromBoard } from './promql-viewer.ts';
import { expectShape } from './shapes.ts';
import type { Choose } from './viewer.ts';

export const VICTORIA_BOARDS = readBoards(VICTORIA_FOLDER);

/** A dashboard, by the last word of its uid. */
export function vmBoard(uid: string): Board {
  const found = VICTORIA_BOARDS.find((one) => one.uid === `tidemark-vm-${uid}`);
  if (found === undefined) throw new Error(`no dashboard ${uid}`);
  return found;
}

export function vmPanel(uid: string, title: string): Panel {
  const found = shownPanels(vmBoard(uid)).find((panel) => panel.title === title);
  if (found === undefined) throw new Error(`${uid} has no panel ${title}`);
  return found;
}

/** The queries of panels and variables, with where they stand; of variables what is in the function of Grafana. */
export const VICTORIA_QUERIES: readonly (readonly [where: string, expr: string])[] = VICTORIA_BOARDS.flatMap((one) => [
  ...shownPanels(one).flatMap(({ title, targets = [] }) =>
    targets.map(({ refId, expr = '' }) => [`${one.uid}: ${title} ${refId}`, expr] as const),
  ),
  ...one.templating.list.flatMap((variable) => {
    const query = queryOf(variable);
    if (query === null) return [];
    const inner = /^query_result\((.+)\)$/.exec(query)?.[1] ?? /^label_values\((.+), \w+\)$/.exec(query)?.[1] ?? '';
    return [[`${one.uid}: variable ${variable.name}`, inner] as const];
  }),
]);

interface Looking {
  readonly url: string;
  readonly nowMs: number;
  readonly choose?: Choose;
  readonly rangeMs?: number;
}

/**
 * Opens every dashboard and looks at every panel of it.
 *
 * @returns the frames by dashboard and panel.
 */
export async function lookAtAllProm({
  url,
  nowMs,
  choose,
  rangeMs = DAY_MS,
}: Looking): Promise<Map<string, readonly Frame[]>> {
  const seen = new Map<string, readonly Frame[]>();
  const range = { fromMs: nowMs - rangeMs, toMs: nowMs };
  for (const one of VICTORIA_BOARDS) {
    const viewer = await openPromBoard(one, { url, range, ...(choose === undefined ? {} : { choose }) });
    for (const [name, panel, scope] of looksOf(one, viewer)) {
      const frames = await viewer.look(panel, scope);
      await expectShape(panel, frames, range);
      seen.set(`${one.uid}: ${name}`, frames);
    }
  }
  return seen;
}
