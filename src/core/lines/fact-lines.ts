/**
 * The points that are not telemetry: devices, the account, coverage and alerts.
 *
 * Pure; the form of the lines does not change within a major version. Facts without a value are left out. An alert
 * changes but a point must not, so each observed state of an alert is a point of its own, at the time of the
 * observation. The device name, kind and sensor of an alert stay as they were first seen.
 */

import { nameOf } from '../device-names.ts';
import { hashHex } from '../hash.ts';
import type { PlanUse } from '../quota.ts';
import { type Account, type AlertRecord, type DeviceRecord, RESTING } from '../records.ts';
import type { DeviceState } from '../status.ts';
import { DAY_NS, type EpochMs, type EpochNs, formatExact, msToNs, nsToMs } from '../time.ts';
import type { FieldKey } from './line-protocol.ts';
import { descriptiveTag, encodeLine, type Field, type FieldValue, identityTag, type Tag } from './line-protocol.ts';

/** A `device` point: the device as listed at a time. */
export function deviceLine(record: DeviceRecord, workspaceTag: string, atMs: EpochMs): string {
  return requireLine(
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
        ...optionalField('last_seen_ms', record.lastSeenAt === null ? null : nsToMs(record.lastSeenAt)),
      ],
      at: msToNs(atMs),
    }),
  );
}

/** The content of a `device` point without the time of the last sign of life: another digest means a change. */
export function deviceDigest(record: DeviceRecord): string {
  return hashHex(JSON.stringify([nameOf(record), record.modelId, deviceFields(record)]));
}

function deviceFields(record: DeviceRecord): Field[] {
  return [
    // Ids as in tags, because dashboards search for them.
    ['label', `${nameOf(record)} (${identityTag(record.deviceId)})`],
    ...optionalField('online', asNumber(record.online)),
    ...optionalField('presence', record.presence),
    ...optionalField('lifecycle_status', record.lifecycleStatus),
    ...optionalField('firmware_version', record.firmwareVersion),
    ...optionalField('is_addon', asNumber(record.isAddon)),
    ...optionalField('parent_device_id', parentOf(record)),
    ...optionalField('latitude', record.latitude),
    ...optionalField('longitude', record.longitude),
    ...optionalField(
      'location_updated_at',
      record.locationUpdatedAt === null ? null : formatExact(record.locationUpdatedAt),
    ),
    ...optionalField('tags', record.tags.length === 0 ? null : record.tags.join(',')),
  ];
}

function parentOf({ parentDeviceId }: DeviceRecord): string | null {
  return parentDeviceId === null || parentDeviceId === '' ? null : identityTag(parentDeviceId);
}

/** A `workspace` point: the account as read, with every limit of the plan by the API's own names. */
export function workspaceLine(
  account: Account,
  use: PlanUse,
  { workspaceTag, atMs }: { workspaceTag: string; atMs: EpochMs },
): string {
  const { plan } = account;
  return requireLine(
    encodeLine({
      measurement: 'workspace',
      tags: [['workspace_id', identityTag(workspaceTag)]],
      fields: [
        ['name', account.name ?? account.workspaceId],
        ...optionalField('devices', account.devices),
        ...optionalField('open_alerts', account.openAlerts),
        ...optionalField('plan_id', plan.planId),
        ...optionalField('plan_name', plan.name),
        ...optionalField('max_api_keys', plan.maxApiKeys),
        ...optionalField('external_requests_per_minute', plan.requestsPerMinute),
        ...optionalField('external_requests_per_day', plan.requestsPerDay),
        ...optionalField('history_max_days', plan.historyMaxDays),
        ...optionalField('max_devices_per_page', plan.maxDevicesPerPage),
        ['requests_spent_minute', use.spentMinute],
        ...optionalField('requests_left_minute', use.leftMinute),
        ['requests_spent_day', use.spentDay],
        ...optionalField('requests_left_day', use.leftDay),
      ],
      at: msToNs(atMs),
    }),
  );
}

/** The coverage of a device at a time. */
interface CoverageFacts {
  readonly deviceId: string;
  readonly deviceName: string;
  readonly state: DeviceState;
  /** `null` if the device has no watermark. */
  readonly lagSeconds: number | null;
  readonly gapSeconds: number;
  /** Its lifecycle status in the device list; `null` if the list has none. */
  readonly lifecycleStatus: string | null;
  /** The time up to which the device is covered; `null` in its initial sync, and if it is not read. */
  readonly watermarkNs: EpochNs | null;
  readonly atNs: EpochNs;
}

/** Encodes how far a device is complete as a line of the measurement `coverage`. */
export function coverageLine(facts: CoverageFacts, workspaceTag: string): string {
  return requireLine(
    encodeLine({
      measurement: 'coverage',
      tags: [
        ['device_id', identityTag(facts.deviceId)],
        ['device_name', descriptiveTag(facts.deviceName)],
        ['workspace_id', identityTag(workspaceTag)],
      ],
      fields: [
        ['state', facts.state],
        ...optionalField('lag_seconds', facts.lagSeconds),
        ['gap_seconds', facts.gapSeconds],
        ...optionalField('active', facts.lifecycleStatus === null ? null : Number(!RESTING.has(facts.lifecycleStatus))),
        ...optionalField('watermark_ms', facts.watermarkNs === null ? null : nsToMs(facts.watermarkNs)),
      ],
      at: facts.atNs,
    }),
  );
}

function optionalField(key: FieldKey, value: FieldValue | null): Field[] {
  return value === null ? [] : [[key, value]];
}

