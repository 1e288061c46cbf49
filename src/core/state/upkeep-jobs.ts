/**
 * The arguments of upkeep jobs (`core/state/jobs.ts`) as they stand in the state: plain JSON, written by one process and read by
 * another one, maybe of another version. Pure.
 */
import type { QuarantineFilter } from '../quarantine.ts';

/** A filter as JSON: nanoseconds are digits. */
export interface FilterArgs extends Omit<QuarantineFilter, 'from' | 'to'> {
  readonly from: string | null;
  readonly to: string | null;
}

export function filterArgs({
  destination,
  devices,
  reason,
  from,
  to,
}: QuarantineFilter): FilterArgs & Record<string, unknown> {
  return { destination, devices, reason, from: from?.toString() ?? null, to: to?.toString() ?? null };
}

/** @param args of which `isQuarantineFilter` holds. */
export function filterOf(args: unknown): QuarantineFilter {
  const { from, to, ...rest } = args as FilterArgs;
  return { ...rest, from: from === null ? null : BigInt(from), to: to === null ? null : BigInt(to) };
}

export function isQuarantineFilter(value: unknown): boolean {
  if (!hasExactly(value, ['destination', 'devices', 'reason', 'from', 'to'])) return false;
  const { destination, devices, reason, from, to } = value;
  return (
    [destination, reason].every(isTextOrNull) &&
    [from, to].every((each) => each === null || (typeof each === 'string' && /^-?\d{1,19}$/.test(each))) &&
    Array.isArray(devices) &&
    devices.every((each) => typeof each === 'string')
  );
}

/** @param args of which `isForgetOrder` holds. */
export function deviceOfOrder(args: unknown): string {
  return (args as { readonly device: string }).device;
}

export function isForgetOrder(value: unknown): boolean {
  return hasExactly(value, ['device']) && typeof value['device'] === 'string';
}

function isTextOrNull(value: unknown): boolean {
  return value === null || typeof value === 'string';
}

/** What has further members asks for more than is understood. */
function hasExactly(value: unknown, names: readonly string[]): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const keys = Object.keys(value);
  return keys.length === names.length && names.every((name) => Object.hasOwn(value, name));
}
