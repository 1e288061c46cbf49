/**
 * The state of each stream of the API, from the events: whether it is read, and if not, why.
 */
import type { AppEvent, Observe } from '../core/events.ts';
import type { StreamStatus } from '../core/status.ts';
import { type EpochMs, formatExact, MINUTE_MS, msToNs } from '../core/time.ts';

/** Follows the streams by the events. */
export interface StreamTracker {
  observe(event: AppEvent): void;
  list(): readonly StreamStatus[];
  /** What keeps the API from being read; `null` while it is. */
  problem(): string | null;
  /** Whether that is a key or a plan that is refused. */
  isRefused(): boolean;
  isOff(stream: Name): boolean;
  /** Whether the last tries of a stream have failed, and it was not read to its end since. */
  isFailing(stream: Name): boolean;
  /** Streams that have done nothing but fail for so long that what is held of them cannot be relied on. */
  failingLong(): readonly { readonly name: Name; readonly reason: string }[];
}

type Name = StreamStatus['name'];

/** What is known of one stream. */
interface StreamState {
  /** When it was last read, by the server's time; `null` before the first time. */
  readAtMs: EpochMs | null;
  /** Why it is off; `null` while it is not. */
  offReason: string | null;
  /**
   * Its last failure. An answer to one of its requests does not end it: a listing may fail at its second page for ever. The
   * end of its work does, if anything was answered for it.
   */
  failure: {
    /** Since when it fails, by the monotonic clock. */
    readonly sinceMs: number;
    readonly reason: string;
    /** Whether a request of it was answered since it last failed. */
    isAnswered: boolean;
  } | null;
}

interface TrackerState {
  readonly streams: Readonly<Record<Name, StreamState>>;
  /** An outage of the whole API; `null` while it answers. */
  problem: string | null;
  /** Why the key or the plan is refused; `null` while neither is. */
  refusal: string | null;
}

interface Clocks {
  readonly serverNowMs: () => EpochMs;
  /** A clock that never jumps. */
  readonly monoMs: () => number;
}

/** For so long a stream may fail before that counts against what is held. */
const FAILING_LONG_MS = 10 * MINUTE_MS;

const NAMES: readonly Name[] = ['account', 'devices', 'telemetry', 'alerts'];

/** Creates a tracker that knows of no event. @param clocks for when a stream was last read, and for how long one fails. */
export function createStreamTracker(clocks: Clocks): StreamTracker {
  const streams = { account: newStream(), devices: newStream(), telemetry: newStream(), alerts: newStream() };
  const state: TrackerState = { streams, problem: null, refusal: null };
  return {
    observe: (event) => takeIn(state, event, clocks),
    problem: () => state.refusal ?? state.problem,
    isRefused: () => state.refusal !== null,
    isOff: (name) => streams[name].offReason !== null,
    isFailing: (name) => streams[name].failure !== null,
    failingLong: () => failingLong(state, clocks.monoMs()),
    list: () => NAMES.map((name) => statusOf(name, streams[name])),
  };
}

function newStream(): StreamState {
  return { readAtMs: null, offReason: null, failure: null };
}

function takeIn(state: TrackerState, event: AppEvent, { serverNowMs, monoMs }: Clocks): void {
  switch (event.type) {
    case 'service-trouble':
      state.problem = event.message;
      return;
    case 'key-refused':
      state.refusal = event.message;
      return;
    // The list of devices may fail just then for a reason of its own.
    case 'key-accepted':
      state.refusal = null;
      return;
    case 'stream-failed': {
      const stream = state.streams[event.stream];
      stream.failure = { sinceMs: stream.failure?.sinceMs ?? monoMs(), reason: event.message, isAnswered: false };
      // Before anything was answered at all: such as an address that is not the API's.
      if (NAMES.every((name) => state.streams[name].readAtMs === null)) state.problem = event.message;
      return;
    }
    case 'stream-off': {
      const stream = state.streams[event.stream];
      stream.offReason = `the key lacks the scope ${event.scope}`;
      stream.failure = null;
      return;
    }
    case 'stream-read': {
      const stream = state.streams[event.stream];
      if (stream.failure?.isAnswered === true) stream.failure = null;
      return;
    }
    case 'request-done':
      if (event.fault === null) takeAnswer(state, event.stream, serverNowMs());
      return;
    default:
  }
}

function takeAnswer(state: TrackerState, name: Name, nowMs: EpochMs): void {
  const stream = state.streams[name];
  state.problem = null;
  // A key that may list the devices is not refused.
  if (name === 'devices') state.refusal = null;
  stream.readAtMs = nowMs;
  stream.offReason = null;
  if (stream.failure !== null) stream.failure.isAnswered = true;
}

/** The one that has failed for longest first. */
function failingLong({ streams }: TrackerState, nowMs: number): { name: Name; reason: string }[] {
  return NAMES.map((name) => ({ name, ...streams[name] }))
    .flatMap(({ name, failure, offReason }) => (failure === null || offReason !== null ? [] : [{ name, ...failure }]))
    .filter(({ sinceMs }) => nowMs - sinceMs >= FAILING_LONG_MS)
    .sort((a, b) => a.sinceMs - b.sinceMs)
    .map(({ name, reason }) => ({ name, reason }));
}

function statusOf(name: Name, { readAtMs, offReason, failure }: StreamState): StreamStatus {
  const last_read_at = readAtMs === null ? null : formatExact(msToNs(readAtMs));
  if (offReason !== null) return { name, state: 'off', reason: offReason, last_read_at };
  if (failure !== null) return { name, state: 'failing', reason: failure.reason, last_read_at };
  return { name, state: readAtMs === null ? 'waiting' : 'on', reason: null, last_read_at };
}

/**
 * Reports once that a stream is off, and adds the events that it is on again, or read again after it had failed.
 *
 * @param notes the tracker of the events so far; `tell` must pass events on to it.
 */
export function oncePerStream(notes: Pick<StreamTracker, 'isOff' | 'isFailing'>, tell: Observe): Observe {
  return (event) => {
    if (event.type === 'stream-off' && notes.isOff(event.stream)) return;
    const stream = event.type === 'request-done' && event.fault === null ? event.stream : null;
    const isBack = stream !== null && notes.isOff(stream);
    const hadFailed = event.type === 'stream-read' && notes.isFailing(event.stream);
    tell(event);
    if (isBack) tell({ type: 'stream-on', stream });
    if (hadFailed && !notes.isFailing(event.stream)) tell({ type: 'stream-back', stream: event.stream });
  };
}

/** Whether the list of devices was read to its end, ever: if it is empty then, there are none. */
export function wasListed(streams: readonly StreamStatus[]): boolean {
  return streams.some(({ name, last_read_at }) => name === 'devices' && last_read_at !== null);
}
