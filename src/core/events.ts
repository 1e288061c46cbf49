/**
 * Events: the facts that deserve a log line or a metric. Parts of the program emit them and neither log nor count.
 * `observe/event-table.ts` has a row for each event, with its log line, its repeats and its metrics. No event contains
 * a secret, a header or a body.
 */

import type { ApiFaultKind, ExitCode } from './faults.ts';
import type { DestinationKind } from './lines/dialect.ts';
import type { RequestLane, Stream } from './ports.ts';
import type { WaitReason } from './quota.ts';
import type { StateUpgrade } from './state/state.ts';
import type { GapReason } from './state/telemetry.ts';
import type { EpochMs } from './time.ts';

/** The levels of a log line, from the fewest lines to the most. */
export const LOG_LEVELS = ['error', 'warn', 'info', 'debug'] as const;

/** One of the levels of a log line. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Events of reading, storing and delivering, as opposed to those of the program around it. */
type SyncEvent =
  // Requests
  | {
      readonly type: 'request-done';
      readonly request: string;
      readonly stream: Stream;
      readonly lane: RequestLane;
      readonly status: number | null;
      readonly durationMs: number;
      readonly fault: ApiFaultKind | null;
      /** The length of the answer's body as received and decompressed; absent without an answer. */
      readonly bytes?: AnswerBytes | null;
    }
  | {
      readonly type: 'request-retried';
      readonly request: string;
      readonly fault: ApiFaultKind;
      readonly attempt: number;
      readonly waitMs: number;
      readonly message: string;
    }
  /** Emitted when a wait of more than a few seconds begins. A normal state, never an error. */
  | {
      readonly type: 'quota-wait';
      readonly untilMs: EpochMs;
      readonly reason: WaitReason;
    }
  /** An answer reports a limit that differs from the known plan, so the account is read ahead of its schedule. */
  | { readonly type: 'limit-mismatch'; readonly limit: number }
  | { readonly type: 'plan-changed'; readonly before: string; readonly after: string }
  // Records
  | { readonly type: 'records-rejected'; readonly stream: Stream; readonly count: number; readonly reason: string }
  | { readonly type: 'values-dropped'; readonly deviceId: string; readonly count: number; readonly reason: string }
  | {
      readonly type: 'page-committed';
      readonly deviceId: string;
      readonly lane: RequestLane;
      /** The readings on the page, including known ones. */
      readonly served: number;
      /** The readings that contain a new value. */
      readonly readings: number;
      readonly newPoints: number;
    }
  | { readonly type: 'page-rejected'; readonly deviceId: string; readonly reason: string; readonly attempt: number }
  | { readonly type: 'restatement'; readonly deviceId: string; readonly at: string }
  /** New readings in a range that was covered before; `worstMs` is the delay of the latest one. */
  | {
      readonly type: 'readings-late';
      readonly deviceId: string;
      readonly count: number;
      readonly worstMs: number;
      /** The grace period of the device from now on. */
      readonly gracePeriodMs: number;
    }
  /** The `Date` of the API agrees with no other clock. Nothing is covered until a second answer confirms it. */
  | { readonly type: 'clock-unconfirmed'; readonly date: string; readonly local: string }
  /** The server's clock has fallen back into the covered range. The range from there on is read again. */
  | { readonly type: 'coverage-withdrawn'; readonly deviceId: string; readonly from: string; readonly to: string }
  | {
      readonly type: 'gap-recorded';
      readonly deviceId: string;
      readonly reason: GapReason;
      readonly from: string;
      readonly to: string;
    }
  /** A page of a listing was accepted. */
  | {
      readonly type: 'list-page-committed';
      readonly stream: 'devices' | 'alerts';
      /** The records of the listing that could be read. */
      readonly records: number;
      readonly newPoints: number;
    }
  /** The counts of a stream since its last poll summary. The log makes this event from the others. */
  | {
      readonly type: 'poll-summary';
      readonly stream: Stream;
      /** How often the work on the stream was finished. */
      readonly runs: number;
      readonly requests: number;
      /** The failed requests. */
      readonly failed: number;
      /** The devices that were polled for readings. */
      readonly devices: number;
      /** The new readings; for a listing, all records. */
      readonly records: number;
      readonly newPoints: number;
      /** The time that the counts cover: since the last summary, or since the first request after it. */
      readonly periodMs: number;
    }
  /** Emitted once, until the stream is available again. */
  | { readonly type: 'stream-off'; readonly stream: Stream; readonly scope: string }
  | { readonly type: 'stream-on'; readonly stream: Stream }
  /** One stream could not be read this time; the others continue. */
  | { readonly type: 'stream-failed'; readonly stream: Stream; readonly message: string }
  /** The work on a stream has ended, for now. */
  | { readonly type: 'stream-read'; readonly stream: Stream }
  /** A stream that had failed was read to its end. */
  | { readonly type: 'stream-recovered'; readonly stream: Stream }
  /**
   * A new device. If a list has many, only the first ones get an event; the last of these has the number of the others.
   */
  | { readonly type: 'device-appeared'; readonly deviceId: string; readonly name: string; readonly more: number }
  | { readonly type: 'device-renamed'; readonly deviceId: string; readonly before: string; readonly after: string }
  | { readonly type: 'device-gone'; readonly deviceId: string }
  | { readonly type: 'device-returned'; readonly deviceId: string }
  /** A pattern of the configuration that matches no device, or no sensor that has been read so far. */
  | {
      readonly type: 'filter-matches-nothing';
      readonly key: 'sync.include' | 'sync.exclude' | 'sync.exclude_sensors';
      readonly pattern: string;
    }
  // Delivery
  /** A name of the configuration now means another destination; the archived points are sent to it. */
  | {
      readonly type: 'destination-new';
      readonly destination: string;
      /** Whether the destination had this name before: then delivery continues where it stopped. */
      readonly known: boolean;
      /** The previous destination with that name, in words; `null` for none. */
      readonly before: string | null;
      /** How many points will be sent. */
      readonly points: number;
    }
  /** The state was empty, but the database already has telemetry of this workspace. */
  | { readonly type: 'destination-older'; readonly destination: string }
  /** A database has reported its kind. */
  | { readonly type: 'destination-kind'; readonly destination: string; readonly kind: DestinationKind }
  | {
      readonly type: 'lines-delivered';
      readonly destination: string;
      readonly lines: number;
      readonly durationMs: number;
    }
  | {
      readonly type: 'lines-quarantined';
      readonly destination: string;
      readonly lines: number;
      readonly message: string;
    }
  | { readonly type: 'lines-beyond-retention'; readonly destination: string; readonly lines: number }
  | {
      readonly type: 'delivery-blocked';
      readonly destination: string;
      /** Points that were sent and are kept for another attempt. */
      readonly lines: number;
      readonly message: string;
      /** The next step for the operator; empty if waiting is enough. */
      readonly hint: string;
      /** Whether only a person can unblock it. */
      readonly needsPerson: boolean;
      readonly waitMs: number;
    }
  | { readonly type: 'delivery-resumed'; readonly destination: string }
  /** Archived points are sent to a destination again. */
  | {
      readonly type: 'replay-started';
      readonly destination: string;
      /** The number of lines after which an interrupted replay was resumed; `null` for a new replay. */
      readonly resumedAfter: number | null;
      readonly from: string;
      readonly to: string | null;
    }
  | { readonly type: 'replay-ended'; readonly destination: string; readonly outcome: string; readonly lines: number }
  // Maintenance
  /** The data of a device was removed because a person requested it. */
  | { readonly type: 'device-forgotten'; readonly deviceId: string; readonly points: number }
  // The archive
  /** There is no database: the archive is filled up to this size. */
  | { readonly type: 'archive-only'; readonly maxBytes: number }
  | {
      readonly type: 'archive-cleared';
      readonly blocks: number;
      readonly lines: number;
      readonly why: 'age' | 'size';
    }
  /** Polling has stopped because the archive or the disk is full; delivery continues. */
  | { readonly type: 'polling-stopped'; readonly reason: string }
  | { readonly type: 'polling-resumed' }
  /**
   * The destination has accepted nothing for too long while others worked. Its pending points count as missing there.
   */
  | { readonly type: 'destination-skipped'; readonly destination: string; readonly lines: number }
  /** The quota is too small for the schedules, or even for the readings. Emitted again when that changes. */
  | { readonly type: 'quota-short'; readonly unmet: 'schedules' | 'readings'; readonly message: string }
  | { readonly type: 'quota-enough' }
  // Jobs
  | { readonly type: 'job-started'; readonly job: number; readonly kind: string; readonly requestedBy: string }
  | {
      readonly type: 'job-ended';
      readonly job: number;
      readonly kind: string;
      readonly state: 'done' | 'failed' | 'cancelled';
      readonly exitCode: ExitCode;
      /** The reason if there is no summary. */
      readonly message: string | null;
      readonly durationMs: number;
    }
  // Running
  /**
   * The state of an earlier version was upgraded when it was opened; `copy` is the file with the state as it was
   * before.
   */
  | ({ readonly type: 'state-upgraded' } & StateUpgrade)
  /** The account was read, or cannot be read: from now on the workspace that points are written for is certain. */
  | { readonly type: 'workspace-known' }
  /** The API answers no request. `api-recovered` follows when it answers again. */
  | { readonly type: 'api-outage'; readonly message: string; readonly waitMs: number }
  | { readonly type: 'api-recovered' }
  /** The API rejects the key or the plan. Until that is repaired, only occasional requests check it. */
  | { readonly type: 'key-refused'; readonly message: string; readonly waitMs: number }
  | { readonly type: 'key-changed' }
  /** A rejected key is accepted again, or another key has replaced it (`isOther`). */
  | { readonly type: 'key-accepted'; readonly isOther: boolean }
  /** Once per process: everything that the API serves is stored, and the sync keeps it up to date from now on. */
  | {
      readonly type: 'initial-sync-done';
      readonly devices: number;
      /** How many of the devices have gaps that cannot be closed now. */
      readonly withGaps: number;
      readonly points: number;
      /** Points that the databases have not received yet. */
      readonly pending: number;
      readonly statusPage: string;
    }
  | { readonly type: 'stopping'; readonly reason: string };

