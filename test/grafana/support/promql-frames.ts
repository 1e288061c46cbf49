/**
 * The form of a PromQL answer in Grafana: frames of fields, as its Prometheus data source does
 * (`result_transformer.ts`, `transformDFToTable`), and the texts of a variable's list (`metric_find_query.ts`).
 */
import type { Board, Target } from './boards.ts';
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
 * @param stepMs of a query over a range: its times have it, so that Grafana can find the missing ones.
 */
export function lineFrames(
  series: readonly PromSeries[],
  { refId, legendFormat = '' }: Target,
  stepMs?: number,
): Frame[] {
  const step = stepMs === undefined ? {} : { intervalMs: stepMs };
  return series.map(({ metric, values, value }) => {
    const samples = values ?? (value === undefined ? [] : [value]);
    const displayName = legendOf(legendFormat, metric);
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
  const reported = answers.filter(([, series]) => series.length > 0);
  return reported.map(([refId, series]) => {
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
        field(reported.length > 1 ? `Value #${refId}` : 'Value', samples.map(numberOf), {}),
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

/** A mark of an annotation: its begin, its end and its text. */
export interface Mark {
  readonly fromMs: number;
  readonly toMs: number;
  readonly title: string;
}

/**
 * The marks of an annotation, as the data source makes them (`annotations.ts`): one for samples above 0 that are no
 * more than a minute apart, at their times or at the times in their values.
 */
export function marksOf(
  { titleFormat = '', useValueForTime }: Board['annotations']['list'][number],
  frames: readonly Frame[],
): Mark[] {
  return frames.flatMap(({ fields: [times, values] }) => {
    const at = (values?.values ?? []).flatMap((value, index) => {
      if (useValueForTime === true) return [Math.floor(Number(value))];
      return Number(value) > 0 ? [Number(times?.values[index])] : [];
    });
    const title = legendOf(titleFormat, values?.labels ?? {});
    const marks: Mark[] = [];
    for (const ms of at) {
      const last = marks.at(-1);
      if (last === undefined || last.toMs + 60_000 < ms) marks.push({ fromMs: ms, toMs: ms, title });
      else marks[marks.length - 1] = { ...last, toMs: ms };
    }
    return marks;
  });
}

function legendOf(format: string, labels: Labels): string {
  return format.replace(/\{\{\s*(.+?)\s*\}\}/g, (_, label: string) => labels[label] ?? '');
}

/** A line of `query_result`, as Grafana writes it for the pattern of a variable; nothing in it is escaped. */
export function resultText({ metric, value = [0, ''] }: PromSeries): string {
  const { __name__: name = '', ...labels } = metric;
  const pairs = Object.entries(labels).map(([key, text]) => `${key}="${text}"`);
  return `${name}{${pairs.join(',')}} ${value[1]} ${value[0] * 1000}`;
}
