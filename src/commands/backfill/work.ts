/**
 * A backfill to its end, whoever asks the API for it: looks after how far it is, waits for delivery, sums it up.
 *
 * It ends when nothing of the stretch is open that could be had and every destination has what was archived by then; or
 * after ten minutes in which nothing came of it, where waiting for allowance or for its turn is no standing still.
 */

import { coveredIntervals } from '../../core/coverage.ts';
import { UserError } from '../../core/faults.ts';
import type { FleetRates } from '../../core/fleet.ts';
import type { ProgressReport } from '../../core/status.ts';
import { counted, grouped } from '../../core/text.ts';
import { type EpochMs, MINUTE_MS, msToNs, SECOND_MS } from '../../core/time.ts';
import type { Deliverer } from '../../delivery/deliver.ts';
import type { SyncContext } from '../../ingest/context.ts';
import { windowSpanNs } from '../../ingest/page-request.ts';
import type { Backfill } from '../../scheduler/backfill.ts';
import { backfillNeed } from '../../scheduler/estimate.ts';
import type { Planning } from '../../scheduler/planning.ts';
import { createProgressWatch } from '../../scheduler/progress-watch.ts';
import { drain } from '../once/job.ts';
import { lackedScopeWords, STALLED_AFTER_MS } from '../shared/refusal.ts';
import { type BackfillLook, CLOSED_BY_NONE, lookAt } from './look.ts';
import type { BackfillNotes } from './notes.ts';
import { type BackfillOutcome, type BackfillSummary, summarizeBackfill } from './summary.ts';

export interface BackfillWorkParts {
  readonly context: SyncContext;
  readonly deliverers: readonly Deliverer[];
  readonly planning: Planning;
  readonly notes: BackfillNotes;
  /** Until when nothing may be asked for lack of allowance, RFC 3339; `null` while something may. */
  readonly waitingUntil: () => string | null;
  /** How often the devices report, as far as is known. A look at all of them. */
  readonly rates: (nowMs: EpochMs) => FleetRates;
}

/** A backfill that is being looked after. */
export interface BackfillRun {
  /** @returns the summary; throws what `signal` was aborted with. */
  toItsEnd(signal: AbortSignal): Promise<BackfillSummary>;
  progress(): ProgressReport;
  summary(outcome: BackfillOutcome): BackfillSummary;
}

/** How often it is looked how far it is; a look at every device takes no more than this part of the time. */
const LOOK_EVERY_MS = 2 * SECOND_MS;
const LOOK_PART = 0.05;

/** How often what is left is taken into the queue anew: a name that kept a hole closed may have an end. */
const REOPEN_EVERY_MS = 5 * SECOND_MS;

/** How often the rates are looked at, and what is left is reckoned with them. */
const RATES_EVERY_MS = MINUTE_MS;
const ESTIMATE_EVERY_MS = 5 * SECOND_MS;

/** What was asked is held against what was thought from so many requests on. */
const TELLING_REQUESTS = 20;

const PAGE = 200;

export function createBackfillRun(parts: BackfillWorkParts, backfill: Backfill): BackfillRun {
  const { context, deliverers, notes } = parts;
  const { clock } = context;
  notes.begin();
  const deliveredBefore = deliverers.map((deliverer) => deliverer.deliveredLines());
  const estimate = createEstimate(parts, backfill);
  const summary = (outcome: BackfillOutcome): BackfillSummary =>
    summarizeBackfill({ context, deliverers, backfill, counts: notes.counts(), deliveredBefore }, outcome);
  return {
    summary,
    toItsEnd: async (signal) => {
      const outcome = await pullToItsEnd(parts, { backfill, estimate }, signal);
      const watch = createProgressWatch(clock, context.serverClock.nowMs);
      const drained = await drain(parts, watch, signal);
      return summary(outcome === 'complete' && !drained ? 'stalled' : outcome);
    },
    progress: () => {
      const look = lookAt(context, backfill);
      const waits = waitsFor(look);
      const isWhole = backfill.args.from !== 'all' && look.wholeMs > 0;
      return {
        totals: {
          devices: look.devices.length,
          devices_complete: look.devices.filter(({ openMs }) => openMs === 0).length,
          archived_readings: notes.counts().readings,
          requests: notes.counts().requests,
          covered_share: isWhole ? 1 - look.openMs / look.wholeMs : null,
        },
        destinations: deliverers.map((deliverer, index) => ({
          pending_points: deliverer.pendingLines(),
          delivered_points: deliverer.deliveredLines() - (deliveredBefore[index] ?? 0),
        })),
        allowance: { waiting_until: parts.waitingUntil() },
        eta: waits === null ? etaOf(estimate(), notes.perMinute()) : null,
        waits,
      };
    },
  };
}

/** What all that is left waits for, where no estimate can tell how long that will be. */
function waitsFor({ devices }: BackfillLook): string | null {
  const open = devices.filter(({ holes }) => holes.some(({ reason }) => !CLOSED_BY_NONE.has(reason)));
  const isMute = open.every(({ holes }) => holes.some(({ reason }) => reason === 'device unreachable'));
  if (open.length === 0 || !isMute) return null;
  return `waits for ${counted(open.length, 'device')} that cannot be reached`;
}

