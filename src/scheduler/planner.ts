/**
 * The planner: which request is worth most now (design 2.4, issue 4).
 *
 * It is told what happens (listings, pages, refusals, devices that come and go) and asked for the next request; it has
 * no clock, no input and no output: the same story gives the same requests. What it has forgotten costs requests, never
 * readings: coverage says what is held.
 *
 * The order: what a floor owes a lane; a listing that is worth its requests; then live work, alerts and the account by
 * how far each is behind its schedule, so that where the allowance cannot carry the schedules, all are stretched evenly;
 * then, with what the day has to spare, first history, backfill and sweeps.
 */

import type { Stream } from '../core/ports.ts';
import { DAY_MS, MINUTE_MS } from '../core/time.ts';
import { createDaySpread } from './day-budget.ts';
import { createTails, type TailPick } from './device-queue.ts';
import { createHistoryQueue } from './history-queue.ts';
import { createCommitment } from './planner-commitment.ts';
import { createSurprises, listEveryMs } from './planner-listing.ts';
import {
  type Decision,
  type Planner,
  type PlannerSettings,
  purposeOf,
  type Rest,
  type RoundDecision,
  type TailDecision,
} from './planner-types.ts';
import { createFloorBooks, type FloorLane, NARROW_FLOORS, USUAL_FLOORS } from './reserves.ts';
import { createRounds, ROUND_KINDS, type RoundKind } from './streams.ts';

/** The age at which devices are asked moves by this part with each. */
const LEARN_AGE = 0.02;
/** While devices are asked at up to so many times their target, a listing takes nothing from them. */
const UNSTRETCHED = 2;
/** What is not live, in the order in which it gets what the day has to spare. */
const SPARE_LANES = ['first-history', 'backfill', 'sweep'] as const;
/** How long a backfill leaves a device alone of which nothing was understood. */
const BACKFILL_REST_MS = MINUTE_MS;
/** For so long the listing fails before it is gone on without: what it told of last is no sign of anything then. */
const UNLISTED_MS = 10 * MINUTE_MS;
const NEVER = Number.POSITIVE_INFINITY;

