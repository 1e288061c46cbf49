/**
 * What the API's answers become: every record checked at the border (API document, "Resources and their fields").
 *
 * Promises: strict about what identifies a record, tolerant of all else. Unknown members are ignored; a member that is
 * null, absent or of an odd type becomes `null`; a record without its identity is set aside with a reason, and the rest
 * of its page stands. Any JSON whatever gives a record or an `ApiFault`, nothing else.
 */
import { z } from 'zod';
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
import { type EpochNs, parseTimestamp } from '../core/time.ts';
import { isObject, isTooDeep, malformed, member, openEnvelope, rejectRecord } from './envelope.ts';
import { deviceIdProblem } from './ids.ts';

const text = z.string().nullable().catch(null);
const flag = z.boolean().nullable().catch(null);
const number = z.number().nullable().catch(null);
const count = z.int().nonnegative().nullable().catch(null);
const figure = z.int().positive().nullable().catch(null);
const time = z
  .unknown()
  .optional()
  .transform((value): EpochNs | null => (typeof value === 'string' ? parseTimestamp(value) : null));
const texts = z
  .array(z.unknown())
  .catch([])
  .transform((items): string[] => items.filter((item) => typeof item === 'string'));

const deviceSchema = z.object({
  device_id: z.string(),
  name: text,
  model_id: text,
  firmware_version: text,
  is_addon: flag,
  parent_device_id: text,
  lifecycle_status: text,
  online: flag,
  presence: text,
  last_seen_at: time,
  latitude: number,
  longitude: number,
  location_updated_at: time,
  tags: texts,
});

const planSchema = z
  .object({
    plan_id: text,
    name: text,
    max_api_keys: count,
    external_requests_per_minute: figure,
    external_requests_per_day: figure,
    history_max_days: z.number().positive().nullable().catch(null),
    max_devices_per_page: figure,
  })
  .transform(
    (plan): Plan => ({
      planId: plan.plan_id,
      name: plan.name,
      maxApiKeys: plan.max_api_keys,
      requestsPerMinute: plan.external_requests_per_minute,
      requestsPerDay: plan.external_requests_per_day,
      historyMaxDays: plan.history_max_days,
      maxDevicesPerPage: plan.max_devices_per_page,
    }),
  );

const accountSchema = z.object({
  workspace_id: z.string().min(1).max(256),
  name: text,
  plan: z
    .unknown()
    .optional()
    .transform((plan): Plan => planSchema.parse(isObject(plan) ? plan : {})),
  usage: z.object({ devices: count, open_alerts: count }).catch({ devices: null, open_alerts: null }),
});

/** `GET /account`. @throws ApiFault `malformed` where it does not name its workspace. */
export function parseAccount(body: unknown, request: string): Account {
  const parsed = accountSchema.safeParse(body);
  if (!parsed.success) throw malformed(request, 'the account has no usable "workspace_id"');
  const { workspace_id: workspaceId, name, plan, usage } = parsed.data;
  return { workspaceId, name, plan, devices: usage.devices, openAlerts: usage.open_alerts };
}

/** A page of `GET /devices`. @throws ApiFault `malformed` where it is no page. */
export function parseDevicePage(body: unknown, request: string): DevicePage {
  const { data, nextCursor } = openEnvelope(body, request);
  const devices: DeviceRecord[] = [];
  const rejected: RejectedRecord[] = [];
  for (const item of data) {
    const problem = isObject(item) ? deviceIdProblem(member(item, 'device_id')) : 'the device is no object';
    const parsed = deviceSchema.safeParse(item);
    if (problem !== null || !parsed.success) rejected.push(rejectRecord(problem ?? 'the device is unreadable', item));
    else devices.push(toDevice(parsed.data));
  }
  return { devices, rejected, nextCursor };
}

function toDevice(device: z.infer<typeof deviceSchema>): DeviceRecord {
  return {
    deviceId: device.device_id,
    name: device.name,
    modelId: device.model_id,
    firmwareVersion: device.firmware_version,
    isAddon: device.is_addon,
    parentDeviceId: device.parent_device_id,
    lifecycleStatus: device.lifecycle_status,
    online: device.online,
    presence: device.presence,
    lastSeenAt: device.last_seen_at,
    latitude: device.latitude,
    longitude: device.longitude,
    locationUpdatedAt: device.location_updated_at,
    tags: device.tags,
  };
}

/**
 * A page of `GET /devices/{device_id}/telemetry`. Readings are checked by hand: they are where the mass is.
 *
 * @throws ApiFault `malformed` where it is no page.
 */
export function parseTelemetryPage(body: unknown, request: string): TelemetryPage {
  const { page, data, nextCursor } = openEnvelope(body, request);
  const deviceId = member(page, 'device_id');
  const readings: Reading[] = [];
  const rejected: RejectedRecord[] = [];
  for (const item of data) {
    const reading = readReading(item);
    if (typeof reading === 'string') rejected.push(rejectRecord(reading, item));
    else readings.push(reading);
  }
  return { deviceId: typeof deviceId === 'string' ? deviceId : null, readings, rejected, nextCursor };
}

/** A reading, or why it is none. Values of an odd type are not emptied: what they meant would be lost without a word. */
function readReading(item: unknown): Reading | string {
  if (!isObject(item)) return 'the reading is no object';
  const served = member(item, 'recorded_at');
  const recordedAt = typeof served === 'string' ? parseTimestamp(served) : null;
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
