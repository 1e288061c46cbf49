/**
 * Units and decimals of sensors whose names say what they measure. The API tells no units: what a name does not give
 * away is shown as it is.
 */
import type { Column } from './looks.ts';
import type { Mapping, Override } from './model.ts';

interface Known {
  /** Words of a sensor name, any of them; a name is words between dots, dashes, underscores and digits. */
  readonly words: string;
  /** As Grafana calls it, and as a person reads it. */
  readonly unit: string;
  readonly sign: string;
  readonly decimals: number;
}

/** The first that fits holds. */
const KNOWN: readonly Known[] = [
  { words: 'temperature|temp|dew_?point', unit: 'celsius', sign: '°C', decimals: 1 },
  { words: 'humidity|moisture', unit: 'percent', sign: '%', decimals: 1 },
  { words: 'battery_(level|percent|soc)|battery_?level|soc', unit: 'percent', sign: '%', decimals: 0 },
  { words: 'voltage|volts?|vbat', unit: 'volt', sign: 'V', decimals: 2 },
  { words: 'current|amps?', unit: 'amp', sign: 'A', decimals: 2 },
  { words: 'energy', unit: 'kwatth', sign: 'kWh', decimals: 1 },
  { words: 'power', unit: 'watt', sign: 'W', decimals: 0 },
  { words: 'rssi|signal', unit: 'dBm', sign: 'dBm', decimals: 0 },
  { words: 'snr|noise|noise_level|sound', unit: 'dB', sign: 'dB', decimals: 1 },
  { words: 'co2|carbon_dioxide', unit: 'ppm', sign: 'ppm', decimals: 0 },
  { words: 'tvoc|voc', unit: 'conppb', sign: 'ppb', decimals: 0 },
  { words: 'pm(1|2_?5|4|10)', unit: 'conμgm3', sign: 'μg/m³', decimals: 1 },
  { words: 'pressure|barometer', unit: 'pressurehpa', sign: 'hPa', decimals: 1 },
  { words: 'illuminance|lux|light', unit: 'lux', sign: 'lux', decimals: 0 },
  { words: 'frequency', unit: 'hertz', sign: 'Hz', decimals: 1 },
  { words: 'wind_?speed|speed', unit: 'velocityms', sign: 'm/s', decimals: 1 },
  { words: 'door|door_open|open|contact|motion|occupancy', unit: 'none', sign: '–', decimals: 0 },
];

/** A name is matched by whole words, so that `occupancy` is no `co2` and `attempt` no `temp`. */
function pattern(words: string, { before = '', after = '' } = {}): string {
  return `/${before}(^|[._ -])(${words})([._ -]?[0-9]*)($|[._ -])${after}/i`;
}

const REST = '[\\s\\S]*';

/** The sign of the unit, in place of the name of a sensor: a mapping exchanges what its pattern finds, so that is all. */
const SIGNS: readonly Mapping[] = [
  ...KNOWN.map(({ words, sign }) => [pattern(words, { before: `^${REST}`, after: `${REST}$` }), sign] as const),
  [`/^${REST}$/`, '–'] as const,
].map(([found, text], index) => ({ type: 'regex', options: { pattern: found, result: { text, index } } }));

/** A column of sensors as units, beside numbers of sensors of several kinds: a column of numbers has one unit for all rows. */
export const UNIT_COLUMN: Column = { title: 'Unit', mappings: SIGNS, width: 80 };

/**
 * Rules for fields that are named after their sensor. Grafana applies all that fit, later ones over earlier: so the list
 * is turned round.
 */
export const SENSOR_UNITS: readonly Override[] = KNOWN.toReversed().map(({ words, unit, decimals }) => ({
  matcher: { id: 'byRegexp', options: pattern(words) },
  properties: [
    { id: 'unit', value: unit },
    { id: 'decimals', value: decimals },
  ],
}));
