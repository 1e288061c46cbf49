/**
 * The status report that `/status.json` and `--status --json` serve, and the answers of the health and readiness
 * checks. Types, the words for states, the lags that people see, and the version. The member names are those of the
 * served JSON.
 *
 * Times are RFC 3339 UTC with their own number of digits, and ranges are half-open.
 */
import type { RequestLane, Stream } from './ports.ts';
import type { MissingReason } from './state/log.ts';
import { SECOND_MS } from './time.ts';

/** The version of the program, which every report names. A test compares it with package.json. */
export const VERSION = '1.0.0-rc.1';

/** From (included) and to (not included). */
export type StatusSpan = readonly [from: string, to: string];

/** The state of a device (`coverage.state`). */
export type DeviceState = 'live' | 'catching-up' | 'silent' | 'unreachable' | 'excluded';

/** The state of a device as people see it: `silent` only if readings are expected from it. */
export type ShownState = DeviceState | 'out-of-service';

/** The state as people see it: a silent device that was paused, shelved or retired is out of service. */
export function shownState({ state, active }: Pick<DeviceStatus, 'state' | 'active'>): ShownState {
  return state === 'silent' && !active ? 'out-of-service' : state;
}

/** Returns the text of a state, such as `catching up`. */
export function deviceStateText(state: ShownState): string {
  return state.replaceAll('-', ' ');
}

/** A gap: a range that is wanted and not covered, and why. */
export interface StatusGap {
  readonly from: string;
  readonly to: string;
  readonly reason: string;
}

/** A device, as `/status.json` has it. Times are RFC 3339. */
export interface DeviceStatus {
  readonly device_id: string;
  readonly device_name: string;
  readonly state: DeviceState;
  /** Whether readings are expected from it: not while its lifecycle status is `paused`, `shelved` or `retired`. */
  readonly active: boolean;
  /** The time of its newest stored reading; `null` without any. */
  readonly newest_reading_at: string | null;
  /**
   * From the newest covered instant to the coverage limit; `null` before the first page, and during the initial sync
   * unless it is above `behind_after_seconds`.
   */
  readonly lag_seconds: number | null;
  readonly covered: readonly StatusSpan[];
  readonly gaps: readonly StatusGap[];
}

/** All gaps with one reason, over all devices. */
export interface GapSum extends StatusGap {
  readonly devices: number;
  readonly seconds: number;
}

/** The lag of the polled devices, in seconds; `null` without any. */
export interface LagStatus {
  /** How often `sync.telemetry` is due. */
  readonly target_seconds: number;
  /** The lag of readings in normal operation. It is larger if the quota is too small for the schedules. */
  readonly expected_seconds: number;
  /** The lag above which a device counts as behind. */
  readonly behind_after_seconds: number;
  readonly behind_devices: number;
  /** `null` also while most devices are in their initial sync. */
  readonly median_seconds: number | null;
  readonly p95_seconds: number | null;
  /** `null` as for the median, unless the lag is above `behind_after_seconds`. */
  readonly max_seconds: number | null;
}

/** The process that uses the state. */
export interface ProcessStatus {
  /** Whether a process holds the state: a daemon or a one-off command. */
  readonly running: boolean;
  readonly last_request_at: string | null;
  readonly last_archived_at: string | null;
}

/** Work that a command has requested from the daemon and that has not ended. */
export interface JobStatus {
  readonly id: number;
  readonly kind: string;
  readonly state: string;
  readonly requested_by: string;
  readonly requested_at: string;
  readonly started_at: string | null;
  /** The range of a backfill; `from` is `null` if it has no beginning, `to` before the backfill has begun. */
  readonly range: { readonly from: string | null; readonly to: string | null } | null;
  /** The reported progress of the job; each `null` if not reported. `share` is 0 to 1. */
  readonly share: number | null;
  readonly requests: number | null;
  readonly readings: number | null;
  readonly requests_per_minute: number | null;
  readonly eta_seconds: number | null;
  /** The basis of the ETA, in words. */
  readonly eta_basis: string | null;
  /** The cause for which all remaining work waits, in words. */
  readonly waits: string | null;
}

