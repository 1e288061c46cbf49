/**
 * What of history is still open, breadth first: a page of the last day of each device in turn until all have it, then
 * the week, then the rest (design 2.4): a dashboard is useful within minutes, whatever the number of devices.
 */
import { createSlotHeap } from './heap.ts';

/** How far back a piece of history reaches from now. */
export const REACHES = ['day', 'week', 'rest'] as const;

export type Reach = (typeof REACHES)[number];

/** How much of each stretch is wanted and not held, in ms, each without the one before. */
export type OpenHistory = Readonly<Record<Reach, number>>;

export interface HistoryPick {
  readonly deviceId: string;
  readonly reach: Reach;
}

export interface HistoryQueue {
  /** Takes in what is open of a device now; nothing: it is done. */
  open(deviceId: string, open: OpenHistory): void;
  gone(deviceId: string): void;
  /** Leaves a device out while a request about it is under way. */
  hold(deviceId: string): void;
  /** Lets it in again. @param isAnswered whether it has had its turn; @param restMs not before that time. */
  release(deviceId: string, isAnswered: boolean, restMs?: number): void;
  next(nowMs: number): HistoryPick | null;
  /** When one that rests is let in; infinite where none does. */
  nextMs(): number;
  /** What is open, in ms, of all devices together. */
  openMs(): OpenHistory;
  steps(): number;
}

interface Entry {
  readonly deviceId: string;
  readonly slot: number;
  open: OpenHistory;
  /** Turns it has had in the stretch that it is at. */
  turns: number;
  reach: Reach | null;
  isHeld: boolean;
}

const NOTHING: OpenHistory = { day: 0, week: 0, rest: 0 };

/** A queue in which nothing is open. */
export function createHistoryQueue(): HistoryQueue {
  const entries = new Map<string, Entry>();
  const bySlot: (Entry | undefined)[] = [];
  const free: number[] = [];
  const heaps = { day: createSlotHeap(), week: createSlotHeap(), rest: createSlotHeap() };
  /** Those that could not be asked, by when they may be again. */
  const resting = createSlotHeap();
  const total: Record<Reach, number> = { day: 0, week: 0, rest: 0 };

  const entryOf = (deviceId: string): Entry => {
    const known = entries.get(deviceId);
    if (known !== undefined) return known;
    const slot = free.pop() ?? bySlot.length;
    const entry: Entry = { deviceId, slot, open: NOTHING, turns: 0, reach: null, isHeld: false };
    entries.set(deviceId, entry);
    bySlot[slot] = entry;
    return entry;
  };
  const place = (entry: Entry): void => {
    for (const reach of REACHES) heaps[reach].drop(entry.slot);
    const at = REACHES.find((reach) => entry.open[reach] > 0) ?? null;
    if (at !== entry.reach) entry.turns = 0;
    entry.reach = at;
    if (at !== null && !entry.isHeld && !resting.has(entry.slot)) heaps[at].put(entry.slot, entry.turns);
  };
  const count = (before: OpenHistory, after: OpenHistory): void => {
    for (const reach of REACHES) total[reach] += after[reach] - before[reach];
  };
  const remove = (entry: Entry): void => {
    count(entry.open, NOTHING);
    for (const reach of REACHES) heaps[reach].drop(entry.slot);
    resting.drop(entry.slot);
    entries.delete(entry.deviceId);
    bySlot[entry.slot] = undefined;
    free.push(entry.slot);
  };

  return {
    open(deviceId, open) {
      const entry = entryOf(deviceId);
      count(entry.open, open);
      entry.open = open;
      if (REACHES.every((reach) => open[reach] <= 0) && !entry.isHeld) remove(entry);
      else place(entry);
    },
    gone(deviceId) {
      const entry = entries.get(deviceId);
      if (entry !== undefined) remove(entry);
    },
    hold(deviceId) {
      const entry = entries.get(deviceId);
      if (entry === undefined) return;
      entry.isHeld = true;
      place(entry);
    },
    release(deviceId, isAnswered, restMs) {
      const entry = entries.get(deviceId);
      if (entry === undefined) return;
      entry.isHeld = false;
      if (isAnswered) entry.turns += 1;
      if (restMs !== undefined) resting.put(entry.slot, restMs);
      if (REACHES.every((reach) => entry.open[reach] <= 0)) remove(entry);
      else place(entry);
    },
    next(nowMs) {
      while (resting.headKey() <= nowMs) {
        const entry = bySlot[resting.head()];
        resting.drop(resting.head());
        if (entry !== undefined) place(entry);
      }
      for (const reach of REACHES) {
        const entry = bySlot[heaps[reach].head()];
        if (entry !== undefined) return { deviceId: entry.deviceId, reach };
      }
      return null;
    },
    nextMs: resting.headKey,
    openMs: () => ({ ...total }),
    steps: () => REACHES.reduce((sum, reach) => sum + heaps[reach].steps(), 0),
  };
}
