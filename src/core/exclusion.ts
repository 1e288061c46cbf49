/**
 * Which devices are excluded, by what the inventory knows of them.
 */

import type { SyncContext } from '../ingest/context.ts';
import type { DeviceRecord } from './records.ts';
import type { KnownDevice } from './state/inventory.ts';

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
