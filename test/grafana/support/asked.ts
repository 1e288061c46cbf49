/**
 * All queries of the dashboards and the alert rules to an InfluxDB, and a viewer who opens all of them.
 */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { DAY_MS, MINUTE_MS } from '../../../src/core/time.ts';
import { asksInflux, type Board, type Panel, queryOf, readBoards, shownPanels } from './boards.ts';
import type { Frame } from './frames.ts';
import { looksOf } from './looks.ts';
import { replaceMacros } from './replacement.ts';
import { expectShape } from './shapes.ts';
import { type Choose, openBoard, type Place, probeInflux } from './viewer.ts';

/** A repeated panel is looked at so often at most. */
const MOST_REPEATS = 40;

export const INFLUX_BOARDS = readBoards().filter(asksInflux);

/** A dashboard, by the last word of its uid. */
export function board(uid: string): Board {
  const found = INFLUX_BOARDS.find((one) => one.uid === `tidemark-${uid}`);
  if (found === undefined) throw new Error(`no dashboard ${uid}`);
  return found;
}

export function panelOf(uid: string, title: string): Panel {
  const found = shownPanels(board(uid)).find((panel) => panel.title === title);
  if (found === undefined) throw new Error(`${uid} has no panel ${title}`);
  return found;
}

interface Rule {
  readonly title: string;
  readonly data: readonly {
    readonly refId: string;
    readonly relativeTimeRange: { from: number };
    readonly model: { readonly query?: string };
  }[];
}

function rules(): readonly Rule[] {
  const file = parse(readFileSync('grafana/provisioning/alerting/tidemark.yaml', 'utf8'));
  return (file as { groups: { rules: Rule[] }[] }).groups.flatMap((group) => group.rules);
}

/** All queries to InfluxDB, with their places. */
export const QUERIES: readonly (readonly [where: string, query: string])[] = [
  ...INFLUX_BOARDS.flatMap((one) => [
    ...shownPanels(one).flatMap(({ title, targets = [] }) =>
      targets.map(({ refId, query = '' }) => [`${one.uid}: ${title} ${refId}`, query] as const),
    ),
    ...one.templating.list.flatMap((variable) => {
      const query = queryOf(variable);
      return query === null ? [] : [[`${one.uid}: variable ${variable.name}`, query] as const];
    }),
    ...one.annotations.list.map(({ name, target }) => [`${one.uid}: annotation ${name}`, target.query ?? ''] as const),
  ]),
  ...rules().flatMap(({ title, data }) =>
    data.flatMap(({ refId, model }) =>
      model.query === undefined ? [] : [[`rule ${title} ${refId}`, model.query] as const],
    ),
  ),
];

export interface Looking {
  readonly place: Place;
  readonly nowMs: number;
  readonly choose?: Choose;
  readonly rangeMs?: number;
}

/**
 * Opens every dashboard and looks at every panel of it.
 *
 * @returns the frames by dashboard and panel.
 */
export async function lookAtAll({
  place,
  nowMs,
  choose,
  rangeMs = DAY_MS,
}: Looking): Promise<Map<string, readonly Frame[]>> {
  const seen = new Map<string, readonly Frame[]>();
  const range = { fromMs: nowMs - rangeMs, toMs: nowMs };
  for (const one of INFLUX_BOARDS) {
    const viewer = await openBoard(one, { place, range, ...(choose === undefined ? {} : { choose }) });
    for (const [name, panel, scoped] of looksOf(one, viewer, MOST_REPEATS)) {
      const frames = await viewer.look(panel, scoped);
      await expectShape(panel, frames, range);
      seen.set(`${one.uid}: ${name}`, frames);
    }
    for (const { target } of one.annotations.list) {
      const text = viewer.text(target.query ?? '');
      seen.set(`${one.uid}: annotations`, await viewer.ask({ refId: 'Anno', resultFormat: 'table' }, text));
    }
  }
  return seen;
}

/**
 * Runs the queries of the alert rules.
 *
 * @returns how many lines each is answered.
 */
export async function askRules(place: Place, nowMs: number): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  for (const { title, data } of rules()) {
    for (const { refId, relativeTimeRange, model } of data.filter((one) => one.model.query !== undefined)) {
      const range = { fromMs: nowMs - relativeTimeRange.from * 1000, toMs: nowMs };
      const query = replaceMacros(model.query ?? '', range, MINUTE_MS);
      if (query.includes('$')) throw new Error(`a rule has no variables: ${query}`);
      found.set(refId === 'A' ? title : `${title} ${refId}`, (await probeInflux(place, query)).length);
    }
  }
  return found;
}
