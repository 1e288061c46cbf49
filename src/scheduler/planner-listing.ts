/**
 * How often the list of devices is read (design 2.4: that is part of the optimum).
 *
 * A listing costs a request for every 200 devices. What it brings is that quiet devices which speak again are noticed,
 * in the mean after half the time between two listings. With `s` such devices in a time and a listing every `L`, that
 * comes to `s * L² / 6` of age; a request spent on live work instead would save `T² / 2`, where `T` is the age that
 * devices are asked at. The sum of both is least at `L³ = 1.5 * pages * T² / s`. While there is allowance to spare, a
 * request costs nothing, and the list is read as often as devices are looked at.
 */
import { DAY_MS, HOUR_MS } from '../core/time.ts';

/** New devices have to appear some time. */
const LONGEST_MS = DAY_MS;
/** Nothing is known yet of how often quiet devices speak: so many of all a day. */
export const PRIOR_SURPRISES_A_DAY = 0.02;
/** A listing changes what is known of that by this part. */
const LEARN = 0.3;

/** Requests that a list of so many devices takes. */
export function listPages(devices: number, pageSize: number): number {
  return Math.max(1, Math.ceil(devices / pageSize));
}

/**
 * The time between two listings that is worth its requests, in ms.
 *
 * @param input `ageMs`: the age at which devices are asked; `surprisesPerMs`: of all devices together; `leastMs`: what
 * the schedules ask for.
 */
export function listEveryMs(input: {
  devices: number;
  pageSize: number;
  ageMs: number;
  surprisesPerMs: number;
  leastMs: number;
}): number {
  const { devices, pageSize, ageMs, surprisesPerMs, leastMs } = input;
  const best = Math.cbrt((1.5 * listPages(devices, pageSize) * ageMs ** 2) / surprisesPerMs);
  return Math.max(leastMs, Math.min(best, LONGEST_MS));
}

/** How many quiet devices speak again. */
export interface Surprises {
  /** Takes in a device that a listing has surprised with. */
  note(): void;
  /** Takes in that a listing is complete. */
  listed(nowMs: number, devices: number): void;
  perMs(devices: number): number;
}

export function createSurprises(): Surprises {
  let count = 0;
  let listedMs: number | null = null;
  let learnt: number | null = null;
  const prior = (devices: number): number => Math.max(1, devices * PRIOR_SURPRISES_A_DAY) / DAY_MS;
  return {
    note() {
      count += 1;
    },
    listed(nowMs, devices) {
      const before = learnt ?? prior(devices);
      // The first listing finds everything for the first time. None between two listings is no proof of none ever.
      if (listedMs !== null && nowMs > listedMs) {
        const seen = (count + 0.5) / (nowMs - listedMs + HOUR_MS);
        learnt = before + (seen - before) * LEARN;
      }
      listedMs = nowMs;
      count = 0;
    },
    perMs: (devices) => learnt ?? prior(devices),
  };
}
