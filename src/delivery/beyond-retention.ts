/**
 * Points that are older than a destination keeps: a class of their own, settled without a search.
 *
 * Databases say how many points they dropped for their age, and those are the oldest by time: one more request with
 * all others proves it. So a year of history that is sent to a bucket of thirty days costs two requests a batch.
 */
import { readLine } from '../core/lines/line-reader.ts';
import type { MissingPoints } from '../core/state/log.ts';
import { type EpochNs, HOUR_MS, maxNs, minNs, msToNs } from '../core/time.ts';
import { type Evidence, type Hold, holdOf, type Means, noteAccepted, noteBeyond, type Refusal } from './evidence.ts';

/** What tells whether points can be as old as a database says. */
export interface Ages {
  /** The newest line by time that this destination has accepted; `null` where there is none. */
  readonly newestAccepted: () => string | null;
  /** The present, by the local clock. */
  readonly now: () => EpochNs;
}

/** A run of lines of the batch (`from <= index < to`) that was refused for the age of some. */
interface Refused {
  readonly from: number;
  readonly to: number;
  readonly refusal: Extract<Refusal, { readonly kind: 'refused' }>;
}

/** How often points may grow too old between two requests before that is no explanation any more. */
const TURNS = 3;

/** No InfluxDB keeps points for less than an hour: what is younger was not dropped for its age. */
const SHORTEST_RETENTION_NS = msToNs(HOUR_MS);

/**
 * Settles a run that was refused for the age of some of its lines.
 *
 * @returns why the rest is kept, `null` where the run is settled, 'unclear' where the answers do not fit: search it.
 */
export async function settleBeyond(
  evidence: Evidence,
  { from, to, refusal }: Refused,
  means: Means & { readonly ages?: Ages | undefined },
): Promise<Hold | null | 'unclear'> {
  const byAge = Array.from({ length: to - from }, (_, nth) => from + nth).sort((a, b) => compare(at(a), at(b)));
  let count = refusal.dropped ?? 0;
  for (let turn = 0; turn < TURNS; turn += 1) {
    const oldest = byAge.slice(0, count);
    const rest = byAge.slice(count).sort((a, b) => a - b);
    if (!isCleanCut(byAge, count)) return 'unclear';
    if (rest.length === 0) return await settleAll(evidence, { oldest, refusal }, means);
    const answer = await means.send(rest.map((index) => evidence.lines[index] ?? ''));
    if (answer.kind === 'later' || answer.kind === 'held') return holdOf(answer);
    if (answer.kind === 'accepted') {
      noteAccepted(evidence, rest);
      noteBeyond(evidence, oldest, refusal);
      return null;
    }
    if (answer.kind !== 'refused' || !answer.retention || answer.dropped === undefined) return 'unclear';
    count += answer.dropped;
  }
  return 'unclear';

  function at(index: number): EpochNs {
    return timeOf(evidence.lines[index] ?? '');
  }

  /** Whether a limit of age can lie behind the `n` oldest: lines of one time are dropped together. */
  function isCleanCut(sorted: readonly number[], n: number): boolean {
    if (n < 1 || n > sorted.length) return false;
    const [last, next] = [sorted[n - 1], sorted[n]];
    return last !== undefined && (next === undefined || at(last) < at(next));
  }
}

/**
 * A run that is too old as a whole leaves nothing to send: then a newer line that was accepted before has to pass, or,
 * where none is known, the lines have to be old enough to be dropped by any retention at all.
 */
async function settleAll(
  evidence: Evidence,
  { oldest, refusal }: { readonly oldest: readonly number[]; readonly refusal: Refused['refusal'] },
  { ages, send }: Parameters<typeof settleBeyond>[2],
): Promise<Hold | null | 'unclear'> {
  if (ages === undefined) return 'unclear';
  const newest = timeOf(evidence.lines[oldest.at(-1) ?? 0] ?? '');
  const youngest = ages.now() - SHORTEST_RETENTION_NS;
  if (newest > youngest) return 'unclear';
  const witness = ages.newestAccepted();
  if (witness !== null && timeOf(witness) > newest) {
    const answer = await send([witness]);
    if (answer.kind === 'later' || answer.kind === 'held') return holdOf(answer);
    // It may have grown too old itself; any other refusal contradicts what was said.
    const isTooOld = answer.kind === 'refused' && answer.retention && timeOf(witness) <= youngest;
    if (answer.kind !== 'accepted' && !isTooOld) return 'unclear';
  }
  noteBeyond(evidence, oldest, refusal);
  return null;
}

/** The time of a line: nanoseconds of the log, or milliseconds where it was translated; compared within one kind. */
export function timeOf(line: string): EpochNs {
  return BigInt(line.slice(line.lastIndexOf(' ') + 1));
}

function compare(a: bigint, b: bigint): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/**
 * The stretches that a destination lacks once it has dropped these lines for their age: one for each device.
 *
 * @param deviceOf the device's id by its tag value; they differ where the id cannot stand in a line.
 */
export function lacksBeyond(lines: readonly string[], deviceOf: (tag: string) => string): MissingPoints[] {
  const byDevice = new Map<string, MissingPoints>();
  for (const line of lines) {
    const { tags, at } = readLine(line);
    const tag = tags.find(([key]) => key === 'device_id')?.[1] ?? '';
    const known = byDevice.get(tag);
    byDevice.set(tag, {
      deviceId: known?.deviceId ?? (tag === '' ? '' : deviceOf(tag)),
      fromNs: minNs(known?.fromNs ?? at, at),
      toNs: maxNs(known?.toNs ?? at, at + 1n),
      reason: 'beyond retention',
      points: (known?.points ?? 0) + 1,
    });
  }
  return [...byDevice.values()];
}
