/**
 * A look at every device, for the metrics and `/readyz`: how many are in which state, how fresh they are, what is
 * missing and why.
 *
 * Its cost is bounded. Where a look takes a few milliseconds it is made when somebody asks. Where it takes longer, it is
 * made in the background: what is held is read at once, which is cheapest, and then looked at in slices of a few
 * milliseconds with rests between them, so that no scrape and no request waits for it. It takes a twentieth of a
 * processor; whoever asks gets the last one that came to its end.
 */
import { repeat } from '../core/async.ts';
import { holesIn } from '../core/coverage.ts';
import { beatingClock, type Pulse } from '../core/heartbeats.ts';
import { toldEmpty } from '../core/holdings.ts';
import { type Intervals, lengthNs, subtract } from '../core/intervals.ts';
import type { Clock } from '../core/ports.ts';
import type { KnownDevice } from '../core/state/inventory.ts';
import { type HeldNow, NOTHING_HELD } from '../core/state/telemetry.ts';
import type { DeviceFigures, FleetFigures } from '../core/status.ts';
import { DAY_NS, maxNs, SECOND_MS, SECOND_NS } from '../core/time.ts';
import type { Horizon, SyncContext, SyncSettings } from '../ingest/context.ts';
import { horizonNow, limitFor, openSeconds } from '../ingest/horizon.ts';
import type { ListedLook } from './device-list.ts';
import {
  createDeviceSums,
  type DeviceLook,
  type DeviceSums,
  lookAtDevice,
  secondsOf,
  toListedLook,
} from './device-look.ts';

export interface FleetLookParts {
  readonly context: Pick<SyncContext, 'store' | 'serverClock' | 'settings' | 'clock'>;
  readonly staleMs: () => number;
  readonly pulse: Pulse;
}

/** What a look at every device has found. */
export interface FleetFound {
  readonly figures: FleetFigures;
  /** All devices as they were found, by their ids. */
  readonly listing: readonly ListedLook[];
  /** The sums over all devices, as the status report tells them. */
  readonly sums: DeviceSums;
}

export interface FleetLook {
  /**
   * Looks anew where that is quick and the last look is not of this moment.
   *
   * @returns what was found last, the same object until another look; `null` before the first look came to its end.
   */
  look(): FleetFound | null;
  /** How long ago that was, in ms; 0 before. */
  ageMs(): number;
  /** Also keeps the figures of so many devices, one by one. */
  tellOf(devices: number): void;
  /** Looks again and again until told to stop. */
  run(signal: AbortSignal): Promise<never>;
}

/** A look that takes no longer than this is made when somebody asks, and no more often than that. */
const QUICK = { mostMs: 5, everyMs: 250 };

/** Slices, and rests between them: at first, when nothing is known yet, and later. */
const SLICE_MS = 4;
const REST_MS = { first: 20, later: 76 };

/** From the end of one look to the beginning of the next: so many times as long as it took, within these. */
const BETWEEN = { times: 20, leastMs: SECOND_MS, mostMs: 15 * SECOND_MS };

/** A look that is under way. */
interface Look {
  readonly devices: readonly KnownDevice[];
  readonly held: ReadonlyMap<string, HeldNow>;
  readonly tally: FleetTally;
  readonly listing: ListedLook[];
  readonly beganMs: number;
  /** How many devices were looked at. */
  at: number;
  workedMs: number;
}

/** What is kept from one look to the next. */
interface Standing {
  readonly parts: FleetLookParts;
  found: FleetFound | null;
  /** When the look began that has found it. */
  foundMs: number;
  triedAtMs: number;
  /** Whether a look takes too long to be made at once, as far as is known. */
  isLong: boolean;
  /** Of how many devices the figures are kept one by one. */
  told: number;
}

/** A look at nothing yet. */
export function createFleetLook(parts: FleetLookParts): FleetLook {
  const { clock } = parts.context;
  const standing: Standing = {
    parts,
    found: null,
    foundMs: 0,
    triedAtMs: Number.NEGATIVE_INFINITY,
    isLong: false,
    told: 0,
  };
  return {
    look: () => {
      lookAtOnce(standing);
      return standing.found;
    },
    ageMs: () => (standing.found === null ? 0 : clock.monoMs() - standing.foundMs),
    tellOf: (devices) => {
      standing.told = devices;
    },
    run: async (signal) => {
      const napping = beatingClock(clock, parts.pulse);
      return await repeat(napping, (stop) => lookSlowly(standing, napping, stop), signal);
    },
  };
}

/** @returns a look at no device so far; `null` while nothing is known of the server's time. */
function beginLook({ parts, told }: Standing): Look | null {
  const { clock, store, settings } = parts.context;
  const beganMs = clock.monoMs();
  const horizon = horizonNow(parts.context);
  if (horizon === null) return null;
  const devices = store.devices();
  const held = store.heldOfAll();
  const tally = createFleetTally({ settings, horizon, openSeconds: openSeconds(parts), told });
  return { devices, held, tally, listing: [], at: 0, beganMs, workedMs: clock.monoMs() - beganMs };
}

