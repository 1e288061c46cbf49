/**
 * What is told of one device: the object of `--status --device ID --json`, which answers "why is this device not fresh?".
 * Types only; member names are the served ones. Times are RFC 3339 UTC; a span is half-open.
 */
import type { DeviceStatus, StatusSpan } from './status.ts';

/** A request for telemetry of the device, as it was booked and answered. */
export interface DeviceAnswer {
  readonly at: string;
  readonly lane: string;
  /** The HTTP status; `null` where no answer came. */
  readonly status: number | null;
  readonly fault: string | null;
  readonly new_readings: number | null;
}

/** A stretch that has a name, and when it is worth another try. */
export interface NamedGap {
  readonly from: string;
  readonly to: string;
  readonly reason: string;
  readonly retry_at: string;
}

/**
 * What is held of a span, cell by cell: `#` held, `-` held and without a reading on its days, `.` not held in full.
 */
export interface CoverageBar {
  readonly from: string;
  readonly to: string;
  readonly cell_seconds: number;
  readonly cells: string;
}

export interface DeviceReport extends DeviceStatus {
  readonly version: string;
  readonly generated_at: string;
  readonly workspace_id: string | null;
  readonly running: boolean;
  /** Whether it is not behind. */
  readonly fresh: boolean;
  readonly behind_after_seconds: number;
  /** Sentences: why it is not fresh, or what else is the matter; what counts most comes first. */
  readonly reasons: readonly string[];
  /** As the list of devices tells. */
  readonly listed: {
    readonly last_seen_at: string | null;
    readonly online: boolean | null;
    readonly presence: string | null;
    readonly lifecycle_status: string | null;
    readonly last_listed_at: string;
    readonly gone_since: string | null;
  };
  readonly newest_reading_at: string | null;
  readonly last_asked_at: string | null;
  /** When it is worth a request next; `null`: never, as things are. */
  readonly next_due_at: string | null;
  /** `sweep`: nothing new is told of it, it is asked all the same now and then. */
  readonly next_as: 'newest readings' | 'sweep' | null;
  /** The newest first. */
  readonly last_answers: readonly DeviceAnswer[];
  /** Of the last two days. */
  readonly failed_requests: number;
  readonly wanted: StatusSpan;
  /** The part of what is wanted that is held, 0 to 1. */
  readonly covered_share: number;
  readonly named_gaps: readonly NamedGap[];
  /** How long after its time a reading is awaited. */
  readonly settle_seconds: number;
  readonly late: { readonly readings: number; readonly worst_seconds: number };
  /** Under which names it is written, and from when on; the first from the beginning. */
  readonly names: readonly { readonly from: string | null; readonly name: string }[];
  readonly bar: CoverageBar;
}
