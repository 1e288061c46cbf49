/**
 * What is known of the lines of a batch while it is being settled, and what may be concluded from it.
 *
 * A line that was refused alone is a suspect. It is called bad once a line like it is accepted *after* that; until
 * then it may be the destination that fails. "Like it" is the same measurement and the same fields, because databases
 * keep types there; for a line that was too large it is any line.
 */
import { LATER_HINT } from '../core/faults.ts';
import { kindOf } from '../core/lines/line-reader.ts';
import type { WriteAnswer } from '../core/ports.ts';

/** A line that a database does not take, while it takes others like it. */
export interface RefusedLine {
  /** Its place in the batch. */
  readonly index: number;
  readonly line: string;
  /** The server's words. */
  readonly words: string;
  /** Whether it was refused for its age. */
  readonly retention: boolean;
}

/** Why the rest of a batch is kept. */
export interface Hold {
  readonly words: string;
  /** What a person can do; empty where waiting is all. */
  readonly hint: string;
  /** How long the server asked to wait, in milliseconds; `null` where it did not. */
  readonly waitMs: number | null;
}

/** An answer that speaks against lines. */
export type Refusal = Extract<WriteAnswer, { readonly kind: 'refused' | 'too-large' }>;

interface Suspect {
  readonly index: number;
  readonly refusal: Refusal;
  /** The kind of line whose being accepted speaks against it; `null`: any. */
  readonly kind: string | null;
}

/** What is known so far. Made by {@link collectEvidence}, changed by the functions of this file only. */
export interface Evidence {
  readonly lines: readonly string[];
  /** By index: whether the line was accepted. */
  readonly accepted: boolean[];
  readonly bad: Map<number, RefusedLine>;
  suspects: readonly Suspect[];
}

/** The means to find out more. */
export interface Means {
  /** A line of the same kind that the destination has accepted before this batch, if one is known. */
  readonly witness: (line: string) => string | null;
  readonly send: (part: readonly string[]) => Promise<WriteAnswer>;
}

/** How many other lines of the batch are tried, spread over it, where no line is known that would be accepted. */
const PROBES = 12;

/** Begins with nothing known of `lines`. */
export function collectEvidence(lines: readonly string[]): Evidence {
  return { lines, accepted: [], bad: new Map(), suspects: [] };
}

/** Notes that lines were accepted together, which may speak against suspects. */
export function noteAccepted(evidence: Evidence, indexes: readonly number[]): void {
  for (const index of indexes) evidence.accepted[index] = true;
  for (const index of indexes) {
    if (evidence.suspects.length === 0) return;
    convict(evidence, evidence.lines[index] ?? '');
  }
}

/** Notes that lines are older than the destination keeps. */
export function noteBeyond(evidence: Evidence, indexes: readonly number[], { words }: Refusal): void {
  for (const index of indexes) {
    evidence.bad.set(index, { index, line: evidence.lines[index] ?? '', words, retention: true });
  }
}

/** Notes that a line was refused alone. */
export function noteSuspect(evidence: Evidence, index: number, refusal: Refusal): void {
  const kind = refusal.kind === 'too-large' ? null : kindOf(evidence.lines[index] ?? '');
  evidence.suspects = [...evidence.suspects, { index, refusal, kind }];
}

/** How many lines, from the first one on, are accepted or called bad. */
export function countSettled({ lines, accepted, bad }: Evidence): number {
  let settled = 0;
  while (settled < lines.length && (accepted[settled] === true || bad.has(settled))) settled += 1;
  return settled;
}

/** The lines called bad among the first `settled`, in their order. */
export function listRefused({ bad }: Evidence, settled: number): RefusedLine[] {
  return [...bad.values()].filter(({ index }) => index < settled).sort((a, b) => a.index - b.index);
}

/**
 * Clears up all suspects, by sending lines that should be accepted.
 *
 * @returns why nothing can be concluded, or `null` where all suspects are called bad.
 */
export async function judge(evidence: Evidence, means: Means): Promise<Hold | null> {
  for (let suspect = evidence.suspects[0]; suspect !== undefined; suspect = evidence.suspects[0]) {
    const hold = await control(evidence, suspect, means);
    if (hold !== null) return hold;
  }
  return null;
}

/** The hold that an answer about the destination as a whole asks for. */
export function holdOf(answer: Extract<WriteAnswer, { readonly kind: 'held' | 'later' }>): Hold {
  const { words } = answer;
  return answer.kind === 'held'
    ? { words, hint: answer.hint, waitMs: null }
    : { words, hint: LATER_HINT, waitMs: answer.waitMs };
}

/** Tries lines like the suspect until one is accepted, which convicts it. */
async function control(evidence: Evidence, suspect: Suspect, { witness, send }: Means): Promise<Hold | null> {
  for (const line of candidates(evidence, suspect, witness)) {
    const answer = await send([line]);
    if (answer.kind === 'later' || answer.kind === 'held') return holdOf(answer);
    if (answer.kind !== 'accepted') continue;
    convict(evidence, line);
    return null;
  }
  const { refusal, kind } = suspect;
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
function candidates(
  { lines, accepted, bad, suspects }: Evidence,
  suspect: Suspect,
  witness: Means['witness'],
): string[] {
  const isLike = (line: string): boolean => suspect.kind === null || kindOf(line) === suspect.kind;
  const proven = lines.findLast((line, index) => accepted[index] === true && isLike(line));
  // Refused now though it was accepted a moment ago: the destination fails, and no other line would tell more.
  if (proven !== undefined) return [proven];
  const known = witness(lines[suspect.index] ?? '');
  const suspected = new Set(suspects.map(({ index }) => index));
  const untried = lines.filter((line, index) => !bad.has(index) && !suspected.has(index) && isLike(line));
  const step = Math.max(1, untried.length / PROBES);
  const probes = Array.from(
    { length: Math.min(PROBES, untried.length) },
    (_, nth) => untried[Math.floor(nth * step)] ?? '',
  );
  return known !== null && isLike(known) ? [known, ...probes] : probes;
}

/** Calls those suspects bad that an accepted line speaks against. */
function convict(evidence: Evidence, acceptedLine: string): void {
  const acceptedKind = kindOf(acceptedLine);
  const speaksAgainst = ({ kind }: Suspect): boolean => kind === null || kind === acceptedKind;
  for (const { index, refusal } of evidence.suspects.filter(speaksAgainst)) {
    const retention = refusal.kind === 'refused' && refusal.retention;
    evidence.bad.set(index, { index, line: evidence.lines[index] ?? '', words: refusal.words, retention });
  }
  evidence.suspects = evidence.suspects.filter((suspect) => !speaksAgainst(suspect));
}