/** Goes on with a look for so long. @returns whether it came to its end. */
function goOn(standing: Standing, look: Look, mostMs: number): boolean {
  const { clock } = standing.parts.context;
  const beganMs = clock.monoMs();
  while (look.at < look.devices.length && clock.monoMs() - beganMs < mostMs) {
    const device = look.devices[look.at];
    if (device !== undefined) {
      const held = look.held.get(device.record.deviceId) ?? NOTHING_HELD;
      look.listing.push(toListedLook(device, held, look.tally.add(device, held)));
    }
    look.at += 1;
  }
  look.workedMs += clock.monoMs() - beganMs;
  if (look.at < look.devices.length) return false;
  standing.found = { ...look.tally.sum(), listing: look.listing };
  standing.foundMs = look.beganMs;
  return true;
}

function lookAtOnce(standing: Standing): void {
  const nowMs = standing.parts.context.clock.monoMs();
  if (standing.isLong || nowMs - standing.triedAtMs < QUICK.everyMs) return;
  standing.triedAtMs = nowMs;
  const look = beginLook(standing);
  if (look !== null) standing.isLong = !goOn(standing, look, QUICK.mostMs - look.workedMs);
}

/** @returns how long to rest after it, in ms. */
async function lookSlowly(standing: Standing, napping: Clock, signal: AbortSignal): Promise<number> {
  const restMs = standing.found === null ? REST_MS.first : REST_MS.later;
  const look = beginLook(standing);
  if (look === null) return BETWEEN.leastMs;
  do await napping.sleep(restMs, signal);
  while (!goOn(standing, look, SLICE_MS));
  standing.isLong = look.workedMs > QUICK.mostMs;
  return Math.min(BETWEEN.mostMs, Math.max(BETWEEN.leastMs, BETWEEN.times * look.workedMs));
}

/** How the devices stand, added up one after the other. */
interface FleetTally {
  /** @returns how it was found. */
  add(device: KnownDevice, held: HeldNow): DeviceLook;
  /** For the metrics, and as the status report tells it. */
  sum(): { readonly figures: FleetFigures; readonly sums: DeviceSums };
}

/** A device as it is looked at. */
interface Seen {
  readonly device: KnownDevice;
  readonly held: HeldNow;
  readonly look: DeviceLook;
}

interface TallyOptions {
  readonly settings: Pick<SyncSettings, 'filter'>;
  readonly horizon: Horizon;
  /** How long the newest stretch may be open while all is well. */
  readonly openSeconds: number;
  /** Of how many devices the figures are kept one by one. */
  readonly told: number;
}

/** A tally of no device. */
function createFleetTally({ settings, horizon, openSeconds, told: most }: TallyOptions): FleetTally {
  const openNs = BigInt(Math.ceil(openSeconds)) * SECOND_NS;
  const states = { live: 0, 'catching-up': 0, silent: 0, unreachable: 0, excluded: 0 };
  const counts = { all: 0, listed: 0, present: 0, lastDayMissing: 0 };
  const ages: number[] = [];
  const gapSeconds = new Map<string, number>();
  const devices: DeviceFigures[] = [];
  const sums = createDeviceSums(openSeconds);

  /** A device that is read: how old what is missing may be. */
  const addRead = (seen: Seen): number | null => {
    const { device, look } = seen;
    if (look.isGone) return null;
    counts.present += 1;
    if (lengthNs(lastDayOpen(seen, horizon)) > openNs) counts.lastDayMissing += 1;
    // Of a device that was never read the age counts from when it was listed first.
    const age = look.status.lag_seconds ?? Math.max(0, (horizon.nowMs - device.firstListedMs) / 1000);
    ages.push(age);
    return age;
  };

  return {
    add: (device, held) => {
      const look = lookAtDevice({ filter: settings.filter, horizon, openSeconds }, device, held);
      const { state, gaps } = look.status;
      counts.all += 1;
      sums.add(look);
      states[state] += 1;
      if (!look.isGone) counts.listed += 1;
      let openGap = 0;
      for (const gap of gaps) {
        const seconds = secondsOf(gap);
        openGap += seconds;
        gapSeconds.set(gap.reason, (gapSeconds.get(gap.reason) ?? 0) + seconds);
      }
      const freshnessSeconds = look.isExcluded ? null : addRead({ device, held, look });
      const { deviceId } = device.record;
      if (devices.length < most) devices.push({ deviceId, name: device.name, freshnessSeconds, gapSeconds: openGap });
      return look;
    },
    sum: () => {
      const whole = sums.sum();
      const figures: FleetFigures = {
        states,
        kept: whole.devices,
        complete: whole.complete,
        coveredShare: whole.coveredShare,
        listed: counts.listed,
        present: counts.present,
        lastDayMissing: counts.lastDayMissing,
        freshness: freshnessOf(ages),
        gapSeconds,
        devices,
        leftOut: most === 0 ? 0 : counts.all - devices.length,
      };
      return { figures, sums: whole };
    },
  };
}

/** What of the last day is not held, as far as it can be. */
function lastDayOpen({ device, held }: Seen, horizon: Horizon): Intervals {
  const from = maxNs(horizon.limit - DAY_NS, horizon.wantedFrom);
  return subtract(holesIn({ from, to: limitFor(horizon, held) }, held.spans), toldEmpty(device, held));
}

/** Nearest-rank percentiles. */
function freshnessOf(ages: readonly number[]): FleetFigures['freshness'] {
  if (ages.length === 0) return null;
  const sorted = Float64Array.from(ages).sort();
  const at = (part: number): number => sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? 0;
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99), worst: at(1) };
}
