/**
 * Parses the API's answers and checks every record (API document, "Resources and their fields").
 *
 * Promises: a record must have its identity; everything else is optional. Unknown members are ignored. A member that is
 * null, absent or of an unexpected type becomes `null`. A record without its identity is rejected with a reason, and
 * the rest of its page counts. Any JSON leads to a record or an `ApiFault`.
 *
 * A time that no clock has reached yet counts as none (`TimeLimit`): a reading or an alert of such a time is rejected,
 * so that no point of it is ever made; `last_seen_at` becomes `null`.
 *
 * No schema library is used: no member except the identity can make a record invalid, so a schema would consist of
 * exceptions, and loading a library takes a fifth of the time to the first request.
 */
import { isRecord, member } from '../core/json.ts';
import type {
  Account,
  AlertPage,
  AlertRecord,
  Cursor,
  DevicePage,
  DeviceRecord,
  JsonValue,
  Plan,
  Reading,
  RejectedRecord,
  TelemetryPage,
} from '../core/records.ts';
import { createTimeReader, type EpochNs, MAX_MS, msToNs, parseTimestamp } from '../core/time.ts';
import { malformed } from './classify.ts';
import { deviceIdProblem } from './urls.ts';

const MAX_WORKSPACE_ID = 256;

/** The limit for the times in a record. */
export interface TimeLimit {
  /** The latest allowed time: a day after every clock. */
  readonly latestNs: EpochNs;
}

/** Allows every time that can be stored. */
const ANY_TIME: TimeLimit = { latestNs: msToNs(MAX_MS) };

/** Why a record with a later time is rejected. */
const FUTURE = 'is more than a day in the future';

/**
 * Parses `GET /account`.
 *
 * @throws ApiFault `malformed` if the answer does not name its workspace
 */
