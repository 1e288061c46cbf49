/**
 * The server's time, from the `Date` of its answers, carried on by a clock that never jumps.
 *
 * Each answer bounds the offset between the server's clock and the monotonic one: `Date` was written between sending
 * and receiving, and speaks in seconds. The rule, which nothing else in the program may second-guess:
 *
 * 1. For claims the lowest offset of the last ten minutes wins (of the last three answers at least), less what clocks
 *    may drift since. So a `Date` that falls back counts at once, and one that was wrong ahead does not for long.
 * 2. A `Date` more than five seconds ahead of what all remembered answers allow is a jump ahead. It counts only where
 *    the local wall clock has made the same jump (the host slept, and the monotonic clock stood still): then what was
 *    known before is dropped. Otherwise that answer is ignored, until such answers have agreed with the local wall
 *    clock, or with what it said before it fell back, to two minutes, three times and over ten minutes: then it is the
 *    server that was put right.
 * 3. What may be claimed never falls back: it holds until the server's clock has caught up. What was claimed beyond its
 *    present then (`presentAtMostMs`, by two answers) is for the pull to take back and read again.
 * 4. Without any `Date` the newest reading is the evidence, never beyond the local clock, and not carried on.
 */
import type { Clock } from './ports.ts';
import { type EpochMs, type EpochNs, MINUTE_MS, nsToMs, SECOND_MS } from './time.ts';

const REMEMBERED_MS = 10 * MINUTE_MS;
const REMEMBERED_AT_LEAST = 3;
/** Answers that come this close together are remembered as one, so that the memory stays small at any rate. */
const MERGED_MS = 5 * SECOND_MS;
const JUMP_MS = 5 * SECOND_MS;
/** What it takes to believe a jump ahead that the local clock has not made: to agree with that clock, so often and long. */
const AGREES_MS = 2 * MINUTE_MS;
const AGREES_FOR_MS = 10 * MINUTE_MS;
const AGREES_TIMES = 3;
/** So many of the last answers have to say that the server's clock has fallen back: one may be a stray. */
const FALLEN_BACK_TIMES = 2;
/** How far two clocks may drift apart: 0.5 ms a second, the most that clocks are slewed by. */
const DRIFT = 1 / 2000;
/** After so many answers without `Date` there is none to wait for. */
const ABSENT_AFTER = 3;

/** What one answer says of time. */
interface HeardDate {
  /** The `Date` header; `null` where the answer had none. */
  readonly dateMs: EpochMs | null;
  /** When the request was sent and when the head of its answer was received, by the monotonic clock. */
  readonly sentMonoMs: number;
  readonly receivedMonoMs: number;
}

export interface ServerClock {
  /** Takes the evidence of an answer of the API (not of a gateway, whose clock is another one). */
  heard(answer: HeardDate): void;
  /** Takes the time of a reading: the server's clock has passed it. */
  heardReading(at: EpochNs): void;
  /** The best estimate of the server's time; the local clock's where nothing is known. It may fall back. */
  nowMs(): EpochMs;
  /**
   * A time that the server's clock has passed, as far as can be known; `null` without any evidence. Never falls back.
   * That `Date` may be rounded rather than cut to the second is for the caller to allow for.
   */
  claimableMs(): EpochMs | null;
  /**
   * A time that the server's clock has passed by the answers that are remembered now: like `claimableMs`, and falls
   * back where `Date` does.
   */
  passedMs(): EpochMs | null;
  /**
   * A time that the server's clock has not reached yet, by its last answers; `null` where too few had a `Date`. What
   * was claimed beyond it was claimed by a clock that has fallen back since.
   */
  presentAtMostMs(): EpochMs | null;
  /** Local wall clock less server's, to about a second; `null` where no `Date` was heard. */
  skewMs(): number | null;
  /** Whether the API sends no `Date`: some answers have come, and none had one. */
  isDateAbsent(): boolean;
}

