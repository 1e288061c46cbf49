/**
 * Limits how often the log repeats itself.
 *
 * An outage (an API that is down, a database that accepts nothing) is logged when it begins, when its message changes,
 * once an hour while it lasts, and when it ends. Any other repeated event (a device that sends values no point can
 * hold) is logged once an hour. Each of these lines has the number of events that were left out before it. There are at
 * most a few lines a minute of each kind.
 *
 * An outage that begins again after its end was logged is logged at once. One that comes and goes all the time is
 * logged a few times in ten minutes, beginning and end, and then neither, unless its reason is new or its level worse.
 * Memory is bounded.
 */

import type { AppEvent } from '../core/events.ts';
import type { Clock } from '../core/ports.ts';
import { withoutIds } from '../core/text.ts';
import { HOUR_MS, MINUTE_MS } from '../core/time.ts';
import type { LineLevel } from './event-row.ts';
import { rowOf } from './event-table.ts';

/** How often a continuing outage, or any other continuing event, is logged. */
const REPEAT_MS = HOUR_MS;

/** How many beginnings of an unsteady outage are logged within a time. After that it is only counted. */
const UNSTEADY = { begins: 2, withinMs: 10 * MINUTE_MS };

/** The most wordings of one outage in an hour: some servers put their own number into each answer. */
const MAX_MESSAGES = 5;

/** A brief kind counts as over if it has not occurred for this long. */
const QUIET_MS = 10 * MINUTE_MS;

/** The most kinds that are remembered. */
const MOST_KINDS = 5000;

/** The most lines of one event and level within a period. */
const LIMIT = { lines: 10, periodMs: MINUTE_MS };

/** Returns how many events like this one were suppressed before it; `null` if this one is suppressed as well. */
type Admission = (event: AppEvent, level: LineLevel) => number | null;

/** Suppresses repetitions, and events beyond the limit per minute. Its memory is empty at first. */
export function createAdmission({ monoMs }: Pick<Clock, 'monoMs'>): Admission {
  const outages = new Map<string, Outage>();
  const kinds = new Map<string, Kind>();
  const periods = new Map<string, Period>();
  return (event, level) => {
    const nowMs = monoMs();
    const repeated = countByRule({ outages, kinds }, event, level, nowMs);
    const beyond = repeated === null ? null : countByLimit(periods, `${event.type} ${level}`, nowMs);
    return repeated === null || beyond === null ? null : repeated + beyond;
  };
}

/** The level and message of an outage's log line. */
interface Wording {
  readonly level: LineLevel;
  readonly message: string;
}

/** When a wording was logged last, and at which level. */
interface Logged {
  readonly level: LineLevel;
  readonly atMs: number;
}

/** The key of a wording, the same for all that differ only in ids. A status and other short numbers are kept. */
function keyOf({ level, message }: Wording): string {
  return `${level} ${withoutIds(message, 4)}`;
}

/** The log lines about one outage, which decide whether the next one is written. */
interface Outage {
  /** When each wording was logged; empty while the outage is over or was not logged. */
  readonly logged: Map<string, Logged>;
  /** When each wording was last logged, including before the last end. */
  readonly everLogged: Map<string, Logged>;
  /** When its recent beginnings were logged. */
  begunMs: readonly number[];
  suppressed: number;
}

/** The record of a kind of event that has no end. */
interface Kind {
  readonly loggedMs: number;
  lastMs: number;
  suppressed: number;
}

interface Memory {
  readonly outages: Map<string, Outage>;
  readonly kinds: Map<string, Kind>;
}

