/**
 * Random histories of the complete program, drawn from seeds, in virtual time: the real scheduler, ingest, state and
 * delivery, killed between any two effects, judged by the truth of the simulated workspace against the contents of the
 * database.
 */
import { expect, test } from 'vitest';
import { drawStory } from './draw.ts';
import { liveStory } from './live.ts';
import { liveInThreads, type SeedResult } from './pool.ts';
import { commandOf, shrink } from './shrink.ts';
import { tellStory } from './story.ts';
import { addUp, tooLittle, wordsOf } from './sums.ts';

const SEEDS = Array.from({ length: 200 }, (_, index) => index + 1);
/** One for each core of the machine that runs them for every change. */
const THREADS = 2;

/** The errors of a seed, and the smallest story that shows them. */
async function describeFailure({ seed, wrong }: SeedResult): Promise<string> {
  const least = await shrink(drawStory(seed), wrong, async (smaller) => (await liveStory(smaller)).wrong);
  return [
    ...wrong,
    '',
    commandOf(seed, new Set()),
    commandOf(seed, least.leftOut),
    tellStory(least.story),
    ...least.wrong,
  ].join('\n');
}

test('stories drawn from seeds lose nothing, double nothing and cover nothing that was not read', async () => {
  const results: SeedResult[] = [];
  const orders = SEEDS.map((seed) => ({ seed, leftOut: new Set<string>() }));
  await liveInThreads(orders, THREADS, (result) => void results.push(result));
  const all = results.flatMap(({ sums }) => sums ?? []);
  process.stdout.write(`${wordsOf(addUp(all))}\n`);
  const failed = results.filter(({ wrong }) => wrong.length > 0);
  const [first] = failed;
  if (first !== undefined) {
    expect.fail(`seeds ${failed.map(({ seed }) => seed).join(', ')}, of which:\n${await describeFailure(first)}`);
  }
  expect(all).toHaveLength(SEEDS.length);
  expect(tooLittle(all)).toEqual([]);
});
