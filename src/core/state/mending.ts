/**
 * What `--verify` asks of whoever holds the state, as plain JSON (the jobs `mend` and `sample`). Times are nanoseconds in
 * digits.
 */

import { isRecord } from '../json.ts';
import type { EpochNs } from '../time.ts';
import type { FoundPoints, MissingChange } from './log.ts';

/** A stretch of a device: id, from, to. */
export type StretchText = readonly [deviceId: string, from: string, to: string];

/**
 * A stretch of a device, and how many points of it.
 *
 * @param left how many other points of it, which no archive keeps and nothing compares, may be lacking still.
 */
export type PointsText = readonly [deviceId: string, from: string, to: string, points: number, left?: number];

/** What is to be fetched again, and what is to be changed in a lack-set after that. */
export interface MendArgs {
  readonly windows: readonly StretchText[];
  /** By its name in the configuration. */
  readonly destination: string;
  readonly found: readonly PointsText[];
  readonly missed: readonly PointsText[];
}

/** What came of it. */
export interface MendSummary {
  /** Windows that were read to their end. */
  readonly read: number;
  readonly requests: number;
  /** Whether all of it has reached every destination. */
  readonly delivered: boolean;
  /** Why not all was done; `null` where it was. */
  readonly reason: string | null;
}

export interface SampleArgs {
  readonly windows: number;
  /** `null`: from the beginning; to the end. */
  readonly from: string | null;
  readonly to: string | null;
  /** Empty: all. */
  readonly devices: readonly string[];
  /** Whether what is new is taken in. */
  readonly repair: boolean;
}

export function isMending(value: unknown): value is MendArgs {
  if (!isRecord(value)) return false;
  const { windows, destination, found, missed } = value;
  return (
    typeof destination === 'string' &&
    Array.isArray(windows) &&
    windows.every(isStretch) &&
    [found, missed].every((list) => Array.isArray(list) && list.every(hasPoints))
  );
}

export function isSampling(value: unknown): value is SampleArgs {
  if (!isRecord(value)) return false;
  const { windows, from, to, devices, repair } = value;
  return (
    Number.isSafeInteger(windows) &&
    [from, to].every((end) => end === null || isDigits(end)) &&
    Array.isArray(devices) &&
    devices.every((device) => typeof device === 'string') &&
    typeof repair === 'boolean'
  );
}

/** The change of a lack-set that is asked for. */
export function missingChangeOf({ found, missed }: MendArgs): MissingChange {
  const stretch = ([deviceId, from, to, points, left = 0]: PointsText): FoundPoints => ({
    deviceId,
    fromNs: BigInt(from),
    toNs: BigInt(to),
    points,
    left: Number.isSafeInteger(left) ? left : 0,
  });
  return {
    found: found.map(stretch),
    missed: missed.map((each) => ({ ...stretch(each), reason: 'cleared' })),
  };
}

export function stretchText(deviceId: string, from: EpochNs, to: EpochNs): StretchText {
  return [deviceId, `${from}`, `${to}`];
}

function isStretch(value: unknown): boolean {
  return Array.isArray(value) && typeof value[0] === 'string' && isDigits(value[1]) && isDigits(value[2]);
}

function hasPoints(value: unknown): boolean {
  return isStretch(value) && Number.isSafeInteger((value as unknown[])[3]);
}

function isDigits(value: unknown): boolean {
  return typeof value === 'string' && /^\d{1,19}$/.test(value);
}
