/**
 * Port of the devices and alerts that were seen. `store/` implements it with SQLite.
 */
import type { KnownAlert } from '../lines/fact-lines.ts';
import type { DeviceRecord } from '../records.ts';
import type { EpochMs, EpochNs } from '../time.ts';

/** A device as the last list that contained it showed it. */
export interface KnownDevice {
  readonly record: DeviceRecord;
  readonly name: string;
  readonly firstListedMs: EpochMs;
  /** The time up to which the last list with the device shows its signs of life. */
  readonly lastListedMs: EpochMs;
  /** Since when it is gone; `null` while it is present. */
  readonly goneSinceMs: EpochMs | null;
}

/** The changes by a complete listing of the devices. */
interface InventoryChange {
  /** The listed devices, with the `device` lines of those that have changed or are due. */
  readonly listed: readonly ListedDevice[];
  /** Devices that this complete listing did not contain. */
  readonly missing: readonly string[];
  readonly atMs: EpochMs;
  /** The time up to which the list shows signs of life; `atMs` if absent. Earlier if the local clock may be ahead. */
  readonly listedToMs?: EpochMs;
}

/** A device of a listing, to be stored. */
export interface ListedDevice {
  readonly record: DeviceRecord;
  /** The name under which points are written: the record's, or the id. */
  readonly name: string;
  /** The `device` line to archive; `null` if nothing changed and none is due. */
  readonly line: string | null;
  /** The content of the line without its times, to notice a change. */
  readonly digest: string;
}

/** The stored facts about the last `device` point of a device. */
interface DevicePoint {
  readonly digest: string;
  readonly atNs: EpochNs;
}

/** The stored facts about the last `coverage` point of a device. */
export interface CoveragePoint {
  readonly state: string;
  /** The time up to which the device was covered; `null` if the point had no watermark. */
  readonly watermarkNs: EpochNs | null;
  readonly atNs: EpochNs;
}

/** A point of the coverage, with its line. */
export interface NewCoveragePoint extends CoveragePoint {
  readonly deviceId: string;
  readonly line: string;
}

/** The alerts that were listed and not forgotten, as they were last seen. */
export interface AlertStore {
  find(alertId: number): KnownAlert | null;
  /** The ids of the unresolved alerts, newest first, up to a number. */
  open(most: number): readonly number[];
  /** When the oldest unresolved alert was opened; `null` without any. */
  oldestOpen(): EpochNs | null;
  /** How many known alerts were opened at this time or later. */
  countFrom(openedAt: EpochNs): number;
  /** Stores observed alerts and their points. */
  keep(alerts: readonly KnownAlert[], lines: readonly string[]): void;
  /** Records that a listing is complete and contained these devices. */
  markListed(alertIds: readonly number[]): void;
  /** Records that the API no longer has the alert: it is not followed any longer. */
  forget(alertId: number): void;
}

/** The devices of the workspace. */
export interface InventoryStore {
  devices(): readonly KnownDevice[];
  /** A device; `null` if it is unknown. */
  device(deviceId: string): KnownDevice | null;
  lastDevicePoint(deviceId: string): DevicePoint | null;
  /** Stores a complete listing: records, names, the missing devices, and the `device` lines. */
  saveInventory(change: InventoryChange): void;
  /** The last `coverage` point of each device. */
  coveragePoints(): ReadonlyMap<string, CoveragePoint>;
  saveCoveragePoints(points: readonly NewCoveragePoint[]): void;
  markGone(deviceId: string, atMs: EpochMs): void;
  /** Records that a device that was gone answers again. */
  markBack(deviceId: string): void;
}
