/**
 * The result of `--once`: the remaining gaps, the summary that `--json` prints, its exit code, and the last log lines.
 */

import { CLOSED_BY_NONE, determineCoverage, gapText, missingText, wantedPart } from '../../core/device-coverage.ts';
import { type ExitCode, isExitCode } from '../../core/faults.ts';
import { areRecords, isRecord } from '../../core/json.ts';
import type { DestinationStatus, ProgressReport, StatusGap, StatusReport } from '../../core/status.ts';
import { counted, progressEta } from '../../core/text.ts';
import { parseTimestamp } from '../../core/time.ts';
import type { Deliverer } from '../../delivery/deliver.ts';
import type { SyncContext, WantedRange } from '../../ingest/context.ts';
import { limitFor } from '../../ingest/coverage-rules.ts';
import { coverableNow, stillWantedFrom, wantedNow } from '../../ingest/wanted-range.ts';
import type { Logger } from '../../observe/log.ts';
import { destinationStatuses, isOutcome, OUTCOME_EXIT_CODES, type Outcome } from '../shared/alone.ts';

/** The JSON of `--once --json`. */
export interface OnceSummary {
  readonly outcome: Outcome;
  readonly exit_code: ExitCode;
  readonly workspace_id: string | null;
  readonly devices: number;
  readonly points_archived: number;
  readonly gaps: readonly DeviceGap[];
  readonly streams_off: readonly string[];
  readonly rejected_records: number;
  readonly destinations: readonly DestinationStatus[];
}

/** The outcome of a run, with the facts that its summary needs. */
export interface OnceEnding {
  readonly outcome: Outcome;
  /** Streams for which the key has no scope. */
  readonly off: readonly string[];
  /** The wanted range; `null` if it was never known. */
  readonly wantedRange: WantedRange | null;
}

/** Returns the summary of the work at this moment. */
export function summarize(
  { context, deliverers }: { context: SyncContext; deliverers: readonly Deliverer[] },
  { outcome, wantedRange, off }: OnceEnding,
): OnceSummary {
  const { store } = context;
  const totals = store.totals();
  // If the run has not started, the current gaps count.
  const gaps = allGaps(context, wantedRange ?? wantedNow(context));
  return {
    outcome,
    exit_code: OUTCOME_EXIT_CODES[outcome],
    workspace_id: store.workspaceTag(),
    devices: store.devices().length,
    points_archived: totals.points,
    gaps,
    streams_off: off,
    rejected_records: totals.rejectedRecords,
    destinations: destinationStatuses(store, deliverers, [], outcome),
  };
}

/**
 * Checks a summary that a daemon, possibly of another version, has left.
 *
 * @returns `null` if it is not valid.
 */
export function readOnceSummary(value: unknown): OnceSummary | null {
  if (!isRecord(value)) return null;
  const { outcome, exit_code, workspace_id, gaps, streams_off, destinations } = value;
  const fits =
    isOutcome(outcome) &&
    isExitCode(exit_code) &&
    (workspace_id === null || typeof workspace_id === 'string') &&
    ['devices', 'points_archived', 'rejected_records'].every((name) => typeof value[name] === 'number') &&
    areRecords(gaps, ['device_id', 'from', 'to', 'reason']) &&
    Array.isArray(streams_off) &&
    areRecords(destinations, ['name']) &&
    destinations.every(
      ({ pending_points, quarantined, missing }) =>
        isCount(pending_points) && isCount(quarantined) && areRecords(missing, ['reason']),
    );
  return fits ? (value as unknown as OnceSummary) : null;
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && value >= 0;
}

const GAPS_LISTED = 20;

