/**
 * The workspace of the bench: the data of its API and, computed independently of the program, the lines that a database
 * must receive.
 *
 * Pure and cheap on purpose: whatever makes pages or checks lines here runs beside the program on the same machine.
 * Readings lie on a grid of time, so a window is two divisions; texts of values are made once.
 */
import { crc32 } from 'node:zlib';

/** How much is served. */
export interface WorkspaceSize {
  readonly devices: number;
  /** How many readings each device has. */
  readonly readings: number;
  /** From one reading to the next. */
  readonly intervalMs: number;
  /** When the newest reading was recorded; a whole number of intervals. */
  readonly newestMs: number;
}

/** A count and an order-independent sum: of the CRC-32 of each line, modulo 2^32. */
export interface LineSum {
  readonly lines: number;
  readonly sum: number;
}

export const WORKSPACE_ID = 'bench';
export const SENSORS = ['temperature', 'humidity', 'voltage'] as const;

/** How many different sets of values there are; devices go through them from places of their own. */
const VARIETY = 4096;
const DEVICE_STRIDE = 97;
const MS_NS = 1_000_000n;

/** The three values of a reading, as a device that measures something slow would report them. */
const VALUES: readonly (readonly number[])[] = Array.from({ length: VARIETY }, (_, index) => {
  const turn = (index / VARIETY) * 2 * Math.PI;
  const noise = ((index * 2654435761) % 1000) / 1000;
  return [
    round(21 + 6 * Math.sin(turn * 3) + noise, 2),
    round(48 + 20 * Math.cos(turn * 2) + 4 * noise, 1),
    round(3.1 + noise / 10, 3),
  ];
});

const VALUE_TEXTS: readonly string[] = VALUES.map((values) =>
  JSON.stringify(Object.fromEntries(SENSORS.map((sensor, index) => [sensor, values[index]]))),
);

function round(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}

/** Ids in the order of the list of devices. */
export function deviceIdOf(device: number): string {
  return `sensor-${String(device).padStart(5, '0')}`;
}

/** @returns the number of a device; -1 for an id that is of none. */
export function deviceOf(deviceId: string): number {
  return /^sensor-\d{5}$/.test(deviceId) ? Number(deviceId.slice(-5)) : -1;
}

function varietyOf(device: number, tick: number): number {
  return (tick + device * DEVICE_STRIDE) % VARIETY;
}

/** When the oldest reading was recorded. */
export function oldestMs({ newestMs, readings, intervalMs }: WorkspaceSize): number {
  return newestMs - (readings - 1) * intervalMs;
}

/** How many readings a device has from `fromMs` to `toMs`, both included. */
export function countWithin(size: WorkspaceSize, fromMs: number, toMs: number): number {
  const { intervalMs, newestMs } = size;
  const first = Math.ceil(Math.max(fromMs, oldestMs(size)) / intervalMs);
  const last = Math.floor(Math.min(toMs, newestMs) / intervalMs);
  return Math.max(0, last - first + 1);
}

/** The readings of a device from `fromMs` to `toMs`, both included, newest first, at most `limit`, as JSON texts. */
export function readingTexts(
  size: WorkspaceSize,
  device: number,
  { fromMs, toMs, limit }: { fromMs: number; toMs: number; limit: number },
): readonly string[] {
  const { intervalMs, newestMs } = size;
  const last = Math.floor(Math.min(toMs, newestMs) / intervalMs);
  const count = Math.min(limit, countWithin(size, fromMs, toMs));
  const texts: string[] = [];
  for (let tick = last; tick > last - count; tick -= 1) {
    texts.push(`{"recorded_at":"${timeText(tick * intervalMs)}","values":${VALUE_TEXTS[varietyOf(device, tick)]}}`);
  }
  return texts;
}

const times = new Map<number, string>();

/** Devices share the grid, so each time is made once while the workspace is small enough to remember. */
function timeText(ms: number): string {
  const known = times.get(ms);
  if (known !== undefined) return known;
  const text = new Date(ms).toISOString();
  if (times.size < 500_000) times.set(ms, text);
  return text;
}

/** The telemetry that a database must have received, line by line. */
export function expectedLines(size: WorkspaceSize): LineSum {
  const { devices, readings, intervalMs, newestMs } = size;
  const stamps = Array.from({ length: readings }, (_, back) => `${BigInt(newestMs - back * intervalMs) * MS_NS}`);
  const newest = newestMs / intervalMs;
  let sum = 0;
  for (let device = 0; device < devices; device += 1) {
    const keys = SENSORS.map((sensor) => seriesText(deviceIdOf(device), sensor));
    for (const [back, stamp] of stamps.entries()) {
      const values = VALUES[varietyOf(device, newest - back)] ?? [];
      for (const [index, key] of keys.entries()) sum = (sum + crc32(`${key} value=${values[index]} ${stamp}`)) >>> 0;
    }
  }
  return { lines: devices * readings * SENSORS.length, sum };
}

function seriesText(deviceId: string, sensor: string): string {
  return `telemetry,device_id=${deviceId},sensor=${sensor},device_name=${nameOf(deviceId)},workspace_id=${WORKSPACE_ID}`;
}

/** A name without a separator, so that it stands in a line as it is. */
export function nameOf(deviceId: string): string {
  return `Room-${deviceId.slice(-5)}`;
}
