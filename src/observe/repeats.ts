/**
 * What the log tells less often than it happens, or sums up.
 *
 * What has been told already and stays so: a service that is down, a database that is held, a device that sends what no
 * point can hold. Told once, every hour with how often it came meanwhile, and when it is over.
 *
 * Promises: what begins anew after its end was told is told at once; what comes and goes all the time is told both ways a
 * few times in ten minutes, and else neither way; the memory has an end; of the rounds of each stream there is no more than a line a minute.
 */
import type { AppEvent } from '../core/events.ts';
import type { Clock, Stream } from '../core/ports.ts';
import { HOUR_MS, MINUTE_MS } from '../core/time.ts';
import type { LineLevel } from './event-row.ts';
import { rowOf } from './event-table.ts';

/** @returns how many like it were kept back before this event, which is to be told; `null`: it is not. */
type Repeats = (event: AppEvent, level: LineLevel) => number | null;

/** What stays is told this often. */
const AGAIN_MS = HOUR_MS;

/** What comes and goes begins so often in so long, before it is only counted. */
const UNSTEADY = { begins: 2, withinMs: 10 * MINUTE_MS };

/** So many ways to say one outage are told in an hour: some servers put a number of their own into each answer. */
const MOST_WORDS = 5;

/** What has not come for so long and has no end of its own is over. */
const CALM_MS = 10 * MINUTE_MS;

/** So many kinds are remembered before those are forgotten that would be told again anyway. */
const MOST_KINDS = 5000;

/** A memory of what was told; empty at first. */
export function createRepeats(clock: Pick<Clock, 'monoMs'>): Repeats {
  const outages = createOutages(clock);
  const tally = createTally(clock);
  return (event, level) => {
    const { repeats } = rowOf(event.type);
    if (repeats === undefined) return 0;
    if ('outage' in repeats) return outages.came(repeats.outage(event), `${level} ${repeats.words?.(event) ?? ''}`);
    if ('ends' in repeats) {
      const heldBack = outages.ended(repeats.ends(event));
      return repeats.isNews === true ? (heldBack ?? 0) : heldBack;
    }
    return tally(`${event.type} ${level} ${repeats.alike(event)}`, repeats.isBrief === true ? CALM_MS : AGAIN_MS);
  };
}

interface Outages {
  /** @returns how many were kept back before this one, which is to be told; `null`: it is not. */
  came(about: string, words: string): number | null;
  /** @returns how many were kept back since it was told last; `null` where it was not told that there is one. */
  ended(about: string): number | null;
}

interface Outage {
  /** When each way of saying it was told; none where nobody knows of it. */
  readonly told: Map<string, number>;
  /** When it was told as a new one. */
  begunMs: readonly number[];
  heldBack: number;
}

function createOutages({ monoMs }: Pick<Clock, 'monoMs'>): Outages {
  const known = new Map<string, Outage>();
  return {
    came: (about, words) => {
      const outage = known.get(about) ?? { told: new Map(), begunMs: [], heldBack: 0 };
      known.set(about, outage);
      if (!isDue(outage, words, monoMs())) {
        outage.heldBack += 1;
        return null;
      }
      outage.told.set(words, monoMs());
      return takeHeldBack(outage);
    },
    ended: (about) => {
      const outage = known.get(about);
      if (outage === undefined || outage.told.size === 0) return null;
      outage.told.clear();
      return takeHeldBack(outage);
    },
  };
}

function isDue(outage: Outage, words: string, nowMs: number): boolean {
  if (outage.told.size === 0) {
    const lately = outage.begunMs.filter((atMs) => nowMs - atMs < UNSTEADY.withinMs);
    const isSteady = lately.length < UNSTEADY.begins;
    outage.begunMs = isSteady ? [...lately, nowMs] : lately;
    return isSteady;
  }
  const toldMs = outage.told.get(words);
  if (toldMs !== undefined) return nowMs - toldMs >= AGAIN_MS;
  return [...outage.told.values()].filter((atMs) => nowMs - atMs < AGAIN_MS).length < MOST_WORDS;
}

function takeHeldBack(outage: Outage): number {
  const { heldBack } = outage;
  outage.heldBack = 0;
  return heldBack;
}

