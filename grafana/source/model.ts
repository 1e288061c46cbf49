/**
 * What a dashboard is made of, as types: those of Grafana's foundation SDK, so that the compiler checks what is written
 * here, without its builders: a dashboard is data, and reads best as data.
 */
import type * as bargauge from '@grafana/grafana-foundation-sdk/bargauge';
import type * as sdk from '@grafana/grafana-foundation-sdk/dashboard';
import type * as geomap from '@grafana/grafana-foundation-sdk/geomap';
import type * as heatmap from '@grafana/grafana-foundation-sdk/heatmap';
import type * as stat from '@grafana/grafana-foundation-sdk/stat';
import type * as statetimeline from '@grafana/grafana-foundation-sdk/statetimeline';
import type * as table from '@grafana/grafana-foundation-sdk/table';
import type * as text from '@grafana/grafana-foundation-sdk/text';
import type * as timeseries from '@grafana/grafana-foundation-sdk/timeseries';

/** A type of the SDK with its enums as the words and numbers that they stand for: `'auto'` for `VisibilityMode.Auto`. */
export type Plain<T> = 0 extends 1 & T
  ? T
  : T extends string
    ? `${T}`
    : T extends number | boolean | null | undefined
      ? T
      : { readonly [K in keyof T]: Plain<T[K]> };

/** Options of the list of alerts, of which the SDK has no type. Without a data source: those of Grafana and of Prometheus. */
interface AlertList {
  readonly viewMode: 'list';
  readonly groupMode: 'default' | 'custom';
  readonly groupBy: readonly string[];
  readonly maxItems: number;
  /** By how grave they are. */
  readonly sortOrder: 3;
  readonly dashboardAlerts: boolean;
  readonly alertName: string;
  readonly alertInstanceLabelFilter: string;
  readonly stateFilter: Readonly<Record<'firing' | 'pending' | 'noData' | 'normal' | 'error', boolean>>;
}

/** What the panels of each type have of their own. */
interface Kinds {
  readonly alertlist: { options: AlertList; custom: Record<string, never> };
  readonly bargauge: { options: bargauge.Options; custom: Record<string, never> };
  readonly geomap: { options: geomap.Options; custom: Record<string, never> };
  readonly heatmap: { options: heatmap.Options; custom: heatmap.FieldConfig };
  readonly stat: { options: stat.Options; custom: Record<string, never> };
  readonly 'state-timeline': { options: statetimeline.Options; custom: statetimeline.FieldConfig };
  readonly table: { options: table.Options; custom: Partial<table.FieldConfig> };
  readonly text: { options: text.Options; custom: Record<string, never> };
  readonly timeseries: { options: timeseries.Options; custom: timeseries.FieldConfig };
}

export type Kind = keyof Kinds;

/** A reference to the data source that the variable `datasource` of the dashboard chooses. */
export interface SourceRef {
  readonly type: 'influxdb' | 'prometheus';
  readonly uid: string;
}

/** A query of a panel in InfluxQL, written out. */
export interface InfluxTarget {
  readonly refId: string;
  readonly query: string;
  readonly rawQuery: true;
  readonly resultFormat: 'time_series' | 'table';
  readonly alias?: string;
}

/** A query of a panel in PromQL. */
export interface PromTarget {
  readonly refId: string;
  readonly expr: string;
  readonly legendFormat: string;
  readonly instant: boolean;
  readonly range: boolean;
  readonly format?: 'table' | 'time_series' | 'heatmap';
}

export type Target = InfluxTarget | PromTarget;

export type Mapping = Plain<sdk.ValueMapping>;
export type Thresholds = Plain<sdk.ThresholdsConfig>;
export type Transformation = Plain<sdk.DataTransformerConfig>;
export type Variable = Omit<Plain<sdk.VariableModel>, 'datasource'> & { readonly datasource?: SourceRef };
export type Link = Plain<sdk.DashboardLink>;
type FieldDefaults = Omit<Plain<sdk.FieldConfig>, 'custom' | 'links'>;

/** A link of a field; the SDK has only those of dashboards. */
export interface DataLink {
  readonly title: string;
  readonly url: string;
  readonly targetBlank?: boolean;
}

/** One property of fields that a rule picks. */
export interface Override {
  readonly matcher: { readonly id: 'byName' | 'byRegexp' | 'byType' | 'byFrameRefID'; readonly options: string };
  readonly properties: readonly { readonly id: string; readonly value: unknown }[];
}

/** A panel of a type, before it has its place. */
export interface PanelOf<K extends Kind> {
  readonly type: K;
  readonly title: string;
  /** What the panel shows, in a sentence or two; displayed at its title and in the README. */
  readonly description: string;
  readonly w: number;
  readonly h: number;
  readonly targets: readonly Target[];
  readonly options: Plain<Kinds[K]['options']>;
  readonly defaults?: FieldDefaults;
  readonly custom?: Plain<Kinds[K]['custom']>;
  readonly overrides?: readonly Override[];
  readonly transformations?: readonly Transformation[];
  /** The name of a variable: the panel is shown once for each of its values. */
  readonly repeat?: string;
  /** The finest `$__interval`, where points are not made more often. */
  readonly interval?: string;
  readonly maxDataPoints?: number;
}

/** A panel of any type. */
export type PanelSpec = { [K in Kind]: PanelOf<K> }[Kind];

/**
 * An annotation with a PromQL query: an instant for each sample that is not 0, at its time, or at the time that
 * its value is.
 */
export interface PromAnnotation {
  readonly name: string;
  readonly iconColor: string;
  readonly expr: string;
  readonly titleFormat: string;
  readonly isValueTime?: true;
}

/** An annotation with an InfluxQL query. */
export interface InfluxAnnotation {
  readonly name: string;
  readonly iconColor: string;
  readonly query: string;
  readonly textColumn: string;
  readonly tagsColumn: string;
}

export type Annotation = InfluxAnnotation | PromAnnotation;

/** Panels under a heading. */
export interface Section {
  readonly title: string;
  /** Opened by a click; its panels send no query until then. */
  readonly collapsed?: boolean;
  readonly panels: readonly PanelSpec[];
}

export interface DashboardSpec {
  readonly uid: string;
  readonly title: string;
  readonly description: string;
  /** The data source that is chosen at first, by its name in `SOURCES`. */
  readonly source: 'influxdb' | 'prometheus' | 'victoriametrics';
  readonly from: string;
  readonly refresh: string;
  readonly variables: readonly Variable[];
  readonly annotations?: readonly Annotation[];
  readonly sections: readonly Section[];
}
