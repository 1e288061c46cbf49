/** PromQL: how a query becomes one of a panel, and the queries of the dashboard of the daemon's own metrics. */
import type { PromTarget, Variable } from './model.ts';
import { choice } from './variables.ts';

/** The daemons that are chosen. */
export const CHOSEN = 'instance=~"$instance"';

/** A metric of the chosen daemons. @param labels further conditions, such as `window="day"`. */
export function of(metric: string, labels = ''): string {
  return `${metric}{${[CHOSEN, labels].filter((one) => one !== '').join(', ')}}`;
}

/** What a counter grows by in a second, summed by some labels. */
export function rate(metric: string, by: string, labels = ''): string {
  return `sum by (${by}) (rate(${of(metric, labels)}[$__rate_interval]))`;
}

/** What a counter grows by in a minute: rates of a few in an hour are no numbers to look at. */
export function perMinute(metric: string, by: string, labels = ''): string {
  return `60 * ${rate(metric, by, labels)}`;
}

/** A quantile of a histogram. */
export function quantile(q: number, metric: string, by: string): string {
  return `histogram_quantile(${q}, ${rate(`${metric}_bucket`, `le, ${by}`)})`;
}

type Query = readonly [expr: string, legend: string];

function named(at: number): string {
  return String.fromCharCode('A'.charCodeAt(0) + at);
}

/** Queries over the range. */
export function series(...queries: readonly Query[]): PromTarget[] {
  return queries.map(([expr, legendFormat], at) => ({
    refId: named(at),
    expr,
    legendFormat,
    instant: false,
    range: true,
  }));
}

/** Queries of the present. */
export function present(...queries: readonly Query[]): PromTarget[] {
  return series(...queries).map((target) => ({ ...target, instant: true, range: false }));
}

/** Queries of the present, with labels as columns. */
export function presentTable(...exprs: readonly string[]): PromTarget[] {
  return present(...exprs.map((expr) => [expr, ''] as const)).map((target) => ({ ...target, format: 'table' }));
}

/** The daemons that Prometheus reads. */
export const INSTANCE: Variable = choice({
  name: 'instance',
  label: 'Daemon',
  query: { qryType: 1, query: 'label_values(tidemark_build_info, instance)' },
  all: 'any',
});
