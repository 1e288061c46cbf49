/**
 * Estimates the server's time from the `Date` headers of its answers and the monotonic clock, which never jumps.
 *
 * Each answer bounds the offset between the server's clock and the monotonic clock: the server wrote `Date` between
 * sending and receiving, truncated to the second. These are the rules, and no other part of the program has its own:
 *
 * 1. The time that has certainly passed follows from the lowest offset of the last ten minutes (of the last three
 *    answers at least), minus the drift since. So a `Date` that falls back counts at once, and a wrong `Date` ahead
 *    counts only for a while.
 * 2. A `Date` more than five seconds ahead of all remembered answers is a jump ahead. It counts only if the local wall
 *    clock has made the same jump (the host slept, and the monotonic clock stood still): then earlier answers are
 *    dropped. Otherwise the answer is ignored, until such answers have agreed three times, over ten minutes, with a
 *    time that the API serves meanwhile, or within two minutes with the local wall clock or with the server's time from
 *    before it fell back: then the server's clock was corrected. Not so while the newest time that the API serves
 *    continues by the clock from before: then the local clock is wrong too.
 * 3. `highestPassedMs` never falls back. It stands still until the server's clock has caught up. Once the last two
 *    answers say that the clock has fallen back (`presentAtMostMs`), `nowMs` falls back too, and ingest takes back the
 *    coverage of every device beyond the time to which the clock fell (`fellToMs`) and reads that range again.
 * 4. If no answer has a `Date` that counts, the times that the API has served, of readings and signs of life, are the
 *    evidence: the server's clock had passed each of them when it came, and has moved on since. Each counts up to the
 *    local clock.
 * 5. The first `Date` of a process is one of several clocks:
 *
 *    | the first `Date`                                              | counts                                    |
 *    | ------------------------------------------------------------- | ----------------------------------------- |
 *    | agrees with the local clock                                   | at once                                   |
 *    | agrees with a time that the API serves, or that is in the     | at once, or as soon as that is served     |
 *    | state; such a time may be older, never newer                  |                                           |
 *    | agrees with none of them                                      | once a second answer, requested at least  |
 *    |                                                               | a minute later, agrees with it            |
 *
 *    To agree means: within the grace period, by which coverage stays behind. While a `Date` does not count, the
 *    server's time is unknown and nothing is covered. After three answers without `Date`, or with one that agrees with
 *    none before it, rule 4 applies until a `Date` counts.
 */
import {
  addServed,
  areAlike,
  estimateMs,
  fallenFromMs,
  hasWallJumpedToo,
  highestMs,
  isAhead,
  JUMP_MS,
  lowestMs,
  type PassedTime,
  passedByNow,
  type ReceivedDate,
  type Sample,
  type ServedTimes,
  toSample,
  withSample,
} from './clock-samples.ts';
import type { Clock } from './ports.ts';
import { DAY_MS, type EpochMs, type EpochNs, MINUTE_MS, maxNs, msToNs, nsToMs } from './time.ts';

/** A jump ahead that the local clock has not made counts after this many answers that agree with it, over this time. */
const AGREES_MS = 2 * MINUTE_MS;
const AGREES_FOR_MS = 10 * MINUTE_MS;
const AGREES_TIMES = 3;
/** This many of the last answers must show that the server's clock has fallen back. A single answer may be wrong. */
const FALLEN_BACK_TIMES = 2;
/**
 * After this many answers without `Date`, or with a `Date` that agrees with none before it, the server counts as
 * sending none.
 */
const ABSENT_AFTER = 3;

/** A `Date` that agrees with no other clock counts after this time, when a second answer agrees with it. */
const CONFIRMED_AFTER_MS = MINUTE_MS;

/** The clocks that the first `Date` is compared with, in addition to the local one. */
interface OtherClocks {
  /** How far clocks may differ and still agree, in ms: the grace period. */
  readonly toleranceMs: number;
  /** The times of the server in the state. Called only if `Date` is missing or disagrees with the local clock. */
  readonly storedMs: () => readonly EpochMs[];
}

/** A `Date` that does not count yet: rule 5. */
interface UnconfirmedDate {
  /** The server's time now, if this `Date` is right. */
  readonly dateMs: EpochMs;
  /** How long until a second answer can confirm it, in ms. */
  readonly confirmedInMs: number;
}

