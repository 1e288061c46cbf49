/**
 * The second baseline, the bound: it knows all readings, and at each paced instant asks the device whose answer lowers
 * the summed age most.
 *
 * It keeps the schedule as well: it asks no device more often than that. Where more than a page is missing it takes the
 * oldest page, which lowers the age most. Greedy is not best where pages fill: what fills fast is never worth most at
 * the moment and takes ever more pages; so there is a second way, in which a full page goes first. The bound is the
 * better one of both.
 */
import { createHeap, dropSlot, type Heap, headKey, headSlot, putSlot } from '../../../src/scheduler/heap.ts';
import { PAGE } from './clients.ts';
import type { Device } from './fleet.ts';
import { countAge, countAnew, type Held, hold } from './holdings.ts';
import { type RunResult, resultOf } from './result.ts';

export interface OracleOptions {
  readonly fleet: readonly Device[];
  readonly fromMs: number;
  readonly untilMs: number;
  /** When it may send. */
  readonly instantsMs: Float64Array;
  /** No device is asked again sooner than this. */
  readonly freshnessMs: number;
}

/** The better one of both ways. */
export function runOracle(options: OracleOptions): RunResult {
  const [greedy, fullFirst] = [runWay(options, false), runWay(options, true)];
  return greedy.meanAgeMs < fullFirst.meanAgeMs ? greedy : fullFirst;
}

type Heaps = Record<'resting' | 'whole' | 'filling' | 'over', Heap>;

function runWay({ fleet, fromMs, untilMs, instantsMs, freshnessMs }: OracleOptions, fullFirst: boolean): RunResult {
  const holdings = fleet.map((device) => hold(device, 0, device.newestAt(0)));
  const heaps: Heaps = {
    /** By when they may be asked again. */
    resting: createHeap(),
    /** Those that one page makes whole, by their oldest reading. */
    whole: createHeap(),
    /** The same ones, by when a page no longer does. */
    filling: createHeap(),
    /** Those that take more, by the age that one page saves, or by their oldest reading. */
    over: createHeap(),
  };
  const place = (slot: number): void => {
    const held = holdings[slot];
    const oldestMs = held?.device.timeOf(held.low + 1) ?? Infinity;
    if (held === undefined || !Number.isFinite(oldestMs)) return;
    putSlot(heaps.whole, slot, oldestMs);
    putSlot(heaps.filling, slot, held.device.timeOf(held.low + PAGE + (fullFirst ? 0 : 1)));
  };
  for (const slot of holdings.keys()) place(slot);
  let pages = 0;
  let isCounting = false;
  for (const nowMs of instantsMs) {
    if (!isCounting && nowMs >= fromMs) {
      for (const held of holdings) countAnew(held, nowMs);
      isCounting = true;
      pages = 0;
    }
    moveOn(heaps, { holdings, place, nowMs, fullFirst });
    const slot = bestOf(heaps, nowMs, fullFirst);
    const held = holdings[slot];
    if (held === undefined) continue;
    take(held, nowMs);
    pages += 1;
    for (const heap of Object.values(heaps)) dropSlot(heap, slot);
    putSlot(heaps.resting, slot, nowMs + freshnessMs);
  }
  return resultOf(holdings, { requests: pages, pages, refused: 0 }, { fromMs, untilMs });
}

function moveOn(
  heaps: Heaps,
  about: { holdings: readonly Held[]; place: (slot: number) => void; nowMs: number; fullFirst: boolean },
): void {
  const { holdings, place, nowMs, fullFirst } = about;
  while (headKey(heaps.resting) <= nowMs) {
    const slot = headSlot(heaps.resting);
    dropSlot(heaps.resting, slot);
    place(slot);
  }
  while (headKey(heaps.filling) <= nowMs) {
    const slot = headSlot(heaps.filling);
    dropSlot(heaps.filling, slot);
    dropSlot(heaps.whole, slot);
    const held = holdings[slot];
    if (held === undefined) continue;
    const oldestMs = held.device.timeOf(held.low + 1);
    putSlot(heaps.over, slot, fullFirst ? oldestMs : oldestMs - held.device.timeOf(held.low + PAGE + 1));
  }
}

/** @returns the slot; -1 where nothing is to be had. */
function bestOf({ whole, over }: Heaps, nowMs: number, fullFirst: boolean): number {
  const savesWhole = nowMs - headKey(whole);
  if (over.size > 0 && (fullFirst || -headKey(over) >= savesWhole)) return headSlot(over);
  return savesWhole > 0 ? headSlot(whole) : -1;
}

function take(held: Held, nowMs: number): void {
  countAge(held, nowMs);
  const top = Math.min(held.device.newestAt(nowMs), held.low + PAGE);
  held.carried += top - held.low;
  Object.assign(held, { low: top, high: top, holeTo: top });
}
