/**
 * The floors of the lanes: whatever the higher ones need, each lane that has work gets its part of the requests
 * (design 2.4, "never nothing for ever").
 *
 * A lane that has work earns a little with every request that goes out and pays one for each of its own; with one earned
 * it is owed a request. So it waits no longer than the reciprocal of its part, in requests, and the floors together leave
 * the rest to live work.
 */
import type { RequestLane } from './ports.ts';

/** The lanes below live, in their order. */
export const FLOOR_LANES = ['alerts', 'inventory', 'first-history', 'backfill', 'sweep'] as const;

export type FloorLane = (typeof FLOOR_LANES)[number];

/** The part of all requests that a lane gets at least while it has work. */
export type Floors = Readonly<Record<FloorLane, number>>;

/** Where the readings fit: history gets on, and what is quiet is looked at. */
export const USUAL_FLOORS: Floors = {
  alerts: 0.01,
  inventory: 0.01,
  'first-history': 0.1,
  backfill: 0.05,
  sweep: 0.02,
};

/** Where not even the readings fit, requests that bring none are dear. */
export const NARROW_FLOORS: Floors = {
  alerts: 0.005,
  inventory: 0.0075,
  'first-history': 0.05,
  backfill: 0.02,
  sweep: 0.0025,
};

export interface FloorBooks {
  /** Books a request. @param hasWork of each lane, at that time. */
  sent(lane: RequestLane, hasWork: (lane: FloorLane) => boolean, floors: Floors): void;
  /** The highest lane that is owed a request and has work for it. */
  owed(hasWork: (lane: FloorLane) => boolean): FloorLane | null;
}

/** How far a lane may be ahead of its part and still be held to it: a listing of many pages is one piece of work. */
const MOST_AHEAD = -200;

/** Books in which nobody is owed anything. */
export function createFloorBooks(): FloorBooks {
  const earned: Record<FloorLane, number> = { alerts: 0, inventory: 0, 'first-history': 0, backfill: 0, sweep: 0 };
  return {
    sent(lane, hasWork, floors) {
      for (const each of FLOOR_LANES) {
        const paid = each === lane ? 1 : 0;
        // Nothing is saved up without work.
        const most = hasWork(each) ? 1 + floors[each] : 0;
        earned[each] = Math.max(MOST_AHEAD, Math.min(most, earned[each] + floors[each]) - paid);
      }
    },
    owed: (hasWork) => FLOOR_LANES.find((lane) => earned[lane] >= 1 && hasWork(lane)) ?? null,
  };
}
