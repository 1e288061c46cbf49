/**
 * A fleet for the planner's bench: devices whose readings are functions of a seed, so that any of millions is known at
 * once. Times are milliseconds from the beginning of the run; there is history before it.
 */

import { DAY_MS, HOUR_MS } from '../../../src/core/time.ts';
import { mix, type Seed, unit, whole } from '../../../src/sim/random.ts';

/** The kinds of devices, and how they report. */
export interface FleetOptions {
  readonly seed: number;
  readonly devices: number;
  /** From reading to reading: spread evenly on a logarithmic scale. */
  readonly fromMs: number;
  readonly toMs: number;
  /** The part of them that is silent. */
  readonly silent: number;
  /** The part of the others that falls silent once, for some hours. */
  readonly pausing: number;
  /** The part of all whose `last_seen_at` has stood still since before the run. */
  readonly lying: number;
}

export const MIXED: Omit<FleetOptions, 'seed' | 'devices'> = {
  fromMs: 10_000,
  toMs: HOUR_MS,
  silent: 0.25,
  pausing: 0.1,
  lying: 0.01,
};

/** One device, its readings numbered in their order; numbers below those of the run are history. */
export interface Device {
  readonly deviceId: string;
  readonly isSilent: boolean;
  readonly intervalMs: number;
  /** The number of the newest reading not later than a time. */
  newestAt(atMs: number): number;
  /** The time of a reading; infinite where it will never be. */
  timeOf(reading: number): number;
  /** `last_seen_at` at a time. */
  seenAt(atMs: number): number;
}

/** How much of the interval a reading may be off its time: half of it to either side. */
const JITTERS = [0.02, 0.1, 0.3];

export function createFleet(options: FleetOptions): readonly Device[] {
  return Array.from({ length: options.devices }, (_, index) => createDevice(options, index));
}

function createDevice(options: FleetOptions, index: number): Device {
  const seed = mix(options.seed, index);
  const intervalMs = options.fromMs * (options.toMs / options.fromMs) ** unit(mix(seed, 1));
  const isSilent = unit(mix(seed, 2)) < options.silent;
  const isPausing = unit(mix(seed, 3)) < options.pausing;
  const isLying = unit(mix(seed, 4)) < options.lying;
  const silentMs = -HOUR_MS - unit(mix(seed, 5)) * 20 * DAY_MS;
  const from = unit(mix(seed, 6)) * DAY_MS;
  const pause = isSilent
    ? { fromMs: silentMs, toMs: Number.POSITIVE_INFINITY }
    : isPausing
      ? { fromMs: from, toMs: from + HOUR_MS + unit(mix(seed, 7)) * 12 * HOUR_MS }
      : null;
  const plain = createSeries(mix(seed, 8), intervalMs, JITTERS[whole(mix(seed, 9), 0, 2)] ?? 0);
  const series = pause === null ? plain : withPause(plain, pause);
  return {
    deviceId: `d${String(index).padStart(5, '0')}`,
    isSilent,
    intervalMs,
    ...series,
    seenAt: (atMs) => series.timeOf(series.newestAt(isLying ? Math.min(atMs, -DAY_MS) : atMs)),
  };
}

type Series = Pick<Device, 'newestAt' | 'timeOf'>;

function createSeries(seed: Seed, intervalMs: number, jitter: number): Series {
  const phaseMs = unit(mix(seed, -1)) * intervalMs;
  const timeOf = (reading: number): number =>
    Math.round(phaseMs + (reading + jitter * (unit(mix(seed, reading + 2 ** 31)) - 0.5)) * intervalMs);
  return {
    timeOf,
    newestAt(atMs) {
      const guess = Math.floor((atMs - phaseMs) / intervalMs) + 1;
      if (timeOf(guess) <= atMs) return guess;
      return timeOf(guess - 1) <= atMs ? guess - 1 : guess - 2;
    },
  };
}

/** A series without the readings of a pause, numbered on without a gap. */
function withPause(series: Series, pause: { fromMs: number; toMs: number }): Series {
  const last = series.newestAt(pause.fromMs);
  const left = Number.isFinite(pause.toMs) ? series.newestAt(pause.toMs) - last : Number.POSITIVE_INFINITY;
  return {
    timeOf: (reading) =>
      reading <= last ? series.timeOf(reading) : left === Infinity ? Infinity : series.timeOf(reading + left),
    newestAt(atMs) {
      if (atMs <= pause.fromMs) return series.newestAt(atMs);
      return atMs < pause.toMs ? last : series.newestAt(atMs) - left;
    },
  };
}
