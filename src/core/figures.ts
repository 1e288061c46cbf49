/**
 * The figures behind the metrics: what is true at a moment, put together without a look at every device. Types only.
 *
 * Times in seconds are lengths; instants are milliseconds since 1970 by the local clock, which is what whoever scrapes
 * compares them with.
 */
import type { WindowFigures } from './allowance-terms.ts';
import type { MissingReason } from './state/log.ts';
import type { DeviceState, StreamStatus } from './status.ts';
import type { EpochMs } from './time.ts';

/** What takes a look at every device. */
export interface FleetFigures {
  readonly states: Readonly<Record<DeviceState, number>>;
  /** Devices that are read, those that are gone included. */
  readonly kept: number;
  /** Those of them of which all that is wanted is held. */
  readonly complete: number;
  /** Devices that are there, excluded ones included. */
  readonly listed: number;
  /** Devices that are there and read, and those of them whose last day is not held yet. */
  readonly present: number;
  readonly lastDayMissing: number;
  /** How old the oldest reading of a device may be that is not held; `null` where no device is read. */
  readonly freshness: {
    readonly p50: number;
    readonly p90: number;
    readonly p99: number;
    readonly worst: number;
  } | null;
  /** The part of what is wanted that is held; `null` before anything is. */
  readonly coveredShare: number | null;
  /** Wanted and not held, by reason. */
  readonly gapSeconds: ReadonlyMap<string, number>;
  /** One by one, where that was asked for. */
  readonly devices: readonly DeviceFigures[];
  /** Devices that are not among those. */
  readonly leftOut: number;
}

/** One device. */
export interface DeviceFigures {
  readonly deviceId: string;
  readonly name: string;
  /** `null` where it is not read. */
  readonly freshnessSeconds: number | null;
  readonly gapSeconds: number;
}

export interface DestinationFigures {
  readonly name: string;
  readonly held: string | null;
  readonly pendingPoints: number;
  /** How long the oldest of these has been archived. */
  readonly pendingSeconds: number;
  readonly quarantined: number;
  readonly lacks: readonly { readonly reason: MissingReason; readonly points: number }[];
}

/** Work that a command has asked for. */
export interface JobFigures {
  readonly kind: string;
  /** 0 to 1; `null` where it does not tell. */
  readonly share: number | null;
  readonly etaSeconds: number | null;
}

export interface Figures {
  readonly allowance: {
    readonly minute: WindowFigures;
    readonly day: WindowFigures;
    readonly waitingUntilMs: EpochMs | null;
  };
  readonly streams: readonly StreamStatus[];
  /** `null` until every device was looked at once. */
  readonly fleet: FleetFigures | null;
  readonly fleetAgeSeconds: number;
  readonly freshnessTargetSeconds: number;
  readonly hintsWrong: number;
  readonly historyOpenSeconds: number;
  readonly jobs: readonly JobFigures[];
  readonly destinations: readonly DestinationFigures[];
  readonly archive: {
    readonly points: number;
    /** Of its lines, before they are compressed. */
    readonly bytes: number;
    readonly stateBytes: number;
    readonly maxBytes: number | null;
    readonly diskFreeBytes: number | null;
    readonly isFull: boolean;
  };
}
