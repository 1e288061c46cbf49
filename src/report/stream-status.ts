/**
 * How each stream of the API does: read or not, and why not. Kept from the events, for the report.
 */
import type { AppEvent, Observe } from '../core/events.ts';
import type { StreamStatus } from '../core/status.ts';
import { type EpochMs, formatExact, MINUTE_MS, msToNs } from '../core/time.ts';

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

/** What is known of a stream that fails. */
interface Failing {
  /** By the monotonic clock. */
  readonly sinceMs: number;
  readonly reason: string;
  /** Whether a request of it was answered since it last failed. */
  isAnswered: boolean;
}

/** For so long a stream may fail before that counts against what is held. */
const FAILING_LONG_MS = 10 * MINUTE_MS;

const NAMES: readonly Name[] = ['account', 'devices', 'telemetry', 'alerts'];

/** @param clocks the server's time, for when a stream was last read; a clock that never jumps, for how long one fails. */
export function createStreamTracker(clocks: { serverNowMs: () => EpochMs; monoMs: () => number }): StreamTracker {
  const readAtMs = new Map<Name, EpochMs>();
  const off = new Map<Name, string>();
  const failing = createFailures(clocks.monoMs);
  let problem: string | null = null;
  let refusal: string | null = null;
  return {
    observe: (event) => {
      failing.observe(event);
      if (event.type === 'pass-failed' || event.type === 'service-trouble') problem = event.message;
      // Before anything was answered at all: such as an address that is not the API's.
      if (event.type === 'stream-failed' && readAtMs.size === 0) problem = event.message;
      refusal = refusalAfter(event, refusal);
      if (event.type === 'stream-off') off.set(event.stream, `the key lacks the scope ${event.scope}`);
      if (event.type !== 'request-done' || event.fault !== null) return;
      problem = null;
      const { stream } = event;
      // The devices are what nothing can do without.
      if (stream === 'devices') refusal = null;
      readAtMs.set(stream, clocks.serverNowMs());
      off.delete(stream);
    },
    problem: () => refusal ?? problem,
    isRefused: () => refusal !== null,
    isOff: (stream) => off.has(stream),
    isFailing: (stream) => failing.reasonOf(stream) !== null,
    failingLong: () => failing.long().filter(({ name }) => !off.has(name)),
    list: () =>
      NAMES.map((name) => {
        const at = readAtMs.get(name);
        const why = { off: off.get(name) ?? null, failing: failing.reasonOf(name) };
        return {
          name,
          state: stateOf(why, at !== undefined),
          reason: why.off ?? why.failing,
          last_read_at: at === undefined ? null : formatExact(msToNs(at)),
        };
      }),
  };
}

/** A key is taken again also where the list of devices fails just then, for a reason of its own. */
function refusalAfter(event: AppEvent, before: string | null): string | null {
  if (event.type === 'key-refused') return event.message;
  return event.type === 'key-accepted' ? null : before;
}

function stateOf(why: { off: string | null; failing: string | null }, wasRead: boolean): StreamStatus['state'] {
  if (why.off !== null) return 'off';
  if (why.failing !== null) return 'failing';
  return wasRead ? 'on' : 'waiting';
}

interface Failures {
  observe(event: AppEvent): void;
  reasonOf(stream: Name): string | null;
  long(): { name: Name; reason: string }[];
}

/**
 * The last failure of each stream. That one of its requests is answered does not end it: a listing may fail at its
 * second page for ever. That its work has come to an end does, if anything was answered for it.
 */
function createFailures(monoMs: () => number): Failures {
  const failing = new Map<Name, Failing>();
  return {
    observe: (event) => {
      if (event.type === 'stream-failed') {
        const sinceMs = failing.get(event.stream)?.sinceMs ?? monoMs();
        failing.set(event.stream, { sinceMs, reason: event.message, isAnswered: false });
      }
      if (event.type === 'stream-off') failing.delete(event.stream);
      if (event.type === 'request-done' && event.fault === null) {
        const failed = failing.get(event.stream);
        if (failed !== undefined) failed.isAnswered = true;
      }
      if (event.type === 'stream-read' && failing.get(event.stream)?.isAnswered === true) failing.delete(event.stream);
    },
    reasonOf: (stream) => failing.get(stream)?.reason ?? null,
    long: () =>
      [...failing]
        .filter(([, { sinceMs }]) => monoMs() - sinceMs >= FAILING_LONG_MS)
        .map(([name, { reason }]) => ({ name, reason })),
  };
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
