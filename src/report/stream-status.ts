/**
 * The streams of the API as `--status`, the metrics and the readiness check show them: pure functions of what the
 * scheduler has recorded.
 */

import { refusalWords } from '../core/faults.ts';
import { STREAMS, type Stream } from '../core/ports.ts';
import type { StreamStatus } from '../core/status.ts';
import { formatExact, MINUTE_MS, msToNs } from '../core/time.ts';
import type { ApiState, StreamState } from '../scheduler/api-state.ts';

/** The streams as they are shown, and what keeps the API from being read. */
export interface StreamReport {
  list(): readonly StreamStatus[];
  /** Whether the devices were listed to their end since the start. */
  isListed(): boolean;
  /** What keeps the API from being read; `null` while it is. */
  problem(): string | null;
  /** Whether that is a key or a plan that is refused. */
  isRefused(): boolean;
  /** Streams that have failed for so long that what is stored of them may be out of date, the longest first. */
  failingLong(): readonly { readonly name: Stream; readonly reason: string }[];
}

/** For so long a stream may fail before readiness counts it. */
const FAILING_LONG_MS = 10 * MINUTE_MS;

/**
 * Shows a state.
 *
 * @param outage what an outage of the whole API was noticed by; `null` while it answers.
 */
export function createStreamReport(state: ApiState, outage: () => string | null): StreamReport {
  return {
    list: () => STREAMS.map((name) => refusedBy(state, statusOf(name, state.streams[name]))),
    problem: () => (state.refusal === null ? (outage() ?? state.firstFailure) : refusalWords(state.refusal)),
    isRefused: () => state.refusal !== null,
    isListed: () => Number.isFinite(state.streams.devices.readAtMs) && state.streams.devices.missingScope === null,
    failingLong: () => failingLong(state),
  };
}

function failingLong({ streams, parts }: ApiState): { name: Stream; reason: string }[] {
  const nowMs = parts.monoMs();
  return STREAMS.flatMap((name) => {
    const { failure } = streams[name];
    return failure === null ? [] : [{ name, ...failure }];
  })
    .filter(({ sinceMs }) => nowMs - sinceMs >= FAILING_LONG_MS)
    .sort((a, b) => a.sinceMs - b.sinceMs)
    .map(({ name, reason }) => ({ name, reason }));
}

/** No stream is read while the API refuses the key, whatever its last answer was. */
function refusedBy({ refusal }: ApiState, status: StreamStatus): StreamStatus {
  return refusal === null || status.state === 'off'
    ? status
    : { ...status, state: 'failing', reason: 'the API refuses the key' };
}

function statusOf(name: Stream, { answeredAtMs, missingScope, failure }: StreamState): StreamStatus {
  const last_read_at = answeredAtMs === null ? null : formatExact(msToNs(answeredAtMs));
  if (missingScope !== null)
    return { name, state: 'off', reason: `the key lacks the scope ${missingScope}`, last_read_at };
  if (failure !== null) return { name, state: 'failing', reason: failure.reason, last_read_at };
  return { name, state: answeredAtMs === null ? 'waiting' : 'on', reason: null, last_read_at };
}
