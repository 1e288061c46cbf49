/**
 * The newest ends of all devices, in the order in which they are worth a request (design 2.4).
 *
 * A device waits until its freshness target is due; then it is ready, the one with the oldest reading first. Where its
 * page fills before its turn has come it goes before those, among several full ones the one that was asked longest
 * ago: so where the allowance cannot carry all readings, every device gets its newest page in turn. What is quiet waits
 * for its sweep. Each change takes a few steps in heaps, whatever the number of devices.
 */

import { DAY_MS } from '../core/time.ts';
import {
  type Hole,
  lookEveryMs,
  NEVER_MS,
  newTail,
  type StandingRules,
  standingOf,
  stopOf,
  type Tail,
  turnOf,
} from './device-outlook.ts';
import { createSlotHeap } from './heap.ts';
import { noteAnswer, noteFailure, noteListed, type TailAnswer } from './planner-notes.ts';
import type { ReportRate } from './report-rate.ts';

/** What is known of a device from before a restart. */
export interface HeldTail {
  readonly newestMs: number | null;
  readonly askedMs: number | null;
  readonly rate: ReportRate;
  /** What is missing below the newest stretch. */
  readonly hole?: Hole | null;
}

/** A device as a listing has it. */
export interface ListedTail {
  readonly deviceId: string;
  /** `last_seen_at`; `null` where the listing says none. */
  readonly seenMs: number | null;
  /** Whether its life cycle lets readings be expected: a paused, shelved or retired one is asked by hint and sweep only. */
  readonly isActive: boolean;
}

/** The device that is worth a request most. */
export interface TailPick {
  readonly deviceId: string;
  /** How old its oldest reading is that is not held, in ms; infinite where it was never asked. */
  readonly ageMs: number;
  /** Where the request should stop; `null`: at the newest reading. */
  readonly untilMs: number | null;
}

export interface Tails {
  /** Takes in how the rules stand now. */
  setRules(rules: StandingRules): void;
  /** Takes in whether the listing fails for so long that it tells nothing: what is quiet is looked for without it. */
  setUnlisted(is: boolean): void;
  held(deviceId: string, held: HeldTail): void;
  /** @returns whether a quiet device turns out to have spoken. */
  listed(device: ListedTail, nowMs: number): boolean;
  /** It is gone, as was seen now: it is looked at daily. */
  gone(deviceId: string, nowMs: number): void;
  /** Nothing of it is known any more. */
  left(deviceId: string): void;
  began(deviceId: string): void;
  landed(deviceId: string, answer: TailAnswer, nowMs: number): void;
  /** It could not be asked by a fault of its own. @returns until when it rests. */
  failed(deviceId: string, nowMs: number): number;
  /** It could not be asked, or was asked about something else: everything stands as before. */
  released(deviceId: string): void;
  live(nowMs: number): TailPick | null;
  /** The quiet device whose sweep is due. */
  sweep(nowMs: number): string | null;
  /** When the next one becomes ready by itself, and when the next one is due for its sweep; infinite where none will. */
  nextLiveMs(): number;
  nextSweepMs(): number;
  /** Readings that the devices which speak make, per ms. */
  readingsPerMs(): number;
  /** From reading to reading, of each device that speaks and whose rate is known. */
  speakingMs(): readonly number[];
  /** Devices that speak, as far as is known, at a rate that is not; and those that do not. */
  unknown(): number;
  quiet(): number;
  /** How many wait for their turn now. */
  ready(): number;
  size(): number;
  droppedHints(): number;
  steps(): number;
}

/** A device that is gone is looked at this often. */
const LOOK_MS = DAY_MS;
/** So many devices are moved on in one look at most: after a start all are due at once, and no decision takes long. */
const MOVES = 200;