/** The server's time, by the rules above. */
export interface ServerClock {
  /** Records the time in an answer of the API. Answers of a gateway come from another clock and must not be passed. */
  noteDate(answer: ReceivedDate): void;
  /**
   * Records times of readings or signs of life that the API has served. The server's clock has passed them, and any of
   * them may agree with a `Date`.
   *
   * @param hasFuture whether later times were rejected: see `latestNs`.
   */
  noteTimes(times: readonly EpochNs[], hasFuture?: boolean | undefined): void;
  /**
   * Whether the local clock must be behind: no `Date` counts, and all times that the API has served are more than a day
   * ahead. Then the server's time is unknown.
   */
  isLocalBehind(): boolean;
  /** Whether the server's time is known from a `Date` that counts. */
  isKnown(): boolean;
  /** The first `Date` while it does not count; `null` otherwise. */
  unconfirmed(): UnconfirmedDate | null;
  /** The best estimate of the server's time; the local clock's time while nothing is known. It may fall back. */
  nowMs(): EpochMs;
  /**
   * The latest time that may be the present: `nowMs`. Without a `Date` that counts, a later time that the API has
   * served, because the local clock may be behind.
   */
  latestPresentMs(): EpochMs;
  /**
   * The highest value that `passedMs` has had; `null` without any evidence. It never falls back. The caller must allow
   * for a `Date` that is rounded instead of truncated to the second.
   */
  highestPassedMs(): EpochMs | null;
  /** A time that the server's clock has certainly passed, by the remembered answers. It falls back when `Date` does. */
  passedMs(): EpochMs | null;
  /**
   * A time that the server's clock has not reached yet, by its last answers; `null` if too few had a `Date`. Coverage
   * beyond it comes from a clock that has fallen back since.
   */
  presentAtMostMs(): EpochMs | null;
  /**
   * The earliest time that the server's clock may have shown since it fell back: its time now minus the time since the
   * last request whose answer did not show the fall. `null` without any evidence.
   */
  fellToMs(): EpochMs | null;
  /**
   * The server's time while its clock has fallen back from a time that agreed with the local clock: every other fact
   * shows that it is wrong now. `null` otherwise.
   */
  fallenToMs(): EpochMs | null;
  /**
   * Local wall clock minus server's clock, accurate to about a second, even from an unconfirmed `Date`; `null` before
   * the first `Date`.
   */
  skewMs(): number | null;
  /** Whether the API sends no `Date`: at least three answers came, and none had one. */
  isDateAbsent(): boolean;
  /**
   * The latest time that a served record may have: a day after the latest of the clocks (the server's, confirmed or
   * not, the local one, and without `Date` the times that the state had at the start). A record with a later time is
   * rejected.
   */
  latestNs(): EpochNs;
}

/** The evidence about the server's clock, from the answers of the API. */
interface Evidence {
  readonly memory: Memory;
  readonly last: LastAnswers;
  readonly unconfirmed: DateToConfirm | null;
  readonly answersWithout: number;
  readonly served: ServedTimes;
  /** The highest time that the evidence had shown before its last change. */
  readonly highestBeforeMs: EpochMs | null;
  /** The latest time that the state had at the first answer without a `Date` to use; `null` before. */
  readonly storedMs: EpochMs | null;
}

const NO_EVIDENCE: Evidence = {
  memory: { samples: [], ahead: null, beforeFallMs: null },
  last: { samples: [], uprightMonoMs: null },
  unconfirmed: null,
  answersWithout: 0,
  served: { newest: null, passed: null, areFuture: false },
  highestBeforeMs: null,
  storedMs: null,
};

/**
 * Creates a clock without any answer yet.
 *
 * @param others the clocks that the first `Date` is compared with; without them the first `Date` counts at once.
 */
