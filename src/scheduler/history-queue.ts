/**
 * The queue of missing history, breadth first: the last day of all devices, then their last week, then the rest.
 * Within each part the devices take turns, one page each. So a dashboard is useful within minutes for a fleet of any
 * size.
 */
import { createHeap, dropSlot, type Heap, hasSlot, headKey, headSlot, putSlot } from './heap.ts';

/** How far back from now a piece of history is. */
export const RECENCIES = ['day', 'week', 'rest'] as const;

export type Recency = (typeof RECENCIES)[number];

/** How much of each recency is wanted and not covered, in ms. No recency includes another. */
export type OpenHistory = Readonly<Record<Recency, number>>;

export const NOTHING_OPEN: OpenHistory = { day: 0, week: 0, rest: 0 };

/** The device to read next, and how far back. */
export interface HistoryPick {
  readonly deviceId: string;
  readonly recency: Recency;
}

interface Entry {
  readonly deviceId: string;
  readonly slot: number;
  open: OpenHistory;
  /** How many turns it has had at its current recency. */
  turns: number;
  recency: Recency | null;
  isPaused: boolean;
}

/** The devices with gaps. Only the functions of this file change it. */
export interface HistoryQueue {
  readonly entries: Map<string, Entry>;
  readonly bySlot: (Entry | undefined)[];
  readonly freeSlots: number[];
  /** Devices that may be requested, by the number of their turns. */
  readonly heaps: Readonly<Record<Recency, Heap>>;
  /** Resting devices, by the end of their rest. */
  readonly resting: Heap;
  /** The missing history of all devices together, in ms. */
  readonly openMs: Record<Recency, number>;
}

/** A queue in which nothing is open. */
export function createHistoryQueue(): HistoryQueue {
  return {
    entries: new Map(),
    bySlot: [],
    freeSlots: [],
    heaps: { day: createHeap(), week: createHeap(), rest: createHeap() },
    resting: createHeap(),
    openMs: { day: 0, week: 0, rest: 0 },
  };
}

/** Sets the missing history of a device; without any it is removed. */
export function setOpenHistory(queue: HistoryQueue, deviceId: string, open: OpenHistory): void {
  const entry = openEntry(queue, deviceId);
  count(queue, entry.open, open);
  entry.open = open;
  if (isDone(entry) && !entry.isPaused) remove(queue, entry);
  else enqueue(queue, entry);
}

/** Removes a device: no range of it is wanted any more. */
export function removeHistory(queue: HistoryQueue, deviceId: string): void {
  const entry = queue.entries.get(deviceId);
  if (entry !== undefined) remove(queue, entry);
}

/** Excludes a device while a request about it is under way. */
export function pauseHistory(queue: HistoryQueue, deviceId: string): void {
  const entry = queue.entries.get(deviceId);
  if (entry === undefined) return;
  entry.isPaused = true;
  enqueue(queue, entry);
}

/**
 * Makes a paused device eligible again.
 *
 * @param isAnswered whether it has had its turn; @param restMs the time before which it is not requested.
 */
export function releaseHistory(queue: HistoryQueue, deviceId: string, isAnswered: boolean, restMs?: number): void {
  const entry = queue.entries.get(deviceId);
  if (entry === undefined) return;
  entry.isPaused = false;
  if (isAnswered) entry.turns += 1;
  if (restMs !== undefined) putSlot(queue.resting, entry.slot, restMs);
  if (isDone(entry)) remove(queue, entry);
  else enqueue(queue, entry);
}

/** Makes a resting device eligible at once; nothing happens if it is not queued. */
export function endHistoryRest(queue: HistoryQueue, deviceId: string): void {
  const entry = queue.entries.get(deviceId);
  if (entry === undefined) return;
  dropSlot(queue.resting, entry.slot);
  enqueue(queue, entry);
}

/** Makes the devices eligible whose rest is over. */
export function admitRested(queue: HistoryQueue, nowMs: number): void {
  const { resting, bySlot } = queue;
  while (headKey(resting) <= nowMs) {
    const entry = bySlot[headSlot(resting)];
    dropSlot(resting, headSlot(resting));
    if (entry !== undefined) enqueue(queue, entry);
  }
}

/** The device whose turn it is, at the time of the last `admitRested`; `null` if there is none. */
export function pickHistory({ bySlot, heaps }: HistoryQueue): HistoryPick | null {
  for (const recency of RECENCIES) {
    const entry = bySlot[headSlot(heaps[recency])];
    if (entry !== undefined) return { deviceId: entry.deviceId, recency };
  }
  return null;
}

/** When the next resting device becomes eligible; infinite if none does. */
export function nextHistoryMs(queue: HistoryQueue): number {
  return headKey(queue.resting);
}

/** Returns the entry of a device, and adds it if there is none. */
function openEntry(queue: HistoryQueue, deviceId: string): Entry {
  const known = queue.entries.get(deviceId);
  if (known !== undefined) return known;
  const slot = queue.freeSlots.pop() ?? queue.bySlot.length;
  const entry: Entry = { deviceId, slot, open: NOTHING_OPEN, turns: 0, recency: null, isPaused: false };
  queue.entries.set(deviceId, entry);
  queue.bySlot[slot] = entry;
  return entry;
}

function isDone({ open }: Entry): boolean {
  return RECENCIES.every((recency) => open[recency] <= 0);
}

function enqueue({ heaps, resting }: HistoryQueue, entry: Entry): void {
  for (const recency of RECENCIES) dropSlot(heaps[recency], entry.slot);
  const at = RECENCIES.find((recency) => entry.open[recency] > 0) ?? null;
  if (at !== entry.recency) entry.turns = 0;
  entry.recency = at;
  if (at !== null && !entry.isPaused && !hasSlot(resting, entry.slot)) putSlot(heaps[at], entry.slot, entry.turns);
}

function count({ openMs }: HistoryQueue, before: OpenHistory, after: OpenHistory): void {
  for (const recency of RECENCIES) openMs[recency] += after[recency] - before[recency];
}

function remove(queue: HistoryQueue, entry: Entry): void {
  count(queue, entry.open, NOTHING_OPEN);
  for (const recency of RECENCIES) dropSlot(queue.heaps[recency], entry.slot);
  dropSlot(queue.resting, entry.slot);
  queue.entries.delete(entry.deviceId);
  queue.bySlot[entry.slot] = undefined;
  queue.freeSlots.push(entry.slot);
}
