/**
 * What survives a crash, as the motion sees it: the port that `store/` fills with SQLite.
 *
 * Invariant of every writing call: it is one transaction. What a page brought and the coverage that it proves move
 * together or not at all, and only if what they were computed from still holds (`StaleStateError`).
 */

import type { Account, RejectedRecord } from '../records.ts';
import type { EpochMs } from '../time.ts';
import type { ForgetStore } from './forget.ts';
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
   * Ties the state to a workspace and its tag, once and for ever. `apiId` is `null` where the key may not read it.
   * Throws a `UserError` for another workspace (exit 1) or another tag (exit 78), before anything is written.
   */
  pinWorkspace(workspace: { apiId: string | null; tag: string }): void;
  account(): Account | null;
  keepAccount(account: Account, lines: readonly string[]): void;

  readonly alerts: AlertStore;
  readonly replays: ReplayStore;
  readonly quarantine: QuarantineStore;
  readonly forgetting: ForgetStore;

  /** Puts records of the API that could not be understood aside. */
  quarantineRecords(source: string, records: readonly RejectedRecord[], atMs: EpochMs): void;

  /** A small fact that outlives the process. */
  fact(key: string): string | null;
  keepFact(key: string, value: string): void;
}
