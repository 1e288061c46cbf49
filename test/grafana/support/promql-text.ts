/**
 * The transformation of a PromQL query by Grafana before it reaches a database, reimplemented from its own code: its
 * Prometheus data source (`interpolateQueryExpr`, `language_utils.ts`) puts variables in, its server the macros
 * (`pkg/promlib/models/query.go`).
 */
import { type Choices, durationMs, formatInterval, intervalOf, type Range, replaceVariables } from './replacement.ts';

/** The scrape interval of the provisioned data source. */
export const SCRAPE = '15s';
/** A Prometheus answers so many points of a line at most. */
const MOST_POINTS = 11_000;

/** The step of a query, which is its `$__interval`, in milliseconds. */
export function stepOf(range: Range, room: number, least = SCRAPE): number {
  return Math.max(
    intervalOf(range, room, least),
    durationMs(SCRAPE),
    Math.ceil((range.toMs - range.fromMs) / MOST_POINTS),
  );
}

/**
 * A query with everything put in.
 *
 * @param plain variables that are neither multiple nor have an "All".
 */
export function replacePromql(
  text: string,
  { choices, range, stepMs, plain }: { choices: Choices; range: Range; stepMs: number; plain: ReadonlySet<string> },
): string {
  const unformatted = (values: string | readonly string[], name: string): string => {
    if (plain.has(name)) return String(values).replaceAll('\\', '\\\\').replaceAll("'", "\\\\'");
    if (typeof values === 'string') return escaped(values);
    const all = values.map(escaped);
    return all.length === 1 ? (all[0] ?? '') : `(${all.join('|')})`;
  };
  const seconds = Math.round((range.toMs - range.fromMs) / 1000);
  const scrapeMs = durationMs(SCRAPE);
  return replaceVariables(text, choices, { ...range, unformatted })
    .replaceAll('$__interval_ms', String(stepMs))
    .replaceAll('$__interval', formatInterval(stepMs))
    .replaceAll('$__range_ms', String(range.toMs - range.fromMs))
    .replaceAll('$__range_s', String(seconds))
    .replaceAll('$__range', `${seconds}s`)
    .replaceAll('$__rate_interval', formatInterval(Math.max(stepMs + scrapeMs, 4 * scrapeMs)));
}

/** `prometheusSpecialRegexEscape`: for text between double quotes. It leaves the quotes themselves alone. */
function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\\\\\').replace(/[$^*{}[\]'+?.()|]/g, '\\\\$&');
}
