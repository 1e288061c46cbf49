/**
 * The devices whose alerts were left out: kept as a fact, so that their alerts are read anew, resolved ones too, when
 * one of them is included again.
 */

import type { SyncContext } from './context.ts';
import { exclusionNow } from './kept-devices.ts';

type Parts = Pick<SyncContext, 'store' | 'settings'>;

/** The fact that holds their ids, as a JSON list. */
const LEFT_OUT = 'alerts_left_out';

/** Notes devices of which an alert is about to be left out. Said before the alert is kept: one too many does no harm. */
export function noteLeftOut(parts: Parts, deviceIds: readonly string[]): void {
  const before = leftOut(parts);
  if (deviceIds.every((deviceId) => before.has(deviceId))) return;
  keepLeftOut(parts, new Set([...before, ...deviceIds]));
}

/** Those that are not excluded any more. */
export function includedAgain(parts: Parts): readonly string[] {
  const before = leftOut(parts);
  if (before.size === 0) return [];
  const isExcluded = exclusionNow(parts);
  return [...before].filter((deviceId) => !isExcluded(deviceId));
}

/** Says that the alerts of these devices were read anew, to the end of the listing. */
export function readAnew(parts: Parts, deviceIds: readonly string[]): void {
  if (deviceIds.length === 0) return;
  const left = leftOut(parts);
  for (const deviceId of deviceIds) left.delete(deviceId);
  keepLeftOut(parts, left);
}

function leftOut({ store }: Parts): Set<string> {
  const ids: readonly string[] = JSON.parse(store.fact(LEFT_OUT) ?? '[]');
  return new Set(ids);
}

function keepLeftOut({ store }: Parts, deviceIds: ReadonlySet<string>): void {
  store.keepFact(LEFT_OUT, JSON.stringify([...deviceIds]));
}
