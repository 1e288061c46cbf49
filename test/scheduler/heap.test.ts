/** The heap of devices: its order after arbitrary changes, and the steps of a change. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createHeap, dropSlot, hasSlot, headKey, headSlot, putSlot } from '../../src/scheduler/heap.ts';

const KEYS = fc.oneof(fc.integer({ min: -5, max: 5 }), fc.constantFrom(Infinity, -Infinity, 1.5));
const CHANGES = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('put' as const), slot: fc.nat(150), key: KEYS }),
    fc.record({ kind: fc.constant('drop' as const), slot: fc.nat(150) }),
  ),
  { maxLength: 400 },
);

/** The least key, of equal ones the lowest slot, by looking at all of them. */
function leastOf(model: ReadonlyMap<number, number>): [number, number] {
  const sorted = [...model].sort(([a, x], [b, y]) => (x === y ? a - b : x < y ? -1 : 1));
  const [slot, key] = sorted[0] ?? [-1, Infinity];
  return [slot, key];
}

describe('a heap of slots', () => {
  test('has the least key at hand, of equal ones the lowest slot, whatever was put in and taken out', () => {
    fc.assert(
      fc.property(CHANGES, (changes) => {
        const heap = createHeap();
        const model = new Map<number, number>();
        for (const change of changes) {
          if (change.kind === 'put') {
            putSlot(heap, change.slot, change.key);
            model.set(change.slot, change.key);
          } else {
            dropSlot(heap, change.slot);
            model.delete(change.slot);
          }
          expect([headSlot(heap), headKey(heap)]).toEqual(leastOf(model));
          expect(heap.size).toBe(model.size);
          expect(hasSlot(heap, change.slot)).toBe(model.has(change.slot));
        }
      }),
    );
  });

  test('a change of one of ten thousand takes a few steps', () => {
    const heap = createHeap();
    for (let slot = 0; slot < 10_000; slot += 1) putSlot(heap, slot, (slot * 7919) % 10_007);
    const before = heap.steps;
    for (let slot = 0; slot < 1000; slot += 1) putSlot(heap, slot, (slot * 31) % 10_007);
    expect((heap.steps - before) / 1000).toBeLessThan(14);
    const keys: number[] = [];
    while (heap.size > 0) {
      keys.push(headKey(heap));
      dropSlot(heap, headSlot(heap));
    }
    expect(keys).toHaveLength(10_000);
    expect(keys).toEqual(keys.toSorted((a, b) => a - b));
  });
});
