/**
 * A workspace for the planner: devices that report evenly, requests that are answered at once, at an even pace.
 */

import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import { createPlannerState, type PlannerState } from '../../src/scheduler/decide.ts';
import { noteDeviceStored } from '../../src/scheduler/device-queue.ts';
import { type OpenHistory, setOpenHistory } from '../../src/scheduler/history-queue.ts';
import {
  noteBegan,
  noteDecisionFailed,
  noteDevicesListed,
  noteHistoryCommitted,
  notePollCommitted,
  noteRequestBooked,
  noteStreamRead,
  setReread,
  takeDecision,
} from '../../src/scheduler/planner.ts';
import { type Decision, type PlannerSettings, purposeOf } from '../../src/scheduler/planner-types.ts';
import { PAGE, SETTINGS } from '../bench/planner/clients.ts';
import type { Device } from '../bench/planner/fleet.ts';
import { type StoredReadings, storedFrom, takePage } from '../bench/planner/stored-readings.ts';

export interface EvenDevice {
  readonly intervalMs: number;
  /** Its last reading; none after it. */
  readonly untilMs?: number;
  /** The last-seen time in the listing instead of that of its newest reading; `null`: nothing. */
  readonly seenAt?: (atMs: number) => number | null;
}

export interface WorldDevice extends Omit<Device, 'seenAt'> {
  seenAt(atMs: number): number | null;
}

/** A device with a reading at every multiple of its interval. */
export function evenDevice(deviceId: string, { intervalMs, untilMs = Infinity, seenAt }: EvenDevice): WorldDevice {
  const newestAt = (atMs: number): number => Math.floor(Math.min(atMs, untilMs) / intervalMs);
  const timeOf = (reading: number): number => (reading * intervalMs > untilMs ? Infinity : reading * intervalMs);
  return {
    deviceId,
    isSilent: Number.isFinite(untilMs),
    intervalMs,
    newestAt,
    timeOf,
    seenAt: seenAt ?? ((atMs) => timeOf(newestAt(atMs))),
  };
}

/** The result of a request: answered, rejected for lack of quota, or failed by a fault of its own. */
export type Fate = 'answered' | 'rejected' | 'failed';

export interface Made {
  readonly atMs: number;
  readonly decision: Decision;
  readonly fate: Fate;
  /** New readings of a tail. */
  readonly newReadings: number;
}

export interface World {
  readonly planner: PlannerState;
  /** Reports the stored data of a device: all up to `atMs`, when it was polled. */
  storeUpTo(deviceId: string, atMs: number): void;
  open(lane: 'first-history' | 'backfill', deviceId: string, open: OpenHistory): void;
  /**
   * Makes requests, one every `everyMs` at most.
   *
   * @returns them.
   */
  run(how: { fromMs: number; untilMs: number; everyMs?: number; fate?: (decision: Decision) => Fate }): readonly Made[];
}

/** A page of history covers a day of it. */
export function createWorld(devices: readonly WorldDevice[], settings: Partial<PlannerSettings> = {}): World {
  const planner = createPlannerState({ ...SETTINGS, ...settings });
  const allStored = new Map<string, StoredReadings>();
  const histories = { 'first-history': new Map<string, OpenHistory>(), backfill: new Map<string, OpenHistory>() };
  const byId = new Map(devices.map((device) => [device.deviceId, device]));
  /** A listing that is under way, and how many devices it has so far. */
  let listing = null as { readonly decision: Decision; readonly listed: number } | null;

  const storedOf = (deviceId: string): StoredReadings => {
    const device = byId.get(deviceId);
    if (device === undefined) throw new Error(`${deviceId} is no device`);
    const known = allStored.get(deviceId) ?? storedFrom({ ...device, seenAt: () => 0 }, 0, device.newestAt(0) - 1);
    allStored.set(deviceId, known);
    return known;
  };
  const listPage = (decision: Decision, nowMs: number): void => {
    const listed = (listing?.listed ?? 0) + PAGE;
    listing = listed < devices.length ? { decision, listed } : null;
    if (listing !== null) return;
    const all = devices.map(({ deviceId, seenAt }) => ({ deviceId, seenMs: seenAt(nowMs), isActive: true }));
    noteDevicesListed(planner, all, nowMs);
  };
  const answer = (decision: Decision, nowMs: number): number => {
    if (decision.kind === 'poll') {
      const page = takePage(storedOf(decision.deviceId), nowMs, {
        pageSize: PAGE,
        givesUp: decision.newestOnly,
        untilMs: decision.untilMs,
      });
      notePollCommitted(planner, decision, page, nowMs);
      return page.newReadings;
    }
    if (decision.kind === 'history') {
      const queue = histories[decision.lane];
      const open = pageOf(queue.get(decision.deviceId) ?? { day: 0, week: 0, rest: 0 }, decision.recency);
      queue.set(decision.deviceId, open);
      noteHistoryCommitted(planner, decision, open);
    } else if (decision.kind === 'devices') {
      listPage(decision, nowMs);
    } else if (decision.kind === 'reread') setReread(planner, false, false);
    else noteStreamRead(planner, decision.kind, nowMs);
    return 0;
  };
  const make = (decision: Decision, fate: Fate, atMs: number): Made => {
    if (listing === null) noteBegan(planner, decision, atMs);
    noteRequestBooked(planner, purposeOf(decision), atMs);
    if (fate !== 'answered') listing = null;
    if (fate === 'answered') return { atMs, decision, fate, newReadings: answer(decision, atMs) };
    noteDecisionFailed(planner, decision, fate === 'failed', atMs);
    return { atMs, decision, fate, newReadings: 0 };
  };

  return {
    planner,
    storeUpTo(deviceId, atMs) {
      const device = storedOf(deviceId).device;
      const newest = device.newestAt(atMs);
      allStored.set(deviceId, storedFrom(device, atMs, newest));
      noteDeviceStored(planner.devices, deviceId, {
        newestMs: device.timeOf(newest),
        polledMs: atMs,
        rate: { intervalMs: device.intervalMs, deviationMs: 0 },
      });
    },
    open(lane, deviceId, open) {
      histories[lane].set(deviceId, open);
      setOpenHistory(planner.histories[lane], deviceId, open);
    },
    run({ fromMs, untilMs, everyMs = SECOND_MS, fate = () => 'answered' }) {
      const made: Made[] = [];
      let nowMs = fromMs;
      while (nowMs < untilMs) {
        const decision = listing?.decision ?? takeDecision(planner, nowMs);
        if (decision.kind === 'rest') {
          nowMs = Math.max(nowMs + 1, decision.untilMs);
          continue;
        }
        made.push(make(decision, fate(decision), nowMs));
        nowMs += everyMs;
      }
      return made;
    },
  };
}

function pageOf(open: OpenHistory, recency: keyof OpenHistory): OpenHistory {
  return { ...open, [recency]: Math.max(0, open[recency] - DAY_MS) };
}

/** The tails among them, of one lane. */
export function newestOf(
  made: readonly Made[],
  lane: 'live' | 'idle-poll' = 'live',
): readonly (Made & { deviceId: string })[] {
  return made.flatMap((each) =>
    each.decision.kind === 'poll' && each.decision.lane === lane ? [{ ...each, deviceId: each.decision.deviceId }] : [],
  );
}

/** How often a device was polled in the live lane. */
export function countOf(made: readonly Made[], deviceId: string): number {
  return newestOf(made).filter((each) => each.deviceId === deviceId).length;
}

/** A device that has ceased to report. */
export const SILENT: EvenDevice = { intervalMs: MINUTE_MS, untilMs: -HOUR_MS };