/** The next work according to schedules and coverage. It makes no progress while no process is running. */
export interface NextStatus {
  /**
   * When an API that rejects the key or does not answer is tried again; `null` if it can be read, or no process is
   * running. `--status` does not know it for a rejected key.
   */
  readonly attempt_at: string | null;
  /** When each stream is due next; in the past: overdue. */
  readonly streams: readonly { readonly name: StreamStatus['name']; readonly due_at: string | null }[];
  /** Devices with a gap that a request can close. */
  readonly devices_with_gaps: number;
  readonly gap_seconds: number;
  /** Devices in their initial sync: their wanted range has not been read down to its beginning yet. */
  readonly initial_devices: number;
  /** How long until all gaps are closed; `null` if there are none, or the time is not known. */
  readonly eta_seconds: number | null;
  /**
   * Whether the ETA assumes that every device has readings down to the beginning of the range, because nothing else is
   * known yet.
   */
  readonly eta_assumes_full_history: boolean;
}

/** `off`: the key does not have its scope; `failing`: it cannot be read, with the `reason`. */
export const STREAM_STATES = ['on', 'waiting', 'failing', 'off'] as const;

/** A stream, as `/status.json` has it. */
export interface StreamStatus {
  readonly name: Stream;
  readonly state: (typeof STREAM_STATES)[number];
  readonly reason: string | null;
  /** When the stream was last read successfully; `null` if it was not read yet. */
  readonly last_read_at: string | null;
}

/** Returns the text of a stream's state. For a waiting stream it shows whether the stream was ever read. */
export function streamStateText({ state, last_read_at }: Pick<StreamStatus, 'state' | 'last_read_at'>): string {
  if (state !== 'waiting') return state;
  return last_read_at === null ? 'not read yet' : 'not read since the start';
}

/** The state of telemetry that is not read from the API now. */
export interface Unread {
  /** When telemetry was last read, and how long ago, in seconds; `null`: never. */
  readonly sinceAt: string | null;
  readonly seconds: number | null;
  /** The status of the polling: on hold until the key works, off for lack of a scope, or failing. */
  readonly polling: 'on hold' | 'off' | 'failing';
}

/** For each status of such polling: the text of a progress line, and when the gaps are read. */
export const POLLING_TEXTS: Readonly<Record<Unread['polling'], { readonly progress: string; readonly gaps: string }>> =
  {
    'on hold': { progress: 'not polling: the API rejects the key', gaps: 'read once the key is accepted' },
    off: { progress: 'not polling: the key lacks the scope', gaps: 'read once the key has the scope' },
    failing: { progress: 'polling fails: telemetry cannot be read', gaps: 'read when polling works again' },
  };

/** Returns the status of the polling if telemetry is not read now; otherwise `null`. */
export function unreadPolling(streams: readonly StreamStatus[], isKeyRejected: boolean): Unread['polling'] | null {
  if (isKeyRejected) return 'on hold';
  const state = streams.find(({ name }) => name === 'telemetry')?.state;
  return state === 'off' || state === 'failing' ? state : null;
}

/** Returns the state of telemetry if it is not read now; otherwise `null`. */
export function unreadNow({
  streams,
  summary_problem,
  generated_at: now,
}: Pick<StatusReport, 'streams' | 'summary_problem' | 'generated_at'>): Unread | null {
  const polling = unreadPolling(streams, summary_problem?.code === 'key_refused');
  if (polling === null) return null;
  const sinceAt = streams.find(({ name }) => name === 'telemetry')?.last_read_at ?? null;
  const seconds = sinceAt === null ? null : Math.max(0, (Date.parse(now) - Date.parse(sinceAt)) / SECOND_MS);
  return { sinceAt, seconds, polling };
}

/**
 * The report with the lags that the page and the text of `--status` show. While telemetry is not read, each is at least
 * the time since it was last read, because newer readings are unknown.
 */
