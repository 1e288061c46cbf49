/**
 * The ports: what the rest of the program needs from the API, the databases, the clock and chance.
 *
 * Each technology folder implements some of them and does not depend on the others; `app/open-sync.ts` connects them.
 */
import type { ApiFaultKind } from './faults.ts';
import type { DestinationKind } from './lines/dialect.ts';
import type { Account, AlertPage, AlertRecord, Cursor, DevicePage, TelemetryPage } from './records.ts';
import type { EpochMs, EpochNs } from './time.ts';

/** Time as an argument: real in the program, virtual in tests. */
export interface Clock {
  /** The local wall clock. It can jump. */
  nowMs(): EpochMs;
  /** A clock that never jumps. Its origin has no meaning. */
  monoMs(): number;
  /** Resolves after `ms`; rejects with the signal's reason when that aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The disk that the state lies on. */
export interface Disk {
  readonly directory: string;
  /** The space that this user may still use; `null` if unknown. */
  freeBytes(): number | null;
}

/** Draws a number, uniform in [0, 1). */
export type Random = () => number;

/** The purposes of requests, in the order of precedence. */
export type RequestLane = (typeof REQUEST_LANES)[number];

/** The lanes that fetch missing history. */
export const HISTORY_LANES = ['first-history', 'backfill'] as const;

/** All lanes, in the order of precedence. */
export const REQUEST_LANES = ['live', 'alerts', 'inventory', ...HISTORY_LANES, 'idle-poll'] as const;

/** The streams of the API, each with a schedule of its own. */
export const STREAMS = ['account', 'devices', 'telemetry', 'alerts'] as const;

export type Stream = (typeof STREAMS)[number];

/** The purpose under which a request is booked. */
export interface Purpose {
  readonly lane: RequestLane;
  readonly stream: Stream;
  readonly deviceId?: string;
}

/** An answer of the API that was understood. */
export interface Reply<T> {
  readonly value: T;
  /** The server's time when the answer was received; the local clock's if the answer has none. */
  readonly answeredAtMs: EpochMs;
  /** The booking of the request in the ledger. */
  readonly requestId: number;
}

/** One page of one window of one device. Times are whole seconds; `null` means no bound. */
export interface TelemetryQuery {
  readonly deviceId: string;
  readonly after: EpochNs | null;
  readonly before: EpochNs | null;
  readonly cursor: Cursor | null;
}

/**
 * The vendor's API, read only. Every call waits for quota, is booked before it is sent, and is retried if that can
 * help. Any other failure is thrown as an `ApiFault`.
 */
export interface Api {
  account(purpose: Purpose, signal: AbortSignal): Promise<Reply<Account>>;
  devices(cursor: Cursor | null, purpose: Purpose, signal: AbortSignal): Promise<Reply<DevicePage>>;
  telemetry(query: TelemetryQuery, purpose: Purpose, signal: AbortSignal): Promise<Reply<TelemetryPage>>;
  alerts(cursor: Cursor | null, purpose: Purpose, signal: AbortSignal): Promise<Reply<AlertPage>>;
  alert(alertId: number, purpose: Purpose, signal: AbortSignal): Promise<Reply<AlertRecord>>;
}

/** One HTTP request, as bytes on a wire; only `GET` is ever sent to the API. */
export interface HttpRequest {
  readonly method: 'GET';
  /** Absolute. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** An HTTP answer whose body was read completely. */
export interface HttpAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** The length of the body as it was received, before it was decompressed; absent if it was not compressed. */
  readonly wireBytes?: number;
}

/**
 * Sends a request and reads its complete answer. Rejects with a `TransportError` if no complete answer arrived, and
 * with the signal's reason when that aborts. Real over HTTP, in-process in simulations.
 */
export type Transport = (request: HttpRequest, signal: AbortSignal) => Promise<HttpAnswer>;

/** The outcome of a booked request. */
export interface RequestOutcome {
  /** The HTTP status; `null` if no answer came. */
  readonly status: number | null;
  readonly fault: ApiFaultKind | null;
}

/** When a request was booked, by two clocks. Either clock may have been wrong. */
export interface BookingTimes {
  /** By the server's clock. */
  readonly atMs: EpochMs;
  /** The local clock's time; `null` if it was not recorded. */
  readonly localMs: EpochMs | null;
}

/** The record of every request, including rejected ones, in the server's time. It survives restarts. */
export interface Ledger {
  /**
   * Books a request, durably, before it is sent.
   *
   * @returns its id.
   */
  book(atMs: EpochMs, purpose: Purpose, localMs?: EpochMs): number;
  recordOutcome(requestId: number, outcome: RequestOutcome): void;
  /**
   * Writes the bookings that fast requests have left in memory. Called while no request follows; costs little if there
   * are none.
   */
  writeRest(): void;
  /** The times of all bookings later than `sinceMs`, ascending; only those of `lanes` if any are given. */
  sentSince(sinceMs: EpochMs, ...lanes: readonly RequestLane[]): EpochMs[];
  /** Both times of all bookings later than `sinceMs`, ascending. */
  bookedSince(sinceMs: EpochMs): BookingTimes[];
  /**
   * Until when the server requested a wait; 0 if it did not. A wait that begins in the future was stored by a clock
   * that was ahead, so it counts from now.
   */
  blockedUntilMs(nowMs: EpochMs): EpochMs;
  /** Stores a wait that the server requested, durably: `waitMs` from `nowMs` on; 0 ends one. */
  block(nowMs: EpochMs, waitMs: number): void;
  /**
   * Moves bookings and a wait from the future back to when they were made: a clock that was ahead has dated them. The
   * local clock gives their age; without it they count as made at `nowMs`.
   */
  dateBack(nowMs: EpochMs, localMs: EpochMs): void;
  /**
   * For the time while the server's time is unknown. Bookings that lie in the future by both clocks count as made by
   * now, the newest of them just now.
   */
  dateAheadAsNow(localMs: EpochMs): void;
}

/** The answer of a database to one write request. */
export type WriteAnswer =
  /** 204: every line is stored. */
  | { readonly kind: 'accepted' }
  /** 413: the same lines in smaller requests may pass. */
  | { readonly kind: 'too-large'; readonly message: string }
  /**
   * The server rejects the data: at least one line is at fault. Other lines may or may not be stored. `retention`: the
   * message names lines that are older than the retention. `dropped`: how many lines were dropped for this reason, if
   * the server reports that. `conflict`: the only possible reason is the type of a field, never the server.
   * `isUnexplained`: the message names no reason.
   */
  | {
      readonly kind: 'rejected';
      readonly message: string;
      readonly retention: boolean;
      readonly dropped?: number;
      readonly conflict?: true;
      readonly isUnexplained?: true;
    }
  /** No write can succeed until someone fixes a problem; `hint` names the next step. */
  | { readonly kind: 'blocked'; readonly message: string; readonly hint: string }
  /** Throttled, overloaded or unreachable: send the same later, not before `waitMs` if the server requested a wait. */
  | {
      readonly kind: 'later';
      readonly message: string;
      /** The next step; empty or missing if waiting is enough, or if no step is known. */
      readonly hint?: string;
      readonly waitMs: number | null;
      /** The HTTP status; missing if no answer came. */
      readonly status?: number;
      /**
       * Present if the server rejected the request for a reason that Tidemark does not know: a person may have to act.
       */
      readonly unknown?: UnknownRejection;
    };

/** The text that two rejections for the same unknown reason have in common. */
export interface UnknownRejection {
  readonly status: number;
  /** The server's message without the ids and numbers that differ each time. */
  readonly message: string;
}

/** A database that accepts lines of line protocol: one call is one request. It never throws except on abort. */
export interface Sink {
  readonly name: string;
  write(lines: readonly string[], signal: AbortSignal): Promise<WriteAnswer>;
  /** The same for lines in UTF-8, each ending with a newline. The text may be packed already. */
  writeText?(text: Uint8Array | PackedText, signal: AbortSignal): Promise<WriteAnswer>;
  /** Starts to pack a text for a request that is sent later. */
  pack?(text: Uint8Array): PackedText;
}

/** A text in the form in which a request carries it. */
export interface PackedText {
  /** One gzip member. */
  readonly gzip: Promise<Uint8Array>;
  /** The text before it was packed. */
  unpack(): Promise<Uint8Array>;
}

/** The answer of a database to the question for its kind. */
export type KindAnswer =
  /** With `isAssumed`, nothing in the answer names the server. */
  | { readonly kind: 'known'; readonly server: DestinationKind; readonly isAssumed?: true }
  | Extract<WriteAnswer, { readonly kind: 'blocked' | 'later' }>;

/** A database whose kind is not known yet. */
export interface UnknownServer {
  /** Probes the server. Writes nothing, and never throws except on abort. */
  request(signal: AbortSignal): Promise<KindAnswer>;
  sinkFor(kind: DestinationKind): Sink;
}

/** A rule that yields times, in UTC. Pure: the present is an argument. */
export interface Schedule {
  readonly text: string;
  /** The first time of the schedule that is later than `afterMs`; `null` if there is none for years. */
  next(afterMs: EpochMs): EpochMs | null;
}

/** When each stream of the API is due. */
export type Schedules = Readonly<Record<Stream, Schedule>>;

/** The intervals of polls for data that the device list does not announce, in ms. */
export interface PollSettings {
  /** `sync.idle_poll`: for a device in the workspace. */
  readonly idlePollMs: number;
  /** `sync.gone_poll`: for a device that left the workspace, to notice its return. */
  readonly gonePollMs: number;
  /** `sync.full_poll`: for a poll that requests a full page, to find late readings. */
  readonly fullPollMs: number;
}

/** The content that is served at an address. */
export interface Served {
  readonly status: number;
  /** Its media type, as in the header. */
  readonly type: string;
  readonly body: string;
  /** The tag by which a browser can check for a change; without it nothing is cached. */
  readonly etag?: string;
}

/** Returns a value as a JSON response of one line. */
export function servedJson(status: number, value: unknown): Served {
  return { status, type: 'application/json; charset=utf-8', body: `${JSON.stringify(value)}\n` };
}

/** The facts found by querying a database. A point is written only on request. */
export interface DestinationFacts {
  /** The kind that it reports; `null` if no answer came. */
  readonly kind: DestinationKind | null;
  /** Its version as reported; `null` if it reports none. */
  readonly version: string | null;
  /**
   * The answer to a write of no points, or of one. `accepted`: the address, the token and the bucket are right. A
   * rejection because there are no points counts as accepted.
   */
  readonly write: WriteAnswer;
  /** Whether a point was written for that. */
  readonly isPoint: boolean;
  /**
   * Whether an InfluxDB 3 has no database of this name, so that nothing was written. `write` shows whether the write
   * could create one.
   */
  readonly isMissing: boolean;
  /** How long it keeps points, in ms (`Infinity`: forever); `null` if unknown. */
  readonly retentionMs: number | null;
  /** Whether it answers the queries of the dashboards and of `--verify`; `null` if that was not tried. */
  readonly isQueried: boolean | null;
  /**
   * The interval in ms within which VictoriaMetrics drops duplicates; 0 means none, `null` means unknown or another
   * database.
   */
  readonly dedupMs: number | null;
}
