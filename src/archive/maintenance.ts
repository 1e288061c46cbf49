/**
 * Keeps the archive small, in short steps between all other work.
 *
 * It compacts what every destination has acknowledged, and clears acknowledged blocks that are old or, if the size
 * demands it, all of them. It skips destinations that block the log for too long, and returns free pages to the file
 * system. A step takes a few milliseconds, and the process may end after any of them.
 */
import { clearingMarks, runUnlessFull } from '../core/archive-room.ts';
import { repeat, runUntilFirst } from '../core/async.ts';
import type { Observe } from '../core/events.ts';
import type { Clock } from '../core/ports.ts';
import type { ArchiveMaintenance, CompactionGroup, LogReaders, Stall } from '../core/state/archive.ts';
import type { Store } from '../core/state/state.ts';
import { type EpochMs, HOUR_MS, MINUTE_MS, SECOND_MS } from '../core/time.ts';
import type { SpaceWatch } from './room.ts';

/** How long and how much the archive may keep. */
export interface ArchiveLimits {
  /** `archive.retention`: how long acknowledged points are kept. */
  readonly retentionMs: number;
  /** `archive.max_size`; `null`: no limit. */
  readonly maxBytes: number | null;
}

/** The store, the room and the limits that the maintenance works with. */
export interface MaintenanceParts {
  readonly store: Pick<Store, 'backlog'>;
  readonly maintenance: ArchiveMaintenance;
  readonly space: SpaceWatch;
  /** All configured destinations, skipped ones included. */
  readonly destinations: () => readonly {
    readonly destinationId: number;
    readonly name: string;
  }[];
  readonly limits: ArchiveLimits;
  readonly clock: Clock;
  readonly observe: Observe;
  /** Resolves once the workspace is confirmed. Nothing is written before that. */
  readonly mayBegin: (signal: AbortSignal) => Promise<void>;
}

/** The longest duration of a step in ms, and the most pieces in it. */
const STEP = { mostMs: 12, mostPieces: 50 };

/** The pause between two steps: while there is work, and otherwise. */
const REST_MS = { busy: 100, idle: 5 * SECOND_MS };

/** How often the progress of the destinations, the age of blocks and the groups to compact are checked. */
const CHECK_EVERY_MS = MINUTE_MS;

/**
 * Blocks younger than this stay even if the archive is full: the next page of a scan repeats some of their readings,
 * and they must be found.
 */
const YOUNG_MS = 2 * MINUTE_MS;

/** How many pages are returned at once, and how much free space stays in the file for new data. */
const VACUUM = { pages: 32, keepFreeBytes: 16 * 1024 * 1024 };

/** How long a command that runs once may continue with maintenance at its end. */
const ONCE_MOST_MS = 30 * SECOND_MS;

/** The state of the maintenance between two steps. */
interface MaintenanceState {
  /** When the destinations and groups were checked last, by the monotonic clock. */
  checkedAtMs: number;
  /** The destinations whose acknowledgement counts. */
  readers: LogReaders;
  /** The skipped destinations that may still have a backlog to skip. */
  skipped: readonly number[];
  /** Whether some blocks may be old enough to be cleared. */
  ages: boolean;
  /** Whether blocks are being cleared because of the size. */
  shrinking: boolean;
  groups: CompactionGroup[];
}

/**
 * Maintains the archive until the signal aborts, which is no error.
 *
 * @throws an error of the state, if it is damaged
 */
