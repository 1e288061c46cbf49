/**
 * Decides whether there is room for more data (`archive.max_size`): from the size of the state, the free space of its
 * disk, and the result of the last write. Pure.
 *
 * Reading stops before anything is full, so that deliveries, bookings and clearing still work. It resumes only when
 * there is clearly more room than when it stopped, so that it does not stop and resume all the time.
 */

import { UserError } from './faults.ts';
import type { StateSize } from './state/archive.ts';
import { byteSize } from './text.ts';
import { MINUTE_MS } from './time.ts';

const MIB = 1024 * 1024;

/** How far the state file may grow above `archive.max_size`. Bookings and delivery still work at the limit. */
export const HARD_LIMIT_ABOVE_BYTES = 64 * MIB;

/** The state could not be written because the disk is full or failed. No part of that write is stored. */
export class StateFullError extends UserError {}

/**
 * Does work that can wait if the state is full.
 *
 * @param onFull called with the error if the state is full.
 * @returns the result; `null` if it is full.
 */
export function runUnlessFull<T>(work: () => T, onFull: (error: StateFullError) => void): T | null {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof StateFullError)) throw error;
    onFull(error);
    return null;
  }
}

/** Whether the archive may grow; if not, why. */
export type SpaceAnswer = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** The limits of the state's size. */
export interface SpaceLimits {
  /** `archive.max_size`; `null`: none. */
  readonly maxBytes: number | null;
  /** Ingest pauses if less disk space than this is free, or less than twice the write-ahead log. */
  readonly minFreeBytes: number;
  /** Whether a database is configured that could take points; `true` if absent. */
  readonly hasDestinations?: boolean;
}

/** The least free space of a disk. */
export const MIN_FREE_BYTES = 256 * MIB;

/** The measured sizes of the state and its disk. */
export interface SpaceFigures extends StateSize {
  /** The data directory, as messages name it. */
  readonly directory: string;
  /** Free bytes on its disk; `null` if unknown. */
  readonly diskFreeBytes: number | null;
  /** When a write last failed because the disk was full, and its message; `null`: not since the start. */
  readonly refusal: { readonly agoMs: number; readonly message: string } | null;
}

/**
 * Why polling has to stop: the state is at its size limit, its disk is nearly full, or a write failed on a full disk.
 */
export interface NoSpace {
  readonly cause: 'size' | 'disk' | 'refused';
  /** The full part, without the consequences. */
  readonly what: string;
  /** When polling resumes, and how to get there; empty if `what` has it. */
  readonly remedy: string;
  /** Both, with the consequences. */
  readonly reason: string;
}

/** How long nothing new is requested after a failed write. */
const REST_AFTER_REFUSAL_MS = MINUTE_MS;

/** The distance from the limit down to where ingest resumes, and from there down to where clearing stops. */
function reserve(maxBytes: number): number {
  return Math.min(maxBytes / 20, 32 * MIB);
}

/**
 * The size above which acknowledged blocks are cleared regardless of `archive.retention`, and the size at which that
 * stops.
 */
export function clearingMarks(maxBytes: number): { readonly above: number; readonly downTo: number } {
  return { above: maxBytes - reserve(maxBytes), downTo: maxBytes - 2 * reserve(maxBytes) };
}

/**
 * Decides whether there is room.
 *
 * @param before the previous decision: reading resumes at a smaller size than it stops at.
 */
export function judgeSpace(before: NoSpace | null, figures: SpaceFigures, limits: SpaceLimits): NoSpace | null {
  const { refusal } = figures;
  if (refusal !== null && refusal.agoMs < REST_AFTER_REFUSAL_MS) {
    return { cause: 'refused', what: refusal.message, remedy: '', reason: refusal.message };
  }
  return judgeDisk(before, figures, limits) ?? judgeSize(before, figures, limits);
}

const WAITS_FOR_DESTINATION = [
  'and no more points can be removed',
  'Polling resumes when a database accepts the points that wait for it, or when you raise archive.max_size.',
] as const;

const WITHOUT_DESTINATION = [
  'and without a database no points are removed',
  'Polling resumes when you raise archive.max_size or configure a database (influx.url).',
] as const;

function judgeSize(before: NoSpace | null, { usedBytes }: SpaceFigures, limits: SpaceLimits): NoSpace | null {
  const { maxBytes, hasDestinations = true } = limits;
  if (maxBytes === null) return null;
  const most = before?.cause === 'size' ? maxBytes - reserve(maxBytes) : maxBytes;
  if (usedBytes <= most) return null;
  const what = `the archive is full: ${byteSize(usedBytes)} of archive.max_size ${byteSize(maxBytes)}`;
  const [consequence, remedy] = hasDestinations ? WAITS_FOR_DESTINATION : WITHOUT_DESTINATION;
  return { cause: 'size', what, remedy, reason: `${what}, ${consequence}. ${remedy}` };
}

function judgeDisk(before: NoSpace | null, figures: SpaceFigures, { minFreeBytes }: SpaceLimits): NoSpace | null {
  const { diskFreeBytes, directory, walBytes } = figures;
  if (diskFreeBytes === null) return null;
  const stopBelow = Math.max(minFreeBytes, 2 * walBytes);
  const resumeAbove = stopBelow * 1.25;
  if (diskFreeBytes >= (before?.cause === 'disk' ? resumeAbove : stopBelow)) return null;
  const what = `${directory}: only ${byteSize(diskFreeBytes)} of its disk are free`;
  const remedy = `Polling resumes when ${byteSize(resumeAbove)} are free: delete or move other files there.`;
  return { cause: 'disk', what, remedy, reason: `${what}. ${remedy}` };
}
