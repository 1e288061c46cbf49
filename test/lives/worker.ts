/**
 * Runs stories in a thread of its own: receives seeds, one at a time, and answers with each result.
 */
import { parentPort } from 'node:worker_threads';
import { drawStory } from './draw.ts';
import { liveStory } from './live.ts';
import type { SeedOrder, SeedResult } from './pool.ts';
import { without } from './story.ts';

parentPort?.on('message', ({ seed, leftOut }: SeedOrder) => {
  const story = without(drawStory(seed), leftOut);
  const beganMs = performance.now();
  void liveStory(story)
    .catch((error: unknown) => ({ wrong: [String(error)], sums: null }))
    .then(({ wrong, sums }) => {
      const result: SeedResult = { seed, wrong, sums, tookMs: Math.round(performance.now() - beganMs) };
      parentPort?.postMessage(result);
    });
});
