/**
 * What Tidemark says of itself, from the state and the parts that run: one object for the page, for scripts and for
 * the progress line (design 1.5).
 */

import { holesIn } from '../core/coverage.ts';
import { coveredShare, holdingsOf, toldEmpty, wantedOf } from '../core/holdings.ts';
import { lengthNs, subtract } from '../core/intervals.ts';
import { lackStatuses } from '../core/lacks.ts';
import type { AllowanceStatus, ArchiveStatus, DeviceStatus, ReadyReport, StatusReport } from '../core/status.ts';
import { DAY_NS, formatExact, maxNs, msToNs, SECOND_NS } from '../core/time.ts';
import type { Horizon, SyncContext } from './context.ts';
import type { Deliverer } from './deliver.ts';
import { keptDevices } from './exclusion.ts';
import { horizonNow, limitFor } from './horizon.ts';
import type { Room } from './room.ts';
import type { StreamNotes } from './stream-notes.ts';

export interface ReportParts {
  readonly context: Pick<SyncContext, 'store' | 'serverClock' | 'settings'>;
  readonly deliverers: readonly Deliverer[];
  readonly allowance: () => AllowanceStatus;
  /** How old readings become as a matter of course where the allowance is short, in ms. */
  readonly staleMs: () => number;
  readonly streams: StreamNotes;
  readonly room: Pick<Room, 'status'>;
  readonly version: string;
}

/** Puts the report together. Costs a look at every device: made when asked for, not kept. */
export function reportNow(parts: ReportParts): StatusReport {
  const { context, deliverers, version } = parts;
  const { store, serverClock } = context;
  const horizon = horizonNow(context);
  const totals = store.totals();
  const devices = horizon === null ? [] : deviceStatuses(context, horizon);
  const shares = horizon === null ? [] : shareOfEach(context, horizon);
  // Excluded devices are told one by one; nothing is waited for of them, so no sum counts them.
  const kept = keptDevices(context).length;
  const complete = devices.filter(
    ({ state, lag_seconds, gaps }) => state !== 'excluded' && isDone(lag_seconds, gaps.length, openSeconds(parts)),
  ).length;
  return {
    version,
    generated_at: formatExact(msToNs(serverClock.nowMs())),
    workspace_id: store.workspaceTag(),
    summary: summarize(parts, { devices: kept, complete, excluded: store.devices().length - kept }),
    streams: parts.streams.list(),
    totals: {
      devices: kept,
      devices_complete: complete,
      archived_readings: totals.readings,
      archived_points: totals.points,
      requests: totals.requests,
      rejected_records: totals.rejectedRecords,
      covered_share: shares.length === 0 ? null : shares.reduce((sum, share) => sum + share, 0) / shares.length,
    },
    devices,
    destinations: deliverers.map((deliverer) => {
      const { pendingLines, quarantined } = store.backlog(deliverer.destinationId);
      return {
        name: deliverer.name,
        pending_points: pendingLines,
        quarantined,
        delivered_points: deliverer.deliveredLines(),
        lacks: lackStatuses(store.lackSums(deliverer.destinationId)),
        held: deliverer.held(),
      };
    }),
    allowance: parts.allowance(),
    archive: archiveStatus(parts),
  };
}

function archiveStatus({ context, room }: ReportParts): ArchiveStatus {
  const { usedBytes, maxBytes, diskFreeBytes, full } = room.status();
  return {
    points: context.store.totals().lines,
    state_bytes: usedBytes,
    max_bytes: maxBytes,
    disk_free_bytes: diskFreeBytes,
    full,
  };
}

function deviceStatuses({ store, settings }: ReportParts['context'], horizon: Horizon): DeviceStatus[] {
  const from = horizon.wantedFrom;
  return store.devices().map((device) => {
    const { deviceId } = device.record;
    const telemetry = store.telemetry(deviceId);
    const { spans } = telemetry;
    const wanted = wantedOf(device, { from, to: limitFor(horizon, telemetry) });
    const isExcluded = settings.filter.excludes(device.record);
    const told = toldEmpty(device, { spans, newestNs: store.newestNs(deviceId) });
    const holdings = holdingsOf({ ...device, isExcluded }, { spans, gaps: store.gaps(deviceId), told }, wanted);
    return {
      device_id: deviceId,
      device_name: device.name,
      state: holdings.state,
      lag_seconds: spans.length === 0 ? null : holdings.lagSeconds,
      covered: spans.map(({ from, to }) => [formatExact(from), formatExact(to)] as const),
      gaps: holdings.holes,
    };
  });
}

