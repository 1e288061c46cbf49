/**
 * The six endpoints: which path is which, what scope each needs, and the page that answers it.
 */
import type { CursorContent } from './cursor.ts';
import type { SimPage } from './faults.ts';
import { type Call, checkParameters, nextOf, readPaging } from './paging.ts';
import { accountText, alertText, type Dress, deviceText, readingText } from './records.ts';
import { notFound } from './refusal.ts';
import type { ApiScope } from './scopes.ts';
import type { SimReading } from './spec.ts';
import { resolveWindow } from './window.ts';

export type Endpoint =
  | { readonly kind: 'devices' | 'alerts' | 'account'; readonly scope: ApiScope }
  | { readonly kind: 'device' | 'alert' | 'telemetry'; readonly scope: ApiScope; readonly id: string };

/** @param path below the base URL. @returns `null` where there is no such endpoint. */
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

/** Answers an endpoint. @throws Refusal */
export function answerEndpoint(endpoint: Endpoint, call: Call): SimPage {
  const how: Dress = { seed: call.world.seed, surprises: call.settings.surprises };
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

function listDevices(call: Call, how: Dress): SimPage {
  const { world, nowMs } = call;
  const { limit, cursor } = readPaging(call, 'devices');
  const after = cursor?.position[0];
  const ids = world.deviceIds(nowMs).filter((id) => after === undefined || id > after);
  const shown = ids.slice(0, limit);
  const records = shown.flatMap((id) => {
    const device = world.device(id, nowMs);
    return device === null ? [] : [deviceText(device, how)];
  });
  const nextCursor = ids.length > limit ? nextOf(call, 'devices', { position: [shown.at(-1) ?? ''] }) : null;
  return { kind: 'devices', deviceId: null, records, nextCursor };
}

function oneDevice(id: string, call: Call, how: Dress): SimPage {
  checkParameters(call, []);
  const device = call.world.device(id, call.nowMs);
  if (device === null) throw notFound(call.settings);
  return { kind: 'device', deviceId: id, records: [deviceText(device, how)], nextCursor: null };
}

function listAlerts(call: Call, how: Dress): SimPage {
  const { limit, cursor } = readPaging(call, 'alerts');
  const behind =
    cursor === null ? null : { openedAtMs: Number(cursor.position[0]), alertId: Number(cursor.position[1]) };
  const records: string[] = [];
  let position: string[] = [];
  for (const alert of call.world.alertsBehind(call.nowMs, behind)) {
    if (records.length === limit) {
      return { kind: 'alerts', deviceId: null, records, nextCursor: nextOf(call, 'alerts', { position }) };
    }
    records.push(alertText(alert, how));
    position = [String(alert.openedAtMs), String(alert.alertId)];
  }
  return { kind: 'alerts', deviceId: null, records, nextCursor: null };
}

function oneAlert(id: string, call: Call, how: Dress): SimPage {
  checkParameters(call, []);
  if (!/^\d{1,15}$/.test(id)) throw notFound(call.settings);
  for (const alert of call.world.alertsBehind(call.nowMs, null)) {
    if (String(alert.alertId) === id) {
      return { kind: 'alert', deviceId: null, records: [alertText(alert, how)], nextCursor: null };
    }
  }
  throw notFound(call.settings);
}

function listTelemetry(deviceId: string, call: Call, how: Dress): SimPage {
  const { world, settings, nowMs, clockMs, query, isVisible } = call;
  if (!world.has(deviceId, nowMs)) throw notFound(settings);
  const { limit, cursor } = readPaging(call, 'telemetry', deviceId);
  const window = cursor === null ? resolveWindow(query, settings, clockMs) : windowOf(cursor);
  const belowPosition = cursor === null ? Infinity : Number(cursor.position[2]);
  const records: string[] = [];
  const border = createBorder(settings.paging.cursorTies, belowPosition);
  for (const reading of world.readingsDescending(deviceId, { ...window, belowPosition, receivedByMs: nowMs })) {
    if (!isVisible(deviceId, reading)) continue;
    if (records.length === limit) {
      if (border.swallows(reading)) continue;
      const position = [String(window.fromNs), String(window.toNs), String(border.position())];
      return { kind: 'telemetry', deviceId, records, nextCursor: nextOf(call, 'telemetry', { deviceId, position }) };
    }
    records.push(readingText(reading, how));
    border.pass(reading);
  }
  return { kind: 'telemetry', deviceId, records, nextCursor: null };
}

/** Where the next page goes on, by what cursors do with readings of one instant on both sides of a page's end. */
function createBorder(ties: Call['settings']['paging']['cursorTies'], belowPosition: number) {
  let last: { readonly at: bigint; readonly position: number } | null = null;
  /** Before the first reading of the last one's instant; `null` where that instant fills the page. */
  let aboveTie: number | null = null;
  return {
    pass: ({ recordedAtNs: at, position }: SimReading): void => {
      if (last !== null && last.at !== at) aboveTie = last.position;
      last = { at, position };
    },
    /** Whether the reading behind the page is left out. */
    swallows: ({ recordedAtNs: at, position }: SimReading): boolean => {
      if (ties !== 'skips' || last?.at !== at) return false;
      last = { at, position };
      return true;
    },
    position: (): number => {
      if (last === null) return belowPosition;
      if (ties === 'repeats' && aboveTie !== null) return aboveTie;
      return last.position;
    },
  };
}

function windowOf({ position }: CursorContent): { fromNs: bigint; toNs: bigint } {
  return { fromNs: BigInt(position[0] ?? 0), toNs: BigInt(position[1] ?? 0) };
}

function account(call: Call, how: Dress): SimPage {
  checkParameters(call, []);
  const { world, settings, nowMs } = call;
  let openAlerts = 0;
  for (const { status } of world.alertsBehind(nowMs, null)) if (status !== 'resolved') openAlerts += 1;
  const { workspaceId, name } = world;
  const facts = { workspaceId, name, plan: settings.plan, devices: world.deviceIds(nowMs).length, openAlerts };
  return { kind: 'account', deviceId: null, records: [accountText(facts, how)], nextCursor: null };
}
