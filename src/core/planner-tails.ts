/**
 * The newest ends of all devices, in the order in which they are worth a request (design 2.4).
 *
 * A device waits until its freshness target is due; then it is ready, the one with the oldest reading first. Where its
 * page fills before its turn has come it goes before those, and among several full ones the one that was asked longest
 * ago: so where the allowance cannot carry all readings, every device gets its newest page in turn. What is quiet waits
 * for its sweep. Each change takes a few steps in heaps, whatever the number of devices.
 */

import {
  NEVER_MS,
  newTail,
  noteAnswer,
  noteListed,
  type StandingRules,
  standingOf,
  type Tail,
  type TailAnswer,
} from './planner-tail.ts';
import type { ReportRate } from './report-rate.ts';
import { createSlotHeap } from './slot-heap.ts';

/** What is known of a device from before a restart. */
export interface HeldTail {
  readonly newestMs: number | null;
  readonly askedMs: number | null;
  readonly rate: ReportRate;
}

/** The device that is worth a request most. */
export interface TailPick {
  readonly deviceId: string;
  /** How old its oldest reading is that is not held, in ms; infinite where it was never asked. */
  readonly ageMs: number;
}

export interface Tails {
  /** Takes in how the rules stand now; what they change is looked at as each device comes up. */
  setRules(rules: StandingRules): void;
  held(deviceId: string, held: HeldTail): void;
  /** @returns whether a quiet device turns out to have spoken. */
  listed(deviceId: string, seenMs: number | null, nowMs: number): boolean;
  gone(deviceId: string): void;
  sent(deviceId: string): void;
  /** @returns whether the hint was proven wrong. */
  landed(deviceId: string, answer: TailAnswer, nowMs: number): boolean;
  /** It could not be asked, or was asked about something else: everything stands as before. */
  released(deviceId: string): void;
  live(nowMs: number): TailPick | null;
  /** The quiet device whose sweep is due. */
  sweep(nowMs: number): string | null;
  /** When the next one becomes ready or due for its sweep by itself; infinite where none will. */
  nextMs(): number;
  /** Readings that the devices which speak make, per ms. */
  readingsPerMs(): number;
  /** All devices. */
  all(): Iterable<Tail>;
  size(): number;
  droppedHints(): number;
  steps(): number;
}

