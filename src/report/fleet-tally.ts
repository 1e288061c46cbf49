/**
 * Adds up how the devices stand, one after the other (`fleet-look.ts`).
 */
import { holesIn } from '../core/coverage.ts';
import type { DeviceFigures, FleetFigures } from '../core/figures.ts';
import { toldEmpty } from '../core/holdings.ts';
import { type Intervals, lengthNs, subtract } from '../core/intervals.ts';
import type { KnownDevice } from '../core/state/inventory.ts';
import type { HeldNow } from '../core/state/telemetry.ts';
import { DAY_NS, maxNs, SECOND_NS } from '../core/time.ts';
import type { Horizon, SyncSettings } from '../ingest/context.ts';
import { limitFor } from '../ingest/horizon.ts';
import { createDeviceSums, type DeviceLook, type DeviceSums, lookAtDevice, secondsOf } from './device-look.ts';

export interface FleetTally {
  /** @returns how it was found. */
  add(device: KnownDevice, held: HeldNow): DeviceLook;
  sum(): FleetFigures;
  /** The same as the status report tells it. */
  told(): DeviceSums;
}

/** A device as it is looked at. */
interface Seen {
  readonly device: KnownDevice;
  readonly held: HeldNow;
  readonly look: DeviceLook;
}

export interface TallyOptions {
  readonly settings: Pick<SyncSettings, 'filter'>;
  readonly horizon: Horizon;
  /** How long the newest stretch may be open while all is well. */
  readonly openSeconds: number;
  /** Of how many devices the figures are kept one by one. */
  readonly told: number;
}

/** A tally of no device. */
export function createFleetTally({ settings, horizon, openSeconds, told: most }: TallyOptions): FleetTally {
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
    sum: () => ({
      states,
      ...wholeOf(sums.sum()),
      listed: counts.listed,
      present: counts.present,
      lastDayMissing: counts.lastDayMissing,
      freshness: freshnessOf(ages),
      gapSeconds,
      devices,
      leftOut: most === 0 ? 0 : counts.all - devices.length,
    }),
    told: sums.sum,
  };
}

function wholeOf({
  devices,
  complete,
  coveredShare,
}: DeviceSums): Pick<FleetFigures, 'kept' | 'complete' | 'coveredShare'> {
  return { kept: devices, complete, coveredShare };
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
