/**
 * Pagination (API document, "Pagination"): `limit`, `cursor` and the other parameters of a request.
 */
import type { EpochMs } from '../core/time.ts';
import { type CursorContent, type CursorKind, type CursorSeal, openCursor, sealCursor } from './cursor.ts';
import { invalidRequest } from './refusal.ts';
import type { SimSettings } from './settings.ts';
import type { SimReading } from './spec.ts';
import type { World } from './world.ts';

/** A request that has passed everything but its endpoint. */
export interface Call {
  readonly world: World;
  readonly settings: SimSettings;
  /** By which what there is is told. */
  readonly nowMs: EpochMs;
  /** What the server's clock shows. */
  readonly clockMs: EpochMs;
  readonly query: URLSearchParams;
  readonly isVisible: (deviceId: string, reading: SimReading) => boolean;
}

const PAGE_PARAMETERS = ['limit', 'cursor'];
const TELEMETRY_PARAMETERS = [...PAGE_PARAMETERS, 'after', 'before'];

/** `limit` and `cursor` of a paged endpoint (API document, "Pagination"). */
export function readPaging(
  call: Call,
  kind: CursorKind,
  deviceId = '',
): { limit: number; cursor: CursorContent | null } {
  checkParameters(call, kind === 'telemetry' ? TELEMETRY_PARAMETERS : PAGE_PARAMETERS);
  return { limit: readLimit(call), cursor: readCursor(call, kind, deviceId) };
}

/** Refuses what is given twice and, where the settings ask for it, what is not known. */
export function checkParameters({ query, settings }: Call, known: readonly string[]): void {
  for (const name of new Set(query.keys())) {
    if (!known.includes(name)) {
      if (settings.paging.unknownParameters === 'refused')
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

function sealOf({ paging }: SimSettings): CursorSeal {
  return { secret: paging.cursorSecret, alphabet: paging.cursorAlphabet };
}

/** Pagination 3: whatever the service did not issue, or not for this request, is refused. */
function readCursor({ query, settings, world, nowMs }: Call, kind: CursorKind, deviceId: string): CursorContent | null {
  const given = query.get('cursor');
  if (given === null) return null;
  const cursor = openCursor(given, sealOf(settings));
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

/** The cursor behind a page that is not the last. */
export function nextOf(call: Call, kind: CursorKind, at: { deviceId?: string; position: readonly string[] }): string {
  const { world, settings, nowMs, query } = call;
  const { deviceId = '', position } = at;
  const { workspaceId } = world;
  const parameters = parametersOf(query);
  return sealCursor({ kind, workspaceId, deviceId, issuedAtMs: nowMs, parameters, position }, sealOf(settings));
}

/** All that Pagination 4 wants kept the same. */
function parametersOf(query: URLSearchParams): string {
  return JSON.stringify(TELEMETRY_PARAMETERS.filter((name) => name !== 'cursor').map((name) => query.get(name)));
}
