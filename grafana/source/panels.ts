/**
 * Panels with what all of their type have in common.
 */
import { type Column, columns, LEGEND_LIST, LEGEND_TABLE, TOOLTIP } from './looks.ts';
import type { DataLink, Kind, Mapping, Override, PanelOf, Thresholds, Transformation } from './model.ts';

/** What every panel is given. */
type Basics<K extends Kind> = Pick<PanelOf<K>, 'title' | 'description' | 'w' | 'h' | 'targets'> &
  Partial<Pick<PanelOf<K>, 'interval' | 'maxDataPoints' | 'repeat' | 'transformations' | 'overrides'>> & {
    readonly links?: readonly DataLink[];
  };

/** The text of an empty panel: what to do about it. */
interface Empty {
  readonly noValue: string;
}

interface Numbers {
  readonly unit: string;
  readonly decimals?: number;
  readonly thresholds?: Thresholds;
  readonly mappings?: readonly Mapping[];
}

export const NO_DEVICES =
  'No devices in this range. Choose a longer range, or open the status page of Tidemark (port 9464).';
export const NO_READINGS =
  'No readings in this range. Choose a longer range; the panel "Coverage" shows whether the device was silent or is not synced yet.';

/** One number, or a few, large. */
export function stat(panel: Basics<'stat'> & Empty & Numbers & { readonly fields?: string }): PanelOf<'stat'> {
  const { noValue, unit, decimals, thresholds, mappings, links, fields = '', overrides = [], ...basics } = panel;
  return {
    ...basics,
    type: 'stat',
    defaults: { noValue, ...numbers({ unit, decimals, thresholds, mappings }), color: { mode: 'thresholds' } },
    overrides: [...linked(links), ...overrides],
    options: {
      colorMode: 'value',
      graphMode: 'none',
      justifyMode: 'auto',
      orientation: 'auto',
      percentChangeColorMode: 'standard',
      reduceOptions: { calcs: ['lastNotNull'], fields, values: false },
      showPercentChange: false,
      textMode: 'auto',
      // A name above its number: beside it, the number would be small.
      wideLayout: false,
    },
  };
}

function numbers({ unit, decimals, thresholds, mappings }: { [K in keyof Numbers]: Numbers[K] | undefined }) {
  return {
    ...(unit === undefined ? {} : { unit }),
    ...(decimals === undefined ? {} : { decimals }),
    ...(thresholds === undefined ? {} : { thresholds }),
    ...(mappings === undefined ? {} : { mappings }),
  };
}

/** Values lead somewhere. An override, because the SDK confuses the links of all fields with those of dashboards. */
function linked(links: readonly DataLink[] | undefined): Override[] {
  if (links === undefined) return [];
  return [{ matcher: { id: 'byRegexp', options: '/.*/' }, properties: [{ id: 'links', value: links }] }];
}

/**
 * Lines over time. A line breaks where there is nothing for `breakMs`, with 0 at each step without a value: queries
 * fill with null, so that steps longer than that, of long ranges, do not break every line.
 */
export function lineChart(
  panel: Basics<'timeseries'> &
    Empty &
    Numbers & {
      readonly breakMs: number;
      readonly legend?: 'list' | 'table' | 'none';
      readonly draw?: 'line' | 'bars';
      /** What fields are called once the rules for them have been applied. */
      readonly displayName?: string;
      readonly min?: number;
      readonly stack?: boolean;
    },
): PanelOf<'timeseries'> {
  const { noValue, unit, decimals, thresholds, mappings, breakMs, legend = 'list', ...rest } = panel;
  const { draw = 'line', displayName, min, stack = false, links: _, overrides = [], ...basics } = rest;
  const shown = legend === 'table' ? LEGEND_TABLE : { ...LEGEND_LIST, showLegend: legend === 'list' };
  return {
    ...basics,
    type: 'timeseries',
    defaults: {
      noValue,
      ...numbers({ unit, decimals, thresholds, mappings }),
      color: { mode: 'palette-classic' },
      ...(min === undefined ? {} : { min }),
    },
    overrides: displayName === undefined ? overrides : [...overrides, renamed(displayName)],
    custom: {
      drawStyle: draw,
      fillOpacity: draw === 'bars' ? 60 : 0,
      lineWidth: 1,
      pointSize: 4,
      showPoints: 'auto',
      spanNulls: draw === 'bars' || breakMs === 0 ? false : breakMs,
      ...(stack ? { stacking: { mode: 'normal', group: 'A' } } : {}),
    },
    options: { legend: shown, tooltip: TOOLTIP },
  };
}

