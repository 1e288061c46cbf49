/**
 * The planner: which request is worth most now (design 2.4, issue 4).
 *
 * It is told what happens (listings, pages, refusals, devices that come and go) and asked for the next request; it has
 * no clock, no input and no output, and what it has forgotten costs requests, never readings: coverage says what is held.
 *
 * The order: what a floor owes a lane; a listing that is worth its requests; then live work, alerts and the account by
 * how far each is behind its schedule, so that where the allowance cannot carry the schedules, all are stretched evenly;
 * then, with what the day has to spare, first history, backfill and sweeps.
 */
import { createDaySpread, type DayFigures } from './day-spread.ts';
import { staleLimitMs } from './demand.ts';
import { createFloorBooks, type FloorLane, NARROW_FLOORS, USUAL_FLOORS } from './planner-floors.ts';
import { createHistoryQueue, type OpenHistory, type Reach } from './planner-history.ts';
import { createSurprises, listEveryMs } from './planner-listing.ts';
import type { TailAnswer } from './planner-tail.ts';
import { createTails, type HeldTail, type TailPick } from './planner-tails.ts';

/** What is asked for by the configuration and the plan. */
export interface PlannerSettings {
  /** The distance of two turns of `sync.telemetry`, `.devices`, `.alerts`, `.account`, in ms. */
  readonly freshnessMs: number;
  readonly devicesMs: number;
  readonly alertsMs: number;
  readonly accountMs: number;
  readonly sweepMs: number;
  /** Readings to a page. */
  readonly pageSize: number;
  /** `api.share`. */
  readonly share: number;
}

/** A request to make. */
export type Decision =
  | { readonly kind: 'tail'; readonly lane: 'live' | 'sweep'; readonly deviceId: string; readonly newestOnly: boolean }
  | {
      readonly kind: 'history';
      readonly lane: 'first-history' | 'backfill';
      readonly deviceId: string;
      readonly reach: Reach;
    }
  /** The next page of a listing of the devices, its first one included. */
  | { readonly kind: 'devices'; readonly lane: 'inventory' }
  | { readonly kind: 'account'; readonly lane: 'inventory' }
  | { readonly kind: 'alerts'; readonly lane: 'alerts' };

/** Nothing before that time, unless something happens; `day`: the day's budget is spread, `idle`: nothing is due. */
export interface Rest {
  readonly kind: 'rest';
  readonly untilMs: number;
  readonly reason: 'day' | 'idle';
}

export interface PlannerFigures {
  /** Whether not even the readings fit, so that only the newest page of each device is kept. */
  readonly isOvercommitted: boolean;
  /** At which age devices were asked lately. */
  readonly liveAgeMs: number;
  readonly listEveryMs: number;
  readonly droppedHints: number;
  /** Live requests, sweeps apart, and those of them that brought nothing new. */
  readonly liveAsked: number;
  readonly liveEmpty: number;
  readonly openHistoryMs: OpenHistory;
  readonly devices: number;
}

export interface Planner {
  /** The request that is worth most. Changes nothing that counts: asking twice gives the same. */
  next(nowMs: number): Decision | Rest;
  /** It has been booked. Each one comes back by `tailLanded`, `historyLanded`, `listed`, `done` or `failed`. */
  sent(decision: Decision, nowMs: number): void;
  tailLanded(decision: Extract<Decision, { kind: 'tail' }>, answer: TailAnswer, nowMs: number): void;
  historyLanded(decision: Extract<Decision, { kind: 'history' }>, open: OpenHistory): void;
  /** A page of the listing. `seenMs`: `last_seen_at`. */
  listed(
    devices: readonly { deviceId: string; seenMs: number | null }[],
    page: { isLast: boolean },
    nowMs: number,
  ): void;
  /** The alerts or the account were read to their end; the alerts may take several requests. */
  done(kind: 'alerts' | 'account', nowMs: number): void;
  /** It was refused or not answered: it stands as before. */
  failed(decision: Decision): void;
  gone(deviceId: string): void;
  /** What the state holds of a device: at the start, and where something else than the planner has asked. */
  held(deviceId: string, held: HeldTail): void;
  open(lane: 'first-history' | 'backfill', deviceId: string, open: OpenHistory): void;
  /** The day's window as it stands: after each answer will do. */
  setDay(day: DayFigures, nowMs: number): void;
  figures(): PlannerFigures;
  /** Steps in its heaps so far. */
  steps(): number;
}

/** How much the readings may come to of what the day carries before only the newest pages are kept; and to come back. */
const OVERCOMMITTED = 0.97;
const CARRIED_AGAIN = 0.9;
/** How full a page is at best, as pages are asked for before they run over. */
const FULL_PAGE = 0.94;
/** Where what runs over is lost in any case, a page is waited for until it is full for certain. */
const OVERFULL_PAGE = 1.03;
/** The age at which devices are asked moves by this part with each. */
const LEARN_AGE = 0.02;
/** How often the limit of staleness is computed anew, in listings or live requests. */
const RENEW_MS = 3_600_000;

