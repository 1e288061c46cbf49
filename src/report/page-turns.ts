/**
 * Device pages that are asked for at once. Each goes through a part of the archive, step by step; many side by side would
 * take their steps right after one another, and whoever waits for his turn would wait for all of them.
 *
 * Promises: between any two steps, of whichever page, everybody else has a turn, and the pages take their steps in rotation:
 * a small one does not wait for a large one. Who asks for what is under way already gets that one, so that no more is under
 * way than there is to ask for.
 */

import { createTurns } from '../core/async.ts';
import type { DevicePage, PageFacts } from '../core/page-facts.ts';
import type { Clock } from '../core/ports.ts';

/** Takes a step once nobody else takes one, and lets others have their turn after it. */
export type Step = <T>(work: () => T) => Promise<T>;

/** Nobody takes a step. */
export function createSteps({ sleep }: Pick<Clock, 'sleep'>): Step {
  const turns = createTurns();
  return async (work) => {
    const take = async (): Promise<ReturnType<typeof work>> => {
      const result = work();
      await sleep(1);
      return result;
    };
    // Whoever has asked may be gone: nobody tells here.
    return await turns('step', take, new AbortController().signal);
  };
}

/** The same, made once for those who ask while it is under way. */
export function madeOnce(make: PageFacts['device']): PageFacts['device'] {
  const underWay = new Map<string, Promise<DevicePage | null>>();
  return (deviceId, spanSeconds) => {
    const key = `${spanSeconds} ${deviceId}`;
    const same = underWay.get(key);
    if (same !== undefined) return same;
    const page = make(deviceId, spanSeconds).finally(() => underWay.delete(key));
    underWay.set(key, page);
    return page;
  };
}
