/**
 * The context of a sync: the ports, clocks and settings that every step receives.
 */
import type { RoomAnswer, StateFullError } from '../core/archive-room.ts';
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
  /** How long after its time a reading may still appear. */
  readonly gracePeriodMs: number;
  /** How many devices are requested at once. */
  readonly concurrency: number;
  /** The configured `workspace.id`; `null`: the id of the account. */
  readonly workspaceTag: string | null;
  /** The devices and sensors to leave out. */
  readonly filter: DeviceFilter;
  /** When each stream is due, at the latest. */
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
  /** The requests spent and left of the quota. */
  readonly quota: () => QuotaUse;
  readonly settings: SyncSettings;
  /** Whether the archive may grow, by the last check. Changes nothing. */
  readonly room: () => RoomAnswer;
  /** Checks whether the archive may grow: without room nothing is requested that would be archived. Cheap. */
  readonly checkRoom: () => RoomAnswer;
  /** Records that a write failed for lack of disk space; for a while none counts as available. */
  readonly noteStateFull: (error: StateFullError) => void;
  /** Called when something was archived: wakes the deliveries. */
  readonly noteArchived: () => void;
  /** Called when a page of telemetry was committed, before `noteArchived`. */
  readonly noteCommitted: (page: CommittedPage) => void;
  /**
   * Called when the workspace behind the key is known to be the right one: reports that, and lets the deliveries begin.
   */
  readonly noteWorkspaceKnown: () => void;
  /** Called where the API does not name the workspace: the deliveries wait for it no longer. */
  readonly noteWorkspaceUnknown: () => void;
  /** Called when the key does not have the scope of a stream: reports that once. */
  readonly noteStreamOff: (stream: Stream, scope: string) => void;
  /** Called when a device is gone, or was removed: it is not polled any more. */
  readonly noteDeviceLeft: (deviceId: string) => void;
  /**
   * Until when no reading of a device is overdue that the device list does not follow, by the rate of its readings:
   * until its next poll is due. `null` for any other device, and where that is not known.
   */
  readonly nextReadingMs: (deviceId: string) => EpochMs | null;
  /** Called when the account shows another plan: requests that were refused under the old one may succeed now. */
  readonly notePlanChanged: () => void;
  /** Keeps work of one kind from overlapping: the daemon's own and a job's. */
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

/** Records the newest page of a device; nothing is covered by it. */
export interface Peeking {
  /**
   * @returns whether it had readings.
   * @throws ApiFault
   */
  peek(deviceId: string, signal: AbortSignal): Promise<boolean>;
}

/** The wanted range and the coverage limit: fixed for a whole scan. */
export interface WantedRange {
  /** Server's time, as well as it is known, when the scan began. */
  readonly nowMs: EpochMs;
  readonly wantedFrom: EpochNs;
  /**
   * The coverage limit: nothing at or after it is covered, as a reading may still appear there. Of one device:
   * `limitFor`.
   */
  readonly limit: EpochNs;
  /** The configured grace period that `limit` allows for. */
  readonly gracePeriodMs: number;
}