export function withShownLags<T extends Omit<StatusReport, 'devices'>>(report: T): T {
  const least = unreadNow(report)?.seconds ?? null;
  if (least === null) return report;
  const atLeast = (seconds: number | null): number => Math.max(seconds ?? 0, least);
  const { freshness, destinations } = report;
  return {
    ...report,
    freshness: {
      ...freshness,
      median_seconds: atLeast(freshness.median_seconds),
      p95_seconds: atLeast(freshness.p95_seconds),
      max_seconds: atLeast(freshness.max_seconds),
    },
    destinations: destinations.map((each) => ({ ...each, lag_seconds: atLeast(each.lag_seconds) })),
  };
}

/** Archived points that a destination is missing permanently, for one reason. */
export interface MissingStatus {
  readonly reason: MissingReason;
  readonly points: number;
  readonly devices: number;
  /** The range from the first missing point to the last; other points in between may be present. */
  readonly from: string;
  readonly to: string;
}

/** A destination, as `/status.json` has it. */
export interface DestinationStatus {
  readonly name: string;
  /** Archived points that this destination has not acknowledged yet. */
  readonly pending_points: number;
  /** Rejected points in quarantine. */
  readonly quarantined: number;
  readonly delivered_points: number;
  /** Archived points that are missing there for good, by reason; empty if it gets all points. */
  readonly missing: readonly MissingStatus[];
  /** Why its delivery is blocked; `null` while it works. */
  readonly blocked_reason: string | null;
}

/** A destination as `/status.json` shows it, with its delivery since the process was started. */
export interface DestinationReport extends Omit<DestinationStatus, 'delivered_points'> {
  /** Since the process was started; `null` without a running process. */
  readonly delivered_points: number | null;
  /** Since when the oldest unacknowledged point has been waiting; `null` if none is waiting. */
  readonly oldest_pending_at: string | null;
  /** The same for the live lane; `null` also if only history is waiting. */
  readonly oldest_live_pending_at: string | null;
  /** Since when its delivery is blocked; `null` if it is not blocked, or no process delivers. */
  readonly blocked_since: string | null;
  /** When a blocked delivery is tried next; `null` if it is not blocked, or no process delivers. */
  readonly next_attempt_at: string | null;
  /**
   * The median lag of the devices in this database: the lag of the archive plus the age of the oldest undelivered live
   * point. `null`: not known yet.
   */
  readonly lag_seconds: number | null;
}

/** One of the two windows of the quota, in requests. `null`: not known yet. */
export interface QuotaWindow {
  readonly limit: number | null;
  /** The configured share of the limit: the most that this program sends. */
  readonly budget: number | null;
  readonly spent: number;
  /**
   * The requests of other clients, according to the last answer about this window; absent without a running process.
   */
  readonly others?: number | null;
}

/** The program's own requests by purpose, in the last minute and the last 24 hours. */
export interface LaneStatus {
  readonly lane: RequestLane;
  readonly minute: number;
  readonly day: number;
}

/** The quota and its use, as `/status.json` has them. */
export interface QuotaStatus {
  readonly share: number;
  readonly lanes: readonly LaneStatus[];
  readonly minute: QuotaWindow;
  readonly day: QuotaWindow;
  /** Until when no lane may send a request for lack of quota; `null` if a lane may send. */
  readonly waiting_until: string | null;
  /** Until when history and backfill wait, at least as long as all lanes wait; `null` while they may send. */
  readonly history_waiting_until: string | null;
}

/** The size of the state, and the space that is left. */
export interface ArchiveStatus {
  /** Points that the archive still keeps. */
  readonly points: number;
  /** The state without its free pages: `archive.max_size` limits it. */
  readonly state_bytes: number;
  /** `null`: no limit. */
  readonly max_bytes: number | null;
  /** The free space on the disk of the state; `null` if unknown. */
  readonly disk_free_bytes: number | null;
  /** Why polling is stopped; `null` if it is not. */
  readonly full: string | null;
}

/** A problem: its code in `/readyz`, and the stream or destination that has it (`null`: it concerns all of them). */
export interface SummaryProblem {
  readonly code: ReadyCode;
  readonly name: string | null;
}

