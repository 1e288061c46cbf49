/**
 * The second baseline, the bound: it has all readings, and at each instant of an even pace polls the device whose
 * answer lowers the summed lag most.
 *
 * It respects the schedule: it polls no device more often than that. Where more than a page is missing it requests the
 * oldest page, which lowers the lag most. Greedy is not best where pages fill: a device that fills pages fast is never
 * the most valuable one and needs ever more pages; so there is a second way, in which a full page goes first. The bound
 * is the better one of both.
 */
import { createHeap, dropSlot, type Heap, headKey, headSlot, putSlot } from '../../../src/scheduler/heap.ts';
import { PAGE } from './clients.ts';
import type { Device } from './fleet.ts';
import { type RunResult, resultOf } from './result.ts';
import { countAge, countAnew, type StoredReadings, storedFrom } from './stored-readings.ts';

export interface OracleOptions {
  readonly fleet: readonly Device[];
  readonly fromMs: number;
  readonly untilMs: number;
  /** When it may send. */
  readonly instantsMs: Float64Array;
  /** No device is polled again sooner than this. */
  readonly telemetryMs: number;
}

/** The better one of both ways. */
export function runOracle(options: OracleOptions): RunResult {
  const [greedy, fullFirst] = [runWay(options, false), runWay(options, true)];
  return greedy.meanAgeMs < fullFirst.meanAgeMs ? greedy : fullFirst;
}

type Heaps = Record<'resting' | 'whole' | 'filling' | 'over', Heap>;

function runWay({ fleet, fromMs, untilMs, instantsMs, telemetryMs }: OracleOptions, fullFirst: boolean): RunResult {
  const allStored = fleet.map((device) => storedFrom(device, 0, device.newestAt(0)));
  const heaps: Heaps = {
    /** When they may be polled again. */
    resting: createHeap(),
    /** Those that one page completes, by their oldest reading. */
    whole: createHeap(),
    /** The same ones, by when a page no longer does. */
    filling: createHeap(),
    /** Those that take more, by the age that one page saves, or by their oldest reading. */
    over: createHeap(),
  };
  const place = (slot: number): void => {
    const stored = allStored[slot];
    const oldestMs = stored?.device.timeOf(stored.low + 1) ?? Infinity;
    if (stored === undefined || !Number.isFinite(oldestMs)) return;
    putSlot(heaps.whole, slot, oldestMs);
    putSlot(heaps.filling, slot, stored.device.timeOf(stored.low + PAGE + (fullFirst ? 0 : 1)));
  };
  for (const slot of allStored.keys()) place(slot);
  let pages = 0;
  let isCounting = false;
  for (const nowMs of instantsMs) {
    if (!isCounting && nowMs >= fromMs) {
      for (const stored of allStored) countAnew(stored, nowMs);
      isCounting = true;
      pages = 0;
    }
    moveOn(heaps, { allStored, place, nowMs, fullFirst });
    const slot = bestOf(heaps, nowMs, fullFirst);
    const stored = allStored[slot];
    if (stored === undefined) continue;
    take(stored, nowMs);
    pages += 1;
    for (const heap of Object.values(heaps)) dropSlot(heap, slot);
    putSlot(heaps.resting, slot, nowMs + telemetryMs);
  }
  return resultOf(allStored, { requests: pages, pages, refused: 0 }, { fromMs, untilMs });
}

function moveOn(
  heaps: Heaps,
  about: { allStored: readonly StoredReadings[]; place: (slot: number) => void; nowMs: number; fullFirst: boolean },
): void {
  const { allStored, place, nowMs, fullFirst } = about;
  while (headKey(heaps.resting) <= nowMs) {
    const slot = headSlot(heaps.resting);
    dropSlot(heaps.resting, slot);
    place(slot);
  }
  while (headKey(heaps.filling) <= nowMs) {
    const slot = headSlot(heaps.filling);
    dropSlot(heaps.filling, slot);
    dropSlot(heaps.whole, slot);
    const stored = allStored[slot];
    if (stored === undefined) continue;
    const oldestMs = stored.device.timeOf(stored.low + 1);
    putSlot(heaps.over, slot, fullFirst ? oldestMs : oldestMs - stored.device.timeOf(stored.low + PAGE + 1));
  }
}

/** @returns the slot; -1 where nothing is to be had. */
function bestOf({ whole, over }: Heaps, nowMs: number, fullFirst: boolean): number {
  const savesWhole = nowMs - headKey(whole);
  if (over.size > 0 && (fullFirst || -headKey(over) >= savesWhole)) return headSlot(over);
  return savesWhole > 0 ? headSlot(whole) : -1;
}

function take(stored: StoredReadings, nowMs: number): void {
  countAge(stored, nowMs);
  const top = Math.min(stored.device.newestAt(nowMs), stored.low + PAGE);
  stored.carried += top - stored.low;
  Object.assign(stored, { low: top, high: top, gapEnd: top });
}
