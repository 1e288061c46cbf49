/**
 * Pulls that take turns: the daemon's own and those of a job may come to the same stretch of the same device, which is
 * to be asked for once.
 *
 * Promises: a pull waits for another one of the same stretch, which may close its holes, but never for one that is less
 * urgent: that one is asked to stop after its page, and goes on with what is left. Stretches that do not overlap are
 * pulled side by side.
 */
import { orAborted } from '../core/async.ts';
import { REQUEST_LANES } from '../core/ports.ts';
import type { PullTask } from './context.ts';
import type { Puller } from './pull.ts';

/** A pull under way. */
interface Turn {
  readonly task: PullTask;
  readonly ended: Promise<void>;
  /** Whether somebody more urgent has come. */
  isInTheWay: boolean;
}

/** The same puller, whose pulls take turns. */
export function takingTurns(puller: Puller): Puller {
  const turns = new Map<string, Set<Turn>>();
  const others = (task: PullTask): Turn[] =>
    [...(turns.get(task.deviceId) ?? [])].filter((turn) => overlap(turn.task, task));
  return {
    peek: puller.peek,
    pull: async (task, signal) => {
      for (;;) {
        const first = others(task).find((other) => !isLessUrgent(other.task, task));
        if (first !== undefined) {
          await orAborted(first.ended, signal);
          // Others may have come in the same moment: whoever looks and finds nobody begins at once.
          continue;
        }
        if (task.isPaused()) return;
        for (const other of others(task)) other.isInTheWay = true;
        const own = Promise.withResolvers<void>();
        const turn: Turn = { task, ended: own.promise, isInTheWay: false };
        enter(turns, turn);
        try {
          await puller.pull({ ...task, isPaused: () => turn.isInTheWay || task.isPaused() }, signal);
        } finally {
          leave(turns, turn);
          own.resolve();
        }
        if (!turn.isInTheWay) return;
      }
    },
  };
}

function enter(turns: Map<string, Set<Turn>>, turn: Turn): void {
  const { deviceId } = turn.task;
  turns.set(deviceId, (turns.get(deviceId) ?? new Set()).add(turn));
}

function leave(turns: Map<string, Set<Turn>>, turn: Turn): void {
  const { deviceId } = turn.task;
  const left = turns.get(deviceId);
  left?.delete(turn);
  if (left?.size === 0) turns.delete(deviceId);
}

function overlap({ span: a }: PullTask, { span: b }: PullTask): boolean {
  return a.from < b.to && b.from < a.to;
}

function isLessUrgent(task: PullTask, than: PullTask): boolean {
  return REQUEST_LANES.indexOf(task.lane) > REQUEST_LANES.indexOf(than.lane);
}