interface StatusTotals {
  readonly devices: number;
  /** Devices whose whole sync range is covered. */
  readonly devices_complete: number;
  readonly archived_readings: number;
  readonly archived_points: number;
  readonly requests: number;
  /** Records of the API that were rejected completely or in part, each with its reason. */
  readonly rejected_records: number;
  /** The covered share of the wanted ranges of all devices, 0 to 1; `null` if no range is wanted yet. */
  readonly covered_share: number | null;
}

/** The JSON of `/status.json` and of `--status --json`. */
export interface StatusReport {
  readonly version: string;
  readonly generated_at: string;
  /** `null` until it is pinned, before the first point is made. */
  readonly workspace_id: string | null;
  /** The name of the workspace; `null` if it has no name or the key may not read the account. */
  readonly workspace_name: string | null;
  /** The state of the sync in one sentence. */
  readonly summary: string;
  /** The problem that `summary` describes; `null` if it describes none. */
  readonly summary_problem: SummaryProblem | null;
  readonly process: ProcessStatus;
  readonly streams: readonly StreamStatus[];
  readonly freshness: LagStatus;
  /** The gaps by reason, the longest first; the newest range of a device without lag does not count. */
  readonly gaps: readonly GapSum[];
  readonly totals: StatusTotals;
  readonly devices: readonly DeviceStatus[];
  readonly destinations: readonly DestinationReport[];
  /** The quota. The member's name is part of the contract (docs/design.md, "HTTP"). */
  readonly allowance: QuotaStatus;
  readonly archive: ArchiveStatus;
  readonly jobs: readonly JobStatus[];
  readonly next: NextStatus;
}

/** The report without its devices, which may be very many. */
export type StatusOverview = Omit<StatusReport, 'devices'>;

/** The members of `StatusReport` that the progress of long work is computed from. The counts cover this work only. */
export interface ProgressReport {
  /** The readings and requests since the work was started. */
  readonly totals: Pick<
    StatusTotals,
    'devices' | 'devices_complete' | 'archived_readings' | 'requests' | 'covered_share'
  >;
  readonly destinations: readonly Pick<DestinationReport, 'pending_points' | 'delivered_points'>[];
  readonly allowance: Pick<QuotaStatus, 'waiting_until'> & Partial<Pick<QuotaStatus, 'history_waiting_until'>>;
  /**
   * The time left and its basis in words, which may be empty; `null` while it is not known. Absent: it is estimated
   * from the progress so far.
   */
  readonly eta?: {
    readonly seconds: number;
    readonly basis: string;
    /** Whether the basis contains the rate of the remaining work. Then it replaces the measured rate. */
    readonly hasRate?: boolean;
  } | null;
  /** The program's own requests per minute, recently; `null` while too few were sent. */
  readonly requests_per_minute?: number | null;
  /** The cause for which all remaining work waits, in words, if the time left is unknown; then `eta` is `null`. */
  readonly waits?: string | null;
  /** Why telemetry is not read now, in words; then `eta` is `null`. */
  readonly unread?: string | null;
  /** The progress of a backfill that the daemon runs at the same time; `null`: none runs. */
  readonly backfill?: ProgressReport | null;
}

/** `/healthz`: whether the loops move. `reasons` name the stalled ones; `codes` are the same for programs. */
export interface HealthReport {
  readonly healthy: boolean;
  readonly reasons: readonly string[];
  readonly codes: readonly HealthCode[];
}

/** The codes of problems that a restart can fix. */
type HealthCode = 'loop_stalled';

/**
 * `/readyz`: whether the data is complete and current. `reasons`, `codes` and `names` describe the problems, in the
 * same order. A name is the stream or destination; `null` if the problem concerns all of them.
 */
export interface ReadyReport {
  readonly ready: boolean;
  readonly reasons: readonly string[];
  readonly codes: readonly ReadyCode[];
  readonly names: readonly (string | null)[];
}

/** The codes of the problems in `/readyz`. */
export const READY_CODES = [
  'key_refused',
  'api_unreachable',
  'stream_failing',
  'scope_missing',
  'clock_unconfirmed',
  'state_full',
  'destination_blocked',
  'devices_not_listed',
  'last_day_missing',
] as const;

export type ReadyCode = (typeof READY_CODES)[number];
