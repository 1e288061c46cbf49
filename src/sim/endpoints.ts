/**
 * Serves the six endpoints of the simulated API: the route and the scope of each, and the page that answers a request
 * with its parameters (API document, "Pagination" and "Telemetry window").
 *
 * However the settings define the bounds of a telemetry request, the result is one half-open range of nanoseconds,
 * fixed for the first page and all that follow. A request with `before` alone begins at the oldest time that the plan
 * allows.
 */

import { createHmac } from 'node:crypto';
import { parseJson } from '../core/json.ts';
import {
  DAY_NS,
  type EpochMs,
  type EpochNs,
  floorToSecond,
  maxNs,
  msToNs,
  parseTimestamp,
  SECOND_NS,
} from '../core/time.ts';
import {
  accountJson,
  alertJson,
  createReadingText,
  type Decoration,
  deviceJson,
  invalidRequest,
  notFound,
  Rejection,
  type SimPage,
} from './answers.ts';
import type { ApiScope, BoundShape, SimSettings } from './settings.ts';
import type { SimReading } from './spec.ts';
import type { World } from './world.ts';

type Endpoint =
  | { readonly kind: 'devices' | 'alerts' | 'account'; readonly scope: ApiScope }
  | { readonly kind: 'device' | 'alert' | 'telemetry'; readonly scope: ApiScope; readonly id: string };

/**
 * @param path below the base URL.
 *
 * @returns `null` if there is no such endpoint.
 */
export function matchEndpoint(path: string): Endpoint | null {
  const [root, head, id, tail, ...rest] = decodePath(path);
  if (root !== '' || rest.length > 0) return null;
  if (id === undefined) {
    if (head === 'devices') return { kind: 'devices', scope: 'devices:read' };
    if (head === 'alerts') return { kind: 'alerts', scope: 'alerts:read' };
    return head === 'account' ? { kind: 'account', scope: 'account:read' } : null;
  }
  if (head === 'devices' && tail === undefined) return { kind: 'device', scope: 'devices:read', id };
  if (head === 'devices' && tail === 'telemetry') return { kind: 'telemetry', scope: 'telemetry:read', id };
  return head === 'alerts' && tail === undefined ? { kind: 'alert', scope: 'alerts:read', id } : null;
}

function decodePath(path: string): string[] {
  try {
    return path.split('/').map(decodeURIComponent);
  } catch {
    return [];
  }
}

/**
 * Answers an endpoint.
 *
 * @throws Rejection
 */
export function answerEndpoint(endpoint: Endpoint, call: Call): SimPage {
  const how: Decoration = { seed: call.world.seed, surprises: call.settings.surprises };
  switch (endpoint.kind) {
    case 'devices':
      return listDevices(call, how);
    case 'device':
      return oneDevice(endpoint.id, call, how);
    case 'telemetry':
      return listTelemetry(endpoint.id, call, how);
    case 'alerts':
      return listAlerts(call, how);
    case 'alert':
      return oneAlert(endpoint.id, call, how);
    case 'account':
      return account(call, how);
  }
}

function listDevices(call: Call, how: Decoration): SimPage {
  const { world, nowMs } = call;
  const { limit, cursor } = readPaging(call, 'devices');
  const after = cursor?.position[0];
  const ids = world.deviceIds(nowMs).filter((id) => after === undefined || id > after);
  const shown = ids.slice(0, limit);
  const records = shown.flatMap((id) => {
    const device = world.device(id, nowMs);
    return device === null ? [] : [deviceJson(device, how)];
  });
  const nextCursor = ids.length > limit ? createCursor(call, 'devices', { position: [shown.at(-1) ?? ''] }) : null;
  return { kind: 'devices', deviceId: null, records, nextCursor };
}

function oneDevice(id: string, call: Call, how: Decoration): SimPage {
  checkParameters(call, []);
  const device = call.world.device(id, call.nowMs);
  if (device === null) throw notFound(call.settings);
  return { kind: 'device', deviceId: id, records: [deviceJson(device, how)], nextCursor: null };
}

function listAlerts(call: Call, how: Decoration): SimPage {
  const { limit, cursor } = readPaging(call, 'alerts');
  const behind =
    cursor === null ? null : { openedAtMs: Number(cursor.position[0]), alertId: Number(cursor.position[1]) };
  const records: string[] = [];
  let position: string[] = [];
  for (const alert of call.world.alertsBehind(call.nowMs, behind)) {
    if (records.length === limit) {
      return { kind: 'alerts', deviceId: null, records, nextCursor: createCursor(call, 'alerts', { position }) };
    }
    records.push(alertJson(alert, how));
    position = [String(alert.openedAtMs), String(alert.alertId)];
  }
  return { kind: 'alerts', deviceId: null, records, nextCursor: null };
}

