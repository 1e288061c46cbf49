/**
 * The readings of the devices of `fill.ts`: a day at a time, as lines and as the sum that the program keeps of it.
 *
 * Readings are evenly spaced, each device with a phase of its own; values are taken from a table, so that a value is a
 * function of device, instant and sensor, and is made without a calculation.
 */
import { hash64 } from '../../../src/core/hash.ts';
import { readingDigest } from '../../../src/core/lines/points.ts';
import { DAY_MS, msToNs } from '../../../src/core/time.ts';

export interface DayLines {
  readonly lines: readonly string[];
  readonly readings: number;
  readonly firstMs: number;
  readonly lastMs: number;
  readonly hashHigh: number;
  readonly hashLow: number;
}

export interface Timed {
  /** The index of the device among all. */
  readonly index: number;
  /** Readings have times at multiples of the interval beyond this. */
  readonly phaseMs: number;
  readonly newestReadingMs: number;
  readonly oldestReadingMs: number;
  /** Ranges without archived readings. */
  readonly left: readonly { readonly fromMs: number; readonly toMs: number }[];
}

export interface Values {
  dayOf(device: Timed, day: number, series: readonly string[]): DayLines;
}

const TABLE = 1024;

/** The texts of the values: a temperature that wanders by tenths. */
const TEXTS: readonly string[] = Array.from(
  { length: TABLE },
  (_, index) => `${Math.round(200 + 60 * Math.sin((index * 2 * Math.PI) / TABLE) + (index % 7)) / 10}`,
);

/** From reading to reading of each device, in whole milliseconds. */
export function intervalMsOf({ devices, readings, days }: { devices: number; readings: number; days: number }): number {
  return Math.max(1, Math.floor((days * DAY_MS * devices) / readings));
}

/** The number of the reading at an instant: what its value goes by. */
function placeOf({ index, phaseMs }: Pick<Timed, 'index' | 'phaseMs'>, atMs: number, intervalMs: number): number {
  return Math.floor((atMs - phaseMs) / intervalMs) + index * 37;
}

/** The text of a value. */
function textAt(place: number, sensor: number): string {
  return TEXTS[(place + sensor * 311) % TABLE] ?? '0';
}

/** The digest that the edge of a range carries. */
export function digestAt(
  device: Pick<Timed, 'index' | 'phaseMs'>,
  atMs: number,
  { sensors, intervalMs }: { sensors: number; intervalMs: number },
): string {
  const place = placeOf(device, atMs, intervalMs);
  const values = Array.from({ length: sensors }, (_, sensor) => [`s${sensor}`, Number(textAt(place, sensor))] as const);
  return readingDigest({ recordedAt: msToNs(atMs), values });
}

/** Makes days of lines. */
export function createValues(fill: { devices: number; readings: number; days: number; sensors: number }): Values {
  const intervalMs = intervalMsOf(fill);
  return {
    dayOf: (device, day, series) => {
      const { phaseMs, oldestReadingMs, newestReadingMs, left } = device;
      const startMs = Math.max(day * DAY_MS, oldestReadingMs);
      const endMs = Math.min((day + 1) * DAY_MS - 1, newestReadingMs);
      const firstMs = phaseMs + Math.ceil((startMs - phaseMs) / intervalMs) * intervalMs;
      const lines: string[] = [];
      let [readings, hashHigh, hashLow, oldestMs, newestMs] = [0, 0, 0, 0, 0];
      for (let atMs = firstMs; atMs <= endMs; atMs += intervalMs) {
        if (left.some(({ fromMs, toMs }) => fromMs <= atMs && atMs < toMs)) continue;
        const stamp = `${atMs}000000`;
        const place = placeOf(device, atMs, intervalMs);
        for (let sensor = 0; sensor < series.length; sensor += 1) {
          const field = `value=${textAt(place, sensor)}`;
          lines.push(`${series[sensor]} ${field} ${stamp}`);
          const { hi, lo } = hash64(`${stamp} s${sensor} ${field}`);
          hashHigh = (hashHigh + hi) % 2 ** 32;
          hashLow = (hashLow + lo) % 2 ** 32;
        }
        if (readings === 0) oldestMs = atMs;
        newestMs = atMs;
        readings += 1;
      }
      return { lines, readings, firstMs: oldestMs, lastMs: newestMs, hashHigh, hashLow };
    },
  };
}
