/**
 * A recheck (`--backfill --recheck`): reads covered ranges again, to find readings that the API has served too late or
 * has left out.
 *
 * Promises: new readings are committed once and correct the hours; nothing else changes. No coverage is withdrawn,
 * except by the rule for the first reading of a device. Nothing counts as late, because no request was made for it in
 * between and its delay is unknown. A page counts as read after it was committed, so a kill costs at most the page in
 * flight.
 */
import { coveredIntervals } from '../core/coverage.ts';
import { type Interval, type Intervals, intersect, normalize, subtract, union } from '../core/intervals.ts';
import type { Store } from '../core/state/state.ts';
import { DAY_MS } from '../core/time.ts';
import { commitJudged } from './commit.ts';
import { instantsIn } from './commit-rules.ts';
import type { SyncContext } from './context.ts';
import { createLearntWindows, windowRules } from './fetch-page.ts';
import { beginReread, type RangePage, type RereadScan, readDown } from './reread.ts';
import { planEdge } from './window-limits.ts';

/** How long the progress of a recheck that was stopped is kept. */
const RECHECK_KEPT_MS = 7 * DAY_MS;

/** A range that a recheck does not read, and why. */
interface SkippedRange extends Interval {
  readonly deviceId: string;
  /** `cleared`: the archive has no lines of it any more; `beyond_plan`: the plan may not show it any more. */
  readonly reason: 'cleared' | 'beyond_plan';
}

/** The covered ranges that a goal still has to read again, and the function that reads them. */
export interface Recheck {
  /** The ranges of a device that are still to be read again, ascending. */
  unread(deviceId: string): Intervals;
  /**
   * Reads the newest page of an unread range.
   *
   * @returns whether its answers could be used.
   * @throws ApiFault
   */
  readPage(deviceId: string, range: Interval, signal: AbortSignal): Promise<boolean>;
  /** Removes the stored progress: the recheck is complete. */
  end(): void;
  /** Why the last request about a device failed; `null` if it succeeded, or there was none. */
  failure(deviceId: string): 'unreachable' | 'page_rejected' | null;
  /** How many covered ranges this run has read again completely, and how many new readings they had. */
  counts(): { readonly ranges: number; readonly newReadings: number };
  readonly skipped: readonly SkippedRange[];
}

/**
 * Begins a recheck of ranges of devices, or continues one that was stopped less than a week ago without reading its
 * finished ranges again.
 *
 * @param requested the requested range of each device.
 */
export function beginRecheck(context: SyncContext, requested: ReadonlyMap<string, Interval>): Recheck {
  const { store, serverClock } = context;
  const progress = new Map<string, Intervals>();
  const skipped: SkippedRange[] = [];
  const save = (deviceId: string, range: Interval, unread: Intervals): void => {
    progress.set(deviceId, unread);
    store.saveRecheck(deviceId, { requested: range, unread, atMs: serverClock.nowMs() });
  };
  for (const [deviceId, range] of requested) {
    const { left, cleared, beyondPlan } = rangesToRecheck(context, deviceId, range);
    save(deviceId, range, left);
    skipped.push(...cleared.map((each) => ({ ...each, deviceId, reason: 'cleared' as const })));
    skipped.push(...beyondPlan.map((each) => ({ ...each, deviceId, reason: 'beyond_plan' as const })));
  }
  const begun = [...progress].flatMap(([deviceId, ranges]) => ranges.map((range) => ({ deviceId, range })));
  const failures = new Map<string, 'unreachable' | 'page_rejected'>();
  let newReadings = 0;
  const unread = (deviceId: string): Intervals => progress.get(deviceId) ?? [];
  return {
    unread,
    readPage: async (deviceId, range, signal) => {
      failures.set(deviceId, 'unreachable');
      const page = await rereadPage(context, { deviceId, range }, signal);
      newReadings += page.newReadings;
      failures.set(deviceId, 'page_rejected');
      const whole = requested.get(deviceId);
      if (whole === undefined || page.read === null) return false;
      failures.delete(deviceId);
      // A page that shows the first readings of a device withdraws coverage. The resulting gaps read that range.
      const covered = coveredIntervals(store.telemetry(deviceId).covered);
      save(deviceId, whole, intersect(subtract(unread(deviceId), [page.read]), covered));
      return true;
    },
    failure: (deviceId) => failures.get(deviceId) ?? null,
    end: () => {
      for (const deviceId of progress.keys()) store.saveRecheck(deviceId, null);
    },
    counts: () => ({
      ranges: begun.filter(({ deviceId, range }) => intersect(unread(deviceId), [range]).length === 0).length,
      newReadings,
    }),
    skipped,
  };
}

/** The ranges of a device that a recheck reads, and the covered ranges that it skips. */
function rangesToRecheck(
  context: SyncContext,
  deviceId: string,
  range: Interval,
): { readonly left: Intervals; readonly cleared: Intervals; readonly beyondPlan: Intervals } {
  const { store, serverClock } = context;
  const known = store.recheck(deviceId);
  const isKept = known !== null && Math.abs(serverClock.nowMs() - known.atMs) < RECHECK_KEPT_MS;
  const covered = intersect(coveredIntervals(store.telemetry(deviceId).covered), normalize([range]));
  const begun = isKept ? union(known.unread, subtract(covered, [known.requested])) : covered;
  const open = intersect(begun, covered);
  const edge = planEdge(windowRules(createLearntWindows(context))) ?? 0n;
  const beyondPlan = intersect(open, normalize([{ from: 0n, to: edge }]));
  const shown = subtract(open, beyondPlan);
  const cleared = intersect(shown, store.cleared(deviceId, range.from, range.to));
  return { left: subtract(shown, cleared), cleared, beyondPlan };
}

/** The result of a page of a recheck. */
interface RereadPage {
  /** The part of the range, down from its end, that the page has read again; `null` if its answers were unusable. */
  readonly read: Interval | null;
  readonly newReadings: number;
}

/**
 * Reads the newest page of a covered range and commits its new readings. An empty answer about a range with archived
 * readings is a failure.
 *
 * @throws ApiFault if the fault is not about this device.
 */
async function rereadPage(
  context: SyncContext,
  { deviceId, range }: Pick<RereadScan, 'deviceId' | 'range'>,
  signal: AbortSignal,
): Promise<RereadPage> {
  let served = 0;
  let newReadings = 0;
  const take = (page: RangePage): void => {
    served += page.readings.length;
    newReadings += commitJudged(context, {
      deviceId,
      lane: 'backfill',
      covers: null,
      isRecheck: true,
      ...page,
    }).newReadings;
  };
  const scan = beginReread(context, { deviceId, range, take, lane: 'backfill' });
  const left = await readDown(scan, (next) => next.cursor === null && next.gap.to < range.to, signal);
  if (left === 'given up') return { read: null, newReadings };
  const read = { from: left?.gap.to ?? range.from, to: range.to };
  const isRejected = served === 0 && hasStored(context.store, deviceId, read);
  return { read: isRejected ? null : read, newReadings };
}

function hasStored(store: Pick<Store, 'stored'>, deviceId: string, range: Interval): boolean {
  return instantsIn(store.stored(deviceId, range.from, range.to).lines, range).length > 0;
}