export function parseAccount(body: unknown, request: string): Account {
  const workspaceId = isRecord(body) ? (textIn(body, 'workspace_id') ?? '') : '';
  if (!isRecord(body) || workspaceId === '' || workspaceId.length > MAX_WORKSPACE_ID) {
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

/** A member that is an object; an empty object for any other value. */
function objectIn(holder: object, name: string): object {
  const value = member(holder, name);
  return isRecord(value) ? value : {};
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

/**
 * Parses a page of `GET /devices`.
 *
 * @throws ApiFault `malformed` if the body is not a page
 */
export function parseDevicePage(body: unknown, request: string, limit = ANY_TIME): DevicePage {
  const { data, nextCursor } = openEnvelope(body, request);
  const devices: DeviceRecord[] = [];
  const rejected: RejectedRecord[] = [];
  let hasFuture = false;
  for (const item of data) {
    const device = readDevice(item);
    if (typeof device === 'string') {
      rejected.push(rejectRecord(device, item));
      continue;
    }
    const isFuture = device.lastSeenAt !== null && device.lastSeenAt > limit.latestNs;
    hasFuture ||= isFuture;
    devices.push(isFuture ? { ...device, lastSeenAt: null } : device);
  }
  return { devices, rejected, nextCursor, ...(hasFuture && { hasFuture }) };
}

/**
 * Reads a device.
 *
 * @returns the device, or the reason why the record is rejected
 */
function readDevice(item: unknown): DeviceRecord | string {
  if (!isRecord(item)) return 'the device record is not a JSON object';
  const problem = deviceIdProblem(member(item, 'device_id'));
  const deviceId = textIn(item, 'device_id');
  if (problem !== null || deviceId === null) return problem ?? 'the device record cannot be parsed';
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
 * Parses a page of `GET /devices/{device_id}/telemetry`.
 *
 * @throws ApiFault `malformed` if the body is not a page
 */
export function parseTelemetryPage(body: unknown, request: string): TelemetryPage {
  const steps = telemetrySteps(body, request);
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

/** How many values of readings are read in one turn: some milliseconds. */
const VALUES_A_TURN = 5000;

/**
 * Parses a page of telemetry in steps: it yields after each `VALUES_A_TURN` values, so that other work can have a turn.
 *
 * @throws ApiFault `malformed` if the body is not a page
 */
export function* telemetrySteps(
  body: unknown,
  request: string,
  { latestNs }: TimeLimit = ANY_TIME,
): Generator<void, TelemetryPage> {
  const { page: envelope, data, nextCursor } = openEnvelope(body, request);
  const deviceId = member(envelope, 'device_id');
  const readings: Reading[] = [];
  const rejected: RejectedRecord[] = [];
  const readTime = createTimeReader();
  let values = 0;
  let hasFuture = false;
  for (const item of data) {
    const reading = readReading(item, readTime);
    if (typeof reading === 'string') rejected.push(rejectRecord(reading, item));
    else if (reading.recordedAt > latestNs) {
      hasFuture = true;
      rejected.push(rejectRecord(`recorded_at ${FUTURE}`, item));
    } else {
      readings.push(reading);
      values += reading.values.length;
    }
    if (values < VALUES_A_TURN) continue;
    values = 0;
    yield;
  }
  const page = { deviceId: typeof deviceId === 'string' ? deviceId : null, readings, rejected, nextCursor };
  return hasFuture ? { ...page, hasFuture } : page;
}

/**
 * Reads a reading. If its values have an unexpected type, it is rejected, because empty values would hide the loss.
 *
 * @returns the reading, or the reason why the record is rejected
 */
function readReading(item: unknown, readTime: (text: string) => EpochNs | null): Reading | string {
  if (!isRecord(item)) return 'the reading record is not a JSON object';
  const served = member(item, 'recorded_at');
  const recordedAt = typeof served === 'string' ? readTime(served) : null;
  if (recordedAt === null) return 'recorded_at is not a time';
  const values = member(item, 'values') ?? {};
  if (!isRecord(values)) return 'values is not an object';
  // `Object.entries` keeps a sensor called `__proto__`, which the parser made an ordinary member.
  const pairs = Object.entries(values) as [string, JsonValue][];
  for (const [, value] of pairs) {
    if (typeof value === 'object' && value !== null && isTooDeep(value)) return 'values are nested too deeply';
  }
  return { recordedAt, values: pairs };
}

/** Returns the alert; `null` if it has no usable id or time. */
function readAlert(item: unknown): AlertRecord | null {
  if (!isRecord(item)) return null;
  const alertId = wholeIn(item, 'alert_id');
  const openedAt = timeIn(item, 'opened_at');
  if (alertId === null || openedAt === null) return null;
  return {
    alertId,
    deviceId: textIn(item, 'device_id'),
    ruleName: textIn(item, 'rule_name'),
    kind: textIn(item, 'kind'),
    sensor: textIn(item, 'sensor'),
    condition: textIn(item, 'condition'),
    threshold: numberIn(item, 'threshold'),
    value: numberIn(item, 'value'),
    fireCount: numberIn(item, 'fire_count'),
    status: textIn(item, 'status'),
    openedAt,
  };
}

/**
 * Parses a page of `GET /alerts`.
 *
 * @throws ApiFault `malformed` if the body is not a page
 */
export function parseAlertPage(body: unknown, request: string, { latestNs } = ANY_TIME): AlertPage {
  const { data, nextCursor } = openEnvelope(body, request);
  const alerts: AlertRecord[] = [];
  const rejected: RejectedRecord[] = [];
  for (const item of data) {
    const alert = readAlert(item);
    if (alert === null) {
      const reason = isRecord(item) ? 'the alert has no usable id or time' : 'the alert record is not a JSON object';
      rejected.push(rejectRecord(reason, item));
    } else if (alert.openedAt > latestNs) rejected.push(rejectRecord(`opened_at ${FUTURE}`, item));
    else alerts.push(alert);
  }
  return { alerts, rejected, nextCursor };
}

/**
 * Parses `GET /alerts/{alert_id}`.
 *
 * @throws ApiFault `malformed` if the body is not an alert
 */
export function parseAlert(body: unknown, request: string): AlertRecord {
  const alert = readAlert(body);
  if (alert === null) throw malformed(request, 'the alert has no usable id or time');
  return alert;
}

// The parts that all lists have in common.

/** A page with more items cannot be an answer to a limit of at most 200. */
const MAX_PAGE_ITEMS = 1000;
const MAX_RECORD_LENGTH = 2000;

/** How deeply a value may be nested. A deeper one could exhaust the stack of later code. */
const MAX_DEPTH = 32;

interface Envelope {
  /** The page itself, for members other than the list. */
  readonly page: object;
  readonly data: readonly unknown[];
  readonly nextCursor: Cursor | null;
}

/**
 * Reads the envelope of a list.
 *
 * A cursor may have any length: a page of telemetry needs only its presence. `urls.ts` lists which ones are sent back.
 *
 * A `next_cursor` of `null` counts as absent, but an empty one does not: according to the document, the last page has
 * no such member, "not an empty string". The meaning of an empty cursor is unknown, and treating it as the end could
 * mark a range as covered that was not served. Such a page is malformed: it is requested again and covers nothing.
 *
 * @throws ApiFault `malformed` if the body is not a list
 */
function openEnvelope(body: unknown, request: string): Envelope {
  if (!isRecord(body)) throw malformed(request, 'the response is not a JSON object');
  const data = member(body, 'data');
  if (!Array.isArray(data)) throw malformed(request, 'the response has no array "data"');
  if (data.length > MAX_PAGE_ITEMS)
    throw malformed(request, `the page has ${data.length} records, more than ${MAX_PAGE_ITEMS}`);
  return { page: body, data, nextCursor: readCursor(member(body, 'next_cursor'), request) };
}

function readCursor(cursor: unknown, request: string): Cursor | null {
  if (cursor === undefined || cursor === null) return null;
  if (typeof cursor !== 'string') throw malformed(request, '"next_cursor" is not a string');
  if (cursor === '') throw malformed(request, '"next_cursor" is empty');
  if (!cursor.isWellFormed()) throw malformed(request, '"next_cursor" cannot be sent back');
  return cursor as Cursor;
}

/** Rejects a record, with the reason and its shortened JSON. */
function rejectRecord(reason: string, record: unknown): RejectedRecord {
  return { reason, record: shortJson(record) };
}

function shortJson(record: unknown): string {
  if (isTooDeep(record)) return '(nested too deeply to be shown)';
  const json = JSON.stringify(record) ?? 'null';
  return json.length <= MAX_RECORD_LENGTH ? json : `${json.slice(0, MAX_RECORD_LENGTH).toWellFormed()}…`;
}

/** Whether a parsed value is nested too deeply. The function itself is not recursive. */
function isTooDeep(value: unknown): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > MAX_DEPTH) return true;
    level = level.flatMap((item) => (typeof item === 'object' && item !== null ? Object.values(item) : []));
  }
  return false;
}

// Members: a value that is null, absent or of an unexpected type becomes `null`.

/** A text member, which may be empty; `null` for any other value. */
function textIn(holder: object, name: string): string | null {
  const value = member(holder, name);
  return typeof value === 'string' ? value : null;
}

function flagIn(holder: object, name: string): boolean | null {
  const value = member(holder, name);
  return typeof value === 'boolean' ? value : null;
}

/** A finite number. JSON can contain larger numbers than a double, which become infinite. */
function numberIn(holder: object, name: string): number | null {
  const value = member(holder, name);
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

/** A whole number that a double holds exactly. */
function wholeIn(holder: object, name: string): number | null {
  const value = member(holder, name);
  return Number.isSafeInteger(value) ? Number(value) : null;
}

/** A whole number from 0 on; `null` for any other value. */
function countIn(holder: object, name: string): number | null {
  const value = wholeIn(holder, name);
  return value !== null && value >= 0 ? value : null;
}

/** A whole number above 0: a limit of 0 would allow nothing. */
function figureIn(holder: object, name: string): number | null {
  const value = wholeIn(holder, name);
  return value !== null && value > 0 ? value : null;
}

/** A timestamp; `null` if it is not valid. */
function timeIn(holder: object, name: string): EpochNs | null {
  const value = textIn(holder, name);
  return value === null ? null : parseTimestamp(value);
}

/** The texts of a list. Other items are left out, and any other value counts as an empty list. */
function textsIn(holder: object, name: string): readonly string[] {
  const value = member(holder, name);
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}