function oneAlert(id: string, call: Call, how: Decoration): SimPage {
  checkParameters(call, []);
  if (!/^\d{1,15}$/.test(id)) throw notFound(call.settings);
  for (const alert of call.world.alertsBehind(call.nowMs, null)) {
    if (String(alert.alertId) === id) {
      return { kind: 'alert', deviceId: null, records: [alertJson(alert, how)], nextCursor: null };
    }
  }
  throw notFound(call.settings);
}

function listTelemetry(deviceId: string, call: Call, how: Decoration): SimPage {
  const { world, settings, nowMs, clockMs, query, isVisible } = call;
  if (!world.has(deviceId, nowMs)) throw notFound(settings);
  const { limit, cursor } = readPaging(call, 'telemetry', deviceId);
  const window = cursor === null ? resolveWindow(query, settings, clockMs) : windowOf(cursor);
  const belowPosition = cursor === null ? Infinity : Number(cursor.position[2]);
  const readingText = createReadingText(how);
  const records: string[] = [];
  const border = createBorder(settings.paging.cursorDuplicates, belowPosition);
  for (const reading of world.readingsDescending(deviceId, { ...window, belowPosition, receivedByMs: nowMs })) {
    if (!isVisible(deviceId, reading)) continue;
    if (records.length === limit) {
      if (border.swallows(reading)) continue;
      const position = [String(window.fromNs), String(window.toNs), String(border.position())];
      return {
        kind: 'telemetry',
        deviceId,
        records,
        nextCursor: createCursor(call, 'telemetry', { deviceId, position }),
      };
    }
    records.push(readingText(reading));
    border.pass(reading);
  }
  return { kind: 'telemetry', deviceId, records, nextCursor: null };
}

/**
 * Where the next page continues. The settings define the treatment of readings with one instant on both sides of a
 * page's end.
 */
function createBorder(ties: Call['settings']['paging']['cursorDuplicates'], belowPosition: number) {
  let last: { readonly at: bigint; readonly position: number } | null = null;
  /** The position before the first reading with the last one's instant; `null` if that instant fills the page. */
  let aboveDuplicate: number | null = null;
  return {
    pass: ({ recordedAtNs: at, position }: SimReading): void => {
      if (last !== null && last.at !== at) aboveDuplicate = last.position;
      last = { at, position };
    },
    /** Whether the first reading after the page is left out. */
    swallows: ({ recordedAtNs: at, position }: SimReading): boolean => {
      if (ties !== 'skips' || last?.at !== at) return false;
      last = { at, position };
      return true;
    },
    position: (): number => {
      if (last === null) return belowPosition;
      if ((ties === 'repeats' || ties === 'loops') && aboveDuplicate !== null) return aboveDuplicate;
      if (ties === 'loops') return belowPosition;
      return last.position;
    },
  };
}

function windowOf({ position }: CursorContent): { fromNs: bigint; toNs: bigint } {
  return { fromNs: BigInt(position[0] ?? 0), toNs: BigInt(position[1] ?? 0) };
}

function account(call: Call, how: Decoration): SimPage {
  checkParameters(call, []);
  const { world, settings, nowMs } = call;
  const openAlerts = world.unresolvedAlerts(nowMs);
  const { workspaceId, name } = world;
  const facts = { workspaceId, name, plan: settings.plan, devices: world.deviceIds(nowMs).length, openAlerts };
  return { kind: 'account', deviceId: null, records: [accountJson(facts, how)], nextCursor: null };
}

/** A request that has passed all checks except those of its endpoint. */
interface Call {
  readonly world: World;
  readonly settings: SimSettings;
  /** The time that decides which records and readings exist. */
  readonly nowMs: EpochMs;
  /** The time of the server's clock. */
  readonly clockMs: EpochMs;
  readonly query: URLSearchParams;
  readonly isVisible: (deviceId: string, reading: SimReading) => boolean;
}

const PAGE_PARAMETERS = ['limit', 'cursor'];
const TELEMETRY_PARAMETERS = [...PAGE_PARAMETERS, 'after', 'before'];

/** `limit` and `cursor` of a paged endpoint (API document, "Pagination"). */
function readPaging(call: Call, kind: CursorKind, deviceId = ''): { limit: number; cursor: CursorContent | null } {
  checkParameters(call, kind === 'telemetry' ? TELEMETRY_PARAMETERS : PAGE_PARAMETERS);
  return { limit: readLimit(call), cursor: readCursor(call, kind, deviceId) };
}

