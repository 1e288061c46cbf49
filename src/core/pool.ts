/**
 * Work on many things, a few at a time.
 */

/**
 * Runs `work` for each item, at most `width` at once, in their order. The first failure stops the taking of new items
 * and is thrown once those in hand have ended.
 */
export async function forEachAtOnce<T>(
  items: Iterable<T>,
  width: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = items[Symbol.iterator]();
  const failures: unknown[] = [];
  const worker = async (): Promise<void> => {
    for (let next = queue.next(); !next.done && failures.length === 0; next = queue.next()) {
      try {
        await work(next.value);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, width) }, worker));
  if (failures.length > 0) throw failures[0];
}
