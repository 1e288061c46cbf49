/**
 * The result of a run of a client.
 */
import { countAge, type StoredReadings } from './stored-readings.ts';

const PAGE = 200;

export interface RunResult {
  readonly requests: number;
  /** Requests for telemetry that were answered. */
  readonly pages: number;
  readonly refused: number;
  /** The mean age of the oldest reading that is not stored, over all devices that report, in ms. */
  readonly meanAgeMs: number;
  readonly made: number;
  readonly carried: number;
  readonly lost: number;
  /**
   * How much of an even distribution of what was carried was reached: 1 is all. A device may be a page behind another,
   * as its page may not have been full, or its turn not have come.
   */
  readonly evenness: number;
}

/** The counts of a run. */
export interface Span {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** Sums up. */
export function resultOf(
  allStored: readonly StoredReadings[],
  counts: { requests: number; pages: number; refused: number },
  { fromMs, untilMs }: Span,
): RunResult {
  let area = 0;
  let devices = 0;
  const made: number[] = [];
  const carried: number[] = [];
  let lost = 0;
  for (const stored of allStored) {
    countAge(stored, untilMs);
    if (stored.device.isSilent) continue;
    devices += 1;
    area += stored.area;
    made.push(stored.device.newestAt(untilMs) - stored.device.newestAt(fromMs));
    carried.push(stored.carried);
    lost += stored.lost;
  }
  const all = sum(carried);
  return {
    ...counts,
    meanAgeMs: area / Math.max(1, devices) / (untilMs - fromMs),
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
  let high = made.reduce((most, count) => Math.max(most, count), 0);
  for (let step = 0; step < 40; step += 1) {
    const middle = (low + high) / 2;
    if (sum(made.map((count) => Math.min(count, middle))) < all) low = middle;
    else high = middle;
  }
  const behind = carried.map((count, index) => Math.max(0, Math.min(made[index] ?? 0, high) - count - PAGE));
  return 1 - sum(behind) / Math.max(1, all);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
