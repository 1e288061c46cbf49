/**
 * What has been told already and stays so: a database that is held, a stream that fails, a device that sends what no
 * point can hold. Told once, again after a good while with how often it came meanwhile, and at once when it is over.
 */
import type { AppEvent } from '../core/events.ts';
import type { Clock } from '../core/ports.ts';
import { HOUR_MS, MINUTE_MS } from '../core/time.ts';
import type { LineLevel } from './event-lines.ts';

/** A destination that stays held is told again this often: it tries every minute, for days if need be. */
const HELD_AGAIN_MS = 15 * MINUTE_MS;

/** A stream that comes and goes is told this often; one that fails all the time, every hour. */
const UNSTEADY_AGAIN_MS = 10 * MINUTE_MS;

/** @returns how many like it were kept back before this event, which is to be told; `null`: it is not. */
export type Repeats = (event: AppEvent, level: LineLevel) => number | null;

/** A memory of what was told; empty at first. */
export function createRepeats(clock: Pick<Clock, 'monoMs'>): Repeats {
  const isHeldStill = createHoldMemory(clock);
  const streams = createStreamMemory(clock);
  const values = createTally(clock);
  return (event, level) => {
    switch (event.type) {
      case 'stream-failed':
        return streams.failed(event.stream);
      case 'stream-back':
      case 'stream-off':
        return streams.ended(event.stream) || event.type === 'stream-off' ? 0 : null;
      case 'values-dropped':
        return values(`${event.deviceId} ${event.reason}`, HOUR_MS);
      default:
        return isHeldStill(event, level) ? null : 0;
    }
  };
}

interface StreamMemory {
  /** @returns how many failures were kept back before this one, which is to be told; `null`: it is not. */
  failed(stream: string): number | null;
  /** Takes in that it fails no more. @returns whether it was told that it does. */
  ended(stream: string): boolean;
}

function createStreamMemory(clock: Pick<Clock, 'monoMs'>): StreamMemory {
  const tally = createTally(clock);
  const told = new Set<string>();
  return {
    failed: (stream) => {
      const heldBack = tally(stream, told.has(stream) ? HOUR_MS : UNSTEADY_AGAIN_MS);
      if (heldBack !== null) told.add(stream);
      return heldBack;
    },
    ended: (stream) => told.delete(stream),
  };
}

/** @returns a function that tells how many of a kind were kept back since it was told; `null` while it is too soon. */
function createTally(clock: Pick<Clock, 'monoMs'>): (kind: string, restMs: number) => number | null {
  const told = new Map<string, { readonly atMs: number; heldBack: number }>();
  return (kind, restMs) => {
    const nowMs = clock.monoMs();
    const last = told.get(kind);
    if (last !== undefined && nowMs - last.atMs < restMs) {
      last.heldBack += 1;
      return null;
    }
    told.set(kind, { atMs: nowMs, heldBack: 0 });
    return last?.heldBack ?? 0;
  };
}

/** @returns a function that says whether a destination is held by what was told of it lately, just as loudly. */
function createHoldMemory(clock: Pick<Clock, 'monoMs'>): (event: AppEvent, level: LineLevel) => boolean {
  const told = new Map<string, { readonly words: string; readonly level: LineLevel; readonly atMs: number }>();
  return (event, level) => {
    if (event.type === 'destination-moving') told.delete(event.destination);
    if (event.type !== 'destination-held') return false;
    const { destination, words } = event;
    const last = told.get(destination);
    const atMs = clock.monoMs();
    if (last?.words === words && last.level === level && atMs - last.atMs < HELD_AGAIN_MS) return true;
    told.set(destination, { words, level, atMs });
    return false;
  };
}
