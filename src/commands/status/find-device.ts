/**
 * The device that somebody means: by its id, or by its name where only one has it.
 */
import { UserError } from '../../core/faults.ts';
import type { KnownDevice } from '../../core/state/inventory.ts';
import { nearest, plainText } from '../../core/text.ts';

/** How many others are named where it is not clear. */
const NAMED = 5;
/** How much of a name is shown. */
const NAME_LENGTH = 40;

/** @throws UserError (exit 2) where none is meant, or more than one; it names the nearest, not what was given. */
export function findDevice(devices: readonly KnownDevice[], wanted: string): KnownDevice {
  const byId = devices.find(({ record }) => record.deviceId === wanted);
  if (byId !== undefined) return byId;
  const key = keyOf(wanted);
  const named = devices.filter(({ name, record }) => keyOf(name) === key || keyOf(record.deviceId) === key);
  const [only] = named;
  if (only !== undefined && named.length === 1) return only;
  if (named.length > 1) {
    throw new UserError(`--device: ${named.length} devices have that name: ${list(named)}. Give the id of one.`, 2);
  }
  if (devices.length === 0) {
    throw new UserError('--device: no device is listed yet. Start the daemon or run --once first.', 2);
  }
  const near = nearby(devices, key);
  const hint = near.length === 0 ? '--status --json lists them all.' : `Nearest: ${list(near)}.`;
  throw new UserError(`--device: the state knows no device with that id or name. ${hint}`, 2);
}

function keyOf(text: string): string {
  return plainText(text).trim().toLowerCase();
}

function nearby(devices: readonly KnownDevice[], key: string): readonly KnownDevice[] {
  const holding = key === '' ? [] : devices.filter((each) => textsOf(each).some((text) => text.includes(key)));
  if (holding.length > 0) return holding;
  const word = nearest(key, devices.flatMap(textsOf));
  return word === null ? [] : devices.filter((each) => textsOf(each).includes(word));
}

function textsOf({ record, name }: KnownDevice): string[] {
  return [keyOf(record.deviceId), keyOf(name)];
}

function list(devices: readonly KnownDevice[]): string {
  const named = devices.slice(0, NAMED).map(({ record: { deviceId }, name }) => {
    const id = plainText(deviceId, NAME_LENGTH);
    return name === deviceId ? id : `${id} (${plainText(name, NAME_LENGTH)})`;
  });
  const left = devices.length - named.length;
  return `${named.join(', ')}${left > 0 ? ` and ${left} more` : ''}`;
}
