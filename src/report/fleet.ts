/**
 * Scans every device for the metrics, the status page and `/readyz`: the number of devices in each state, their lag,
 * and the missing ranges with their reasons.
 *
 * The cost of a scan is bounded. A scan that takes a few milliseconds is made when a caller requests it. A longer one
 * is made in the background: the coverage of all devices is read at once, which is cheapest, and evaluated in slices of
 * a few milliseconds with rests between them, so that no scrape and no page waits for it; `/readyz` does, for a
 * second at most. It takes a twentieth of a processor at most, and almost nothing while no caller needs it; callers get
 * the result of the last complete scan.
 */

import { createWakeUp, NEVER_ABORTED, repeat, type WakeUp } from '../core/async.ts';
import { gapsIn } from '../core/coverage.ts';
import { emptyByListing, LIVE_LAG_SECONDS } from '../core/device-coverage.ts';
import type { DeviceFigures, FleetFigures } from '../core/figures.ts';
import { percentile } from '../core/fleet.ts';
import { beatingClock, type Pulse } from '../core/heartbeats.ts';
import { type Intervals, intersect, lengthNs, normalize, subtract } from '../core/intervals.ts';
import type { Clock } from '../core/ports.ts';
import type { KnownDevice } from '../core/state/inventory.ts';
import { type CoverageNow, NOTHING_COVERED } from '../core/state/telemetry.ts';
import type { StatusGap } from '../core/status.ts';
import { DAY_NS, maxNs, SECOND_MS, SECOND_NS } from '../core/time.ts';
import type { ReportContext, SyncContext } from '../ingest/context.ts';
import { limitFor } from '../ingest/coverage-rules.ts';
import { openSeconds, wantedNow } from '../ingest/wanted-range.ts';
import type { DeviceSummary } from './device-list.ts';
import {
  countDevice,
  createDeviceTally,
  type DeviceSnapshot,
  type DeviceSums,
  type SnapshotView,
  secondsOf,
  snapshotDevice,
  sumsOf,
  toSummary,
} from './device-snapshot.ts';

/** The sources of the scans, and the lag to expect (`DemandWatch`). */
export interface FleetScannerParts {
  readonly context: ReportContext & Pick<SyncContext, 'clock'>;
  readonly staleMs: () => number;
  readonly pulse: Pulse;
}

/** The result of a scan of every device. */
export interface FleetSnapshot {
  readonly figures: FleetFigures;
  /** All devices, in the order of their ids. */
  readonly listing: readonly DeviceSummary[];
  /** The sums over all devices, as the status report has them. */
  readonly sums: DeviceSums;
}

/** Scans the devices and keeps the newest snapshot. */
export interface FleetScanner {
  /**
   * Requests a snapshot that is up to date: a quick scan is made at once if the last one is not very recent, a
   * longer one is made in the background.
   */
  request(): void;
  /** Requests the same, and waits for the longer scan if the newest snapshot is too old; for a second at most. */
  requestAndWait(): Promise<void>;
  /** Returns the newest snapshot, the same object until the next one; `null` until the first scan is complete. */
  latest(): FleetSnapshot | null;
  /** The age of the newest snapshot, in ms; 0 while there is none. */
  ageMs(): number;
  /** Lists the figures of this many devices one by one from the next scan on. */
  setListed(devices: number): void;
  /** Scans in the background until the signal aborts. */
  run(signal: AbortSignal): Promise<never>;
}

/** A scan that takes no longer than `mostMs` is made when a caller requests it, at most every `everyMs`. */
const QUICK = { mostMs: 5, everyMs: 250 };

/** The slices of a background scan, and the rests between them: during the first scan, and later. */
const SLICE_MS = 4;
const REST_MS = { first: 20, later: 76 };

/** The pause between two background scans: this many times as long as the last scan took, within these limits. */
const BETWEEN = { times: 20, leastMs: SECOND_MS, mostMs: 15 * SECOND_MS };
/** The longest pause while no caller requests the snapshot, or while each caller can scan at once. */
const UNREQUESTED_MS = 30 * SECOND_MS;

