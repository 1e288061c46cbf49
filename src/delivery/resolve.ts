/**
 * Resolves a batch: every line is accepted, rejected with the server's words, or kept for another try.
 *
 * Databases answer for a batch, not for its lines, so a batch that is refused is bisected until the lines at fault stand
 * alone. Promise: a line is rejected only if it was refused alone *and* a control line was accepted after that: one like
 * it (same measurement and same fields, because databases keep types there; any line at all where it was too large). A
 * full disk or a field that clashes as a whole refuses everything alike: then the destination is blocked and nothing is
 * put aside. Lines that a database calls too old are found by their time (`too-old.ts`). Sending a line twice does
 * no harm, so nothing is kept between calls.
 */
import { kindOf } from '../core/lines/line-reader.ts';
import type { Sink, WriteAnswer } from '../core/ports.ts';
import { type Blocked, blockedBy } from './destination.ts';
import { type Ages, findTooOld, timeOf } from './too-old.ts';

/** A line that a database does not take, while it takes others like it. */
export interface RejectedLine {
  /** Its place in the batch. */
  readonly index: number;
  readonly line: string;
  /** The server's words. */
  readonly words: string;
  /** Whether it was refused for its age. */
  readonly retention: boolean;
}

/** What became of a batch. */
export interface Resolution {
  /** How many lines, from the first one on, are accepted or rejected: what the position in the log moves by. */
  readonly resolved: number;
  /** The rejected ones among the resolved, in their order. */
  readonly rejected: readonly RejectedLine[];
  /** How many of the resolved are accepted. */
  readonly acceptedLines: number;
  /**
   * Why the rest is kept. `null` where nothing stands in the way: all is resolved, or this call has made its number of
   * requests and the next one goes on with the rest.
   */
  readonly blocked: Blocked | null;
  readonly requests: number;
  /** Whether the destination found a request too large: smaller batches would spare requests. */
  readonly tooLarge: boolean;
}

export interface ResolveOptions {
  /**
   * A line of the same measurement and fields as `line` (`kindOf`) that this destination has accepted, the latest one;
   * `null` where there is none. It is sent again where nothing in the batch can show that the destination still works.
   */
  readonly controlFor: (line: string) => string | null;
  /** Where points can be too old for the destination; left out, such lines are searched for like any others. */
  readonly ages?: Ages;
  /** After how many requests a search is broken off so that what it found is recorded; 1000 if left out. */
  readonly maxRequests?: number;
}

/** How many lines refused in a row, without an accepted one, call for a check of the destination itself. */
const REFUSED_BEFORE_CONTROL = 4;

/** How many other lines of the batch are tried, spread over it, where no line is known that would be accepted. */
const PROBES = 12;

const MAX_REQUESTS = 1000;

/**
 * Sends the lines of a batch to a destination: one request where all is well, about 2·log2(n) for a bad line among n.
 *
 * @param lines lines of our own, in the order of the log.
 * @throws only the signal's reason, when that aborts; nothing is lost by it.
 */
export async function resolveBatch(
  sink: Sink,
  lines: readonly string[],
  options: ResolveOptions,
  signal: AbortSignal,
): Promise<Resolution> {
  const search: Search = {
    lines,
    options,
    send: async (part) => {
      search.requests += 1;
      const answer = await sink.write(part, signal);
      search.tooLarge ||= answer.kind === 'too-large' && part.length > 1;
      return answer;
    },
    accepted: [],
    rejected: new Map(),
    unconfirmed: [],
    requests: 0,
    tooLarge: false,
  };
  const blocked = await bisect(search);
  const resolved = countResolved(search);
  const rejected = [...search.rejected.values()].filter(({ index }) => index < resolved);
  return {
    resolved,
    rejected: rejected.sort((a, b) => a.index - b.index),
    acceptedLines: resolved - rejected.length,
    blocked,
    requests: search.requests,
    tooLarge: search.tooLarge,
  };
}

/** An answer that speaks against lines. */
type Refusal = Extract<WriteAnswer, { readonly kind: 'refused' | 'too-large' }>;