/** The last rule: those before it go by the name that the field has of its query. */
function renamed(displayName: string): Override {
  return { matcher: { id: 'byType', options: 'number' }, properties: [{ id: 'displayName', value: displayName }] };
}

/** States over time, a line for each. @param panel.endMs how long a state is shown after the last point that has it. */
export function timeline(
  panel: Basics<'state-timeline'> & Empty & { readonly mappings: readonly Mapping[]; readonly endMs?: number },
): PanelOf<'state-timeline'> {
  const { noValue, mappings, links: _, endMs, ...basics } = panel;
  return {
    ...basics,
    type: 'state-timeline',
    defaults: { noValue, mappings, color: { mode: 'palette-classic' }, unit: 'none' },
    custom: {
      fillOpacity: 80,
      lineWidth: 0,
      spanNulls: false,
      ...(endMs === undefined ? {} : { insertNulls: endMs }),
    },
    options: {
      alignValue: 'left',
      legend: { ...LEGEND_LIST, showLegend: false },
      mergeValues: true,
      perPage: 20,
      rowHeight: 0.85,
      showValue: 'never',
      tooltip: { mode: 'single', sort: 'none' },
    },
  };
}

/** A table with the columns that are named, by their names in the answer. */
export function grid(
  panel: Omit<Basics<'table'>, 'overrides'> &
    Empty & {
      readonly columns: Readonly<Record<string, Column>>;
      readonly sortBy?: readonly { readonly displayName: string; readonly desc?: boolean }[];
    },
): PanelOf<'table'> {
  const { noValue, columns: shown, sortBy, transformations = [], links: _, ...basics } = panel;
  const { overrides, last } = columns(shown);
  const all: readonly Transformation[] = [...transformations, last];
  return {
    ...basics,
    type: 'table',
    defaults: { noValue, unit: 'none' },
    custom: { align: 'auto', filterable: true, inspect: false },
    overrides,
    transformations: all,
    options: { cellHeight: 'sm', frameIndex: 0, showHeader: true, ...(sortBy === undefined ? {} : { sortBy }) },
  };
}

const column = (options: string) => ({ matcher: { id: 'byName', options } });

/** A column that is computed from two others. */
export function binary(left: string, operator: '+' | '-' | '/', right: string, alias: string): Transformation {
  return {
    id: 'calculateField',
    options: { mode: 'binary', binary: { left: column(left), operator, right: column(right) }, alias },
  };
}

/** A column to which a number is added. */
export function plus(left: string, number: number, alias: string): Transformation {
  const right = { fixed: String(number) };
  return {
    id: 'calculateField',
    options: { mode: 'binary', binary: { left: column(left), operator: '+', right }, alias },
  };
}

/** A column with a figure of others. Of none of them the sum is 0, and there is no largest one. */
export function rowFigure(reducer: 'sum' | 'max', include: readonly string[], alias: string): Transformation {
  return { id: 'calculateField', options: { mode: 'reduceRow', reduce: { reducer, include }, alias } };
}

/** Bars side by side, one for each row. @param panel.min where they begin; unless given, at the least of them. */
export function bars(panel: Basics<'bargauge'> & Empty & Numbers & { readonly min?: number }): PanelOf<'bargauge'> {
  const { noValue, unit, decimals, thresholds, mappings, min, links: _, ...basics } = panel;
  return {
    ...basics,
    type: 'bargauge',
    defaults: {
      noValue,
      ...numbers({ unit, decimals, thresholds, mappings }),
      ...(min === undefined ? {} : { min }),
      color: { mode: 'thresholds' },
    },
    options: {
      displayMode: 'basic',
      legend: { ...LEGEND_LIST, showLegend: false },
      maxVizHeight: 60,
      minVizHeight: 12,
      minVizWidth: 8,
      namePlacement: 'left',
      orientation: 'horizontal',
      reduceOptions: { calcs: ['lastNotNull'], fields: '', limit: 25, values: true },
      showUnfilled: true,
      sizing: 'auto',
      valueMode: 'color',
    },
  };
}
