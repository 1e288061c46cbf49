/**
 * Summaries of what the polls of each stream of the API have brought, for the log: at most one a minute for each stream.
 */
import type { AppEvent } from '../core/events.ts';
import type { Clock, Stream } from '../core/ports.ts';
import { MINUTE_MS } from '../core/time.ts';

/**
 * The summary of a stream's polls since its last log line: written when the stream is read, at most once a minute.
 * Telemetry, whose devices are polled one by one, has one a minute.
 */
type PollSummary = Extract<AppEvent, { type: 'poll-summary' }>;

/**
 * Counts every event.
 *
 * @returns the summaries that are due with it.
 */
type PollSummaries = (event: AppEvent) => readonly PollSummary[];

/** The minimum interval between two lines of a stream. */
const EVERY_MS = MINUTE_MS;

/** The work of a stream since its last log line. */
interface StreamCounts {
  sinceMs: number;
  isRead: boolean;
  runs: number;
  requests: number;
  failed: number;
  records: number;
  points: number;
  readonly devices: Set<string>;
}

/** Creates summaries with all counts at 0. */
export function createPollSummaries({ monoMs }: Pick<Clock, 'monoMs'>): PollSummaries {
  const streams = new Map<Stream, StreamCounts>();
  const reportedMs = new Map<Stream, number>();
  const openCounts = (stream: Stream): StreamCounts => {
    const counted = streams.get(stream) ?? newCounts(monoMs());
    streams.set(stream, counted);
    return counted;
  };
  const isDue = (stream: Stream, { sinceMs, isRead }: StreamCounts): boolean => {
    if (!isRead) return false;
    const lastMs = stream === 'telemetry' ? sinceMs : (reportedMs.get(stream) ?? Number.NEGATIVE_INFINITY);
    return monoMs() - lastMs >= EVERY_MS;
  };
  const end = (isAll: boolean): PollSummary[] => {
    const ended = [...streams].filter(([stream, counted]) => (isAll && counted.isRead) || isDue(stream, counted));
    for (const [stream] of ended) {
      streams.delete(stream);
      reportedMs.set(stream, monoMs());
    }
    return ended
      .filter(([, { requests }]) => requests > 0)
      .map(([stream, counted]) => pollSummary(stream, counted, monoMs()));
  };
  return (event) => {
    // Due summaries end before this event, so that none has a part of a request; that of a read stream ends with it.
    const before = end(event.type === 'stopping');
    countEvent(event, openCounts);
    return event.type === 'stream-read' ? [...before, ...end(false)] : before;
  };
}

function newCounts(nowMs: number): StreamCounts {
  const counts = { runs: 0, requests: 0, failed: 0, records: 0, points: 0 };
  return { sinceMs: nowMs, isRead: false, ...counts, devices: new Set() };
}

function countEvent(event: AppEvent, openCounts: (stream: Stream) => StreamCounts): void {
  switch (event.type) {
    case 'request-done': {
      const counted = openCounts(event.stream);
      counted.requests += 1;
      if (event.fault !== null) counted.failed += 1;
      return;
    }
    case 'page-committed': {
      const counted = openCounts('telemetry');
      counted.records += event.readings;
      counted.points += event.newPoints;
      counted.devices.add(event.deviceId);
      return;
    }
    case 'list-page-committed': {
      const counted = openCounts(event.stream);
      counted.records += event.records;
      counted.points += event.newPoints;
      return;
    }
    case 'stream-read': {
      const counted = openCounts(event.stream);
      counted.isRead = true;
      counted.runs += 1;
      return;
    }
    default:
  }
}

function pollSummary(stream: Stream, counted: StreamCounts, nowMs: number): PollSummary {
  const { sinceMs, runs, requests, failed, records, points, devices } = counted;
  const counts = { runs, requests, failed, records, newPoints: points, devices: devices.size };
  return { type: 'poll-summary', stream, ...counts, periodMs: nowMs - sinceMs };
}
