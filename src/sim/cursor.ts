/**
 * Cursors: what a listing needs to go on, signed, so that only the service can make one.
 *
 * A position is the last record that was served, by its identity and never by its number in the list: what appears or
 * vanishes between two pages moves nothing. A telemetry cursor carries the window of the first page (Telemetry window
 * 5) and a position that tells equal instants apart.
 */
import { createHmac } from 'node:crypto';
import type { EpochMs } from '../core/time.ts';

export type CursorKind = 'devices' | 'alerts' | 'telemetry';

export interface CursorContent {
  readonly kind: CursorKind;
  readonly workspaceId: string;
  /** The device of a telemetry listing, otherwise empty. */
  readonly deviceId: string;
  readonly issuedAtMs: EpochMs;
  /** The other parameters of the request, in a form that can be compared (Pagination 4). */
  readonly parameters: string;
  /** Where the listing goes on; each kind has its own form. */
  readonly position: readonly string[];
}

export interface CursorSeal {
  readonly secret: string;
  readonly alphabet: 'base64' | 'base64url';
}

const VERSION = 1;
const SIGNATURE_BYTES = 12;

/** Writes a cursor as opaque text. */
export function sealCursor(content: CursorContent, { secret, alphabet }: CursorSeal): string {
  const { kind, workspaceId, deviceId, issuedAtMs, parameters, position } = content;
  const payload = Buffer.from(
    JSON.stringify([VERSION, kind, workspaceId, deviceId, issuedAtMs, parameters, ...position]),
  );
  const signature = createHmac('sha256', secret).update(payload).digest().subarray(0, SIGNATURE_BYTES);
  return Buffer.concat([signature, payload]).toString(alphabet);
}

/** @returns what the cursor says, or `null` where the service did not issue exactly this text. */
export function openCursor(text: string, seal: CursorSeal): CursorContent | null {
  const bytes = Buffer.from(text, seal.alphabet);
  const content = parsePayload(bytes.subarray(SIGNATURE_BYTES).toString());
  // Sealing again also catches texts that merely decode to the same bytes.
  return content !== null && sealCursor(content, seal) === text ? content : null;
}

function parsePayload(json: string): CursorContent | null {
  let parts: unknown;
  try {
    parts = JSON.parse(json);
  } catch {
    return null;
  }
  if (!Array.isArray(parts) || parts[0] !== VERSION) return null;
  const [, kind, workspaceId, deviceId, issuedAtMs, parameters, ...position] = parts.map(String);
  if (kind !== 'devices' && kind !== 'alerts' && kind !== 'telemetry') return null;
  if (workspaceId === undefined || deviceId === undefined || parameters === undefined) return null;
  return { kind, workspaceId, deviceId, issuedAtMs: Number(issuedAtMs), parameters, position };
}
