/**
 * Watches whether the archive may grow. `check` measures the state and its disk, decides and reports changes; the other
 * functions return what the last check found. The scheduler checks before each request, and the maintenance every few
 * seconds.
 */

import {
  judgeSpace,
  type NoSpace,
  type SpaceAnswer,
  type SpaceLimits,
  type StateFullError,
} from '../core/archive-room.ts';
import type { Observe } from '../core/events.ts';
import type { Clock, Disk } from '../core/ports.ts';
import type { ArchiveMaintenance } from '../core/state/archive.ts';
import { SECOND_MS } from '../core/time.ts';

/** The size of the archive and its limits, for the status. */
interface SpaceStatus {
  readonly usedBytes: number;
  readonly maxBytes: number | null;
  readonly diskFreeBytes: number | null;
  /** Why no new data is read; `null` while there is room. */
  readonly full: string | null;
}

/** Whether the archive may grow. */
export interface SpaceWatch {
  /** Measures the sizes if the last measurement is older than two seconds, and reports a change. */
  check(): SpaceAnswer;
  /** Whether the archive may grow, by the last check. Changes nothing. */
  answer(): SpaceAnswer;
  /** Records that a write failed for lack of disk space, and checks at once. The archive may not grow for a minute. */
  noteRefused(error: StateFullError): void;
  /** The sizes and the decision of the last check. Changes nothing. */
  status(): SpaceStatus;
}

/** How often the sizes are measured. */
const MEASURE_EVERY_MS = 2 * SECOND_MS;

interface SpaceParts {
  readonly maintenance: Pick<ArchiveMaintenance, 'size'>;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly observe: Observe;
  readonly limits: SpaceLimits;
}

/** The last measurement and decision. */
interface SpaceState {
  readonly parts: SpaceParts;
  /** The last write that failed for lack of disk space. */
  refusal: { readonly atMs: number; readonly message: string } | null;
  measuredAtMs: number;
  usedBytes: number;
  diskFreeBytes: number | null;
  /** Why the archive may not grow; `null` if it may. */
  none: NoSpace | null;
  /** The same, as the last event has reported it. */
  reported: NoSpace | null;
}

/** Measures the sizes of a state once. The first `check` reports the result. */
export function createSpaceWatch(parts: SpaceParts): SpaceWatch {
  const state: SpaceState = {
    parts,
    refusal: null,
    measuredAtMs: Number.NEGATIVE_INFINITY,
    usedBytes: 0,
    diskFreeBytes: null,
    none: null,
    reported: null,
  };
  measure(state);
  return {
    check: () => {
      if (parts.clock.monoMs() - state.measuredAtMs >= MEASURE_EVERY_MS) measure(state);
      report(state);
      return answerOf(state);
    },
    answer: () => answerOf(state),
    noteRefused: ({ message }) => {
      state.refusal = { atMs: parts.clock.monoMs(), message };
      measure(state);
      report(state);
    },
    status: () => {
      const { usedBytes, diskFreeBytes, none } = state;
      return { usedBytes, diskFreeBytes, maxBytes: parts.limits.maxBytes, full: none?.reason ?? null };
    },
  };
}

/** Measures the state and its disk, and decides whether the archive may grow. */
function measure(state: SpaceState): void {
  const { maintenance, disk, clock, limits } = state.parts;
  const nowMs = clock.monoMs();
  const size = maintenance.size();
  const diskFreeBytes = disk.freeBytes();
  const refusal = state.refusal === null ? null : { agoMs: nowMs - state.refusal.atMs, message: state.refusal.message };
  state.none = judgeSpace(state.none, { ...size, directory: disk.directory, diskFreeBytes, refusal }, limits);
  state.usedBytes = size.usedBytes;
  state.diskFreeBytes = diskFreeBytes;
  state.measuredAtMs = nowMs;
}

/** Reports once for each cause when the archive may not grow any more, and once when it may grow again. */
function report(state: SpaceState): void {
  const { none, reported, parts } = state;
  state.reported = none;
  if (none !== null && none.cause !== reported?.cause) parts.observe({ type: 'polling-stopped', reason: none.reason });
  if (none === null && reported !== null) parts.observe({ type: 'polling-resumed' });
}

function answerOf({ none }: SpaceState): SpaceAnswer {
  return none === null ? { ok: true } : { ok: false, reason: none.reason };
}