/** A line that was refused alone, while no control line has shown yet that it is not the destination that fails. */
interface Unconfirmed {
  readonly index: number;
  readonly refusal: Refusal;
  /** What a control line has to be like (`kindOf`); `null`: any line will do. */
  readonly kind: string | null;
}

/** A batch while it is being resolved: what is known of its lines so far, and the means to find out more. */
interface Search {
  readonly lines: readonly string[];
  readonly options: ResolveOptions;
  readonly send: (part: readonly string[]) => Promise<WriteAnswer>;
  /** By index: whether the line was accepted. */
  readonly accepted: boolean[];
  readonly rejected: Map<number, RejectedLine>;
  unconfirmed: readonly Unconfirmed[];
  requests: number;
  tooLarge: boolean;
}

/** A run of lines: `from <= index < to`. */
interface Range {
  readonly from: number;
  readonly to: number;
  /** Where its other half begins, if that one's being accepted would leave the fault to this one; else -1. */
  readonly otherHalf: number;
}

/** Works through the batch from the left, halving what is refused. @returns why it had to stop, or `null`. */
async function bisect(search: Search): Promise<Blocked | null> {
  const { lines, options } = search;
  const todo: Range[] = lines.length === 0 ? [] : [{ from: 0, to: lines.length, otherHalf: -1 }];
  for (let range = todo.pop(); range !== undefined; range = todo.pop()) {
    const answer = await search.send(lines.slice(range.from, range.to));
    if (answer.kind === 'later' || answer.kind === 'held') return blockedBy(answer);
    if (answer.kind === 'accepted') {
      noteAccepted(search, indexesOf(range));
      splitOtherHalf(todo, range);
    } else {
      const blocked = await narrow(search, { range, refusal: answer, todo });
      if (blocked !== null) return blocked;
    }
    // Some line must be resolved first, or the next call would begin where this one began.
    if (search.requests >= (options.maxRequests ?? MAX_REQUESTS) && countResolved(search) > 0) break;
  }
  return await confirmAll(search);
}

/** Draws conclusions from the refusal of a range, and adds what to send next. */
async function narrow(
  search: Search,
  { range, refusal, todo }: { readonly range: Range; readonly refusal: Refusal; readonly todo: Range[] },
): Promise<Blocked | null> {
  if (refusal.kind === 'refused' && refusal.retention && refusal.dropped !== undefined) {
    const outcome = await resolveTooOld(search, { range, refusal, dropped: refusal.dropped });
    if (outcome !== 'unclear') return outcome;
  }
  if (range.to - range.from > 1) {
    todo.push(...halves(range, refusal.kind === 'refused'));
    return null;
  }
  const kind = refusal.kind === 'too-large' ? null : kindOf(lineAt(search, range.from));
  search.unconfirmed = [...search.unconfirmed, { index: range.from, refusal, kind }];
  return search.unconfirmed.length < REFUSED_BEFORE_CONTROL ? null : await confirmAll(search);
}

/** Resolves a range that was refused for the age of some of its lines. */
async function resolveTooOld(
  search: Search,
  { range, refusal, dropped }: { readonly range: Range; readonly refusal: Refusal; readonly dropped: number },
): Promise<Blocked | null | 'unclear'> {
  const indexes = indexesOf(range);
  const times = indexes.map((index) => timeOf(lineAt(search, index)));
  const send = async (nths: readonly number[]): Promise<WriteAnswer> =>
    await search.send(nths.map((nth) => lineAt(search, range.from + nth)));
  const found = await findTooOld({ times, dropped, send, sendLine: search.send, ages: search.options.ages });
  if (found === 'unclear' || !('tooOld' in found)) return found;
  noteAccepted(
    search,
    found.accepted.map((nth) => range.from + nth),
  );
  for (const nth of found.tooOld) reject(search, range.from + nth, { words: refusal.words, retention: true });
  return null;
}

function indexesOf({ from, to }: Range): number[] {
  return Array.from({ length: to - from }, (_, nth) => from + nth);
}

function lineAt({ lines }: Search, index: number): string {
  return lines[index] ?? '';
}

/** The right half first, so that the left one is taken from the stack first. @param isRefused not only too large. */
function halves({ from, to }: Range, isRefused: boolean): [Range, Range] {
  const middle = (from + to) >> 1;
  return [
    { from: middle, to, otherHalf: isRefused ? from : -1 },
    { from, to: middle, otherHalf: -1 },
  ];
}

