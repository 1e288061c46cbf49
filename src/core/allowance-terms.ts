/**
 * The terms of the quota: the plan's limits, what is known of each window, when a request may go.
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