export function createServerClock(clock: Clock, others: OtherClocks | null = null): ServerClock {
  let evidence = NO_EVIDENCE;
  const passedMs = (): EpochMs | null => passedBy(evidence, clock);
  const presentAtMostMs = (): EpochMs | null => presentAtMost(evidence.last, clock.monoMs());
  const nowMs = (): EpochMs => Math.min(estimateMs(evidence.memory.samples, clock), presentAtMostMs() ?? Infinity);
  const isKnown = (): boolean => evidence.memory.samples.length > 0;

  return {
    noteDate(answer) {
      evidence = withStored(afterAnswer(evidence, answer, { clock, others }), others);
    },
    noteTimes(times, hasFuture = false) {
      evidence = afterTimes(evidence, { times, hasFuture }, { clock, others });
    },
    isKnown,
    isLocalBehind: () => !isKnown() && evidence.served.newest === null && evidence.served.areFuture,
    unconfirmed: () => (isAwaited(evidence.unconfirmed) ? describeUnconfirmed(evidence.unconfirmed, clock) : null),
    nowMs,
    latestPresentMs: () => (isKnown() ? nowMs() : Math.max(nowMs(), passedByNow(evidence.served.newest, clock) ?? 0)),
    highestPassedMs: () => laterOrNull(evidence.highestBeforeMs, passedMs()),
    passedMs,
    presentAtMostMs,
    fellToMs: () => fellTo(passedMs(), evidence.last, clock),
    fallenToMs: () => fallenTo(presentAtMostMs(), evidence.memory, clock),
    skewMs: () =>
      countedSamples(evidence).length === 0 ? null : clock.nowMs() - estimateMs(countedSamples(evidence), clock),
    isDateAbsent: () => countedSamples(evidence).length === 0 && evidence.answersWithout >= ABSENT_AFTER,
    latestNs: () => {
      const apiMs =
        countedSamples(evidence).length > 0
          ? estimateMs(countedSamples(evidence), clock)
          : (evidence.storedMs ?? latestStored(others));
      return msToNs(Math.max(clock.nowMs(), apiMs) + DAY_MS);
    },
  };
}

/** The remembered answers, or the one whose `Date` does not count yet. */
function countedSamples({ memory, unconfirmed }: Evidence): readonly Sample[] {
  return isAwaited(unconfirmed) ? [unconfirmed.first] : memory.samples;
}

/** A time that the server's clock has certainly passed. */
function passedBy({ memory, unconfirmed, served }: Evidence, clock: Clock): EpochMs | null {
  if (isAwaited(unconfirmed)) return null;
  return memory.samples.length === 0 ? passedByNow(served.passed, clock) : lowestMs(memory.samples, clock.monoMs());
}

/** The evidence after one more answer. */
function afterAnswer(before: Evidence, answer: ReceivedDate, { clock, others }: Clocks): Evidence {
  const { memory, last, answersWithout } = before;
  let { unconfirmed } = before;
  // Between two answers `passedMs` only grows, so it is enough to remember its value before each answer.
  const evidence = { ...before, highestBeforeMs: laterOrNull(before.highestBeforeMs, passedBy(before, clock)) };
  if (answer.dateMs === null) {
    unconfirmed &&= { ...unconfirmed, doubts: unconfirmed.doubts + 1 };
    return { ...evidence, unconfirmed, answersWithout: answersWithout + 1 };
  }
  const { sentMonoMs } = answer;
  const next = toSample(answer.dateMs, answer, clock);
  if (memory.samples.length === 0 && others !== null)
    unconfirmed = unconfirmedAfter(unconfirmed, { ...next, sentMonoMs }, { clock, others });
  if (unconfirmed !== null) return { ...evidence, unconfirmed };
  const added = addSample(memory, next, { wallMs: clock.nowMs(), toleranceMs: toleranceOf(others) });
  const about = { before: memory.samples, after: added.samples, next, sentMonoMs };
  return { ...evidence, unconfirmed, memory: added, last: noteLast(last, about) };
}

/** The evidence after the API has served more times. */
function afterTimes(
  before: Evidence,
  { times, hasFuture }: { readonly times: readonly EpochNs[]; readonly hasFuture: boolean },
  { clock, others }: Clocks,
): Evidence {
  const { unconfirmed } = before;
  const areFuture = before.served.areFuture || hasFuture;
  const served = addServed({ ...before.served, areFuture }, times, clock);
  const memory = { ...before.memory, ahead: servedSince(before.memory.ahead, times, clock.monoMs()) };
  const isConfirmed =
    unconfirmed !== null &&
    others !== null &&
    times.some((at) => agreesWithServed(unconfirmed.first, nsToMs(at), { clock, others }));
  if (!isConfirmed) return { ...before, served, memory };
  return { ...before, served, unconfirmed: null, memory: { ...memory, samples: [unconfirmed.first] } };
}

/** The evidence with the latest time of the state, before the first answer without a `Date` to use adds to it. */
function withStored(evidence: Evidence, others: OtherClocks | null): Evidence {
  const isNeeded = evidence.storedMs === null && countedSamples(evidence).length === 0;
  return isNeeded ? { ...evidence, storedMs: latestStored(others) } : evidence;
}

