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

/** One window, in requests. `null`: not known. */
export interface WindowFigures {
  /** The server's limit: the plan's, or what the headers corrected it down to. */
  readonly limit: number | null;
  /** The share of it. */
  readonly budget: number | null;
  /** Sent in the last minute or day. */
  readonly spent: number;
  /** What other clients have used, as of the last answer that told of this window. */
  readonly others: number | null;
}