/** No devices. */
export function createTails(first: StandingRules): Tails {
  let rules = first;
  const tails = new Map<string, Tail>();
  const bySlot: (Tail | undefined)[] = [];
  const freeSlots: number[] = [];
  const heaps = {
    /** By when they become ready or full. */
    waiting: createSlotHeap(),
    /** By their oldest reading; the same ones are in `filling`. */
    ready: createSlotHeap(),
    /** By when their page is full. */
    filling: createSlotHeap(),
    /** By when they were asked. */
    full: createSlotHeap(),
    /** The quiet ones, by when they were asked. */
    quiet: createSlotHeap(),
  };
  const everyHeap = Object.values(heaps);
  const rates = createRateSum();
  let droppedHints = 0;

  const tailOf = (deviceId: string): Tail => {
    const known = tails.get(deviceId);
    if (known !== undefined) return known;
    const tail = newTail(deviceId, freeSlots.pop() ?? bySlot.length);
    tails.set(deviceId, tail);
    bySlot[tail.slot] = tail;
    return tail;
  };
  const place = (tail: Tail): void => {
    for (const heap of everyHeap) heap.drop(tail.slot);
    rates.set(tail.slot, tail.isQuiet ? null : tail.rate.intervalMs);
    if (tail.isUnderWay) return;
    const standing = standingOf(tail, rules);
    if (standing === null) heaps.quiet.put(tail.slot, tail.askedMs);
    else heaps.waiting.put(tail.slot, Math.min(standing.dueMs, standing.fullMs));
  };
  /** Moves on those whose time has come. */
  const advance = (nowMs: number): void => {
    while (heaps.waiting.headKey() <= nowMs) {
      const { slot, standing } = takeHead(heaps.waiting);
      if (standing === null) heaps.quiet.put(slot, bySlot[slot]?.askedMs ?? NEVER_MS);
      else if (Math.min(standing.dueMs, standing.fullMs) > nowMs) {
        heaps.waiting.put(slot, Math.min(standing.dueMs, standing.fullMs));
      } else {
        heaps.ready.put(slot, standing.oldestMs);
        heaps.filling.put(slot, standing.fullMs);
      }
    }
    while (heaps.filling.headKey() <= nowMs) {
      const { slot } = takeHead(heaps.filling);
      heaps.ready.drop(slot);
      heaps.full.put(slot, bySlot[slot]?.askedMs ?? NEVER_MS);
    }
  };
  const takeHead = (heap: typeof heaps.waiting) => {
    const slot = heap.head();
    heap.drop(slot);
    const tail = bySlot[slot];
    return { slot, standing: tail === undefined ? null : standingOf(tail, rules) };
  };
  const change = <T>(deviceId: string, work: (tail: Tail) => T): T => {
    const tail = tailOf(deviceId);
    const result = work(tail);
    place(tail);
    return result;
  };

  return {
    setRules(next) {
      const isOther = next.staleMs !== rules.staleMs || next.fill !== rules.fill;
      rules = next;
      if (isOther) for (const tail of tails.values()) place(tail);
    },
    held(deviceId, { newestMs, askedMs, rate }) {
      change(deviceId, (tail) =>
        Object.assign(tail, { newestMs: newestMs ?? NEVER_MS, askedMs: askedMs ?? NEVER_MS, rate }),
      );
    },
    listed: (deviceId, seenMs, nowMs) => change(deviceId, (tail) => noteListed(tail, seenMs, nowMs)),
    gone(deviceId) {
      const tail = tails.get(deviceId);
      if (tail === undefined) return;
      for (const heap of everyHeap) heap.drop(tail.slot);
      rates.set(tail.slot, null);
      tails.delete(deviceId);
      bySlot[tail.slot] = undefined;
      freeSlots.push(tail.slot);
    },
    sent: (deviceId) =>
      change(deviceId, (tail) => {
        tail.isUnderWay = true;
      }),
    landed: (deviceId, answer, nowMs) =>
      change(deviceId, (tail) => {
        tail.isUnderWay = false;
        const isWrong = noteAnswer(tail, answer, nowMs);
        if (isWrong) droppedHints += 1;
        return isWrong;
      }),
    released: (deviceId) =>
      change(deviceId, (tail) => {
        tail.isUnderWay = false;
      }),
    live(nowMs) {
      advance(nowMs);
      const slot = heaps.full.size() > 0 ? heaps.full.head() : heaps.ready.head();
      const tail = bySlot[slot];
      if (tail === undefined) return null;
      const oldestMs = standingOf(tail, rules)?.oldestMs ?? nowMs;
      return {
        deviceId: tail.deviceId,
        ageMs: tail.newestMs === NEVER_MS ? Number.POSITIVE_INFINITY : nowMs - oldestMs,
      };
    },
    sweep: (nowMs) =>
      heaps.quiet.headKey() + rules.sweepMs <= nowMs ? (bySlot[heaps.quiet.head()]?.deviceId ?? null) : null,
    nextMs: () => Math.min(heaps.waiting.headKey(), heaps.quiet.headKey() + rules.sweepMs),
    readingsPerMs: rates.sum,
    all: () => tails.values(),
    size: () => tails.size,
    droppedHints: () => droppedHints,
    steps: () => everyHeap.reduce((sum, heap) => sum + heap.steps(), 0),
  };
}

/** The sum of the rates of all slots, kept up to date without adding them all up. */
function createRateSum() {
  const rates: number[] = [];
  let sum = 0;
  return {
    set(slot: number, intervalMs: number | null): void {
      const next = intervalMs === null || intervalMs <= 0 ? 0 : 1 / intervalMs;
      sum += next - (rates[slot] ?? 0);
      rates[slot] = next;
    },
    sum: (): number => Math.max(0, sum),
  };
}
