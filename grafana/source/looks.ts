/**
 * How things look: the colours of states, thresholds, legends and tooltips, links to a device. The same everywhere.
 */
import type { DataLink, Mapping, Override, Thresholds, Transformation } from './model.ts';

/** Numbers or words as text in a colour. */
export function words(meaning: Readonly<Record<string, readonly [text: string, color: string]>>): Mapping {
  return {
    type: 'value',
    options: Object.fromEntries(
      Object.entries(meaning).map(([value, [text, color]], index) => [value, { text, color, index }]),
    ),
  };
}

export const ONLINE = words({ '0': ['Not online', 'red'], '1': ['Online', 'green'] });

/** Stands for whether a device is online where Tidemark no longer reports it. */
export const UNKNOWN = 2;
/** The same of now, in the cell of a table. Below 0: the workspace does not report it. */
export const ONLINE_CELL = words({
  '-1': ['–', 'text'],
  '0': ['Not online', 'red'],
  '1': ['Online', 'green'],
  [UNKNOWN]: ['unknown', 'red'],
});

/** Added to a count where Tidemark no longer reports what is counted. */
export const UNKNOWN_N = 1_000_000_000_000;
export const UNKNOWN_COUNT: Mapping = {
  type: 'range',
  options: { from: UNKNOWN_N / 2, to: 2 * UNKNOWN_N, result: { text: 'unknown', color: 'red', index: 9 } },
};

/** The states of `coverage`, in words and colours. */
export const STATE_COLORS = {
  live: ['live', 'green'],
  'catching-up': ['catching up', 'blue'],
  silent: ['silent', 'orange'],
  unreachable: ['unreachable', 'red'],
  excluded: ['excluded', 'text'],
} as const;
/** Silent devices that were paused, shelved or retired: the stored state of both is the same. */
export const OUT_OF_SERVICE = 'out of service';
/** The same over time, where nothing distinguishes the two. */
export const COVERAGE_STATE = words({ ...STATE_COLORS, silent: [`silent or ${OUT_OF_SERVICE}`, 'orange'] });
/** The same beside a lag, which distinguishes the two. */
export const COVERAGE_STATE_CELL = words({ ...STATE_COLORS, silent: ['nothing newer', 'text'] });

/** Shown where there is no value. */
export function instead(text: string, color: string): Mapping {
  return { type: 'special', options: { match: 'null', result: { text, color, index: 9 } } };
}

/** A device without a coverage point in the last 17 minutes: nothing is known of its sync any more. */
export const NOT_REPORTED = instead('unknown', 'red');

/** Numbers that stand for words among the lags of a table. The first two: nothing newer exists. */
export const LAG_WORDS = {
  silent: 1_000_000_000_000,
  outOfService: 2_000_000_000_000,
  initialSync: -1_000_000_000_000,
  notReported: -2_000_000_000_000,
} as const;

function lagWord(number: number, text: string, color: string): Mapping {
  const half = LAG_WORDS.silent / 2;
  return { type: 'range', options: { from: number - half, to: number + half, result: { text, color, index: 7 } } };
}

export const LAG_MAPPINGS: readonly Mapping[] = [
  lagWord(LAG_WORDS.silent, 'silent', 'orange'),
  lagWord(LAG_WORDS.outOfService, OUT_OF_SERVICE, 'text'),
  lagWord(LAG_WORDS.initialSync, 'initial sync', 'blue'),
  lagWord(LAG_WORDS.notReported, 'unknown', 'red'),
  NOT_REPORTED,
];

/** A time that is not read: where it is 0, none is. */
export const NOTHING_MISSING: Mapping = { type: 'value', options: { '0': { text: 'none', index: 6 } } };

/** The same for a number, by the query that is answered 0 then. */
export function initialSync(refId: string): Override[] {
  return [
    {
      matcher: { id: 'byFrameRefID', options: refId },
      properties: [
        { id: 'mappings', value: [words({ '0': ['initial sync', 'blue'] })] },
        { id: 'color', value: { mode: 'fixed', fixedColor: 'blue' } },
      ],
    },
  ];
}

function below15Minutes(text: string): Mapping {
  return { type: 'range', options: { from: 0, to: 900, result: { text, index: 8 } } };
}

