/**
 * Grafana's own library on the answers of a panel's queries: transformations, field overrides, formats of values, what is
 * shown where there is none. What a person would read, in words and colours.
 *
 * The library comes without the list of the field options, which Grafana's program registers: they are registered here by
 * the names and paths that they have there, each with the library's own function.
 */
import { createRequire } from 'node:module';
import type * as library from '@grafana/data';
import type { Panel } from './boards.ts';
import type { Frame } from './frames.ts';

// The ES modules of the package name exports that Node does not find in its CommonJS dependencies.
const grafana = createRequire(import.meta.url)('@grafana/data') as typeof library;

// Transformations ask whether they run in a page of Grafana.
if (!('window' in globalThis)) Object.assign(globalThis, { window: {} });

type DataFrame = library.DataFrame;
type DataField = library.Field;

/** The option of a field: by which name overrides set it, where it is kept, how a value is read. */
type Option = readonly [id: string, path: string, process: (...args: never[]) => unknown, settings?: object];

const OPTIONS: readonly Option[] = [
  ['displayName', 'displayName', grafana.displayNameOverrideProcessor, { expandTemplateVars: true }],
  ['unit', 'unit', grafana.unitOverrideProcessor],
  ['min', 'min', grafana.numberOverrideProcessor],
  ['max', 'max', grafana.numberOverrideProcessor],
  ['decimals', 'decimals', grafana.numberOverrideProcessor],
  ['noValue', 'noValue', grafana.stringOverrideProcessor],
  ['color', 'color', grafana.identityOverrideProcessor],
  ['mappings', 'mappings', grafana.valueMappingsOverrideProcessor],
  ['thresholds', 'thresholds', grafana.thresholdsOverrideProcessor],
  ['links', 'links', grafana.dataLinksOverrideProcessor],
];

/** Options of a kind of panel; their values are taken as they are. */
const CUSTOM = [
  'width',
  'cellOptions',
  'insertNulls',
  'spanNulls',
  'hideFrom',
  'lineStyle',
  'fillBelowTo',
  'lineWidth',
];

const registry = new grafana.FieldConfigOptionsRegistry();
for (const [id, path, process, settings] of OPTIONS) register(id, path, process, settings, false);
for (const name of CUSTOM) register(`custom.${name}`, name, grafana.identityOverrideProcessor, undefined, true);

function register(id: string, path: string, process: unknown, settings: object | undefined, isCustom: boolean): void {
  const item = { id, path, name: id, isCustom, process, settings, editor: () => null, override: () => null };
  registry.register({ ...item, shouldApply: () => true } as unknown as library.FieldConfigPropertyItem);
}

// One of them stands there under two names.
const transformers = new Map(Object.values(grafana.standardTransformers).map((one) => [one.id, one]));
grafana.standardTransformersRegistry.setInit(
  () =>
    [...transformers.values()].map((transformation) => ({
      id: transformation.id,
      aliasIds: [],
      name: transformation.name,
      transformation: () => Promise.resolve(transformation),
      editor: () => null,
      imageDark: '',
      imageLight: '',
    })) as unknown as library.TransformerRegistryItem[],
);

const theme = grafana.createTheme({ colors: { mode: 'dark' } });

/** What stands in a cell, a legend or a stat. */
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

/** The frames as the library takes them. */
function dataFrames(frames: readonly Frame[]): DataFrame[] {
  return frames.map(({ name, refId, fields }) =>
    grafana.createDataFrame({
      name,
      refId,
      fields: fields.map((field) => ({
        name: field.name,
        type: field.type as library.FieldType,
        values: [...field.values],
        ...(Object.keys(field.labels).length === 0 ? {} : { labels: { ...field.labels } }),
        config: namedByItsSource(field, name) ? { displayNameFromDS: field.displayName } : {},
      })),
    }),
  );
}

