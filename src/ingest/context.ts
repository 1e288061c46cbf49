/**
 * The context of a sync: the ports, clocks and settings that every step receives.
 */
import type { SpaceAnswer, StateFullError } from '../core/archive-room.ts';
import type { Turns } from '../core/async.ts';
import type { Observe } from '../core/events.ts';
import type { DeviceFilter } from '../core/filter.ts';
import type { Api, Clock, PollSettings, Random, RequestLane, Schedules, Stream } from '../core/ports.ts';
import type { QuotaUse } from '../core/quota.ts';
import type { ServerClock } from '../core/server-clock.ts';
import type { Store } from '../core/state/state.ts';
import type { EpochMs, EpochNs } from '../core/time.ts';
import type { FilterNotes } from './filter.ts';

/** The part of the configuration that reading the API depends on. */
export interface SyncSettings {
  /** How far back the first sync goes: an age, or a fixed instant. */
  readonly history:
    | { readonly kind: 'age'; readonly ageMs: number }
    | { readonly kind: 'since'; readonly since: EpochNs };
  /** How long after its time a reading may still arrive. */
  readonly gracePeriodMs: number;
  /** How many devices are requested at once. */
  readonly concurrency: number;
  /** The configured `workspace.id`; `null`: the id of the account. */
  readonly workspaceTag: string | null;
  /** The devices and sensors to exclude. */
  readonly filter: DeviceFilter;
  /** The latest time at which each stream is due. */
  readonly schedules: Schedules;
  readonly polls: PollSettings;
}

/** The ports that every part of a sync gets, and the calls from one part to another. */
export interface SyncContext {
  readonly api: Api;
  readonly store: Store;
  readonly clock: Clock;
  readonly serverClock: ServerClock;
  readonly random: Random;
  readonly observe: Observe;
  /** When the service has last answered any request, by the monotonic clock. */
  readonly answeredAtMs: () => number;
  /** The requests of the quota that were spent and that are left. */
  readonly quota: () => QuotaUse;
  readonly settings: SyncSettings;
  /** Whether the archive may grow, by the last check. Changes nothing. */
  readonly space: () => SpaceAnswer;
  /** Checks whether the archive may grow. If not, no data is requested that would be archived. Costs little. */
  readonly checkSpace: () => SpaceAnswer;
  /** Records that a write failed for lack of disk space. For a while the archive counts as full. */
  readonly noteStateFull: (error: StateFullError) => void;
  /** Called when something was archived: wakes the deliveries. */
  readonly noteArchived: () => void;
  /** Called when a page of telemetry was committed, before `noteArchived`. */
  readonly noteCommitted: (page: CommittedPage) => void;
  /** Called when the workspace behind the key is confirmed: reports that, and lets the deliveries begin. */
  readonly noteWorkspaceKnown: () => void;
  /** Called if the API does not name the workspace: the deliveries no longer wait for it. */
  readonly noteWorkspaceUnknown: () => void;
  /** Called when the key does not have the scope of a stream: reports that once. */
  readonly noteStreamOff: (stream: Stream, scope: string) => void;
  /** Called when a device is gone, or was removed: it is not polled any more. */
  readonly noteDeviceLeft: (deviceId: string) => void;
  /**
   * Returns the time until which no reading of a device is overdue, by the rate of its readings, if the device list
   * does not follow the device: its next poll. `null` for other devices, and if no such time is known.
   */
  readonly nextReadingMs: (deviceId: string) => EpochMs | null;
  /** Called when the account shows another plan. Requests that were rejected under the old plan may succeed now. */
  readonly notePlanChanged: () => void;
  /** Prevents work of one kind from overlapping: the daemon's own work and a job's. */
  readonly takeTurn: Turns;
  /** Records the devices and sensors that the filter was applied to, and reports its patterns that match nothing. */
  readonly filterNotes: Omit<FilterNotes, 'filter'>;
}

/** The part of the context that reports need. It can be made from the state alone. */
export interface ReportContext extends Pick<SyncContext, 'store' | 'nextReadingMs'> {
  readonly serverClock: Pick<ServerClock, 'nowMs' | 'highestPassedMs' | 'passedMs'>;
  readonly settings: Pick<SyncSettings, 'history' | 'gracePeriodMs' | 'filter' | 'schedules'>;
}

/** The additions of a committed telemetry page to the archive. */
export interface CommittedPage {
  readonly lane: RequestLane;
  readonly newReadings: number;
  readonly newPoints: number;
}

/** Archives the newest page of a device without covering a range. */
export interface Peeking {
  /** Returns whether the page had readings. @throws ApiFault */
  peek(deviceId: string, signal: AbortSignal): Promise<boolean>;
}

/** The wanted range and the coverage limit: fixed for a whole scan. */
export interface WantedRange {
  /** The server's time when the scan began, as well as it is known. */
  readonly nowMs: EpochMs;
  readonly wantedFrom: EpochNs;
  /**
   * The coverage limit. No time at or after it is covered, because a reading may still appear there. `limitFor` gives
   * the limit of one device.
   */
  readonly limit: EpochNs;
  /** The configured grace period that `limit` allows for. */
  readonly gracePeriodMs: number;
}