/** Rejects repeated parameters and, if the settings require it, unknown ones. */
function checkParameters({ query, settings }: Call, known: readonly string[]): void {
  for (const name of new Set(query.keys())) {
    if (!known.includes(name)) {
      if (settings.paging.unknownParameters === 'rejected')
        throw invalidRequest(name, 'is not a parameter of this endpoint.');
    } else if (query.getAll(name).length > 1) throw invalidRequest(name, 'must be given once.');
  }
}

const DEFAULT_LIMIT = 50;

function readLimit({ query, settings }: Call): number {
  const given = query.get('limit');
  const most = settings.plan.maxDevicesPerPage;
  if (given === null) return Math.min(DEFAULT_LIMIT, most);
  if (!/^-?\d{1,9}$/.test(given)) throw invalidRequest('limit', 'must be an integer.');
  const limit = Number(given);
  if (limit >= 1 && limit <= most) return limit;
  if (settings.paging.limitOutside === 'clamped') return Math.min(Math.max(limit, 1), most);
  throw invalidRequest('limit', `must be from 1 to ${most}.`);
}

function signatureOf({ paging }: SimSettings): CursorSignature {
  return { secret: paging.cursorSecret, alphabet: paging.cursorAlphabet };
}

/**
 * Reads a cursor. One that the service did not issue, or not for this request, is rejected (docs/api.md, Pagination).
 */
function readCursor({ query, settings, world, nowMs }: Call, kind: CursorKind, deviceId: string): CursorContent | null {
  const given = query.get('cursor');
  if (given === null) return null;
  const cursor = openCursor(given, signatureOf(settings));
  if (cursor === null) throw invalidRequest('cursor', 'is not valid.');
  const { cursorLifeMs, cursorParameters } = settings.paging;
  if (cursor.kind !== kind || cursor.deviceId !== deviceId || cursor.workspaceId !== world.workspaceId) {
    throw invalidRequest('cursor', 'belongs to another request.');
  }
  if (cursorParameters === 'checked' && cursor.parameters !== parametersOf(query)) {
    throw invalidRequest('cursor', 'was issued for other parameters.');
  }
  if (cursorLifeMs !== null && nowMs - cursor.issuedAtMs > cursorLifeMs) throw invalidRequest('cursor', 'has expired.');
  return cursor;
}

/** The cursor after a page that is not the last. */
function createCursor(call: Call, kind: CursorKind, at: { deviceId?: string; position: readonly string[] }): string {
  const { world, settings, nowMs, query } = call;
  const { deviceId = '', position } = at;
  const { workspaceId } = world;
  const parameters = parametersOf(query);
  return signCursor({ kind, workspaceId, deviceId, issuedAtMs: nowMs, parameters, position }, signatureOf(settings));
}

/** The parameters that later pages have to keep (docs/api.md, Pagination). */
function parametersOf(query: URLSearchParams): string {
  return JSON.stringify(TELEMETRY_PARAMETERS.filter((name) => name !== 'cursor').map((name) => query.get(name)));
}

/** The window contains the readings with `fromNs <= recorded_at < toNs`. */
interface TelemetryWindow {
  readonly fromNs: EpochNs;
  readonly toNs: EpochNs;
}

/**
 * Determines the window of a request. @throws Rejection if the bounds cannot be read, are too far apart or are not
 * allowed.
 */
function resolveWindow(query: URLSearchParams, settings: SimSettings, nowMs: EpochMs): TelemetryWindow {
  const { bounds, plan } = settings;
  const afterNs = readBound('after', query, bounds.formats);
  const beforeNs = readBound('before', query, bounds.formats);
  const shape = boundShape(afterNs, beforeNs);
  if (bounds.rejectedShapes.includes(shape)) throw invalidRequest(shape, 'is not a supported combination of bounds.');
  const nowNs = msToNs(nowMs);
  const endNs = beforeNs ?? nowNs;
  const widestNs = plan.historyMaxDays === null ? null : BigInt(plan.historyMaxDays) * DAY_NS;
  const beginNs = afterNs ?? (widestNs === null ? 0n : endNs - widestNs);
  if (beginNs > endNs && bounds.reversed === 'rejected')
    throw invalidRequest('after', 'must not be later than before.');
  if (widestNs !== null && endNs - beginNs > widestNs) throw rangeTooLarge(plan.historyMaxDays);
  const oldestNs = widestNs === null ? 0n : nowNs - widestNs;
  if (bounds.age === 'rejected' && beginNs < oldestNs) throw rangeTooLarge(plan.historyMaxDays);
  const fromNs = afterNs === null ? beginNs : lowest(afterNs, bounds);
  return {
    fromNs: bounds.age === 'empty' ? maxNs(fromNs, oldestNs) : fromNs,
    toNs: beforeNs === null ? nowNs + 1n : beyondHighest(beforeNs, bounds),
  };
}