/** A caller that waits accepts a snapshot of this age, and waits no longer than this for a newer one. */
const WAIT = { acceptsMs: SECOND_MS, mostMs: SECOND_MS };

/** A scan that is made in pieces, so that other work gets its turn in between. */
interface Scan {
  readonly devices: readonly KnownDevice[];
  readonly coverage: ReadonlyMap<string, CoverageNow>;
  readonly tally: FleetTally;
  readonly listing: DeviceSummary[];
  readonly beganMs: number;
  /** How many devices were scanned. */
  at: number;
  workedMs: number;
}

/** A scanner with its newest snapshot and the scan in progress, if there is one. */
interface ScannerState {
  readonly parts: FleetScannerParts;
  snapshot: FleetSnapshot | null;
  /** When the scan of the snapshot began. */
  snapshotMs: number;
  triedAtMs: number;
  /** Whether the last scan took too long to be repeated while a caller waits. */
  isLong: boolean;
  /** How many devices are listed one by one. */
  listed: number;
  /** Ends the pause of the background scans when a caller that cannot scan at once requests the snapshot. */
  readonly wakeUp: WakeUp;
  /** Whether the background scans run, and the callers that wait for the next one. */
  isRunning: boolean;
  readonly waiting: Set<WakeUp>;
}

/** Creates a scanner that has not scanned yet. */
export function createFleetScanner(parts: FleetScannerParts): FleetScanner {
  const { clock } = parts.context;
  const state: ScannerState = {
    parts,
    snapshot: null,
    snapshotMs: 0,
    triedAtMs: Number.NEGATIVE_INFINITY,
    isLong: false,
    listed: 0,
    wakeUp: createWakeUp(beatingClock(clock, parts.pulse)),
    isRunning: false,
    waiting: new Set(),
  };
  return {
    request: () => requestScan(state),
    requestAndWait: async () => {
      requestScan(state);
      await waitForScan(state);
    },
    latest: () => state.snapshot,
    ageMs: () => (state.snapshot === null ? 0 : clock.monoMs() - state.snapshotMs),
    setListed: (devices) => {
      state.listed = devices;
    },
    run: async (signal) => {
      const clockWithPulse = beatingClock(clock, parts.pulse);
      state.isRunning = true;
      try {
        return await repeat(clockWithPulse, (stop) => scanSlowly(state, clockWithPulse, stop), signal);
      } finally {
        state.isRunning = false;
        endWaits(state);
      }
    },
  };
}

/** Starts a scan; `null` while the server's time is unknown. */
function beginScan({ parts, listed }: ScannerState): Scan | null {
  const { context } = parts;
  const { clock, store } = context;
  const beganMs = clock.monoMs();
  const wantedRange = wantedNow(context);
  if (wantedRange === null) return null;
  const devices = store.devices();
  const coverage = store.coverageOfAll();
  const tally = createFleetTally({ context, wantedRange, openSeconds: openSeconds(parts) }, listed);
  return { devices, coverage, tally, listing: [], at: 0, beganMs, workedMs: clock.monoMs() - beganMs };
}

/**
 * Continues a scan for at most `mostMs`.
 *
 * @returns whether it is complete.
 */
function continueScan(state: ScannerState, scan: Scan, mostMs: number): boolean {
  const { clock } = state.parts.context;
  const beganMs = clock.monoMs();
  while (scan.at < scan.devices.length && clock.monoMs() - beganMs < mostMs) {
    const device = scan.devices[scan.at];
    if (device !== undefined) {
      const coverage = scan.coverage.get(device.record.deviceId) ?? NOTHING_COVERED;
      scan.listing.push(toSummary(device, coverage, addDevice(scan.tally, device, coverage)));
    }
    scan.at += 1;
  }
  scan.workedMs += clock.monoMs() - beganMs;
  if (scan.at < scan.devices.length) return false;
  state.snapshot = { ...snapshotOf(scan.tally), listing: scan.listing };
  state.snapshotMs = scan.beganMs;
  endWaits(state);
  return true;
}

