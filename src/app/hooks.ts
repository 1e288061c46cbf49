/**
 * Calls from one part of a sync to another that is created later. One part informs another by such a call; events are
 * for observers only.
 */
import type { ApiFaultKind } from '../core/faults.ts';
import type { Purpose } from '../core/ports.ts';
import type { Deliverer } from '../delivery/deliver.ts';
import type { SyncContext } from '../ingest/context.ts';
import { nextDeviceReadingMs } from '../scheduler/device-queue.ts';
import {
  noteBooked,
  noteCommitted,
  noteDone,
  noteLimitMismatch,
  notePlanChanged,
  type Planning,
  removeDevice,
} from '../scheduler/planning.ts';

/** The calls between parts, for parts that are created after their caller. */
export interface Hooks
  extends Pick<SyncContext, 'notePlanChanged' | 'noteDeviceLeft' | 'nextReadingMs' | 'noteCommitted' | 'noteArchived'> {
  /** Called when a request was booked. */
  readonly noteBooked: (purpose: Purpose) => void;
  /** Called with the result of each attempt. */
  readonly noteDone: (fault: ApiFaultKind | null, purpose: Purpose) => void;
  readonly noteLimitMismatch: () => void;
  readonly noteRejected: (signal: AbortSignal) => Promise<void>;
}

/** The parts that are created after those that call them. */
export interface DeferredParts {
  /** The planning and its callbacks; `null` until they are created. */
  planned: {
    readonly planning: Planning;
    readonly checkPlan: (signal: AbortSignal) => Promise<void>;
    readonly checkForFall: () => void;
  } | null;
  readonly deliverers: readonly Pick<Deliverer, 'notify'>[];
}

/**
 * The calls to parts that are created later.
 *
 * @returns functions that throw before those parts exist; no part calls them that early.
 */
export function createHooks(later: DeferredParts): Hooks {
  const planned = (): NonNullable<DeferredParts['planned']> => {
    if (later.planned === null) throw new Error('a part of the sync was called before it was created');
    return later.planned;
  };
  return {
    noteBooked: (purpose) => noteBooked(planned().planning, purpose),
    noteDone: (fault, purpose) => {
      const { planning, checkForFall } = planned();
      checkForFall();
      noteDone(planning, fault, purpose);
    },
    noteLimitMismatch: () => noteLimitMismatch(planned().planning),
    noteRejected: async (signal) => await planned().checkPlan(signal),
    notePlanChanged: () => notePlanChanged(planned().planning),
    noteDeviceLeft: (deviceId) => removeDevice(planned().planning, deviceId),
    nextReadingMs: (deviceId) => nextDeviceReadingMs(planned().planning.planner.devices, deviceId),
    noteCommitted: (page) => noteCommitted(planned().planning, page),
    noteArchived: () => later.deliverers.forEach(({ notify }) => void notify()),
  };
}
