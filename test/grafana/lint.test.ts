/**
 * The rules of Grafana's own dashboard-linter (github.com/grafana/dashboard-linter, docs/rules) that apply, implemented
 * here for our JSON, because that program is not available everywhere. Those that do not apply: `job` and `instance` in
 * every query (points of devices have neither, and one Tidemark is one instance), Loki.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { SOURCES } from '../../grafana/source/layout.ts';
import { METRICS, PER_DEVICE } from '../../src/observe/metrics-table.ts';
import { QUERIES } from './support/asked.ts';
import { type Board, FOLDER, type Panel, queryOf, readBoards, shownPanels, VICTORIA_FOLDER } from './support/boards.ts';

const BOARDS = [FOLDER, VICTORIA_FOLDER].flatMap((folder) => readBoards(folder));

/** A counter: its raw value shows how long a process has been running. */
const COUNTERS: readonly string[] = Object.entries({ ...METRICS, ...PER_DEVICE }).flatMap(([name, { kind }]) => {
  if (kind === 'histogram') return ['_bucket', '_sum', '_count'].map((end) => `${name}${end}`);
  return kind === 'counter' ? [name] : [];
});

/** A rule: what of a dashboard breaks it, in words. */
type Rule = (board: Board) => string[];

function eachPanel(broken: (panel: Panel, board: Board) => boolean): Rule {
  return (board) =>
    shownPanels(board)
      .filter((panel) => broken(panel, board))
      .map(({ id, title }) => `${id} ${title}`);
}

function eachExpr(broken: (expr: string) => boolean): Rule {
  return (board) =>
    shownPanels(board).flatMap(({ title, targets = [] }) =>
      targets
        .filter(({ expr }) => expr !== undefined && broken(expr))
        .map(({ refId, expr }) => `${title} ${refId}: ${expr}`),
    );
}

/** The kinds of panels with one unit for all numbers; in a table each column has its own. */
function unitOf({ fieldConfig }: Panel): unknown {
  return fieldConfig?.defaults['unit'];
}

/** Whether a source is the one that the viewer chooses, of the type of the dashboard, or one with a fixed uid. */
function isNamed(source: { type: string; uid: string } | undefined, board: Board): boolean {
  const choice = board.templating.list.find(({ type }) => type === 'datasource');
  if (source === undefined) return false;
  if (source.uid === `$\{${choice?.name}}`) return choice?.query === source.type;
  return Object.values(SOURCES).some(({ uid, type }) => uid === source.uid && type === source.type);
}

/** The functions that want a counter, and what each is given. */
function rates(expr: string): { readonly metric: string; readonly span: string }[] {
  return [...expr.matchAll(/\b(?:rate|increase|irate)\(([a-zA-Z_]\w*)(?:\{[^}]*\})?\[([^\]]*)\]/g)].map(
    ([, metric = '', span = '']) => ({ metric, span }),
  );
}

function hasBareCounter(expr: string): boolean {
  return COUNTERS.some((name) => {
    const shown = [...expr.matchAll(new RegExp(`\\b${name}\\b`, 'g'))].length;
    return shown > rates(expr).filter(({ metric }) => metric === name).length;
  });
}

const RULES: Readonly<Record<string, Rule>> = {
  'every panel has a title and a description': eachPanel(
    ({ title, description = '' }) => title.trim() === '' || description.trim() === '',
  ),
  'every panel has a unit': eachPanel((panel) => typeof unitOf(panel) !== 'string' || unitOf(panel) === ''),
  'every panel has targets, each with a query and a name of its own': eachPanel(({ targets = [] }) => {
    const names = targets.map(({ refId }) => refId);
    return (
      targets.length === 0 ||
      new Set(names).size !== names.length ||
      targets.some(({ query = '', expr = '' }) => query + expr === '')
    );
  }),
  'every panel, target, variable and annotation names its data source': (board) => [
    ...eachPanel((panel) => !isNamed(panel.datasource, board))(board),
    ...eachPanel(({ targets = [] }) => targets.some(({ datasource }) => !isNamed(datasource, board)))(board),
    ...board.templating.list
      .filter((one) => one.type === 'query' && !isNamed(one.datasource, board))
      .map(({ name }) => `variable ${name}`),
    ...board.annotations.list
      .filter(({ datasource }) => !isNamed(datasource, board))
      .map(({ name }) => `annotation ${name}`),
  ],
  'the data source is a variable, called so': (board) => {
    const [first] = board.templating.list;
    const isRight =
      first?.type === 'datasource' &&
      /^(?:prometheus_|victoria_)?datasource$/.test(first.name) &&
      first.label === 'Data source';
    return isRight ? [] : ['the first variable'];
  },
  'variables with a query run it again when the range changes, and have a label': (board) =>
    board.templating.list
      .filter((one) => queryOf(one) !== null && (one.refresh !== 2 || (one.label ?? '') === ''))
      .map(({ name }) => name),
  'the dashboard is read-only': (board) => (board.editable === false ? [] : ['editable']),
  'rates are over $__rate_interval': eachExpr((expr) => rates(expr).some(({ span }) => span !== '$__rate_interval')),
  'counters are shown as rates': eachExpr(hasBareCounter),
  'rates are of counters': eachExpr((expr) => rates(expr).some(({ metric }) => !COUNTERS.includes(metric))),
};