function requestScan(state: ScannerState): void {
  scanAtOnce(state);
  if (state.isLong) state.wakeUp.notify();
}

async function waitForScan({ parts, isLong, isRunning, snapshotMs, waiting }: ScannerState): Promise<void> {
  const { clock } = parts.context;
  if (!isLong || !isRunning || clock.monoMs() - snapshotMs <= WAIT.acceptsMs) return;
  const scanned = createWakeUp(clock);
  waiting.add(scanned);
  await scanned.wait(WAIT.mostMs, NEVER_ABORTED);
  waiting.delete(scanned);
}

function endWaits({ waiting }: ScannerState): void {
  for (const scanned of waiting) scanned.notify();
}

function scanAtOnce(state: ScannerState): void {
  const nowMs = state.parts.context.clock.monoMs();
  if (state.isLong || nowMs - state.triedAtMs < QUICK.everyMs) return;
  state.triedAtMs = nowMs;
  const scan = beginScan(state);
  if (scan !== null) state.isLong = !continueScan(state, scan, QUICK.mostMs - scan.workedMs);
}

/**
 * Makes one background scan.
 *
 * @returns how long to pause after it, in ms.
 */
async function scanSlowly(state: ScannerState, clockWithPulse: Clock, signal: AbortSignal): Promise<number> {
  const goodForMs = state.snapshotMs + UNREQUESTED_MS - clockWithPulse.monoMs();
  if (!state.isLong && state.snapshot !== null && goodForMs > 0) {
    await state.wakeUp.wait(goodForMs, signal);
    return 0;
  }
  const restMs = state.snapshot === null ? REST_MS.first : REST_MS.later;
  const scan = beginScan(state);
  if (scan === null) return BETWEEN.leastMs;
  do await clockWithPulse.sleep(restMs, signal);
  while (!continueScan(state, scan, SLICE_MS));
  state.isLong = scan.workedMs > QUICK.mostMs;
  const pauseMs = Math.min(BETWEEN.mostMs, Math.max(BETWEEN.leastMs, BETWEEN.times * scan.workedMs));
  // The pause comes first: a request after it begins the next scan at once.
  await clockWithPulse.sleep(pauseMs, signal);
  await state.wakeUp.wait(UNREQUESTED_MS - pauseMs, signal);
  return 0;
}

/** Figures that grow device by device. */
type FleetTally = ReturnType<typeof createFleetTally>;

/**
 * Creates a tally that counts no device yet.
 *
 * @param most how many devices are listed one by one.
 */
function createFleetTally(view: SnapshotView, most: number) {
  return {
    view,
    most,
    states: { live: 0, 'catching-up': 0, silent: 0, unreachable: 0, excluded: 0 },
    listed: 0,
    present: 0,
    lastDayMissing: 0,
    unknownLags: 0,
    lags: [] as number[],
    gapSeconds: new Map<string, number>(),
    devices: [] as DeviceFigures[],
    sums: createDeviceTally(view.openSeconds),
  };
}

/** A device while it is being added. */
interface ScannedDevice {
  readonly device: KnownDevice;
  readonly coverage: CoverageNow;
  readonly snapshot: DeviceSnapshot;
}

/** Adds one device, and returns its snapshot. */
function addDevice(tally: FleetTally, device: KnownDevice, coverage: CoverageNow): DeviceSnapshot {
  const snapshot = snapshotDevice(tally.view, device, coverage);
  const { state, gaps } = snapshot.status;
  countDevice(tally.sums, snapshot);
  tally.states[state] += 1;
  if (!snapshot.isGone) tally.listed += 1;
  const gapSeconds = addGaps(tally.gapSeconds, gaps);
  const isRead = !snapshot.isExcluded && !snapshot.isGone;
  const lagSeconds = isRead ? addLag(tally, { device, coverage, snapshot }) : null;
  const { deviceId } = device.record;
  if (tally.devices.length < tally.most) {
    tally.devices.push({ deviceId, name: device.name, lagSeconds, gapSeconds });
  }
  return snapshot;
}