/**
 * Lag below the smallest target: a coverage point may be 15 minutes old, so smaller values mean nothing. Written as
 * Grafana writes the other values: "20 mins" in numbers and charts, "20 minutes" in tables.
 */
export const UP_TO_DATE = below15Minutes('< 15 mins');
export const UP_TO_DATE_CELL = below15Minutes('< 15 minutes');

/** Codes such as `no_signal` as words: the values are not documented, so any code of two or three words. */
export const CODE_WORDS: readonly Mapping[] = [
  ['/^([^_]+)_([^_]+)$/', '$1 $2'],
  ['/^([^_]+)_([^_]+)_([^_]+)$/', '$1 $2 $3'],
].map(([pattern = '', text = ''], index) => ({ type: 'regex', options: { pattern, result: { text, index } } }));

export const LIFECYCLE = words({
  active: ['active', 'green'],
  paused: ['paused', 'blue'],
  shelved: ['shelved', 'purple'],
  retired: ['retired', 'text'],
});

/** The lifecycle states in which no readings are expected. */
export const RESTING = ['paused', 'shelved', 'retired'] as const;

export const ALERT_STATUS = words({
  open: ['open', 'red'],
  acknowledged: ['acknowledged', 'orange'],
  resolved: ['resolved', 'green'],
});

/** The readings of an hour: -1 stands for an hour of which there is no point. */
export const COVERED: readonly Mapping[] = [
  words({ '-1': ['not covered yet', 'super-light-orange'], '0': ['no data', 'semi-dark-blue'] }),
  { type: 'range', options: { from: 1, to: 1e12, result: { text: 'covered', color: 'green', index: 2 } } },
];

/** Green below the first step; each further one begins at its value. */
export function steps(first: string, ...further: readonly (readonly [value: number, color: string])[]): Thresholds {
  return {
    mode: 'absolute',
    steps: [{ value: null, color: first }, ...further.map(([value, color]) => ({ value, color }))],
  };
}

export const PLAIN = steps('blue');
/** A number that had better be 0. */
export const BAD_IF_ANY = steps('green', [1, 'orange']);
/** The same, and red where it is not known. */
export const BAD_OR_UNKNOWN = steps('red', [0, 'green'], [1, 'orange']);
/** Numbers in the colour of text. */
export const NEUTRAL = steps('text');
/** Percent of a quota; in no colour where it is not known. */
export const SPENT = steps('text', [0, 'green'], [80, 'yellow'], [95, 'red']);

export const LEGEND_LIST = { displayMode: 'list', placement: 'bottom', showLegend: true, calcs: [] } as const;
export const LEGEND_TABLE = {
  displayMode: 'table',
  placement: 'bottom',
  showLegend: true,
  calcs: ['lastNotNull', 'min', 'mean', 'max'],
} as const;
export const TOOLTIP = { mode: 'multi', sort: 'desc' } as const;

/** A link to a dashboard of devices, from a row that has its id among its columns. */
export function toDevice(uid: string, source: string, column = 'device_id'): DataLink {
  return {
    title: 'Open the device',
    url: `/d/${uid}?\${${source}:queryparam}&var-device=\${__data.fields.${column}:percentencode}&\${__url_time_range}`,
  };
}

/** A link to a panel of a dashboard; the layout puts its number in. */
export function toPanel(uid: string, panel: string, title: string, source = 'datasource'): DataLink {
  return { title, url: `/d/${uid}?viewPanel=<${panel}>&\${${source}:queryparam}&\${__url_time_range}` };
}

export const TO_ALERTS: DataLink = {
  title: 'List the alerts',
  url: `/d/tidemark-alerts?\${datasource:queryparam}&\${__url_time_range}`,
};

export const TO_DEVICE = toDevice('tidemark-device', 'datasource');

/** What a column of a table is called and how it is shown. */
export interface Column {
  readonly title: string;
  readonly unit?: string;
  readonly decimals?: number;
  readonly width?: number;
  readonly mappings?: readonly Mapping[];
  readonly thresholds?: Thresholds;
  readonly links?: readonly DataLink[];
  /** Colours the cell by its mapping or threshold. */
  readonly colored?: boolean;
  /** Removes it from the table: no link can use it then. */
  readonly hidden?: boolean;
}

