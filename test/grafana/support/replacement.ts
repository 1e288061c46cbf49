import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../src/core/time.ts';
/**
 * The transformation of a query by Grafana before it reaches a database: its variables and macros, reimplemented from
 * Grafana's own code (`templateSrv`, `formatRegistry`, `rangeUtil.calculateInterval`;
 * `pkg/tsdb/influxdb/models/query.go`). First the browser puts variables in, each in its format, then the server its
 * macros.
 */

/** The choice of a variable. `options`: the values of its list, which "All" stands for without a value of its own. */
export interface Chosen {
  readonly value: string | readonly string[];
  readonly options: readonly string[];
  readonly allValue?: string;
}

export type Choices = ReadonlyMap<string, Chosen>;

/** The range that is shown. */
export interface Range {
  readonly fromMs: number;
  readonly toMs: number;
  /** Whether the end is "now", and moves on; the default. */
  readonly endsNow?: boolean;
}

export const ALL = '$__all';

/** `$name`, `[[name:format]]`, `${name.path:format}`: the three forms, as one pattern. */
const VARIABLE = /\$(\w+)|\[\[(\w+?)(?::(\w+))?\]\]|\$\{(\w+)(?:\.([^:^}]+))?(?::([^}]+))?\}/g;

/** The form of values in a data source without a format. */
type Unformatted = (values: string | readonly string[], name: string) => string;

const GLOB: Unformatted = (values) => (typeof values === 'string' ? values : `{${values.join(',')}}`);

/** Puts the variables of a dashboard and of Grafana into a text; what it does not know it leaves as it is. */
export function replaceVariables(
  text: string,
  choices: Choices,
  { fromMs, toMs, endsNow = true, unformatted = GLOB }: Range & { readonly unformatted?: Unformatted },
): string {
  const range = { fromMs, toMs, unformatted };
  const ofRange = (name: string, format: string | undefined): string | null => {
    if (name === '__url_time_range') return `from=${fromMs}&to=${endsNow ? 'now' : toMs}`;
    if (name === '__from') return String(fromMs);
    if (name !== '__to') return null;
    return String(format === 'date:seconds' ? Math.round(toMs / 1000) : toMs);
  };
  return text.replace(VARIABLE, (match, plain, bracketed, format1, braced, _path, format2) => {
    const name: string = plain ?? bracketed ?? braced;
    const format: string | undefined = format1 ?? format2;
    const chosen = choices.get(name);
    return (
      ofRange(name, format) ?? (chosen === undefined ? match : formatChosen(chosen, format, { choices, range, name }))
    );
  });
}

function formatChosen(
  { value, options, allValue }: Chosen,
  format: string | undefined,
  { choices, range, name }: { choices: Choices; range: Range & { readonly unformatted: Unformatted }; name: string },
): string {
  const isAll = value === ALL || (Array.isArray(value) && value.length === 1 && value[0] === ALL);
  // A value of its own for "All" is put in as it stands.
  if (isAll && allValue !== undefined) return replaceVariables(allValue, choices, range);
  const values = isAll ? options : value;
  if (format === 'regex') return regexOf(values);
  if (format === 'date:seconds') return String(Math.round(Number.parseInt(String(values), 10) / 1000));
  if (format === undefined) return range.unformatted(values, name);
  throw new Error(`no such format in the tests: ${format}`);
}

function regexOf(values: string | readonly string[]): string {
  if (typeof values === 'string') return escapeRegex(values);
  const escaped = values.map(escapeRegex);
  return escaped.length === 1 ? (escaped[0] ?? '') : `(${escaped.join('|')})`;
}

function escapeRegex(text: string): string {
  return text.replace(/[\\^$*+?.()|[\]{}/]/g, '\\$&');
}

/** The macros of the server, in its order: plain texts, wherever they stand. */
export function replaceMacros(query: string, range: Range, intervalMs: number): string {
  const interval = formatInterval(intervalMs);
  return query
    .replaceAll('$timeFilter', `time >= ${range.fromMs}ms and time <= ${range.toMs}ms`)
    .replaceAll('$interval', interval)
    .replaceAll('$__interval_ms', String(intervalMs))
    .replaceAll('$__interval', interval);
}

/** Intervals that Grafana rounds to: below the first of a pair, the second. */
const ROUNDED: readonly (readonly [below: number, interval: number])[] = [
  [10, 1],
  [15, 10],
  [35, 20],
  [75, 50],
  [150, 100],
  [350, 200],
  [750, 500],
  [1500, SECOND_MS],
  [3500, 2 * SECOND_MS],
  [7500, 5 * SECOND_MS],
  [12_500, 10 * SECOND_MS],
  [17_500, 15 * SECOND_MS],
  [25_000, 20 * SECOND_MS],
  [45_000, 30 * SECOND_MS],
  [90_000, MINUTE_MS],
  [210_000, 2 * MINUTE_MS],
  [450_000, 5 * MINUTE_MS],
  [750_000, 10 * MINUTE_MS],
  [1_050_000, 15 * MINUTE_MS],
  [1_500_000, 20 * MINUTE_MS],
  [2_700_000, 30 * MINUTE_MS],
  [5_400_000, HOUR_MS],
  [9_000_000, 2 * HOUR_MS],
  [16_200_000, 3 * HOUR_MS],
  [32_400_000, 6 * HOUR_MS],
  [86_400_000, 12 * HOUR_MS],
  [604_800_000, DAY_MS],
  [1_814_400_000, 7 * DAY_MS],
  [3_628_800_000, 30 * DAY_MS],
];

/** `$__interval` in milliseconds: a step of the range for each point that the panel has room for, not below its least. */
export function intervalOf({ fromMs, toMs }: Range, maxDataPoints: number, least: string | undefined): number {
  const exact = (toMs - fromMs) / maxDataPoints;
  const rounded = ROUNDED.find(([below]) => exact < below)?.[1] ?? 365 * DAY_MS;
  return Math.max(rounded, least === undefined ? 1 : durationMs(least));
}

/** `90s` in milliseconds. */
export function durationMs(text: string): number {
  const match = /^(\d+)(ms|s|m|h|d)$/.exec(text);
  const unit = { ms: 1, s: SECOND_MS, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS }[match?.[2] ?? ''];
  if (match === null || unit === undefined) throw new Error(`not a duration: ${text}`);
  return Number(match[1]) * unit;
}

export function formatInterval(ms: number): string {
  for (const [unit, name] of [
    [DAY_MS, 'd'],
    [HOUR_MS, 'h'],
    [MINUTE_MS, 'm'],
    [SECOND_MS, 's'],
  ] as const) {
    if (ms >= unit) return `${Math.floor(ms / unit)}${name}`;
  }
  return `${ms}ms`;
}