/** No devices. */
export function createTails(first: StandingRules): Tails {
  let rules = first;
  let isUnlisted = false;
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
    /** By their turn. */
    full: createSlotHeap(),
    /** The quiet ones, by when their sweep is due. */
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
  const wait = (tail: Tail): void => {
    const standing = standingOf(tail, rules);
    const everyMs = isUnlisted ? lookEveryMs(tail, rules) : rules.sweepMs;
    const sweepMs = tail.askedMs + (tail.isGone ? LOOK_MS : everyMs);
    if (standing === null) heaps.quiet.put(tail.slot, Math.max(sweepMs, tail.restMs));
    else heaps.waiting.put(tail.slot, Math.min(standing.dueMs, standing.fullMs));
  };
  const place = (tail: Tail): void => {
    for (const heap of everyHeap) heap.drop(tail.slot);
    rates.set(tail.slot, tail.isQuiet || tail.isGone ? null : tail.rate.intervalMs);
    if (!tail.isUnderWay) wait(tail);
  };
  const moveOn = (tail: Tail, nowMs: number): void => {
    const standing = standingOf(tail, rules);
    heaps.waiting.drop(tail.slot);
    if (standing === null || Math.min(standing.dueMs, standing.fullMs) > nowMs) {
      wait(tail);
      return;
    }
    heaps.ready.put(tail.slot, standing.oldestMs);
    heaps.filling.put(tail.slot, standing.fullMs);
  };
  /** Moves on those whose time has come. */
  const advance = (nowMs: number): void => {
    for (let moves = 0; moves < MOVES && heaps.waiting.headKey() <= nowMs; moves += 1) {
      const tail = bySlot[heaps.waiting.head()];
      if (tail !== undefined) moveOn(tail, nowMs);
    }
    for (let moves = 0; moves < MOVES && heaps.filling.headKey() <= nowMs; moves += 1) {
      const slot = heaps.filling.head();
      const tail = bySlot[slot];
      heaps.filling.drop(slot);
      heaps.ready.drop(slot);
      if (tail !== undefined) heaps.full.put(slot, turnOf(tail, rules));
    }
  };
  const change = <T>(deviceId: string, work: (tail: Tail) => T): T => {
    const tail = tailOf(deviceId);
    const result = work(tail);
    place(tail);
    return result;
  };

  return {
    setRules(next) {
      rules = next;
      for (const tail of tails.values()) place(tail);
    },
    setUnlisted(is) {
      if (is === isUnlisted) return;
      isUnlisted = is;
      for (const tail of tails.values()) place(tail);
    },
    held(deviceId, { newestMs, askedMs, rate, hole = null }) {
      change(deviceId, (tail) => {
        Object.assign(tail, { newestMs: newestMs ?? NEVER_MS, askedMs: askedMs ?? NEVER_MS, rate, hole });
        Object.assign(tail, { isGone: false, isQuiet: false, failures: 0, restMs: NEVER_MS });
      });
    },
    listed: ({ deviceId, seenMs, isActive }, nowMs) =>
      change(deviceId, (tail) => {
        tail.isActive = isActive;
        return noteListed(tail, seenMs, nowMs);
      }),
    gone(deviceId, nowMs) {
      change(deviceId, (tail) => {
        Object.assign(tail, { isGone: true, isUnderWay: false, askedMs: nowMs, hole: null });
      });
    },
    left(deviceId) {
      const tail = tails.get(deviceId);
      if (tail === undefined) return;
      for (const heap of everyHeap) heap.drop(tail.slot);
      rates.set(tail.slot, null);
      tails.delete(deviceId);
      bySlot[tail.slot] = undefined;
      freeSlots.push(tail.slot);
    },
    began(deviceId) {
      // Of one that is asked for its history alone nothing else is wanted.
      if (!tails.has(deviceId)) return;
      change(deviceId, (tail) => {
        tail.isUnderWay = true;
      });
    },
    landed(deviceId, answer, nowMs) {
      // It may have left while it was being asked.
      if (!tails.has(deviceId)) return;
      change(deviceId, (tail) => {
        tail.isUnderWay = false;
        if (noteAnswer(tail, answer, nowMs)) droppedHints += 1;
      });
    },
    failed(deviceId, nowMs) {
      if (!tails.has(deviceId)) return nowMs;
      return change(deviceId, (tail) => {
        tail.isUnderWay = false;
        noteFailure(tail, nowMs);
        return tail.restMs;
      });
    },
    released(deviceId) {
      if (!tails.has(deviceId)) return;
      change(deviceId, (tail) => {
        tail.isUnderWay = false;
      });
    },
    live(nowMs) {
      advance(nowMs);
      const slot = heaps.full.size() > 0 ? heaps.full.head() : heaps.ready.head();
      const tail = bySlot[slot];
      if (tail === undefined) return null;
      const oldestMs = standingOf(tail, rules)?.oldestMs ?? nowMs;
      const isNew = tail.newestMs === NEVER_MS && tail.hole === null;
      const ageMs = isNew ? Number.POSITIVE_INFINITY : nowMs - oldestMs;
      return { deviceId: tail.deviceId, ageMs, untilMs: stopOf(tail, rules, nowMs) };
    },
    sweep: (nowMs) => (heaps.quiet.headKey() <= nowMs ? (bySlot[heaps.quiet.head()]?.deviceId ?? null) : null),
    nextLiveMs: heaps.waiting.headKey,
    nextSweepMs: heaps.quiet.headKey,
    readingsPerMs: rates.sum,
    speakingMs: () =>
      [...tails.values()].flatMap(({ rate, isQuiet, isGone }) => (isQuiet || isGone ? [] : (rate.intervalMs ?? []))),
    unknown: () =>
      countOf(tails.values(), ({ rate, isQuiet, isGone }) => !isQuiet && !isGone && rate.intervalMs === null),
    quiet: () => countOf(tails.values(), ({ isQuiet, isGone }) => isQuiet && !isGone),
    ready: () => heaps.ready.size() + heaps.full.size(),
    size: () => tails.size,
    droppedHints: () => droppedHints,
    steps: () => everyHeap.reduce((sum, heap) => sum + heap.steps(), 0),
  };
}

function countOf(tails: Iterable<Tail>, is: (tail: Tail) => boolean): number {
  let count = 0;
  for (const tail of tails) if (is(tail)) count += 1;
  return count;
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
