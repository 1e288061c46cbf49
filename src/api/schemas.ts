/**
 * What the API's answers become: every record checked at the border (API document, "Resources and their fields").
 *
 * Promises: strict about what identifies a record, tolerant of all else. Unknown members are ignored; a member that is
 * null, absent or of an odd type becomes `null`; a record without its identity is set aside with a reason, and the rest
 * of its page stands. Any JSON whatever gives a record or an `ApiFault`, nothing else.
 */
import type {
  Account,
  DevicePage,
  DeviceRecord,
  JsonValue,
  Plan,
  Reading,
  RejectedRecord,
  TelemetryPage,
} from '../core/records.ts';
import type { EpochNs } from '../core/time.ts';
import { isObject, isTooDeep, malformed, member, openEnvelope, rejectRecord } from './envelope.ts';
import { deviceIdProblem } from './ids.ts';
import { countIn, figureIn, flagIn, numberIn, textIn, textsIn, timeIn } from './members.ts';
import { createTimeReader } from './recorded-at.ts';

const MAX_WORKSPACE_ID = 256;

/** `GET /account`. @throws ApiFault `malformed` where it does not name its workspace. */
export function parseAccount(body: unknown, request: string): Account {
  const workspaceId = isObject(body) ? (textIn(body, 'workspace_id') ?? '') : '';
  if (!isObject(body) || workspaceId === '' || workspaceId.length > MAX_WORKSPACE_ID) {
    throw malformed(request, 'the account has no usable "workspace_id"');
  }
  const usage = objectIn(body, 'usage');
  return {
    workspaceId,
    name: textIn(body, 'name'),
    plan: readPlan(objectIn(body, 'plan')),
    devices: countIn(usage, 'devices'),
    openAlerts: countIn(usage, 'open_alerts'),
  };
}

/** A member that is an object; an empty one where it is none. */
function objectIn(holder: object, name: string): object {
  const value = member(holder, name);
  return isObject(value) ? value : {};
}

function readPlan(plan: object): Plan {
  const days = numberIn(plan, 'history_max_days');
  return {
    planId: textIn(plan, 'plan_id'),
    name: textIn(plan, 'name'),
    maxApiKeys: countIn(plan, 'max_api_keys'),
    requestsPerMinute: figureIn(plan, 'external_requests_per_minute'),
    requestsPerDay: figureIn(plan, 'external_requests_per_day'),
    historyMaxDays: days !== null && days > 0 ? days : null,
    maxDevicesPerPage: figureIn(plan, 'max_devices_per_page'),
  };
}

/** A page of `GET /devices`. @throws ApiFault `malformed` where it is no page. */
export function parseDevicePage(body: unknown, request: string): DevicePage {
  const { data, nextCursor } = openEnvelope(body, request);
  const devices: DeviceRecord[] = [];
  const rejected: RejectedRecord[] = [];
  for (const item of data) {
    const device = readDevice(item);
    if (typeof device === 'string') rejected.push(rejectRecord(device, item));
    else devices.push(device);
  }
  return { devices, rejected, nextCursor };
}

/** A device, or why it is none. */
function readDevice(item: unknown): DeviceRecord | string {
  if (!isObject(item)) return 'the device is no object';
  const problem = deviceIdProblem(member(item, 'device_id'));
  const deviceId = textIn(item, 'device_id');
  if (problem !== null || deviceId === null) return problem ?? 'the device is unreadable';
  return {
    deviceId,
    name: textIn(item, 'name'),
    modelId: textIn(item, 'model_id'),
    firmwareVersion: textIn(item, 'firmware_version'),
    isAddon: flagIn(item, 'is_addon'),
    parentDeviceId: textIn(item, 'parent_device_id'),
    lifecycleStatus: textIn(item, 'lifecycle_status'),
    online: flagIn(item, 'online'),
    presence: textIn(item, 'presence'),
    lastSeenAt: timeIn(item, 'last_seen_at'),
    latitude: numberIn(item, 'latitude'),
    longitude: numberIn(item, 'longitude'),
    locationUpdatedAt: timeIn(item, 'location_updated_at'),
    tags: textsIn(item, 'tags'),
  };
}

/**
 * A page of `GET /devices/{device_id}/telemetry`.
 *
 * @throws ApiFault `malformed` where it is no page.
 */
export function parseTelemetryPage(body: unknown, request: string): TelemetryPage {
  const { page, data, nextCursor } = openEnvelope(body, request);
  const deviceId = member(page, 'device_id');
  const readings: Reading[] = [];
  const rejected: RejectedRecord[] = [];
  const readTime = createTimeReader();
  for (const item of data) {
    const reading = readReading(item, readTime);
    if (typeof reading === 'string') rejected.push(rejectRecord(reading, item));
    else readings.push(reading);
  }
  return { deviceId: typeof deviceId === 'string' ? deviceId : null, readings, rejected, nextCursor };
}

/** A reading, or why it is none. Values of an odd type are not emptied: what they meant would be lost without a word. */
function readReading(item: unknown, readTime: (text: string) => EpochNs | null): Reading | string {
  if (!isObject(item)) return 'the reading is no object';
  const served = member(item, 'recorded_at');
  const recordedAt = typeof served === 'string' ? readTime(served) : null;
  if (recordedAt === null) return 'recorded_at is no time';
  const values = member(item, 'values') ?? {};
  if (!isObject(values)) return 'values is no object';
  // Entries keep a sensor called `__proto__`, which the parser made an ordinary member.
  const pairs: [string, JsonValue][] = Object.entries(values);
  for (const [, value] of pairs) {
    if (typeof value === 'object' && value !== null && isTooDeep(value)) return 'values are nested too deeply';
  }
  return { recordedAt, values: pairs };
}
