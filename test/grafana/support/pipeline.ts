/**
 * The processing of the answers of a panel's queries before Grafana draws them, by its own library, which is given: in
 * tests that of Node, for pictures that of a browser.
 *
 * The library comes without the list of the field options, which Grafana's program registers: they are registered here
 * by the names and paths that they have there, each with the library's own function.
 */
import type * as library from '@grafana/data';
import type { Panel } from './boards.ts';
import type { Frame } from './frames.ts';

type DataFrame = library.DataFrame;
type DataField = library.Field;
type Library = typeof library;

/** The option of a field: by which name overrides set it, where it is kept, how a value is read. */
type Option = readonly [id: string, path: string, process: (...args: never[]) => unknown, settings?: object];

const optionsOf = (grafana: Library): readonly Option[] => [
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

/** Options of a kind of panel; their values are used unchanged. */
const CUSTOM = [
  ...['drawStyle', 'fillOpacity', 'pointSize', 'showPoints', 'stacking', 'align', 'axisPlacement'],
  'width',
  'cellOptions',
  'insertNulls',
  'spanNulls',
  'hideFrom',
  'lineStyle',
  'fillBelowTo',
  'lineWidth',
];

/** The steps of a panel, by a library. */
export interface Pipeline {
  readonly theme: library.GrafanaTheme2;
  /** Frames of a panel, transformed, with the options of their fields; a table in the order of its rows. */
  prepare(panel: Panel, frames: readonly Frame[]): Promise<DataFrame[]>;
  /** The content of a stat or a list of bars. */
  values(panel: Panel, frames: readonly Frame[]): Promise<library.FieldDisplay[]>;
}

/** The frames in the form of the library. */
function dataFrames(grafana: Library, frames: readonly Frame[]): DataFrame[] {
  return frames.map(({ name, refId, fields }) =>
    grafana.createDataFrame({
      name,
      refId,
      fields: fields.map((field) => ({
        name: field.name,
        type: field.type as library.FieldType,
        values: [...field.values],
        ...(Object.keys(field.labels).length === 0 ? {} : { labels: { ...field.labels } }),
        config: {
          ...(namedByItsSource(field, name) ? { displayNameFromDS: field.displayName } : {}),
          ...(field.intervalMs === undefined ? {} : { interval: field.intervalMs }),
        },
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

/** The rows of a table in its configured order, by the names of its columns; later ones decide among equals. */
function sortedBy(
  grafana: Library,
  frame: DataFrame,
  { panel, isWhole }: { panel: Panel; isWhole: boolean },
): DataFrame {
  const keys = (panel.options?.['sortBy'] ?? []) as { displayName: string; desc?: boolean }[];
  return keys.toReversed().reduce((rows, { displayName, desc }) => {
    const at = rows.fields.findIndex((field) => grafana.getFieldDisplayName(field, rows) === displayName);
    // A column of a query that was answered nothing is not there.
    if (at < 0 && isWhole) throw new Error(`${panel.title} is sorted by ${displayName}, which it does not have`);
    return at < 0 ? rows : grafana.sortDataFrame(rows, at, desc === true);
  }, frame);
}

/** The options of fields, as a registry of the library. */
function registryOf(grafana: Library): library.FieldConfigOptionsRegistry {
  const registry = new grafana.FieldConfigOptionsRegistry();
  const register = (id: string, path: string, more: object): void => {
    const item = { id, path, name: id, editor: () => null, override: () => null, shouldApply: () => true, ...more };
    registry.register(item as unknown as library.FieldConfigPropertyItem);
  };
  for (const [id, path, process, settings] of optionsOf(grafana))
    register(id, path, { process, settings, isCustom: false });
  for (const name of CUSTOM)
    register(`custom.${name}`, name, { process: grafana.identityOverrideProcessor, isCustom: true });
  return registry;
}

function registerTransformers(grafana: Library): void {
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
}

/** @param mode of the theme, whose colours are shown. */
export function pipelineOf(grafana: Library, mode: 'dark' | 'light' = 'dark'): Pipeline {
  registerTransformers(grafana);
  const fieldConfigRegistry = registryOf(grafana);
  const theme = grafana.createTheme({ colors: { mode } });
  const configOf = (panel: Panel) => structuredClone(panel.fieldConfig) as unknown as library.FieldConfigSource;
  const common = { replaceVariables: replaceFieldVariables, theme, timeZone: 'utc' };
  const prepare: Pipeline['prepare'] = async (panel, frames) => {
    const transformations = (panel.transformations ?? []) as unknown as library.DataTransformerConfig[];
    const transformed = await new Promise<DataFrame[]>((resolve, reject) => {
      grafana
        .transformDataFrame(transformations, dataFrames(grafana, frames), { interpolate: (text) => text })
        .subscribe({ next: resolve, error: reject });
    });
    const data = grafana.applyFieldOverrides({
      ...common,
      data: transformed,
      fieldConfig: configOf(panel),
      fieldConfigRegistry,
    });
    const isWhole = frames.length === panel.targets?.length;
    return panel.type === 'table'
      ? data.slice(0, 1).map((frame) => sortedBy(grafana, frame, { panel, isWhole }))
      : data;
  };
  const values: Pipeline['values'] = async (panel, frames) => {
    const reduceOptions = panel.options?.['reduceOptions'] as library.ReduceDataOptions;
    const data = await prepare(panel, frames);
    return grafana.getFieldDisplayValues({ ...common, data, fieldConfig: configOf(panel), reduceOptions });
  };
  return { theme, prepare, values };
}
