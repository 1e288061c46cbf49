/**
 * From a dashboard as it is written here to the JSON that Grafana reads: places, numbers and data sources of panels,
 * links between dashboards.
 */
import type { Annotation, DashboardSpec, Link, Override, PanelSpec, SourceRef, Variable } from './model.ts';

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

/**
 * Leaves out the data sources whose name suggests another language: Grafana lists all of InfluxDB, and those of Flux
 * and SQL cannot answer.
 */
const ASKS_INFLUXQL = '/^(?!.*\\b(?:flux|sql)\\b)/i';

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
    panels: renderPanels(placed(spec), source),
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
    ...(kind === 'influxdb' ? { regex: ASKS_INFLUXQL } : {}),
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
  | { readonly row: string; readonly collapsed: boolean }
  | { readonly panel: PanelSpec }
);

/** Each panel as high up as it fits, and there as far to the left; each section begins with a heading. */
function placed({ sections }: DashboardSpec): Placed[] {
  const all: Placed[] = [];
  // Where the free room of each column begins.
  let tops = Array.from({ length: COLUMNS }, () => 0);
  for (const { title, panels, collapsed = false } of sections) {
    const y = Math.max(...tops);
    all.push({ id: all.length + 1, place: { x: 0, y, w: COLUMNS, h: 1 }, row: title, collapsed });
    tops = tops.map(() => y + 1);
    for (const panel of panels) {
      const place = { ...highest(tops, panel.w), w: panel.w, h: panel.h };
      all.push({ id: all.length + 1, place, panel });
      tops = tops.map((top, x) => (x >= place.x && x < place.x + panel.w ? place.y + panel.h : top));
    }
    // Closed, a section is its heading; where its panels go once it is opened is as if nothing came after it.
    if (collapsed) tops = tops.map(() => y + 1);
  }
  return all;
}

function highest(tops: readonly number[], w: number): { readonly x: number; readonly y: number } {
  const places = Array.from({ length: COLUMNS - w + 1 }, (_, x) => ({ x, y: Math.max(...tops.slice(x, x + w)) }));
  return places.reduce((best, place) => (place.y < best.y ? place : best));
}

/** The number of a panel. @throws Error where there is none of that title. */
export function panelId(spec: DashboardSpec, title: string): number {
  const found = placed(spec).find((item) => 'panel' in item && item.panel.title === title);
  if (found === undefined) throw new Error(`${spec.uid} has no panel ${title}`);
  return found.id;
}

/** The JSON of the panels. A link to one of them names its title: here its number is known. */
function renderPanels(all: readonly Placed[], source: SourceRef) {
  const ids = new Map(all.flatMap((item) => ('panel' in item ? [[item.panel.title, item.id] as const] : [])));
  const numbered = (_: string, title: string): string => {
    const id = ids.get(title);
    if (id === undefined) throw new Error(`a link leads to a panel that is not there: ${title}`);
    return `viewPanel=${id}`;
  };
  const rendered = (item: Placed): Rendered =>
    JSON.parse(JSON.stringify(renderPanel(item, source)).replace(/viewPanel=<([^>]+)>/g, numbered)) as Rendered;
  const open: Rendered[] = [];
  let closed: Rendered | null = null;
  for (const item of all) {
    const panel = rendered(item);
    if ('row' in item) closed = item.collapsed ? panel : null;
    if (closed === null || closed === panel) open.push(panel);
    else closed.panels?.push(panel);
  }
  return open;
}

interface Rendered {
  readonly panels?: Rendered[];
}

function renderPanel(item: Placed, source: SourceRef) {
  const { x, y, w, h } = item.place;
  const place = { id: item.id, gridPos: { h, w, x, y } };
  if ('row' in item) return { type: 'row', title: item.row, collapsed: item.collapsed, panels: [], ...place };
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
    fieldConfig: {
      defaults: { ...defaults, ...(custom === undefined ? {} : { custom }) },
      overrides: [...(type === 'stat' || !isSentence(defaults?.noValue) ? [] : [NO_VALUE]), ...(overrides ?? [])],
    },
    options,
    ...(transformations === undefined ? {} : { transformations }),
  };
}

/** The text of an empty panel is not used for a cell, a legend or one of several numbers. */
const NO_VALUE: Override = {
  matcher: { id: 'byRegexp', options: '/.*/' },
  properties: [{ id: 'noValue', value: '–' }],
};

function isSentence(text: string | undefined): boolean {
  return text?.includes(' ') === true;
}

function renderAnnotation(annotation: Annotation, source: SourceRef) {
  const { name, iconColor } = annotation;
  const common = { name, iconColor, enable: true, datasource: source };
  if ('expr' in annotation) {
    const { expr, titleFormat, isValueTime } = annotation;
    const time = isValueTime === true ? { useValueForTime: true } : {};
    return { ...common, ...time, titleFormat, expr, step: '60s', target: { refId: 'Anno', expr, interval: '60s' } };
  }
  const { query, textColumn, tagsColumn } = annotation;
  return {
    ...common,
    target: { refId: 'Anno', query, rawQuery: true, fromAnnotations: true, textColumn, tagsColumn },
  };
}
