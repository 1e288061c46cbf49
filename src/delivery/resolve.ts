/**
 * Resolves a batch: each line is accepted, rejected with the server's message, or kept for another attempt.
 *
 * A database answers for a batch and not for its lines. So a refused batch is bisected until each line at fault is
 * alone in its request, or the database has counted all lines of a request as dropped. Promise: a line is rejected only
 * if it was refused in this way *and* a control line was accepted after that. The control line has the same measurement
 * and fields, because databases keep types there; after "too large" it may be any line. A full disk refuses all lines:
 * then the destination is blocked, and no line is quarantined. If the database names a conflict of types and accepts no
 * line with these fields but another line, only the lines with these fields are rejected, readings included; the other
 * lines continue. Lines that a database calls too old are found by their time (`too-old.ts`). Sending a line twice does
 * no harm, so nothing is stored between calls.
 *
 * Here an answer *refuses* the lines of a request, of which most may be good, and the search *rejects* a single line.
 */
import { kindOf } from '../core/lines/line-reader.ts';
import type { Sink } from '../core/ports.ts';
import { type Blocked, judge, type RejectedWrite, type Verdict } from './destination.ts';
import { type Ages, findTooOld, timeOf } from './too-old.ts';

/** A line that the database rejects although it accepts others like it. */
export interface RejectedLine {
  /** The index of the line in the batch. */
  readonly index: number;
  readonly line: string;
  /** The message of the server. */
  readonly message: string;
  /** Whether it was refused for its age. */
  readonly retention: boolean;
}

/** How far a batch is resolved, and the outcome of its lines. */
export interface Resolution {
  /** How many lines, counted from the first, are accepted or rejected: the position in the log moves by this number. */
  readonly resolved: number;
  /** The rejected lines among the resolved ones, in their order. */
  readonly rejected: readonly RejectedLine[];
  /** How many of the resolved lines are accepted. */
  readonly acceptedLines: number;
  /**
   * Why the rest is kept. `null` if all lines are resolved, or if this call has used up its requests and the next call
   * continues.
   */
  readonly blocked: Blocked | null;
  readonly requests: number;
  /** Whether the destination rejected a request as too large. Smaller batches would save requests. */
  readonly tooLarge: boolean;
}

/** The facts and limits by which a refused batch is resolved. */
export interface ResolveOptions {
  /**
   * Returns the latest accepted line with the measurement and fields of `line` (`kindOf`); `null` if there is none. The
   * line is sent again if no line of the batch can show that the destination still works.
   */
  readonly controlFor: (line: string) => string | null;
  /** An accepted line with another measurement or other fields. */
  readonly otherControlFor?: (line: string) => string | null;
  /**
   * Given if the destination can refuse points for their age. Without it, such lines are searched for like any others.
   */
  readonly ages?: Ages;
  /** After this many requests the search ends with its results so far. The caller records them, and calls again. */
  readonly maxRequests: number;
}

/** After this many refused lines in a row without an accepted one, the destination itself is checked. */
const REFUSED_BEFORE_CONTROL = 4;

/** How many other lines of the batch are tried, spread over it, if no line is known to be acceptable. */
const PROBES = 12;

/**
 * Sends the lines of a batch: one request if all are accepted, about 2·log2(n) requests for one rejected line among n.
 *
 * @param lines lines of the log, in its order
 * @throws the signal's reason when that aborts; nothing is lost
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
      const verdict = judge(await sink.write(part, signal));
      search.tooLarge ||= verdict.does === 'halve' && part.length > 1;
      return verdict;
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

/** A verdict for a request whose lines were refused. */
type Rejected = Extract<Verdict, { readonly refusal: RejectedWrite }>;

/** A line that was refused when sent alone, before a control line has shown that the destination itself works. */
interface Unconfirmed {
  readonly index: number;
  readonly refusal: RejectedWrite;
  /** The kind of line that can be its control (`kindOf`); `null` if any line can. */
  readonly kind: string | null;
}

/** The state of a search in a batch: the known results of its lines, and how to find out more. */
interface Search {
  readonly lines: readonly string[];
  readonly options: ResolveOptions;
  readonly send: (part: readonly string[]) => Promise<Verdict>;
  /** Whether each line was accepted, by index. */
  readonly accepted: boolean[];
  readonly rejected: Map<number, RejectedLine>;
  unconfirmed: readonly Unconfirmed[];
  requests: number;
  tooLarge: boolean;
}

/** A range of lines: `from <= index < to`. */
interface Range {
  readonly from: number;
  readonly to: number;
  /**
   * The beginning of the other half of the range, which must be at fault once this half is accepted; -1 if there is
   * none.
   */
  readonly otherHalf: number;
}

/**
 * Bisects the batch from the left.
 *
 * @returns why the search had to stop; `null` if it did not
 */
