/**
 * The planner at work against the bench's service, and the two that it is held against (issue 4, "Figures").
 */
import { createPlanner, type Decision, type Planner, type PlannerFigures } from '../../../src/core/planner.ts';
import { learnFromPage, UNKNOWN_RATE } from '../../../src/core/report-rate.ts';
import { createSlotHeap } from '../../../src/core/slot-heap.ts';
import type { Device } from './fleet.ts';
import { countAge, type Held, hold, takePage } from './holdings.ts';
import { createPace, SHARE } from './pace.ts';
import { type RunResult, resultOf } from './result.ts';
import type { Service, ServicePlan } from './service.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const PAGE = 200;

export interface RunOptions {
  readonly fleet: readonly Device[];
  readonly service: Service;
  readonly plan: ServicePlan;
  readonly untilMs: number;
  readonly seed: number;
}

/** When a request may go and how the service answered: the paced instants at which the oracle sends as well. */
export interface PlannerRun extends RunResult {
  readonly figures: PlannerFigures;
  readonly instantsMs: Float64Array;
  readonly byLane: Readonly<Record<string, number>>;
  readonly decisions: number;
  readonly decisionUs: number;
  readonly worstDecisionUs: number;
  readonly stepsPerDecision: number;
}

const SETTINGS = {
  freshnessMs: MINUTE_MS,
  devicesMs: 5 * MINUTE_MS,
  alertsMs: 2 * MINUTE_MS,
  accountMs: HOUR_MS,
  sweepMs: 6 * HOUR_MS,
  pageSize: PAGE,
  share: SHARE,
};

/** The planner through the real pace. All is held when it begins. */
export function runPlanner({ fleet, service, plan, untilMs, seed }: RunOptions): PlannerRun {
  const pace = createPace(service, plan, seed);
  const planner = createPlanner(SETTINGS);
  const holdings = new Map(fleet.map((device) => [device.deviceId, hold(device, 0, device.newestAt(0))]));
  for (const device of fleet) tellHeld(planner, device);
  const byLane: Record<string, number> = {};
  const instants: number[] = [];
  const timing = { decisions: 0, totalMs: 0, worstMs: 0 };
  let pages = 0;
  let listFrom = 0;

  const answer = (decision: Decision, nowMs: number): void => {
    if (decision.kind === 'tail') {
      const held = holdings.get(decision.deviceId);
      if (held === undefined) throw new Error(`${decision.deviceId} is no device`);
      pages += 1;
      planner.tailLanded(decision, takePage(held, nowMs, { pageSize: PAGE, givesUp: decision.newestOnly }), nowMs);
    } else if (decision.kind === 'devices') {
      const page = fleet.slice(listFrom, listFrom + PAGE);
      listFrom = listFrom + PAGE >= fleet.length ? 0 : listFrom + PAGE;
      const listed = page.map((device) => ({ deviceId: device.deviceId, seenMs: device.seenAt(nowMs) }));
      planner.listed(listed, { isLast: listFrom === 0 }, nowMs);
    } else if (decision.kind !== 'history') planner.done(decision.kind, nowMs);
  };

  let nowMs = 0;
  for (;;) {
    nowMs = pace.freeAtMs(nowMs);
    if (nowMs >= untilMs) break;
    const began = performance.now();
    const decision = planner.next(nowMs);
    const tookMs = performance.now() - began;
    timing.decisions += 1;
    timing.totalMs += tookMs;
    timing.worstMs = Math.max(timing.worstMs, tookMs);
    if (decision.kind === 'rest') {
      nowMs = Math.min(untilMs, Math.max(nowMs + 1, Math.ceil(decision.untilMs)));
      continue;
    }
    planner.sent(decision, nowMs);
    instants.push(nowMs);
    byLane[decision.lane] = (byLane[decision.lane] ?? 0) + 1;
    const { status } = pace.send(nowMs);
    planner.setDay(pace.allowance.day(nowMs), nowMs);
    if (status === 429) planner.failed(decision);
    else answer(decision, nowMs);
  }
  const counts = { requests: pace.sent(), pages, refused: pace.refused() };
  return {
    ...resultOf([...holdings.values()], counts, untilMs),
    figures: planner.figures(),
    instantsMs: Float64Array.from(instants),
    byLane,
    decisions: timing.decisions,
    decisionUs: (timing.totalMs / timing.decisions) * 1000,
    worstDecisionUs: timing.worstMs * 1000,
    stepsPerDecision: planner.steps() / timing.decisions,
  };
}