describe.each(Object.entries(RULES))('%s', (_, rule) => {
  test.each(BOARDS.map((board) => [board.uid, board] as const))('%s', (__, board) => {
    expect(rule(board)).toEqual([]);
  });
});

test('there are counters, and rates of them', () => {
  expect(COUNTERS.length).toBeGreaterThan(10);
  const asked = BOARDS.flatMap((board) => shownPanels(board).flatMap(({ targets = [] }) => targets));
  expect(asked.flatMap(({ expr = '' }) => rates(expr)).length).toBeGreaterThan(10);
});

/** A dashboard with a panel of it changed. */
function spoilt(change: (panel: Panel) => Panel): Board {
  const board = BOARDS.find(({ uid }) => uid === 'tidemark-sync');
  if (board === undefined) throw new Error('no dashboard');
  return { ...board, panels: board.panels.map((panel) => (panel.type === 'row' ? panel : change(panel))) };
}

const withExpr = (expr: string): Board =>
  spoilt((panel) => ({ ...panel, targets: (panel.targets ?? []).map((target) => ({ ...target, expr })) }));

test.each([
  ['every panel has a title and a description', spoilt((panel) => ({ ...panel, description: ' ' }))],
  ['every panel has a unit', spoilt(({ fieldConfig: _, ...panel }) => panel)],
  ['every panel has targets, each with a query and a name of its own', spoilt((panel) => ({ ...panel, targets: [] }))],
  [
    'every panel, target, variable and annotation names its data source',
    spoilt((panel) => ({ ...panel, datasource: { type: 'prometheus', uid: 'another' } })),
  ],
  ['rates are over $__rate_interval', withExpr('rate(tidemark_api_requests_total[5m])')],
  ['counters are shown as rates', withExpr('sum(tidemark_api_requests_total)')],
  ['rates are of counters', withExpr('rate(tidemark_ready[$__rate_interval])')],
] as const)('the rule "%s" finds what breaks it', (name, board) => {
  expect(RULES[name]?.(board).length).toBeGreaterThan(0);
});

/**
 * Shapes of InfluxQL that InfluxDB 3 Core 3.6.0 refused once its data was in Parquet files (seen by hand): the newest
 * point of each group by a tag of which the query wants one value, and an aggregate by time over the last values that a
 * subquery picks by time.
 */
