/**
 * A look at every device, for the metrics and `/readyz`: how many are in which state, how fresh they are, what is
 * missing and why.
 *
 * Its cost is bounded. Where a look takes a few milliseconds it is made when somebody asks. Where it takes longer, it is
 * made in the background: what is held is read at once, which is cheapest, and then looked at in slices of a few
 * milliseconds with rests between them, so that no scrape and no request waits for it. It takes a twentieth of a processor; whoever asks gets the last one that came to its end.
 */

import type { FleetFigures } from '../core/figures.ts';
import { beatingClock, type Pulse } from '../core/heartbeats.ts';
import type { Clock } from '../core/ports.ts';
import type { KnownDevice } from '../core/state/inventory.ts';
import { type HeldNow, NOTHING_HELD } from '../core/state/telemetry.ts';
import { SECOND_MS } from '../core/time.ts';
import type { SyncContext } from '../ingest/context.ts';
import { horizonNow, openSeconds } from '../ingest/horizon.ts';
import type { ListedLook } from './device-list.ts';
import { type DeviceSums, toListedLook } from './device-look.ts';
import { createFleetTally, type FleetTally } from './fleet-tally.ts';

export interface FleetLookParts {
  readonly context: Pick<SyncContext, 'store' | 'serverClock' | 'settings' | 'clock'>;
  readonly staleMs: () => number;
  readonly pulse: Pulse;
}

export interface FleetLook {
  /** What was found last; `null` before the first look came to its end. */
  latest(): FleetFigures | null;
  /** All devices as they were found then, by their ids; the same list until the next look. */
  listing(): readonly ListedLook[] | null;
  /** The sums over all devices as they were found then, as the status report tells them. */
  sums(): DeviceSums | null;
  /** How long ago that was, in ms; 0 before. */
  ageMs(): number;
  /** Also keeps the figures of so many devices, one by one. */
  tellOf(devices: number): void;
  /** Looks again and again until told to stop. */
  run(signal: AbortSignal): Promise<never>;
}

/** A look that takes no longer than this is made when somebody asks, and no more often than that. */
const QUICK = { mostMs: 5, everyMs: 250 };

/** Slices, and rests between them: at first, when nothing is known yet, and later. */
const SLICE_MS = 4;
const REST_MS = { first: 20, later: 76 };

/** From the end of one look to the beginning of the next: so many times as long as it took, within these. */
const BETWEEN = { times: 20, leastMs: SECOND_MS, mostMs: 15 * SECOND_MS };

interface Look {
  readonly devices: readonly KnownDevice[];
  readonly held: ReadonlyMap<string, HeldNow>;
  readonly tally: FleetTally;
  readonly listing: ListedLook[];
  readonly beganMs: number;
  at: number;
  workedMs: number;
}

interface Found {
  readonly figures: FleetFigures;
  readonly listing: readonly ListedLook[];
  readonly sums: DeviceSums;
  readonly atMs: number;
  readonly workedMs: number;
}

/** A look at nothing yet. */
export function createFleetLook(parts: FleetLookParts): FleetLook {
  const { context, pulse } = parts;
  const { clock } = context;
  let last: Found | null = null;
  let triedAtMs = Number.NEGATIVE_INFINITY;
  /** Whether a look takes too long to be made at once, as far as is known. */
  let isLong = false;
  let told = 0;

  /** Makes a look, or a part of it. @returns whether it came to its end. */
  const work = (look: Look, mostMs: number): boolean => {
    const beganMs = clock.monoMs();
    while (look.at < look.devices.length && clock.monoMs() - beganMs < mostMs) {
      const device = look.devices[look.at];
      if (device !== undefined) {
        const held = look.held.get(device.record.deviceId) ?? NOTHING_HELD;
        look.listing.push(toListedLook(device, held, look.tally.add(device, held)));
      }
      look.at += 1;
    }
    const nowMs = clock.monoMs();
    look.workedMs += nowMs - beganMs;
    if (look.at < look.devices.length) return false;
    const { tally, listing, beganMs: atMs, workedMs } = look;
    last = { figures: tally.sum(), sums: tally.told(), listing, atMs, workedMs };
    return true;
  };
  /** @returns `null` while nothing is known of the server's time. */
  const begin = (): Look | null => {
    const beganMs = clock.monoMs();
    const horizon = horizonNow(context);
    if (horizon === null) return null;
    const devices = context.store.devices();
    const held = context.store.heldOfAll();
    const { settings } = context;
    const tally = createFleetTally({ settings, horizon, openSeconds: openSeconds(parts), told });
    return { devices, held, tally, listing: [], at: 0, beganMs, workedMs: clock.monoMs() - beganMs };
  };
  const lookAtOnce = (): void => {
    const nowMs = clock.monoMs();
    if (nowMs - triedAtMs < QUICK.everyMs) return;
    if (isLong) return;
    triedAtMs = nowMs;
    const look = begin();
    if (look !== null) isLong = !work(look, QUICK.mostMs - look.workedMs);
  };
  /** @returns how long to rest after it. */
  const lookSlowly = async (napping: Clock, signal: AbortSignal): Promise<number> => {
    const restMs = last === null ? REST_MS.first : REST_MS.later;
    const look = begin();
    if (look === null) return BETWEEN.leastMs;
    do await napping.sleep(restMs, signal);
    while (!work(look, SLICE_MS));
    isLong = look.workedMs > QUICK.mostMs;
    return Math.min(BETWEEN.mostMs, Math.max(BETWEEN.leastMs, BETWEEN.times * look.workedMs));
  };

  return {
    latest: () => {
      lookAtOnce();
      return last?.figures ?? null;
    },
    listing: () => {
      lookAtOnce();
      return last?.listing ?? null;
    },
    sums: () => {
      lookAtOnce();
      return last?.sums ?? null;
    },
    ageMs: () => (last === null ? 0 : clock.monoMs() - last.atMs),
    tellOf: (devices) => {
      told = devices;
    },
    run: async (signal) => {
      const napping = beatingClock(clock, pulse);
      for (;;) {
        const restMs = await lookSlowly(napping, signal);
        await napping.sleep(restMs, signal);
      }
    },
  };
}
