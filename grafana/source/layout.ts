/**
 * From a dashboard as it is written here to the JSON that Grafana reads: places, numbers and data sources of panels,
 * links between dashboards.
 */
import type { Annotation, DashboardSpec, Link, PanelSpec, SourceRef, Variable } from './model.ts';

/** The format of dashboards that is written; Grafana brings an older one up to its own when it reads it. */
const SCHEMA_VERSION = 42;
const COLUMNS = 24;

/** The tags by which the dashboards of a set find each other: a choice of devices means nothing to the other set. */
const TAGS = { influxdb: 'tidemark', prometheus: 'tidemark', victoriametrics: 'tidemark-promql' } as const;

/** The data sources that are provisioned with the dashboards; the last one only by those who have a VictoriaMetrics. */
export const SOURCES = {
  influxdb: { type: 'influxdb', uid: 'tidemark-influxdb', name: 'Tidemark (InfluxDB)' },
  prometheus: { type: 'prometheus', uid: 'tidemark-prometheus', name: 'Tidemark (Prometheus)' },
  victoriametrics: { type: 'prometheus', uid: 'tidemark-victoriametrics', name: 'Tidemark (VictoriaMetrics)' },
} as const;

/** One name for each kind: links carry choices by name, and a Prometheus is no answer to InfluxQL. */
const SOURCE_VARIABLES = {
  influxdb: 'datasource',
  prometheus: 'prometheus_datasource',
  victoriametrics: 'victoria_datasource',
} as const;

/** The JSON of a dashboard, as an object. */
export function renderDashboard(spec: DashboardSpec) {
  const tag = TAGS[spec.source];
  const source: SourceRef = { type: SOURCES[spec.source].type, uid: `\${${SOURCE_VARIABLES[spec.source]}}` };
  return {
    uid: spec.uid,
    title: spec.title,
    description: spec.description,
    tags: [tag],
    schemaVersion: SCHEMA_VERSION,
    version: 1,
    // They are provisioned: what is changed in place would be lost. A copy can be made, and is editable.
    editable: false,
    graphTooltip: 1,
    timezone: 'browser',
    time: { from: spec.from, to: 'now' },
    timepicker: {},
    refresh: spec.refresh,
    links: [others(tag)],
    annotations: { list: (spec.annotations ?? []).map((annotation) => renderAnnotation(annotation, source)) },
    templating: { list: [sourceVariable(spec.source), ...spec.variables.map((one) => withSource(one, source))] },
    panels: placed(spec).map((panel) => renderPanel(panel, source)),
  };
}

function others(tag: string): Link {
  return {
    title: 'Tidemark',
    type: 'dashboards',
    icon: 'dashboard',
    tooltip: 'The other dashboards, with the same range and the same choice',
    tags: [tag],
    asDropdown: false,
    targetBlank: false,
    includeVars: true,
    keepTime: true,
  };
}

/** Lets the owner of a Grafana that has other data sources choose; what is provisioned is chosen at first. */
function sourceVariable(kind: DashboardSpec['source']): Variable {
  const { type, uid, name } = SOURCES[kind];
  return {
    type: 'datasource',
    name: SOURCE_VARIABLES[kind],
    label: 'Data source',
    query: type,
    current: { text: name, value: uid },
    hide: 0,
    multi: false,
    includeAll: false,
    refresh: 1,
  };
}

function withSource(variable: Variable, source: SourceRef): Variable {
  return variable.type === 'query' ? { ...variable, datasource: source } : variable;
}

interface Place {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

type Placed = { readonly id: number; readonly place: Place } & (
  | { readonly row: string }
  | { readonly panel: PanelSpec }
);

/** Panels from left to right, and on to the next line where one does not fit; each section begins with a heading. */
function placed({ sections }: DashboardSpec): Placed[] {
  const all: Placed[] = [];
  let y = 0;
  for (const { title, panels } of sections) {
    all.push({ id: all.length + 1, place: { x: 0, y, w: COLUMNS, h: 1 }, row: title });
    y += 1;
    let [x, lineHeight] = [0, 0];
    for (const panel of panels) {
      if (x + panel.w > COLUMNS) [x, y, lineHeight] = [0, y + lineHeight, 0];
      all.push({ id: all.length + 1, place: { x, y, w: panel.w, h: panel.h }, panel });
      x += panel.w;
      lineHeight = Math.max(lineHeight, panel.h);
    }
    y += lineHeight;
  }
  return all;
}

function renderPanel(item: Placed, source: SourceRef) {
  const { x, y, w, h } = item.place;
  const place = { id: item.id, gridPos: { h, w, x, y } };
  if ('row' in item) return { type: 'row', title: item.row, collapsed: false, panels: [], ...place };
  const { type, title, description, targets, options, defaults, custom, overrides, ...rest } = item.panel;
  const { transformations, repeat, interval, maxDataPoints } = rest;
  return {
    type,
    title,
    description,
    ...place,
    datasource: source,
    ...(repeat === undefined ? {} : { repeat, repeatDirection: 'h', maxPerRow: Math.floor(COLUMNS / w) }),
    ...(interval === undefined ? {} : { interval }),
    ...(maxDataPoints === undefined ? {} : { maxDataPoints }),
    targets: targets.map((target) => ({ ...target, datasource: source })),
    fieldConfig: { defaults: { ...defaults, ...(custom === undefined ? {} : { custom }) }, overrides: overrides ?? [] },
    options,
    ...(transformations === undefined ? {} : { transformations }),
  };
}

function renderAnnotation({ name, iconColor, query, textColumn, tagsColumn }: Annotation, source: SourceRef) {
  return {
    name,
    iconColor,
    enable: true,
    datasource: source,
    target: { refId: 'Anno', query, rawQuery: true, fromAnnotations: true, textColumn, tagsColumn },
  };
}
