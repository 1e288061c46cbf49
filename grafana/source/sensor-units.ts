/**
 * Units and decimals of sensors for Grafana, by the rule of the program (`src/core/sensor-units.ts`): what the name of
 * a sensor does not give away is shown as it is.
 */
import { namePattern, QUANTITIES, type Quantity } from '../../src/core/sensor-units.ts';
import type { Column } from './looks.ts';
import type { Mapping, Override } from './model.ts';

/** How Grafana calls the unit of a quantity, and the decimals of its values. */
const FORMATS: Readonly<Record<Quantity, { readonly unit: string; readonly decimals: number }>> = {
  temperature: { unit: 'celsius', decimals: 1 },
  humidity: { unit: 'percent', decimals: 1 },
  charge: { unit: 'percent', decimals: 0 },
  voltage: { unit: 'volt', decimals: 2 },
  current: { unit: 'amp', decimals: 2 },
  energy: { unit: 'kwatth', decimals: 1 },
  power: { unit: 'watt', decimals: 0 },
  signal: { unit: 'dBm', decimals: 0 },
  sound: { unit: 'dB', decimals: 1 },
  co2: { unit: 'ppm', decimals: 0 },
  voc: { unit: 'conppb', decimals: 0 },
  particles: { unit: 'conμgm3', decimals: 1 },
  pressure: { unit: 'pressurehpa', decimals: 1 },
  light: { unit: 'lux', decimals: 0 },
  frequency: { unit: 'hertz', decimals: 1 },
  speed: { unit: 'velocityms', decimals: 1 },
  contact: { unit: 'none', decimals: 0 },
};

const REST = '[\\s\\S]*';
const NO_UNIT = '–';

/** A pattern in Grafana's syntax. */
function grafanaPattern(words: string, around = { before: '', after: '' }): string {
  return `/${namePattern(words, around)}/i`;
}

/** The sign of the unit, in place of the name of a sensor: a mapping exchanges what its pattern finds, so that is all. */
const SIGNS: readonly Mapping[] = [
  ...QUANTITIES.map(
    ({ names, sign }) => [grafanaPattern(names, { before: `^${REST}`, after: `${REST}$` }), sign || NO_UNIT] as const,
  ),
  [`/^${REST}$/`, NO_UNIT] as const,
].map(([found, text], index) => ({ type: 'regex', options: { pattern: found, result: { text, index } } }));

/** A column of sensors as units, beside numbers of sensors of several kinds: a column of numbers has one unit for all rows. */
export const UNIT_COLUMN: Column = { title: 'Unit', mappings: SIGNS, width: 65 };

/**
 * Rules for fields that are named after their sensor. Grafana applies all that match, later ones over earlier ones, so
 * the list is reversed.
 */
export const SENSOR_UNITS: readonly Override[] = QUANTITIES.toReversed().map(({ quantity, names }) => ({
  matcher: { id: 'byRegexp', options: grafanaPattern(names) },
  properties: [
    { id: 'unit', value: FORMATS[quantity].unit },
    { id: 'decimals', value: FORMATS[quantity].decimals },
  ],
}));