/** A planner that knows no device. */
export function createPlanner(settings: PlannerSettings): Planner {
  const { freshnessMs, sweepMs, pageSize } = settings;
  const rules = { freshnessMs, sweepMs, pageSize, fill: FULL_PAGE, staleMs: Number.POSITIVE_INFINITY };
  const tails = createTails(rules);
  const histories = { 'first-history': createHistoryQueue(), backfill: createHistoryQueue() };
  const floors = createFloorBooks();
  const spread = createDaySpread(settings.share);
  const surprises = createSurprises();
  const readMs = {
    alerts: Number.NEGATIVE_INFINITY,
    account: Number.NEGATIVE_INFINITY,
    devices: Number.NEGATIVE_INFINITY,
  };
  const underWay = { alerts: false, account: false, devices: false };
  let isListing = false;
  let isOvercommitted = false;
  let renewedMs = Number.NEGATIVE_INFINITY;
  let liveAgeMs = freshnessMs;
  let counts = { liveAsked: 0, liveEmpty: 0 };

  const isDue = (kind: 'alerts' | 'account', nowMs: number): boolean =>
    !underWay[kind] && readMs[kind] + settings[`${kind}Ms`] <= nowMs;
  const everyMs = (): number =>
    listEveryMs({
      devices: tails.size(),
      ageMs: liveAgeMs > 2 * freshnessMs ? liveAgeMs : 0,
      surprisesPerMs: surprises.perMs(tails.size()),
      leastMs: freshnessMs,
    });
  const isListingDue = (everyMs: number, nowMs: number): boolean =>
    !underWay.devices && (isListing || readMs.devices + everyMs <= nowMs);
  const workOf =
    (nowMs: number) =>
    (lane: FloorLane): boolean => {
      if (lane === 'alerts') return isDue('alerts', nowMs);
      if (lane === 'inventory')
        return isListingDue(Math.min(everyMs(), settings.devicesMs), nowMs) || isDue('account', nowMs);
      if (lane === 'sweep') return tails.sweep(nowMs) !== null;
      return histories[lane].next() !== null;
    };
  const decide = (lane: FloorLane, nowMs: number): Decision | null => {
    if (lane === 'alerts') return { kind: 'alerts', lane };
    if (lane === 'inventory') return isDue('account', nowMs) ? { kind: 'account', lane } : { kind: 'devices', lane };
    if (lane === 'sweep') {
      const deviceId = tails.sweep(nowMs);
      return deviceId === null ? null : { kind: 'tail', lane, deviceId, newestOnly: isOvercommitted };
    }
    const pick = histories[lane].next();
    return pick === null ? null : { kind: 'history', lane, ...pick };
  };
  /** The stream that is furthest behind its schedule, if any is. */
  const latest = (live: TailPick | null, nowMs: number): Decision | null => {
    const behind = { live: live === null ? 0 : live.ageMs / freshnessMs, alerts: 0, account: 0 };
    for (const kind of ['alerts', 'account'] as const) {
      if (isDue(kind, nowMs)) behind[kind] = (nowMs - readMs[kind]) / settings[`${kind}Ms`];
    }
    if (behind.alerts > behind.live && behind.alerts >= behind.account) return { kind: 'alerts', lane: 'alerts' };
    if (behind.account > behind.live) return { kind: 'account', lane: 'inventory' };
    return live && { kind: 'tail', lane: 'live', deviceId: live.deviceId, newestOnly: isOvercommitted };
  };
  const nextDueMs = (): number => {
    const due = (kind: 'alerts' | 'account'): number =>
      underWay[kind] ? Number.POSITIVE_INFINITY : readMs[kind] + settings[`${kind}Ms`];
    const listing = underWay.devices ? Number.POSITIVE_INFINITY : readMs.devices + everyMs();
    return Math.min(tails.nextMs(), due('alerts'), due('account'), listing);
  };
  const next = (nowMs: number): Decision | Rest => {
    const freeMs = spread.freeAtMs(true, nowMs);
    if (freeMs > nowMs) return { kind: 'rest', untilMs: freeMs, reason: 'day' };
    const hasWork = workOf(nowMs);
    const live = tails.live(nowMs);
    const owed = floors.owed(hasWork);
    const first = owed === null ? null : decide(owed, nowMs);
    if (first !== null) return first;
    if (isListingDue(isOvercommitted ? Number.POSITIVE_INFINITY : everyMs(), nowMs))
      return { kind: 'devices', lane: 'inventory' };
    const chosen = latest(live, nowMs);
    if (chosen !== null) return chosen;
    const spareMs = spread.freeAtMs(false, nowMs);
    for (const lane of ['first-history', 'backfill', 'sweep'] as const) {
      if (!hasWork(lane)) continue;
      if (spareMs > nowMs) return { kind: 'rest', untilMs: Math.min(spareMs, nextDueMs()), reason: 'day' };
      const spare = decide(lane, nowMs);
      if (spare !== null) return spare;
    }
    return { kind: 'rest', untilMs: Math.max(nowMs + 1, nextDueMs()), reason: 'idle' };
  };
  /** Whether all readings fit, which changes slowly: looked at anew now and then. */
  const renew = (nowMs: number): void => {
    const needed = tails.readingsPerMs() / (pageSize * FULL_PAGE);
    const carried = spread.perMs();
    const was = isOvercommitted;
    isOvercommitted = needed > carried * (was ? CARRIED_AGAIN : OVERCOMMITTED);
    if (was === isOvercommitted && nowMs - renewedMs < RENEW_MS) return;
    renewedMs = nowMs;
    const intervals = isOvercommitted
      ? [...tails.all()].flatMap(({ rate, isQuiet }) => (isQuiet ? [] : (rate.intervalMs ?? [])))
      : [];
    const staleMs = isOvercommitted
      ? staleLimitMs(intervals, { pageSize, requestsPerMs: carried })
      : Number.POSITIVE_INFINITY;
    tails.setRules({ ...rules, staleMs, fill: isOvercommitted ? OVERFULL_PAGE : FULL_PAGE });
  };
  const noteTail = (decision: Extract<Decision, { kind: 'tail' }>, answer: TailAnswer): void => {
    if (decision.lane !== 'live') return;
    counts = { liveAsked: counts.liveAsked + 1, liveEmpty: counts.liveEmpty + (answer.newReadings === 0 ? 1 : 0) };
  };

  return {
    next,
    sent(decision, nowMs) {
      spread.sent(nowMs);
      floors.sent(decision.lane, workOf(nowMs), isOvercommitted ? NARROW_FLOORS : USUAL_FLOORS);
      if (decision.kind === 'tail' || decision.kind === 'history') {
        const pick = decision.lane === 'live' ? tails.live(nowMs) : null;
        const ageMs =
          pick?.deviceId === (decision.kind === 'tail' ? decision.deviceId : null) ? pick?.ageMs : undefined;
        if (ageMs !== undefined && Number.isFinite(ageMs)) liveAgeMs += (ageMs - liveAgeMs) * LEARN_AGE;
        tails.sent(decision.deviceId);
        for (const queue of Object.values(histories)) queue.hold(decision.deviceId);
        return;
      }
      if (decision.kind === 'devices') isListing = true;
      underWay[decision.kind] = true;
    },
    tailLanded(decision, answer, nowMs) {
      noteTail(decision, answer);
      const holeFromMs = isOvercommitted ? null : answer.holeFromMs;
      tails.landed(decision.deviceId, { ...answer, holeFromMs }, nowMs);
      for (const queue of Object.values(histories)) queue.release(decision.deviceId, true);
      renew(nowMs);
    },
    historyLanded(decision, open) {
      tails.released(decision.deviceId);
      histories[decision.lane].open(decision.deviceId, open);
      for (const queue of Object.values(histories)) queue.release(decision.deviceId, true);
    },
    listed(devices, { isLast }, nowMs) {
      underWay.devices = false;
      for (const { deviceId, seenMs } of devices) if (tails.listed(deviceId, seenMs, nowMs)) surprises.note();
      if (!isLast) return;
      isListing = false;
      readMs.devices = nowMs;
      surprises.listed(nowMs, tails.size());
      renew(nowMs);
    },
    done(kind, nowMs) {
      underWay[kind] = false;
      readMs[kind] = nowMs;
    },
    failed(decision) {
      if (decision.kind === 'tail' || decision.kind === 'history') {
        tails.released(decision.deviceId);
        for (const queue of Object.values(histories)) queue.release(decision.deviceId, false);
      } else {
        underWay[decision.kind] = false;
        if (decision.kind === 'devices') isListing = false;
      }
    },
    gone(deviceId) {
      tails.gone(deviceId);
      for (const queue of Object.values(histories)) queue.gone(deviceId);
    },
    held: tails.held,
    open: (lane, deviceId, open) => histories[lane].open(deviceId, open),
    setDay: spread.setFigures,
    figures: () => ({
      isOvercommitted,
      liveAgeMs,
      listEveryMs: everyMs(),
      droppedHints: tails.droppedHints(),
      ...counts,
      openHistoryMs: histories['first-history'].openMs(),
      devices: tails.size(),
    }),
    steps: () => tails.steps() + Object.values(histories).reduce((sum, queue) => sum + queue.steps(), 0),
  };
}
