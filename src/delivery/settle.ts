/**
 * The settling of a batch: every line is accepted, refused with the server's words, or kept for another try.
 *
 * Databases tell of a batch, not of its lines, so a refused batch is halved until the lines at fault stand alone. What
 * it promises: a line is called bad only if it was refused alone *and* a line like it (same measurement, same fields)
 * was accepted after that. A full disk or a field that clashes as a whole refuses everything alike: then the
 * destination is held and nothing is put aside. Lines that a database calls too old are told apart by their time. Sending a line twice does no harm, so nothing is kept between calls.
 */
import type { Sink, WriteAnswer } from '../core/ports.ts';
import { type Ages, settleBeyond } from './beyond-retention.ts';
import {
  collectEvidence,
  countSettled,
  type Evidence,
  type Hold,
  holdOf,
  judge,
  listRefused,
  type Means,
  noteAccepted,
  noteSuspect,
  type RefusedLine,
} from './evidence.ts';

export type { Hold, RefusedLine } from './evidence.ts';

export interface Settlement {
  /** How many lines, from the first one on, are accepted or refused: what the position in the log moves by. */
  readonly settled: number;
  /** The refused ones among the settled, in their order. */
  readonly refused: readonly RefusedLine[];
  /** How many of the settled are accepted. */
  readonly acceptedLines: number;
  /**
   * Why the rest is kept. `null` where nothing stands in the way: all is settled, or this call has made its number of
   * requests and the next one goes on with the rest.
   */
  readonly hold: Hold | null;
  readonly requests: number;
  /** Whether the destination found a request too large: smaller batches would spare requests. */
  readonly tooLarge: boolean;
}

export interface SettleOptions {
  /**
   * A line of the same measurement and fields as `line` (`kindOf`) that this destination has accepted, the latest one;
   * `null` where there is none. It is sent again where nothing in the batch can show that the destination still works.
   */
  readonly witness: (line: string) => string | null;
  /** Where points can be too old for the destination; left out, such lines are searched for like any others. */
  readonly ages?: Ages;
  /** After how many requests a search is broken off so that what it found is recorded; 1000 if left out. */
  readonly maxRequests?: number;
}

/** How many lines refused in a row, without an accepted one, call for a check of the destination itself. */
const SUSPECTS_BEFORE_CONTROL = 4;

const MAX_REQUESTS = 1000;

/**
 * Sends the lines of a batch to a destination: one request where all is well, about 2·log2(n) for a bad line among n.
 *
 * @param lines lines of our own, in the order of the log.
 * @throws only the signal's reason, when that aborts; nothing is lost by it.
 */
export async function settleBatch(
  sink: Sink,
  lines: readonly string[],
  options: SettleOptions,
  signal: AbortSignal,
): Promise<Settlement> {
  let requests = 0;
  let tooLarge = false;
  const send = async (part: readonly string[]): Promise<WriteAnswer> => {
    requests += 1;
    const answer = await sink.write(part, signal);
    tooLarge ||= answer.kind === 'too-large' && part.length > 1;
    return answer;
  };
  const evidence = collectEvidence(lines);
  const maxRequests = options.maxRequests ?? MAX_REQUESTS;
  const isEnough = (): boolean => requests >= maxRequests;
  const hold = await narrow(evidence, { witness: options.witness, ages: options.ages, send, isEnough });
  const settled = countSettled(evidence);
  const refused = listRefused(evidence, settled);
  return { settled, refused, acceptedLines: settled - refused.length, hold, requests, tooLarge };
}

/** A run of lines: `from <= index < to`. */
interface Range {
  readonly from: number;
  readonly to: number;
  /** Where its other half begins, if that one's being accepted would leave the fault to this one; else -1. */
  readonly otherHalf: number;
}

interface Search extends Means {
  readonly ages: Ages | undefined;
  /** Whether so many requests are made that what is known should be recorded first. */
  readonly isEnough: () => boolean;
}

/**
 * Works through the batch from the left, halving what is refused.
 *
 * @returns why it had to stop, or `null`.
 */
async function narrow(evidence: Evidence, search: Search): Promise<Hold | null> {
  const { lines } = evidence;
  const todo: Range[] = lines.length === 0 ? [] : [{ from: 0, to: lines.length, otherHalf: -1 }];
  for (let range = todo.pop(); range !== undefined; range = todo.pop()) {
    const answer = await search.send(lines.slice(range.from, range.to));
    if (answer.kind === 'later' || answer.kind === 'held') return holdOf(answer);
    const hold = await weigh(evidence, { range, answer, todo, search });
    if (hold !== null) return hold;
    // Some line must be settled first, or the next call would begin where this one began.
    if (search.isEnough() && countSettled(evidence) > 0) break;
  }
  return await judge(evidence, search);
}

interface Finding {
  readonly range: Range;
  readonly answer: Exclude<WriteAnswer, { readonly kind: 'later' | 'held' }>;
  readonly todo: Range[];
  readonly search: Search;
}

/** Draws from an answer about a range what it tells, and says what to send next. */
async function weigh(evidence: Evidence, { range, answer, todo, search }: Finding): Promise<Hold | null> {
  if (answer.kind === 'accepted') {
    noteAccepted(evidence, indexesOf(range));
    splitTheGuilty(todo, range);
    return null;
  }
  if (answer.kind === 'refused' && answer.retention && answer.dropped !== undefined) {
    const outcome = await settleBeyond(evidence, { from: range.from, to: range.to, refusal: answer }, search);
    if (outcome !== 'unclear') return outcome;
  }
  if (range.to - range.from > 1) {
    todo.push(...halves(range, answer.kind === 'refused'));
    return null;
  }
  noteSuspect(evidence, range.from, answer);
  return evidence.suspects.length < SUSPECTS_BEFORE_CONTROL ? null : await judge(evidence, search);
}

function indexesOf({ from, to }: Range): number[] {
  return Array.from({ length: to - from }, (_, nth) => from + nth);
}

/** The right half first, so that the left one is taken from the stack first. */
function halves({ from, to }: Range, guilty: boolean): [Range, Range] {
  const middle = (from + to) >> 1;
  return [
    { from: middle, to, otherHalf: guilty ? from : -1 },
    { from, to: middle, otherHalf: -1 },
  ];
}

/** Where the left half of a refused range is accepted, the right one is at fault: it is halved without being sent. */
function splitTheGuilty(todo: Range[], accepted: Range): void {
  const next = todo.at(-1);
  if (next === undefined || next.otherHalf !== accepted.from || next.from !== accepted.to) return;
  if (next.to - next.from > 1) todo.splice(-1, 1, ...halves(next, true));
}
