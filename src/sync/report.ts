/**
 * What Tidemark says of itself, from the state and the parts that run: one object for the page, for scripts and for
 * the progress line (design 1.5).
 */

import { holesIn } from '../core/coverage.ts';
import { coveredShare, holdingsOf, wantedOf } from '../core/holdings.ts';
import { lengthNs } from '../core/intervals.ts';
import type { AllowanceStatus, DeviceStatus, ReadyReport, StatusReport } from '../core/status.ts';
import { DAY_NS, formatExact, maxNs, msToNs, SECOND_NS } from '../core/time.ts';
import type { Horizon, SyncContext } from './context.ts';
import type { Deliverer } from './deliver.ts';
import { horizonNow } from './horizon.ts';
import type { StreamNotes } from './stream-notes.ts';

export interface ReportParts {
  readonly context: Pick<SyncContext, 'store' | 'serverClock' | 'settings'>;
  readonly deliverers: readonly Deliverer[];
  readonly allowance: () => AllowanceStatus;
  readonly streams: StreamNotes;
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
  const complete = devices.filter(({ lag_seconds, gaps }) => isDone(context, lag_seconds, gaps.length)).length;
  return {
    version,
    generated_at: formatExact(msToNs(serverClock.nowMs())),
    workspace_id: store.workspaceTag(),
    summary: summarize(parts, { devices: store.devices().length, complete }),
    streams: parts.streams.list(),
    totals: {
      devices: store.devices().length,
      devices_complete: complete,
      archived_readings: totals.readings,
      archived_points: totals.points,
      requests: totals.requests,
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
        held: deliverer.held(),
      };
    }),
    allowance: parts.allowance(),
  };
}

function deviceStatuses({ store }: ReportParts['context'], horizon: Horizon): DeviceStatus[] {
  const span = { from: horizon.wantedFrom, to: horizon.limit };
  return store.devices().map((device) => {
    const { deviceId } = device.record;
    const { spans } = store.telemetry(deviceId);
    const wanted = wantedOf(device, span);
    const holdings = holdingsOf(device, { spans, gaps: store.gaps(deviceId) }, wanted);
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

function shareOfEach({ store }: ReportParts['context'], horizon: Horizon): number[] {
  const span = { from: horizon.wantedFrom, to: horizon.limit };
  return store
    .devices()
    .map((device) => coveredShare(store.telemetry(device.record.deviceId).spans, wantedOf(device, span)));
}

/** The stretch since the last look is open on every device all the time: that alone is not being behind. */
const LIVE_LAG_SECONDS = 5 * 60;

function isDone({ settings }: ReportParts['context'], lagSeconds: number | null, holes: number): boolean {
  const due = LIVE_LAG_SECONDS + settings.settleMs / 1000;
  return lagSeconds !== null && lagSeconds <= due && holes <= (lagSeconds > 0 ? 1 : 0);
}

function summarize(
  { deliverers, allowance }: ReportParts,
  { devices, complete }: { devices: number; complete: number },
): string {
  const held = deliverers.find((deliverer) => deliverer.held() !== null);
  if (held !== undefined) return `Delivery to ${held.name} is held: ${held.held() ?? ''}`;
  if (devices === 0) return 'Starting: the devices are not listed yet.';
  if (complete === devices) return `All ${devices} devices are held in full.`;
  const { waiting_until } = allowance();
  const waiting = waiting_until === null ? '' : ` Waiting for allowance until ${waiting_until}.`;
  return `Filling: ${complete} of ${devices} devices are held in full.${waiting}`;
}

/** Whether what is held can be relied on: every device's last day is there, and nothing that is needed is wrong. */
export function readyNow({ context, deliverers, streams }: ReportParts): ReadyReport {
  const { store } = context;
  const reasons: string[] = [];
  const trouble = streams.trouble();
  if (trouble !== null) reasons.push(`api: ${trouble}`);
  for (const { name, held } of deliverers.map((deliverer) => ({ name: deliverer.name, held: deliverer.held() }))) {
    if (held !== null) reasons.push(`destination ${name}: ${held}`);
  }
  const horizon = horizonNow(context);
  const devices = store.devices().filter(({ goneSinceMs }) => goneSinceMs === null);
  if (horizon === null || devices.length === 0) reasons.push('the devices are not listed yet');
  else {
    const day = { from: maxNs(horizon.limit - DAY_NS, horizon.wantedFrom), to: horizon.limit };
    const mostNs = (BigInt(LIVE_LAG_SECONDS) + BigInt(Math.ceil(context.settings.settleMs / 1000))) * SECOND_NS;
    const missing = devices.filter(
      ({ record }) => lengthNs(holesIn(day, store.telemetry(record.deviceId).spans)) > mostNs,
    ).length;
    if (missing > 0) reasons.push(`the last day of ${missing} of ${devices.length} devices is not synced yet`);
  }
  return { ready: reasons.length === 0, reasons };
}
