/**
 * A heap of numbered things, each with a key: the one with the least key is at hand, any one can be moved or taken out.
 *
 * What the planner keeps its devices in: looking costs nothing, changing one of ten thousand a dozen steps. Typed arrays
 * keep it at 20 bytes for each thing.
 */

export interface SlotHeap {
  size(): number;
  has(slot: number): boolean;
  /** The slot with the least key, of equal ones the lowest; -1 where the heap is empty. */
  head(): number;
  /** The least key; infinity where the heap is empty. */
  headKey(): number;
  /** Puts a slot in, or moves it to another key. */
  put(slot: number, key: number): void;
  /** Takes a slot out, where it is in. */
  drop(slot: number): void;
  /** How many steps all changes have taken so far: what tests measure instead of time. */
  steps(): number;
}

const FIRST_CAPACITY = 64;
const ABSENT = -1;

/** An empty heap. Slots are whole numbers from 0 on, best without gaps. */
export function createSlotHeap(): SlotHeap {
  let slots = new Int32Array(FIRST_CAPACITY);
  let places = new Int32Array(FIRST_CAPACITY).fill(ABSENT);
  let keys = new Float64Array(FIRST_CAPACITY);
  let size = 0;
  let steps = 0;

  const slotAt = (place: number): number => slots[place] ?? ABSENT;
  const placeOf = (slot: number): number => places[slot] ?? ABSENT;
  const keyAt = (place: number): number => keys[slotAt(place)] ?? Number.POSITIVE_INFINITY;
  const isBefore = (a: number, b: number): boolean => {
    const difference = keyAt(a) - keyAt(b);
    // Keys may be infinite, whose difference is no number.
    if (keyAt(a) === keyAt(b) || Number.isNaN(difference)) return slotAt(a) < slotAt(b);
    return difference < 0;
  };
  const set = (place: number, slot: number): void => {
    slots[place] = slot;
    places[slot] = place;
  };
  const swap = (a: number, b: number): void => {
    const slot = slotAt(a);
    set(a, slotAt(b));
    set(b, slot);
    steps += 1;
  };
  const rise = (from: number): void => {
    let place = from;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!isBefore(place, parent)) return;
      swap(place, parent);
      place = parent;
    }
  };
  const sink = (from: number): void => {
    let place = from;
    for (;;) {
      const left = 2 * place + 1;
      if (left >= size) return;
      const least = left + 1 < size && isBefore(left + 1, left) ? left + 1 : left;
      if (!isBefore(least, place)) return;
      swap(place, least);
      place = least;
    }
  };
  const grow = (slot: number): void => {
    let capacity = slots.length;
    if (slot < capacity) return;
    while (capacity <= slot) capacity *= 2;
    const wider = { slots: new Int32Array(capacity), places: new Int32Array(capacity).fill(ABSENT) };
    wider.slots.set(slots);
    wider.places.set(places);
    const widerKeys = new Float64Array(capacity);
    widerKeys.set(keys);
    slots = wider.slots;
    places = wider.places;
    keys = widerKeys;
  };

  return {
    size: () => size,
    has: (slot) => placeOf(slot) !== ABSENT,
    head: () => (size === 0 ? ABSENT : slotAt(0)),
    headKey: () => (size === 0 ? Number.POSITIVE_INFINITY : keyAt(0)),
    put(slot, key) {
      grow(slot);
      const isNew = placeOf(slot) === ABSENT;
      keys[slot] = key;
      if (isNew) {
        set(size, slot);
        size += 1;
      }
      rise(placeOf(slot));
      sink(placeOf(slot));
    },
    drop(slot) {
      const place = placeOf(slot);
      if (place === ABSENT) return;
      size -= 1;
      const last = slotAt(size);
      places[slot] = ABSENT;
      if (last === slot) return;
      set(place, last);
      rise(place);
      sink(placeOf(last));
    },
    steps: () => steps,
  };
}
