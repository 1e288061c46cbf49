/**
 * Somebody who looks at a dashboard in PromQL: the lists of its variables, what is chosen, and what each panel is
 * answered.
 */
import { type Board, type Panel, queryOf, type Target, type Variable } from './boards.ts';
import { type Frame, type Option, optionsFrom } from './frames.ts';
import { lineFrames, type PromSeries, resultText, tableFrames } from './promql-frames.ts';
import { replacePromql, stepOf } from './promql-text.ts';
import { ALL, type Choices, type Chosen, type Range, replaceVariables } from './replacement.ts';
import { type Choose, roomOf } from './viewer.ts';

export interface PromViewer {
  readonly range: Range;
  readonly lists: ReadonlyMap<string, readonly Option[]>;
  /**
   * The frames of all queries of a panel.
   *
   * @param scoped for a panel that is repeated: the value of its variable.
   */
  look(panel: Panel, scoped?: string): Promise<Frame[]>;
}

interface Opening {
  /** The address of a server with the API of Prometheus. */
  readonly url: string;
  readonly range: Range;
  readonly choose?: Choose;
}

/** Opens a dashboard: queries the lists of its variables, one after the other, as each may depend on those before. */
export async function openPromBoard(
  board: Board,
  { url, range, choose = () => undefined }: Opening,
): Promise<PromViewer> {
  const choices = new Map<string, Chosen>();
  const lists = new Map<string, readonly Option[]>();
  const plain = new Set(board.templating.list.filter((one) => !one.multi && !one.includeAll).map(({ name }) => name));
  const put = (text: string, own: Choices, stepMs: number): string =>
    replacePromql(text, { choices: own, range, stepMs, plain });
  for (const variable of board.templating.list) {
    const query = queryOf(variable);
    if (variable.type === 'custom') {
      const value = choose(variable.name, []) ?? String(variable.current?.value);
      choices.set(variable.name, { value, options: [] });
    }
    if (query === null) continue;
    const options = optionsFrom(await listed(url, range, put(query, choices, 60_000)), variable.regex ?? '');
    lists.set(variable.name, options);
    choices.set(variable.name, chosenOf(variable, options, choose));
  }
  const named = (target: Target): Target => ({
    ...target,
    legendFormat: replaceVariables(target.legendFormat ?? '', new Map(), range),
  });
  const look: PromViewer['look'] = async (panel, scoped) => {
    const own = new Map(choices);
    if (panel.repeat !== undefined && scoped !== undefined) own.set(panel.repeat, { value: scoped, options: [scoped] });
    const stepMs = stepOf(range, roomOf(panel), panel.interval);
    const answers: (readonly [target: Target, series: readonly PromSeries[]])[] = [];
    for (const target of panel.targets ?? []) {
      const text = put(target.expr ?? '', own, stepMs);
      if (/\$(?:\{|__|[a-z])/.test(text.replace(/`[^`]*`/g, ''))) throw new Error(`something is not put in: ${text}`);
      answers.push([
        target,
        await (target.instant === true ? present(url, range, text) : over(url, range, text, stepMs)),
      ]);
    }
    const isTable = ([{ format }]: (typeof answers)[number]): boolean => format === 'table';
    const lines = answers
      .filter((one) => !isTable(one))
      .flatMap(([target, series]) => lineFrames(series, named(target), target.instant === true ? undefined : stepMs));
    return [...lines, ...tableFrames(answers.filter(isTable).map(([{ refId }, series]) => [refId, series] as const))];
  };
  return { range, lists, look };
}

function chosenOf(variable: Variable, options: readonly Option[], choose: Choose): Chosen {
  const first = variable.includeAll ? ALL : (options[0]?.value ?? '');
  const value = choose(variable.name, options) ?? (variable.multi ? [first] : first);
  const all = variable.allValue === undefined ? {} : { allValue: variable.allValue };
  return { value, options: options.map((option) => option.value), ...all };
}

/** The texts of a variable's list, by the two functions that the dashboards use. */
async function listed(url: string, range: Range, query: string): Promise<string[]> {
  const result = /^query_result\((.+)\)\s*$/.exec(query)?.[1];
  if (result !== undefined) return (await present(url, range, result)).map(resultText);
  const [, series = '', label = ''] = /^label_values\((?:(.+),\s*)?([a-zA-Z_]\w*)\)\s*$/.exec(query) ?? [];
  if (label === '') throw new Error(`no such list: ${query}`);
  const span = { start: String(range.fromMs / 1000), end: String(range.toMs / 1000) };
  const asked = new URLSearchParams({ 'match[]': series, ...span });
  return await answered(`${url}/api/v1/label/${label}/values?${asked}`, query);
}

async function present(url: string, { toMs }: Range, query: string): Promise<readonly PromSeries[]> {
  const body = new URLSearchParams({ query, time: String(toMs / 1000) });
  return (await answered<{ result: PromSeries[] }>(`${url}/api/v1/query`, query, body)).result;
}

/** Grafana queries at multiples of the step. */
async function over(
  url: string,
  { fromMs, toMs }: Range,
  query: string,
  stepMs: number,
): Promise<readonly PromSeries[]> {
  const [start, end] = [fromMs, toMs].map((ms) => String((Math.floor(ms / stepMs) * stepMs) / 1000));
  const body = new URLSearchParams({ query, start: start ?? '', end: end ?? '', step: String(stepMs / 1000) });
  return (await answered<{ result: PromSeries[] }>(`${url}/api/v1/query_range`, query, body)).result;
}

/** @throws Error with the query and the server's words. */
async function answered<T>(address: string, query: string, body?: URLSearchParams): Promise<T> {
  const answer = await fetch(address, body === undefined ? {} : { method: 'POST', body });
  const { status, error, data } = (await answer.json()) as { status: string; error?: string; data: T };
  if (status !== 'success') throw new Error(`${error}: ${query}`);
  return data;
}
