/**
 * How the program stands with the API: which streams were read, what fails, what the key was refused for. Written by the
 * session and its dispatch, read by whoever waits for what these bring: `--once`, a backfill, a job.
 */
import type { ApiFault } from '../core/faults.ts';
import type { RequestLane, Stream } from '../core/ports.ts';

interface StreamStanding {
  /** When it was last read, or turned out to be off, by the monotonic clock. */
  readAtMs: number;
  /** The scope that the key lacks for it. */
  lackedScope: string | null;
}

export interface Standing {
  readonly streams: Readonly<Record<Stream, StreamStanding>>;
  /** Lanes of which the last piece of work has failed. */
  readonly failing: Set<RequestLane>;
  /** When work has failed last, by the monotonic clock. */
  failedAtMs: number;
  /** What keeps the service as a whole from being read; `null` while it answers. */
  fault: string | null;
  /** What the key or its plan was refused with; `null` while it works. */
  refusal: ApiFault | null;
}

/** Nothing was asked yet. */
export function createStanding(): Standing {
  const unread = (): StreamStanding => ({ readAtMs: Number.NEGATIVE_INFINITY, lackedScope: null });
  return {
    streams: { account: unread(), devices: unread(), telemetry: unread(), alerts: unread() },
    failing: new Set(),
    failedAtMs: Number.NEGATIVE_INFINITY,
    fault: null,
    refusal: null,
  };
}

/** Takes in that a stream was read, or cannot be for lack of a scope. */
export function noteRead(standing: Standing, stream: Stream, atMs: number, lackedScope: string | null = null): void {
  Object.assign(standing.streams[stream], { readAtMs: atMs, lackedScope });
}

/** Takes in that a piece of work came to its end. */
export function noteWorked(standing: Standing, lane: RequestLane): void {
  standing.failing.delete(lane);
  standing.fault = null;
}

/** A piece of work that has failed. */
interface FailedWork {
  readonly lane: RequestLane;
  readonly fault: ApiFault;
  /** Whether nothing else was answered either. */
  readonly isService: boolean;
  readonly atMs: number;
}

/** Takes in that a piece of work failed. */
export function noteFailed(standing: Standing, { lane, fault, isService, atMs }: FailedWork): void {
  // A wait that is asked for is no failure.
  if (fault.kind === 'throttled') return;
  standing.failing.add(lane);
  standing.failedAtMs = atMs;
  if (isService) standing.fault = fault.message;
}
