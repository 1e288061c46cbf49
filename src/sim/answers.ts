/**
 * Serialises the simulator's answers: status, headers, and bodies as JSON text, member by member after the API
 * document's tables.
 *
 * Bodies are text, not objects: `1e400`, `-0` and a sensor named `__proto__` have to reach the wire as they are. Every
 * answer carries `X-RateLimit-Limit` and `X-RateLimit-Remaining` (API document, "Endpoints").
 */
import type { EpochMs } from '../core/time.ts';
import type { SimQuotaState, WindowState } from './quota.ts';
import { chance, mix, mixText, type Seed, whole } from './random.ts';
import type { SimSettings } from './settings.ts';
import type { SimAlert, SimDevice, SimReading, SimValue } from './spec.ts';

/** A response of the simulator before it is sent. */
export interface SimAnswer {
  readonly status: number;
  /** The headers with their usual capitals. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** A successful page, before it is written. */
export interface SimPage {
  readonly kind: 'devices' | 'device' | 'telemetry' | 'alerts' | 'alert' | 'account';
  /** The device that a telemetry page names. */
  readonly deviceId: string | null;
  /** The records as JSON text, in the order served; exactly one for a single resource. */
  readonly records: readonly string[];
  readonly nextCursor: string | null;
}

/** Encodes a page, or the single record of an address that has one, as JSON text. */
export function pageText({ kind, deviceId, records, nextCursor }: SimPage, seed: Seed, settings: SimSettings): string {
  if (kind === 'device' || kind === 'alert' || kind === 'account') return records[0] ?? '{}';
  const members: Member[] = [['data', `[${records.join(',')}]`]];
  if (deviceId !== null) members.unshift(['device_id', JSON.stringify(deviceId)]);
  if (nextCursor !== null) members.push(['next_cursor', JSON.stringify(nextCursor)]);
  const required = ['data', 'next_cursor'];
  return objectText(decorate(members, `page ${kind} ${deviceId}`, { seed, surprises: settings.surprises, required }));
}

/** The body of a rejection: a single member `error`, and further members that depend on its code. */
export function rejectionJson(rejection: Rejection, seed: Seed, settings: SimSettings): string {
  const members: Member[] = [
    ['code', JSON.stringify(rejection.code)],
    ['message', JSON.stringify(rejection.message)],
  ];
  if (rejection.requiredScope !== null) members.push(['required_scope', JSON.stringify(rejection.requiredScope)]);
  const { historyMaxDays } = settings.plan;
  if (settings.codes.withMaxDays.includes(rejection.code) && historyMaxDays !== null) {
    members.push(['max_days', String(historyMaxDays)]);
  }
  const required = members.map(([name]) => name);
  const decorated = decorate(members, `error ${rejection.code}`, { seed, surprises: settings.surprises, required });
  return objectText([['error', objectText(decorated)]]);
}

/** Builds a JSON response from its text. */
export function jsonAnswer(status: number, body: string, headers: Readonly<Record<string, string>>): SimAnswer {
  return { status, headers: { 'Content-Type': 'application/json', ...headers }, body: Buffer.from(body) };
}

/** `X-RateLimit-*` of the window that the settings name ("Limits" 1 and 2). */
export function quotaHeaders({ minute, day }: SimQuotaState, settings: SimSettings): Record<string, string> {
  const shown: Record<SimSettings['quota']['headers'], WindowState> = {
    minute,
    day,
    tightest: day.left < minute.left ? day : minute,
  };
  const { limit, left } = shown[settings.quota.headers];
  return { 'X-RateLimit-Limit': String(limit), 'X-RateLimit-Remaining': String(left) };
}

/** The headers that belong to a rejection: the challenge of 401, the wait of 429, the methods of 405. */
export function rejectionHeaders(status: number, waitMs: number, { headerNames }: SimSettings): Record<string, string> {
  if (status === 401) return { [headerNames.challenge]: 'Bearer' };
  if (status === 429) return { [headerNames.wait]: String(Math.max(1, Math.ceil(waitMs / 1000))) };
  return status === 405 ? { Allow: 'GET' } : {};
}

/** The answer with the server's time of sending, or without one. */
export function dateAnswer(answer: SimAnswer, serverNowMs: EpochMs, { time }: SimSettings): SimAnswer {
  if (time.date === 'absent') return answer;
  return { ...answer, headers: { ...answer.headers, Date: new Date(serverNowMs + time.dateSkewMs).toUTCString() } };
}

/** A member's name and its value as JSON text. */
type Member = readonly [name: string, json: string];

/** How records get unexpected members: from the seed, so that a record always has the same ones. */
export interface Decoration {
  readonly seed: Seed;
  readonly surprises: SimSettings['surprises'];
}

const text = JSON.stringify as (value: string | number | boolean | null | readonly string[]) => string;

/** A JSON object from members that are already text. */
function objectText(members: readonly Member[]): string {
  return `{${members.map(([name, json]) => `${text(name)}:${json}`).join(',')}}`;
}

/**
 * The members of a record as served: the settings make some null or absent and add unknown ones.
 *
 * @param identity kind and id, which distinguish this record from all others.
 * @param required the names of the members that are always present.
 */
function decorate(
  members: readonly Member[],
  identity: string,
  { seed, surprises, required }: Decoration & { readonly required: readonly string[] },
): Member[] {
  const own = mixText(seed, identity);
  const decorated = members.flatMap((member): Member[] => {
    const field = mixText(own, member[0]);
    if (required.includes(member[0]) || !chance(field, surprises.missingFields)) return [member];
    return chance(mix(field, 1), 0.5) ? [] : [[member[0], 'null']];
  });
  if (chance(mix(own, 2), surprises.unknownMembers))
    decorated.splice(whole(mix(own, 3), 0, decorated.length), 0, unknownMember(own));
  return decorated;
}

const UNKNOWN_VALUES = ['1', '"later"', 'null', 'true', '{"nested":{"deep":[1]}}', '[{"a":1}]', '-0.5'];

function unknownMember(seed: Seed): Member {
  const json = UNKNOWN_VALUES[whole(mix(seed, 4), 0, UNKNOWN_VALUES.length - 1)] ?? 'null';
  return [`x_${(mix(seed, 5) >>> 0).toString(36)}`, json];
}

/** A device (API document, "Device"). */
export function deviceJson(device: SimDevice, how: Decoration): string {
  const members: Member[] = [
    ['device_id', text(device.deviceId)],
    ['name', text(device.name)],
    ['model_id', text(device.modelId)],
    ['firmware_version', text(device.firmwareVersion)],
    ['is_addon', text(device.isAddon)],
    ['parent_device_id', text(device.parentDeviceId)],
    ['lifecycle_status', text(device.lifecycleStatus)],
    ['online', text(device.online)],
    ['presence', text(device.presence)],
    ['last_seen_at', text(device.lastSeenAt)],
    ['latitude', text(device.latitude)],
    ['longitude', text(device.longitude)],
    ['location_updated_at', text(device.locationUpdatedAt)],
    ['tags', text(device.tags)],
  ];
  return objectText(decorate(members, `device ${device.deviceId}`, { ...how, required: ['device_id'] }));
}

/** An alert (API document, "Alert"). */
export function alertJson(alert: SimAlert, how: Decoration): string {
  const members: Member[] = [
    ['alert_id', text(alert.alertId)],
    ['device_id', text(alert.deviceId)],
    ['rule_name', text(alert.ruleName)],
    ['kind', text(alert.kind)],
    ['sensor', text(alert.sensor)],
    ['condition', text(alert.condition)],
    ['threshold', text(alert.threshold)],
    ['value', text(alert.value)],
    ['fire_count', text(alert.fireCount)],
    ['status', text(alert.status)],
    ['opened_at', text(alert.openedAt)],
  ];
  return objectText(
    decorate(members, `alert ${alert.alertId}`, { ...how, required: ['alert_id', 'device_id', 'opened_at'] }),
  );
}

/**
 * Serialises telemetry readings (API document, "Telemetry reading"). None of their members is ever missing. Caches the
 * names of sensors as JSON, because they are few and written with each reading.
 */
export function createReadingText(how?: Decoration): (reading: Pick<SimReading, 'recordedAt' | 'values'>) => string {
  const names = new Map<string, string>();
  return ({ recordedAt, values }) => {
    const plain = `{"recorded_at":"${recordedAt}","values":${valuesText(values, names)}`;
    if (how === undefined || how.surprises.unknownMembers === 0) return `${plain}}`;
    const own = mixText(how.seed, `reading ${recordedAt}`);
    if (!chance(mix(own, 2), how.surprises.unknownMembers)) return `${plain}}`;
    const [name, json] = unknownMember(own);
    return `${plain},${text(name)}:${json}}`;
  };
}

function valuesText(values: readonly SimValue[] | null, names: Map<string, string>): string {
  if (values === null) return 'null';
  let members = '';
  for (const [key, json] of values) {
    let name = names.get(key);
    if (name === undefined) {
      name = text(key);
      names.set(key, name);
    }
    members += `${members === '' ? '' : ','}${name}:${json}`;
  }
  return `{${members}}`;
}

interface AccountFacts {
  readonly workspaceId: string;
  readonly name: string;
  readonly plan: SimSettings['plan'];
  readonly devices: number;
  readonly openAlerts: number;
}

/** The account (API document, "Account"): no member data. */
export function accountJson({ workspaceId, name, plan, devices, openAlerts }: AccountFacts, how: Decoration): string {
  const planMembers: Member[] = [
    ['plan_id', text(plan.planId)],
    ['name', text(plan.name)],
    ['max_api_keys', text(plan.maxApiKeys)],
    ['external_requests_per_minute', text(plan.requestsPerMinute)],
    ['external_requests_per_day', text(plan.requestsPerDay)],
    ['history_max_days', text(plan.historyMaxDays)],
    ['max_devices_per_page', text(plan.maxDevicesPerPage)],
  ];
  const usageMembers: Member[] = [
    ['devices', text(devices)],
    ['open_alerts', text(openAlerts)],
  ];
  // In the plan, null has its own meaning, so a missing member would be wrong.
  const planText = objectText(decorate(planMembers, 'plan', { ...how, required: ['history_max_days'] }));
  const members: Member[] = [
    ['workspace_id', text(workspaceId)],
    ['name', text(name)],
    ['plan', planText],
    ['usage', objectText(decorate(usageMembers, 'usage', { ...how, required: [] }))],
  ];
  return objectText(decorate(members, 'account', { ...how, required: ['workspace_id', 'plan'] }));
}

/** A request that the API rejects (API document, "Errors"). */
export class Rejection extends Error {
  override readonly name = 'Rejection';
  readonly status: number;
  readonly code: string;
  readonly requiredScope: string | null;

  constructor(status: number, code: string, message: string, requiredScope: string | null = null) {
    super(message);
    this.status = status;
    this.code = code;
    this.requiredScope = requiredScope;
  }
}

/** 400. The message begins with the name of the parameter at fault (for cursors: docs/api.md, Pagination). */
export function invalidRequest(parameter: string, complaint: string): Rejection {
  return new Rejection(400, 'invalid_request', `${parameter} ${complaint}`);
}

/** 404. The answer is the same for a resource that never existed and for one of another workspace. */
export function notFound(settings: SimSettings): Rejection {
  return new Rejection(404, settings.codes.notFound, 'No such resource.');
}