/** Adds the lag of a device that is read, and returns it; `null` in the initial sync, unless it is late. */
function addLag(tally: FleetTally, scanned: ScannedDevice): number | null {
  const { view, lags } = tally;
  const { device, snapshot } = scanned;
  tally.present += 1;
  if (isLastDayMissing(scanned, view)) tally.lastDayMissing += 1;
  // The lag of a device that was never read counts from when it was first listed.
  const beganMs = snapshot.isCurrent ? view.wantedRange.nowMs : device.firstListedMs;
  const lag = snapshot.status.lag_seconds ?? Math.max(0, (view.wantedRange.nowMs - beganMs) / 1000);
  lags.push(lag);
  if (snapshot.status.lag_seconds !== null || lag > view.openSeconds) return lag;
  tally.unknownLags += 1;
  return null;
}

/** The figures for the metrics, and the sums for the status report. */
function snapshotOf(tally: FleetTally): Pick<FleetSnapshot, 'figures' | 'sums'> {
  const { states, listed, present, lastDayMissing, unknownLags, lags, gapSeconds, devices, most } = tally;
  const sums = sumsOf(tally.sums);
  return {
    figures: {
      states,
      outOfService: Object.values(sums.silent.resting).reduce((sum, count) => sum + count, 0),
      polled: sums.devices,
      complete: sums.complete,
      coveredShare: sums.coveredShare,
      listed,
      present,
      lastDayMissing,
      lag: lagQuantiles(lags, 2 * unknownLags > lags.length ? tally.view.openSeconds : -1),
      gapSeconds,
      devices,
      leftOut: most === 0 ? 0 : tally.sums.all - devices.length,
    },
    sums,
  };
}

/**
 * Adds the gaps of a device to the seconds by reason.
 *
 * @returns the length of these gaps together.
 */
function addGaps(gapSeconds: Map<string, number>, gaps: readonly StatusGap[]): number {
  for (const gap of gaps) gapSeconds.set(gap.reason, (gapSeconds.get(gap.reason) ?? 0) + secondsOf([gap]));
  return secondsOf(gaps);
}

/**
 * Whether a part of the last day is missing: more than may be open in normal operation, or an older gap without a
 * reason. If the quota is short, the newest gap may be hours long.
 */
function isLastDayMissing(scanned: ScannedDevice, view: SnapshotView): boolean {
  const { wantedRange, openSeconds } = view;
  const openNs = BigInt(Math.ceil(openSeconds)) * SECOND_NS;
  const open = lastDayOpen(scanned, view);
  const named = normalize(scanned.coverage.gaps.map(({ fromNs: from, toNs: to }) => ({ from, to })));
  const older = intersect(subtract(open, named), [{ from: 0n, to: maxNs(wantedRange.limit - openNs, 0n) }]);
  return lengthNs(open) > openNs || lengthNs(older) > BigInt(LIVE_LAG_SECONDS) * SECOND_NS;
}

/** The gaps of the last day, up to the coverage limit. */
function lastDayOpen({ device, coverage }: ScannedDevice, { context, wantedRange }: SnapshotView): Intervals {
  const from = maxNs(wantedRange.limit - DAY_NS, wantedRange.wantedFrom);
  return subtract(
    gapsIn({ from, to: limitFor(wantedRange, coverage) }, coverage.covered),
    emptyByListing(context, device, coverage),
  );
}

/**
 * The percentiles of the lags.
 *
 * @param unknownTo while most devices have no lag yet: a lag up to this counts as unknown, in seconds.
 */
function lagQuantiles(ages: readonly number[], unknownTo: number): FleetFigures['lag'] {
  const sorted = Float64Array.from(ages).sort();
  const at = (part: number): number | null => {
    const age = percentile(sorted, part);
    return age === null || age <= unknownTo ? null : age;
  };
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99), worst: at(1) };
}