/** Whether the data source gives a field a name to show: InfluxDB to all but times, Prometheus to lines alone. */
function namedByItsSource({ type }: Frame['fields'][number], frameName: string): boolean {
  return type !== 'time' && frameName !== '';
}

/** Puts the labels and the name of a field into a text, as a panel does for the names of its fields. */
const replaceFieldVariables: library.InterpolateFunction = (text, scoped) => {
  const field = (scoped?.['__dataContext'] as { value: { field: DataField } } | undefined)?.value.field;
  return text.replace(/\$\{__field\.labels\.(\w+)\}/g, (_, label: string) => field?.labels?.[label] ?? '');
};

/** Frames of a panel, transformed, with the options of their fields. */
async function prepared(panel: Panel, frames: readonly Frame[]): Promise<DataFrame[]> {
  const transformations = (panel.transformations ?? []) as unknown as library.DataTransformerConfig[];
  const transformed = await new Promise<DataFrame[]>((resolve, reject) => {
    grafana
      .transformDataFrame(transformations, dataFrames(frames), { interpolate: (text) => text })
      .subscribe({ next: resolve, error: reject });
  });
  return grafana.applyFieldOverrides({
    data: transformed,
    fieldConfig: structuredClone(panel.fieldConfig) as unknown as library.FieldConfigSource,
    replaceVariables: replaceFieldVariables,
    theme,
    timeZone: 'utc',
    fieldConfigRegistry: registry,
  });
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
  const data = await prepared(panel, frames);
  const sorted =
    panel.type === 'table'
      ? data.slice(0, 1).map((frame) => sortedBy(frame, panel, frames.length === panel.targets?.length))
      : data;
  return { fields: sorted.flatMap((frame, index) => fieldsOf(frame, index, sorted)), rows: sorted[0]?.length ?? 0 };
}

/** The rows of a table in the order that it says, by the names of its columns; later ones decide among equals. */
function sortedBy(frame: DataFrame, panel: Panel, isWhole: boolean): DataFrame {
  const keys = (panel.options?.['sortBy'] ?? []) as { displayName: string; desc?: boolean }[];
  return keys.toReversed().reduce((rows, { displayName, desc }) => {
    const at = rows.fields.findIndex((field) => grafana.getFieldDisplayName(field, rows) === displayName);
    // A column of a query that was answered nothing is not there.
    if (at < 0 && isWhole) throw new Error(`${panel.title} is sorted by ${displayName}, which it does not have`);
    return at < 0 ? rows : grafana.sortDataFrame(rows, at, desc === true);
  }, frame);
}

/** What a stat or a list of bars shows: names, words and colours; one without a name where there is nothing. */
export async function valuesOf(
  panel: Panel,
  frames: readonly Frame[],
): Promise<readonly (Shown & { readonly title: string; readonly links: readonly string[] })[]> {
  const data = await prepared(panel, frames);
  return grafana
    .getFieldDisplayValues({
      data,
      fieldConfig: structuredClone(panel.fieldConfig) as unknown as library.FieldConfigSource,
      reduceOptions: panel.options?.['reduceOptions'] as library.ReduceDataOptions,
      replaceVariables: replaceFieldVariables,
      theme,
      timeZone: 'utc',
    })
    .map(({ display: value, field }) => ({
      ...shown(value.numeric, value),
      title: value.title ?? '',
      links: (field.links ?? []).map(({ url }) => url),
    }));
}

/** A chart or timeline as it is drawn up to the end of a range: with the breaks that its fields ask for. */
export async function drawnOf(panel: Panel, frames: readonly Frame[], toMs: number): Promise<Picture> {
  const data = (await prepared(panel, frames)).map((frame) =>
    grafana.applyNullInsertThreshold({ frame, refFieldPseudoMax: toMs, insertMode: (previous) => previous + 1 }),
  );
  return { fields: data.flatMap((frame, index) => fieldsOf(frame, index, data)), rows: data[0]?.length ?? 0 };
}
