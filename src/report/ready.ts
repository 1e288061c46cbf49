/**
 * The readiness check (`/readyz`): it succeeds when the last day of every device is covered and no needed part has
 * failed. Waiting for quota is no failure.
 *
 * It also reports once per process that the initial sync is complete, so that no one has to watch a progress bar for
 * hours.
 */

import type { SpaceWatch } from '../archive/room.ts';
import { PENDING } from '../core/device-coverage.ts';
import type { Observe } from '../core/events.ts';
import type { FleetFigures } from '../core/figures.ts';
import type { Clock } from '../core/ports.ts';
import type { ServerClock } from '../core/server-clock.ts';
import type { Store } from '../core/state/state.ts';
import type { ReadyCode, ReadyReport, StatusReport } from '../core/status.ts';
import { formatMs, SECOND_MS } from '../core/time.ts';
import type { Deliverer } from '../delivery/deliver.ts';
import type { StreamReport } from '../scheduler/api-state.ts';

interface ReadyParts {
  readonly deliverers: readonly Pick<Deliverer, 'name' | 'blockedReason'>[];
  readonly streams: Pick<StreamReport, 'list' | 'problem' | 'isKeyRejected' | 'failingLong' | 'isListed'>;
  readonly space: Pick<SpaceWatch, 'status'>;
  readonly serverClock: Pick<ServerClock, 'unconfirmed' | 'fallenToMs' | 'isLocalBehind'>;
  readonly store: Pick<Store, 'devices'>;
  /** The figures of the last scan of every device; `null` before the first one. */
  readonly fleet: () => FleetFigures | null;
}

type Reason = readonly [code: ReadyCode, text: string, name?: string];

/** The report, with a code for each reason. Cheap, because the devices were scanned before. */
export function readyNow(parts: ReadyParts): ReadyReport {
  const { deliverers, space } = parts;
  const { full } = space.status();
  const blocked = deliverers.flatMap(({ name, blockedReason }): Reason[] => {
    const why = blockedReason();
    return why === null ? [] : [['destination_blocked', `destination ${name}: ${why}`, name]];
  });
  const found: Reason[] = [
    ...apiReasons(parts),
    ...clockReasons(parts),
    ...(full === null ? [] : [['state_full', `state: ${full}`] as const]),
    ...blocked,
    ...deviceReasons(parts),
  ];
  return {
    ready: found.length === 0,
    reasons: found.map(([, text]) => text),
    codes: found.map(([code]) => code),
    names: found.map(([, , name]) => name ?? null),
  };
}

function apiReasons({ streams }: ReadyParts): Reason[] {
  const problem = streams.problem();
  if (problem !== null) return [[streams.isKeyRejected() ? 'key_refused' : 'api_unreachable', `api: ${problem}`]];
  const off = streams.list().find(({ name, state }) => name === 'telemetry' && state === 'off');
  return [
    ...(off === undefined ? [] : [['scope_missing', `stream telemetry: ${off.reason}`, off.name] as const]),
    ...streams.failingLong().map(({ name, reason }): Reason => ['stream_failing', `stream ${name}: ${reason}`, name]),
  ];
}

function clockReasons({ serverClock }: ReadyParts): Reason[] {
  const fallenToMs = serverClock.fallenToMs();
  if (fallenToMs !== null) {
    const text = `the API's clock went back to ${formatMs(fallenToMs)}: later ranges do not count as covered`;
    return [['clock_unconfirmed', text]];
  }
  if (serverClock.isLocalBehind()) {
    return [['clock_unconfirmed', "this machine's clock is behind the times that the API serves"]];
  }
  const unconfirmedDate = serverClock.unconfirmed();
  if (unconfirmedDate === null) return [];
  const text = `the API's clock (${formatMs(unconfirmedDate.dateMs)}) differs from this machine's clock and from the newest readings: waiting for a response that confirms it`;
  return [['clock_unconfirmed', text]];
}

function deviceReasons({ fleet, streams, store }: ReadyParts): Reason[] {
  const seen = fleet();
  // A complete list that is empty is an answer. A list that was just read has not been scanned yet.
  if (!streams.isListed() || seen === null || (seen.listed === 0 && hasAny(store))) {
    return [['devices_not_listed', 'the device list is not complete yet']];
  }
  const { lastDayMissing, present } = seen;
  if (lastDayMissing === 0) return [];
  return [['last_day_missing', `${lastDayMissing} of ${present} devices: the last 24 hours are not synced yet`]];
}

function hasAny({ devices }: ReadyParts['store']): boolean {
  return devices().some(({ goneSinceMs }) => goneSinceMs === null);
}

/**
 * How often to check whether the initial sync is complete, until it is. The reports for that take at most this part of
 * the time.
 */
const FIRST_FILL_CHECK_MS = 10 * SECOND_MS;
const REPORT_TIME_SHARE = 0.02;

interface FirstFillParts {
  readonly report: () => StatusReport;
  readonly ready: () => ReadyReport;
  readonly observe: Observe;
  readonly clock: Pick<Clock, 'monoMs'>;
  /** The address of the status page for people. */
  readonly statusPage: string;
}

/**
 * Returns a function to call often. It reports once, when the initial sync is complete: each remaining gap has a
 * reason.
 */
export function createFirstFill({ report, ready, observe, clock, statusPage }: FirstFillParts): () => void {
  let dueMs = Number.NEGATIVE_INFINITY;
  return () => {
    const nowMs = clock.monoMs();
    if (nowMs < dueMs) return;
    dueMs = nowMs + FIRST_FILL_CHECK_MS;
    if (!ready().ready) return;
    const { devices, totals, destinations, freshness } = report();
    dueMs = Math.max(dueMs, nowMs + (clock.monoMs() - nowMs) / REPORT_TIME_SHARE);
    const included = devices.filter(({ state }) => state !== 'excluded');
    const behindAfter = freshness.behind_after_seconds;
    if (included.length === 0 || !included.every((device) => isFilled(device, behindAfter))) return;
    dueMs = Number.POSITIVE_INFINITY;
    observe({
      type: 'initial-sync-done',
      devices: included.length,
      withGaps: included.filter(({ gaps }) => gaps.some(({ reason }) => reason !== PENDING)).length,
      points: totals.archived_points,
      pending: destinations.reduce((sum, { pending_points }) => sum + pending_points, 0),
      statusPage,
    });
  };
}

/** The gap since the last poll may be open. Any other gap without a reason is still to be read. */
function isFilled({ gaps, lag_seconds }: StatusReport['devices'][number], behindAfter: number): boolean {
  if (lag_seconds === null) return gaps.length > 0 && gaps.every(({ reason }) => reason !== PENDING);
  return gaps.filter(({ reason }) => reason === PENDING).length <= (lag_seconds > behindAfter ? 1 : 0);
}