/** Columns that a table leaves out, by their names in the answer. */
export function hidden(...names: readonly string[]): Readonly<Record<string, Column>> {
  return Object.fromEntries(names.map((name) => [name, { title: name, hidden: true }]));
}

/** How the columns of a table are shown, by their names in the answer; in this order, and no others. */
export function columns(shown: Readonly<Record<string, Column>>): { overrides: Override[]; last: Transformation } {
  const names = Object.keys(shown);
  const isHidden = (name: string): boolean => shown[name]?.hidden === true;
  return {
    overrides: Object.values(shown).flatMap((column) => {
      const properties = propertiesOf(column);
      const matcher = { id: 'byName', options: column.title } as const;
      return properties.length === 0 ? [] : [{ matcher, properties }];
    }),
    last: {
      id: 'organize',
      options: {
        indexByName: Object.fromEntries(names.map((name, index) => [name, index])),
        renameByName: Object.fromEntries(names.map((name) => [name, shown[name]?.title ?? name])),
        // "Time" removes the times of all tables: in a join none of them has that name.
        excludeByName: {
          ...(names.some((name) => /^Time\b/.test(name) && !isHidden(name)) ? {} : { Time: true }),
          ...Object.fromEntries(names.filter(isHidden).map((name) => [name, true])),
        },
        includeByName: {},
      },
    },
  };
}

function propertiesOf({ unit, decimals, width, mappings, thresholds, links, colored, hidden }: Column) {
  if (hidden === true) return [];
  const given = {
    unit,
    decimals,
    mappings,
    thresholds,
    links,
    'custom.width': width,
    'custom.cellOptions': colored === true ? { type: 'color-text' } : undefined,
  };
  return Object.entries(given).flatMap(([id, value]) => (value === undefined ? [] : [{ id, value }]));
}

/** Puts tables together that have a column in common. */
export function join(byField: string, mode: 'outer' | 'inner' | 'outerTabular' = 'outer'): Transformation {
  return { id: 'joinByField', options: { byField, mode } };
}

/** A column with the later of a time and a number of milliseconds. */
export function later(time: string, ms: string, alias: string): Transformation[] {
  const conversions = [{ targetField: time, destinationType: 'number' }];
  return [
    { id: 'convertFieldType', options: { fields: {}, conversions } },
    { id: 'calculateField', options: { mode: 'reduceRow', reduce: { reducer: 'max', include: [time, ms] }, alias } },
  ];
}

/** A column with whether a device is online now; it and `unreported` stay. @param online the column of the device list. */
export function onlineNow(online = 'online'): Transformation {
  const include = [online, 'unreported'];
  return {
    id: 'calculateField',
    options: { mode: 'reduceRow', reduce: { reducer: 'max', include }, alias: ONLINE_NOW },
  };
}
export const ONLINE_NOW = 'online_now';

/** What a value of a field is compared with. */
export type Condition =
  | readonly [field: string, id: 'equal' | 'greater' | 'lower', value: number | string]
  | readonly [field: string, id: 'isNull'];

/** The fields by whose values `groupBy` puts rows together. */
export function grouped(
  ...fields: readonly string[]
): Readonly<Record<string, { operation: 'groupby'; aggregations: [] }>> {
  return Object.fromEntries(fields.map((field) => [field, { operation: 'groupby', aggregations: [] }]));
}

/** Keeps or drops the rows for which any condition is true. */
export function any(type: 'include' | 'exclude', ...conditions: readonly Condition[]): Transformation {
  const filters = conditions.map(([fieldName, id, value]) => {
    return { fieldName, config: { id, options: value === undefined ? {} : { value } } };
  });
  return { id: 'filterByValue', options: { type, match: 'any', filters } };
}

/** Rows with such a value, or with any. */
export function only(fieldName: string, id: 'equal' | 'isNotNull' | 'lower', value?: number | string): Transformation {
  const config = { id, options: value === undefined ? {} : { value } };
  return { id: 'filterByValue', options: { type: 'include', match: 'all', filters: [{ fieldName, config }] } };
}
