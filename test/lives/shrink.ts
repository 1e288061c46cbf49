/**
 * Shrinks a story that fails: leaves out as many of its parts as can go while it fails in the same way.
 */
import { partsOf, type Story, without } from './story.ts';

/** The least story found. */
interface Shrunk {
  readonly story: Story;
  readonly leftOut: ReadonlySet<string>;
  readonly wrong: readonly string[];
}

/** The most stories that run for that. */
const MOST_TRIES = 120;

/**
 * @param live runs a story
 *
 * @returns what is wrong with it.
 */
export async function shrink(
  story: Story,
  wrong: readonly string[],
  live: (story: Story) => Promise<readonly string[]>,
): Promise<Shrunk> {
  const kind = kindOf(wrong);
  let least: Shrunk = { story, leftOut: new Set(), wrong };
  let tries = 0;
  for (let size = Math.ceil(partsOf(story).length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    const parts = partsOf(least.story);
    for (let at = 0; at < parts.length && tries < MOST_TRIES; at += size) {
      const leftOut = new Set([...least.leftOut, ...parts.slice(at, at + size)]);
      const smaller = without(story, leftOut);
      if (smaller.devices.length === 0) continue;
      tries += 1;
      const found = await live(smaller).catch(() => []);
      if (kindOf(found) === kind) least = { story: smaller, leftOut, wrong: found };
    }
  }
  return least;
}

/** The error without the life, the numbers and the names. */
function kindOf(wrong: readonly string[]): string {
  return (wrong[0] ?? '')
    .replace(/^.*?\): /, '')
    .replace(/[:,].*$/s, '')
    .replaceAll(/\bd\d+\b|\d+/g, '');
}

/** The command that runs the story again. */
export function commandOf(seed: number, leftOut: ReadonlySet<string>): string {
  const without = leftOut.size === 0 ? '' : ` --without '${[...leftOut].join()}'`;
  return `npm run lives -- --seed ${seed}${without}`;
}
