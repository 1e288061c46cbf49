/**
 * The `coverage` points: the coverage of each device. They let a dashboard distinguish a silent device from a device
 * that is not synced. If the daemon has stopped, the age of the newest point shows it.
 *
 * A point is written when the state of a device changes, when its watermark has moved five minutes, and at least every
 * 15 minutes. The last point of each device is part of the state, so a restart repeats none.
 */

import { runUnlessFull } from '../core/archive-room.ts';
import { repeat } from '../core/async.ts';
import { gapsIn } from '../core/coverage.ts';
import { determineCoverage, emptyByListing, hasLag, wantedPart } from '../core/device-coverage.ts';
import { hash64 } from '../core/hash.ts';
import { coverageLine } from '../core/lines/fact-lines.ts';
import type { CoveragePoint, KnownDevice, NewCoveragePoint } from '../core/state/inventory.ts';
import { telemetryNow } from '../core/state/telemetry.ts';
import { DAY_NS, type EpochNs, MINUTE_MS, MINUTE_NS, maxNs, msToNs, SECOND_MS } from '../core/time.ts';
import type { SyncContext, WantedRange } from '../ingest/context.ts';
import { limitFor } from '../ingest/coverage-rules.ts';
import { openSeconds, stillWantedFrom, wantedNow } from '../ingest/wanted-range.ts';
import { readStaleMs } from './demand-watch.ts';

/** How far a watermark moves before another point is written. */
export const MOVED_NS = 5n * MINUTE_NS;

/** The age at which a point is repeated: a minute less than the promised 15, because a check may come late. */
const OLDEST_NS = 14n * MINUTE_NS;

/** How often a part of the devices is checked, and how soon if the server's time is not known yet. */
const COVERAGE_CHECK_MS = MINUTE_MS;
const UNTIL_TIME_IS_KNOWN_MS = 5 * SECOND_MS;

/**
 * Checking a device costs about 0.2 ms, so this many are checked at once, and each device at least every four minutes.
 */
const AT_ONCE = 250;
const MOST_PARTS = 4;

/** The clocks of the host and of the server agree only to a few seconds. */
const CLOCK_SLACK_NS = MINUTE_NS;

/**
 * The daemon's loop: writes the points that are due until `signal` aborts, even while the API is down or rejects the
 * key.
 */
export async function writeCoveragePoints(context: SyncContext, signal: AbortSignal): Promise<never> {
  let checks = 0;
  const step = (): number => {
    const wantedRange = wantedNow(context);
    if (wantedRange === null) return UNTIL_TIME_IS_KNOWN_MS;
    if (!context.checkSpace().ok) return COVERAGE_CHECK_MS;
    runUnlessFull(() => noteCoverage(context, wantedRange, checks), context.noteStateFull);
    checks += 1;
    return COVERAGE_CHECK_MS;
  };
  return await repeat(context.clock, step, signal);
}

/**
 * Archives the `coverage` points that are due, and forgets named gaps that are closed.
 *
 * @param checks how many checks were made before: then this is one of several that share the devices.
 */
export function noteCoverage(context: SyncContext, wantedRange: WantedRange, checks: number | null = null): void {
  const { store, serverClock } = context;
  const tag = store.workspaceTag();
  if (tag === null) return;
  const devices = store.devices();
  const parts = checks === null ? 1 : Math.min(MOST_PARTS, Math.max(1, Math.ceil(devices.length / AT_ONCE)));
  const turn = (checks ?? 0) % parts;
  const last = store.coveragePoints();
  const atNs = msToNs(serverClock.nowMs());
  // A range that has left the wanted range since the scan began is no gap.
  const wantedFrom = maxNs(wantedRange.wantedFrom, stillWantedFrom(context));
  const mostOpen = openSeconds({ context, staleMs: () => readStaleMs(store) });
  const points: NewCoveragePoint[] = [];
  for (const device of devices) {
    const { deviceId } = device.record;
    // Selected by a hash, so that a new device moves no other device to another turn.
    if (parts > 1 && hash64(deviceId).lo % parts !== turn) continue;
    const { state, watermarkNs, lagSeconds, gapSeconds } = refreshCoverage(context, device, {
      wantedRange,
      wantedFrom,
      mostOpen,
      atNs,
    });
    if (!isDue(last.get(deviceId), { state, watermarkNs, atNs }, BigInt(parts) * MINUTE_NS)) continue;
    const { lifecycleStatus } = device.record;
    const facts = {
      deviceId,
      deviceName: device.name,
      lifecycleStatus,
      state,
      lagSeconds,
      gapSeconds,
      watermarkNs,
      atNs,
    };
    points.push({ deviceId, state, watermarkNs, atNs, line: coverageLine(facts, tag) });
  }
  if (points.length === 0) return;
  store.saveCoveragePoints(points);
  context.noteArchived();
}

interface CoverageMoment {
  readonly wantedRange: WantedRange;
  readonly wantedFrom: EpochNs;
  readonly mostOpen: number;
  readonly atNs: EpochNs;
}

/** Deletes the named gaps of a device if they are closed, and returns its current coverage. */
function refreshCoverage(context: SyncContext, device: KnownDevice, moment: CoverageMoment) {
  const { store, settings } = context;
  const { wantedRange, wantedFrom, mostOpen, atNs } = moment;
  const { deviceId } = device.record;
  const now = telemetryNow(store, deviceId);
  const { covered, gaps } = now;
  const to = limitFor(wantedRange, now);
  const isExcluded = settings.filter.excludes(device.record);
  const listedEmpty = emptyByListing(context, device, now);
  if (gaps.length > 0 && gapsIn({ from: wantedRange.wantedFrom, to }, covered).length === 0) store.clearGaps(deviceId);
  const wanted = wantedPart(device, { from: wantedFrom, to });
  const coverage = determineCoverage(
    { ...device, isExcluded },
    { covered, gaps, listedEmpty, openSeconds: mostOpen },
    wanted,
  );
  const isRead = !isExcluded && device.goneSinceMs === null;
  // The coverage limit when the device was first listed. A watermark below it was never current.
  const firstLimit = to - (atNs - msToNs(device.firstListedMs)) - CLOCK_SLACK_NS;
  const hasWatermark = isRead && coverage.coveredTo >= firstLimit && hasLag(coverage);
  const watermarkNs = hasWatermark ? coverage.coveredTo : null;
  return { ...coverage, watermarkNs, lagSeconds: hasWatermark ? coverage.lagSeconds : null };
}

/**
 * Whether a point is due.
 *
 * @param nextNs the time until the next check.
 */
function isDue(before: CoveragePoint | undefined, now: CoveragePoint, nextNs: EpochNs): boolean {
  if (before === undefined) return true;
  const ageNs = now.atNs - before.atNs;
  // A point more than a day ahead comes from a wrong clock.
  if (ageNs <= 0n) return -ageNs > DAY_NS;
  return before.state !== now.state || hasMoved(before.watermarkNs, now.watermarkNs) || ageNs + nextNs > OLDEST_NS;
}

function hasMoved(before: EpochNs | null, now: EpochNs | null): boolean {
  if (before === null || now === null) return before !== now;
  return now - before >= MOVED_NS || before - now >= MOVED_NS;
}
