/**
 * What was asked of the simulator: the newest requests one by one, all of them as numbers.
 */
import type { EpochMs } from '../core/time.ts';
import type { Fault } from './faults.ts';

export interface LoggedRequest {
  /** The first request has the number 1. */
  readonly number: number;
  /** The server's time. */
  readonly atMs: EpochMs;
  readonly method: string;
  /** Below the base URL. */
  readonly path: string;
  /** Without the question mark. */
  readonly query: string;
  /** `null` where no answer left the server. */
  readonly status: number | null;
  readonly fault: Fault['kind'] | null;
}

export interface RequestLog {
  /** All requests so far. */
  readonly total: number;
  /** The newest requests, oldest first; at least the last 10,000. */
  readonly requests: readonly LoggedRequest[];
  /** How many were answered with a status; `null` for those without an answer. */
  count(status: number | null): number;
  add(request: LoggedRequest): void;
}

const KEPT = 10_000;

export function createRequestLog(): RequestLog {
  const requests: LoggedRequest[] = [];
  const counts = new Map<number | null, number>();
  let total = 0;
  return {
    get total() {
      return total;
    },
    requests,
    count: (status) => counts.get(status) ?? 0,
    add(request) {
      total += 1;
      counts.set(request.status, (counts.get(request.status) ?? 0) + 1);
      if (requests.push(request) > 2 * KEPT) requests.splice(0, KEPT);
    },
  };
}
