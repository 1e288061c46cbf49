/**
 * How each stream of the API does: read or not, and why not. Kept from the events, for the report.
 */
import type { AppEvent } from '../core/events.ts';
import type { Observe } from '../core/ports.ts';
import type { StreamStatus } from '../core/status.ts';
import { type EpochMs, formatExact, msToNs } from '../core/time.ts';

export interface StreamNotes {
  observe(event: AppEvent): void;
  list(): readonly StreamStatus[];
  /** What keeps the API from being read; `null` while it is. */
  trouble(): string | null;
  isOff(stream: Name): boolean;
}

type Name = StreamStatus['name'];

/** @param serverNowMs the server's time, for when a stream was last read. */
export function createStreamNotes(serverNowMs: () => EpochMs): StreamNotes {
  const readAtMs = new Map<Name, EpochMs>();
  const off = new Map<Name, string>();
  let trouble: string | null = null;
  let refusal: string | null = null;
  return {
    observe: (event) => {
      if (event.type === 'pass-failed' || event.type === 'service-trouble') trouble = event.message;
      // Before anything was answered at all: such as an address that is not the API's.
      if (event.type === 'stream-failed' && readAtMs.size === 0) trouble = event.message;
      if (event.type === 'key-refused') refusal = event.message;
      if (event.type === 'stream-off') off.set(event.stream, `the key lacks the scope ${event.scope}`);
      if (event.type !== 'request-done' || event.fault !== null) return;
      trouble = null;
      const name = streamOf(event.request);
      // The devices are what nothing can do without.
      if (name === 'devices') refusal = null;
      readAtMs.set(name, serverNowMs());
      off.delete(name);
    },
    trouble: () => refusal ?? trouble,
    isOff: (stream) => off.has(stream),
    list: () =>
      (['account', 'devices', 'telemetry', 'alerts'] as const).map((name) => {
        const at = readAtMs.get(name);
        const reason = off.get(name) ?? null;
        return {
          name,
          state: reason === null ? (at === undefined ? 'waiting' : 'on') : 'off',
          reason,
          last_read_at: at === undefined ? null : formatExact(msToNs(at)),
        };
      }),
  };
}

/** The stream that a request was for, by its path. */
function streamOf(request: string): Name {
  if (request.includes('/telemetry')) return 'telemetry';
  if (request.includes('/account')) return 'account';
  return request.includes('/alerts') ? 'alerts' : 'devices';
}

/**
 * Lets a stream that is off be told once, and tells when it is on again.
 *
 * @param notes what the events so far have told; takes part in `tell`.
 */
export function oncePerStream(notes: Pick<StreamNotes, 'isOff'>, tell: Observe): Observe {
  return (event) => {
    if (event.type === 'stream-off' && notes.isOff(event.stream)) return;
    const stream = event.type === 'request-done' && event.fault === null ? streamOf(event.request) : null;
    const isBack = stream !== null && notes.isOff(stream);
    tell(event);
    if (isBack) tell({ type: 'stream-on', stream });
  };
}