function shareOfEach(context: ReportParts['context'], horizon: Horizon): number[] {
  const from = horizon.wantedFrom;
  return keptDevices(context).map((device) => {
    const { deviceId } = device.record;
    const telemetry = context.store.telemetry(deviceId);
    const told = toldEmpty(device, { spans: telemetry.spans, newestNs: context.store.newestNs(deviceId) });
    return coveredShare(telemetry.spans, wantedOf(device, { from, to: limitFor(horizon, telemetry) }), told);
  });
}

/** The stretch since the last look is open on every device all the time: that alone is not being behind. */
const LIVE_LAG_SECONDS = 5 * 60;

/** For how long the newest stretch of a device may be open: until its next turn comes, and the turn after that. */
function openSeconds({ context, staleMs }: Pick<ReportParts, 'context' | 'staleMs'>): number {
  return Math.max(LIVE_LAG_SECONDS, (2 * staleMs()) / 1000) + context.settings.settleMs / 1000;
}

function isDone(lagSeconds: number | null, holes: number, mostSeconds: number): boolean {
  return lagSeconds !== null && lagSeconds <= mostSeconds && holes <= (lagSeconds > 0 ? 1 : 0);
}

/** How it stands, in a sentence: what is wrong first, as nothing else counts then. */
function summarize(
  { deliverers, allowance, streams, room }: ReportParts,
  { devices, complete, excluded }: { devices: number; complete: number; excluded: number },
): string {
  const leftOut = excluded === 0 ? '' : ` (${excluded} excluded)`;
  const trouble = streams.trouble();
  if (trouble !== null) return `The API is not read: ${trouble}`;
  const { full } = room.status();
  if (full !== null) return `Nothing new is read: ${full}`;
  const held = deliverers.find((deliverer) => deliverer.held() !== null);
  const failing = streams.failingLong()[0];
  if (failing !== undefined) return `${failing.name} cannot be read: ${failing.reason}`;
  if (held !== undefined) return `Delivery to ${held.name} is held: ${held.held() ?? ''}`;
  if (devices === 0 && excluded > 0) return `No device is synced: all ${excluded} are excluded.`;
  if (devices === 0) return 'Starting: the devices are not listed yet.';
  if (complete === devices) return `All ${devices} devices are held in full${leftOut}.`;
  const { waiting_until } = allowance();
  const waiting = waiting_until === null ? '' : ` Waiting for allowance until ${waiting_until}.`;
  return `Filling: ${complete} of ${devices} devices are held in full${leftOut}.${waiting}`;
}

/** Whether what is held can be relied on: every device's last day is there, and nothing that is needed is wrong. */
export function readyNow(parts: ReportParts): ReadyReport {
  const { context, deliverers, streams, room } = parts;
  const { store } = context;
  const reasons: string[] = [];
  const trouble = streams.trouble();
  if (trouble !== null) reasons.push(`api: ${trouble}`);
  else for (const { name, reason } of streams.failingLong()) reasons.push(`stream ${name}: ${reason}`);
  const { full } = room.status();
  if (full !== null) reasons.push(`state: ${full}`);
  for (const { name, held } of deliverers.map((deliverer) => ({ name: deliverer.name, held: deliverer.held() }))) {
    if (held !== null) reasons.push(`destination ${name}: ${held}`);
  }
  const horizon = horizonNow(context);
  const devices = keptDevices(context).filter(({ goneSinceMs }) => goneSinceMs === null);
  if (horizon === null || store.devices().every(({ goneSinceMs }) => goneSinceMs !== null))
    reasons.push('the devices are not listed yet');
  else {
    const from = maxNs(horizon.limit - DAY_NS, horizon.wantedFrom);
    const mostNs = BigInt(Math.ceil(openSeconds(parts))) * SECOND_NS;
    const missing = devices.filter((device) => {
      const { deviceId } = device.record;
      const telemetry = store.telemetry(deviceId);
      const told = toldEmpty(device, { spans: telemetry.spans, newestNs: store.newestNs(deviceId) });
      const open = subtract(holesIn({ from, to: limitFor(horizon, telemetry) }, telemetry.spans), told);
      return lengthNs(open) > mostNs;
    }).length;
    if (missing > 0) reasons.push(`the last day of ${missing} of ${devices.length} devices is not synced yet`);
  }
  return { ready: reasons.length === 0, reasons };
}
