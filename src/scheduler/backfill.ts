/**
 * A backfill that is under way, seen from the state: what of each device it wants, what of that is to be asked next, what
 * it has brought.
 *
 * Promise: nothing of it is remembered but counts and its pace; what is left is looked up in the coverage each time. So
 * it may end anywhere, and the next one goes on where it was.
 */

import { UserError } from '../core/faults.ts';
import { type Interval, type Intervals, normalize, subtract } from '../core/intervals.ts';
import type { BackfillArgs } from '../core/state/backfill-args.ts';
import type { KnownDevice } from '../core/state/inventory.ts';
import type { Gap } from '../core/state/telemetry.ts';
import { type EpochMs, type EpochNs, MINUTE_MS, maxNs, minNs } from '../core/time.ts';
import type { Horizon, SyncContext } from '../ingest/context.ts';
import { keptDevices } from '../ingest/filter.ts';
import { horizonNow, limitFor } from '../ingest/horizon.ts';
import { isResting } from '../ingest/pull.ts';
import { noteApart } from './apart.ts';
import { beginningOfAll, holesToAsk, NOTHING_OPEN, newestHole } from './backfill-ask.ts';
import { type BackfillPace, createBackfillPace, type PaceSettings } from './backfill-pace.ts';
import { openOf } from './device-view.ts';
import type { OpenHistory, Reach } from './history-queue.ts';

export interface BackfillSettings {
  readonly args: BackfillArgs;
  /** When it begins: what can be claimed then is where it ends, unless it was asked to end before. */
  readonly horizon: Horizon;
  /** Its requests of the last day from before, ascending, in server time. */
  readonly sentMs: readonly EpochMs[];
  /** The share of the allowance, in requests. */
  readonly budgets: PaceSettings['budgets'];
  /** Whether others bring what is newest, and are given some time for it. */
  readonly isBeside: boolean;
}

export interface Backfill {
  readonly args: BackfillArgs;
  readonly to: EpochNs;
  readonly startedMs: EpochMs;
  readonly pace: BackfillPace;
  /** The ids of its devices, in the order of the inventory. */
  readonly deviceIds: readonly string[];
  covers(deviceId: string): boolean;
  /** What it wants of a device that is there, as far as that is known by now. */
  wanted(deviceId: string): Interval;
  /** How much of it is worth a request now. @param others what others are at. */
  open(deviceId: string, others: Intervals): OpenHistory;
  /** What is to be asked next; `null` where there is nothing now. */
  next(deviceId: string, reach: Reach, others: Intervals): Interval | null;
}

/** For so long after the start what is newest is left to live work, which is about to ask for it. */
const LEFT_TO_LIVE_MS = 2 * MINUTE_MS;

/**
 * Begins a backfill.
 *
 * @throws UserError (exit 2) for a device that is not there or left out, and for a stretch that has nothing in it.
 */
export function beginBackfill(context: SyncContext, settings: BackfillSettings): Backfill {
  const { store, serverClock } = context;
  const { args, horizon, isBeside } = settings;
  const asked = args.to ?? args.begunTo ?? null;
  const to = asked === null ? horizon.limit : minNs(BigInt(asked), horizon.limit);
  const from = args.from === 'all' ? 0n : BigInt(args.from);
  if (from >= to) {
    throw new UserError('--from: expected a time before the newest that can be claimed yet (sync.settle ago)', 2);
  }
  const devices = new Map(chosenDevices(context, args.devices).map((device) => [device.record.deviceId, device]));
  // An end that is only the moment of the beginning makes no island.
  if (args.to !== null && to < horizon.limit) {
    noteApart(store, { from, to, devices: args.devices, held: [...devices.keys()].map(store.telemetry) });
  }
  const startedMs = serverClock.nowMs();
  const fromOf = (deviceId: string): EpochNs => {
    if (args.from !== 'all') return from;
    const { record } = devices.get(deviceId) ?? { record: null };
    const seenAt = [record?.lastSeenAt ?? null, record?.locationUpdatedAt ?? null];
    return beginningOfAll({ spans: store.telemetry(deviceId).spans, seenAt, to });
  };
  const wanted = (deviceId: string): Interval => ({ from: minNs(fromOf(deviceId), to), to });
  const holes = (deviceId: string, others: Intervals): Intervals => {
    const state = store.telemetry(deviceId);
    const now = horizonNow(context);
    const nowMs = serverClock.nowMs();
    const whole = wanted(deviceId);
    const gaps = store.gaps(deviceId);
    const givenUp = normalize(gaps.filter(({ reason }) => reason === 'beyond allowance').map(stretchOf));
    return holesToAsk({
      spans: state.spans,
      // A settle that has grown meanwhile counts.
      wanted: now === null ? whole : { from: whole.from, to: maxNs(minNs(to, limitFor(now, state)), whole.from) },
      resting: normalize(gaps.filter((gap) => isResting(gap, 'backfill', nowMs)).map(stretchOf)),
      others: withoutGivenUp(others, givenUp),
      leavesTop: isBeside && nowMs - startedMs < LEFT_TO_LIVE_MS,
    });
  };
  return {
    args,
    to,
    startedMs,
    pace: createBackfillPace({ ...args, startedMs, sentMs: settings.sentMs, budgets: settings.budgets }),
    deviceIds: [...devices.keys()],
    covers: (deviceId) => devices.has(deviceId),
    wanted,
    open: (deviceId, others) => (devices.has(deviceId) ? openOf(holes(deviceId, others), horizon.limit) : NOTHING_OPEN),
    next: (deviceId, reach, others) =>
      devices.has(deviceId) ? newestHole(holes(deviceId, others), reach, horizon.limit) : null,
  };
}

function stretchOf({ fromNs, toNs }: Gap): Interval {
  return { from: fromNs, to: toNs };
}

/** Others are not at what they have given up. */
function withoutGivenUp(others: Intervals, givenUp: Intervals): Intervals {
  return givenUp.length === 0 ? others : subtract(others, givenUp);
}

/** The devices that were named, or all that are kept and there. @throws UserError (exit 2) */
function chosenDevices(context: SyncContext, ids: readonly string[]): readonly KnownDevice[] {
  const kept = keptDevices(context);
  if (ids.length === 0) return kept;
  const byId = new Map(kept.map((device) => [device.record.deviceId, device]));
  const all = new Set(context.store.devices().map(({ record }) => record.deviceId));
  return [...new Set(ids)].map((deviceId, index) => {
    const device = byId.get(deviceId);
    if (device !== undefined && device.goneSinceMs === null) return device;
    throw new UserError(
      `${ids.length === 1 ? '--device' : `--device number ${index + 1}`}: ${whyNot(all.has(deviceId) && device === undefined)}`,
      2,
    );
  });
}

/** The words of `--plan` (`commands/plan/command.ts`). */
function whyNot(isLeftOut: boolean): string {
  return isLeftOut
    ? 'sync.include or sync.exclude leaves that device out: nothing of it is read.'
    : 'the workspace lists no device with that id.';
}
