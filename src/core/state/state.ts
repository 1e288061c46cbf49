/**
 * Ports of the state as a whole, which `store/` implements with SQLite: the store, the removal of a device, which
 * affects all of it, and the facts for reports.
 *
 * Every writing call is one transaction. The points of a page and the coverage that they prove are stored together or
 * not at all, and only if the state that they were computed from has not changed (`StaleStateError`).
 */
import { runUnlessFull } from '../archive-room.ts';
import type { DayReadings } from '../fleet.ts';
import type { KnownAlert } from '../lines/fact-lines.ts';
import type { Stream } from '../ports.ts';
import type { Account } from '../records.ts';
import type { LaneStatus } from '../status.ts';
import type { EpochMs, EpochNs } from '../time.ts';
import type { AlertStore, InventoryStore } from './inventory.ts';
import type { LogLane, LogStore } from './log.ts';
import type { QuarantineStore } from './quarantine.ts';
import type { ReplayStore } from './replay.ts';
import type { TelemetryStore } from './telemetry.ts';

/** Everything that the sync keeps of one workspace: telemetry, inventory, the log and the quarantine. */
export interface Store extends TelemetryStore, InventoryStore, LogStore {
  /** The `workspace_id` tag that every point carries; `null` before it is pinned. */
  workspaceTag(): string | null;
  /**
   * Ties the state to a workspace and its tag, once and forever. `apiId` is `null` if the key may not read it. Throws a
   * `UserError` for another workspace (exit 1) or another tag (exit 78), before anything is written.
   */
  pinWorkspace(workspace: { apiId: string | null; tag: string }): void;
  account(): Account | null;
  saveAccount(account: Account, lines: readonly string[]): void;

  readonly alerts: AlertStore;
  readonly replays: ReplayStore;
  readonly quarantine: QuarantineStore;
  readonly forgetting: ForgetStore;

  /** A small fact that outlives the process. */
  fact(key: string): string | null;
  saveFact(key: string, value: string): void;
}

/**
 * The fact that lists the devices whose alerts were excluded. They are read again when such a device is included again.
 */
export const ALERTS_LEFT_OUT = 'alerts_left_out';

/** The fact that lists the ranges that were backfilled separately, as {@link IsolatedText}. */
export const BACKFILLED_APART = 'backfilled_apart';

/** A range that was backfilled separately; its times are texts. */
export interface IsolatedText {
  readonly from: string;
  readonly to: string;
  /** `null`: all. */
  readonly devices: readonly string[] | null;
  /**
   * Devices whose live coverage ended within the range. For these the range is not isolated, and the time after it is
   * wanted.
   */
  readonly except?: readonly string[];
}

/** The list that a fact holds; an empty one if there is none yet. */
export function parseList<T>(text: string | null): readonly T[] {
  return text === null ? [] : JSON.parse(text);
}

/**
 * Creates a function that keeps a fact up to date: it writes a text when that changes.
 *
 * @param key the key of the fact; it may change while the program runs.
 * @returns the function; `null` is written as an empty text. A full state is no error: the next call writes.
 */
export function createFactNote(
  { fact, saveFact }: Pick<Store, 'fact' | 'saveFact'>,
  key: () => string,
): (text: string | null) => void {
  let noted = fact(key()) ?? '';
  return (text) => {
    if ((text ?? '') === noted) return;
    const save = (): void => {
      saveFact(key(), text ?? '');
      noted = text ?? '';
    };
    runUnlessFull(save, () => {});
  };
}

/** How much data of a device was deleted, by one step or in total. */
export interface ForgottenCounts {
  /** Lines that were deleted from the archive. */
  readonly points: number;
  readonly quarantined: number;
  readonly alerts: number;
}

/** The progress of the removal of a device after a step. */
export interface ForgetStep {
  readonly removed: ForgottenCounts;
  /** `waiting`: some of its lines are not delivered yet, and stay. */
  readonly state: 'going-on' | 'waiting' | 'done';
  /** The progress of the scan of the archive, 0 to 1. */
  readonly share: number;
}

/** The pending points of a device for a destination. */
interface PendingOfDevice {
  readonly lines: number;
  /** The block from which to continue; `null` at the end of the lane. */
  readonly next: number | null;
}

/**
 * The removal of a device. After its beginning no data about the device can be committed (`ForgottenError`) until the
 * device is listed again. The removal is completed when the state is next opened, at the latest. Every call is one
 * small transaction, which may be interrupted.
 */