function latestStored(others: OtherClocks | null): EpochMs {
  return Math.max(0, ...(others?.storedMs() ?? []));
}

function presentAtMost({ samples }: LastAnswers, monoMs: number): EpochMs | null {
  return samples.length < FALLEN_BACK_TIMES ? null : Math.ceil(monoMs + highestMs(samples, monoMs));
}

function fellTo(nowMs: EpochMs | null, { uprightMonoMs }: LastAnswers, clock: Clock): EpochMs | null {
  return nowMs === null || uprightMonoMs === null ? nowMs : Math.floor(nowMs - (clock.monoMs() - uprightMonoMs));
}

/** `presentMs`, if the clock agreed with the local one before it fell back to that time. */
function fallenTo(presentMs: EpochMs | null, { beforeFallMs }: Memory, clock: Clock): EpochMs | null {
  if (presentMs === null || beforeFallMs === null) return null;
  const uprightMs = clock.monoMs() + beforeFallMs;
  const isFallen = presentMs < uprightMs - AGREES_MS && Math.abs(clock.nowMs() - uprightMs) <= AGREES_MS;
  return isFallen ? presentMs : null;
}

function laterOrNull(a: EpochMs | null, b: EpochMs | null): EpochMs | null {
  return a === null || b === null ? (a ?? b) : Math.max(a, b);
}

/** Consecutive answers that are ahead of the remembered ones and alike. */
interface JumpAhead {
  readonly samples: readonly Sample[];
  /** How many of them in a row agreed with another clock, and since when. */
  readonly times: number;
  readonly sinceMonoMs: number;
  /** The newest time that the API has served since the first of them. */
  readonly served: PassedTime | null;
}

/** The jump after the API has served more times. */
function servedSince(ahead: JumpAhead | null, times: readonly EpochNs[], monoMs: number): JumpAhead | null {
  if (ahead === null || times.length === 0) return ahead;
  const atMs = nsToMs(times.reduce(maxNs));
  return atMs > (ahead.served?.atMs ?? Number.NEGATIVE_INFINITY) ? { ...ahead, served: { atMs, monoMs } } : ahead;
}

interface Memory {
  readonly samples: readonly Sample[];
  readonly ahead: JumpAhead | null;
  /** The offset from before `Date` fell back; `null` if it never did, or has returned. */
  readonly beforeFallMs: number | null;
}

/** The first of the answers whose `Date` agrees with no other clock, but with each other: rule 5. */
interface DateToConfirm {
  readonly first: Sample;
  /** The number of answers since the first `Date` that have no `Date`, or one that agrees with none before it. */
  readonly doubts: number;
}

/** Whether a second `Date` is still awaited. It is not after several answers without one, or with others. */
function isAwaited(unconfirmed: DateToConfirm | null): unconfirmed is DateToConfirm {
  return unconfirmed !== null && unconfirmed.doubts < ABSENT_AFTER;
}

interface Clocks {
  readonly clock: Clock;
  readonly others: OtherClocks | null;
}

type Comparison = Clocks & { readonly others: OtherClocks };

function describeUnconfirmed({ first }: DateToConfirm, clock: Clock): UnconfirmedDate {
  const confirmedInMs = Math.max(0, first.monoMs + CONFIRMED_AFTER_MS - clock.monoMs());
  return { dateMs: estimateMs([first], clock), confirmedInMs };
}

/** The unconfirmed date after one more answer; `null` if the `Date` of that answer counts. */
function unconfirmedAfter(
  unconfirmed: DateToConfirm | null,
  next: Sample & Pick<ReceivedDate, 'sentMonoMs'>,
  { clock, others }: Comparison,
): DateToConfirm | null {
  const localMs = clock.nowMs();
  if (Math.abs(estimateMs([next], clock) - localMs) <= toleranceOf(others)) return null;
  if (others.storedMs().some((storedMs) => agreesWithServed(next, storedMs, { clock, others }))) return null;
  if (unconfirmed === null) return { first: next, doubts: 0 };
  if (!areAlike(unconfirmed.first, next)) return { first: next, doubts: unconfirmed.doubts + 1 };
  // A slow answer may have been dated when it was requested.
  return next.sentMonoMs - unconfirmed.first.monoMs >= CONFIRMED_AFTER_MS ? null : unconfirmed;
}

