/**
 * A binary heap of numbered items, each with a key. The item with the smallest key is on top; any item can be moved
 * or removed.
 *
 * The planner keeps its devices in heaps: reading the top takes one step, changing one device of ten thousand takes
 * about a dozen. Typed arrays keep an item at 20 bytes. Items are whole numbers from 0 on, ideally without gaps.
 */

/** A heap of slots by their keys. Only the functions of this file change it. */
export interface Heap {
  /** The slots in heap order, the place of each slot in that order, and the key of each slot. */
  slots: Int32Array;
  places: Int32Array;
  keys: Float64Array;
  size: number;
  /** How many steps all changes have taken so far. Tests measure this instead of time. */
  steps: number;
}

const FIRST_CAPACITY = 64;
const ABSENT = -1;

/** Creates a heap that holds no slot. */
export function createHeap(): Heap {
  return {
    slots: new Int32Array(FIRST_CAPACITY),
    places: new Int32Array(FIRST_CAPACITY).fill(ABSENT),
    keys: new Float64Array(FIRST_CAPACITY),
    size: 0,
    steps: 0,
  };
}

/** Whether a slot is in the heap. */
export function hasSlot(heap: Heap, slot: number): boolean {
  return heapIndex(heap, slot) !== ABSENT;
}

/** The slot with the smallest key, and of equal keys the lowest slot; -1 if the heap is empty. */
export function headSlot(heap: Heap): number {
  return heap.size === 0 ? ABSENT : slotAt(heap, 0);
}

/** The smallest key; infinity if the heap is empty. */
export function headKey(heap: Heap): number {
  return heap.size === 0 ? Number.POSITIVE_INFINITY : keyAt(heap, 0);
}

/** Adds a slot, or changes its key. */
export function putSlot(heap: Heap, slot: number, key: number): void {
  grow(heap, slot);
  const isNew = heapIndex(heap, slot) === ABSENT;
  heap.keys[slot] = key;
  if (isNew) {
    set(heap, heap.size, slot);
    heap.size += 1;
  }
  siftUp(heap, heapIndex(heap, slot));
  sink(heap, heapIndex(heap, slot));
}

/** Removes a slot, if it is in the heap. */
export function dropSlot(heap: Heap, slot: number): void {
  const place = heapIndex(heap, slot);
  if (place === ABSENT) return;
  heap.size -= 1;
  const last = slotAt(heap, heap.size);
  heap.places[slot] = ABSENT;
  if (last === slot) return;
  set(heap, place, last);
  siftUp(heap, place);
  sink(heap, heapIndex(heap, last));
}

function slotAt(heap: Heap, place: number): number {
  return heap.slots[place] ?? ABSENT;
}

function heapIndex(heap: Heap, slot: number): number {
  return heap.places[slot] ?? ABSENT;
}

function keyAt(heap: Heap, place: number): number {
  return heap.keys[slotAt(heap, place)] ?? Number.POSITIVE_INFINITY;
}

function isBefore(heap: Heap, a: number, b: number): boolean {
  const [keyA, keyB] = [keyAt(heap, a), keyAt(heap, b)];
  if (keyA < keyB) return true;
  return !(keyA > keyB) && slotAt(heap, a) < slotAt(heap, b);
}

function set(heap: Heap, place: number, slot: number): void {
  heap.slots[place] = slot;
  heap.places[slot] = place;
}

function swap(heap: Heap, a: number, b: number): void {
  const slot = slotAt(heap, a);
  set(heap, a, slotAt(heap, b));
  set(heap, b, slot);
  heap.steps += 1;
}

function siftUp(heap: Heap, from: number): void {
  let place = from;
  while (place > 0) {
    const parent = (place - 1) >> 1;
    if (!isBefore(heap, place, parent)) return;
    swap(heap, place, parent);
    place = parent;
  }
}

function sink(heap: Heap, from: number): void {
  let place = from;
  for (;;) {
    const left = 2 * place + 1;
    if (left >= heap.size) return;
    const least = left + 1 < heap.size && isBefore(heap, left + 1, left) ? left + 1 : left;
    if (!isBefore(heap, least, place)) return;
    swap(heap, place, least);
    place = least;
  }
}

function grow(heap: Heap, slot: number): void {
  let capacity = heap.slots.length;
  if (slot < capacity) return;
  while (capacity <= slot) capacity *= 2;
  const { slots, places, keys } = heap;
  heap.slots = new Int32Array(capacity);
  heap.slots.set(slots);
  heap.places = new Int32Array(capacity).fill(ABSENT);
  heap.places.set(places);
  heap.keys = new Float64Array(capacity);
  heap.keys.set(keys);
}
