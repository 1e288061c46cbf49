/**
 * How far a backfill is, from the state: of each of its devices what is held, what is open and why.
 */

import { holdingsOf, wantedOf } from '../../core/holdings.ts';
import type { StatusGap } from '../../core/status.ts';
import { type EpochNs, nsToMs, parseTimestamp } from '../../core/time.ts';
import type { SyncContext } from '../../ingest/context.ts';
import { type Backfill, hasReadings, oldestReading } from '../../scheduler/backfill.ts';

/** A device as far as the backfill is. */
export interface BackfilledDevice {
  readonly deviceId: string;
  readonly name: string;
  readonly wholeMs: number;
  readonly openMs: number;
  readonly holes: readonly StatusGap[];
  /** Whether what is held of the stretch has readings in it. */
  readonly hasReadings: boolean;
  /** The oldest reading that is held at all. */
  readonly oldest: EpochNs | null;
}

export interface BackfillLook {
  readonly devices: readonly BackfilledDevice[];
  readonly wholeMs: number;
  readonly openMs: number;
  /** Reasons of holes that more work could close. */
  readonly openFor: ReadonlySet<string>;
}

/** Holes that no work closes, by their reason: named at the end, not waited for. */
export const CLOSED_BY_NONE: ReadonlySet<string> = new Set(['device gone', 'excluded']);

/** Looks at every device of it. */
export function lookAt({ store, settings }: SyncContext, backfill: Backfill): BackfillLook {
  const known = new Map(store.devices().map((device) => [device.record.deviceId, device]));
  const devices = backfill.deviceIds.flatMap((deviceId): BackfilledDevice[] => {
    const device = known.get(deviceId);
    if (device === undefined) return [];
    const { spans } = store.telemetry(deviceId);
    const wanted = wantedOf(device, backfill.wanted(deviceId));
    const isExcluded = settings.filter.excludes(device.record);
    const { holes } = holdingsOf({ ...device, isExcluded }, { spans, gaps: store.gaps(deviceId) }, wanted);
    return [
      {
        deviceId,
        name: device.name,
        wholeMs: Math.max(0, nsToMs(wanted.to - wanted.from)),
        openMs: holes.reduce((sum, hole) => sum + gapMs(hole), 0),
        holes,
        hasReadings: hasReadings(spans, wanted),
        oldest: oldestReading(spans),
      },
    ];
  });
  const reasons = devices.flatMap(({ holes }) => holes.map(({ reason }) => reason));
  return {
    devices,
    wholeMs: devices.reduce((sum, { wholeMs }) => sum + wholeMs, 0),
    openMs: devices.reduce((sum, { openMs }) => sum + openMs, 0),
    openFor: new Set(reasons.filter((reason) => !CLOSED_BY_NONE.has(reason))),
  };
}

/** How long a hole is. */
export function gapMs({ from, to }: Pick<StatusGap, 'from' | 'to'>): number {
  return nsToMs((parseTimestamp(to) ?? 0n) - (parseTimestamp(from) ?? 0n));
}
