/**
 * What sensors measure and in which unit, by the words of their names. The API gives no units: a sensor whose name has no
 * such word has none here, and its values are shown without.
 */

/** A kind of sensor. */
interface Known {
  readonly quantity: string;
  /** Words of a sensor name, as alternatives of a regular expression; a name is words between dots, dashes, underscores and digits. */
  readonly words: string;
  /** The sign of the unit as a person reads it; empty for numbers without a unit. */
  readonly sign: string;
}

/** The first that fits holds. */
export const QUANTITIES = [
  { quantity: 'temperature', words: 'temperature|temp|dew_?point', sign: '°C' },
  { quantity: 'humidity', words: 'humidity|moisture', sign: '%' },
  { quantity: 'charge', words: 'battery_(level|percent|soc)|battery_?level|soc', sign: '%' },
  { quantity: 'voltage', words: 'voltage|volts?|vbat', sign: 'V' },
  { quantity: 'current', words: 'current|amps?', sign: 'A' },
  { quantity: 'energy', words: 'energy', sign: 'kWh' },
  { quantity: 'power', words: 'power', sign: 'W' },
  { quantity: 'signal', words: 'rssi|signal', sign: 'dBm' },
  { quantity: 'sound', words: 'snr|noise|noise_level|sound', sign: 'dB' },
  { quantity: 'co2', words: 'co2|carbon_dioxide', sign: 'ppm' },
  { quantity: 'voc', words: 'tvoc|voc', sign: 'ppb' },
  { quantity: 'particles', words: 'pm(1|2_?5|4|10)', sign: 'μg/m³' },
  { quantity: 'pressure', words: 'pressure|barometer', sign: 'hPa' },
  { quantity: 'light', words: 'illuminance|lux|light', sign: 'lux' },
  { quantity: 'frequency', words: 'frequency', sign: 'Hz' },
  { quantity: 'speed', words: 'wind_?speed|speed', sign: 'm/s' },
  { quantity: 'contact', words: 'door|door_open|open|contact|motion|occupancy', sign: '' },
] as const satisfies readonly Known[];

export type Quantity = (typeof QUANTITIES)[number]['quantity'];

/**
 * The regular expression of names with such a word, without flags (letters count in any case). Whole words are matched, so
 * that `occupancy` is no `co2` and `attempt` no `temp`.
 */
export function namePattern(words: string, { before = '', after = '' } = {}): string {
  return `${before}(^|[._ -])(${words})([._ -]?[0-9]*)($|[._ -])${after}`;
}

const PATTERNS = QUANTITIES.map(({ words, sign }) => ({ pattern: new RegExp(namePattern(words), 'i'), sign }));

/** The sign of the unit of a sensor; empty where its name does not give it away. */
export function unitOf(sensor: string): string {
  return PATTERNS.find(({ pattern }) => pattern.test(sensor))?.sign ?? '';
}