/** Events of the program around the sync and of its commands. Each one becomes a log line, however often it occurs. */
export type ProgramEvent =
  | { readonly type: 'started'; readonly version: string; readonly statusPage: string }
  | { readonly type: 'stopped' }
  | { readonly type: 'status-page-failed'; readonly message: string }
  /** A progress line of a long command, if standard error is no terminal. */
  | { readonly type: 'progress'; readonly message: string }
  /** A value of the configuration that is valid but not recommended. */
  | { readonly type: 'configuration-odd'; readonly message: string }
  | {
      readonly type: 'configuration-invalid';
      readonly message: string;
      /** The number of mistakes in the message. */
      readonly mistakes: number;
      readonly exitCode: ExitCode;
    }
  /** The program ends because of an error. `isKnown`: the program foresees this error. */
  | { readonly type: 'failed'; readonly message: string; readonly isKnown: boolean; readonly exitCode: ExitCode }
  | {
      readonly type: 'run-ended';
      readonly outcome: string;
      readonly exitCode: ExitCode;
      /** Whether the key may read every stream. */
      readonly isAllRead: boolean;
      readonly devices: number;
      readonly points: number;
      readonly gaps: number;
    }
  /** A part of the work that is incomplete after the run. `isWanted`: the configuration excludes it. */
  | { readonly type: 'run-incomplete'; readonly message: string; readonly isWanted: boolean }
  /** The result of a replay, or of an export. */
  | { readonly type: 'replay-report'; readonly message: string; readonly isWell: boolean }
  | { readonly type: 'export-report'; readonly message: string; readonly isWell: boolean }
  /** The points that a repair fetches from the API, or those that it could not fetch. */
  | {
      readonly type: 'repair-report';
      readonly message: string;
      readonly isWell: boolean;
      /** The cost of the fetch; `null` if the line is about something else. */
      readonly cost: {
        readonly destination: string;
        readonly points: number;
        readonly readings: number;
        readonly requests: number;
      } | null;
    }
  | {
      readonly type: 'job-followed';
      readonly dataDir: string;
      /** Whether the daemon already had the job of an equal command. */
      readonly isFound: boolean;
      /** Whether the job is the API part of `--check`: the command does the rest itself. */
      readonly isCheck?: boolean;
    }
  | { readonly type: 'job-queued' }
  | { readonly type: 'bundle-written'; readonly file: string };

/** The length of an answer's body. */
export interface AnswerBytes {
  /** Bytes as they came over the network, possibly compressed. */
  readonly wire: number;
  /** Bytes after decompression. */
  readonly decoded: number;
}

/** Every event that an observer may get. */
export type AppEvent = SyncEvent | ProgramEvent;

/** Takes an event; `observe/` turns events into the log, the metrics and the status page. */
export type Observe = (event: AppEvent) => void;