async function bisect(search: Search): Promise<Blocked | null> {
  const { lines, options } = search;
  const todo: Range[] = lines.length === 0 ? [] : [{ from: 0, to: lines.length, otherHalf: -1 }];
  for (let range = todo.pop(); range !== undefined; range = todo.pop()) {
    const pending = unresolvedIndexes(search, range);
    if (pending.length === 0) continue;
    const blocked = await sendRange(search, { range, pending, todo });
    if (blocked !== null) return blocked;
    // At least one line must be resolved, or the next call would begin at the same line.
    if (search.requests >= options.maxRequests && countResolved(search) > 0) break;
  }
  return await confirmAll(search);
}

/** A range that is about to be sent. */
interface Sending {
  readonly range: Range;
  /** The indexes of its lines that are neither accepted nor rejected. */
  readonly pending: readonly number[];
  readonly todo: Range[];
}

/**
 * Sends a range and evaluates the answer.
 *
 * @returns why the search has to stop; `null` if it continues
 */
async function sendRange(search: Search, sending: Sending): Promise<Blocked | null> {
  const { range, pending, todo } = sending;
  const verdict = await search.send(pending.map((index) => lineAt(search, index)));
  switch (verdict.does) {
    case 'keep':
      return verdict.blocked;
    case 'bisect':
    case 'halve':
      return await narrow(search, sending, verdict);
    case 'accept':
      noteAccepted(search, pending);
      splitOtherHalf(todo, range);
      return null;
  }
}

/** Evaluates the refusal of a range, and adds the ranges to send next. */
async function narrow(
  search: Search,
  { range, pending, todo }: Sending,
  { does, refusal }: Rejected,
): Promise<Blocked | null> {
  if (refusal.retention && refusal.dropped !== null) {
    const outcome = await resolveTooOld(search, { indexes: pending, refusal, dropped: refusal.dropped });
    if (outcome !== 'unclear') return outcome;
  }
  const isWhole = refusal.conflict && refusal.dropped === pending.length;
  if (range.to - range.from > 1 && !isWhole) {
    todo.push(...halves(range, does === 'bisect'));
    return null;
  }
  const kindAt = (index: number): string | null => (does === 'halve' ? null : kindOf(lineAt(search, index)));
  search.unconfirmed = [...search.unconfirmed, ...pending.map((index) => ({ index, refusal, kind: kindAt(index) }))];
  return search.unconfirmed.length < REFUSED_BEFORE_CONTROL ? null : await confirmAll(search);
}

/** Resolves a range in which the database refused some lines for their age. */
async function resolveTooOld(
  search: Search,
  {
    indexes,
    refusal,
    dropped,
  }: { readonly indexes: readonly number[]; readonly refusal: RejectedWrite; readonly dropped: number },
): Promise<Blocked | null | 'unclear'> {
  const times = indexes.map((index) => timeOf(lineAt(search, index)));
  const send = async (nths: readonly number[]): Promise<Verdict> =>
    await search.send(nths.map((nth) => lineAt(search, indexes[nth] ?? 0)));
  const found = await findTooOld({ times, dropped, send, sendLine: search.send, ages: search.options.ages });
  if (found === 'unclear' || !('tooOld' in found)) return found;
  noteAccepted(
    search,
    found.accepted.map((nth) => indexes[nth] ?? 0),
  );
  for (const nth of found.tooOld) reject(search, indexes[nth] ?? 0, { message: refusal.message, retention: true });
  return null;
}

/** The lines of a range that are neither accepted nor rejected yet. */
function unresolvedIndexes({ accepted, rejected }: Search, { from, to }: Range): number[] {
  const indexes = Array.from({ length: to - from }, (_, nth) => from + nth);
  return indexes.filter((index) => accepted[index] !== true && !rejected.has(index));
}

function lineAt({ lines }: Pick<Search, 'lines'>, index: number): string {
  return lines[index] ?? '';
}

/**
 * The halves of a range, the right one first, so that the left one is taken from the stack first.
 *
 * @param isRefused whether the range was refused for a reason other than its size
 */
function halves({ from, to }: Range, isRefused: boolean): [Range, Range] {
  const middle = (from + to) >> 1;
  return [
    { from: middle, to, otherHalf: isRefused ? from : -1 },
    { from, to: middle, otherHalf: -1 },
  ];
}

/** If the left half of a refused range is accepted, the right half is at fault. It is halved without being sent. */
function splitOtherHalf(todo: Range[], accepted: Range): void {
  const next = todo.at(-1);
  if (next === undefined || next.otherHalf !== accepted.from || next.from !== accepted.to) return;
  if (next.to - next.from > 1) todo.splice(-1, 1, ...halves(next, true));
}

/** How many lines, counted from the first, are accepted or rejected. */
function countResolved({ lines, accepted, rejected }: Search): number {
  let resolved = 0;
  while (resolved < lines.length && (accepted[resolved] === true || rejected.has(resolved))) resolved += 1;
  return resolved;
}

/** Records that lines were accepted together. This may confirm that other lines are at fault. */
function noteAccepted(search: Search, indexes: readonly number[]): void {
  for (const index of indexes) search.accepted[index] = true;
  for (const index of indexes) {
    if (search.unconfirmed.length === 0) return;
    confirm(search, lineAt(search, index));
  }
}

