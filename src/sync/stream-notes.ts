/**
 * How each stream of the API does: read or not, and why not. Kept from the events, for the report.
 */
import type { AppEvent } from '../core/events.ts';
import type { StreamStatus } from '../core/status.ts';
import { type EpochMs, formatExact, msToNs } from '../core/time.ts';

export interface StreamNotes {
  observe(event: AppEvent): void;
  list(): readonly StreamStatus[];
  /** What keeps the API from being read; `null` while it is. */
  trouble(): string | null;
}

type Name = StreamStatus['name'];

/** @param serverNowMs the server's time, for when a stream was last read. */
export function createStreamNotes(serverNowMs: () => EpochMs): StreamNotes {
  const readAtMs = new Map<Name, EpochMs>();
  const off = new Map<Name, string>();
  let trouble: string | null = null;
  return {
    observe: (event) => {
      if (event.type === 'pass-failed') trouble = event.message;
      if (event.type === 'stream-off') off.set(event.stream, `the key lacks the scope ${event.scope}`);
      if (event.type !== 'request-done' || event.fault !== null) return;
      trouble = null;
      const name = streamOf(event.request);
      readAtMs.set(name, serverNowMs());
      off.delete(name);
    },
    trouble: () => trouble,
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