/** Where the left half of a refused range is accepted, the right one is at fault: it is halved without being sent. */
function splitOtherHalf(todo: Range[], accepted: Range): void {
  const next = todo.at(-1);
  if (next === undefined || next.otherHalf !== accepted.from || next.from !== accepted.to) return;
  if (next.to - next.from > 1) todo.splice(-1, 1, ...halves(next, true));
}

/** How many lines, from the first one on, are accepted or rejected. */
function countResolved({ lines, accepted, rejected }: Search): number {
  let resolved = 0;
  while (resolved < lines.length && (accepted[resolved] === true || rejected.has(resolved))) resolved += 1;
  return resolved;
}

/** Notes that lines were accepted together, which may confirm that others are at fault. */
function noteAccepted(search: Search, indexes: readonly number[]): void {
  for (const index of indexes) search.accepted[index] = true;
  for (const index of indexes) {
    if (search.unconfirmed.length === 0) return;
    confirm(search, lineAt(search, index));
  }
}

function reject(search: Search, index: number, { words, retention }: { words: string; retention: boolean }): void {
  search.rejected.set(index, { index, line: lineAt(search, index), words, retention });
}

/** Rejects those lines that an accepted one is a control for. */
function confirm(search: Search, control: string): void {
  const controlKind = kindOf(control);
  const isConfirmed = ({ kind }: Unconfirmed): boolean => kind === null || kind === controlKind;
  for (const { index, refusal } of search.unconfirmed.filter(isConfirmed)) {
    const retention = refusal.kind === 'refused' && refusal.retention;
    reject(search, index, { words: refusal.words, retention });
  }
  search.unconfirmed = search.unconfirmed.filter((each) => !isConfirmed(each));
}

/** Sends control lines until every refusal is confirmed. @returns why that cannot be, or `null`. */
async function confirmAll(search: Search): Promise<Blocked | null> {
  for (let first = search.unconfirmed[0]; first !== undefined; first = search.unconfirmed[0]) {
    const blocked = await sendControls(search, first);
    if (blocked !== null) return blocked;
  }
  return null;
}

/** Tries lines like the refused one until one of them is accepted, which confirms that it is at fault. */
async function sendControls(search: Search, refused: Unconfirmed): Promise<Blocked | null> {
  for (const line of controlsFor(search, refused)) {
    const answer = await search.send([line]);
    if (answer.kind === 'later' || answer.kind === 'held') return blockedBy(answer);
    if (answer.kind !== 'accepted') continue;
    confirm(search, line);
    return null;
  }
  const { refusal, kind } = refused;
  const hint =
    kind === null
      ? 'even single lines are too large for the database, or for a proxy before it: raise the limit for a request there'
      : `no line of "${kind}" (measurement, fields) is accepted: a field of another type in the bucket, a limit, a full disk? The log of the database tells`;
  return { words: refusal.words, hint, waitMs: null };
}

/**
 * Lines that should be accepted if the destination works: the latest that was, in this batch; else the one that the
 * caller knows; and where that is refused too (it may have grown too old), others of this batch.
 */
function controlsFor({ lines, options, accepted, rejected, unconfirmed }: Search, refused: Unconfirmed): string[] {
  const isLike = (line: string): boolean => refused.kind === null || kindOf(line) === refused.kind;
  const proven = lines.findLast((line, index) => accepted[index] === true && isLike(line));
  // Refused now though it was accepted a moment ago: the destination fails, and no other line would show more.
  if (proven !== undefined) return [proven];
  const known = options.controlFor(lines[refused.index] ?? '');
  const refusedAlone = new Set(unconfirmed.map(({ index }) => index));
  const untried = lines.filter((line, index) => !rejected.has(index) && !refusedAlone.has(index) && isLike(line));
  const step = Math.max(1, untried.length / PROBES);
  const count = Math.min(PROBES, untried.length);
  const probes = Array.from({ length: count }, (_, nth) => untried[Math.floor(nth * step)] ?? '');
  return known !== null && isLike(known) ? [known, ...probes] : probes;
}
