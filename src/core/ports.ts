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
  /** A clock that never jumps, of no particular origin. */
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

/** One page of one window of one device. Times are whole seconds; `null` leaves a bound out. */
export interface TelemetryQuery {
  readonly deviceId: string;
  readonly after: EpochNs | null;
  readonly before: EpochNs | null;
  readonly cursor: Cursor | null;
}

/**
 * The vendor's API, read only. Every call waits for quota, is booked before it is sent, and is retried where that can
 * help; any other failure is thrown as an `ApiFault`.
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
  /** The HTTP status; `null` where no answer came. */
  readonly status: number | null;
  readonly fault: ApiFaultKind | null;
}

/** When a request was booked, by two clocks: either may have been wrong then. */
export interface BookingTimes {
  /** By the server's clock. */
  readonly atMs: EpochMs;
  /** The local clock's time; `null` where it was not recorded. */
  readonly localMs: EpochMs | null;
}

/** The record of every request, refused ones included, in the server's time. Survives restarts. */
export interface Ledger {
  /**
   * Books a request, durably, before it is sent.
   *
   * @returns its id.
   */
  book(atMs: EpochMs, purpose: Purpose, localMs?: EpochMs): number;
  recordOutcome(requestId: number, outcome: RequestOutcome): void;
  /** While no request follows: writes what requests that followed fast have left in memory. Cheap without such. */
  writeRest(): void;
  /** The times of all bookings later than `sinceMs`, ascending; of some lanes where they are given. */
  sentSince(sinceMs: EpochMs, ...lanes: readonly RequestLane[]): EpochMs[];
  /** Both times of all bookings later than `sinceMs`, ascending. */
  bookedSince(sinceMs: EpochMs): BookingTimes[];
  /**
   * Until when the server requested a wait; 0 where it did not. A wait that begins in the future was kept by a clock
   * that was ahead: it counts from now.
   */
  blockedUntilMs(nowMs: EpochMs): EpochMs;
  /** Keeps a wait that the server requested, durably: from `nowMs` on, for `waitMs`; 0 ends one. */
  block(nowMs: EpochMs, waitMs: number): void;
  /**
   * Dates bookings and a wait of the future back: a clock that was ahead has made them. The local clock gives their
   * age; where it does not, they were made at `nowMs`.
   */
  dateBack(nowMs: EpochMs, localMs: EpochMs): void;
  /**
   * While the server's time is unknown: records that bookings that lie in the future by both clocks were made by now,
   * the newest of them just now.
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
   * The server rejects the data: at least one line is at fault. Others may or may not be stored. `retention`: it names
   * lines that are older than its retention; `dropped`: how many lines it has dropped for this reason, if it reports
   * that; `conflict`: the reason can only be the type of a field, never the server; `isUnexplained`: the message names
   * no reason.
   */
  | {
      readonly kind: 'refused';
      readonly message: string;
      readonly retention: boolean;
      readonly dropped?: number;
      readonly conflict?: true;
      readonly isUnexplained?: true;
    }
  /** No write can succeed until someone fixes a problem; `hint` names the next step. */
  | { readonly kind: 'blocked'; readonly message: string; readonly hint: string }
  /** Throttled, overloaded, unreachable: the same again later, not sooner than `waitMs` where that was requested. */
  | {
      readonly kind: 'later';
      readonly message: string;
      /** The next step; empty or missing where waiting is enough, or where none is known. */
      readonly hint?: string;
      readonly waitMs: number | null;
      /** The HTTP status; missing where no answer came. */
      readonly status?: number;
      /** Present if the request was refused for a reason that Tidemark does not know: it may need a person. */
      readonly unknown?: UnknownRefusal;
    };

/** The text that two refusals for the same unknown reason have in common. */
export interface UnknownRefusal {
  readonly status: number;
  /** The server's message without ids and numbers, which differ each time. */
  readonly message: string;
}

/** A database that accepts lines of line protocol: one call is one request. It never throws except on abort. */
export interface Sink {
  readonly name: string;
  write(lines: readonly string[], signal: AbortSignal): Promise<WriteAnswer>;
  /** The same for lines in UTF-8, each ending with a newline, as such or packed before. */
  writeText?(text: Uint8Array | PackedText, signal: AbortSignal): Promise<WriteAnswer>;
  /** Begins to pack such a text, for a request that is sent later. */
  pack?(text: Uint8Array): PackedText;
}

/** A text as a request carries it. */
export interface PackedText {
  /** One gzip member. */
  readonly gzip: Promise<Uint8Array>;
  /** The text as it was before. */
  unpack(): Promise<Uint8Array>;
}

/** The answer of a database to the question for its kind. */
export type KindAnswer =
  | { readonly kind: 'known'; readonly server: DestinationKind }
  | Extract<WriteAnswer, { readonly kind: 'blocked' | 'later' }>;

/** A database whose kind is not known yet. */
export interface UnknownServer {
  /** Probes it. Writes nothing, and never throws but on abort. */
  request(signal: AbortSignal): Promise<KindAnswer>;
  sinkFor(kind: DestinationKind): Sink;
}

/** A rule that names times, in UTC. Pure: the present is an argument. */
export interface Schedule {
  readonly text: string;
  /** The first time later than `afterMs` that it names; `null` where it names none for years. */
  next(afterMs: EpochMs): EpochMs | null;
}

/** When each stream of the API is due. */
export type Schedules = Readonly<Record<Stream, Schedule>>;

/** Intervals of polls for what the device list does not announce, in ms. */
export interface PollSettings {
  /** `sync.idle_poll`: a device that the workspace has. */
  readonly idlePollMs: number;
  /** `sync.gone_poll`: a device that left the workspace, to notice its return. */
  readonly gonePollMs: number;
  /** `sync.full_poll`: a poll that requests a full page, to find late readings. */
  readonly fullPollMs: number;
}

/** The content served at an address, between its maker and its sender. */
export interface Served {
  readonly status: number;
  /** Its media type, as in the header. */
  readonly type: string;
  readonly body: string;
  /** The tag by which a browser can check for a change; without one nothing is cached. */
  readonly etag?: string;
}

/** Returns a value as a JSON response of one line. */
export function servedJson(status: number, value: unknown): Served {
  return { status, type: 'application/json; charset=utf-8', body: `${JSON.stringify(value)}\n` };
}

/** The facts found by querying a database; a point is written only on request. */
export interface DestinationFacts {
  /** The kind that it reports; `null` if no answer came. */
  readonly kind: DestinationKind | null;
  /** Its version as reported; `null` if it reports none. */
  readonly version: string | null;
  /**
   * The answer to a write of no points, or of one. `accepted`: the address, the token and the bucket are right. A
   * refusal because there are no points counts as accepted.
   */
  readonly write: WriteAnswer;
  /** Whether a point was written for that. */
  readonly isPoint: boolean;
  /** An InfluxDB 3 has no database of this name, so nothing was written. `write` shows whether it could create one. */
  readonly isMissing: boolean;
  /** How long it keeps points, in ms (`Infinity`: forever); `null` if unknown. */
  readonly retentionMs: number | null;
  /** Whether it answers queries as the dashboards and `--verify` send them; `null` where that was not seen. */
  readonly isQueried: boolean | null;
  /**
   * The interval in ms within which VictoriaMetrics drops duplicates; 0: none; `null` if unknown, or for another
   * database.
   */
  readonly dedupMs: number | null;
}
