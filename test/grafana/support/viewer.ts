/**
 * Somebody who looks at a dashboard: the lists of its variables, what is chosen, and what each panel is answered.
 */
import { type Board, type Panel, queryOf, type Target } from './boards.ts';
import { type Frame, framesOf, type Option, optionsOf, type Series } from './frames.ts';
import {
  ALL,
  type Choices,
  type Chosen,
  intervalOf,
  type Range,
  replaceMacros,
  replaceVariables,
} from './replacement.ts';

/** The width of the picture, in points of a screen. */
const SCREEN = 1900;
const COLUMNS = 24;

/** The address of the database. */
export interface Place {
  readonly url: string;
  readonly database: string;
}

/** The choice for a variable, given its list: without one, the default of Grafana. */
export type Choose = (variable: string, options: readonly Option[]) => string | readonly string[] | undefined;

export interface Viewer {
  readonly range: Range;
  readonly choices: Choices;
  readonly lists: ReadonlyMap<string, readonly Option[]>;
  /**
   * The frames of all queries of a panel.
   *
   * @param scoped for a panel that is repeated: the value of its variable.
   */
  look(panel: Panel, scoped?: string): Promise<Frame[]>;
  /** As InfluxDB would see it. */
  text(query: string, panel?: Panel, scoped?: ReadonlyMap<string, string>): string;
  ask(target: Pick<Target, 'refId' | 'resultFormat' | 'alias'>, text: string): Promise<Frame[]>;
}

/** Opens a dashboard: queries the lists of its variables, one after the other, as each may depend on those before. */
export async function openBoard(
  board: Board,
  { place, range, choose = () => undefined }: { place: Place; range: Range; choose?: Choose },
): Promise<Viewer> {
  const choices = new Map<string, Chosen>();
  const lists = new Map<string, readonly Option[]>();
  const ask: Viewer['ask'] = async ({ refId, resultFormat = 'time_series', alias }, text) =>
    framesOf(await probeInflux(place, text), { refId, resultFormat, ...(alias === undefined ? {} : { alias }) });
  for (const variable of board.templating.list) {
    const query = queryOf(variable);
    if (variable.type === 'custom') {
      const value = choose(variable.name, []) ?? String(variable.current?.value);
      choices.set(variable.name, { value, options: [] });
    }
    if (query === null) continue;
    const text = replaceMacros(replaceVariables(query, choices, range), range, 60_000);
    const options = optionsOf(await ask({ refId: 'list' }, text), variable.regex ?? '');
    const first = variable.includeAll ? ALL : (options[0]?.value ?? '');
    const value = choose(variable.name, options) ?? (variable.multi ? [first] : first);
    const values = options.map((option) => option.value);
    const all = variable.allValue === undefined ? {} : { allValue: variable.allValue };
    choices.set(variable.name, { value, options: values, ...all });
    lists.set(variable.name, options);
  }
  const text: Viewer['text'] = (query, panel, scoped) => {
    const own = new Map(choices);
    for (const [name, value] of scoped ?? []) own.set(name, { value, options: [value] });
    const room = panel === undefined ? SCREEN : roomOf(panel);
    return replaceMacros(replaceVariables(query, own, range), range, intervalOf(range, room, panel?.interval));
  };
  const look: Viewer['look'] = async (panel, scoped) => {
    const own = new Map(panel.repeat === undefined || scoped === undefined ? [] : [[panel.repeat, scoped]]);
    const frames: Frame[] = [];
    for (const target of panel.targets ?? []) {
      const alias = replaceVariables(target.alias ?? '', new Map(), range);
      frames.push(...(await ask({ ...target, alias }, text(target.query ?? '', panel, own))));
    }
    return frames;
  };
  return { range, choices, lists, look, text, ask };
}

/** How many points a panel has room for, unless it sets that itself. */
export function roomOf({ maxDataPoints, gridPos }: Panel): number {
  return maxDataPoints ?? Math.round((gridPos.w / COLUMNS) * SCREEN);
}

interface Answer {
  readonly error?: string;
  readonly results?: readonly { readonly error?: string; readonly series?: readonly Series[] }[];
}

/**
 * Runs a query as Grafana's server does: times in milliseconds.
 *
 * @throws Error with the query and the server's words.
 */
export async function probeInflux({ url, database }: Place, query: string): Promise<readonly Series[]> {
  const body = new URLSearchParams({ db: database, q: query, epoch: 'ms' });
  const answer = await fetch(`${url}/query`, { method: 'POST', body });
  const { error, results } = (await answer.json()) as Answer;
  const failure = error ?? results?.find((result) => result.error !== undefined)?.error;
  if (failure !== undefined) throw new Error(`${failure}: ${query}`);
  return results?.[0]?.series ?? [];
}
