/**
 * The dashboards as they are committed, and every query in them.
 */
import { readdirSync, readFileSync } from 'node:fs';

/** The dashboards of the default provider, and those that only users of VictoriaMetrics have. */
export const FOLDER = 'grafana/dashboards';
export const VICTORIA_FOLDER = 'grafana/dashboards-victoriametrics';

export interface Target {
  readonly refId: string;
  readonly query?: string;
  readonly expr?: string;
  readonly resultFormat?: string;
  readonly alias?: string;
  readonly legendFormat?: string;
  readonly instant?: boolean;
  readonly range?: boolean;
  readonly format?: string;
  readonly datasource: { readonly type: string; readonly uid: string };
}

export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly datasource?: { readonly type: string; readonly uid: string };
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly Target[];
  /** The panels under a heading that is closed. */
  readonly panels?: readonly Panel[];
  readonly repeat?: string;
  readonly interval?: string;
  readonly maxDataPoints?: number;
  readonly options?: Readonly<Record<string, unknown>>;
  readonly fieldConfig?: {
    readonly defaults: Readonly<Record<string, unknown>>;
    readonly overrides: readonly {
      readonly matcher: { id: string; options: string };
      readonly properties: readonly { id: string; value: unknown }[];
    }[];
  };
  readonly transformations?: readonly { readonly id: string; readonly options: Readonly<Record<string, unknown>> }[];
}

export interface Variable {
  readonly name: string;
  readonly type: string;
  readonly query: string | { readonly query: string };
  readonly label?: string;
  readonly current?: { readonly text: unknown; readonly value: unknown };
  readonly datasource?: { readonly type: string; readonly uid: string };
  readonly regex?: string;
  readonly multi: boolean;
  readonly includeAll: boolean;
  readonly allValue?: string;
  readonly refresh: number;
}

export interface Board {
  readonly uid: string;
  readonly title: string;
  readonly description: string;
  readonly time: { readonly from: string; readonly to: string };
  readonly timezone: string;
  readonly editable: boolean;
  readonly links: readonly { readonly type: string; readonly tags: readonly string[] }[];
  readonly tags: readonly string[];
  readonly templating: { readonly list: readonly Variable[] };
  readonly annotations: {
    readonly list: readonly {
      readonly name: string;
      readonly titleFormat?: string;
      readonly useValueForTime?: boolean;
      readonly datasource?: { readonly type: string; readonly uid: string };
      readonly target: Target & { readonly textColumn: string; readonly tagsColumn: string };
    }[];
  };
  readonly panels: readonly Panel[];
}

/** The files of the dashboards. */
export function boardFiles(folder = FOLDER): string[] {
  return readdirSync(folder).sort();
}

export function readBoards(folder = FOLDER): Board[] {
  return boardFiles(folder).map((name) => JSON.parse(readFileSync(`${folder}/${name}`, 'utf8')) as Board);
}

/** All panels, those under a heading that is closed among them. */
export function allPanels(board: Board): readonly Panel[] {
  return board.panels.flatMap((panel) => [panel, ...(panel.panels ?? [])]);
}

/** The panels that show an answer: no headings, words or lists that Grafana makes by itself. */
export function shownPanels(board: Board): readonly Panel[] {
  return allPanels(board).filter(({ type }) => !['row', 'text', 'alertlist'].includes(type));
}

/** Whether a dashboard queries an InfluxDB. */
export function asksInflux(board: Board): boolean {
  return board.templating.list.some(({ type, query }) => type === 'datasource' && query === 'influxdb');
}

/** The query of a variable; `null` where it has none. */
export function queryOf({ type, query }: Variable): string | null {
  return type !== 'query' ? null : typeof query === 'string' ? query : query.query;
}