/** Whether a `Date` agrees with a passed time of the server: that time is older by the tolerance at most. */
function agreesWithServed(sample: Sample, servedMs: EpochMs, { clock, others }: Comparison): boolean {
  return isOlder(estimateMs([sample], clock) - servedMs, toleranceOf(others));
}

/** Whether a served time is as much older than a clock as an agreeing clock allows. */
function isOlder(olderMs: number, toleranceMs: number): boolean {
  return olderMs >= -JUMP_MS && olderMs <= toleranceMs;
}

function toleranceOf(others: OtherClocks | null): number {
  return Math.max(others?.toleranceMs ?? 0, JUMP_MS);
}

/** The last answers one by one, because the answers that are remembered for longer are merged. */
interface LastAnswers {
  /** As many answers as it takes to show that the clock has fallen back. */
  readonly samples: readonly Sample[];
  /** When the last request was sent whose answer was not behind the others; `null` before the first one. */
  readonly uprightMonoMs: number | null;
}

/**
 * The last answers after one more.
 *
 * @param about the remembered answers before and after it.
 */
function noteLast(
  last: LastAnswers,
  about: {
    readonly before: readonly Sample[];
    readonly after: readonly Sample[];
    readonly next: Sample;
    readonly sentMonoMs: number;
  },
): LastAnswers {
  const { before, after, next, sentMonoMs } = about;
  if (isAhead(after, next)) return last;
  if (isAhead(before, next)) return { samples: [next], uprightMonoMs: sentMonoMs };
  const isUpright = fallenFromMs(before, next, null) === null;
  return {
    samples: [...last.samples, next].slice(-FALLEN_BACK_TIMES),
    uprightMonoMs: isUpright ? Math.max(sentMonoMs, last.uprightMonoMs ?? sentMonoMs) : last.uprightMonoMs,
  };
}

/** The memory after one more answer: rule 2. */
function addSample(
  { samples, ahead, beforeFallMs }: Memory,
  next: Sample,
  { wallMs, toleranceMs }: { readonly wallMs: EpochMs; readonly toleranceMs: number },
): Memory {
  if (!isAhead(samples, next)) {
    return { samples: withSample(samples, next), ahead: null, beforeFallMs: fallenFromMs(samples, next, beforeFallMs) };
  }
  if (hasWallJumpedToo(samples, next)) return { samples: [next], ahead: null, beforeFallMs: null };
  const agreesWithWall = Math.abs(next.monoMs + next.bestMs - wallMs) <= AGREES_MS;
  // The server's clock has returned to where it was before it fell back. The local clock need not be right for that.
  const isAsBefore = beforeFallMs !== null && Math.abs(next.bestMs - beforeFallMs) <= AGREES_MS;
  const known = ahead?.samples.every((sample) => areAlike(sample, next)) === true ? ahead : null;
  const served = known?.served ?? null;
  const agreesWithTimes = served !== null && isOlder(olderBy(served, [next]), toleranceMs);
  const times = agreesWithWall || isAsBefore || agreesWithTimes ? (known?.times ?? 0) + 1 : 0;
  const agreed: JumpAhead =
    known === null || times <= 1
      ? { samples: [next], times, sinceMonoMs: next.monoMs, served }
      : { ...known, samples: withSample(known.samples, next), times };
  const isLongEnough = times >= AGREES_TIMES && next.monoMs - agreed.sinceMonoMs >= AGREES_FOR_MS;
  if (!isLongEnough || continuesAsBefore(agreed, samples, toleranceMs)) return { samples, ahead: agreed, beforeFallMs };
  return { samples: agreed.samples, ahead: null, beforeFallMs: null };
}

/**
 * Whether the newest time that was served since a jump is from after the jump, but follows the clock from before it.
 */
function continuesAsBefore(
  { samples, served, sinceMonoMs }: JumpAhead,
  before: readonly Sample[],
  toleranceMs: number,
) {
  if (served === null || isOlder(olderBy(served, samples), toleranceMs)) return false;
  const olderMs = olderBy(served, before);
  return isOlder(olderMs, toleranceMs) && served.monoMs - olderMs > sinceMonoMs;
}

/** By how much a served time was older than a clock when it was received. */
function olderBy({ atMs, monoMs }: PassedTime, samples: readonly Sample[]): number {
  return Math.max(...samples.map(({ bestMs }) => bestMs)) + monoMs - atMs;
}
