/**
 * The floors: whatever live work needs, each kind of work below it gets its part of the requests while it has any
 * (design 2.4, "never nothing for ever").
 *
 * What has work earns a little with every request that goes out and pays one for each of its own; with one earned it is
 * owed a request. So it waits no longer than the reciprocal of its part, in requests, and the floors together leave the
 * rest to live work. What was got without being owed is paid for as well, up to a measure: a listing that was worth its
 * pages does not come again at once because its floor says so.
 */
import type { Purpose } from '../core/ports.ts';

/** The kinds of work below live, in their order. */
export const FLOOR_LANES = ['account', 'alerts', 'devices', 'first-history', 'backfill', 'sweep'] as const;

export type FloorLane = (typeof FLOOR_LANES)[number];

/** The part of all requests that each gets at least while it has work. */
export type Floors = Readonly<Record<FloorLane, number>>;

/** Where the readings fit: history gets on, and what is quiet is looked at. */
export const USUAL_FLOORS: Floors = {
  account: 0.002,
  alerts: 0.01,
  devices: 0.01,
  'first-history': 0.1,
  backfill: 0.05,
  sweep: 0.02,
};

/** Where not even the readings fit, requests that bring none are dear. */
export const NARROW_FLOORS: Floors = {
  account: 0.001,
  alerts: 0.004,
  devices: 0.005,
  'first-history': 0.05,
  backfill: 0.02,
  sweep: 0.0025,
};

/** How much of what was got without being owed is paid for, in requests: a listing of many pages is one piece of work. */
const MOST_AHEAD: Floors = {
  account: 1,
  alerts: 5,
  devices: 200,
  'first-history': 5,
  backfill: 5,
  sweep: 5,
};

export interface FloorBooks {
  /** Books a request. @param hasWork of each, at that time. */
  sent(purpose: Pick<Purpose, 'lane' | 'stream'>, hasWork: (lane: FloorLane) => boolean, floors: Floors): void;
  /** The first that is owed a request and has work for it. */
  owed(hasWork: (lane: FloorLane) => boolean): FloorLane | null;
}

/** Books in which nobody is owed anything. */
export function createFloorBooks(): FloorBooks {
  const earned = { account: 0, alerts: 0, devices: 0, 'first-history': 0, backfill: 0, sweep: 0 };
  return {
    sent(purpose, hasWork, floors) {
      const paying = floorLaneOf(purpose);
      for (const lane of FLOOR_LANES) {
        const isPaying = lane === paying;
        // Nothing is saved up without work; what is being done was work.
        const most = isPaying || hasWork(lane) ? 1 + floors[lane] : 0;
        const next = Math.min(most, earned[lane] + floors[lane]) - (isPaying ? 1 : 0);
        earned[lane] = Math.max(-MOST_AHEAD[lane], next);
      }
    },
    owed: (hasWork) => FLOOR_LANES.find((lane) => earned[lane] >= 1 && hasWork(lane)) ?? null,
  };
}

/** What a request counts as; `null` for live work, which has no floor. */
function floorLaneOf({ lane, stream }: Pick<Purpose, 'lane' | 'stream'>): FloorLane | null {
  if (lane === 'live') return null;
  if (lane !== 'inventory') return lane;
  return stream === 'account' ? 'account' : 'devices';
}