export async function runMaintenance(parts: MaintenanceParts, signal: AbortSignal): Promise<void> {
  const state = newState();
  reportNoDestination(parts);
  try {
    await untilMayBegin(parts, signal);
    signal.throwIfAborted();
    await repeat(parts.clock, () => (runStep(parts, state) ? REST_MS.busy : REST_MS.idle), signal);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Waits until the maintenance may begin. Checks the disk space in the meantime, so that the status stays true. */
async function untilMayBegin({ mayBegin, space, clock }: MaintenanceParts, signal: AbortSignal): Promise<void> {
  const checkSpace = (): number => {
    space.check();
    return REST_MS.idle;
  };
  const checks = async (stop: AbortSignal): Promise<never> => await repeat(clock, checkSpace, stop);
  await runUntilFirst([mayBegin, checks], { signal, reason: 'finished' });
}

/** Does the pending maintenance at the end of a command. It stops after a while; the next run continues. */
export async function maintainOnce(parts: MaintenanceParts, signal: AbortSignal): Promise<void> {
  const state = newState();
  const beganMs = parts.clock.monoMs();
  while (!signal.aborted && runStep(parts, state) && parts.clock.monoMs() - beganMs < ONCE_MOST_MS) {
    await parts.clock.sleep(1);
  }
}

function newState(): MaintenanceState {
  const readers = { configured: [], active: [] };
  const never = Number.NEGATIVE_INFINITY;
  return { checkedAtMs: never, readers, skipped: [], ages: false, shrinking: false, groups: [] };
}

function reportNoDestination({ destinations, limits, observe }: MaintenanceParts): void {
  if (destinations().length > 0 || limits.maxBytes === null) return;
  observe({ type: 'archive-only', maxBytes: limits.maxBytes });
}

/**
 * Does one step.
 *
 * @returns whether there is more to do at once
 */
function runStep(parts: MaintenanceParts, state: MaintenanceState): boolean {
  const { clock, space } = parts;
  const beganMs = clock.monoMs();
  const hasMore = runUnlessFull(() => {
    space.check();
    if (beganMs - state.checkedAtMs >= CHECK_EVERY_MS) refreshState(parts, state);
    for (let piece = 0; piece < STEP.mostPieces && clock.monoMs() - beganMs < STEP.mostMs; piece += 1) {
      if (!doPiece(parts, state)) return false;
    }
    return true;
  }, space.noteRefused);
  return hasMore ?? false;
}

/**
 * Does the most urgent piece of work.
 *
 * @returns whether there was any
 */
function doPiece(parts: MaintenanceParts, state: MaintenanceState): boolean {
  return (
    skipBacklog(parts, state) ||
    clearForRoom(parts, state) ||
    clearOld(parts, state) ||
    compact(parts, state) ||
    vacuum(parts)
  );
}

function refreshState(parts: MaintenanceParts, state: MaintenanceState): void {
  const { maintenance, destinations, clock } = parts;
  const stalls = checkDestinations(parts);
  const configured = destinations().map(({ destinationId }) => destinationId);
  const active = configured.filter((id) => stalls.get(id)?.skippedTo === null);
  state.skipped = configured.filter((id) => !active.includes(id));
  // If all destinations are skipped, clearing would not help any other destination.
  state.readers = { configured, active: active.length === 0 ? configured : active };
  state.ages = true;
  state.groups = [...maintenance.compactionGroups(clock.nowMs())];
  state.checkedAtMs = clock.monoMs();
}

/** Updates the record of each destination, and skips those that have been stalled for too long. */
function checkDestinations(parts: MaintenanceParts): ReadonlyMap<number, Stall> {
  const { store, maintenance, destinations, limits, clock, observe } = parts;
  const nowMs = clock.nowMs();
  const stalls = new Map<number, Stall>();
  for (const { destinationId: id } of destinations()) {
    const { pendingLines } = store.backlog(id);
    const now = { position: maintenance.positionText(id), pendingLines, nowMs };
    stalls.set(id, stallAt(maintenance.stall(id), now));
  }
  for (const id of dueToSkip(stalls, limits.retentionMs)) {
    const stall = stalls.get(id);
    if (stall === undefined) continue;
    stalls.set(id, { ...stall, skippedTo: maintenance.endOfLog() });
    const destination = destinations().find(({ destinationId }) => destinationId === id)?.name ?? '';
    observe({ type: 'destination-skipped', destination, lines: store.backlog(id).pendingLines });
  }
  for (const [id, stall] of stalls) maintenance.saveStall(id, stall);
  return stalls;
}

/** Moves the unacknowledged points of a skipped destination to its missing points. */
function skipBacklog({ maintenance }: MaintenanceParts, state: MaintenanceState): boolean {
  const [id, ...others] = state.skipped;
  if (id === undefined) return false;
  if (maintenance.skipBacklog(id)) state.skipped = others;
  return true;
}

/** Clears the oldest acknowledged blocks, whatever their age, if the state is about to become too large. */
function clearForRoom(parts: MaintenanceParts, state: MaintenanceState): boolean {
  const { maintenance, limits } = parts;
  if (limits.maxBytes === null) return false;
  const { above, downTo } = clearingMarks(limits.maxBytes);
  const { usedBytes } = maintenance.size();
  state.shrinking = usedBytes > (state.shrinking ? downTo : above);
  if (state.shrinking) state.shrinking = clear(parts, state, parts.clock.nowMs() - YOUNG_MS);
  return state.shrinking;
}

function clearOld(parts: MaintenanceParts, state: MaintenanceState): boolean {
  if (state.ages) state.ages = clear(parts, state, parts.clock.nowMs() - parts.limits.retentionMs);
  return state.ages;
}

function clear(
  { maintenance, observe }: MaintenanceParts,
  { readers, shrinking }: MaintenanceState,
  beforeMs: number,
): boolean {
  const cleared = maintenance.clear({ ...readers, beforeMs });
  if (cleared.blocks === 0) return false;
  observe({ type: 'archive-cleared', ...cleared, why: shrinking ? 'size' : 'age' });
  return true;
}

function compact({ maintenance, clock }: MaintenanceParts, state: MaintenanceState): boolean {
  const group = state.groups.at(-1);
  if (group === undefined) return false;
  if (!maintenance.compact(group, state.readers, clock.nowMs())) state.groups.pop();
  return true;
}

/** Returns free pages to the file system: all beyond a reserve, or all of them if the disk is nearly full. */
function vacuum({ maintenance, space }: MaintenanceParts): boolean {
  const keep = space.answer().ok ? VACUUM.keepFreeBytes : 0;
  const { freeBytes } = maintenance.size();
  return freeBytes > keep && maintenance.vacuum(VACUUM.pages) < freeBytes;
}

/**
 * The longest time between two checks that counts as stalled time. A program that does not run cannot deliver, and a
 * jump of the clock is not time that has passed.
 */
const MOST_AT_ONCE_MS = HOUR_MS;

/** A destination that has been stalled for less than this counts as moving. */
const MOVING_MS = HOUR_MS;

/** The current position of a destination. */
interface Position {
  /** A text that changes with every acknowledged line. */
  readonly position: string;
  readonly pendingLines: number;
  readonly nowMs: EpochMs;
}

/**
 * Returns how long a destination has been stalled.
 *
 * @param before the result of the last check; `null` for the first one
 */
export function stallAt(before: Stall | null, { position, pendingLines, nowMs }: Position): Stall {
  // A destination that has never delivered does not count as moving.
  if (before === null) {
    return { position, stalledMs: pendingLines === 0 ? 0 : MOVING_MS, seenMs: nowMs, skippedTo: null };
  }
  if (before.position !== position) return { position, stalledMs: 0, seenMs: nowMs, skippedTo: null };
  const passed = Math.min(Math.max(nowMs - before.seenMs, 0), MOST_AT_ONCE_MS);
  return { ...before, stalledMs: pendingLines === 0 ? 0 : before.stalledMs + passed, seenMs: nowMs };
}

/**
 * The destinations to skip from now on: those that have acknowledged nothing for longer than `archive.retention` while
 * another one moves, so that one dead database does not block the others.
 */
export function dueToSkip(stalls: ReadonlyMap<number, Stall>, retentionMs: number): number[] {
  const isStuck = ({ skippedTo, stalledMs }: Stall): boolean => skippedTo === null && stalledMs > retentionMs;
  const anyMoves = [...stalls.values()].some(({ skippedTo, stalledMs }) => skippedTo === null && stalledMs < MOVING_MS);
  return anyMoves ? [...stalls].filter(([, stall]) => isStuck(stall)).map(([id]) => id) : [];
}
