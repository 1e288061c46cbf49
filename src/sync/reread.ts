/**
 * Yesterday, read again: readings that came so late that no live request has seen them (design 2.1).
 *
 * It claims nothing and lands what is new, which counts as late. Who calls it decides when there is allowance to spare.
 * Stopping half-way is free: what has landed stays, and the day is due until it was read to its end.
 */
import { coveredIntervals } from '../core/coverage.ts';
import { type Interval, intersect } from '../core/intervals.ts';
import { judgePage } from '../core/judge-page.ts';
import type { Store } from '../core/state.ts';
import { DAY_MS, DAY_NS, type EpochMs, HOUR_MS } from '../core/time.ts';
import { type Ask, askFor, nextAsk } from '../core/walk.ts';
import type { PullTask, SyncContext } from './context.ts';
import { landPage } from './land.ts';
import { TRIES } from './odd-answers.ts';
import { askPage } from './page.ts';
import { fromFirstPage } from './walking.ts';
import { createWindowRules, type WindowRules } from './window-rules.ts';

/** How long after midnight the day before is read again at the earliest: what comes within this is awaited. */
const AFTER_MIDNIGHT_MS = HOUR_MS;

/** The day (since 1970) that is read again now, once for each device; `null` in the first hour of a day. */
export function rereadableDay(nowMs: EpochMs): number | null {
  return nowMs % DAY_MS < AFTER_MIDNIGHT_MS ? null : Math.floor(nowMs / DAY_MS) - 1;
}

/**
 * The devices of which yesterday is worth another look: those that are there, hold something of it and were not read
 * again since. Where lines of it are cleared away already, what is new could not be told: it is left alone. Whether a
 * device is left out by the configuration is for the caller to know.
 *
 * @param nowMs the server's time.
 */
export function rereadDue(
  store: Pick<Store, 'devices' | 'rereadDays' | 'telemetry' | 'cleared'>,
  nowMs: EpochMs,
): readonly string[] {
  const day = rereadableDay(nowMs);
  if (day === null) return [];
  const done = store.rereadDays();
  return store
    .devices()
    .filter(({ record, goneSinceMs }) => goneSinceMs === null && (done.get(record.deviceId) ?? -1) < day)
    .map(({ record }) => record.deviceId)
    .filter((deviceId) => {
      const held = heldOf(store, deviceId, day);
      return held !== null && store.cleared(deviceId, held.from, held.to).length === 0;
    });
}

/** From the first to the last instant of the day that is held; `null` where nothing of it is. */
function heldOf(store: Pick<Store, 'telemetry'>, deviceId: string, day: number): Interval | null {
  const whole = { from: BigInt(day) * DAY_NS, to: BigInt(day + 1) * DAY_NS };
  const held = intersect(coveredIntervals(store.telemetry(deviceId).spans), [whole]);
  const [first, last] = [held[0], held.at(-1)];
  return first === undefined || last === undefined ? null : { from: first.from, to: last.to };
}

interface Reread {
  readonly context: SyncContext;
  readonly rules: WindowRules;
  readonly task: PullTask;
  /** What is read again. */
  readonly hole: Interval;
  odd: number;
  empties: number;
}

/**
 * Reads what is held of a day of a device again.
 *
 * @returns whether it was read to its end; where not (odd answers, a device that is gone) it stays due.
 * @throws ApiFault where the fault is not about this device.
 */
export async function rereadDay(
  context: SyncContext,
  { deviceId, day }: { readonly deviceId: string; readonly day: number },
  signal: AbortSignal,
): Promise<boolean> {
  const hole = heldOf(context.store, deviceId, day);
  if (hole !== null) {
    const task: PullTask = { deviceId, span: hole, limit: hole.to, lane: 'sweep', isPaused: () => signal.aborted };
    const reread: Reread = { context, rules: createWindowRules(context), task, hole, odd: 0, empties: 0 };
    let ask: Ask | null | 'given up' = askBelow(reread, hole.to);
    while (ask !== null) {
      ask = await step(reread, ask, signal);
      if (ask === 'given up') return false;
    }
  }
  context.store.keepReread(deviceId, day);
  return true;
}

/** The question for what is left below `to`. Nothing is claimed by its answers, so that they need no anchors. */
function askBelow({ task, hole, rules }: Reread, to: bigint): Ask | null {
  if (to <= hole.from) return null;
  const { deviceId } = task;
  return askFor({ deviceId, hole: { from: hole.from, to }, near: null, far: null, live: false }, rules.limits());
}

/** Asks and lands one page. @returns the next question; `null` at the end of the day. */
async function step(reread: Reread, ask: Ask, signal: AbortSignal): Promise<Ask | null | 'given up'> {
  const { context, rules, task, hole } = reread;
  signal.throwIfAborted();
  const answer = await askPage(reread, ask, signal);
  if (answer.kind === 'changed') return askBelow(reread, ask.hole.to);
  if (answer.kind === 'too-old') return null;
  if (answer.kind !== 'page') return answer.kind === 'odd' ? again(reread, fromFirstPage(ask)) : 'given up';
  const page = answer.reply.value;
  const known = { visibleFromNs: null, emptyBefore: reread.empties, anchorWaived: true };
  const judged = judgePage(ask, page, known);
  const { readings } = judged;
  landPage(context, { deviceId: task.deviceId, lane: task.lane, reply: answer.reply, readings, proven: null });
  if (readings.length === 0) reread.empties += 1;
  if (judged.next === 'again') return again(reread, ask);
  const isHollow = judged.next === 'cursor' && readings.length === 0;
  if (isHollow && reread.empties >= TRIES) return 'given up';
  if (!isHollow) Object.assign(reread, { odd: 0, empties: 0 });
  const next = nextAsk(ask, judged, { page, hole, far: null, limits: rules.limits() });
  // A window of the plan may be narrower than a day.
  return next ?? askBelow(reread, ask.hole.from);
}

function again(reread: Reread, ask: Ask): Ask | 'given up' {
  reread.odd += 1;
  return reread.odd >= TRIES ? 'given up' : ask;
}
