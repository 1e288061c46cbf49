/**
 * The form of an InfluxDB answer in Grafana: frames of fields, as its data source does
 * (`pkg/tsdb/influxdb/influxql/buffered/response_parser.go`), and the list of a variable.
 */

export type Cell = string | number | boolean | null;
export type FieldType = 'time' | 'number' | 'string' | 'boolean';

export interface Field {
  readonly name: string;
  readonly type: FieldType;
  readonly values: readonly Cell[];
  readonly labels: Readonly<Record<string, string>>;
  /** The name of the field in the query, which the rules of a panel use. */
  readonly displayName: string;
  /** Of times: the step of the query, in ms. */
  readonly intervalMs?: number;
}

export interface Frame {
  readonly refId: string;
  /** The measurement of a table; what the query calls a line. */
  readonly name: string;
  readonly fields: readonly Field[];
  readonly length: number;
}

export interface Series {
  readonly name: string;
  readonly tags?: Readonly<Record<string, string>>;
  readonly columns: readonly string[];
  readonly values: readonly (readonly Cell[])[];
}

/** How a query wants its answer. */
export interface Format {
  readonly refId: string;
  readonly resultFormat: string;
  readonly alias?: string;
}

/** The frames of an answer. */
export function framesOf(series: readonly Series[], format: Format): Frame[] {
  if (format.resultFormat === 'table') return tableOf(series, format.refId);
  return series.flatMap((one) =>
    one.columns[0] === 'time'
      ? one.columns.slice(1).map((column, index) => lineOf(one, { column, index: index + 1, format }))
      : [timeless(one, format.refId)],
  );
}

function tableOf(series: readonly Series[], refId: string): Frame[] {
  const [first] = series;
  if (first === undefined) return [];
  const field = (name: string, values: readonly Cell[], type = typeOf(values)): Field => ({
    name,
    type,
    values,
    labels: {},
    displayName: name,
  });
  const columnOf = (index: number): Cell[] => series.flatMap(({ values }) => values.map((row) => row[index] ?? null));
  const times = columnOf(0);
  const fields = [
    first.columns[0] === 'time' ? field('Time', times, 'time') : field(first.columns[0] ?? '', times),
    ...Object.keys(first.tags ?? {}).map((key) =>
      field(
        key,
        series.flatMap(({ tags, values }) => values.map(() => tags?.[key] ?? '')),
      ),
    ),
    ...first.columns.slice(1).map((name, index) => field(name, columnOf(index + 1))),
  ];
  return [{ refId, name: first.name, fields, length: times.length }];
}

function lineOf(series: Series, { column, index, format }: { column: string; index: number; format: Format }): Frame {
  const labels = series.tags ?? {};
  const values = series.values.map((row) => row[index] ?? null);
  const displayName = aliasOf(series, column, format.alias);
  return {
    refId: format.refId,
    name: displayName,
    length: values.length,
    fields: [
      {
        name: 'Time',
        type: 'time',
        values: series.values.map((row) => row[0] ?? null),
        labels: {},
        displayName: 'Time',
      },
      { name: 'Value', type: typeOf(values), values, labels, displayName },
    ],
  };
}

function timeless({ name, values }: Series, refId: string): Frame {
  const words = values.map((row) => row[1] ?? row[0] ?? null);
  return {
    refId,
    name,
    length: words.length,
    fields: [{ name: 'Value', type: 'string', values: words, labels: {}, displayName: 'Value' }],
  };
}

function aliasOf({ name, tags = {} }: Series, column: string, alias = ''): string {
  if (alias === '') return `${name}.${column}`;
  return alias.replace(/\$(\w+)|\[\[([\s\S]+?)\]\]/g, (match, plain, bracketed) => {
    const key: string = plain ?? bracketed;
    if (key === 'm' || key === 'measurement') return name;
    if (key === 'col') return column;
    return key.startsWith('tag_') ? (tags[key.slice('tag_'.length)] ?? match) : match;
  });
}

/** By the first value that is there; a column of nothing counts as numbers. */
function typeOf(values: readonly Cell[]): FieldType {
  const first = values.find((value) => value !== null);
  if (typeof first === 'string') return 'string';
  return typeof first === 'boolean' ? 'boolean' : 'number';
}

/** An entry of a variable's list. */
export interface Option {
  readonly text: string;
  readonly value: string;
}

/** The list of a variable: the first words of each frame, each once, split by its pattern. */
export function optionsOf(frames: readonly Frame[], pattern: string): Option[] {
  const found: string[] = [];
  for (const { fields } of frames) {
    const field = fields.find(({ type }) => type === 'string') ?? fields.find(({ type }) => type !== 'time');
    for (const value of field?.values ?? []) if (value !== null) found.push(String(value));
  }
  return optionsFrom(found, pattern);
}

/** The list of a variable: texts, split by its pattern, each value once. */
export function optionsFrom(texts: readonly string[], pattern: string): Option[] {
  const options = new Map<string, Option>();
  for (const text of new Set(texts)) {
    const option = apart(text, pattern);
    if (option !== null && !options.has(option.value)) options.set(option.value, option);
  }
  return [...options.values()].sort((a, b) => a.text.localeCompare(b.text, undefined, { sensitivity: 'base' }));
}

function apart(text: string, pattern: string): Option | null {
  if (pattern === '') return { text, value: text };
  const regex = /^\/([\s\S]+)\/([a-z]*)$/.exec(pattern);
  const groups = new RegExp(regex?.[1] ?? pattern, regex?.[2]).exec(text)?.groups;
  if (groups === undefined) return null;
  const { value, text: shown } = groups;
  return { text: shown ?? value ?? '', value: value ?? shown ?? '' };
}