export interface ForgetStore {
  /** Whether the state stores anything about a device. */
  hasTraces(deviceId: string): boolean;
  /** Lines of a device that a destination has not acknowledged, in some blocks of a lane from a given one on. */
  pending(deviceId: string, where: { destinationId: number; lane: LogLane; from: number }): PendingOfDevice;
  /**
   * Begins the removal: deletes everything about the device except its lines.
   *
   * @param keepsAlerts whether the API may serve its alerts again. If so, they stay known, without the device.
   */
  begin(deviceId: string, keepsAlerts: boolean): ForgottenCounts;
  /**
   * Continues with some of its lines.
   *
   * @param configured the destinations that the log is kept for.
   */
  step(deviceId: string, configured: readonly number[]): ForgetStep;
  /** The removals that have begun and are not complete. */
  unfinished(): readonly string[];
  /**
   * Empties the write-ahead log, which contains overwritten data.
   *
   * @returns whether no connection was reading it.
   */
  emptyLog(): boolean;
}

/** A request and its answer, if there was one. Fault and lane are as stored. */
export interface SentRequest {
  readonly atMs: EpochMs;
  readonly lane: string;
  /** The HTTP status; `null` if no answer came, or none has come yet. */
  readonly status: number | null;
  readonly fault: string | null;
  /** The number of new readings; `null` if no page came. */
  readonly newReadings: number | null;
}

/** How a stream was read, as far back as bookings are kept (two days). */
export interface StreamFacts {
  readonly stream: Stream;
  readonly readAtMs: EpochMs | null;
  /** The last failure, if it is newer than the last success. */
  readonly failure: { readonly atMs: EpochMs; readonly fault: string } | null;
}

/** A queued or running job, as reports show it. */
export interface OpenJob {
  readonly id: number;
  readonly kind: string;
  readonly state: string;
  readonly requestedBy: string;
  readonly requestedMs: EpochMs;
  readonly startedMs: EpochMs | null;
  /** As the requesting command stored them: JSON of its kind. */
  readonly args: unknown;
  /** The last progress that it has reported, as JSON of its kind; `null` before that. */
  readonly progress: unknown;
}

/** The latest telemetry requests for one device. */
interface DeviceRequests {
  /** The newest first. */
  readonly last: readonly SentRequest[];
  /** How many requests of the last two days failed. */
  readonly failed: number;
}

/** The upgrade of an older state, which is made when the state is opened. */
export interface StateUpgrade {
  /** The version of the state before the upgrade, and after it. */
  readonly from: number;
  readonly to: number;
  /** The file with the state before the upgrade. */
  readonly copy: string;
}

/** The stored facts that status reports and metrics are made from. */
export interface StateFacts {
  /** All lanes, in the order of precedence. May be a few seconds old. */
  spending(nowMs: EpochMs): readonly LaneStatus[];
  streams(): readonly StreamFacts[];
  lastRequestMs(): EpochMs | null;
  /** When data was last archived. */
  lastArchivedMs(): EpochMs | null;
  /** Since when the oldest line that a destination has not acknowledged is waiting; `null` if none is waiting. */
  oldestPendingMs(destinationId: number): EpochMs | null;
  /** The same for the live lane only. */
  oldestLivePendingMs(destinationId: number): EpochMs | null;
  jobs(): readonly OpenJob[];
  requestsOf(deviceId: string, count: number): DeviceRequests;
  /** The days of a device that have readings, from a day on (days since 1970). */
  daysOf(deviceId: string, fromDay: number): readonly DayReadings[];
  /**
   * The telemetry lines of a device's newest archived instant, in any order, including the lines just after it: a value
   * with an offset is up to `MAX_OFFSET_NS` later than its reading. Empty if the archive has none.
   */
  newestLines(deviceId: string): readonly string[];
  /** The time of the oldest reading of a device in the archive; `null` if it has none. */
  archivedSince(deviceId: string): EpochNs | null;
  /** Whether the archive has cleared readings of a device. */
  isCleared(deviceId: string): boolean;
  /** The alerts that were seen: their number, and the first of them; the open ones first, then the newest. */
  alertsSeen(count: number): SeenAlerts;
  /** The alerts of one device, in the order of `alertsSeen`, up to `count`. */
  alertsOf(deviceId: string, count: number): readonly KnownAlert[];
}

interface SeenAlerts {
  readonly alerts: number;
  readonly open: number;
  readonly first: readonly KnownAlert[];
}