/** Bounds of server's minus monotonic time, over one or some answers. */
interface Sample {
  readonly lowestMs: number;
  readonly bestMs: number;
  readonly highestMs: number;
  readonly monoMs: number;
  /** Wall minus monotonic clock when the answer came. */
  readonly wallOffsetMs: number;
}

/** A clock that knows nothing yet. */
export function createServerClock(clock: Clock): ServerClock {
  let memory: Memory = { samples: [], ahead: null, beforeFallMs: null };
  let answersWithout = 0;
  let newestReadingMs: EpochMs | null = null;
  let claimedMs: EpochMs | null = null;
  const passedMs = (): EpochMs | null =>
    memory.samples.length === 0 ? newestReadingMs : lowestMs(memory.samples, clock.monoMs());

  return {
    heard(answer) {
      if (answer.dateMs === null) answersWithout += 1;
      else memory = takeIn(memory, toSample(answer.dateMs, answer, clock), clock.nowMs());
    },
    heardReading(at) {
      // A reading from the future proves nothing: a device's or a server's clock may be wrong.
      const provenMs = Math.min(nsToMs(at), clock.nowMs());
      newestReadingMs = newestReadingMs === null ? provenMs : Math.max(newestReadingMs, provenMs);
    },
    nowMs: () => estimateMs(memory.samples, clock),
    claimableMs() {
      const provenMs = passedMs();
      if (provenMs !== null) claimedMs = claimedMs === null ? provenMs : Math.max(claimedMs, provenMs);
      return claimedMs;
    },
    passedMs,
    presentAtMostMs() {
      const last = memory.samples.slice(-FALLEN_BACK_TIMES);
      return last.length < FALLEN_BACK_TIMES ? null : Math.ceil(clock.monoMs() + highestMs(last, clock.monoMs()));
    },
    skewMs: () => (memory.samples.length === 0 ? null : clock.nowMs() - estimateMs(memory.samples, clock)),
    isDateAbsent: () => memory.samples.length === 0 && answersWithout >= ABSENT_AFTER,
  };
}

function toSample(dateMs: EpochMs, { sentMonoMs, receivedMonoMs }: HeardDate, clock: Clock): Sample {
  const lowest = dateMs - receivedMonoMs;
  return {
    lowestMs: lowest,
    bestMs: lowest,
    highestMs: dateMs + SECOND_MS - sentMonoMs,
    monoMs: receivedMonoMs,
    wallOffsetMs: clock.nowMs() - clock.monoMs(),
  };
}

interface Memory {
  readonly samples: readonly Sample[];
  /** Answers that are ahead of those and agree with the local wall clock, in a row. */
  readonly ahead: { readonly samples: readonly Sample[]; readonly sinceMonoMs: number; readonly times: number } | null;
  /** What server's minus monotonic time was before `Date` fell back; `null` where it never did, or has come back. */
  readonly beforeFallMs: number | null;
}

/** What is remembered after one more answer: rule 2. */
function takeIn({ samples, ahead, beforeFallMs }: Memory, next: Sample, wallMs: EpochMs): Memory {
  if (!isAhead(samples, next)) {
    return { samples: remember(samples, next), ahead: null, beforeFallMs: fallenFromMs(samples, next, beforeFallMs) };
  }
  if (wallMadeItToo(samples, next)) return { samples: [next], ahead: null, beforeFallMs: null };
  const agreesWithWall = Math.abs(next.monoMs + next.bestMs - wallMs) <= AGREES_MS;
  // A fall that is put right: the local clock need not know the time for that.
  const isAsBefore = beforeFallMs !== null && Math.abs(next.bestMs - beforeFallMs) <= AGREES_MS;
  if (!agreesWithWall && !isAsBefore) return { samples, ahead: null, beforeFallMs };
  if (ahead === null || isAhead(ahead.samples, next)) {
    return { samples, ahead: { samples: [next], sinceMonoMs: next.monoMs, times: 1 }, beforeFallMs };
  }
  const agreed = { ...ahead, samples: remember(ahead.samples, next), times: ahead.times + 1 };
  const isLongEnough = agreed.times >= AGREES_TIMES && next.monoMs - agreed.sinceMonoMs >= AGREES_FOR_MS;
  return isLongEnough
    ? { samples: agreed.samples, ahead: null, beforeFallMs: null }
    : { samples, ahead: agreed, beforeFallMs };
}

