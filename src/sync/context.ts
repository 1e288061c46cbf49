/**
 * What every step of the sync is handed: the ports, the clocks and the settings. Values only; no step keeps its own.
 */
import type { AllowanceUse } from '../core/fact-lines.ts';
import type { Interval } from '../core/intervals.ts';
import type { Api, Clock, Observe, Random, RequestLane } from '../core/ports.ts';
import type { ServerClock } from '../core/server-clock.ts';
import type { Store } from '../core/state.ts';
import type { EpochMs, EpochNs } from '../core/time.ts';

export interface SyncSettings {
  /** How far back the first sync goes: an age, or a fixed instant. */
  readonly history:
    | { readonly kind: 'age'; readonly ageMs: number }
    | { readonly kind: 'since'; readonly since: EpochNs };
  /** How long after its time a reading may still appear. */
  readonly settleMs: number;
  /** How many devices are asked at once. */
  readonly concurrency: number;
  /** The configured `workspace.id`; `null`: as the account says. */
  readonly workspaceTag: string | null;
}

export interface SyncContext {
  readonly api: Api;
  readonly store: Store;
  readonly clock: Clock;
  readonly serverClock: ServerClock;
  readonly random: Random;
  readonly observe: Observe;
  /** The allowance as it stands. */
  readonly allowance: () => AllowanceUse;
  readonly settings: SyncSettings;
}

/** What may be claimed now, and the span that is wanted: fixed for a whole pass. */
export interface Horizon {
  /** Server's time, as well as it is known, when the pass began. */
  readonly nowMs: EpochMs;
  readonly wantedFrom: EpochNs;
  /** Nothing at or after this may be claimed: a reading may still appear there. */
  readonly limit: EpochNs;
}

/** What a pull is about. */
export interface PullTask {
  readonly deviceId: string;
  /** The stretch to close, inside what may be claimed. */
  readonly span: Interval;
  /** The upper end of claims: a hole that ends there is asked for without `before`. */
  readonly limit: EpochNs;
  readonly lane: RequestLane;
  /** Whether to stop where it is, so that something more urgent gets its turn: stopping anywhere is free. */
  readonly isPaused: () => boolean;
}