function countByRule({ outages, kinds }: Memory, event: AppEvent, level: LineLevel, nowMs: number): number | null {
  const { repeats } = rowOf(event.type);
  if (repeats === undefined) return 0;
  if ('outage' in repeats) {
    const about = repeats.outage(event);
    const outage = outages.get(about) ?? { logged: new Map(), everLogged: new Map(), begunMs: [], suppressed: 0 };
    outages.set(about, outage);
    return noteOutage(outage, { level, message: repeats.message?.(event) ?? '' }, nowMs);
  }
  if ('ends' in repeats) {
    const suppressed = noteOutageEnd(outages.get(repeats.ends(event)));
    return repeats.alwaysLogged?.(event) === true ? (suppressed ?? 0) : suppressed;
  }
  const quietMs = repeats.isBrief === true ? QUIET_MS : REPEAT_MS;
  return noteKind(kinds, `${event.type} ${level} ${repeats.alike(event)}`, { nowMs, quietMs });
}

function noteOutage(outage: Outage, wording: Wording, nowMs: number): number | null {
  const isNew = outage.logged.size === 0;
  const begun = outage.begunMs.filter((atMs) => nowMs - atMs < UNSTEADY.withinMs);
  const isLogged =
    isNew && begun.length < UNSTEADY.begins ? true : isNews(isNew ? outage.everLogged : outage.logged, wording, nowMs);
  if (isNew) outage.begunMs = isLogged ? [...begun, nowMs] : begun;
  if (!isLogged) {
    outage.suppressed += 1;
    return null;
  }
  const key = keyOf(wording);
  const logged: Logged = { level: wording.level, atMs: nowMs };
  outage.logged.set(key, logged);
  for (const [each, { atMs }] of outage.everLogged) if (nowMs - atMs >= REPEAT_MS) outage.everLogged.delete(each);
  outage.everLogged.set(key, logged);
  return takeSuppressed(outage);
}

/** Whether a logged outage is logged again: it has another message or a worse level, or an hour has passed. */
function isNews(logged: ReadonlyMap<string, Logged>, wording: Wording, nowMs: number): boolean {
  const last = logged.get(keyOf(wording));
  if (last !== undefined) return nowMs - last.atMs >= REPEAT_MS;
  const lately = [...logged.values()].filter(({ atMs }) => nowMs - atMs < REPEAT_MS);
  const isWorse = wording.level === 'error' && !lately.some(({ level }) => level === 'error');
  return isWorse || lately.length < MAX_MESSAGES;
}

/** If an outage was not logged, its end is not logged either. */
function noteOutageEnd(outage: Outage | undefined): number | null {
  if (outage === undefined || outage.logged.size === 0) return null;
  outage.logged.clear();
  return takeSuppressed(outage);
}

function takeSuppressed(outage: Outage): number {
  const { suppressed } = outage;
  outage.suppressed = 0;
  return suppressed;
}

function noteKind(
  kinds: Map<string, Kind>,
  name: string,
  { nowMs, quietMs }: { readonly nowMs: number; readonly quietMs: number },
): number | null {
  const kind = kinds.get(name);
  if (kind !== undefined && nowMs - kind.loggedMs < REPEAT_MS && nowMs - kind.lastMs < quietMs) {
    kind.suppressed += 1;
    kind.lastMs = nowMs;
    return null;
  }
  // Kinds that would be logged again anyway are dropped first.
  if (kinds.size >= MOST_KINDS) {
    for (const [each, { loggedMs }] of kinds) if (nowMs - loggedMs >= REPEAT_MS) kinds.delete(each);
  }
  kinds.set(name, { loggedMs: nowMs, lastMs: nowMs, suppressed: 0 });
  return kind?.suppressed ?? 0;
}

/** The lines of one event and level since the period began. */
interface Period {
  readonly sinceMs: number;
  written: number;
  suppressed: number;
}

function countByLimit(periods: Map<string, Period>, name: string, nowMs: number): number | null {
  const period = periods.get(name);
  if (period === undefined || nowMs - period.sinceMs >= LIMIT.periodMs) {
    periods.set(name, { sinceMs: nowMs, written: 1, suppressed: 0 });
    return period?.suppressed ?? 0;
  }
  if (period.written < LIMIT.lines) {
    period.written += 1;
    return 0;
  }
  period.suppressed += 1;
  return null;
}