function boundShape(afterNs: EpochNs | null, beforeNs: EpochNs | null): BoundShape {
  if (afterNs === null) return beforeNs === null ? 'none' : 'before';
  return beforeNs === null ? 'after' : 'both';
}

function rangeTooLarge(days: number | null): Rejection {
  return new Rejection(400, 'range_too_large', `The time range is too wide: the plan allows ${days} days.`);
}

const FORMATS: Record<SimSettings['bounds']['formats'], RegExp> = {
  any: /^/,
  utc: /[Zz]$/,
  'utc-seconds': /^[^.]*Z$/,
};

function readBound(
  name: 'after' | 'before',
  query: URLSearchParams,
  formats: SimSettings['bounds']['formats'],
): EpochNs | null {
  const given = query.get(name);
  if (given === null) return null;
  const parsed = FORMATS[formats].test(given) ? parseTimestamp(given) : null;
  if (parsed === null) throw invalidRequest(name, 'must be an RFC 3339 timestamp.');
  return parsed;
}

/** The earliest time that satisfies `after`. */
function lowest(afterNs: EpochNs, { after, resolution }: SimSettings['bounds']): EpochNs {
  if (resolution === 'exact') return after === 'inclusive' ? afterNs : afterNs + 1n;
  const second = floorToSecond(afterNs);
  return after === 'inclusive' ? second : second + SECOND_NS;
}

/** The earliest time that no longer satisfies `before`. */
function beyondHighest(beforeNs: EpochNs, { before, resolution }: SimSettings['bounds']): EpochNs {
  if (resolution === 'exact') return before === 'exclusive' ? beforeNs : beforeNs + 1n;
  const second = floorToSecond(beforeNs);
  return before === 'exclusive' ? second : second + SECOND_NS;
}

type CursorKind = 'devices' | 'alerts' | 'telemetry';

interface CursorContent {
  readonly kind: CursorKind;
  readonly workspaceId: string;
  /** The device of a telemetry listing; otherwise empty. */
  readonly deviceId: string;
  readonly issuedAtMs: EpochMs;
  /** The other parameters of the request, in a comparable form (docs/api.md, Pagination). */
  readonly parameters: string;
  /** Where the listing continues; each kind has its own form. */
  readonly position: readonly string[];
}

interface CursorSignature {
  readonly secret: string;
  readonly alphabet: 'base64' | 'base64url';
}

const CURSOR_VERSION = 1;
const SIGNATURE_BYTES = 12;

/**
 * Writes a cursor as opaque text: the position of a listing, signed, so that only the service can make one.
 *
 * A position is the identity of the last served record and never its number in the list, so records that appear or
 * disappear between two pages have no effect. A telemetry cursor contains the window of the first page and a position
 * that distinguishes equal instants.
 */
function signCursor(content: CursorContent, { secret, alphabet }: CursorSignature): string {
  const { kind, workspaceId, deviceId, issuedAtMs, parameters, position } = content;
  const payload = Buffer.from(
    JSON.stringify([CURSOR_VERSION, kind, workspaceId, deviceId, issuedAtMs, parameters, ...position]),
  );
  const signature = createHmac('sha256', secret).update(payload).digest().subarray(0, SIGNATURE_BYTES);
  return Buffer.concat([signature, payload]).toString(alphabet);
}

/** Returns the content of the cursor, or `null` if the service did not issue exactly this text. */
export function openCursor(text: string, signature: CursorSignature): CursorContent | null {
  const bytes = Buffer.from(text, signature.alphabet);
  const content = parsePayload(bytes.subarray(SIGNATURE_BYTES).toString());
  // Signing again also detects texts that merely decode to the same bytes.
  return content !== null && signCursor(content, signature) === text ? content : null;
}

function parsePayload(json: string): CursorContent | null {
  const parts = parseJson(json);
  if (!Array.isArray(parts) || parts[0] !== CURSOR_VERSION) return null;
  const [, kind, workspaceId, deviceId, issuedAtMs, parameters, ...position] = parts.map(String);
  if (kind !== 'devices' && kind !== 'alerts' && kind !== 'telemetry') return null;
  if (workspaceId === undefined || deviceId === undefined || parameters === undefined) return null;
  return { kind, workspaceId, deviceId, issuedAtMs: Number(issuedAtMs), parameters, position };
}
