/**
 * Panels with what all of their type have in common.
 */
import { type Column, columns, LEGEND_LIST, LEGEND_TABLE, TOOLTIP } from './looks.ts';
import type { Kind, Mapping, Override, PanelOf, Thresholds, Transformation } from './model.ts';

/** What every panel is given. */
type Basics<K extends Kind> = Pick<PanelOf<K>, 'title' | 'description' | 'w' | 'h' | 'targets'> &
  Partial<Pick<PanelOf<K>, 'interval' | 'maxDataPoints' | 'repeat' | 'transformations' | 'overrides'>>;

/** What a panel says where there is nothing to show: what to do about it. */
interface Empty {
  readonly noValue: string;
}

interface Numbers {
  readonly unit: string;
  readonly decimals?: number;
  readonly thresholds?: Thresholds;
  readonly mappings?: readonly Mapping[];
}

export const NO_DEVICES = 'No devices in this range. Widen it, or look at the status page of Tidemark (port 9464).';
export const NO_READINGS =
  'No readings in this range. Widen it; the coverage band tells silence from "not synced yet".';

/** One number, or a few, large. */
export function stat(
  panel: Basics<'stat'> & Empty & Numbers & { readonly color?: 'value' | 'none'; readonly fields?: string },
): PanelOf<'stat'> {
  const { noValue, unit, decimals, thresholds, mappings, color = 'value', fields = '', ...basics } = panel;
  return {
    ...basics,
    type: 'stat',
    defaults: { noValue, ...numbers({ unit, decimals, thresholds, mappings }), color: { mode: 'thresholds' } },
    options: {
      colorMode: color,
      graphMode: 'none',
      justifyMode: 'auto',
      orientation: 'auto',
      percentChangeColorMode: 'standard',
      reduceOptions: { calcs: ['lastNotNull'], fields, values: false },
      showPercentChange: false,
      textMode: 'auto',
      wideLayout: true,
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

/**
 * Lines over time. A line breaks where there is nothing for `breakMs`: queries fill with null, so that steps longer than
 * that, of long ranges, do not break every line.
 */
export function lineChart(
  panel: Basics<'timeseries'> &
    Empty &
    Numbers & {
      readonly breakMs: number;
      readonly legend?: 'list' | 'table' | 'none';
      readonly draw?: 'line' | 'bars';
      readonly displayName?: string;
      readonly min?: number;
      readonly stack?: boolean;
    },
): PanelOf<'timeseries'> {
  const { noValue, unit, decimals, thresholds, mappings, breakMs, legend = 'list', ...rest } = panel;
  const { draw = 'line', displayName, min, stack = false, ...basics } = rest;
  const shown = legend === 'table' ? LEGEND_TABLE : { ...LEGEND_LIST, showLegend: legend === 'list' };
  return {
    ...basics,
    type: 'timeseries',
    defaults: {
      noValue,
      ...numbers({ unit, decimals, thresholds, mappings }),
      color: { mode: 'palette-classic' },
      ...(displayName === undefined ? {} : { displayName }),
      ...(min === undefined ? {} : { min }),
    },
    custom: {
      drawStyle: draw,
      fillOpacity: draw === 'bars' ? 60 : 4,
      lineWidth: 1,
      pointSize: 4,
      showPoints: 'auto',
      spanNulls: draw === 'bars' ? false : breakMs,
      ...(stack ? { stacking: { mode: 'normal', group: 'A' } } : {}),
    },
    options: { legend: shown, tooltip: TOOLTIP },
  };
}

/** States over time, a line for each. */
export function timeline(
  panel: Basics<'state-timeline'> & Empty & { readonly mappings: readonly Mapping[]; readonly perPage?: number },
): PanelOf<'state-timeline'> {
  const { noValue, mappings, perPage = 20, ...basics } = panel;
  return {
    ...basics,
    type: 'state-timeline',
    defaults: { noValue, mappings, color: { mode: 'palette-classic' }, unit: 'none' },
    custom: { fillOpacity: 80, lineWidth: 0, spanNulls: false },
    options: {
      alignValue: 'left',
      legend: { ...LEGEND_LIST, showLegend: false },
      mergeValues: true,
      perPage,
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
  const { noValue, columns: shown, sortBy, transformations = [], ...basics } = panel;
  const { overrides, last } = columns(shown);
  const all: readonly Transformation[] = [...transformations, last];
  const own: readonly Override[] = overrides;
  return {
    ...basics,
    type: 'table',
    defaults: { noValue, unit: 'none' },
    custom: { align: 'auto', filterable: true, inspect: false },
    overrides: own,
    transformations: all,
    options: { cellHeight: 'sm', frameIndex: 0, showHeader: true, ...(sortBy === undefined ? {} : { sortBy }) },
  };
}

/** Bars side by side, one for each row. */
export function bars(panel: Basics<'bargauge'> & Empty & Numbers): PanelOf<'bargauge'> {
  const { noValue, unit, decimals, thresholds, mappings, ...basics } = panel;
  return {
    ...basics,
    type: 'bargauge',
    defaults: { noValue, ...numbers({ unit, decimals, thresholds, mappings }), color: { mode: 'thresholds' } },
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