function isRefusedBy3(query: string): boolean {
  const { select, where, by, tail, inner } = partsOf(query);
  const isNewest = /\bORDER BY time DESC\b.*\bLIMIT 1$/.test(tail);
  // A condition among alternatives, in parentheses, does not count.
  const isOneOf = (tag: string): boolean =>
    where.split(/ AND /i).some((each) => /^(\w+) (?:=~|=) /.exec(each)?.[1] === tag);
  if (inner === null) return isNewest && by.some(isOneOf);
  const picked = partsOf(inner);
  const hasTime = (keys: readonly string[]): boolean => keys.some((key) => key.startsWith('time('));
  // Over the same groups it was answered.
  const isCoarser = hasTime(by) && hasTime(picked.by) && by.toSorted().join() !== picked.by.toSorted().join();
  return (isCoarser && /\w\(/.test(select) && /\blast\(/.test(picked.select)) || isRefusedBy3(inner);
}

/** The clauses of a query with names unquoted, and the subquery that it reads; `null` for none. */
function partsOf(query: string) {
  const text = query.replaceAll(/"(\w+)"/g, '$1').trim();
  const open = /\bFROM \(/i.exec(text);
  const end = open === null ? 0 : closing(text, open.index + open[0].length - 1);
  const inner = open === null ? null : text.slice(open.index + open[0].length, end);
  const rest = open === null ? text : text.slice(end + 1);
  const [, keys = '', tail = ''] =
    /\bGROUP BY (.*?)((?: fill\(| ORDER BY | LIMIT | SLIMIT | tz\().*)?$/i.exec(rest) ?? [];
  return {
    select: /^SELECT (.*?) FROM\b/i.exec(text)?.[1] ?? '',
    where: /\bWHERE (.*?)(?: GROUP BY | ORDER BY |$)/i.exec(rest)?.[1] ?? '',
    // Not at the comma within time(2h, 5ms).
    by: keys.split(/,(?![^(]*\))/).map((key) => key.trim().replaceAll(/\s*,\s*/g, ',')),
    tail,
    inner,
  };
}

/** Where the parenthesis that opens at `from` closes. */
function closing(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === '(') depth += 1;
    if (text[at] === ')') depth -= 1;
    if (depth === 0) return at;
  }
  return text.length;
}

describe('queries that InfluxDB 3 refuses', () => {
  test.each([
    'SELECT online FROM device WHERE time > 1 AND device_id =~ /^(a)$/ GROUP BY device_id ORDER BY time DESC LIMIT 1',
    "SELECT online FROM device WHERE device_id = 'a' AND time > 1 GROUP BY device_id ORDER BY time DESC LIMIT 1",
    'SELECT sum(o) FROM (SELECT last(online) AS o FROM device WHERE time > 1 GROUP BY time(2h, 5ms), device_id fill(none)) WHERE time > 1 GROUP BY time(2h, 5ms) fill(null)',
    'SELECT sum(o) FROM (SELECT last(online) AS o FROM device WHERE time > 1 GROUP BY time(2h), device_id) WHERE time > 1 GROUP BY time(2h)',
    'SELECT sum(o) FROM (SELECT max(lag) AS lag, last(online) AS o FROM device WHERE time > 1 GROUP BY time(2h), device_id fill(none)) WHERE time > 1 GROUP BY time(2h) fill(null)',
    'SELECT sum(o) FROM (SELECT last(online) AS o FROM device WHERE time > 1 GROUP BY device_id, time(2h) fill(none)) WHERE time > 1 GROUP BY time(2h) fill(null)',
    'SELECT online FROM device WHERE time > 1 AND device_id =~ /^(a)$/ GROUP BY "device_id" ORDER BY time DESC LIMIT 1',
    'SELECT online FROM device WHERE "device_id" = \'a\' GROUP BY device_name, "device_id" ORDER BY time DESC LIMIT 1',
  ])('%s', (query) => {
    expect(isRefusedBy3(query)).toBe(true);
  });

  test.each([
    // Answered: the newest of all devices, the last of one, and an aggregate over the same groups.
    'SELECT online FROM device WHERE time > 1 GROUP BY device_id ORDER BY time DESC LIMIT 1',
    "SELECT online FROM device WHERE time > 1 AND (device_id = 'a' OR device_id = 'b') GROUP BY device_id ORDER BY time DESC LIMIT 1",
    "SELECT last(online) FROM device WHERE time > 1 AND device_id = 'a' GROUP BY device_id",
    'SELECT sum(o) FROM (SELECT last(online) AS o FROM device WHERE time > 1 GROUP BY time(2h, 5ms), device_id fill(none)) WHERE time > 1 GROUP BY device_id, time(2h, 5ms) fill(null)',
    'SELECT sum(o) FROM (SELECT last(online) AS o FROM device WHERE time > 1 GROUP BY device_id)',
  ])('not: %s', (query) => {
    expect(isRefusedBy3(query)).toBe(false);
  });

  test('are in no panel, variable, annotation or alert rule', () => {
    const queries = QUERIES.filter(([, query]) => query.startsWith('SELECT'));
    expect(queries.length).toBeGreaterThan(80);
    expect(queries.filter(([, query]) => isRefusedBy3(query))).toEqual([]);
  });
});

/** The most queries over which one query of `text` goes. */
function sourcesOf(text: string): number {
  const counts = [...text.matchAll(/\bFROM \(/g)].map(({ index, 0: found }) => {
    let [count, end] = [1, closing(text, index + found.length - 1)];
    while (text.startsWith(', (', end + 1)) [count, end] = [count + 1, closing(text, end + 3)];
    return count;
  });
  return Math.max(0, ...counts);
}

test('no query applies three more, group by group: with 2,000 devices an InfluxDB spends most of a panel on that', () => {
  expect(
    sourcesOf('SELECT a FROM (SELECT b FROM c), (SELECT d FROM (SELECT e FROM f), (SELECT g FROM h)), (SELECT i)'),
  ).toBe(3);
  const most = QUERIES.filter(([, query]) => sourcesOf(query) > 2).map(([where]) => where);
  expect(most).toEqual([]);
});

/** The queries that an InfluxDB 3 Core 3.6.0 answered over data in Parquet files, by hand with an earlier build. */
const RUN: readonly string[] = JSON.parse(readFileSync(join(import.meta.dirname, 'run-on-influxdb3.json'), 'utf8'));

test('docs/databases.md lists the queries that were run on InfluxDB 3', () => {
  const asked = new Set(QUERIES.map(([, query]) => query));
  expect(RUN.filter((query) => !asked.has(query))).toEqual([]);
  const docs = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'databases.md'), 'utf8').replaceAll(
    /\s+/g,
    ' ',
  );
  expect(docs).toContain(
    `${RUN.length} of today's ${asked.size} queries of the dashboards and alert rules were run on it;`,
  );
  const boards = BOARDS.filter(({ uid }) => QUERIES.some(([where]) => where.startsWith(`${uid}: `)));
  const ran = boards.flatMap((board) => {
    const titles = shownPanels(board)
      .filter(({ targets = [] }) => targets.length > 0 && targets.every(({ query = '' }) => RUN.includes(query)))
      .map(({ title }) => title);
    return titles.length === 0
      ? []
      : [`${board.title.replace('Tidemark / ', '')}: ${titles.map((title) => `"${title}"`).join(', ')}.`];
  });
  for (const line of ran) expect(docs).toContain(line);
});
