/**
 * Port of the facts for reports that `store/` implements with SQLite: requests by purpose, streams, undelivered lines,
 * jobs, and for the status page also the newest values, the start of the archive, and alerts.
 */

import type { DayReadings } from '../fleet.ts';
import type { KnownAlert } from '../lines/fact-lines.ts';
import type { Stream } from '../ports.ts';
import type { LaneStatus } from '../status.ts';
import type { EpochMs, EpochNs } from '../time.ts';

/** A request and its answer, if there was one. Fault and lane are as stored. */
export interface SentRequest {
  readonly atMs: EpochMs;
  readonly lane: string;
  /** The HTTP status; `null` where no answer came, or none has come yet. */
  readonly status: number | null;
  readonly fault: string | null;
  /** The number of new readings; `null` if no page came. */
  readonly newReadings: number | null;
}

/** How a stream was read, as far back as bookings are kept (two days). */
export interface StreamFacts {
  readonly stream: Stream;
  readonly readAtMs: EpochMs | null;
  /** The last failure, where it is younger than the last success. */
  readonly failure: { readonly atMs: EpochMs; readonly fault: string } | null;
}

/** A job that has not ended. */
export interface OpenJob {
  readonly id: number;
  readonly kind: string;
  readonly state: string;
  readonly requestedBy: string;
  readonly requestedMs: EpochMs;
  readonly startedMs: EpochMs | null;
  /** As the command that asked stored them: JSON of its kind. */
  readonly args: unknown;
  /** The last progress that it has reported: JSON of its kind; `null` before that. */
  readonly progress: unknown;
}

/** Telemetry requests for one device. */
interface DeviceRequests {
  /** The newest first. */
  readonly last: readonly SentRequest[];
  /** How many of the last two days failed. */
  readonly failed: number;
}

export interface StateFacts {
  /** All lanes, in the order of precedence. May be a few seconds old. */
  spending(nowMs: EpochMs): readonly LaneStatus[];
  streams(): readonly StreamFacts[];
  lastRequestMs(): EpochMs | null;
  /** When something was archived last. */
  lastArchivedMs(): EpochMs | null;
  /** Since when the oldest line waits that a destination has not acknowledged; `null` where none waits. */
  oldestPendingMs(destinationId: number): EpochMs | null;
  /** The same, of the live lane alone. */
  oldestLivePendingMs(destinationId: number): EpochMs | null;
  jobs(): readonly OpenJob[];
  requestsOf(deviceId: string, count: number): DeviceRequests;
  /** The days of a device that have readings, from a day on (days since 1970). */
  daysOf(deviceId: string, fromDay: number): readonly DayReadings[];
  /**
   * The telemetry lines of a device of the newest instant that the archive keeps, in no order, with those just before
   * it: a value that had to move aside lies up to `MAX_OFFSET_NS` later than its reading. Empty where none is kept.
   */
  newestLines(deviceId: string): readonly string[];
  /** The time of the oldest reading of a device that the archive keeps; `null` where it keeps none. */
  archivedSince(deviceId: string): EpochNs | null;
  /** Whether the archive has cleared readings of a device. */
  isCleared(deviceId: string): boolean;
  /** The alerts that were seen: how many, and the first of them, the open ones first, then the newest. */
  alertsSeen(count: number): SeenAlerts;
  /** The first alerts of one device. */
  alertsOf(deviceId: string, count: number): readonly KnownAlert[];
}

interface SeenAlerts {
  readonly alerts: number;
  readonly open: number;
  readonly first: readonly KnownAlert[];
}
