/**
 * What has been told already and stays so: a service that is down, a database that is held, a device that sends what no
 * point can hold. Told once, every hour with how often it came meanwhile, and when it is over.
 *
 * Promises: what begins anew after its end was told is told at once; what comes and goes all the time is told both ways a
 * few times in ten minutes, and else neither way; the memory has an end.
 */
import type { AppEvent } from '../core/events.ts';
import type { Clock } from '../core/ports.ts';
import { HOUR_MS, MINUTE_MS } from '../core/time.ts';
import type { LineLevel } from './event-lines.ts';

/** @returns how many like it were kept back before this event, which is to be told; `null`: it is not. */
export type Repeats = (event: AppEvent, level: LineLevel) => number | null;

/** What stays is told this often. */
const AGAIN_MS = HOUR_MS;

/** What comes and goes begins so often in so long, before it is only counted. */
const UNSTEADY = { begins: 2, withinMs: 10 * MINUTE_MS };

/** So many ways to say one trouble are told in an hour: some servers put a number of their own into each answer. */
const MOST_WORDS = 5;

/** What has not come for so long and has no end of its own is over. */
const CALM_MS = 10 * MINUTE_MS;

/** So many kinds are remembered before those are forgotten that would be told again anyway. */
const MOST_KINDS = 5000;

type Of<R> = { readonly [T in AppEvent['type']]?: (event: Extract<AppEvent, { type: T }>) => R };

/** Troubles with an end: what each is about, and the words whose change is news. */
const TROUBLES: Of<{ readonly about: string; readonly words: string }> = {
  'stream-failed': ({ stream }) => ({ about: `stream ${stream}`, words: '' }),
  'service-trouble': () => ({ about: 'service', words: '' }),
  'pass-failed': () => ({ about: 'pass', words: '' }),
  'key-refused': ({ message }) => ({ about: 'key', words: message }),
  'destination-held': ({ destination, words }) => ({ about: `destination ${destination}`, words }),
  'pulling-stopped': () => ({ about: 'room', words: '' }),
};

/** What ends a trouble. `isNews`: told also where the trouble was not. */
const ENDS: Of<{ readonly about: string; readonly isNews?: true }> = {
  'stream-back': ({ stream }) => ({ about: `stream ${stream}` }),
  'stream-off': ({ stream }) => ({ about: `stream ${stream}`, isNews: true }),
  'service-back': () => ({ about: 'service' }),
  'pass-back': () => ({ about: 'pass' }),
  'key-accepted': () => ({ about: 'key' }),
  'key-exchanged': () => ({ about: 'key', isNews: true }),
  'destination-moving': ({ destination }) => ({ about: `destination ${destination}` }),
  'pulling-resumed': () => ({ about: 'room' }),
};

/** What has no end of its own, by its kind. */
const SINGLE: Of<string> = {
  'allowance-wait': ({ reason }) => reason,
  'request-retried': ({ fault }) => fault,
  'records-rejected': ({ stream, reason }) => `${stream} ${reason}`,
  'values-dropped': ({ deviceId, reason }) => `${deviceId} ${reason}`,
  'page-distrusted': ({ deviceId, reason }) => `${deviceId} ${reason}`,
  restatement: ({ deviceId }) => deviceId,
  'readings-late': ({ deviceId }) => deviceId,
  'gap-named': ({ deviceId, reason }) => `${deviceId} ${reason}`,
  'lines-quarantined': ({ destination, words }) => `${destination} ${words}`,
  'lines-beyond-retention': ({ destination }) => destination,
};

/** A memory of what was told; empty at first. */
export function createRepeats(clock: Pick<Clock, 'monoMs'>): Repeats {
  const troubles = createTroubles(clock);
  const tally = createTally(clock);
  return (event, level) => {
    const trouble = ruled(TROUBLES, event);
    if (trouble !== null) return troubles.came(trouble.about, `${level} ${trouble.words}`);
    const end = ruled(ENDS, event);
    if (end !== null) {
      const heldBack = troubles.ended(end.about);
      return end.isNews === true ? (heldBack ?? 0) : heldBack;
    }
    const kind = ruled(SINGLE, event);
    if (kind === null) return 0;
    return tally(`${event.type} ${level} ${kind}`, event.type === 'request-retried' ? CALM_MS : AGAIN_MS);
  };
}

function ruled<R>(rules: Of<R>, event: AppEvent): R | null {
  // The table's type ties every kind of event to its rule; only a call by name loses sight of that.
  const rule = rules[event.type] as ((event: AppEvent) => R) | undefined;
  return rule?.(event) ?? null;
}

interface Troubles {
  /** @returns how many were kept back before this one, which is to be told; `null`: it is not. */
  came(about: string, words: string): number | null;
  /** @returns how many were kept back since it was told last; `null` where it was not told that there is one. */
  ended(about: string): number | null;
}

interface Trouble {
  /** When each way of saying it was told; none where nobody knows of it. */
  readonly told: Map<string, number>;
  /** When it was told as a new one. */
  begunMs: readonly number[];
  heldBack: number;
}

function createTroubles({ monoMs }: Pick<Clock, 'monoMs'>): Troubles {
  const known = new Map<string, Trouble>();
  return {
    came: (about, words) => {
      const trouble = known.get(about) ?? { told: new Map(), begunMs: [], heldBack: 0 };
      known.set(about, trouble);
      if (!isDue(trouble, words, monoMs())) {
        trouble.heldBack += 1;
        return null;
      }
      trouble.told.set(words, monoMs());
      return takeHeldBack(trouble);
    },
    ended: (about) => {
      const trouble = known.get(about);
      if (trouble === undefined || trouble.told.size === 0) return null;
      trouble.told.clear();
      return takeHeldBack(trouble);
    },
  };
}

function isDue(trouble: Trouble, words: string, nowMs: number): boolean {
  if (trouble.told.size === 0) {
    const lately = trouble.begunMs.filter((atMs) => nowMs - atMs < UNSTEADY.withinMs);
    const isSteady = lately.length < UNSTEADY.begins;
    trouble.begunMs = isSteady ? [...lately, nowMs] : lately;
    return isSteady;
  }
  const toldMs = trouble.told.get(words);
  if (toldMs !== undefined) return nowMs - toldMs >= AGAIN_MS;
  return [...trouble.told.values()].filter((atMs) => nowMs - atMs < AGAIN_MS).length < MOST_WORDS;
}

function takeHeldBack(trouble: Trouble): number {
  const { heldBack } = trouble;
  trouble.heldBack = 0;
  return heldBack;
}

/** @returns a function that tells how many of a kind were kept back since it was told; `null` while it is too soon. */
function createTally({ monoMs }: Pick<Clock, 'monoMs'>): (kind: string, calmMs: number) => number | null {
  const known = new Map<string, { toldMs: number; cameMs: number; heldBack: number }>();
  return (kind, calmMs) => {
    const nowMs = monoMs();
    const last = known.get(kind);
    if (last !== undefined && nowMs - last.toldMs < AGAIN_MS && nowMs - last.cameMs < calmMs) {
      last.heldBack += 1;
      last.cameMs = nowMs;
      return null;
    }
    if (known.size >= MOST_KINDS) forgetOld(known, nowMs - AGAIN_MS);
    known.set(kind, { toldMs: nowMs, cameMs: nowMs, heldBack: 0 });
    return last?.heldBack ?? 0;
  };
}

function forgetOld(known: Map<string, { readonly toldMs: number }>, beforeMs: number): void {
  for (const [kind, { toldMs }] of known) if (toldMs <= beforeMs) known.delete(kind);
}
