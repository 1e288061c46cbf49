/**
 * The figures behind the metrics: types alone. `report/figures.ts` computes them, `observe/metrics.ts` serves them.
 */
import type { QuotaWindowFigures } from './quota.ts';
import type { MissingReason } from './state/log.ts';
import type { DeviceState, StreamStatus } from './status.ts';
import type { EpochMs } from './time.ts';

/**
 * The metrics that need a scan of all devices. Times in seconds are durations. Instants are milliseconds since 1970 by
 * the local clock, because a scraper compares them with its own.
 */
export interface FleetFigures {
  readonly states: Readonly<Record<DeviceState, number>>;
  /** The devices in the state `silent` that no readings are expected from: they were paused, shelved or retired. */
  readonly outOfService: number;
  /** Devices that are read, including gone ones. */
  readonly polled: number;
  /** The complete devices among the polled ones. */
  readonly complete: number;
  /** Devices in the list, including excluded ones. */
  readonly listed: number;
  /** Devices that are listed and read, and how many of them have a last day that is not covered yet. */
  readonly present: number;
  readonly lastDayMissing: number;
  /** The lag of the devices; `null` if no device is read, or if most are in their initial sync and it is small. */
  readonly lag: {
    readonly p50: number | null;
    readonly p90: number | null;
    readonly p99: number | null;
    readonly worst: number | null;
  };
  /** The covered share of the wanted ranges; `null` if no range is wanted yet. */
  readonly coveredShare: number | null;
  /** Seconds of wanted time that are not covered, by reason. */
  readonly gapSeconds: ReadonlyMap<string, number>;
  /** The devices one by one, if they were requested. */
  readonly devices: readonly DeviceFigures[];
  /** The number of devices that are not in `devices`. */
  readonly leftOut: number;
}

/** The metrics of one device, for `metrics.per_device`. */
export interface DeviceFigures {
  readonly deviceId: string;
  readonly name: string;
  /** `null` for an excluded device, which is not polled. */
  readonly lagSeconds: number | null;
  readonly gapSeconds: number;
}

/** The figures of a destination for `/metrics`. */
export interface DestinationFigures {
  readonly name: string;
  readonly blockedReason: string | null;
  readonly pendingPoints: number;
  /** How long the oldest pending point has been archived. */
  readonly pendingSeconds: number;
  readonly quarantined: number;
  readonly missing: readonly { readonly reason: MissingReason; readonly points: number }[];
}

/** Work that a command has requested. */
export interface JobFigures {
  readonly kind: string;
  /** 0 to 1; `null` if unknown. */
  readonly share: number | null;
  readonly etaSeconds: number | null;
}

/** The current figures behind the metrics. */
export interface Figures {
  /** `null` until the id is known; the name is empty if the key may not read the account. */
  readonly workspace: { readonly id: string; readonly name: string } | null;
  readonly quota: {
    readonly minute: QuotaWindowFigures;
    readonly day: QuotaWindowFigures;
    readonly waitingUntilMs: EpochMs | null;
    /** Until when history and backfill wait. */
    readonly historyWaitsUntilMs: EpochMs | null;
  };
  readonly streams: readonly StreamStatus[];
  /** `null` until every device was checked once. */
  readonly fleet: FleetFigures | null;
  readonly fleetAgeSeconds: number;
  readonly lagTargetSeconds: number;
  readonly hintsWrong: number;
  readonly historyOpenSeconds: number;
  readonly jobs: readonly JobFigures[];
  readonly destinations: readonly DestinationFigures[];
  readonly archive: {
    readonly points: number;
    /** The size of its lines before compression. */
    readonly bytes: number;
    readonly stateBytes: number;
    readonly maxBytes: number | null;
    readonly diskFreeBytes: number | null;
    readonly isFull: boolean;
  };
}
