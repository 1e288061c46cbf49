/**
 * The state of the API: which streams were read, which fail or are off, and whether the key is rejected.
 *
 * The record has one writer for each fact: the functions below. They emit an event once for each change. `--once`, a
 * backfill and a job read the record; `--status`, the metrics and readiness read the `StreamReport` of it. The reason
 * why the API cannot be read is also written to the state, for a `--status` in another process.
 *
 * | call | the stream afterwards | event |
 * | --- | --- | --- |
 * | `noteAnswered` | answered now; no longer off | `stream-on` where it was off |
 * | `noteOff` | off: the key has no scope for it; not failing | `stream-off` where it was not off |
 * | `noteStreamFailed` | failing, until its work ends after an answer | `stream-failed` |
 * | `noteRead` | read now; not failing if answered since | `stream-read`, and `stream-recovered` if it had failed |
 */
import type { Observe } from '../core/events.ts';
import { type ApiFault, rejectionText } from '../core/faults.ts';
import { isNumber, isText, orNone, parseAs, shapeOf } from '../core/json.ts';
import { type RequestLane, STREAMS, type Stream } from '../core/ports.ts';
import type { StreamFacts } from '../core/state/state.ts';
import type { StreamStatus } from '../core/status.ts';
import { type EpochMs, MINUTE_MS, SECOND_MS, timeText } from '../core/time.ts';
import type { OutageWatch } from '../ingest/outage.ts';

/** How the requests of one stream were answered. */
interface StreamState {
  /** When its work last ended, or its scope turned out to be missing, by the monotonic clock. */
  readAtMs: number;
  /** When the API last answered one of its requests, in the server's time; `null` before the first answer. */
  answeredAtMs: EpochMs | null;
  /** The missing scope; `null` while the stream is on. */
  missingScope: string | null;
  /**
   * Its last failure; `null` while it does not fail. An answer to one request does not clear it, because a listing may
   * fail at its second page forever. Reading the stream to its end does.
   */
  failure: {
    /** When the failure began, by the monotonic clock. */
    readonly sinceMs: number;
    readonly reason: string;
    readonly isAnswered: boolean;
  } | null;
}

interface ApiStateParts {
  readonly observe: Observe;
  readonly serverNowMs: () => EpochMs;
  /** The monotonic clock. */
  readonly monoMs: () => number;
  /** Called when the reason why the API cannot be read may have changed. */
  readonly problemChanged?: () => void;
}

/** How the API has answered, for all streams. */
export interface ApiState {
  readonly parts: ApiStateParts;
  readonly streams: Readonly<Record<Stream, StreamState>>;
  /** Lanes whose last task has failed. */
  readonly failing: Set<RequestLane>;
  /** When a task last failed, by the monotonic clock. */
  failedAtMs: number;
  /** Why the last task failed if the service did not answer at all; `null` once a task has succeeded. */
  fault: string | null;
  /** The rejection of the key or its plan; `null` while the key works. */
  rejection: ApiFault | null;
  /** Whether the key has changed since that rejection. */
  hasOtherKey: boolean;
  /** When the API is tried again after a rejection, by the monotonic clock. */
  retryAtMs: number;
  /** The failure of the first requests; `null` once any request was answered. */
  firstFailure: string | null;
}

/** Creates the state before the first request. */
export function createApiState(parts: ApiStateParts): ApiState {
  const unread = (): StreamState => ({
    readAtMs: Number.NEGATIVE_INFINITY,
    answeredAtMs: null,
    missingScope: null,
    failure: null,
  });
  return {
    parts,
    streams: { account: unread(), devices: unread(), telemetry: unread(), alerts: unread() },
    failing: new Set(),
    failedAtMs: Number.NEGATIVE_INFINITY,
    fault: null,
    rejection: null,
    hasOtherKey: false,
    retryAtMs: 0,
    firstFailure: null,
  };
}

/** Records that a request of a stream was answered without a fault. */
export function noteAnswered(state: ApiState, name: Stream): void {
  const { observe, serverNowMs } = state.parts;
  const stream = state.streams[name];
  const wasOff = stream.missingScope !== null;
  state.firstFailure = null;
  stream.answeredAtMs = serverNowMs();
  stream.missingScope = null;
  if (stream.failure !== null) stream.failure = { ...stream.failure, isAnswered: true };
  if (wasOff) observe({ type: 'stream-on', stream: name });
  // A key that may list the devices is not rejected.
  if (name === 'devices') noteAccepted(state);
  state.parts.problemChanged?.();
}