/** The offset from before an answer that lies further back than the clocks' errors explain, or from before an earlier one. */
function fallenFromMs(samples: readonly Sample[], next: Sample, beforeMs: number | null): number | null {
  if (samples.length === 0) return beforeMs;
  const bestMs = Math.max(...samples.map((sample) => sample.bestMs));
  if (bestMs - highestMs([next], next.monoMs) <= JUMP_MS) return beforeMs;
  return Math.max(bestMs, beforeMs ?? bestMs);
}

/** Whether an answer is further ahead than what is remembered allows. */
function isAhead(samples: readonly Sample[], next: Sample): boolean {
  return samples.length > 0 && next.lowestMs - highestMs(samples, next.monoMs) > JUMP_MS;
}

/** Whether the local wall clock has jumped as far ahead as the answer is. */
function wallMadeItToo(samples: readonly Sample[], next: Sample): boolean {
  const aheadMs = next.lowestMs - highestMs(samples, next.monoMs);
  const aheadAtMostMs = next.highestMs - Math.min(...samples.map((sample) => sample.lowestMs));
  const wallMs = next.wallOffsetMs - (samples.at(-1)?.wallOffsetMs ?? next.wallOffsetMs);
  return wallMs >= aheadMs - JUMP_MS && wallMs <= aheadAtMostMs + JUMP_MS;
}

/** What is remembered after one more answer that fits: rule 1. */
function remember(samples: readonly Sample[], next: Sample): readonly Sample[] {
  const last = samples.at(-1);
  if (last === undefined) return [next];
  const kept = samples.filter(
    ({ monoMs }, index) => next.monoMs - monoMs <= REMEMBERED_MS || samples.length - index < REMEMBERED_AT_LEAST,
  );
  const before = kept.at(-2);
  // Merged only while that moves no answer out of reach of the "last three".
  if (before === undefined || kept.length <= REMEMBERED_AT_LEAST || next.monoMs - before.monoMs > MERGED_MS) {
    return [...kept, next];
  }
  return [...kept.slice(0, -1), merge(last, next)];
}

function merge(a: Sample, b: Sample): Sample {
  return {
    lowestMs: Math.min(a.lowestMs, b.lowestMs),
    bestMs: Math.max(a.bestMs, b.bestMs),
    highestMs: Math.max(a.highestMs, b.highestMs),
    monoMs: b.monoMs,
    wallOffsetMs: b.wallOffsetMs,
  };
}

/** The highest offset that the remembered answers allow now. */
function highestMs(samples: readonly Sample[], monoMs: number): number {
  return Math.max(...samples.map((sample) => sample.highestMs + DRIFT * (monoMs - sample.monoMs)));
}

/** The server's time by the lowest offset that the remembered answers allow now. */
function lowestMs(samples: readonly Sample[], monoMs: number): EpochMs {
  const offsets = samples.map((sample) => sample.lowestMs - DRIFT * (monoMs - sample.monoMs));
  return Math.floor(monoMs + Math.min(...offsets));
}

/** The tightest lower bound: `Date` is cut to the second and some time has passed since, so the highest is nearest. */
function estimateMs(samples: readonly Sample[], clock: Clock): EpochMs {
  if (samples.length === 0) return clock.nowMs();
  return Math.floor(clock.monoMs() + Math.max(...samples.map(({ bestMs }) => bestMs)));
}