/** @returns a function that tells how many of a kind were kept back since it was told; `null` while it is too soon. */
function createTally({ monoMs }: Pick<Clock, 'monoMs'>): (kind: string, calmMs: number) => number | null {
  const known = new Map<string, { toldMs: number; cameMs: number; heldBack: number }>();
  return (kind, calmMs) => {
    const nowMs = monoMs();
    const last = known.get(kind);
    if (last !== undefined && nowMs - last.toldMs < AGAIN_MS && nowMs - last.cameMs < calmMs) {
      last.heldBack += 1;
      last.cameMs = nowMs;
      return null;
    }
    if (known.size >= MOST_KINDS) forgetOld(known, nowMs - AGAIN_MS);
    known.set(kind, { toldMs: nowMs, cameMs: nowMs, heldBack: 0 });
    return last?.heldBack ?? 0;
  };
}

function forgetOld(known: Map<string, { readonly toldMs: number }>, beforeMs: number): void {
  for (const [kind, { toldMs }] of known) if (toldMs <= beforeMs) known.delete(kind);
}

/**
 * What the sync has done, stream by stream: a line for each round, with what it brought. Telemetry has no rounds, a device
 * is asked when it has something new: there a minute is one. Rounds that follow each other more closely share one.
 */
type RoundDone = Extract<AppEvent, { type: 'round-done' }>;

/** Takes every event in. @returns the rounds that came to their end with it. */
type Rounds = (event: AppEvent) => readonly RoundDone[];

/** No more than a line in so long for each stream, whatever happens. */
const EVERY_MS = MINUTE_MS;

/** A stream since it was last told of. */
interface Round {
  sinceMs: number;
  isRead: boolean;
  runs: number;
  requests: number;
  failed: number;
  records: number;
  points: number;
  readonly devices: Set<string>;
}

/** Nothing was done so far. */
export function createRounds({ monoMs }: Pick<Clock, 'monoMs'>): Rounds {
  const rounds = new Map<Stream, Round>();
  const toldMs = new Map<Stream, number>();
  const roundOf = (stream: Stream): Round => {
    const round = rounds.get(stream) ?? newRound(monoMs());
    rounds.set(stream, round);
    return round;
  };
  const isDue = (stream: Stream, { sinceMs, isRead }: Round): boolean => {
    if (!isRead) return false;
    const lastMs = stream === 'telemetry' ? sinceMs : (toldMs.get(stream) ?? Number.NEGATIVE_INFINITY);
    return monoMs() - lastMs >= EVERY_MS;
  };
  const end = (isAll: boolean): RoundDone[] => {
    const ended = [...rounds].filter(([stream, round]) => (isAll && round.isRead) || isDue(stream, round));
    for (const [stream] of ended) {
      rounds.delete(stream);
      toldMs.set(stream, monoMs());
    }
    return ended.filter(([, { requests }]) => requests > 0).map(([stream, round]) => told(stream, round, monoMs()));
  };
  return (event) => {
    // What is due ends before this event, so that no round has half of a request's story; one that is read ends with it.
    const before = end(event.type === 'stopping');
    takeIn(event, roundOf);
    return event.type === 'stream-read' ? [...before, ...end(false)] : before;
  };
}

function newRound(nowMs: number): Round {
  const counts = { runs: 0, requests: 0, failed: 0, records: 0, points: 0 };
  return { sinceMs: nowMs, isRead: false, ...counts, devices: new Set() };
}

function takeIn(event: AppEvent, roundOf: (stream: Stream) => Round): void {
  switch (event.type) {
    case 'request-done': {
      const round = roundOf(event.stream);
      round.requests += 1;
      if (event.fault !== null) round.failed += 1;
      return;
    }
    case 'page-landed': {
      const round = roundOf('telemetry');
      round.records += event.readings;
      round.points += event.newPoints;
      round.devices.add(event.deviceId);
      return;
    }
    case 'listing-landed': {
      const round = roundOf(event.stream);
      round.records += event.records;
      round.points += event.newPoints;
      return;
    }
    case 'stream-read': {
      const round = roundOf(event.stream);
      round.isRead = true;
      round.runs += 1;
      return;
    }
    default:
  }
}

function told(stream: Stream, round: Round, nowMs: number): RoundDone {
  const { sinceMs, runs, requests, failed, records, points, devices } = round;
  const counts = { runs, requests, failed, records, newPoints: points, devices: devices.size };
  return { type: 'round-done', stream, ...counts, durationMs: nowMs - sinceMs };
}