function tellHeld(planner: Planner, device: Device): void {
  const newest = device.newestAt(0);
  const instants = Array.from({ length: 20 }, (_, back) => device.timeOf(newest - back));
  planner.held(device.deviceId, {
    newestMs: instants[0] ?? null,
    askedMs: 0,
    rate: learnFromPage(UNKNOWN_RATE, instants),
  });
}

/**
 * A good plain cron loop: every minute every device, full pages, the wait of a 429 honoured. Four at once over an
 * answer time of 200 ms is one every 50 ms.
 */
export function runCron({ fleet, service, untilMs }: RunOptions): RunResult {
  const holdings = fleet.map((device) => hold(device, 0, device.newestAt(0)));
  const counts = { requests: 0, pages: 0, refused: 0 };
  let nowMs = 0;
  for (let tickMs = 0; tickMs < untilMs; tickMs = nextTick(nowMs)) {
    nowMs = Math.max(nowMs, tickMs);
    for (const held of holdings) {
      // A page that does not reach down to what is held is followed by the next one.
      for (let isMore = true; isMore && nowMs < untilMs; ) {
        const verdict = service.request(nowMs);
        counts.requests += 1;
        if (verdict.waitMs !== null) {
          counts.refused += 1;
          nowMs += verdict.waitMs;
          continue;
        }
        counts.pages += 1;
        isMore = takePage(held, nowMs, { pageSize: PAGE, givesUp: false }).holeFromMs !== null;
        nowMs += 50;
      }
    }
  }
  return resultOf(holdings, counts, untilMs);
}

function nextTick(nowMs: number): number {
  return (Math.floor(nowMs / MINUTE_MS) + 1) * MINUTE_MS;
}

export interface OracleOptions extends RunOptions {
  /** When it may send. */
  readonly instantsMs: Float64Array;
  /** How old a reading has to be before it is fetched: 0, or the target that the schedules set. */
  readonly freshnessMs: number;
  /** Whether a page that is full goes before an older reading, without which what fills fast is never fetched. */
  readonly fullFirst: boolean;
}

/**
 * The bound: it knows all readings, and at each paced instant asks the device whose answer lowers the summed age most.
 * Where more than a page is missing it takes the oldest page, which lowers the age most.
 */
export function runOracle({ fleet, untilMs, instantsMs, freshnessMs, fullFirst }: OracleOptions): RunResult {
  const holdings = fleet.map((device) => hold(device, 0, device.newestAt(0)));
  /** By their oldest reading, those that one page makes whole; by the age that one page saves, those of more. */
  const heaps = { whole: createSlotHeap(), filling: createSlotHeap(), over: createSlotHeap() };
  const place = (slot: number, held: Held): void => {
    for (const heap of Object.values(heaps)) heap.drop(slot);
    const oldestMs = held.device.timeOf(held.low + 1);
    if (!Number.isFinite(oldestMs)) return;
    heaps.whole.put(slot, oldestMs);
    heaps.filling.put(slot, held.device.timeOf(held.low + PAGE + (fullFirst ? 0 : 1)));
  };
  holdings.forEach((held, slot) => {
    place(slot, held);
  });
  let pages = 0;
  for (const nowMs of instantsMs) {
    while (heaps.filling.headKey() <= nowMs) {
      const slot = heaps.filling.head();
      heaps.filling.drop(slot);
      heaps.whole.drop(slot);
      const held = holdings[slot];
      if (held === undefined) continue;
      const saves = held.device.timeOf(held.low + PAGE + 1) - held.device.timeOf(held.low + 1);
      heaps.over.put(slot, fullFirst ? held.device.timeOf(held.low + 1) : -saves);
    }
    const slot = bestOf(heaps, { nowMs, freshnessMs, fullFirst });
    const held = holdings[slot];
    if (held === undefined) continue;
    countAge(held, nowMs);
    const top = Math.min(held.device.newestAt(nowMs), held.low + PAGE);
    held.carried += top - held.low;
    held.low = top;
    held.high = top;
    held.holeTo = top;
    pages += 1;
    place(slot, held);
  }
  return resultOf(holdings, { requests: instantsMs.length, pages, refused: 0 }, untilMs);
}

function bestOf(
  { whole, over }: Record<'whole' | 'over', ReturnType<typeof createSlotHeap>>,
  { nowMs, freshnessMs, fullFirst }: { nowMs: number; freshnessMs: number; fullFirst: boolean },
): number {
  const savesWhole = nowMs - whole.headKey();
  const savesOver = fullFirst ? (over.size() > 0 ? Number.POSITIVE_INFINITY : 0) : -over.headKey();
  if (over.size() > 0 && savesOver >= savesWhole) return over.head();
  return savesWhole > Math.max(0, freshnessMs) ? whole.head() : -1;
}

