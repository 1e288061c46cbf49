/**
 * The last lines of the log, for the status page. They are stored, so that the next process shows them too.
 *
 * They have the messages and levels of the log, without repetitions and secrets. Lines of the level `debug` and of
 * routine events (the summaries of the polls) are left out, whatever level the log has.
 */
import type { Observe } from '../core/events.ts';
import { isRecord, parseJson } from '../core/json.ts';
import type { RecentEvent } from '../core/page-facts.ts';
import type { Clock } from '../core/ports.ts';
import type { Scrub } from '../core/secret.ts';
import { formatMs } from '../core/time.ts';
import { rowOf } from './event-table.ts';
import { cleanerOf, type LineWriter, logEvents, MAX_MESSAGE_LENGTH } from './log.ts';

/** The most events that are kept for the status page. */
export const MOST_RECENT = 100;

interface RecentEvents {
  readonly observe: Observe;
  /** Removes the lines about a device. */
  forget(deviceId: string): void;
  /** The kept events, newest first. */
  latest(): readonly RecentEvent[];
  /** All kept events as text, for `before` of the next process; `null` if nothing has changed since the last call. */
  takeUnsaved(): string | null;
}

interface RecentParts {
  readonly clock: Pick<Clock, 'nowMs' | 'monoMs'>;
  readonly scrub: Scrub;
  /** The result of `takeUnsaved` that an earlier process stored; `null` for nothing. */
  readonly before?: string | null;
}

/** Keeps the last lines: stored ones of an earlier process, and those from now on. */
export function createRecentEvents({ clock, scrub, before = null }: RecentParts): RecentEvents {
  let recent = readRecent(before);
  let isKept = true;
  const clean = cleanerOf(scrub);
  const line: LineWriter = (level, message, { event, ...fields }) => {
    // Routine lines, one per minute, would push out the others.
    if (level === 'debug' || rowOf(event).isRoutine === true) return;
    const { device_id, ...others } = fields;
    const details = Object.entries(others).filter(([, value]) => value !== null);
    recent.push({
      at: formatMs(clock.nowMs()),
      level,
      event,
      message: clean(message, MAX_MESSAGE_LENGTH),
      device_id: device_id == null ? null : clean(String(device_id)),
      details: details.map(([key, value]) => `${key.replaceAll('_', ' ')} ${clean(String(value))}`).join(', '),
    });
    if (recent.length > MOST_RECENT) recent.shift();
    isKept = false;
  };
  const write = logEvents({ takes: (level) => level !== 'debug', line }, clock);
  return {
    observe: write,
    forget: (deviceId) => {
      const shown = clean(deviceId);
      recent = recent.filter(({ device_id }) => device_id !== shown);
      isKept = false;
    },
    latest: () => recent.toReversed(),
    takeUnsaved: () => {
      if (isKept) return null;
      isKept = true;
      return JSON.stringify(recent);
    },
  };
}

/**
 * Reads the stored lines of an earlier process. Damaged lines, and lines of another version, are ignored: the log has
 * all lines.
 */
function readRecent(text: string | null): RecentEvent[] {
  const value = parseJson(text);
  return Array.isArray(value) ? value.filter(isRecentEvent).slice(-MOST_RECENT) : [];
}

function isRecentEvent(value: unknown): value is RecentEvent {
  if (!isRecord(value)) return false;
  const { at, level, event, message, device_id, details } = value;
  const texts = [at, event, message, details].every((each) => typeof each === 'string');
  return (
    texts &&
    (level === 'info' || level === 'warn' || level === 'error') &&
    (device_id === null || typeof device_id === 'string')
  );
}
