/**
 * One seed in twenty of the random histories with real processes: the built program, killed with SIGKILL at moments
 * that are drawn, then left alone once.
 */
import { expect, test } from 'vitest';
import { type KilledStory, liveKilled } from './killed-story.ts';

const SEEDS = Array.from({ length: 10 }, (_, index) => 20 * (index + 1));
/** Stories at once: each waits for its processes most of the time. */
const AT_ONCE = 2;
/** Kills in each story, and of all those that have hit a run after its first request. */
const LEAST_KILLS = 2;
const LEAST_MIDWAY = 15;
const LEAST_MEDIAN_VALUES = 5000;

test('real processes that are killed lose nothing, duplicate nothing and repeat no request', async () => {
  const stories: KilledStory[] = [];
  const left = [...SEEDS];
  const liveOneByOne = async (): Promise<void> => {
    for (let seed = left.shift(); seed !== undefined; seed = left.shift()) stories.push(await liveKilled(seed));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, liveOneByOne));
  const sum = (of: (story: KilledStory) => number): number => stories.reduce((so, each) => so + of(each), 0);
  const median = stories.map(({ values }) => values).toSorted((a, b) => a - b)[stories.length >> 1] ?? 0;
  process.stdout.write(
    `${stories.length} stories of real processes: ${sum(({ kills }) => kills)} kills, ${sum(({ midway }) => midway)} of them midway, ${sum(({ values }) => values)} values (median ${median})\n`,
  );
  expect(stories.filter(({ wrong }) => wrong.length > 0)).toEqual([]);
  expect(stories.filter(({ kills }) => kills < LEAST_KILLS)).toEqual([]);
  expect(sum(({ midway }) => midway)).toBeGreaterThanOrEqual(LEAST_MIDWAY);
  expect(median).toBeGreaterThanOrEqual(LEAST_MEDIAN_VALUES);
});
