/**
 * Finds the points of a batch that are older than the destination keeps, without a search.
 *
 * Databases report how many points they dropped for their age; these are the oldest ones. One more request with all
 * other lines confirms it. So a year of history that is sent to a bucket of thirty days costs two requests a batch.
 */

import { readLine } from '../core/lines/line-reader.ts';
import type { MissingPoints } from '../core/state/log.ts';
import { compare } from '../core/text.ts';
import { type EpochNs, HOUR_MS, maxNs, minNs, msToNs } from '../core/time.ts';
import type { Blocked, RejectedWrite, Verdict } from './destination.ts';

/** The facts that show whether points can be as old as a database reports. */
export interface Ages {
  /** The newest accepted line by time; `null` if there is none. */
  readonly newestAccepted: () => string | null;
  /** The current time by the local clock. */
  readonly now: () => EpochNs;
}

/** A run of lines in which the database refused some for their age. */
interface RefusedForAge {
  readonly times: readonly EpochNs[];
  /** How many lines the database reports as dropped. */
  readonly dropped: number;
  /** Sends lines of the run, by their indexes. */
  readonly send: (indexes: readonly number[]) => Promise<Verdict>;
  /** Sends a line that was accepted earlier. */
  readonly sendLine: (lines: readonly string[]) => Promise<Verdict>;
  readonly ages: Ages | undefined;
}

/**
 * Which lines of the run are too old and which were accepted; or why that cannot be found out; or that the answers
 * contradict each other.
 */
type TooOldFinding = { readonly tooOld: readonly number[]; readonly accepted: readonly number[] } | Blocked | 'unclear';

/** How many times a point may become too old between two requests before the answers count as contradictory. */
const TURNS = 3;

/** InfluxDB keeps points for at least an hour, so a younger point was not dropped for its age. */
const SHORTEST_RETENTION_NS = msToNs(HOUR_MS);

/**
 * Finds the lines that are too old. With 'unclear' the answers contradict each other: search the run like any other.
 */
export async function findTooOld(run: RefusedForAge): Promise<TooOldFinding> {
  const { times } = run;
  const byAge = times.map((_, index) => index).sort((a, b) => compare(timeAt(times, a), timeAt(times, b)));
  let count = run.dropped;
  for (let turn = 0; turn < TURNS; turn += 1) {
    if (!isCleanCut(byAge, count, times)) return 'unclear';
    const tooOld = byAge.slice(0, count);
    const rest = byAge.slice(count).sort((a, b) => a - b);
    if (rest.length === 0) return await allTooOld(tooOld, run);
    const verdict = await run.send(rest);
    if (verdict.does === 'keep') return verdict.blocked;
    if (verdict.does === 'accept') return { tooOld, accepted: rest };
    const { retention, dropped } = verdict.refusal;
    if (!retention || dropped === null) return 'unclear';
    count += dropped;
  }
  return 'unclear';
}

/** Whether an age limit can lie right after the `count` oldest lines: lines with the same time are dropped together. */
function isCleanCut(byAge: readonly number[], count: number, times: readonly EpochNs[]): boolean {
  if (count < 1 || count > byAge.length) return false;
  const [last, next] = [byAge[count - 1], byAge[count]];
  return last !== undefined && (next === undefined || timeAt(times, last) < timeAt(times, next));
}

/**
 * Decides about a run in which all lines are too old, so that no line is left to send. Either a newer line that was
 * accepted earlier must be accepted again, or, if there is none, the lines must be older than the shortest retention.
 */
async function allTooOld(tooOld: readonly number[], { times, sendLine, ages }: RefusedForAge): Promise<TooOldFinding> {
  if (ages === undefined) return 'unclear';
  const newest = timeAt(times, tooOld.at(-1) ?? 0);
  const youngest = ages.now() - SHORTEST_RETENTION_NS;
  if (newest > youngest) return 'unclear';
  const control = ages.newestAccepted();
  if (control !== null && timeOf(control) > newest) {
    const verdict = await sendLine([control]);
    if (verdict.does === 'keep') return verdict.blocked;
    // This line may have become too old itself. Any other refusal contradicts the earlier answer.
    const isTooOld = (refusal: RejectedWrite): boolean => refusal.retention && timeOf(control) <= youngest;
    if (verdict.does !== 'accept' && !isTooOld(verdict.refusal)) return 'unclear';
  }
  return { tooOld, accepted: [] };
}

function timeAt(times: readonly EpochNs[], index: number): EpochNs {
  return times[index] ?? 0n;
}

/**
 * The time of a line: in nanoseconds for lines of the log, in milliseconds for translated lines. Only times of one kind
 * can be compared.
 */
export function timeOf(line: string): EpochNs {
  return BigInt(line.slice(line.lastIndexOf(' ') + 1));
}

/**
 * The missing points of a destination that has dropped these lines for their age: one range per device.
 *
 * @param deviceOf returns a device's id by its tag value; the two differ if the id is not allowed in a line
 */
export function missingForAge(lines: readonly string[], deviceOf: (tag: string) => string): MissingPoints[] {
  const byDevice = new Map<string, MissingPoints>();
  for (const line of lines) {
    const { tags, at } = readLine(line);
    const tag = tags.find(([key]) => key === 'device_id')?.[1] ?? '';
    const known = byDevice.get(tag);
    byDevice.set(tag, {
      deviceId: known?.deviceId ?? (tag === '' ? '' : deviceOf(tag)),
      fromNs: minNs(known?.fromNs ?? at, at),
      toNs: maxNs(known?.toNs ?? at, at + 1n),
      reason: 'beyond_retention',
      points: (known?.points ?? 0) + 1,
    });
  }
  return [...byDevice.values()];
}
