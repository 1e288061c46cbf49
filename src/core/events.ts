/**
 * Events: the facts that deserve a log line or a metric. The parts of the program report them and neither log nor
 * count. `observe/event-table.ts` has a row for each, with its line, its repeats and its metrics. No event contains a
 * secret, a header or a body.
 */

import type { ApiFaultKind, ExitCode } from './faults.ts';
import type { DestinationKind } from './lines/dialect.ts';
import type { RequestLane, Stream } from './ports.ts';
import type { EpochMs } from './time.ts';

/** What happens in the sync. */
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
      /** The length of the answer's body as received and decompressed; none without an answer. */
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
      readonly reason: 'pace' | 'minute' | 'day' | 'retry_after';
    }
  /** An answer speaks of a limit that the plan as known does not have: the account is read out of turn. */
  | { readonly type: 'limit-mismatch'; readonly limit: number }
  | { readonly type: 'plan-changed'; readonly before: string; readonly after: string }
  // Records
  | { readonly type: 'records-rejected'; readonly stream: Stream; readonly count: number; readonly reason: string }
  | { readonly type: 'values-dropped'; readonly deviceId: string; readonly count: number; readonly reason: string }
  | {
      readonly type: 'page-committed';
      readonly deviceId: string;
      readonly lane: RequestLane;
      /** Readings of the page, known ones included. */
      readonly served: number;
      /** Those that brought something new. */
      readonly readings: number;
      readonly newPoints: number;
      /** Whether the page has extended the coverage. */
      readonly coversNew: boolean;
    }
  | { readonly type: 'page-rejected'; readonly deviceId: string; readonly reason: string; readonly attempt: number }
  | { readonly type: 'restatement'; readonly deviceId: string; readonly at: string }
  /** New readings inside time that was held in full before; `worstMs`: from its time to now, of the latest one. */
  | {
      readonly type: 'readings-late';
      readonly deviceId: string;
      readonly count: number;
      readonly worstMs: number;
      /** What the device's readings are waited for from now on. */
      readonly gracePeriodMs: number;
    }
  /** The `Date` of the API agrees with no other clock: nothing is covered until a second answer confirms it. */
  | { readonly type: 'clock-unconfirmed'; readonly date: string; readonly local: string }
  /** The server's clock has fallen back behind what is held: from there on it is read again. */
  | { readonly type: 'coverage-withdrawn'; readonly deviceId: string; readonly from: string; readonly to: string }
  | {
      readonly type: 'gap-recorded';
      readonly deviceId: string;
      readonly reason: string;
      readonly from: string;
      readonly to: string;
    }
  /** A page of a listing was accepted. */
  | {
      readonly type: 'list-page-committed';
      readonly stream: 'devices' | 'alerts';
      /** Records of it that could be read. */
      readonly records: number;
      readonly newPoints: number;
    }
  /** What a stream has brought since its last line: made from the other events by the log. */
  | {
      readonly type: 'poll-summary';
      readonly stream: Stream;
      /** How often its work came to an end. */
      readonly runs: number;
      readonly requests: number;
      /** Requests among them that did not bring what they were sent for. */
      readonly failed: number;
      /** Devices that were polled for readings. */
      readonly devices: number;
      /** New readings; of a listing all its records. */
      readonly records: number;
      readonly newPoints: number;
      readonly durationMs: number;
    }
  /** Reported once, until the stream is on again. */
  | { readonly type: 'stream-off'; readonly stream: Stream; readonly scope: string }
  | { readonly type: 'stream-on'; readonly stream: Stream }
  /** One stream could not be read this time; the others continue. */
  | { readonly type: 'stream-failed'; readonly stream: Stream; readonly message: string }
  /** The work on a stream has ended, for now. */
  | { readonly type: 'stream-read'; readonly stream: Stream }
  /** One that had failed was read to its end. */
  | { readonly type: 'stream-recovered'; readonly stream: Stream }
  | { readonly type: 'device-appeared'; readonly deviceId: string; readonly name: string }
  | { readonly type: 'device-renamed'; readonly deviceId: string; readonly before: string; readonly after: string }
  | { readonly type: 'device-gone'; readonly deviceId: string }
  | { readonly type: 'device-returned'; readonly deviceId: string }
  /** A pattern of the configuration that fits no device, or no sensor that was read so far. */
  | {
      readonly type: 'filter-matches-nothing';
      readonly key: 'sync.include' | 'sync.exclude' | 'sync.exclude_sensors';
      readonly pattern: string;
    }
  // Delivery
  /** A name of the configuration means another destination than before; what the archive holds is sent to it. */
  | {
      readonly type: 'destination-new';
      readonly destination: string;
      /** Whether it had the name once before: it continues where it was. */
      readonly known: boolean;
      /** The one that had the name until now, in words; `null` where there was none. */
      readonly before: string | null;
      /** How many points will be sent. */
      readonly points: number;
    }
  /** The state was empty, and the database has telemetry of this workspace already. */
  | { readonly type: 'destination-older'; readonly destination: string }
  /** A database has said what it is. */
  | { readonly type: 'destination-kind'; readonly destination: string; readonly kind: DestinationKind }
  | {
      readonly type: 'lines-delivered';
      readonly destination: string;
      readonly lines: number;
      readonly durationMs: number;
    }
  | { readonly type: 'lines-quarantined'; readonly destination: string; readonly lines: number; readonly words: string }
  | { readonly type: 'lines-beyond-retention'; readonly destination: string; readonly lines: number }
  | {
      readonly type: 'delivery-blocked';
      readonly destination: string;
      /** Points that were sent and are kept for another try. */
      readonly lines: number;
      readonly words: string;
      /** What a person can do; empty if waiting is enough. */
      readonly hint: string;
      /** Whether only a person can end it. */
      readonly needsPerson: boolean;
      readonly waitMs: number;
    }
  | { readonly type: 'delivery-resumed'; readonly destination: string }
  /** Archived points are sent to a destination again. */
  | {
      readonly type: 'replay-started';
      readonly destination: string;
      /** Whether it continues with one that was broken off, after this many lines. */
      readonly resumedAfter: number | null;
      readonly from: string;
      readonly to: string | null;
    }
  | { readonly type: 'replay-ended'; readonly destination: string; readonly outcome: string; readonly lines: number }
  // Upkeep
  /** What is held of a device was removed, because a person asked for it. */
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
  /** There is no room for more: nothing is asked of the API, delivery continues. */
  | { readonly type: 'polling-stopped'; readonly reason: string }
  | { readonly type: 'polling-resumed' }
  /** It has accepted nothing for too long while others moved: what waits for it counts as missing there. */
  | { readonly type: 'destination-skipped'; readonly destination: string; readonly lines: number }
  /** The schedules, or even the readings, ask for more than the quota carries; reported again when that changes. */
  | { readonly type: 'quota-short'; readonly of: 'schedules' | 'readings'; readonly message: string }
  | { readonly type: 'quota-enough' }
  // Jobs
  | { readonly type: 'job-started'; readonly job: number; readonly kind: string; readonly requestedBy: string }
  | {
      readonly type: 'job-ended';
      readonly job: number;
      readonly kind: string;
      readonly state: 'done' | 'failed' | 'cancelled';
      readonly exitCode: ExitCode;
      /** Why, where it came to no summary. */
      readonly message: string | null;
      readonly durationMs: number;
    }
  // Running
  /** The account was read, or cannot be: from now on it is sure which workspace is written. */
  | { readonly type: 'workspace-known' }
  /** The API as a whole does not answer; `api-recovered` when it does again. */
  | { readonly type: 'api-outage'; readonly message: string; readonly waitMs: number }
  | { readonly type: 'api-recovered' }
  /** The key or the plan is refused: no requests are made until it is repaired, but for a try now and then. */
  | { readonly type: 'key-refused'; readonly message: string; readonly waitMs: number }
  | { readonly type: 'key-changed' }
  /** A key that was refused is taken again, or the one that has come in its place. */
  | { readonly type: 'key-accepted' }
  /** Once in the life of a process: everything that can be had is held, and is being kept up with from now on. */
  | {
      readonly type: 'initial-sync-done';
      readonly devices: number;
      /** How many of them have gaps that cannot be closed now. */
      readonly withGaps: number;
      readonly points: number;
      /** Points that the databases have not got yet. */
      readonly pending: number;
      /** Its address. */
      readonly statusPage: string;
    }
  | { readonly type: 'stopping'; readonly reason: string };

