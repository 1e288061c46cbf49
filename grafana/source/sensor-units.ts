/**
 * Units and decimals of sensors whose names say what they measure. The API tells no units: what a name does not give
 * away is shown as it is.
 */
import type { Override } from './model.ts';

interface Known {
  /** Words of a sensor name, any of them; a name is words between dots, dashes, underscores and digits. */
  readonly words: string;
  readonly unit: string;
  readonly decimals: number;
}

/** The first that fits holds. */
const KNOWN: readonly Known[] = [
  { words: 'temperature|temp|dew_?point', unit: 'celsius', decimals: 1 },
  { words: 'humidity|moisture', unit: 'percent', decimals: 1 },
  { words: 'battery_(level|percent|soc)|battery_?level|soc', unit: 'percent', decimals: 0 },
  { words: 'voltage|volts?|vbat', unit: 'volt', decimals: 2 },
  { words: 'current|amps?', unit: 'amp', decimals: 2 },
  { words: 'energy', unit: 'kwatth', decimals: 1 },
  { words: 'power', unit: 'watt', decimals: 0 },
  { words: 'rssi|signal', unit: 'dBm', decimals: 0 },
  { words: 'snr|noise|noise_level|sound', unit: 'dB', decimals: 1 },
  { words: 'co2|carbon_dioxide', unit: 'ppm', decimals: 0 },
  { words: 'tvoc|voc', unit: 'conppb', decimals: 0 },
  { words: 'pm(1|2_?5|4|10)', unit: 'conμgm3', decimals: 1 },
  { words: 'pressure|barometer', unit: 'pressurehpa', decimals: 1 },
  { words: 'illuminance|lux|light', unit: 'lux', decimals: 0 },
  { words: 'frequency', unit: 'hertz', decimals: 1 },
  { words: 'wind_?speed|speed', unit: 'velocityms', decimals: 1 },
  { words: 'door|door_open|open|contact|motion|occupancy', unit: 'none', decimals: 0 },
];

/** A name is matched by whole words, so that `occupancy` is no `co2` and `attempt` no `temp`. */
function pattern(words: string): string {
  return `/(^|[._ -])(${words})([._ -]?[0-9]*)($|[._ -])/i`;
}

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
