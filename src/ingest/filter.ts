/**
 * The device filter of a sync: which known devices it excludes, which sensors it has ever excluded, and which of its
 * patterns match nothing. Such a pattern is probably a typing error, so it is reported once per process.
 *
 * A listing shows all devices. Sensors are known only as readings arrive, so their patterns are reported after the
 * first telemetry, with the words "so far".
 */

import type { Observe } from '../core/events.ts';
import { cacheMatch, type DeviceFilter, matchAny, matchesDevice, sensorNames } from '../core/filter.ts';
import { isTexts, parseAs } from '../core/json.ts';
import type { DeviceRecord, Reading } from '../core/records.ts';
import type { KnownDevice } from '../core/state/inventory.ts';
import type { Store } from '../core/state/state.ts';
import type { EpochNs } from '../core/time.ts';

/** The record of which devices and sensors are excluded. */
export interface FilterNotes {
  /** Whether the configuration excludes any sensor, or did so before. */
  readonly touchesSensors: boolean;
  /** The filter that the sync uses. It also knows the sensors that were excluded before. */
  readonly filter: DeviceFilter;
  /** Records that all devices of the workspace were listed. */
  noteDevicesListed(records: readonly DeviceRecord[]): void;
  /** Records the sensors of readings that are about to be committed. */
  noteSensorsRead(readings: readonly Reading[]): void;
  /** Reports the sensor patterns that match nothing, once readings have arrived. */
  noteTelemetryRead(): void;
}

/** The fact that holds every pattern of `sync.exclude_sensors` that was ever in force, as a JSON list. */
const LEFT_OUT = 'sensors_left_out';

/**
 * Adds the current patterns to the stored ones, and returns all patterns that were ever in force. If the values of an
 * excluded sensor are written again, they are no sign of a new or a late reading.
 */
function recordPatterns(store: Pick<Store, 'fact' | 'saveFact'>, current: readonly string[]): readonly string[] {
  const before = parseAs(store.fact(LEFT_OUT), isTexts) ?? [];
  const ever = [...new Set([...before, ...current])];
  if (ever.length > before.length) store.saveFact(LEFT_OUT, JSON.stringify(ever));
  return ever;
}

/** Opens the notes on a filter, before anything was listed or read. */
export function createFilterNotes(
  filter: DeviceFilter,
  { store, observe }: { store: Pick<Store, 'fact' | 'saveFact'>; observe: Observe },
): FilterNotes {
  const { include, exclude, excludeSensors } = filter.spec;
  const unmatched = new Map(excludeSensors.map((pattern) => [pattern, matchAny([pattern])]));
  let [areDevicesReported, areSensorsReported, hasSensors] = [false, false, false];
  const reportDevices = (key: 'sync.include' | 'sync.exclude', records: readonly DeviceRecord[]): void => {
    for (const pattern of key === 'sync.include' ? include : exclude) {
      const match = matchAny([pattern]);
      if (records.some((record) => matchesDevice(match, record))) continue;
      observe({ type: 'filter-matches-nothing', key, pattern });
    }
  };
  const noteSensor = (name: string): void => {
    hasSensors = true;
    if (filter.includesSensor(name)) return;
    for (const [pattern, match] of unmatched) if (match(name)) unmatched.delete(pattern);
  };
  const ever = recordPatterns(store, excludeSensors);
  return {
    filter: { ...filter, wasLeftOut: cacheMatch(matchAny(ever)) },
    touchesSensors: ever.length > 0,
    noteDevicesListed: (records) => {
      if (areDevicesReported) return;
      areDevicesReported = true;
      reportDevices('sync.include', records);
      reportDevices('sync.exclude', records);
    },
    noteSensorsRead: (readings) => {
      if (areSensorsReported || unmatched.size === 0) return;
      for (const name of readings.flatMap(sensorNames)) noteSensor(name);
    },
    noteTelemetryRead: () => {
      if (areSensorsReported || !hasSensors) return;
      areSensorsReported = true;
      for (const pattern of unmatched.keys()) {
        observe({ type: 'filter-matches-nothing', key: 'sync.exclude_sensors', pattern });
      }
    },
  };
}

interface FilterParts {
  readonly store: Pick<Store, 'devices'>;
  readonly settings: { readonly filter: DeviceFilter };
}

/** The devices of the inventory that are to be polled, including those that are gone. */
export function includedDevices({ store, settings }: FilterParts): readonly KnownDevice[] {
  return store.devices().filter(({ record }) => !settings.filter.excludes(record));
}

/**
 * Creates a function that returns whether a device is excluded, by its id in the current inventory. A device that was
 * never listed is judged by its id alone. An alert without a device belongs to no excluded device.
 */
export function exclusionNow({ store, settings }: FilterParts): (deviceId: string | null) => boolean {
  const { include, exclude } = settings.filter.spec;
  if (include.length === 0 && exclude.length === 0) return () => false;
  const known = new Map(store.devices().map(({ record }) => [record.deviceId, settings.filter.excludes(record)]));
  return (deviceId) => deviceId !== null && (known.get(deviceId) ?? settings.filter.excludes({ ...UNKNOWN, deviceId }));
}

const UNKNOWN: Omit<DeviceRecord, 'deviceId'> = {
  name: null,
  modelId: null,
  firmwareVersion: null,
  isAddon: null,
  parentDeviceId: null,
  lifecycleStatus: null,
  online: null,
  presence: null,
  lastSeenAt: null,
  latitude: null,
  longitude: null,
  locationUpdatedAt: null,
  tags: [],
};

/** The present devices, those with the newest signs of life first. */
export function freshestFirst(devices: readonly KnownDevice[]): readonly KnownDevice[] {
  const seen = ({ record }: KnownDevice): EpochNs => record.lastSeenAt ?? 0n;
  return devices
    .filter(({ goneSinceMs }) => goneSinceMs === null)
    .toSorted((a, b) => (seen(a) > seen(b) ? -1 : seen(a) < seen(b) ? 1 : 0));
}
