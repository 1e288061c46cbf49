/**
 * Readings that an answer had to show and that an empty one lacked: how long that is not believed.
 *
 * A page with readings that lacks its anchor again and again shows that the reading is gone. An empty page shows no more
 * than that nothing came: a service whose storage fails answers so, for hours maybe, and of every device. So it is
 * believed only where a day has passed since it was first seen and no answer has shown the reading meanwhile.
 */
import type { Edge } from '../core/coverage.ts';
import type { Reading } from '../core/records.ts';
import { DAY_MS, type EpochNs } from '../core/time.ts';
import type { SyncContext } from './context.ts';

/** How long empty answers may lack a held reading before it is taken as gone: longer than a service fails. */
export const EMPTY_PATIENCE_MS = DAY_MS;

/** An anchor, where answers still have to show it. */
export function unlessGone({ store }: SyncContext, deviceId: string, edge: Edge | null): Edge | null {
  const isGone = store.missedOverlaps(deviceId).some(({ at, isGone }) => isGone && at === edge?.at);
  return isGone ? null : edge;
}

/** Whether an empty answer about a device proves nothing for now: such answers have lacked what it must show. */
export function isEmptyInDoubt({ store, serverClock }: SyncContext, deviceId: string): boolean {
  const missed = store.missedOverlaps(deviceId);
  if (missed.length === 0) return false;
  const nowMs = serverClock.nowMs();
  return missed.some(({ isGone, sinceMs }) => !isGone && nowMs - sinceMs < EMPTY_PATIENCE_MS);
}

/** Takes in the readings of a page: what it shows is not missing any more. */
export function noteShown({ store }: SyncContext, deviceId: string, readings: readonly Reading[]): void {
  const missed = store.missedOverlaps(deviceId);
  if (missed.length === 0) return;
  const shown = missed.map(({ at }) => at).filter((at) => readings.some(({ recordedAt }) => recordedAt === at));
  if (shown.length > 0) store.dropMissedOverlaps(deviceId, shown);
}

/** Whether empty answers have lacked this reading before, and not for long enough to be believed. */
export function isAwaited({ store, serverClock }: SyncContext, deviceId: string, at: EpochNs): boolean {
  const missed = store.missedOverlaps(deviceId).find((each) => each.at === at);
  return missed !== undefined && serverClock.nowMs() - missed.sinceMs < EMPTY_PATIENCE_MS;
}

/** Takes in that empty answers lack a reading. @returns whether it is gone, as far as can be told. */
export function missAnchor({ store, serverClock }: SyncContext, deviceId: string, at: EpochNs): boolean {
  const nowMs = serverClock.nowMs();
  const missed = store.missedOverlaps(deviceId).find((each) => each.at === at);
  const sinceMs = missed?.sinceMs ?? nowMs;
  const isGone = nowMs - sinceMs >= EMPTY_PATIENCE_MS;
  if (missed === undefined || missed.isGone !== isGone) {
    store.keepMissedOverlap(deviceId, { at, sinceMs, isGone });
  }
  return isGone;
}

/** Takes in that answers with readings lack one that empty ones have lacked before: nobody waits for it any more. */
export function takeAsGone({ store }: SyncContext, deviceId: string, at: EpochNs): void {
  const missed = store.missedOverlaps(deviceId).find((each) => each.at === at);
  if (missed?.isGone === false) store.keepMissedOverlap(deviceId, { ...missed, isGone: true });
}
