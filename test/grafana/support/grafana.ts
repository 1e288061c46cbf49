/**
 * Grafana's own library on the answers of a panel's queries: transformations, field overrides, formats of values, what
 * is shown where there is none. What a person would read, in words and colours.
 */
import { createRequire } from 'node:module';
import type * as library from '@grafana/data';
import type { Panel } from './boards.ts';
import type { Frame } from './frames.ts';
import { pipelineOf } from './pipeline.ts';

// The ES modules of the package name exports that Node does not find in its CommonJS dependencies.
const grafana = createRequire(import.meta.url)('@grafana/data') as typeof library;

// Transformations check whether they run in a page of Grafana.
if (!('window' in globalThis)) Object.assign(globalThis, { window: {} });

type DataFrame = library.DataFrame;
type DataField = library.Field;

const { theme, prepare, values } = pipelineOf(grafana);

/** The content of a cell, a legend or a stat. */
export interface Shown {
  readonly text: string;
  /** By the name that the panels use: `green`, `red`; `null` where it is none of those. */
  readonly color: string | null;
  readonly value: unknown;
}

/** A column of a table, a line of a chart, a bar of a timeline. */
export interface ShownField {
  readonly title: string;
  readonly frame: number;
  readonly cells: readonly Shown[];
  readonly times: readonly number[];
  readonly links: readonly string[];
  readonly config: library.FieldConfig;
}

export interface Picture {
  readonly fields: readonly ShownField[];
  /** The number of rows of the first frame. */
  readonly rows: number;
}

const NAMES = ['green', 'yellow', 'orange', 'red', 'blue', 'purple', 'text', 'super-light-orange', 'semi-dark-blue'];
const COLORS = new Map(NAMES.map((name) => [hex(theme.visualization.getColorByName(name)), name]));

function hex(color: string): string {
  return grafana.colorManipulator.asHexString(color).toLowerCase();
}

function shown(value: unknown, display: library.DisplayValue): Shown {
  const color = display.color === undefined ? null : (COLORS.get(hex(display.color)) ?? null);
  return { text: grafana.formattedValueToString(display), color, value };
}

function fieldsOf(frame: DataFrame, index: number, all: readonly DataFrame[]): ShownField[] {
  const time = frame.fields.find(({ type }) => type === 'time');
  return frame.fields
    .filter(({ config }) => config.custom?.hideFrom?.viz !== true)
    .map((field) => ({
      title: grafana.getFieldDisplayName(field, frame, [...all]),
      frame: index,
      cells: [...field.values].map((value) => shown(value, display(field, value))),
      times: [...(time?.values ?? [])] as number[],
      links: (field.config.links ?? []).map(({ url }) => url),
      config: field.config,
    }));
}

function display(field: DataField, value: unknown): library.DisplayValue {
  return (field.display ?? grafana.getDisplayProcessor({ field, theme, timeZone: 'utc' }))(value);
}

/** A table, a chart or a timeline: its fields with what is read in them; a table in the order of its rows. */
export async function pictureOf(panel: Panel, frames: readonly Frame[]): Promise<Picture> {
  const data = await prepare(panel, frames);
  return { fields: data.flatMap((frame, index) => fieldsOf(frame, index, data)), rows: data[0]?.length ?? 0 };
}

/** The content of a stat or a list of bars: names, words and colours; one without a name where there is nothing. */
export async function valuesOf(
  panel: Panel,
  frames: readonly Frame[],
): Promise<readonly (Shown & { readonly title: string; readonly links: readonly string[] })[]> {
  return (await values(panel, frames)).map(({ display: value, field }) => ({
    ...shown(value.numeric, value),
    title: value.title ?? '',
    links: (field.links ?? []).map(({ url }) => url),
  }));
}

/** A chart or timeline as it is drawn up to the end of a range: with the breaks of its fields. */
export async function drawnOf(panel: Panel, frames: readonly Frame[], toMs: number): Promise<Picture> {
  const data = (await prepare(panel, frames)).map((frame) =>
    grafana.applyNullInsertThreshold({ frame, refFieldPseudoMax: toMs, insertMode: (previous) => previous + 1 }),
  );
  return { fields: data.flatMap((frame, index) => fieldsOf(frame, index, data)), rows: data[0]?.length ?? 0 };
}
