/**
 * What the status page reads of the state beside what is held (`page-facts.ts`): the newest values, since when the archive
 * goes back, alerts. The port that `store/` fills with SQLite. Each is one short look.
 */
import type { KnownAlert } from '../lines/alerts.ts';
import type { EpochNs } from '../time.ts';

export interface PageState {
  /**
   * The telemetry lines of a device of the newest instant that the archive keeps, in no order, with those just before it:
   * a value that had to move aside lies up to `TIE_REACH_NS` later than its reading. Empty where none is kept.
   */
  newestLines(deviceId: string): readonly string[];
  /** The time of the oldest reading of a device that the archive keeps; `null` where it keeps none. */
  archivedSince(deviceId: string): EpochNs | null;
  /** The alerts that were seen: how many, and the first of them, the open ones first, then the newest. */
  alertsSeen(count: number): SeenAlerts;
}

export interface SeenAlerts {
  readonly alerts: number;
  readonly open: number;
  readonly first: readonly KnownAlert[];
}
