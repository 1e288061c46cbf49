/**
 * What a backfill says at its end: the object that `--backfill --json` prints, and its exit code.
 */

import { type ExitCode, isExitCode } from '../../core/faults.ts';
import { lackStatuses } from '../../core/holdings.ts';
import { isRecord, type JsonRecord } from '../../core/json.ts';
import type { DestinationStatus } from '../../core/status.ts';
import { type EpochNs, formatExact } from '../../core/time.ts';
import type { Deliverer } from '../../delivery/deliver.ts';
import type { SyncContext } from '../../ingest/context.ts';
import type { Backfill } from '../../scheduler/backfill.ts';
import { type BackfilledDevice, type BackfillLook, holeMs, lookAt } from './look.ts';
import type { BackfillCounts } from './notes.ts';

export type BackfillOutcome = 'complete' | 'incomplete for good' | 'stalled' | 'interrupted';

/** A stretch that could not be had. */
export interface MissingStretch {
  readonly device_id: string;
  readonly device_name: string;
  readonly from: string;
  readonly to: string;
  readonly reason: string;
}

/** What `--backfill --json` prints. Times are RFC 3339 UTC, lengths seconds. */
export interface BackfillSummary {
  readonly outcome: BackfillOutcome;
  readonly exit_code: ExitCode;
  readonly workspace_id: string | null;
  /** `null`: all there is. */
  readonly from: string | null;
  readonly to: string;
  readonly devices: number;
  /** Devices of which the whole stretch is held. */
  readonly devices_complete: number;
  /** Devices without a reading in what is held of the stretch. */
  readonly devices_empty: number;
  /** The oldest reading that is held of any of them. */
  readonly oldest_reading: string | null;
  /** What this run brought. */
  readonly requests: number;
  readonly readings: number;
  readonly points: number;
  /** Whether it was to be done by a time, and was not. */
  readonly late: boolean;
  readonly missing_seconds: number;
  /** The device that misses most comes first. */
  readonly missing: readonly MissingStretch[];
  readonly destinations: readonly DestinationStatus[];
}

const EXIT_CODES: Readonly<Record<BackfillOutcome, ExitCode>> = {
  complete: 0,
  stalled: 3,
  interrupted: 3,
  'incomplete for good': 1,
};

export interface Course {
  readonly context: SyncContext;
  readonly deliverers: readonly Deliverer[];
  readonly backfill: Backfill;
  readonly counts: BackfillCounts;
  /** What each destination had been sent before it began. */
  readonly deliveredBefore: readonly number[];
}

/** The summary of the work as it stands. */
export function summarizeBackfill(course: Course, outcome: BackfillOutcome): BackfillSummary {
  const { context, backfill, counts } = course;
  const look = lookAt(context, backfill);
  const { args, to } = backfill;
  const oldest = oldestOf(look);
  return {
    outcome,
    exit_code: EXIT_CODES[outcome],
    workspace_id: context.store.workspaceTag(),
    from: args.from === 'all' ? null : formatExact(BigInt(args.from)),
    to: formatExact(to),
    devices: look.devices.length,
    devices_complete: look.devices.filter(({ openMs }) => openMs === 0).length,
    devices_empty: look.devices.filter(({ hasReadings }) => !hasReadings).length,
    oldest_reading: oldest === null ? null : formatExact(oldest),
    ...counts,
    late: backfill.pace.isLate(context.serverClock.nowMs()),
    missing_seconds: Math.round(look.openMs / 1000),
    missing: missingOf(look),
    destinations: destinationsOf(course),
  };
}

function missingOf({ devices }: BackfillLook): MissingStretch[] {
  const worstFirst = devices.toSorted((a, b) => b.openMs - a.openMs || (a.deviceId < b.deviceId ? -1 : 1));
  return worstFirst.flatMap(({ deviceId, name, holes }) =>
    holes
      .toSorted((a, b) => holeMs(b) - holeMs(a))
      .map(({ from, to, reason }) => ({ device_id: deviceId, device_name: name, from, to, reason })),
  );
}

function oldestOf({ devices }: BackfillLook): EpochNs | null {
  return devices.reduce<EpochNs | null>(
    (oldest, { oldest: own }: BackfilledDevice) => (own !== null && (oldest === null || own < oldest) ? own : oldest),
    null,
  );
}

function destinationsOf({ context: { store }, deliverers, deliveredBefore }: Course): DestinationStatus[] {
  return deliverers.map((deliverer, index) => {
    const { pendingLines, quarantined } = store.backlog(deliverer.destinationId);
    return {
      name: deliverer.name,
      delivered_points: deliverer.deliveredLines() - (deliveredBefore[index] ?? 0),
      pending_points: pendingLines,
      quarantined,
      lacks: lackStatuses(store.missingSums(deliverer.destinationId)),
      held: deliverer.held(),
    };
  });
}

const COUNTS = ['devices', 'devices_complete', 'devices_empty', 'requests', 'readings', 'points', 'missing_seconds'];

/** A summary that a daemon, maybe of another version, has left. @returns `null` where it is none. */
export function readBackfillSummary(value: unknown): BackfillSummary | null {
  if (!isRecord(value)) return null;
  const { outcome, exit_code, from, to, oldest_reading, late, missing, destinations } = value;
  const fits =
    typeof outcome === 'string' &&
    Object.hasOwn(EXIT_CODES, outcome) &&
    isExitCode(exit_code) &&
    [from, oldest_reading].every((text) => text === null || typeof text === 'string') &&
    typeof to === 'string' &&
    typeof late === 'boolean' &&
    COUNTS.every((name) => typeof value[name] === 'number') &&
    areRecords(missing, ['device_id', 'device_name', 'from', 'to', 'reason']) &&
    areRecords(destinations, ['name']) &&
    destinations.every(
      ({ pending_points, delivered_points, quarantined, lacks }) =>
        [pending_points, delivered_points, quarantined].every((count) => typeof count === 'number') &&
        areRecords(lacks, ['reason']),
    );
  return fits ? (value as unknown as BackfillSummary) : null;
}

function areRecords(value: unknown, texts: readonly string[]): value is readonly JsonRecord[] {
  return (
    Array.isArray(value) &&
    value.every((each) => isRecord(each) && texts.every((text) => typeof each[text] === 'string'))
  );
}
