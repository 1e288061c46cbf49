/**
 * How `--check` asks: one thing after the other, each with an end, and no more once nothing else can come of it.
 */

import { RequestsSpentError } from '../../core/check.ts';
import { ApiFault, type ApiFaultKind } from '../../core/faults.ts';
import type { Clock, Reply } from '../../core/ports.ts';
import type { WaitReason } from '../../core/quota.ts';
import { type EpochMs, MINUTE_MS, SECOND_MS } from '../../core/time.ts';
import type { Scope } from './api.ts';

/** For so long the allowance is waited for; whoever runs a check sits before it. */
const PATIENCE_MS = 1.5 * MINUTE_MS;

/** A 429 that asks for no more than this is waited out. */
const SHORT_WAIT_MS = 15 * SECOND_MS;

/** Where the asker hears that the gate makes it wait: until when, in the server's time, and what for. */
export interface Waits {
  onWait: ((untilMs: EpochMs, reason: WaitReason) => void) | null;
}

/** Why the gate lets nothing through, in words. */
const WAITS: Readonly<Record<WaitReason, string>> = {
  asked: 'the API has asked to wait',
  day: 'the own share of the allowance of this day is spent',
  minute: 'the own share of the allowance of this minute is spent',
  pace: 'the allowance leaves no request for now',
};

export interface AskerParts {
  readonly context: { readonly clock: Clock; readonly serverClock: { nowMs(): number } };
  readonly timeoutMs: number;
  readonly waits: Waits;
  readonly onAsk: (scope: Scope) => void;
  /** Tells of a fault. */
  readonly onFault: (scope: Scope, fault: ApiFault) => void;
}

/** One thing to be asked for. */
export interface Asked<T> {
  /** What is tried by it; `null` for what is asked for besides, of which no fault is told. */
  readonly scope: Scope | null;
  readonly put: (signal: AbortSignal) => Promise<Reply<T>>;
  /** Whether a fault says what is to be known: it is not told then. */
  readonly isAnswer?: (fault: ApiFault) => boolean;
}

export interface Asker {
  /**
   * Asks for one thing.
   *
   * @returns `null` where nothing came. Throws the signal's reason when that aborts, and what is no fault of the API.
   */
  ask<T>(asked: Asked<T>, signal: AbortSignal): Promise<T | null>;
  /** Why nothing more is asked, in words; `null` while things are. */
  stoppedBy(): string | null;
  /** Whether the API has let the key in: it answered, or refused for want of a scope. */
  hasAnswered(): boolean;
}

/** Faults after which all else would fail as well. */
const STOPPING: Readonly<Partial<Record<ApiFaultKind, string>>> = {
  unauthorized: 'the key is refused',
  'no-api-access': 'access is refused',
  unreachable: 'the API does not answer',
  throttled: 'the allowance is spent',
  'not-found': 'there is no such endpoint',
};

/** Faults that pass, or not: the second one is enough. */
const DOUBTFUL: readonly ApiFaultKind[] = ['server-fault', 'malformed'];

/** Faults that a key gets which is accepted. */
const LETS_IN: readonly ApiFaultKind[] = ['scope-missing', 'invalid-request', 'range-too-large'];

/** Begins to ask. */
export function createAsker(parts: AskerParts): Asker {
  let stopped: string | null = null;
  let doubtful = 0;
  let hasAnswered = false;
  const takeIn = (fault: ApiFault): void => {
    if (DOUBTFUL.includes(fault.kind)) doubtful += 1;
    stopped ??= STOPPING[fault.kind] ?? (doubtful > 1 ? 'what answers is not in order' : null);
  };
  /** Takes in why nothing came. @throws what is no fault of the API. */
  const failed = (error: unknown, scope: Scope | null, isAnswer: (fault: ApiFault) => boolean): void => {
    if (error instanceof RequestsSpentError) {
      stopped ??= 'the requests of a check are spent';
      return;
    }
    if (!(error instanceof ApiFault)) throw error;
    const says = isAnswer(error);
    if (says || LETS_IN.includes(error.kind)) hasAnswered = true;
    if (says) return;
    takeIn(error);
    if (scope !== null) parts.onFault(scope, error);
  };
  return {
    stoppedBy: () => stopped,
    hasAnswered: () => hasAnswered,
    ask: async ({ scope, put, isAnswer = () => false }, signal) => {
      if (stopped !== null) return null;
      if (scope !== null) parts.onAsk(scope);
      try {
        const { value } = await withPatience(parts, async (stop) => await afterShortWait(put, stop), signal);
        hasAnswered = true;
        return value;
      } catch (error) {
        signal.throwIfAborted();
        failed(error, scope, isAnswer);
        return null;
      }
    },
  };
}

/** Puts it once more where the API asked for a short wait, which the gate keeps. */
async function afterShortWait<T>(
  put: (signal: AbortSignal) => Promise<Reply<T>>,
  signal: AbortSignal,
): Promise<Reply<T>> {
  try {
    return await put(signal);
  } catch (error) {
    const isShort =
      error instanceof ApiFault && error.kind === 'throttled' && (error.facts.waitMs ?? 0) <= SHORT_WAIT_MS;
    if (!isShort) throw error;
    return await put(signal);
  }
}

/** Gives up where the gate would keep it waiting for long. @throws ApiFault `throttled` then. */
async function withPatience<T>(
  { context: { clock, serverClock }, timeoutMs, waits }: AskerParts,
  work: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const stop = new AbortController();
  const over = new AbortController();
  let gaveUp: ApiFault | null = null;
  const giveUp = (waitMs: number, reason: WaitReason): void => {
    const facts = { request: 'the next request', ...(waitMs > 0 ? { waitMs } : {}) };
    gaveUp = new ApiFault('throttled', WAITS[reason], facts);
    stop.abort(gaveUp);
  };
  const onAbort = (): void => stop.abort(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  waits.onWait = (untilMs, reason) => {
    const waitMs = untilMs - serverClock.nowMs();
    if (waitMs > PATIENCE_MS) giveUp(waitMs, reason);
  };
  clock.sleep(PATIENCE_MS + timeoutMs, over.signal).then(
    () => giveUp(0, 'pace'),
    () => {},
  );
  try {
    return await work(stop.signal);
  } catch (error) {
    throw gaveUp === null || signal.aborted ? error : gaveUp;
  } finally {
    over.abort();
    waits.onWait = null;
    signal.removeEventListener('abort', onAbort);
  }
}