function asNumber(flag: boolean | null): number | null {
  return flag === null ? null : Number(flag);
}

function requireLine(line: string | null): string {
  if (line === null) throw new Error('a point without a field');
  return line;
}

/** The parts of an alert's lines that never change: as first seen. */
interface AlertIdentity extends Pick<AlertRecord, 'alertId' | 'deviceId' | 'kind' | 'sensor'> {
  /** The name that the device had when the alert was opened. */
  readonly deviceName: string | null;
}

/** The state of an alert when it was last observed, for people. */
type AlertFacts = Pick<AlertRecord, 'ruleName' | 'condition' | 'threshold' | 'status' | 'fireCount' | 'value'>;

/** The stored facts about an alert. */
export interface KnownAlert extends AlertIdentity {
  /** `null` if the alert was last observed before these facts were stored. */
  readonly facts: AlertFacts | null;
  readonly openedAt: EpochNs;
  /** The digest of the last state that became a point. */
  readonly stateDigest: string;
  readonly stateNs: EpochNs;
  readonly isOpen: boolean;
  /** Whether a complete listing contained the alert. A later listing may stop only at such alerts. */
  readonly isListed: boolean;
}

/** How often the state of an open alert is written although nothing has changed. */
const REPEAT_NS = DAY_NS;

/** Whether an alert is not resolved yet; unknown states count as open, so that the alert is followed. */
export function isOpen({ status }: Pick<AlertRecord, 'status'>): boolean {
  return status !== 'resolved';
}

/** The state of an alert as a short text, to notice changes. */
function stateDigest(alert: AlertRecord): string {
  return hashHex(JSON.stringify([alert.status, alert.fireCount, alert.value]));
}

/** The result of observing an alert. */
export interface Observed {
  readonly known: KnownAlert;
  /** Whether the stored facts have changed. */
  readonly changed: boolean;
  readonly lines: readonly string[];
}

/**
 * Makes the points of an alert that was just served.
 *
 * @param seen `known`: the stored alert, `null` at first sight; `deviceName`: the name of its device at `openedAt`;
 * `atNs`: the server's time of the answer.
 */
export function observeAlert(
  alert: AlertRecord,
  seen: { known: KnownAlert | null; deviceName: string | null; atNs: EpochNs; workspaceTag: string },
): Observed {
  const { known, atNs, workspaceTag } = seen;
  const digest = stateDigest(alert);
  const open = isOpen(alert);
  const facts = factsOf(alert);
  const isRepeated =
    known !== null && open && (atNs - known.stateNs >= REPEAT_NS || isByWrongClock(known.stateNs, atNs));
  if (known !== null && known.stateDigest === digest && !isRepeated) {
    return { known: { ...known, facts: known.facts ?? facts }, changed: known.facts === null, lines: [] };
  }
  const identity = known ?? alertIdentity(alert, seen.deviceName);
  const stateNs = known === null ? atNs : laterThan(known.stateNs, atNs);
  const tags = alertTags(identity, workspaceTag);
  const first = known === null ? factLine(alert, tags) : null;
  const state = encodeLine({ measurement: 'alert_state', tags, fields: stateFields(alert, open), at: stateNs });
  const lines = [first, state].filter((line) => line !== null);
  const isListed = known?.isListed ?? false;
  return {
    known: { ...identity, openedAt: alert.openedAt, stateDigest: digest, stateNs, isOpen: open, isListed, facts },
    changed: true,
    lines,
  };
}

/** The time of the next state: two at one instant would be one point. */
function laterThan(lastNs: EpochNs, atNs: EpochNs): EpochNs {
  return atNs > lastNs || isByWrongClock(lastNs, atNs) ? atNs : lastNs + 1n;
}

/** Whether a state was observed more than a day later than now, by a wrong clock. */
function isByWrongClock(lastNs: EpochNs, atNs: EpochNs): boolean {
  return lastNs - atNs > DAY_NS;
}

function factsOf({ ruleName, condition, threshold, status, fireCount, value }: AlertRecord): AlertFacts {
  return { ruleName, condition, threshold, status, fireCount, value };
}

function alertIdentity({ alertId, deviceId, kind, sensor }: AlertRecord, deviceName: string | null): AlertIdentity {
  return { alertId, deviceId, deviceName: deviceName ?? deviceId, kind, sensor };
}

function alertTags({ alertId, deviceId, deviceName, kind, sensor }: AlertIdentity, workspaceTag: string): Tag[] {
  const identifying = (value: string | null): Tag[1] =>
    value === null || value === '' ? descriptiveTag('') : identityTag(value);
  return [
    ['alert_id', identityTag(String(alertId))],
    ['device_id', identifying(deviceId)],
    ['device_name', descriptiveTag(deviceName ?? '')],
    ['kind', descriptiveTag(kind ?? '')],
    ['sensor', identifying(sensor)],
    ['workspace_id', identityTag(workspaceTag)],
  ];
}

/** The line with the facts as first seen, at the time when the alert was opened; `null` if there are no facts. */
function factLine(alert: AlertRecord, tags: readonly Tag[]): string | null {
  const fields = [
    ...optionalField('rule_name', alert.ruleName),
    ...optionalField('condition', alert.condition),
    ...optionalField('threshold', alert.threshold),
  ];
  return encodeLine({ measurement: 'alert', tags, fields, at: alert.openedAt });
}

function stateFields(alert: AlertRecord, open: boolean): Field[] {
  return [
    ...optionalField('status', alert.status),
    ['open', Number(open)],
    ...optionalField('fire_count', alert.fireCount),
    ...optionalField('value', alert.value),
  ];
}
