/**
 * The streams that are read as a whole: the account, the alerts, the list of devices. When each is due, and how far it
 * is behind its schedule.
 */
import { MINUTE_MS, SECOND_MS } from '../core/time.ts';

export const ROUND_KINDS = ['account', 'alerts', 'devices'] as const;

export type RoundKind = (typeof ROUND_KINDS)[number];

export interface Rounds {
  /** When it is due; infinite while it is being read. @param everyMs from its last end. */
  dueMs(kind: RoundKind, everyMs: number): number;
  /** How old it is, in periods, where it is due; else 0. */
  behind(kind: RoundKind, everyMs: number, nowMs: number): number;
  /** When it was last read to its end; infinitely long ago where it never was. */
  readMs(kind: RoundKind): number;
  /** Whether it was never read to its end. */
  isNew(kind: RoundKind): boolean;
  began(kind: RoundKind): void;
  /** A page has come, and there are more: the next one is due at once. */
  goesOn(kind: RoundKind): void;
  done(kind: RoundKind, nowMs: number): void;
  /** It came to nothing and is begun anew. @param isOwn whether it rests first, at doubling times. */
  failed(kind: RoundKind, isOwn: boolean, nowMs: number): void;
  hasten(kind: RoundKind): void;
  off(kind: RoundKind, untilMs: number): void;
}

/** How long a stream rests after a failure of its own. */
const REST_MS = 5 * SECOND_MS;
const LONGEST_REST_MS = 2 * MINUTE_MS;

interface Round {
  /** When it was last read to its end. */
  readMs: number;
  /** Not before that, whatever is due. */
  restMs: number;
  isUnderWay: boolean;
  /** Whether it is due at once: more pages are to come, or it was hastened. */
  isUrgent: boolean;
  failures: number;
}

/** Rounds that were never read. */
export function createRounds(): Rounds {
  const create = (): Round => ({
    readMs: Number.NEGATIVE_INFINITY,
    restMs: Number.NEGATIVE_INFINITY,
    isUnderWay: false,
    isUrgent: false,
    failures: 0,
  });
  const rounds: Record<RoundKind, Round> = { account: create(), alerts: create(), devices: create() };
  const dueMs = (kind: RoundKind, everyMs: number): number => {
    const { readMs, restMs, isUnderWay, isUrgent } = rounds[kind];
    if (isUnderWay) return Number.POSITIVE_INFINITY;
    return isUrgent ? restMs : Math.max(restMs, readMs + everyMs);
  };
  return {
    dueMs,
    behind: (kind, everyMs, nowMs) =>
      dueMs(kind, everyMs) > nowMs ? 0 : Math.max(1, (nowMs - rounds[kind].readMs) / everyMs),
    readMs: (kind) => rounds[kind].readMs,
    isNew: (kind) => rounds[kind].readMs === Number.NEGATIVE_INFINITY,
    began(kind) {
      rounds[kind].isUnderWay = true;
    },
    goesOn(kind) {
      Object.assign(rounds[kind], { isUnderWay: false, isUrgent: true, failures: 0 });
    },
    done(kind, nowMs) {
      rounds[kind] = { ...create(), readMs: nowMs };
    },
    failed(kind, isOwn, nowMs) {
      const round = rounds[kind];
      round.isUnderWay = false;
      if (!isOwn) return;
      round.restMs = nowMs + Math.min(LONGEST_REST_MS, REST_MS * 2 ** Math.min(round.failures, 16));
      round.failures += 1;
    },
    hasten(kind) {
      rounds[kind].isUrgent = true;
    },
    off(kind, untilMs) {
      Object.assign(rounds[kind], { isUnderWay: false, isUrgent: false, restMs: untilMs });
    },
  };
}