/** Events of the program around the sync and of its commands: each is a line of the log, however often it comes. */
export type ProgramEvent =
  | { readonly type: 'started'; readonly statusPage: string }
  | { readonly type: 'stopped' }
  | { readonly type: 'status-page-failed'; readonly message: string }
  /** How far long work is. */
  | { readonly type: 'progress'; readonly message: string }
  /** A value of the configuration can be used and should not. */
  | { readonly type: 'configuration-odd'; readonly message: string }
  | {
      readonly type: 'configuration-invalid';
      readonly message: string;
      /** The number of mistakes in the message. */
      readonly mistakes: number;
      readonly exitCode: ExitCode;
    }
  /** The program ends because of an error; `isKnown`: one that it foresees. */
  | { readonly type: 'failed'; readonly message: string; readonly isKnown: boolean; readonly exitCode: ExitCode }
  /** `--once` has ended. */
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
  /** Something that is not in place after it; `isWanted`: it was left out on purpose. */
  | { readonly type: 'run-incomplete'; readonly message: string; readonly isWanted: boolean }
  /** What has become of points that were sent again, and of an export. */
  | { readonly type: 'replay-report'; readonly message: string; readonly isWell: boolean }
  | { readonly type: 'export-report'; readonly message: string; readonly isWell: boolean }
  /** What a repair fetches from the API, and what it could not fetch. */
  | {
      readonly type: 'repair-report';
      readonly message: string;
      readonly isWell: boolean;
      /** What is to be fetched; `null` where the line is not about that. */
      readonly cost: {
        readonly destination: string;
        readonly points: number;
        readonly readings: number;
        readonly requests: number;
      } | null;
    }
  | { readonly type: 'job-followed'; readonly dataDir: string }
  | { readonly type: 'job-queued' }
  | { readonly type: 'bundle-written'; readonly file: string };

/** The length of the body of an answer. */
export interface AnswerBytes {
  /** As received. */
  readonly wire: number;
  /** Decompressed. */
  readonly decoded: number;
}

export type AppEvent = SyncEvent | ProgramEvent;

/** Takes an event; `observe/` turns events into the log, the metrics and the status page. */
export type Observe = (event: AppEvent) => void;
