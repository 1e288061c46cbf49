/**
 * The filter of the configuration: which devices, sensors and positions are left out (`sync.include`, `sync.exclude`,
 * `sync.exclude_sensors`, `sync.location`).
 *
 * Pure: the same record always gets the same answer. Patterns are simple globs: `*` matches any run of characters, `?`
 * one character, and every other character itself; case matters. A match takes at most pattern times text steps and
 * uses no regular expression, so no pattern can stall the sync.
 */

import { obstacleWithin } from './lines/points.ts';
import type { DeviceRecord, JsonValue, Reading } from './records.ts';

/** The exclusions of the configuration; empty lists exclude nothing. */
export interface FilterSpec {
  /** Globs: if there are any, only devices that match one are synced. */
  readonly include: readonly string[];
  /** Globs: devices that match one are not synced, even if they match `include`. */
  readonly exclude: readonly string[];
  /** Globs: sensors (dotted names, as the device reports them) whose values are not written. */
  readonly excludeSensors: readonly string[];
  readonly includesLocation: boolean;
}

/** The rules of one configuration, compiled. */
export interface DeviceFilter {
  readonly spec: FilterSpec;
  /** Whether a device, as it is listed now, is excluded. */
  excludes(record: DeviceRecord): boolean;
  /** Whether the values of a sensor are written. */
  includesSensor(name: string): boolean;
  /** Whether the values of a sensor that is written now were excluded before. */
  wasLeftOut(name: string): boolean;
  /** Whether the positions of devices are written. */
  readonly includesLocation: boolean;
}

/** Whether a text matches one of the patterns. */
type Match = (text: string) => boolean;

/** How many sensor names are cached: a device may report an unlimited number of names. */
const MEMORY = 10_000;

/** Makes the filter of a configuration. */
export function createFilter(spec: FilterSpec): DeviceFilter {
  const included = matchAny(spec.include);
  const excluded = matchAny(spec.exclude);
  const sensorExcluded = matchAny(spec.excludeSensors);
  return {
    spec,
    wasLeftOut: () => false,
    includesLocation: spec.includesLocation,
    excludes: (record) =>
      matchesDevice(excluded, record) || (spec.include.length > 0 && !matchesDevice(included, record)),
    includesSensor: cacheMatch((name) => !sensorExcluded(name)),
  };
}

/** A match function that caches its results. */
export function cacheMatch(match: Match): Match {
  const remembered = new Map<string, boolean>();
  return (text) => {
    const before = remembered.get(text);
    if (before !== undefined) return before;
    if (remembered.size >= MEMORY) remembered.clear();
    const found = match(text);
    remembered.set(text, found);
    return found;
  };
}

/** A device matches by its id, its name, its model or any of its tags. */
export function matchesDevice(match: Match, { deviceId, name, modelId, tags }: DeviceRecord): boolean {
  return [deviceId, name, modelId, ...tags].some((text) => text !== null && match(text));
}

/** Returns a function that checks whether a text matches any of the patterns; without patterns nothing matches. */
export function matchAny(patterns: readonly string[]): Match {
  const exact = new Set(patterns.filter((pattern) => !isGlob(pattern)).map(normalizeAccents));
  const globs = patterns.filter(isGlob).map(characters);
  return (text) => {
    if (exact.has(normalizeAccents(text))) return true;
    if (globs.length === 0) return false;
    const whole = characters(text);
    return globs.some((glob) => matchesGlob(glob, whole));
  };
}

function isGlob(pattern: string): boolean {
  return /[*?]/.test(pattern);
}

/** Accents can be written in two ways that look the same; this makes them equal. */
function normalizeAccents(text: string): string {
  return text.normalize('NFC');
}

function characters(text: string): readonly string[] {
  return [...normalizeAccents(text)];
}

/**
 * Whether a text matches a glob. Greedy: after a mismatch only the last `*` is tried again, because an earlier one
 * cannot match better.
 */
function matchesGlob(glob: readonly string[], text: readonly string[]): boolean {
  let [at, next] = [0, 0];
  let star: { readonly next: number; at: number } | null = null;
  while (at < text.length) {
    if (glob[next] === '*') {
      next += 1;
      star = { next, at };
    } else if (next < glob.length && (glob[next] === '?' || glob[next] === text[at])) {
      next += 1;
      at += 1;
    } else if (star === null) return false;
    else {
      star.at += 1;
      at = star.at;
      next = star.next;
    }
  }
  return glob.slice(next).every((rest) => rest === '*');
}

/** A device as it may be stored: without its position if positions are not stored. */
export function filterRecord(
  { includesLocation }: Pick<DeviceFilter, 'includesLocation'>,
  record: DeviceRecord,
): DeviceRecord {
  return includesLocation ? record : { ...record, latitude: null, longitude: null, locationUpdatedAt: null };
}

/**
 * A reading without the excluded values. They become `null`, like a sensor without a value, so that the items of lists
 * keep their numbers. A value that becomes no point (`flattenReading`) is kept or excluded as a whole.
 */
export function filterReading({ includesSensor }: Pick<DeviceFilter, 'includesSensor'>, reading: Reading): Reading {
  const prune = (sensor: string, value: JsonValue, depth: number): JsonValue => {
    if (typeof value !== 'object' || value === null || obstacleWithin(sensor, depth) !== null)
      return includesSensor(sensor) ? value : null;
    const inner = Object.entries(value).map(
      ([key, item]) => [key, prune(`${sensor}.${key}`, item, depth + 1)] as const,
    );
    return Array.isArray(value) ? inner.map(([, item]) => item) : Object.fromEntries(inner);
  };
  return { ...reading, values: reading.values.map(([sensor, value]) => [sensor, prune(sensor, value, 0)] as const) };
}

/** The dotted names of all sensors of a reading, as `filterReading` looks them up. */
export function sensorNames(reading: Reading): readonly string[] {
  const names: string[] = [];
  const collect = (sensor: string, value: JsonValue, depth: number): void => {
    if (typeof value !== 'object' || value === null || obstacleWithin(sensor, depth) !== null) names.push(sensor);
    else for (const [key, item] of Object.entries(value)) collect(`${sensor}.${key}`, item, depth + 1);
  };
  for (const [sensor, value] of reading.values) collect(sensor, value, 0);
  return names;
}
