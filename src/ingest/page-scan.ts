/**
 * A page scan closes the gaps in the coverage of one device, newest first, page by page.
 *
 * `gap-scan.ts` reads one gap; this file decides which gap is next, up to which limit, and when a task is done.
 *
 * Page scans of one device take turns: a scan of the daemon and one of a job may want the same range, which must be
 * requested only once. A scan waits for another scan of the same range, which may close its gaps. It never waits for a
 * less urgent scan: that one has to stop after its page, and continues later with what is left. Scans of ranges that do
 * not overlap run at the same time.
 */
import { waitOrAbort } from '../core/async.ts';
import { gapsIn } from '../core/coverage.ts';
import { type Interval, normalize, subtract } from '../core/intervals.ts';
import { REQUEST_LANES } from '../core/ports.ts';
import { ForgottenError, gracePeriodOf } from '../core/state/telemetry.ts';
import { type EpochNs, maxNs, minNs, msToNs } from '../core/time.ts';
import type { Peeking, SyncContext } from './context.ts';
import { nothingServed } from './empty-ranges.ts';
import { createLearntWindows, type FetchParts, forgetDoubtfulAge, peek, windowRules } from './fetch-page.ts';
import {
  addScans,
  isStopped,
  NOTHING_SCANNED,
  type RangeScan,
  type Scanning,
  type ScanResult,
  type ScanTask,
  scanGap,
} from './gap-scan.ts';
import { isResting, nameGap, restingRange } from './named-gaps.ts';
import { limitAfterFall } from './wanted-range.ts';
import { planEdge, servedFrom } from './window-limits.ts';

/** Closes the gaps of devices page by page, and peeks at their newest pages. */
export interface PageScanner extends Peeking {
  /**
   * Closes the gaps of a device in a range, newest first. Returns when they are closed or named, when the task has the
   * range that it needs, when it is paused, or when the device is gone or was removed in the meantime.
   *
   * @throws ApiFault for a fault that concerns more than one answer (unreachable, key, plan, scope).
   */
  scan(task: ScanTask, signal: AbortSignal): Promise<ScanResult>;
}

/** Opens the scanner of a sync. A stored request limit that has become doubtful is tested again from now on. */
export function openPageScanner(context: SyncContext): PageScanner {
  forgetDoubtfulAge(context);
  const scanning: Scanning = { context, windows: createLearntWindows(context), served: nothingServed() };
  return {
    scan: async (task, signal) => await scanRange(scanning, task, signal),
    peek: async (deviceId, signal) => await peek(scanning, deviceId, signal),
  };
}

async function scanRange(scanning: Scanning, task: ScanTask, signal: AbortSignal): Promise<ScanResult> {
  const { context } = scanning;
  const { deviceId } = task;
  const gracePeriodMs = gracePeriodNow(context, deviceId);
  const scan: RangeScan = { ...scanning, task, reopened: null, result: NOTHING_SCANNED };
  let last: Interval | null = null;
  let lowered = task;
  for (;;) {
    lowered = lowerLimit(lowered, limitNow(context, task, gracePeriodMs));
    const { reopened } = scan;
    const gap = takeNextGap(scanning, lowered) ?? (reopened && takeNextGap(scanning, { ...lowered, range: reopened }));
    if (gap === null || isStopped(scan)) return scan.result;
    // A scan that changes nothing would continue forever.
    if (last?.from === gap.from && last.to === gap.to) {
      nameGap(context, { deviceId, ...gap, reason: 'page_rejected' });
    } else if ((await unlessForgotten(scanGap(scan, { task: lowered, gap }, signal))) !== 'to its end') {
      return scan.result;
    }
    last = gap;
  }
}

/** Returns the result of the work; `null` if the device was removed in the meantime. */
async function unlessForgotten<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof ForgottenError) return null;
    throw error;
  }
}

/** The grace period of a device, in milliseconds. */
function gracePeriodNow({ store, settings }: SyncContext, deviceId: string): number {
  return gracePeriodOf(settings.gracePeriodMs, store.telemetry(deviceId).late);
}

/** The current limit of a task: lower if its grace period has grown or the server's clock has fallen back. */
function limitNow(context: SyncContext, { deviceId, limit }: ScanTask, gracePeriodMs: number): EpochNs {
  const grownMs = gracePeriodNow(context, deviceId) - gracePeriodMs;
  return maxNs(minNs(limit - msToNs(Math.max(0, grownMs)), limitAfterFall(context) ?? limit), 0n);
}