function reject(
  search: Search,
  index: number,
  { message, retention }: Pick<RejectedWrite, 'message' | 'retention'>,
): void {
  search.rejected.set(index, { index, line: lineAt(search, index), message, retention });
}

/** Rejects the refused lines whose control is the accepted line. */
function confirm(search: Search, control: string): void {
  const controlKind = kindOf(control);
  const isConfirmed = ({ kind }: Unconfirmed): boolean => kind === null || kind === controlKind;
  for (const { index, refusal } of search.unconfirmed.filter(isConfirmed)) {
    reject(search, index, refusal);
  }
  search.unconfirmed = search.unconfirmed.filter((each) => !isConfirmed(each));
}

/**
 * Sends control lines until every refusal is confirmed.
 *
 * @returns why that is impossible; `null` if all are confirmed
 */
async function confirmAll(search: Search): Promise<Blocked | null> {
  for (let first = search.unconfirmed[0]; first !== undefined; first = search.unconfirmed[0]) {
    const blocked = await sendControls(search, first);
    if (blocked !== null) return blocked;
  }
  return null;
}

/** Sends lines like the refused one until one is accepted, which confirms that the refused line is at fault. */
async function sendControls(search: Search, refused: Unconfirmed): Promise<Blocked | null> {
  for (const line of controlsFor(search, refused)) {
    const verdict = await search.send([line]);
    if (verdict.does === 'keep') return verdict.blocked;
    if (verdict.does !== 'accept') continue;
    confirm(search, line);
    return null;
  }
  const { refusal, kind } = refused;
  if (refusal.conflict) {
    const blocked = await sendOtherControl(search, refused);
    if (blocked !== 'rejected') return blocked;
  }
  const hint =
    kind === null
      ? 'even single lines are too large for the database or a proxy in front of it; raise the request size limit there'
      : `no line of "${kind}" (measurement, fields) is accepted. Check the log of the database for a field type conflict, a limit or a full disk`;
  return { message: refusal.message, hint, isAnswer: true, needsPerson: true, waitMs: null };
}

/**
 * After a conflict of types, sends lines of other kinds until one is accepted: then the refused lines of this kind are
 * at fault.
 *
 * @returns why the search has to stop; `null` if the lines are rejected; 'rejected' if there is no evidence that they
 * are at fault
 */
async function sendOtherControl(search: Search, refused: Unconfirmed): Promise<Blocked | null | 'rejected'> {
  for (const line of otherControlsFor(search, refused)) {
    const verdict = await search.send([line]);
    if (verdict.does === 'keep') return verdict.blocked;
    if (verdict.does !== 'accept') continue;
    const isAlike = ({ kind }: Unconfirmed): boolean => kind === refused.kind;
    for (const { index, refusal } of search.unconfirmed.filter(isAlike)) {
      reject(search, index, { message: refusal.message, retention: false });
    }
    search.unconfirmed = search.unconfirmed.filter((each) => !isAlike(each));
    return null;
  }
  return 'rejected';
}

/**
 * Lines of other kinds: the latest accepted line of this batch, otherwise the caller's, and one line of each other kind
 * in this batch.
 */
function otherControlsFor({ lines, options, accepted, rejected }: Search, { index, kind }: Unconfirmed): string[] {
  const control = lines.findLast((line, nth) => accepted[nth] === true && kindOf(line) !== kind);
  if (control !== undefined) return [control];
  const known = options.otherControlFor?.(lineAt({ lines }, index)) ?? null;
  const byKind = new Map<string, string>();
  for (const [nth, line] of lines.entries()) {
    if (!rejected.has(nth) && kindOf(line) !== kind) byKind.set(kindOf(line), line);
  }
  return [...(known === null ? [] : [known]), ...byKind.values()].slice(0, PROBES);
}

/**
 * The lines that a working destination should accept: the latest accepted line of this batch, otherwise the caller's.
 * If that is refused as well (it may have become too old), other lines of this batch.
 */
function controlsFor({ lines, options, accepted, rejected, unconfirmed }: Search, refused: Unconfirmed): string[] {
  const isLike = (line: string): boolean => refused.kind === null || kindOf(line) === refused.kind;
  const control = lines.findLast((line, index) => accepted[index] === true && isLike(line));
  // This line was accepted a moment ago. If it is refused now, the destination fails, and other lines would add no
  // information.
  if (control !== undefined) return [control];
  const known = options.controlFor(lines[refused.index] ?? '');
  const rejectedAlone = new Set(unconfirmed.map(({ index }) => index));
  const untried = lines.filter((line, index) => !rejected.has(index) && !rejectedAlone.has(index) && isLike(line));
  const step = Math.max(1, untried.length / PROBES);
  const count = Math.min(PROBES, untried.length);
  const probes = Array.from({ length: count }, (_, nth) => untried[Math.floor(nth * step)] ?? '');
  return known !== null && isLike(known) ? [known, ...probes] : probes;
}