function etaOf(left: number | null, perMinute: number | null): NonNullable<ProgressReport['eta']> | null {
  // What was thought is asked: what is left now is a matter of delivery, or of what nobody could think of.
  if (left === null || left <= 0 || perMinute === null || perMinute <= 0) return null;
  const rate = perMinute < 10 ? perMinute.toFixed(1) : String(Math.round(perMinute));
  const seconds = Math.round((left / perMinute) * 60);
  return { seconds, basis: `about ${grouped(left)} requests at ${rate} a minute` };
}

/** Waits until nothing is open that could be had. */
async function pullToItsEnd(
  parts: BackfillWorkParts,
  { backfill, estimate }: { backfill: Backfill; estimate: () => number | null },
  signal: AbortSignal,
): Promise<BackfillOutcome> {
  const { context, notes } = parts;
  const { clock } = context;
  const standing = createStanding(parts);
  const reopen = createReopening(parts);
  for (;;) {
    signal.throwIfAborted();
    const beganMs = clock.monoMs();
    const look = lookAt(context, backfill);
    const outcome = outcomeOf(look, backfill);
    if (outcome !== null) return outcome;
    endWhereRefused(notes);
    if (standing.idleMs(look) >= STALLED_AFTER_MS) return 'stalled';
    if (backfill.args.finishByMs !== null) backfill.pace.setLeft(estimate() ?? 0);
    reopen(look);
    const tookMs = clock.monoMs() - beganMs;
    await clock.sleep(Math.max(LOOK_EVERY_MS, tookMs / LOOK_PART), signal);
  }
}

/** Takes what is left into the queue anew, now and then: what rested may be asked again. */
function createReopening({ context: { clock }, planning }: BackfillWorkParts): (look: BackfillLook) => void {
  let atMs = clock.monoMs();
  return ({ devices }) => {
    if (clock.monoMs() - atMs < REOPEN_EVERY_MS) return;
    for (const { deviceId, openMs } of devices) if (openMs > 0) planning.reopen(deviceId);
    planning.wakeUp.notify();
    atMs = clock.monoMs();
  };
}

/** Of `all`, what the plan hides is no part. */
function outcomeOf({ openFor }: BackfillLook, { args }: Backfill): BackfillOutcome | null {
  const left = [...openFor];
  if (left.length === 0) return 'complete';
  if (left.some((reason) => reason !== 'beyond plan')) return null;
  return args.from === 'all' ? 'complete' : 'incomplete for good';
}

/** @throws UserError (exit 77) where the key is of no use. */
function endWhereRefused(notes: BackfillNotes): void {
  const refusal = notes.refusal();
  if (refusal !== null) throw new UserError(`${refusal}.`, 77);
  const scope = notes.lackedScope();
  if (scope !== null) throw new UserError(lackedScopeWords(scope), 77);
}

/** For how long it stands still: not where it has something to ask, waits for its turn and nothing fails. */
function createStanding({ context, notes }: BackfillWorkParts): { idleMs(look: BackfillLook): number } {
  const { clock, room } = context;
  let leastMs = Number.POSITIVE_INFINITY;
  let idleMs = 0;
  let atMs = clock.monoMs();
  return {
    idleMs: ({ openMs, openFor }) => {
      const nowMs = clock.monoMs();
      const waits = openFor.has('not reached yet') && !notes.isFailing() && room().ok;
      if (openMs < leastMs) idleMs = 0;
      else if (!waits) idleMs += nowMs - atMs;
      leastMs = Math.min(leastMs, openMs);
      atMs = nowMs;
      return idleMs;
    },
  };
}

/** How many requests are left, as well as that can be reckoned; `null` where the end is not known. */
function createEstimate({ context, notes, rates }: BackfillWorkParts, backfill: Backfill): () => number | null {
  const { store, clock, serverClock } = context;
  let fleet: { readonly rates: FleetRates; readonly atMs: number } | null = null;
  let last: { readonly left: number; readonly atMs: number } | null = null;
  let first: { readonly left: number; readonly requests: number } | null = null;
  const reckon = (nowMs: number): number => {
    if (fleet === null || nowMs - fleet.atMs >= RATES_EVERY_MS)
      fleet = { rates: rates(serverClock.nowMs()), atMs: nowMs };
    const plan = store.account()?.plan;
    const devices = fleet.rates.devices
      .filter(({ deviceId }) => backfill.covers(deviceId))
      .map((device) => ({ ...device, held: coveredIntervals(store.telemetry(device.deviceId).spans) }));
    return backfillNeed({
      devices,
      span: { from: BigInt(backfill.args.from), to: backfill.to },
      now: msToNs(backfill.startedMs),
      pageSize: Math.max(1, Math.min(PAGE, plan?.maxDevicesPerPage ?? PAGE)),
      windowNs: windowSpanNs(plan?.historyMaxDays ?? null),
    }).requests;
  };
  return () => {
    if (backfill.args.from === 'all') return null;
    const nowMs = clock.monoMs();
    if (last !== null && nowMs - last.atMs < ESTIMATE_EVERY_MS) return last.left;
    const { requests } = notes.counts();
    const reckoned = reckon(nowMs);
    first ??= { left: reckoned, requests };
    const [made, thought] = [requests - first.requests, first.left - reckoned];
    const factor =
      made < TELLING_REQUESTS || thought < TELLING_REQUESTS ? 1 : Math.min(3, Math.max(0.5, made / thought));
    last = { left: Math.ceil(reckoned * factor), atMs: nowMs };
    return last.left;
  };
}