/** Logs the result: the totals first, then the problems and gaps. */
export function reportEnd(summary: OnceSummary, { write }: Logger): void {
  const { outcome, exit_code, devices, points_archived, gaps, streams_off, rejected_records } = summary;
  const quarantined = summary.destinations.reduce((sum, { quarantined }) => sum + quarantined, rejected_records);
  const missed = gaps.filter(({ reason }) => reason !== 'excluded');
  write({
    type: 'run-ended',
    outcome,
    exitCode: exit_code,
    isAllRead: streams_off.length === 0,
    // An excluded device has one gap, for all of its time.
    devices: devices - (gaps.length - missed.length),
    points: points_archived,
    gaps: missed.length,
  });
  const reportMissing = (message: string): void => write({ type: 'run-incomplete', message, isWanted: false });
  if (quarantined > 0)
    reportMissing(
      `${counted(quarantined, 'record or point is', 'records or points are')} in quarantine, each with its reason`,
    );
  for (const { name, pending_points, blocked_reason } of summary.destinations) {
    if (pending_points === 0) continue;
    reportMissing(
      `${counted(pending_points, 'point')} ${pending_points === 1 ? 'waits' : 'wait'} in the archive for ${name}: ${blocked_reason ?? 'not delivered yet'}; run the command again`,
    );
  }
  for (const destination of summary.destinations) {
    for (const range of destination.missing) reportMissing(missingText(destination.name, range));
  }
  if (streams_off.length > 0) reportMissing(`not read, because the key lacks the scope: ${streams_off.join(', ')}`);
  const leftOut = gaps.length - missed.length;
  if (leftOut > 0) {
    const message = `sync.include and sync.exclude leave out ${counted(leftOut, 'device')}`;
    write({ type: 'run-incomplete', message, isWanted: true });
  }
  for (const { device_id, from, to, reason } of missed.slice(0, GAPS_LISTED)) {
    reportMissing(`gap: ${device_id} from ${from} to ${to}: ${gapText(reason).why}`);
  }
  if (missed.length > GAPS_LISTED) reportMissing(`and ${missed.length - GAPS_LISTED} more gaps; --json lists them all`);
}

export type DeviceGap = StatusGap & { readonly device_id: string };

/** The gaps that more work could close. */
export function openGaps(context: SyncContext, wantedRange: WantedRange | null): readonly DeviceGap[] {
  return allGaps(context, wantedRange).filter(({ reason }) => !CLOSED_BY_NONE.has(reason));
}

/** All gaps in the wanted range, by reason. */
function allGaps(context: SyncContext, wantedRange: WantedRange | null): readonly DeviceGap[] {
  if (wantedRange === null) return [];
  const { store, settings } = context;
  const { wantedFrom: from, ...coverable } = coverableNow(context, wantedRange);
  // A gap beyond the plan that is no longer in the wanted range does not count. If no range is wanted according to the
  // local clock, that clock is ahead.
  const stillWanted = stillWantedFrom(context);
  const isLeaving = stillWanted < coverable.limit;
  const isPast = ({ to, reason }: StatusGap): boolean =>
    isLeaving && reason === 'beyond_plan' && (parseTimestamp(to) ?? stillWanted) <= stillWanted;
  return store.devices().flatMap((device) => {
    const { deviceId } = device.record;
    const state = store.telemetry(deviceId);
    const wanted = wantedPart(device, { from, to: limitFor(coverable, state) });
    const known = { covered: state.covered, gaps: store.gaps(deviceId) };
    const isExcluded = settings.filter.excludes(device.record);
    const gaps = determineCoverage({ ...device, isExcluded }, known, wanted).gaps.filter((gap) => !isPast(gap));
    return gaps.map((gap) => ({ device_id: deviceId, ...gap }));
  });
}

/** The progress of a run for the terminal, with the readings and requests of this run only. */
export function onceProgress(
  { totals, destinations, allowance, next, archive: { full } }: StatusReport,
  counts: Pick<ProgressReport['totals'], 'archived_readings' | 'requests'>,
): ProgressReport {
  const eta = full === null ? progressEta(next.eta_seconds, next.eta_assumes_full_history) : null;
  const waits = full === null ? null : `polling is stopped: ${full}`;
  return { totals: { ...totals, ...counts }, destinations, allowance, eta, waits };
}
