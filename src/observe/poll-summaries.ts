/** Summaries of the polls of each stream of the API, for the log: at most one per minute and stream. */
import type { AppEvent } from '../core/events.ts';
import type { Clock, Stream } from '../core/ports.ts';
import { MINUTE_MS } from '../core/time.ts';
import type { PollSums } from './event-row.ts';
import { rowOf } from './event-table.ts';

/**
 * The summary of a stream's polls since its last log line. It is written when the stream is read, at most once a
 * minute. Telemetry, whose devices are polled one by one, has one per minute.
 */
type PollSummary = Extract<AppEvent, { type: 'poll-summary' }>;

/**
 * Counts every event.
 *
 * @returns the summaries that are due.
 */
type PollSummaries = (event: AppEvent) => readonly PollSummary[];

/** The minimum interval between two lines of a stream. */
const EVERY_MS = MINUTE_MS;

/** The counts of a stream that events add to. */
const SUMS = ['runs', 'requests', 'failed', 'records', 'newPoints'] as const;

/** The work of a stream since its last log line. */
interface StreamCounts extends Record<(typeof SUMS)[number], number> {
  sinceMs: number;
  readonly devices: Set<string>;
}

/** Creates summaries with all counts at 0. */
export function createPollSummaries({ monoMs }: Pick<Clock, 'monoMs'>): PollSummaries {
  const streams = new Map<Stream, StreamCounts>();
  const reportedMs = new Map<Stream, number>();
  const add = ({ stream, deviceId, ...sums }: PollSums): void => {
    const counted = streams.get(stream) ?? newCounts(monoMs());
    streams.set(stream, counted);
    for (const each of SUMS) counted[each] += sums[each] ?? 0;
    if (deviceId !== undefined) counted.devices.add(deviceId);
  };
  const isDue = (stream: Stream, { sinceMs, runs }: StreamCounts): boolean => {
    if (runs === 0) return false;
    const lastMs = stream === 'telemetry' ? sinceMs : (reportedMs.get(stream) ?? Number.NEGATIVE_INFINITY);
    return monoMs() - lastMs >= EVERY_MS;
  };
  const end = (isAll: boolean): PollSummary[] => {
    const ended = [...streams].filter(([stream, counted]) => (isAll && counted.runs > 0) || isDue(stream, counted));
    for (const [stream] of ended) {
      streams.delete(stream);
      reportedMs.set(stream, monoMs());
    }
    return ended
      .filter(([, { requests }]) => requests > 0)
      .map(([stream, counted]) => pollSummary(stream, counted, monoMs()));
  };
  return (event) => {
    // Due summaries end before this event, so that none contains a part of a request. The summary of a stream that was
    // read ends with the event.
    const before = end(event.type === 'stopping');
    const sums = rowOf(event.type).sums?.(event);
    if (sums !== undefined) add(sums);
    return event.type === 'stream-read' ? [...before, ...end(false)] : before;
  };
}

function newCounts(sinceMs: number): StreamCounts {
  return { sinceMs, runs: 0, requests: 0, failed: 0, records: 0, newPoints: 0, devices: new Set() };
}

function pollSummary(stream: Stream, { sinceMs, devices, ...counts }: StreamCounts, nowMs: number): PollSummary {
  return { type: 'poll-summary', stream, ...counts, devices: devices.size, periodMs: nowMs - sinceMs };
}