/** Records that the key does not have the scope of a stream. */
export function noteOff(state: ApiState, name: Stream, scope: string): void {
  const stream = state.streams[name];
  const wasOn = stream.missingScope === null;
  Object.assign(stream, { missingScope: scope, failure: null, readAtMs: state.parts.monoMs() });
  if (wasOn) state.parts.observe({ type: 'stream-off', stream: name, scope });
  state.parts.problemChanged?.();
}

/** Records that a stream could not be read. */
export function noteStreamFailed(state: ApiState, name: Stream, reason: string): void {
  const stream = state.streams[name];
  const { monoMs, observe } = state.parts;
  stream.failure = { sinceMs: stream.failure?.sinceMs ?? monoMs(), reason, isAnswered: false };
  // No request was answered yet: the address may not be the API's.
  if (Object.values(state.streams).every(({ answeredAtMs }) => answeredAtMs === null)) state.firstFailure = reason;
  observe({ type: 'stream-failed', stream: name, message: reason });
  state.parts.problemChanged?.();
}

/** Records that work for a stream ended. Work that sent no request does not turn a stream on. */
export function noteRead(state: ApiState, name: Stream): void {
  const { monoMs, observe } = state.parts;
  const stream = state.streams[name];
  if (stream.missingScope !== null) return;
  const isBack = stream.failure?.isAnswered === true;
  stream.readAtMs = monoMs();
  if (isBack) stream.failure = null;
  observe({ type: 'stream-read', stream: name });
  if (isBack) observe({ type: 'stream-recovered', stream: name });
}

/**
 * Records that the API rejects the key or its plan.
 *
 * @param message the failure and its remedy, for people.
 */
export function noteRejected(state: ApiState, fault: ApiFault, message: string, waitMs: number): void {
  state.rejection = fault;
  state.hasOtherKey = false;
  state.retryAtMs = state.parts.monoMs() + waitMs;
  state.parts.observe({ type: 'key-refused', message, waitMs });
  state.parts.problemChanged?.();
}

/** Clears a rejection of the key, if there was one, and reports that. */
export function noteAccepted(state: ApiState): void {
  if (state.rejection === null) return;
  state.rejection = null;
  state.parts.observe({ type: 'key-accepted', isOther: state.hasOtherKey });
  state.parts.problemChanged?.();
}

/** Clears the failure of a lane and of the API, because one of its tasks has succeeded. */
export function noteWorked(state: ApiState, lane: RequestLane): void {
  state.failing.delete(lane);
  state.fault = null;
}

/** A task that ended in a fault. */
interface FailedWork {
  readonly lane: RequestLane;
  readonly fault: ApiFault;
  /** Whether no other request was answered either. */
  readonly isService: boolean;
}

/** Marks the lane as failing, and the API as failing if `isService`. A requested wait counts as no failure. */
export function noteFailed(state: ApiState, { lane, fault, isService }: FailedWork): void {
  // A wait that the server requests is no failure.
  if (fault.kind === 'throttled') return;
  state.failing.add(lane);
  state.failedAtMs = state.parts.monoMs();
  if (isService) state.fault = fault.message;
}

/** The status of the streams for reports, and why the API cannot be read. */
export interface StreamReport {
  list(): readonly StreamStatus[];
  /** Whether the devices were listed completely since the start. */
  isListed(): boolean;
  /** The reason why the API cannot be read; `null` if it can. */
  problem(): string | null;
  /** Whether the reason is a rejected key or plan. */
  isKeyRejected(): boolean;
  /** How long until an API that cannot be read is tried again, in ms; `null` if it can be read, or that is unknown. */
  nextAttemptInMs(): number | null;
  /** Streams that have failed for so long that their stored data may be out of date, the longest first. */
  failingLong(): readonly { readonly name: Stream; readonly reason: string }[];
}

/** The reason why the API cannot be read. */
interface ApiProblem {
  readonly code: 'key_refused' | 'api_unreachable';
  readonly text: string;
  /** When an API that does not answer is tried again. */
  readonly retryAtMs?: EpochMs | undefined;
}

const isApiProblem = shapeOf<ApiProblem>({
  code: (value) => value === 'key_refused' || value === 'api_unreachable',
  text: isText,
  retryAtMs: orNone(isNumber),
});

/** How an outage of the whole API was noticed, and when the next try is made. */
type OutageNow = Pick<OutageWatch, 'problem' | 'retryInMs'>;

