/**
 * The quantity and the unit that sensors measure, derived from the words of their names. The API gives no units. A
 * sensor whose name has no such word has no unit here, and its values are shown without one.
 */

/** A quantity with the sensor names that mean it and its unit. */
interface Known {
  readonly quantity: string;
  /**
   * Words of a sensor name, as alternatives of a regular expression; a name is words between dots, dashes, underscores
   * and digits.
   */
  readonly names: string;
  /** The sign of the unit as a person reads it; empty for numbers without a unit. */
  readonly sign: string;
}

/** Tried in this order: the first one whose names match a sensor applies. */
export const QUANTITIES = [
  { quantity: 'temperature', names: 'temperature|temp|dew_?point', sign: '°C' },
  { quantity: 'humidity', names: 'humidity|moisture', sign: '%' },
  { quantity: 'charge', names: 'battery_(level|percent|soc)|battery_?level|soc', sign: '%' },
  { quantity: 'voltage', names: 'voltage|volts?|vbat', sign: 'V' },
  { quantity: 'current', names: 'current|amps?', sign: 'A' },
  { quantity: 'energy', names: 'energy', sign: 'kWh' },
  { quantity: 'power', names: 'power', sign: 'W' },
  { quantity: 'signal', names: 'rssi|signal', sign: 'dBm' },
  { quantity: 'sound', names: 'snr|noise|noise_level|sound', sign: 'dB' },
  { quantity: 'co2', names: 'co2|carbon_dioxide', sign: 'ppm' },
  { quantity: 'voc', names: 'tvoc|voc', sign: 'ppb' },
  { quantity: 'particles', names: 'pm(1|2_?5|4|10)', sign: 'μg/m³' },
  { quantity: 'pressure', names: 'pressure|barometer', sign: 'hPa' },
  { quantity: 'light', names: 'illuminance|lux|light', sign: 'lux' },
  { quantity: 'frequency', names: 'frequency', sign: 'Hz' },
  { quantity: 'speed', names: 'wind_?speed|speed', sign: 'm/s' },
  { quantity: 'contact', names: 'door|door_open|open|contact|motion|occupancy', sign: '' },
] as const satisfies readonly Known[];

export type Quantity = (typeof QUANTITIES)[number]['quantity'];

/**
 * The regular expression for names with such a word, without flags (letters match in any case). Only whole words match,
 * so `occupancy` is no `co2` and `attempt` no `temp`.
 */
export function namePattern(names: string, { before = '', after = '' } = {}): string {
  return `${before}(^|[._ -])(${names})([._ -]?[0-9]*)($|[._ -])${after}`;
}

const PATTERNS = QUANTITIES.map(({ names, sign }) => ({ pattern: new RegExp(namePattern(names), 'i'), sign }));

/** The sign of the unit of a sensor; empty if its name does not show the unit. */
export function unitOf(sensor: string): string {
  return PATTERNS.find(({ pattern }) => pattern.test(sensor))?.sign ?? '';
}
