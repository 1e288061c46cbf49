/**
 * What `--once` says at its end: the summary that `--json` prints, and its exit code.
 */

import { type ExitCode, isExitCode } from '../../core/faults.ts';
import { lackStatuses } from '../../core/holdings.ts';
import { isRecord, type JsonRecord } from '../../core/json.ts';
import type { DestinationStatus } from '../../core/status.ts';
import type { Deliverer } from '../../delivery/deliver.ts';
import type { SyncContext } from '../../ingest/context.ts';
import { horizonNow } from '../../ingest/horizon.ts';
import { allGaps, type DeviceGap, type Ending } from './pull.ts';

/** What `--once --json` prints. */
export interface OnceSummary {
  readonly outcome: Ending['outcome'];
  readonly exit_code: ExitCode;
  readonly workspace_id: string | null;
  readonly devices: number;
  readonly points_archived: number;
  readonly gaps: readonly DeviceGap[];
  readonly streams_off: readonly string[];
  readonly rejected_records: number;
  readonly destinations: readonly DestinationStatus[];
}

const EXIT_CODES: Readonly<Record<Ending['outcome'], ExitCode>> = {
  complete: 0,
  stalled: 3,
  interrupted: 3,
  'incomplete for good': 1,
};

/** The summary of the work as it stands. */
export function summarize(
  { context, deliverers }: { context: SyncContext; deliverers: readonly Deliverer[] },
  { outcome, horizon, off }: Ending,
): OnceSummary {
  const { store } = context;
  const totals = store.totals();
  // Where no pass has come to its end, what is open counts from here.
  const gaps = allGaps(context, horizon ?? horizonNow(context));
  return {
    outcome,
    exit_code: EXIT_CODES[outcome],
    workspace_id: store.workspaceTag(),
    devices: store.devices().length,
    points_archived: totals.points,
    gaps,
    streams_off: off,
    rejected_records: totals.rejectedRecords,
    destinations: deliverers.map((deliverer) => {
      const { pendingLines, quarantined } = store.backlog(deliverer.destinationId);
      return {
        name: deliverer.name,
        delivered_points: deliverer.deliveredLines(),
        pending_points: pendingLines,
        quarantined,
        lacks: lackStatuses(store.missingSums(deliverer.destinationId)),
        held: deliverer.held(),
      };
    }),
  };
}

/** A summary that a daemon, maybe of another version, has left. @returns `null` where it is none. */
export function readOnceSummary(value: unknown): OnceSummary | null {
  if (!isRecord(value)) return null;
  const { outcome, exit_code, workspace_id, gaps, streams_off, destinations } = value;
  const fits =
    typeof outcome === 'string' &&
    Object.hasOwn(EXIT_CODES, outcome) &&
    isExitCode(exit_code) &&
    (workspace_id === null || typeof workspace_id === 'string') &&
    ['devices', 'points_archived', 'rejected_records'].every((name) => typeof value[name] === 'number') &&
    areRecords(gaps, ['device_id', 'from', 'to', 'reason']) &&
    Array.isArray(streams_off) &&
    areRecords(destinations, ['name']) &&
    destinations.every(
      ({ pending_points, quarantined, lacks }) =>
        isCount(pending_points) && isCount(quarantined) && areRecords(lacks, ['reason']),
    );
  return fits ? (value as unknown as OnceSummary) : null;
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && value >= 0;
}

/** Whether they are records with these texts. */
function areRecords(value: unknown, texts: readonly string[]): value is readonly JsonRecord[] {
  return (
    Array.isArray(value) &&
    value.every((each) => isRecord(each) && texts.every((text) => typeof each[text] === 'string'))
  );
}
