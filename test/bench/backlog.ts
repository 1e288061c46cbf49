/**
 * How soon a fleet is complete again after an outage of an hour, in virtual time, against the least time in which the
 * quota lets its pages be fetched.
 */
import type { EpochMs, EpochNs } from '../../src/core/time.ts';
import { HOUR_MS, MINUTE_MS, msToNs, nsToMs, SECOND_MS } from '../../src/core/time.ts';
import { betweenTimes } from '../support/faults.ts';
import type { DeviceSpec } from '../support/trait-world.ts';
import type { Measured } from './table.ts';
import { SHARE, type VirtualDaemon, withVirtualDaemon } from './virtual-daemon.ts';

export interface BacklogPlan {
  readonly devices: number;
  /** How often the service is out for an hour. */
  readonly outages: number;
}

const PLAN = { requestsPerMinute: 60, requestsPerDay: 200_000 };
/** An hour of it and what comes while it is fetched are two pages. */
const INTERVAL_MS = 15 * SECOND_MS;
const NEW_ON_A_PAGE = 199;
const LOOK_MS = SECOND_MS;

interface CaughtUp {
  readonly leastMs: number;
  /** Since the end of the outage, and since the first answer after it. */
  readonly tookMs: number;
  readonly afterAnswerMs: number;
}

/** Measures a sync whose service is out for an hour several times. */
export async function measureBacklog(
  { devices: count, outages }: BacklogPlan,
  say: (text: string) => void,
): Promise<Measured[]> {
  const devices = Array.from(
    { length: count },
    (_, index): DeviceSpec => ({ deviceId: `d${index}`, intervalMs: INTERVAL_MS, jitter: 0.2 }),
  );
  const caughtUp = await withVirtualDaemon({ devices, plan: PLAN }, async (daemon) => {
    const all: CaughtUp[] = [];
    await daemon.clock.sleep(HOUR_MS);
    for (let outage = 0; outage < outages; outage += 1) {
      const one = await catchUp(daemon, devices);
      const minutes = (ms: number): string => (ms / MINUTE_MS).toFixed(1);
      say(
        `backlog: caught up ${minutes(one.tookMs)} minutes after the outage, ${minutes(one.afterAnswerMs)} after the first answer; at the least ${minutes(one.leastMs)}`,
      );
      all.push(one);
      // Another part of the minute and of the waits each time.
      await daemon.clock.sleep(HOUR_MS + outage * 17 * SECOND_MS);
    }
    return all;
  });
  const figure = { unit: 'times', wanted: 1.2, better: 'less' } as const;
  return [
    {
      ...figure,
      figure: 'backlog of an hour: time to the least, from the outage on',
      values: caughtUp.map(({ tookMs, leastMs }) => tookMs / leastMs),
      isLargest: true,
    },
    {
      ...figure,
      figure: 'the same, from the first answer on',
      values: caughtUp.map(({ afterAnswerMs, leastMs }) => afterAnswerMs / leastMs),
    },
  ];
}

async function catchUp({ clock, simulator, sync }: VirtualDaemon, devices: readonly DeviceSpec[]): Promise<CaughtUp> {
  const downMs = clock.nowMs();
  const upMs = downMs + HOUR_MS;
  const coveredTo = (deviceId: string): EpochNs => sync.context.store.telemetry(deviceId).covered.at(-1)?.to ?? 0n;
  const leastPages = devices
    .map(({ deviceId }) => (upMs - nsToMs(coveredTo(deviceId))) / INTERVAL_MS)
    .reduce((sum, readings) => sum + Math.ceil(readings / NEW_ON_A_PAGE), 0);
  simulator.faults = betweenTimes(downMs, upMs, { kind: 'reset', when: 'before-headers' });
  await clock.sleep(HOUR_MS);
  const isCaughtUp = ({ deviceId }: DeviceSpec): boolean => isCovered(sync, deviceId, downMs, upMs);
  let left = [...devices];
  while (left.length > 0) {
    await clock.sleep(LOOK_MS);
    left = left.filter((device) => !isCaughtUp(device));
  }
  const answered = simulator.log.requests.find(({ atMs, status }) => atMs >= upMs && status === 200);
  const nowMs = clock.nowMs();
  return {
    leastMs: (leastPages / (PLAN.requestsPerMinute * SHARE)) * MINUTE_MS,
    tookMs: nowMs - upMs,
    afterAnswerMs: nowMs - (answered?.atMs ?? upMs),
  };
}

/** Whether all of the outage is covered, but for what may still come late. */
function isCovered({ context }: VirtualDaemon['sync'], deviceId: string, downMs: EpochMs, upMs: EpochMs): boolean {
  const { covered } = context.store.telemetry(deviceId);
  const to = msToNs(upMs - context.settings.gracePeriodMs - 2 * SECOND_MS);
  return covered.some((range) => range.from <= msToNs(downMs) && range.to >= to);
}
