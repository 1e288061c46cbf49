/**
 * The words in which the allowance is spoken of: what is known of it, what an answer tells of it, when a request may go.
 */

/** The plan's limits; `null` where the account does not tell one. */
export interface PlanFigures {
  readonly perMinute: number | null;
  readonly perDay: number | null;
}

/** What holds a request back: the even pace, a ceiling or what others use, or a wait that was asked for. */
export type WaitReason = 'pace' | 'minute' | 'day' | 'asked';

/** When the next request may go; a time that has passed means now. */
export interface Turn {
  readonly atMs: number;
  readonly reason: WaitReason;
}

/** What one answer tells of the allowance. */
export interface AnswerFacts {
  /** When its request was sent and when it came. */
  readonly sentMs: number;
  readonly nowMs: number;
  /** `null` where no answer came. */
  readonly status: number | null;
  /** `X-RateLimit-Limit` and `-Remaining`. */
  readonly limit: number | null;
  readonly remaining: number | null;
  /** The wait that the answer asks for. */
  readonly waitMs: number | null;
}
