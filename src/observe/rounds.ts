/**
 * What the sync has done, stream by stream: a line for each round, with what it brought. Telemetry has no rounds, a device
 * is asked when it has something new: there a minute is one.
 *
 * Promise: no more than a line a minute for each stream, whatever happens; rounds that follow each other more closely
 * share one.
 */
import type { AppEvent } from '../core/events.ts';
import type { Clock, Stream } from '../core/ports.ts';
import { MINUTE_MS } from '../core/time.ts';

type RoundDone = Extract<AppEvent, { type: 'round-done' }>;

/** Takes every event in. @returns the rounds that came to their end with it. */
export type Rounds = (event: AppEvent) => readonly RoundDone[];

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
