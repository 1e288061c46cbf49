/**
 * Makes page scans of one device take turns. A scan of the daemon and one of a job may want the same range, which must
 * be requested only once.
 *
 * A scan waits for another scan of the same range, which may close its gaps. It never waits for a less urgent scan:
 * that one has to stop after its page, and continues later with what is left. Scans of ranges that do not overlap run
 * side by side.
 */
import { orAborted } from '../core/async.ts';
import { REQUEST_LANES } from '../core/ports.ts';
import { addScans, NOTHING_SCANNED, type ScanResult, type ScanTask } from './gap-scan.ts';
import type { PageScanner } from './page-scan.ts';

/** A scan under way. */
interface Turn {
  readonly task: ScanTask;
  readonly ended: Promise<void>;
  /** Whether a more urgent scan has come. */
  isInTheWay: boolean;
}

/** The scans under way, by device. */
type Turns = Map<string, Set<Turn>>;

/** Returns a scanner whose scans of one device take turns. */
export function takingTurns(scanner: PageScanner): PageScanner {
  const turns: Turns = new Map();
  return {
    peek: scanner.peek,
    scan: async (task, signal) => {
      let result = NOTHING_SCANNED;
      for (;;) {
        const first = othersOf(turns, task).find((other) => !isLessUrgent(other.task, task));
        if (first !== undefined) {
          await orAborted(first.ended, signal);
          // Others may have come in the same moment: the first that finds no other scan begins at once.
          continue;
        }
        if (task.isPaused?.() === true) return result;
        const { part, isInTheWay } = await takeTurn(turns, scanner, task, signal);
        result = addScans(result, part);
        if (!isInTheWay || (task.until === 'first coverage' && result.extendsCoverage)) return result;
      }
    },
  };
}

function othersOf(turns: Turns, task: ScanTask): Turn[] {
  return [...(turns.get(task.deviceId) ?? [])].filter((turn) => overlap(turn.task, task));
}

/** Scans until it is done or a more urgent scan waits for it; its turn has begun when this returns its promise. */
async function takeTurn(
  turns: Turns,
  scanner: PageScanner,
  task: ScanTask,
  signal: AbortSignal,
): Promise<{ part: ScanResult; isInTheWay: boolean }> {
  for (const other of othersOf(turns, task)) other.isInTheWay = true;
  const own = Promise.withResolvers<void>();
  const turn: Turn = { task, ended: own.promise, isInTheWay: false };
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

function enter(turns: Turns, turn: Turn): void {
  const { deviceId } = turn.task;
  turns.set(deviceId, (turns.get(deviceId) ?? new Set()).add(turn));
}

function leave(turns: Turns, turn: Turn): void {
  const { deviceId } = turn.task;
  const left = turns.get(deviceId);
  left?.delete(turn);
  if (left?.size === 0) turns.delete(deviceId);
}

function overlap({ range: a }: ScanTask, { range: b }: ScanTask): boolean {
  return a.from < b.to && b.from < a.to;
}

function isLessUrgent(task: ScanTask, than: ScanTask): boolean {
  return REQUEST_LANES.indexOf(task.lane) > REQUEST_LANES.indexOf(than.lane);
}
