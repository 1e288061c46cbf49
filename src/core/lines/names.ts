/**
 * The device name at a point in time. A point keeps the name that its device had when the point was made.
 *
 * InfluxQL has no joins, so lines carry names. A new name must not turn an old reading into a new series when that
 * reading is written again. So the state keeps the history of names, and a new name never applies to readings that were
 * archived under the one before.
 */
import type { DeviceRecord } from '../records.ts';
import type { NameRecord } from '../state/telemetry.ts';
import { type EpochNs, maxNs } from '../time.ts';

/** The name under which a device is written: its own, or its id where it has none. */
export function nameOf(record: Pick<DeviceRecord, 'deviceId' | 'name'>): string {
  return record.name === null || record.name.trim() === '' ? record.deviceId : record.name;
}

/** The name that holds at a time. `names` is ascending; before its first entry the first name holds. */
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
