/**
 * Records of the API as the quarantine keeps them, read as this version would.
 */
import { parseAlertPage, parseDevicePage, parseTelemetryPage } from '../../api/parse.ts';
import type { JsonValue } from '../../core/records.ts';
import type { Reparse, Reparsed } from '../../ingest/retry-records.ts';

/** Reads a record of the quarantine as this version would. */
export const reparse: Reparse = (source, record): Reparsed => {
  const value = jsonOf(record);
  if (value === undefined) return notUnderstood('it is too long to be kept in full: its time has to be read again');
  const body = { data: [value] };
  if (source === 'devices' || source === 'alerts') {
    const { rejected } = (source === 'devices' ? parseDevicePage : parseAlertPage)(body, 'the quarantine');
    const [first] = rejected;
    return first === undefined ? { kind: 'listed' } : notUnderstood(`still not understood: ${first.reason}`);
  }
  const page = parseTelemetryPage({ data: [withPairs(value)] }, 'the quarantine');
  const [reading] = page.readings;
  if (reading === undefined) return notUnderstood(`still not understood: ${page.rejected[0]?.reason ?? ''}`);
  const pairs = pairsOf(value);
  return { kind: 'reading', reading: pairs === null ? reading : { ...reading, values: pairs } };
};

function notUnderstood(why: string): Reparsed {
  return { kind: 'not-understood', why };
}

function jsonOf(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Readings of which single values were set aside are kept with their values as pairs. */
function pairsOf(value: JsonValue): [string, JsonValue][] | null {
  if (typeof value !== 'object' || value === null || !('values' in value)) return null;
  const { values } = value;
  return Array.isArray(values) && values.every(isPair) ? values : null;
}

function isPair(value: unknown): value is [string, JsonValue] {
  return Array.isArray(value) && value.length === 2 && typeof value[0] === 'string';
}

function withPairs(value: JsonValue): JsonValue {
  return pairsOf(value) === null ? value : { ...(value as { readonly [key: string]: JsonValue }), values: {} };
}