/** A planner that knows no device. */
export function createPlanner(settings: PlannerSettings): Planner {
  const { freshnessMs, sweepMs } = settings;
  let pageSize = settings.pageSize;
  const commitment = createCommitment(() => ({ freshnessMs, sweepMs, pageSize }));
  const tails = createTails(commitment.rules());
  const histories = { 'first-history': createHistoryQueue(), backfill: createHistoryQueue() };
  const queues = Object.values(histories);
  const floors = createFloorBooks();
  const spread = createDaySpread(settings.share);
  const surprises = createSurprises();
  const rounds = createRounds();
  const counts = { liveAsked: 0, liveEmpty: 0 };
  const reread = { isDue: false, isUnderWay: false };
  let telemetryOffMs = Number.NEGATIVE_INFINITY;
  /** The stream that failed last with the whole service: the next look is another's, so that none stands in for all. */
  let putOff: Stream | null = null;
  let listFailingFromMs: number | null = null;
  let backfillRestMs = Number.NEGATIVE_INFINITY;
  let liveAgeMs = freshnessMs;

  /** The age that devices are asked at; how many wait tells of it before the first of them is asked. */
  const expectedAgeMs = (): number => Math.max(liveAgeMs, tails.ready() / spread.perMs());
  const bestListEveryMs = (): number =>
    listEveryMs({
      devices: tails.size(),
      pageSize,
      ageMs: expectedAgeMs() > UNSTRETCHED * freshnessMs ? expectedAgeMs() : 0,
      surprisesPerMs: surprises.perMs(tails.size()),
      leastMs: freshnessMs,
    });
  /** From the last reading of a stream to its next turn by the schedule. */
  const scheduledMs = (kind: RoundKind): number => {
    const readMs = rounds.readMs(kind);
    if (settings.turnAfter === undefined) return settings[`${kind}Ms`];
    return Number.isFinite(readMs) ? Math.max(1, settings.turnAfter(kind, readMs) - readMs) : 1;
  };
  const everyMs = (kind: RoundKind): number => (kind === 'devices' ? bestListEveryMs() : scheduledMs(kind));
  const isDue = (kind: RoundKind, nowMs: number): boolean =>
    kind !== putOff && rounds.dueMs(kind, everyMs(kind)) <= nowMs;
  const isOff = (nowMs: number): boolean => nowMs < telemetryOffMs || putOff === 'telemetry';
  const listingOwedMs = (): number => rounds.dueMs('devices', Math.min(bestListEveryMs(), scheduledMs('devices')));
  const isListingOwed = (nowMs: number): boolean => putOff !== 'devices' && listingOwedMs() <= nowMs;

  const workOf =
    (nowMs: number) =>
    (lane: FloorLane): boolean => {
      if (lane === 'alerts' || lane === 'account') return isDue(lane, nowMs);
      if (lane === 'devices') return isListingOwed(nowMs);
      if (isOff(nowMs) || (lane === 'backfill' && nowMs < backfillRestMs)) return false;
      return lane === 'sweep' ? tails.sweep(nowMs) !== null : histories[lane].next(nowMs) !== null;
    };
  const tailOf = (lane: TailDecision['lane'], pick: Omit<TailPick, 'ageMs'>): TailDecision => {
    const { deviceId, untilMs } = pick;
    return { kind: 'tail', lane, deviceId, newestOnly: commitment.isOver(), untilMs };
  };
  const sweepOf = (deviceId: string | null): TailDecision | null =>
    deviceId === null ? null : tailOf('sweep', { deviceId, untilMs: null });
  const decide = (lane: FloorLane, nowMs: number): Decision | null => {
    if (lane === 'alerts' || lane === 'account' || lane === 'devices') return roundOf(lane);
    if (lane === 'sweep') return sweepOf(tails.sweep(nowMs));
    const pick = histories[lane].next(nowMs);
    return pick === null ? null : { kind: 'history', lane, ...pick };
  };
  /** The stream that is furthest behind its schedule, if any is. */
  const latest = (live: TailPick | null, nowMs: number): Decision | null => {
    const behindLive = live === null ? 0 : live.ageMs / freshnessMs;
    const behind = (kind: 'account' | 'alerts'): number =>
      kind === putOff ? 0 : rounds.behind(kind, scheduledMs(kind), nowMs);
    const account = behind('account');
    const alerts = behind('alerts');
    if (account > 0 && account >= Math.max(alerts, behindLive)) return roundOf('account');
    if (alerts > behindLive) return roundOf('alerts');
    return live && tailOf('live', live);
  };
  const nextDueMs = (nowMs: number): number => {
    const telemetryMs = isOff(nowMs) ? telemetryOffMs : tails.nextLiveMs();
    return Math.min(telemetryMs, ...ROUND_KINDS.map((kind) => rounds.dueMs(kind, everyMs(kind))));
  };
  const spareWork = (nowMs: number): (() => Decision | null) | null => {
    // What is to spare costs nothing, however long ago the ages come from by which a listing is not worth it.
    if (!commitment.isOver() && isListingOwed(nowMs)) return () => roundOf('devices');
    const lane = SPARE_LANES.find(workOf(nowMs));
    if (lane !== undefined) return () => decide(lane, nowMs);
    return reread.isDue && !reread.isUnderWay && !isOff(nowMs) ? () => ({ kind: 'reread', lane: 'sweep' }) : null;
  };
  const spare = (nowMs: number): Decision | Rest | null => {
    const work = spareWork(nowMs);
    const freeMs = spread.freeAtMs(false, nowMs);
    if (work === null || freeMs <= nowMs) return work === null ? null : work();
    return { kind: 'rest', untilMs: Math.max(nowMs + 1, Math.min(freeMs, nextDueMs(nowMs))), reason: 'day' };
  };
  const idle = (nowMs: number): Rest => {
    const queued = queues.map((queue) => queue.nextMs());
    const pacedMs = nowMs < backfillRestMs && histories.backfill.next(nowMs) !== null ? backfillRestMs : NEVER;
    const spareMs = isOff(nowMs) ? NEVER : Math.min(tails.nextSweepMs(), pacedMs, ...queued);
    const listingMs = commitment.isOver() ? NEVER : listingOwedMs();
    const untilMs = Math.max(nowMs + 1, Math.min(nextDueMs(nowMs), spareMs, listingMs));
    return { kind: 'rest', untilMs, reason: 'idle' };
  };
  const decideNow = (nowMs: number): Decision | Rest => {
    const freeMs = spread.freeAtMs(true, nowMs);
    if (freeMs > nowMs) return { kind: 'rest', untilMs: freeMs, reason: 'day' };
    const live = isOff(nowMs) ? null : tails.live(nowMs);
    const owed = floors.owed(workOf(nowMs));
    const first = owed === null ? null : decide(owed, nowMs);
    if (first !== null) return first;
    // Where pages are what is short, a listing has its floor alone, but for the first one.
    const isWorthIt = !commitment.isOver() || rounds.isNew('devices');
    if (isWorthIt && isDue('devices', nowMs)) return roundOf('devices');
    return latest(live, nowMs) ?? spare(nowMs) ?? idle(nowMs);
  };
  const next = (nowMs: number): Decision | Rest => {
    const decision = decideNow(nowMs);
    if (decision.kind !== 'rest' || putOff === null) return decision;
    putOff = null;
    return decideNow(nowMs);
  };
  const renew = (nowMs: number): void => {
    if (commitment.renew(tails, spread.perMs(), nowMs)) tails.setRules(commitment.rules());
  };
  const noteTrouble = (decision: Decision, isOwn: boolean, nowMs: number): void => {
    if (!isOwn) putOff = purposeOf(decision).stream;
    if (!isOwn || decision.kind !== 'devices') return;
    listFailingFromMs ??= nowMs;
    if (nowMs - listFailingFromMs >= UNLISTED_MS) tails.setUnlisted(true);
  };
  const release = (deviceId: string): void => {
    for (const queue of queues) queue.release(deviceId, true);
  };

  return {
    next,
    began(decision, nowMs) {
      putOff = null;
      if (!('deviceId' in decision)) {
        if (decision.kind === 'reread') reread.isUnderWay = true;
        else rounds.began(decision.kind);
        return;
      }
      const { deviceId, lane } = decision;
      const pick = lane === 'live' ? tails.live(nowMs) : null;
      if (pick?.deviceId === deviceId && Number.isFinite(pick.ageMs)) liveAgeMs += (pick.ageMs - liveAgeMs) * LEARN_AGE;
      tails.began(deviceId);
      for (const queue of queues) queue.hold(deviceId);
    },
    tailLanded({ deviceId, lane, untilMs }, answer, nowMs) {
      if (lane === 'live') counts.liveAsked += 1;
      if (lane === 'live' && answer.newReadings === 0) counts.liveEmpty += 1;
      const hole = commitment.isOver() ? null : answer.hole;
      tails.landed(deviceId, { ...answer, hole, untilMs }, nowMs);
      release(deviceId);
      renew(nowMs);
    },
    historyLanded({ deviceId, lane }, open) {
      tails.released(deviceId);
      histories[lane].open(deviceId, open);
      release(deviceId);
    },
    listed(devices, { isLast }, nowMs) {
      rounds.goesOn('devices');
      for (const device of devices) if (tails.listed(device, nowMs)) surprises.note();
      if (!isLast) return;
      listFailingFromMs = null;
      tails.setUnlisted(false);
      rounds.done('devices', nowMs);
      surprises.listed(nowMs, tails.size());
      renew(nowMs);
    },
    done: rounds.done,
    setReread(isDue) {
      Object.assign(reread, { isDue, isUnderWay: false });
    },
    failed(decision, { isOwn }, nowMs) {
      noteTrouble(decision, isOwn, nowMs);
      if (!('deviceId' in decision)) {
        if (decision.kind === 'reread') Object.assign(reread, { isDue: !isOwn, isUnderWay: false });
        else rounds.failed(decision.kind, isOwn, nowMs);
        return;
      }
      const { deviceId } = decision;
      if (decision.lane === 'backfill') {
        // Its newest end is asked as ever: only a backfill is not worth another try at once.
        release(deviceId);
        tails.released(deviceId);
        if (isOwn) histories.backfill.release(deviceId, false, nowMs + BACKFILL_REST_MS);
        return;
      }
      const restMs = isOwn ? tails.failed(deviceId, nowMs) : undefined;
      if (!isOwn) tails.released(deviceId);
      for (const queue of queues) queue.release(deviceId, false, restMs);
    },
    booked(purpose, nowMs) {
      spread.sent(nowMs);
      floors.sent(purpose, workOf(nowMs), commitment.isOver() ? NARROW_FLOORS : USUAL_FLOORS);
    },
    setDay(day, nowMs) {
      spread.setFigures(day, nowMs);
      renew(nowMs);
    },
    setPageSize(records) {
      if (records === pageSize) return;
      pageSize = records;
      tails.setRules(commitment.rules());
    },
    held: tails.held,
    gone(deviceId, nowMs) {
      tails.gone(deviceId, nowMs);
      for (const queue of queues) queue.gone(deviceId);
    },
    left(deviceId) {
      tails.left(deviceId);
      for (const queue of queues) queue.gone(deviceId);
    },
    open: (lane, deviceId, open) => histories[lane].open(deviceId, open),
    restBackfill(untilMs) {
      backfillRestMs = untilMs;
    },
    hasten: rounds.hasten,
    off(stream, untilMs) {
      if (stream === 'telemetry') telemetryOffMs = untilMs;
      else rounds.off(stream, untilMs);
    },
    figures: () => ({
      isOvercommitted: commitment.isOver(),
      liveAgeMs,
      listEveryMs: bestListEveryMs(),
      droppedHints: tails.droppedHints(),
      ...counts,
      openHistoryMs: histories['first-history'].openMs(),
      devices: tails.size(),
      readingsPerDay: tails.readingsPerMs() * DAY_MS,
    }),
    rates: () => ({ knownMs: tails.speakingMs(), unknown: tails.unknown(), quiet: tails.quiet() }),
    steps: () => tails.steps() + queues.reduce((sum, queue) => sum + queue.steps(), 0),
  };
}

function roundOf(kind: RoundKind): RoundDecision {
  return { kind, lane: kind === 'alerts' ? 'alerts' : 'inventory' };
}
