/**
 * Lives of the whole program drawn from seeds, in virtual time: the real scheduler, ingest, state and delivery, killed
 * between any two effects, judged by the truth of the simulated workspace against what the database holds.
 */
import { describe, expect, test } from 'vitest';
import { drawStory } from './draw.ts';
import { type DefectName, KNOWN_DEFECTS } from './known-defects.ts';
import { liveStory, type Sums } from './live.ts';
import { commandOf, shrink } from './shrink.ts';
import { tellStory } from './story.ts';
import { addUp, tooLittle, wordsOf } from './sums.ts';

const SEEDS = Array.from({ length: 20 }, (_, index) => index + 1);
const NONE: ReadonlySet<DefectName> = new Set();

describe('a story drawn from a seed', () => {
  const all: Sums[] = [];

  test.each(SEEDS)('loses nothing, doubles nothing, claims nothing that is not so: seed %i', async (seed) => {
    const story = drawStory(seed, NONE);
    const { wrong, sums } = await liveStory(story);
    all.push(sums);
    if (wrong.length === 0) return;
    const least = await shrink(story, wrong, async (smaller) => (await liveStory(smaller)).wrong);
    expect.fail(
      `${wrong.join('\n')}\n\n${commandOf(seed, NONE, new Set())}\n${commandOf(seed, NONE, least.leftOut)}\n${tellStory(least.story)}\n${least.wrong.join('\n')}`,
    );
  });

  test('is long and hard enough to prove something', () => {
    process.stdout.write(`${wordsOf(addUp(all))}\n`);
    expect(all).toHaveLength(SEEDS.length);
    expect(tooLittle(all)).toEqual([]);
  });
});

describe('a known defect', () => {
  test.each(Object.entries(KNOWN_DEFECTS))('still shows, or its entry is to go: %s', async (name, { seed }) => {
    const { wrong } = await liveStory(drawStory(seed, new Set([name as DefectName])));
    expect(wrong).not.toEqual([]);
  });
});