/** Returns why the API cannot be read; `null` if it can be read. */
function apiProblem({ rejection, firstFailure }: ApiState, outage: OutageNow): ApiProblem | null {
  if (rejection !== null) return { code: 'key_refused', text: rejectionText(rejection) };
  const text = outage.problem() ?? firstFailure;
  return text === null ? null : { code: 'api_unreachable', text };
}

/** The key of the fact that holds the problem, as JSON. */
export const API_PROBLEM = 'api_problem';

/** The current value of the fact; `null` without a problem. */
export function problemFact(state: ApiState, outage: OutageNow): string | null {
  const problem = apiProblem(state, outage);
  if (problem === null) return null;
  const retryInMs = problem.code === 'key_refused' ? null : outage.retryInMs();
  if (retryInMs === null) return JSON.stringify(problem);
  // Whole seconds, so that the fact does not change between two failures.
  const retryAtMs = Math.ceil((state.parts.serverNowMs() + retryInMs) / SECOND_MS) * SECOND_MS;
  return JSON.stringify({ ...problem, retryAtMs });
}

/**
 * Returns why the API cannot be read, from the state alone.
 *
 * @param noted the fact as it was written; empty without a problem.
 * @param streams the streams according to the stored requests.
 * @param requests their last answers and failures; a key that a command uses is rejected without the fact.
 * @param nowMs the time of the report.
 */
export function storedProblem(
  noted: string,
  streams: readonly StreamStatus[],
  requests: readonly StreamFacts[],
  nowMs: EpochMs,
): Pick<StreamReport, 'list' | 'problem' | 'isKeyRejected' | 'nextAttemptInMs'> {
  const problem = parseAs(noted, isApiProblem) ?? storedRejection(requests);
  const isKeyRejected = problem?.code === 'key_refused';
  const retryInMs = (problem?.retryAtMs ?? 0) - nowMs;
  const list = streams.map((status) => unreadBy(problem, status));
  return {
    list: () => list,
    problem: () => problem?.text ?? null,
    isKeyRejected: () => isKeyRejected,
    nextAttemptInMs: () => (retryInMs >= 0 ? retryInMs : null),
  };
}

/** The rejection of the key in the stored requests; `null` if there is none, or if the API has answered since. */
function storedRejection(requests: readonly StreamFacts[]): ApiProblem | null {
  const answeredMs = Math.max(...requests.map(({ readAtMs }) => readAtMs ?? 0));
  const kinds = requests.flatMap(({ failure }) => (failure !== null && failure.atMs > answeredMs ? failure.fault : []));
  const kind = (['unauthorized', 'no-api-access'] as const).find((each) => kinds.includes(each));
  return kind === undefined ? null : { code: 'key_refused', text: rejectionText({ kind, facts: {} }) };
}

/**
 * How long a stream may fail before readiness counts it. One failed request is no failure of the stream: other requests
 * may have been answered a moment before and after.
 */
export const FAILING_LONG_MS = 10 * MINUTE_MS;

/** Creates the report of a state. */
export function createStreamReport(state: ApiState, outage: OutageNow): StreamReport {
  return {
    list: () => {
      const problem = apiProblem(state, outage);
      return STREAMS.map((name) => unreadBy(problem, streamStatus(name, state.streams[name])));
    },
    problem: () => apiProblem(state, outage)?.text ?? null,
    isKeyRejected: () => state.rejection !== null,
    nextAttemptInMs: () =>
      state.rejection === null ? outage.retryInMs() : Math.max(0, state.retryAtMs - state.parts.monoMs()),
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

/** No stream is read while the API cannot be read, whatever its last answer was. */
function unreadBy(problem: ApiProblem | null, status: StreamStatus): StreamStatus {
  if (problem === null || status.state === 'off') return status;
  if (problem.code === 'key_refused') return { ...status, state: 'failing', reason: 'the API rejects the key' };
  return { ...status, state: 'failing', reason: status.reason ?? 'the API cannot be read' };
}

function streamStatus(name: Stream, { answeredAtMs, missingScope, failure }: StreamState): StreamStatus {
  const last_read_at = timeText(answeredAtMs);
  if (missingScope !== null)
    return { name, state: 'off', reason: `the key lacks the scope ${missingScope}`, last_read_at };
  if (failure !== null) return { name, state: 'failing', reason: failure.reason, last_read_at };
  return { name, state: answeredAtMs === null ? 'waiting' : 'on', reason: null, last_read_at };
}
