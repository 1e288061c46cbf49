/**
 * What a run of a client comes to.
 */
import { countAge, type Held } from './holdings.ts';

export interface RunResult {
  readonly requests: number;
  /** Requests for telemetry that were answered. */
  readonly pages: number;
  readonly refused: number;
  /** Of the oldest reading that is not held, over all devices that report, in ms. */
  readonly meanAgeMs: number;
  readonly made: number;
  readonly carried: number;
  readonly lost: number;
  /** How much of an even distribution of what was carried was reached: 1 is all. */
  readonly evenness: number;
}

/** Sums up. @param untilMs when the run ended; it began at 0. */
export function resultOf(
  holdings: readonly Held[],
  counts: { requests: number; pages: number; refused: number },
  untilMs: number,
): RunResult {
  let area = 0;
  let devices = 0;
  const made: number[] = [];
  const carried: number[] = [];
  let lost = 0;
  for (const held of holdings) {
    countAge(held, untilMs);
    if (held.device.isSilent) continue;
    devices += 1;
    area += held.area;
    made.push(held.device.newestAt(untilMs) - held.device.newestAt(0));
    carried.push(held.carried);
    lost += held.lost;
  }
  const all = sum(carried);
  return {
    ...counts,
    meanAgeMs: area / Math.max(1, devices) / untilMs,
    made: sum(made),
    carried: all,
    lost,
    evenness: evennessOf(made, carried),
  };
}

/** The part of the carried readings that an even distribution would have carried as well. */
function evennessOf(made: readonly number[], carried: readonly number[]): number {
  const all = sum(carried);
  let low = 0;
  let high = Math.max(...made);
  for (let step = 0; step < 40; step += 1) {
    const middle = (low + high) / 2;
    if (sum(made.map((count) => Math.min(count, middle))) < all) low = middle;
    else high = middle;
  }
  return sum(carried.map((count, index) => Math.min(count, made[index] ?? 0, high))) / Math.max(1, all);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
