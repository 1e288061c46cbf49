/**
 * The points that are not telemetry: devices, the account, and what is covered (design 1.4).
 *
 * Pure, and frozen within a major version. Null facts are left out.
 */
import { hashHex } from '../hash.ts';
import type { Account, DeviceRecord } from '../records.ts';
import type { DeviceState } from '../status.ts';
import { type EpochMs, type EpochNs, formatExact, msToNs, nsToMs } from '../time.ts';
import type { FieldKey } from './line-names.ts';
import { encodeLine, type Field, type FieldValue } from './line-protocol.ts';
import { descriptiveTag, identityTag } from './line-text.ts';
import { nameOf } from './names.ts';

/** A `device` point: the device as listed at a time. */
export function deviceLine(record: DeviceRecord, workspaceTag: string, atMs: EpochMs): string {
  return required(
    encodeLine({
      measurement: 'device',
      tags: [
        ['device_id', identityTag(record.deviceId)],
        ['device_name', descriptiveTag(nameOf(record))],
        ['model_id', descriptiveTag(record.modelId ?? '')],
        ['workspace_id', identityTag(workspaceTag)],
      ],
      fields: [
        ...deviceFields(record),
        ...present('last_seen_ms', record.lastSeenAt === null ? null : nsToMs(record.lastSeenAt)),
      ],
      at: msToNs(atMs),
    }),
  );
}

/** What a `device` point says but for when the device was last seen: another digest means that something changed. */
export function deviceDigest(record: DeviceRecord): string {
  return hashHex(JSON.stringify([nameOf(record), record.modelId, deviceFields(record)]));
}

function deviceFields(record: DeviceRecord): Field[] {
  return [
    // Ids as tags have them: that is what a dashboard looks for.
    ['label', `${nameOf(record)} (${identityTag(record.deviceId)})`],
    ...present('online', asNumber(record.online)),
    ...present('presence', record.presence),
    ...present('lifecycle_status', record.lifecycleStatus),
    ...present('firmware_version', record.firmwareVersion),
    ...present('is_addon', asNumber(record.isAddon)),
    ...present('parent_device_id', parentOf(record)),
    ...present('latitude', record.latitude),
    ...present('longitude', record.longitude),
    ...present('location_updated_at', record.locationUpdatedAt === null ? null : formatExact(record.locationUpdatedAt)),
    ...present('tags', record.tags.length === 0 ? null : record.tags.join(',')),
  ];
}

function parentOf({ parentDeviceId }: DeviceRecord): string | null {
  return parentDeviceId === null || parentDeviceId === '' ? null : identityTag(parentDeviceId);
}

/** What was spent and what is left of the allowance when the account was read; `null`: not known. */
export interface AllowanceUse {
  readonly spentMinute: number;
  readonly leftMinute: number | null;
  readonly spentDay: number;
  readonly leftDay: number | null;
}

/** A `workspace` point: the account as read, with every limit of the plan by the API's own names. */
export function workspaceLine(
  account: Account,
  use: AllowanceUse,
  { workspaceTag, atMs }: { workspaceTag: string; atMs: EpochMs },
): string {
  const { plan } = account;
  return required(
    encodeLine({
      measurement: 'workspace',
      tags: [['workspace_id', identityTag(workspaceTag)]],
      fields: [
        ['name', account.name ?? account.workspaceId],
        ...present('devices', account.devices),
        ...present('open_alerts', account.openAlerts),
        ...present('plan_id', plan.planId),
        ...present('plan_name', plan.name),
        ...present('max_api_keys', plan.maxApiKeys),
        ...present('external_requests_per_minute', plan.requestsPerMinute),
        ...present('external_requests_per_day', plan.requestsPerDay),
        ...present('history_max_days', plan.historyMaxDays),
        ...present('max_devices_per_page', plan.maxDevicesPerPage),
        ['requests_spent_minute', use.spentMinute],
        ...present('requests_left_minute', use.leftMinute),
        ['requests_spent_day', use.spentDay],
        ...present('requests_left_day', use.leftDay),
      ],
      at: msToNs(atMs),
    }),
  );
}

/** What is held of a device at a time. */
export interface CoverageFacts {
  readonly deviceId: string;
  readonly deviceName: string;
  readonly state: DeviceState;
  readonly lagSeconds: number;
  readonly gapSeconds: number;
  readonly atNs: EpochNs;
}

/** A `coverage` point. */
export function coverageLine(facts: CoverageFacts, workspaceTag: string): string {
  return required(
    encodeLine({
      measurement: 'coverage',
      tags: [
        ['device_id', identityTag(facts.deviceId)],
        ['device_name', descriptiveTag(facts.deviceName)],
        ['workspace_id', identityTag(workspaceTag)],
      ],
      fields: [
        ['state', facts.state],
        ['lag_seconds', facts.lagSeconds],
        ['gap_seconds', facts.gapSeconds],
      ],
      at: facts.atNs,
    }),
  );
}

function present(key: FieldKey, value: FieldValue | null): Field[] {
  return value === null ? [] : [[key, value]];
}

function asNumber(flag: boolean | null): number | null {
  return flag === null ? null : Number(flag);
}

function required(line: string | null): string {
  if (line === null) throw new Error('a point without a field');
  return line;
}
