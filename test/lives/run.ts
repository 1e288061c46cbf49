/**
 * `npm run lives -- --seed N` or `--seeds A-B`: runs the stories of seeds and reports errors and results.
 *
 * `--without A,B` leaves parts of the story out, `--describe` prints the story, `--trace` the events of its lives. Many
 * seeds run in as many threads as there are cores.
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { drawStory } from './draw.ts';
import { liveStory, type StoryResult, type Sums } from './live.ts';
import { liveInThreads, type SeedResult } from './pool.ts';
import { commandOf, shrink } from './shrink.ts';
import { type Story, tellStory, without } from './story.ts';
import { addUp, tooLittle, wordsOf } from './sums.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string' },
    without: { type: 'string', default: '' },
    describe: { type: 'boolean', default: false },
    trace: { type: 'boolean', default: false },
    shrink: { type: 'boolean', default: true },
  },
  allowNegative: true,
});

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const [from = 1, to = from] = (values.seeds ?? values.seed ?? '1').split('-').map(Number);
const names = (text: string): string[] => text.split(',').filter((name) => name !== '');
const leftOut = new Set(names(values.without));

async function live(story: Story): Promise<StoryResult> {
  const watch = values.trace
    ? (life: { readonly name: string }, atMs: number, event: object): void =>
        say(
          `${new Date(atMs).toISOString()} ${life.name} ${JSON.stringify(event, (_, value) => (typeof value === 'bigint' ? String(value) : value))}`,
        )
    : null;
  return await liveStory(story, undefined, watch);
}

const all: Sums[] = [];
let failed = 0;
const startedMs = performance.now();

/** Reports the result of a seed, and shrinks it where that is wrong. */
async function take({ seed, wrong, sums, tookMs }: SeedResult): Promise<void> {
  if (sums !== null) all.push(sums);
  say(`seed ${seed}: ${wrong.length === 0 ? 'ok' : 'WRONG'} ${JSON.stringify(sums)} ${tookMs} ms`);
  if (wrong.length === 0) return;
  failed += 1;
  for (const text of wrong.slice(0, 6)) say(`  ${text}`);
  say(`  again: ${commandOf(seed, leftOut)}`);
  if (!values.shrink) return;
  const story = without(drawStory(seed), leftOut);
  const least = await shrink(story, wrong, async (smaller) => (await liveStory(smaller)).wrong);
  say(`  shrunk: ${commandOf(seed, new Set([...leftOut, ...least.leftOut]))}`);
  say(`  ${tellStory(least.story).replaceAll('\n', '\n  ')}`);
  for (const text of least.wrong.slice(0, 6)) say(`  ${text}`);
}

const seeds = Array.from({ length: to - from + 1 }, (_, index) => from + index);
if (seeds.length === 1 || values.describe || values.trace) {
  for (const seed of seeds) {
    const story = without(drawStory(seed), leftOut);
    if (values.describe) say(tellStory(story));
    const beganMs = performance.now();
    const { wrong, sums } = await live(story);
    await take({ seed, wrong, sums, tookMs: Math.round(performance.now() - beganMs) });
  }
} else {
  const wrong: SeedResult[] = [];
  const orders = seeds.map((seed) => ({ seed, leftOut }));
  await liveInThreads(orders, availableParallelism(), (result) => {
    if (result.wrong.length > 0) wrong.push(result);
    else void take(result);
  });
  for (const result of wrong) await take(result);
}
const total = addUp(all);
say(`${wordsOf(total)}; ${failed} seeds with something wrong; ${Math.round((performance.now() - startedMs) / 1000)} s`);
const lacking = leftOut.size === 0 ? tooLittle(all) : [];
for (const text of lacking) say(text);
if (failed > 0 || lacking.length > 0) process.exitCode = 1;
