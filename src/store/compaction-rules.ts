/**
 * Which blocks of the archive are merged (design 2.2): pages as they came into larger blocks, once every destination has
 * settled them. Pure.
 *
 * Of one device and lane, blocks that follow one another in the log and were archived on the same day are merged: first
 * thirty-two at a time, and into blocks for good once the day is over or they are large. So a line is written three
 * times at most, a block does not mix what grows old at different times by more than a day, and it stays small enough
 * to be merged, looked into and delivered without holding up anything else.
 */
import type { EpochMs } from '../core/time.ts';
import { DAY_MS } from '../core/time.ts';

/** A block before it is sealed for good; `bytes` is what it holds, uncompressed. */
export interface HotBlock {
  readonly seq: number;
  /** 0 as its page came, 1 gathered. */
  readonly level: number;
  readonly atMs: EpochMs;
  readonly bytes: number;
}

/** Blocks to merge into one, of that level. One block alone is only marked. */
export interface SealRun {
  readonly seqs: readonly number[];
  readonly level: 1 | 2;
}

/** What a sealed block holds at most, uncompressed, unless a page was larger: about half a day of three sensors a minute. */
export const SEALED_BYTES = 256 * 1024;

/** How many blocks are merged at once. */
export const RUN_BLOCKS = 32;

/** How many blocks of a group have to be looked at to find a run. */
export const SEAL_LOOK = 3 * RUN_BLOCKS;

const dayOf = ({ atMs }: Pick<HotBlock, 'atMs'>): number => Math.floor(atMs / DAY_MS);

/**
 * The first run among the settled blocks of one device and lane.
 *
 * @param blocks in the order of the log, at most {@link SEAL_LOOK}.
 * @returns `null` where everything has to wait for more, or for the end of its day.
 */
export function chooseRun(blocks: readonly HotBlock[], nowMs: EpochMs): SealRun | null {
  const first = blocks[0];
  if (first === undefined) return null;
  const ofDay = leading(blocks, (block) => dayOf(block) === dayOf(first));
  const whole = fitting(ofDay);
  const fresh = ofDay.filter(({ level }) => level === 0);
  const gathered = fitting(fresh);
  const isLarge = whole.length < ofDay.length && whole.length < RUN_BLOCKS;
  const isCrowded = whole.length === RUN_BLOCKS && whole.every(({ level }) => level > 0);
  if (isLarge || isCrowded) return runOf(whole, 2);
  // Many small ones are gathered first, so that each step stays small.
  if (gathered.length === RUN_BLOCKS || gathered.length < fresh.length) return runOf(gathered, 1);
  const isOver = ofDay.length < blocks.length || dayOf(first) < dayOf({ atMs: nowMs });
  return isOver ? runOf(whole, 2) : null;
}

function runOf(blocks: readonly HotBlock[], level: SealRun['level']): SealRun {
  return { seqs: blocks.map(({ seq }) => seq), level };
}

/** As many of the first blocks as one may hold; one is always taken. */
function fitting(blocks: readonly HotBlock[]): readonly HotBlock[] {
  let bytes = 0;
  return leading(blocks, (block, index) => {
    bytes += block.bytes + 1;
    return index === 0 || (index < RUN_BLOCKS && bytes <= SEALED_BYTES);
  });
}

function leading(
  blocks: readonly HotBlock[],
  belongs: (block: HotBlock, index: number) => boolean,
): readonly HotBlock[] {
  const end = blocks.findIndex((block, index) => !belongs(block, index));
  return end === -1 ? blocks : blocks.slice(0, end);
}