/**
 * The task with a lower limit. If a clock that has fallen back raises the limit again, the task does not follow it:
 * that would have no end.
 */
function lowerLimit(task: ScanTask, limit: EpochNs): ScanTask {
  return limit >= task.limit ? task : { ...task, limit, range: { ...task.range, to: minNs(task.range.to, limit) } };
}

/** Takes the newest gap of the task that is not resting. Names the part of it that the plan does not serve. */
function takeNextGap({ context, windows }: FetchParts, { deviceId, range, lane }: ScanTask): Interval | null {
  const { store, serverClock } = context;
  const open = gapsIn(range, store.telemetry(deviceId).covered);
  if (open.length === 0) return null;
  const nowMs = serverClock.nowMs();
  const rules = windowRules(windows);
  const hiddenTo = planEdge(rules);
  const resting = store.gaps(deviceId).filter((gap) => isResting(gap, lane, nowMs));
  const gap = subtract(open, normalize(resting.map((named) => restingRange(named, hiddenTo)))).at(-1);
  const oldest = servedFrom(rules);
  if (gap === undefined || oldest === null || gap.from >= oldest) return gap ?? null;
  nameGap(context, { deviceId, from: gap.from, to: minNs(oldest, gap.to), reason: 'beyond_plan' });
  return gap.to <= oldest ? null : { from: oldest, to: gap.to };
}

/** A running scan. The next scan of its device waits for `ended`. */
interface ScanTurn {
  readonly task: ScanTask;
  readonly ended: Promise<void>;
  /** Whether a more urgent scan is waiting. */
  isInTheWay: boolean;
}

/** The scans under way, by device. */
type ScanTurns = Map<string, Set<ScanTurn>>;

/** Returns a scanner whose scans of one device take turns. */
export function withTurns(scanner: PageScanner): PageScanner {
  const turns: ScanTurns = new Map();
  return {
    peek: scanner.peek,
    scan: async (task, signal) => {
      let result = NOTHING_SCANNED;
      for (;;) {
        const first = otherTurns(turns, task).find((other) => !isLessUrgent(other.task, task));
        if (first !== undefined) {
          await waitOrAbort(first.ended, signal);
          // Other scans may have come at the same moment. The first one that finds no other scan begins at once.
          continue;
        }
        if (task.isPaused?.() === true) return result;
        const { part, isInTheWay } = await scanInTurn(turns, scanner, task, signal);
        result = addScans(result, part);
        if (!isInTheWay || (task.until === 'first coverage' && result.extendsCoverage)) return result;
      }
    },
  };
}

function otherTurns(turns: ScanTurns, task: ScanTask): ScanTurn[] {
  return [...(turns.get(task.deviceId) ?? [])].filter((turn) => areOverlapping(turn.task, task));
}

/** Scans until the task is done or a more urgent scan is waiting. The turn has begun when this returns its promise. */
async function scanInTurn(
  turns: ScanTurns,
  scanner: PageScanner,
  task: ScanTask,
  signal: AbortSignal,
): Promise<{ part: ScanResult; isInTheWay: boolean }> {
  for (const other of otherTurns(turns, task)) other.isInTheWay = true;
  const own = Promise.withResolvers<void>();
  const turn: ScanTurn = { task, ended: own.promise, isInTheWay: false };
  enter(turns, turn);
  try {
    const isPaused = (): boolean => turn.isInTheWay || task.isPaused?.() === true;
    const part = await scanner.scan({ ...task, isPaused }, signal);
    return { part, isInTheWay: turn.isInTheWay };
  } finally {
    leave(turns, turn);
    own.resolve();
  }
}

function enter(turns: ScanTurns, turn: ScanTurn): void {
  const { deviceId } = turn.task;
  turns.set(deviceId, (turns.get(deviceId) ?? new Set()).add(turn));
}

function leave(turns: ScanTurns, turn: ScanTurn): void {
  const { deviceId } = turn.task;
  const left = turns.get(deviceId);
  left?.delete(turn);
  if (left?.size === 0) turns.delete(deviceId);
}

function areOverlapping({ range: a }: ScanTask, { range: b }: ScanTask): boolean {
  return a.from < b.to && b.from < a.to;
}

function isLessUrgent(task: ScanTask, than: ScanTask): boolean {
  return REQUEST_LANES.indexOf(task.lane) > REQUEST_LANES.indexOf(than.lane);
}
