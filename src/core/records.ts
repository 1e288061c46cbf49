/**
 * The records of the API as the program uses them. `api/` validates them, so the types can be relied on everywhere
 * else.
 *
 * The API document explains the members ("Resources and their fields"). A member that may be null or absent there is
 * `null` here.
 */
import type { EpochNs } from './time.ts';

/** The most records of a page (API document, "Pagination"); a plan may allow fewer. */
const MAX_PAGE_SIZE = 200;

/** The records of a full page under a plan: at least one, whatever the account contains. */
export function pageSizeOf(plan: Pick<Plan, 'maxDevicesPerPage'> | null | undefined): number {
  return Math.max(1, Math.min(MAX_PAGE_SIZE, Math.trunc(plan?.maxDevicesPerPage ?? MAX_PAGE_SIZE) || 1));
}

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue };

/** A `next_cursor` of the API: opaque, only ever sent back. */
export type Cursor = string & { readonly __brand: 'Cursor' };

/** One telemetry reading: the values exactly as they were served, in their order. */
export interface Reading {
  readonly recordedAt: EpochNs;
  /** Sensor key and value. Pairs, not an object: a sensor may be called `__proto__`. */
  readonly values: readonly (readonly [string, JsonValue])[];
}

/** The words of `lifecycle_status` for devices that do not report (API document, "Device"). */
export const RESTING: ReadonlySet<string> = new Set(['paused', 'shelved', 'retired']);

/** A record without its identity, kept unchanged for the quarantine. */
export interface RejectedRecord {
  readonly reason: string;
  /** The record as JSON, shortened. */
  readonly record: string;
  /** Given where the record itself was taken: how many of its values could not be points. */
  readonly droppedValues?: number;
}

/** A parsed answer of the telemetry of one device. */
export interface TelemetryPage {
  /** The device that the page names; `null` if it names none. */
  readonly deviceId: string | null;
  /** In the order served: newest first, if the API keeps its word. */
  readonly readings: readonly Reading[];
  readonly rejected: readonly RejectedRecord[];
  /** Whether some of `rejected` are readings of times that no clock has reached. */
  readonly hasFuture?: boolean;
  readonly nextCursor: Cursor | null;
}

/** A device as the API lists it; `null` for what it leaves out. */
export interface DeviceRecord {
  readonly deviceId: string;
  readonly name: string | null;
  readonly modelId: string | null;
  readonly firmwareVersion: string | null;
  readonly isAddon: boolean | null;
  readonly parentDeviceId: string | null;
  readonly lifecycleStatus: string | null;
  readonly online: boolean | null;
  readonly presence: string | null;
  readonly lastSeenAt: EpochNs | null;
  readonly latitude: number | null;
  readonly longitude: number | null;
  readonly locationUpdatedAt: EpochNs | null;
  readonly tags: readonly string[];
}

/** A parsed answer of the device list. */
export interface DevicePage {
  readonly devices: readonly DeviceRecord[];
  readonly rejected: readonly RejectedRecord[];
  readonly nextCursor: Cursor | null;
  /** Whether a device was seen at a time that no clock has reached: that time is left out. */
  readonly hasFuture?: boolean;
}

/** The limits of the plan; `null` for a limit that the account does not contain. */
export interface Plan {
  readonly planId: string | null;
  readonly name: string | null;
  readonly maxApiKeys: number | null;
  readonly requestsPerMinute: number | null;
  readonly requestsPerDay: number | null;
  /** Widest telemetry window in days; `null` means no limit. */
  readonly historyMaxDays: number | null;
  readonly maxDevicesPerPage: number | null;
}

/** The account; `null` for what the API leaves out. */
export interface Account {
  readonly workspaceId: string;
  readonly name: string | null;
  readonly plan: Plan;
  readonly devices: number | null;
  readonly openAlerts: number | null;
}

/** An alert: one incident of a rule. */
export interface AlertRecord {
  readonly alertId: number;
  readonly deviceId: string | null;
  readonly ruleName: string | null;
  readonly kind: string | null;
  readonly sensor: string | null;
  readonly condition: string | null;
  readonly threshold: number | null;
  readonly value: number | null;
  readonly fireCount: number | null;
  /** `open`, `acknowledged`, `resolved`, or a word that no document names. */
  readonly status: string | null;
  readonly openedAt: EpochNs;
}

/** A parsed answer of the alert list. */
export interface AlertPage {
  /** Newest first, if the API keeps its word. */
  readonly alerts: readonly AlertRecord[];
  readonly rejected: readonly RejectedRecord[];
  readonly nextCursor: Cursor | null;
}

/** The unresolved alerts, as far as the cost of a poll depends on them. */
export interface OpenAlerts {
  readonly open: number;
  /** How many known alerts are as new as the oldest unresolved one, or newer. */
  readonly sinceOldest: number;
}

/** Before the first listing of the alerts. */
export const NO_ALERTS: OpenAlerts = { open: 0, sinceOldest: 0 };

/** The pages of so many records beyond the first one. */
export function pagesBelowFirst(records: number, pageSize: number): number {
  return Math.max(0, Math.ceil(records / pageSize) - 1);
}

/** The requests of a poll of the alerts that finds nothing new: the first page, and further pages or single alerts. */
export function alertPollRequests({ open, sinceOldest }: OpenAlerts, pageSize: number): number {
  return 1 + Math.min(open, pagesBelowFirst(sinceOldest, pageSize));
}
