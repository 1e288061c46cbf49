/**
 * Port of the state as a whole, which `store/` implements with SQLite, and of the removal of a device, which affects
 * all of it.
 *
 * Every writing call is one transaction. The points of a page and the coverage that they prove are stored together or
 * not at all, and only if the state that they were computed from has not changed (`StaleStateError`).
 */
import { unlessFull } from '../archive-room.ts';
import type { Account } from '../records.ts';
import type { AlertStore, InventoryStore } from './inventory.ts';
import type { LogStore } from './log.ts';
import type { QuarantineStore } from './quarantine.ts';
import type { ReplayStore } from './replay.ts';
import type { TelemetryStore } from './telemetry.ts';

/** The state of one workspace. */
export interface Store extends TelemetryStore, InventoryStore, LogStore {
  /** The `workspace_id` tag that every point carries; `null` before it is pinned. */
  workspaceTag(): string | null;
  /**
   * Ties the state to a workspace and its tag, once and forever. `apiId` is `null` where the key may not read it.
   * Throws a `UserError` for another workspace (exit 1) or another tag (exit 78), before anything is written.
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

/** The fact that lists the devices whose alerts were left out: they are read again when one is included again. */
export const ALERTS_LEFT_OUT = 'alerts_left_out';

/** The fact that lists the ranges that were backfilled by themselves, as {@link IsolatedText}. */
export const BACKFILLED_APART = 'backfilled_apart';

/** A range that was backfilled by itself; its times are texts. */
export interface IsolatedText {
  readonly from: string;
  readonly to: string;
  /** `null`: all. */
  readonly devices: readonly string[] | null;
  /**
   * Devices whose live coverage ended within the range: for these it is not isolated, and the time after it is wanted.
   */
  readonly except?: readonly string[];
}

/** The list that a fact holds; an empty one where there is none yet. */
export function listOf<T>(text: string | null): readonly T[] {
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
    unlessFull(save, () => {});
  };
}

/** The counts of a removal. */
export interface ForgottenCounts {
  /** Lines of the archive. */
  readonly points: number;
  readonly quarantined: number;
  readonly alerts: number;
}

/** The progress of a removal. */
export interface ForgetStep {
  readonly removed: ForgottenCounts;
  /** `waiting`: some of its lines are not delivered yet, and stay. */
  readonly state: 'going-on' | 'waiting' | 'done';
  /** The progress of the pass through the archive, 0 to 1. */
  readonly share: number;
}

/** The pending points of a device for a destination. */
interface PendingOfDevice {
  readonly lines: number;
  /** The block from which to continue; `null` at the end of the lane. */
  readonly next: number | null;
}

/**
 * The removal of a device. From its beginning on nothing about the device can be committed (`ForgottenError`) until it
 * is listed again, and the removal is completed, at the latest when the state is opened the next time. Every call is
 * one small transaction, which may be interrupted.
 */
export interface ForgetStore {
  /** Whether the state stores anything about a device. */
  hasTraces(deviceId: string): boolean;
  /** Lines of a device that a destination has not acknowledged, in some blocks of a lane from one on. */
  pending(deviceId: string, of: { destinationId: number; lane: 'live' | 'history'; from: number }): PendingOfDevice;
  /**
   * Begins the removal: deletes everything about the device except its lines.
   *
   * @param keepsAlerts whether the API may serve its alerts again: then they stay known, without the device.
   */
  begin(deviceId: string, keepsAlerts: boolean): ForgottenCounts;
  /**
   * Goes on with some of its lines.
   *
   * @param configured the destinations that the log is kept for.
   */
  step(deviceId: string, configured: readonly number[]): ForgetStep;
  /** The removals that were begun and are not complete. */
  unfinished(): readonly string[];
  /**
   * Empties the write-ahead log, which contains overwritten data.
   *
   * @returns whether no one was reading it.
   */
  emptyLog(): boolean;
}
