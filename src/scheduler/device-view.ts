/**
 * The facts about a device that the planner needs. The coverage gives the newest reading, the gap right below it and
 * the missing history; the device list gives the last sign of life. Pure.
 */
import { type CoveredRange, gapsIn } from '../core/coverage.ts';
import { type Interval, type Intervals, intersect, lengthNs, normalize, subtract } from '../core/intervals.ts';
import type { PollSettings } from '../core/ports.ts';
import { RESTING } from '../core/records.ts';
import type { KnownDevice } from '../core/state/inventory.ts';
import type { TelemetryState } from '../core/state/telemetry.ts';
import { DAY_NS, type EpochMs, type EpochNs, maxNs, minNs, msToNs, nsToMs } from '../core/time.ts';
import type { LiveGap } from './device-outlook.ts';
import type { PlannedDevice } from './device-queue.ts';
import { NOTHING_OPEN, type OpenHistory, type Recency } from './history-queue.ts';

/** A device as the planner sees it. Times are in ms. */
interface DeviceView {
  /** The newest archived reading; without one, the end of the range known to be empty; `null`: never requested. */
  readonly newestMs: number | null;
  /** The watermark of the device. */
  readonly coveredToMs: number | null;
  /** The gap below the newest covered range, if live work closes it; `null` if the gap belongs to the history. */
  readonly liveGap: LiveGap | null;
  /** The other missing ranges, by age. */
  readonly open: OpenHistory;
}

/** The input of {@link buildView}. */
export interface ViewInput {
  readonly covered: readonly CoveredRange[];
  /** The wanted range, up to the coverage limit. */
  readonly wanted: Interval;
  /** Named gaps that are not due for another request. */
  readonly resting: Intervals;
  /** Named gaps that are due for another request; none by default. */
  readonly named?: Intervals;
}

/** How far back live work closes gaps. Older gaps wait for their turn with the history of all devices. */
const CATCH_UP_NS = DAY_NS;
const WEEK_NS = 7n * DAY_NS;

/** Returns the view of a device. Time above the newest covered range is no gap: the next live request reads it. */
export function buildView({ covered, wanted, resting, named = [] }: ViewInput): DeviceView {
  const top = covered.at(-1);
  // Never polled: the newest page comes before any history.
  if (top === undefined) return { newestMs: null, coveredToMs: null, liveGap: null, open: NOTHING_OPEN };
  const below = { from: wanted.from, to: maxNs(wanted.from, top.from) };
  const missing = subtract(gapsIn(below, covered), resting);
  const newest = missing.at(-1);
  const isCatchingUp =
    newest !== undefined &&
    newest.to === top.from &&
    newest.from >= wanted.to - CATCH_UP_NS &&
    // Its live page scan was interrupted. Otherwise a quiet device would not be polled before its idle poll.
    intersect(named, [newest]).length === 0 &&
    covered.some(({ to }) => to === newest.from);
  const liveGap = isCatchingUp ? newest : null;
  return {
    newestMs: nsToMs(newestReading(covered) ?? top.to),
    coveredToMs: nsToMs(top.to),
    liveGap: liveGap === null ? null : { fromMs: nsToMs(liveGap.from), toMs: nsToMs(liveGap.to) },
    open: openHistory(liveGap === null ? missing : subtract(missing, [liveGap]), wanted.to),
  };
}

function newestReading(covered: readonly CoveredRange[]): EpochNs | null {
  return covered.findLast(({ last }) => last !== null)?.last?.at ?? null;
}

/** The missing ranges by their distance from a time. */
export function openHistory(missing: Intervals, to: EpochNs): OpenHistory {
  const within = (fromNs: bigint, toNs: bigint): number => {
    const range = normalize([{ from: maxNs(to - toNs, 0n), to: maxNs(to - fromNs, 0n) }]);
    return nsToMs(lengthNs(intersect(missing, range)));
  };
  return { day: within(0n, DAY_NS), week: within(DAY_NS, WEEK_NS), rest: within(WEEK_NS, to) };
}

/** A device with its coverage and its gaps. */
export interface Viewed {
  readonly view: DeviceView;
  readonly state: TelemetryState;
  /** The wanted range, up to the coverage limit of the device. */
  readonly wanted: Interval;
}

/**
 * Returns the ranges that the daemon requests without a goal. The range above the covered one may wait for an idle
 * poll.
 */
export function ownRanges(now: Viewed | null): Intervals {
  if (now === null) return [];
  const { from, to } = now.wanted;
  return normalize([{ from, to: minNs(now.state.covered.at(-1)?.to ?? from, to) }]);
}

/**
 * Returns the part of a device's own history that a request of this recency may cover, below the device's newest end.
 */
export function recencyRange({ state, view, wanted }: Viewed, recency: Recency): Interval {
  const newest = state.covered.at(-1);
  const to = view.liveGap !== null ? msToNs(view.liveGap.fromMs) : (newest?.from ?? wanted.from);
  const back = recency === 'day' ? DAY_NS : WEEK_NS;
  const from = recency === 'rest' ? wanted.from : maxNs(wanted.to - back, wanted.from);
  return { from: minNs(from, to), to };
}

/**
 * Turns a device of an earlier listing into a listed one. A device that had reported within one idle poll before that
 * listing counts as reporting, so it is polled once; then its rate is known.
 */
export function fromBefore(
  device: KnownDevice,
  { nowMs, polls }: { readonly nowMs: EpochMs; readonly polls: PollSettings },
): PlannedDevice {
  const listed = toPlannedDevice(device);
  const isReporting = listed.seenMs === null || device.lastListedMs - listed.seenMs < polls.idlePollMs;
  return { ...listed, seenMs: isReporting ? nowMs : listed.seenMs };
}

/** Returns a device of the current listing in the planner's form. */
export function toPlannedDevice({ record }: KnownDevice): PlannedDevice {
  const { deviceId, lastSeenAt, lifecycleStatus, online } = record;
  return {
    deviceId,
    seenMs: lastSeenAt === null ? null : nsToMs(lastSeenAt),
    isActive: lifecycleStatus === null || !RESTING.has(lifecycleStatus),
    isOffline: online === false,
  };
}
