/**
 * The names of devices: the name at a point in time, and the devices that a command names (`--device`). Pure.
 *
 * A point keeps the name that its device had when the point was made. InfluxQL has no joins, so lines carry names. A
 * new name must not turn an old reading into a new series when that reading is written again. So the state keeps the
 * history of names, and a new name never applies to readings that were archived under the one before.
 *
 * A command names a device by id, or by a name that only one device has. An id wins over a name, so an id always means
 * the same device. Case does not matter in names.
 */

import { UserError } from './faults.ts';
import type { DeviceRecord } from './records.ts';
import type { NameRecord } from './state/telemetry.ts';
import { nearest, plainText } from './text.ts';
import { type EpochNs, maxNs } from './time.ts';

/** The name under which a device is written: its own, or its id if it has none. */
export function nameOf(record: Pick<DeviceRecord, 'deviceId' | 'name'>): string {
  return record.name === null || record.name.trim() === '' ? record.deviceId : record.name;
}

/** The name at a time. `names` is ascending; before its first entry the first name applies. */
export function nameAt(names: readonly NameRecord[], at: EpochNs): string | null {
  let name = names[0]?.name ?? null;
  for (const record of names) {
    if (record.fromNs > at) break;
    name = record.name;
  }
  return name;
}

/**
 * Adds an observed name.
 *
 * @param seen the name, the server's time of the answer, and the newest reading archived so far.
 * @returns the same array if the name has not changed.
 */
export function pinName(
  names: readonly NameRecord[],
  seen: { name: string; atNs: EpochNs; newestArchivedNs: () => EpochNs | null },
): readonly NameRecord[] {
  const last = names.at(-1);
  if (last === undefined) return [{ fromNs: 0n, name: seen.name }];
  if (last.name === seen.name) return names;
  const newestNs = seen.newestArchivedNs();
  const archived = newestNs === null ? 0n : newestNs + 1n;
  const fromNs = maxNs(maxNs(seen.atNs, archived), last.fromNs + 1n);
  return [...names, { fromNs, name: seen.name }];
}

/** A device with the name that its points carry. */
export interface NamedDevice {
  readonly deviceId: string;
  readonly name: string;
}

/** How many other devices a message lists. */
const LISTED = 5;
/** The most characters of a name or id in a message. */
const NAME_LENGTH = 40;

/**
 * Finds the ids of devices.
 *
 * @param wanted ids and names as they were given
 * @param unknown the message if no device matches, without its full stop
 * @returns the ids, each once
 * @throws UserError (exit 2) if a text matches no device or several. The error names the nearest devices, but never the
 * text, which may be a key
 */
export function findDeviceIds(
  devices: readonly NamedDevice[],
  wanted: readonly string[],
  unknown = 'the state has no device with that id or name',
): readonly string[] {
  const found = wanted.map((text, index) => {
    const flag = wanted.length === 1 ? '--device' : `--device number ${index + 1}`;
    return resolveDeviceId(devices, text, { flag, unknown });
  });
  return [...new Set(found)];
}

function resolveDeviceId(
  devices: readonly NamedDevice[],
  text: string,
  { flag, unknown }: { readonly flag: string; readonly unknown: string },
): string {
  if (devices.some(({ deviceId }) => deviceId === text)) return text;
  const key = keyOf(text);
  const named = devices.filter((device) => textsOf(device).includes(key));
  const [only] = named;
  if (only !== undefined && named.length === 1) return only.deviceId;
  if (named.length > 1) {
    throw new UserError(
      `${flag}: ${named.length} devices have that name: ${deviceListText(named)}`,
      'Give the id of one.',
      2,
    );
  }
  const near = similarDevices(devices, key);
  const others = devices.length === 0 ? 'The state has no devices yet.' : `Known: ${deviceListText(devices)}.`;
  const remedy = near.length === 0 ? others : `Similar: ${deviceListText(near)}.`;
  throw new UserError(`${flag}: ${unknown}`, remedy, 2);
}

function keyOf(text: string): string {
  return plainText(text).trim().toLowerCase();
}

function similarDevices(devices: readonly NamedDevice[], key: string): readonly NamedDevice[] {
  const containing = key === '' ? [] : devices.filter((each) => textsOf(each).some((text) => text.includes(key)));
  if (containing.length > 0) return containing;
  const word = nearest(key, devices.flatMap(textsOf));
  return word === null ? [] : devices.filter((each) => textsOf(each).includes(word));
}

function textsOf({ deviceId, name }: NamedDevice): string[] {
  return [keyOf(deviceId), keyOf(name)];
}

function deviceListText(devices: readonly NamedDevice[]): string {
  const named = devices.slice(0, LISTED).map(({ deviceId, name }) => {
    const id = plainText(deviceId, NAME_LENGTH);
    return name === deviceId ? id : `${id} (${plainText(name, NAME_LENGTH)})`;
  });
  const left = devices.length - named.length;
  return `${named.join(', ')}${left > 0 ? ` and ${left} more` : ''}`;
}
