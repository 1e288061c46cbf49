/**
 * What Grafana makes of an answer in PromQL: frames of fields, as its Prometheus data source does (`result_transformer.ts`,
 * `transformDFToTable`), and the texts of a variable's list (`metric_find_query.ts`).
 */
import type { Target } from './boards.ts';
import type { Field, Frame } from './frames.ts';

type Sample = readonly [seconds: number, value: string];
type Labels = Readonly<Record<string, string>>;

/** A line of an answer: `values` over a range, `value` at an instant. */
export interface PromSeries {
  readonly metric: Labels;
  readonly values?: readonly Sample[];
  readonly value?: Sample;
}

/**
 * The frames of a query that is shown as lines or numbers.
 *
 * @param stepMs of a query over a range: its times have it, so that Grafana knows which of them are missing.
 */
export function lineFrames(
  series: readonly PromSeries[],
  { refId, legendFormat = '' }: Target,
  stepMs?: number,
): Frame[] {
  const step = stepMs === undefined ? {} : { intervalMs: stepMs };
  return series.map(({ metric, values, value }) => {
    const samples = values ?? (value === undefined ? [] : [value]);
    const displayName = legendFormat.replace(/\{\{\s*(.+?)\s*\}\}/g, (_, label: string) => metric[label] ?? '');
    return {
      refId,
      name: displayName,
      length: samples.length,
      fields: [
        field('Time', samples.map(timeOf), { type: 'time', ...step }),
        field('Value', samples.map(numberOf), { labels: metric, displayName }),
      ],
    };
  });
}

/** The frames of the queries of a table: one for each query that was answered anything, labels as columns. */
export function tableFrames(answers: readonly (readonly [refId: string, series: readonly PromSeries[]])[]): Frame[] {
  const told = answers.filter(([, series]) => series.length > 0);
  return told.map(([refId, series]) => {
    const samples = series.flatMap(({ value }) => (value === undefined ? [] : [value]));
    const labels = [...new Set(series.flatMap(({ metric }) => Object.keys(metric).sort()))];
    return {
      refId,
      name: '',
      length: samples.length,
      fields: [
        field('Time', samples.map(timeOf), { type: 'time' }),
        ...labels.map((label) =>
          field(
            label,
            series.map(({ metric }) => metric[label] ?? ''),
            { type: 'string' },
          ),
        ),
        field(told.length > 1 ? `Value #${refId}` : 'Value', samples.map(numberOf), {}),
      ],
    };
  });
}

function field(name: string, values: Field['values'], more: Partial<Field>): Field {
  return { name, type: 'number', values, labels: {}, displayName: name, ...more };
}

function timeOf([seconds]: Sample): number {
  return Math.round(seconds * 1000);
}

function numberOf([, value]: Sample): number {
  return Number(value);
}

/** A line of `query_result`, as Grafana writes it for the pattern of a variable; nothing in it is escaped. */
export function resultText({ metric, value = [0, ''] }: PromSeries): string {
  const { __name__: name = '', ...labels } = metric;
  const pairs = Object.entries(labels).map(([key, text]) => `${key}="${text}"`);
  return `${name}{${pairs.join(',')}} ${value[1]} ${value[0] * 1000}`;
}
