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

/** The number of records of a full page under a plan: at least one, whatever the account contains. */
export function pageSizeOf(plan: Pick<Plan, 'maxDevicesPerPage'> | null | undefined): number {
  return Math.max(1, Math.min(MAX_PAGE_SIZE, Math.trunc(plan?.maxDevicesPerPage ?? MAX_PAGE_SIZE) || 1));
}

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue };

/** A `next_cursor` of the API. It is opaque and only sent back. */
export type Cursor = string & { readonly __brand: 'Cursor' };

/** One telemetry reading: the values exactly as they were served, in their order. */
export interface Reading {
  readonly recordedAt: EpochNs;
  /** Sensor key and value. Pairs, not an object: a sensor may be called `__proto__`. */
  readonly values: readonly (readonly [string, JsonValue])[];
}

/** The values of `lifecycle_status` for devices that do not report (API document, "Device"). */
export const RESTING: ReadonlySet<string> = new Set(['paused', 'shelved', 'retired']);

/** A record without its identity, kept unchanged for the quarantine. */
export interface RejectedRecord {
  readonly reason: string;
  /** The record as JSON, shortened. */
  readonly record: string;
  /** How many values of an accepted record could not become points. */
  readonly droppedValues?: number;
}

/** A parsed answer of the telemetry of one device. */
export interface TelemetryPage {
  /** The device that the page names; `null` if it names none. */
  readonly deviceId: string | null;
  /** The readings in the order served: newest first, as the API promises. */
  readonly readings: readonly Reading[];
  readonly rejected: readonly RejectedRecord[];
  /** Whether `rejected` contains readings with a time that no clock has reached. */
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
  /** Whether a device had a last-seen time that no clock has reached. That time is left out. */
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
  /** `open`, `acknowledged`, `resolved`, or a value that no document describes. */
  readonly status: string | null;
  readonly openedAt: EpochNs;
}

/** A parsed answer of the alert list. */
export interface AlertPage {
  /** The alerts, newest first, as the API promises. */
  readonly alerts: readonly AlertRecord[];
  readonly rejected: readonly RejectedRecord[];
  readonly nextCursor: Cursor | null;
}

/** The facts about the unresolved alerts that the cost of a poll depends on. */
export interface OpenAlerts {
  readonly open: number;
  /** How many known alerts are as new as the oldest unresolved one, or newer. */
  readonly sinceOldest: number;
}

/** The value before the first listing of the alerts. */
export const NO_ALERTS: OpenAlerts = { open: 0, sinceOldest: 0 };

/** The number of pages beyond the first one for this many records. */
export function pagesBelowFirst(records: number, pageSize: number): number {
  return Math.max(0, Math.ceil(records / pageSize) - 1);
}

/** The requests of a poll of the alerts that finds nothing new: the first page, and further pages or single alerts. */
export function alertPollRequests({ open, sinceOldest }: OpenAlerts, pageSize: number): number {
  return 1 + Math.min(open, pagesBelowFirst(sinceOldest, pageSize));
}
