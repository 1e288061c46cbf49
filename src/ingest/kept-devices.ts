/**
 * Which devices are excluded, by what the inventory knows of them.
 */

import type { DeviceRecord } from '../core/records.ts';
import type { KnownDevice } from '../core/state/inventory.ts';
import type { EpochNs } from '../core/time.ts';
import type { SyncContext } from './context.ts';

type Parts = Pick<SyncContext, 'store'> & { readonly settings: Pick<SyncContext['settings'], 'filter'> };

/** The devices of the inventory that are to be asked, those that are gone included. */
export function keptDevices({ store, settings }: Parts): readonly KnownDevice[] {
  return store.devices().filter(({ record }) => !settings.filter.excludes(record));
}

/**
 * Looks devices up by their id, in the inventory as it is now. A device that was never listed is known by its id alone;
 * an alert of no device belongs to no excluded one.
 */
export function exclusionNow({ store, settings }: Parts): (deviceId: string | null) => boolean {
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

/** The devices that are there, those with the newest signs of life first. */
export function freshestFirst(devices: readonly KnownDevice[]): readonly KnownDevice[] {
  const seen = ({ record }: KnownDevice): EpochNs => record.lastSeenAt ?? 0n;
  return devices
    .filter(({ goneSinceMs }) => goneSinceMs === null)
    .toSorted((a, b) => (seen(a) > seen(b) ? -1 : seen(a) < seen(b) ? 1 : 0));
}
