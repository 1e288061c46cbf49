/**
 * Parses quarantined records of the API again with this version. A reading that can be parsed now is committed like any
 * other, and leaves the quarantine.
 *
 * This sends no request. A record that was shortened cannot be retried. Devices and alerts come with every listing, so
 * nothing of them has to be committed.
 */

import type { Reading } from '../core/records.ts';
import type { QuarantinedItem } from '../core/state/quarantine.ts';
import { ForgottenError, StaleStateError } from '../core/state/telemetry.ts';
import { storedAround } from './commit.ts';
import { composeCommit } from './commit-rules.ts';
import type { SyncContext } from './context.ts';

/**
 * What a record is to this version: a reading, something that every listing brings, or the reason why it is neither.
 */
export type Reparsed =
  | { readonly kind: 'reading'; readonly reading: Reading }
  | { readonly kind: 'listed' }
  | { readonly kind: 'not-understood'; readonly why: string };

/** Reads a record as it is kept. Never throws. */
export type Reparse = (source: string, record: string) => Reparsed;

type Parts = Pick<SyncContext, 'store' | 'settings' | 'filterNotes' | 'serverClock'>;

/**
 * Tries a record.
 *
 * @returns `null` where it is in place now, else why not.
 */
export type RetryRecord = (item: QuarantinedItem) => string | null;

/** Tries records one by one, with the devices as they are now. */
export function createRecordRetry(parts: Parts, reparse: Reparse): RetryRecord {
  const { store, settings } = parts;
  let devices: ReadonlyMap<string, boolean> | null = null;
  return (item) => {
    const parsed = reparse(item.source, item.content);
    if (parsed.kind === 'not-understood') return parsed.why;
    if (parsed.kind === 'reading') {
      devices ??= new Map(store.devices().map(({ record }) => [record.deviceId, settings.filter.excludes(record)]));
      const why = retryReading(parts, parsed.reading, { deviceId: item.source, isExcluded: devices.get(item.source) });
      if (why !== null) return why;
    }
    store.quarantine.takeOut([item.id]);
    return null;
  };
}

function retryReading(
  parts: Parts,
  reading: Reading,
  { deviceId, isExcluded }: { readonly deviceId: string; readonly isExcluded: boolean | undefined },
): string | null {
  if (isExcluded === undefined) return 'its device is not known';
  if (isExcluded) return 'its device is excluded by sync.include or sync.exclude';
  if (reading.recordedAt > parts.serverClock.latestNs()) return 'its time is more than a day later than every clock';
  parts.filterNotes.sensorsRead([reading]);
  return commit(parts, deviceId, reading);
}

function commit(
  { store, settings, filterNotes, serverClock }: Parts,
  deviceId: string,
  reading: Reading,
): string | null {
  const workspaceId = store.workspaceTag();
  if (workspaceId === null) return 'its workspace is not known';
  const state = store.telemetry(deviceId);
  const composed = composeCommit({
    // It is not late: it came in time, and was not understood. So nothing is covered by it, and nothing withdrawn.
    state: { ...state, covered: [] },
    workspaceId,
    lane: 'history',
    requestId: 0,
    answeredAtMs: serverClock.nowMs(),
    readings: [reading],
    rejected: [],
    stored: storedAround(store, deviceId, [reading]),
    covers: null,
    gracePeriodMs: settings.gracePeriodMs,
    filter: filterNotes.touchesSensors ? settings.filter : undefined,
    storedAt: ({ from, to }) => store.stored(deviceId, from, to),
  });
  if (composed.rejected.length > 0) return `still: ${composed.rejected[0]?.reason ?? ''}`;
  try {
    store.commitPage({ ...composed, covered: state.covered });
    return null;
  } catch (error) {
    if (error instanceof StaleStateError) return 'its device was being read at that moment: try again';
    if (error instanceof ForgottenError) return 'its device was forgotten';
    throw error;
  }
}
