/**
 * The forgetting of a device, as the motion sees it: part of the port that `store/` fills with SQLite.
 *
 * Invariant: from its beginning on nothing of the device can land any more (`ForgottenError`) until it is listed anew,
 * and what was begun is finished, at the latest when the state is opened the next time. Every call is one small
 * transaction, safe to be broken off at.
 */

/** What was removed of a device. */
export interface ForgottenCounts {
  /** Lines of the archive. */
  readonly points: number;
  readonly quarantined: number;
  readonly alerts: number;
}

/** How far a forgetting is. */
export interface ForgetStep {
  readonly removed: ForgottenCounts;
  /** `waiting`: some of its lines are not delivered yet, and stay. */
  readonly state: 'going-on' | 'waiting' | 'done';
  /** How far the walk through the archive is, 0 to 1. */
  readonly share: number;
}

/** What waits for a destination of a device. */
export interface PendingOfDevice {
  readonly lines: number;
  /** From which block on to look further; `null` at the end of the lane. */
  readonly next: number | null;
}

export interface ForgetStore {
  /** Whether anything is held of a device. */
  knows(deviceId: string): boolean;
  /** Lines of a device that a destination has not settled, in some blocks of a lane from one on. */
  pending(deviceId: string, of: { destinationId: number; lane: 'live' | 'history'; from: number }): PendingOfDevice;
  /**
   * Begins: removes what is known of the device but for its lines.
   *
   * @param keepsAlerts whether its alerts may be told again by the API: they stay known, without the device.
   */
  begin(deviceId: string, keepsAlerts: boolean): ForgottenCounts;
  /** Goes on with some of its lines. @param configured the destinations that the log is kept for. */
  step(deviceId: string, configured: readonly number[]): ForgetStep;
  /** Those that were begun and not finished. */
  unfinished(): readonly string[];
  /** Empties the write-ahead log, which holds what was overwritten. @returns whether nobody was reading it. */
  emptyLog(): boolean;
}
