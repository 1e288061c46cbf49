/**
 * The shared view of an API outage. While the API does not answer, one stream at a time retries with growing waits, and
 * the others wait for the result. So an outage of hours costs an occasional request, not one for each stream and
 * device.
 */
import { checkPauseMs, pollUntil } from '../core/async.ts';
import type { AppEvent, Observe } from '../core/events.ts';
import type { ApiFault, ApiFaultKind } from '../core/faults.ts';
import type { Clock, Random } from '../core/ports.ts';
import { backoffMs } from '../core/retry.ts';
import { MINUTE_MS, SECOND_MS } from '../core/time.ts';

/** The shared knowledge of all streams about whether the service is out. */
export interface OutageWatch {
  /**
   * Records the outcome of any request. A request that the service has understood ends an outage, even if the service
   * rejects it.
   */
  noteAnswered(fault: ApiFaultKind | null): void;
  /**
   * Resolves when there is no outage, or when it is this caller's turn to try.
   *
   * @param turned called at each check in the meantime.
   */
  waitUntilOver(signal: AbortSignal, turned?: () => void): Promise<void>;
  /** Records that a try has failed. */
  note(fault: ApiFault): void;
  /**
   * Records that a request failed and is sent again. As long as no request was ever answered, the address may be wrong;
   * that is reported at the first failure, before all retries have failed.
   */
  noteRetried(fault: ApiFault, waitMs: number): void;
  /** Records that an attempt has ended. An attempt that sent no request passes its turn to the next stream. */
  noteDone(): void;
  /** The failure by which a reported outage was noticed; `null` while there is none. */
  problem(): string | null;
  /** How long until the API is tried again in a reported outage, in ms; 0 during a try; `null` while there is none. */
  retryInMs(): number | null;
  /** The longest wait between two tries, in ms. */
  longestWaitMs(): number;
  /** Limits the wait between two tries, because a run of minutes cannot wait as long as a daemon. */
  limitWaits(maxMs: number): void;
  /** When the service has last answered any request, by the monotonic clock. */
  answeredAtMs(): number;
}

/**
 * The devices that failed while the service answered no request, so that the service may be at fault instead of the
 * devices.
 *
 * Each of them rests as after its own failure. When the service answers again, or a run has nothing else to try, they
 * are polled before their rest is over. That happens only once until the device itself is answered, so that a device
 * that fails permanently is not polled after every answer about others.
 */
export interface FailingDevices {
  /** Records that a device failed while no other request was answered. */
  add(deviceId: string): void;
  /**
   * Records an answer of the service.
   *
   * @param deviceId the device that the answer is about; `null`: about none.
   * @returns the devices that need not rest any longer.
   */
  noteAnswered(deviceId: string | null): readonly string[];
  /**
   * Returns the devices to try again although no request was answered. Counts as a try for all of them.
   *
   * @returns an empty list if there are none, or it is too early.
   */
  takeRetries(): readonly string[];
}

/**
 * How often failing devices are tried while no device is answered, and how long after the last failure the first try is
 * made.
 */
const FAILING_TRIES = 2;
const FAILING_REST_MS = 5 * SECOND_MS;

/** Creates an empty record of failing devices. */
export function createFailingDevices({ monoMs }: Pick<Clock, 'monoMs'>): FailingDevices {
  const failing = new Set<string>();
  /** The devices whose rest was ended early since they were last answered themselves. */
  const excused = new Set<string>();
  let tries = 0;
  let failedAtMs = Number.NEGATIVE_INFINITY;
  return {
    add: (deviceId) => {
      failing.add(deviceId);
      failedAtMs = monoMs();
    },
    noteAnswered: (deviceId) => {
      if (deviceId !== null) excused.delete(deviceId);
      if (failing.size === 0) return [];
      const lifted = [...failing].filter((each) => !excused.has(each));
      for (const each of lifted) if (each !== deviceId) excused.add(each);
      failing.clear();
      tries = 0;
      return lifted;
    },
    takeRetries: () => {
      if (tries >= FAILING_TRIES || monoMs() - failedAtMs < FAILING_REST_MS * 2 ** tries) return [];
      const tried = [...failing].filter((each) => !excused.has(each));
      if (tried.length > 0) tries += 1;
      return tried;
    },
  };
}

/**
 * The longest wait, plus the 30 s until a stream checks, is at most a sixth of the time that the backlog of an hour
 * takes (at least 12.5 minutes).
 */
const BACKOFF = { baseMs: 10 * SECOND_MS, maxMs: 1.5 * MINUTE_MS };

/** Faults that show that the service itself does not answer. */
export const SILENCE: ReadonlySet<ApiFaultKind> = new Set(['unreachable', 'server-fault', 'malformed', 'throttled']);

/** If another request was answered this recently, a failure concerns one stream only. */
export const ANSWERED_LATELY_MS = 90 * SECOND_MS;

/**
 * How often waiting streams check whether the outage is over: after a second at first, less often later, but often
 * enough that each check is a heartbeat in time.
 */
const OUTAGE_CHECK_MS = SECOND_MS;
const LONGEST_CHECK_MS = 30 * SECOND_MS;

/** The state of the service, which all streams share. Times are of the monotonic clock. */
interface Outage {
  /** The number of failures since the last answer; 0: the service works. */
  readonly failures: number;
  /** When the next stream may try. */
  readonly retryAtMs: number;
  /** When the first try after the last failure is made. `retryAtMs` is later once a stream has taken its turn. */
  readonly nextTryAtMs: number;
  /** Whether a request was sent since a stream took its turn. */
  readonly hasRequested: boolean;
  readonly answeredAtMs: number;
  readonly maxWaitMs: number;
  /** The failure by which the outage was noticed; `null` while none is reported. */
  readonly problem: string | null;
}

/** The initial state: the service works. */
export const WELL: Outage = {
  failures: 0,
  retryAtMs: 0,
  nextTryAtMs: 0,
  hasRequested: false,
  answeredAtMs: Number.NEGATIVE_INFINITY,
  maxWaitMs: BACKOFF.maxMs,
  problem: null,
};

/** The state after a request: see `OutageWatch.noteAnswered`. */
export function outageAfterRequest(outage: Outage, fault: ApiFaultKind | null, nowMs: number): Outage {
  if (fault !== null && SILENCE.has(fault)) return { ...outage, hasRequested: true };
  return { ...outage, hasRequested: true, answeredAtMs: nowMs, failures: 0, problem: null };
}

/** Whether a failure shows nothing about the service: another request was answered recently. */
export function isOfOneStream({ failures, answeredAtMs }: Outage, kind: ApiFaultKind, nowMs: number): boolean {
  return !SILENCE.has(kind) || (failures === 0 && nowMs - answeredAtMs < ANSWERED_LATELY_MS);
}

/** The state after a failed try; the next one is made after `waitMs`. */
export function afterFailure(
  outage: Outage,
  { kind, message }: Pick<ApiFault, 'kind' | 'message'>,
  { nowMs, waitMs }: { readonly nowMs: number; readonly waitMs: number },
): Outage {
  // A 429 is an answer. All streams wait for it together, and it is no outage of the service.
  const problem = kind === 'throttled' ? outage.problem : message;
  const retryAtMs = nowMs + waitMs;
  return { ...outage, failures: outage.failures + 1, retryAtMs, nextTryAtMs: retryAtMs, problem };
}

/**
 * Takes the turn to try. The other streams wait for this attempt, at most as long as an attempt may take.
 *
 * @returns `null` if it is too early, or another stream has the turn.
 */
export function takeTurn(outage: Outage, nowMs: number): Outage | null {
  if (outage.failures === 0) return outage;
  if (outage.retryAtMs > nowMs) return null;
  return { ...outage, retryAtMs: nowMs + outage.maxWaitMs, hasRequested: false };
}

/** The state after an attempt: see `OutageWatch.noteDone`. */
export function afterAttempt(outage: Outage, nowMs: number): Outage {
  return outage.failures > 0 && !outage.hasRequested ? { ...outage, retryAtMs: nowMs } : outage;
}

interface OutageParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: Observe;
  /** Called when `problem()` has changed. */
  readonly problemChanged?: () => void;
}

/** Creates the watch. It assumes that the service works. */
export function createOutageWatch({ clock, random, observe, problemChanged }: OutageParts): OutageWatch {
  let outage = WELL;
  const report = (event: AppEvent): void => {
    observe(event);
    problemChanged?.();
  };
  return {
    noteAnswered: (fault) => {
      const { problem } = outage;
      outage = outageAfterRequest(outage, fault, clock.monoMs());
      if (problem !== null && outage.problem === null) report({ type: 'api-recovered' });
    },
    waitUntilOver: async (signal, turned) => {
      const check = (): true | null => {
        turned?.();
        const next = takeTurn(outage, clock.monoMs());
        outage = next ?? outage;
        return next === null ? null : true;
      };
      const sinceMs = clock.monoMs();
      const everyMs = (): number => {
        const lateMs = checkPauseMs(clock.monoMs() - sinceMs, OUTAGE_CHECK_MS);
        return Math.min(outage.retryAtMs - clock.monoMs(), lateMs, LONGEST_CHECK_MS);
      };
      await pollUntil(clock, check, { everyMs }, signal);
    },
    note: (fault) => {
      const { kind, message, facts } = fault;
      const nowMs = clock.monoMs();
      if (isOfOneStream(outage, kind, nowMs)) return;
      const policy = { ...BACKOFF, maxMs: outage.maxWaitMs };
      const waitMs = backoffMs({ failures: outage.failures + 1, policy, random, leastMs: facts.waitMs ?? 0 });
      outage = afterFailure(outage, fault, { nowMs, waitMs });
      if (kind !== 'throttled') report({ type: 'api-outage', message, waitMs });
    },
    noteRetried: ({ kind, message }, waitMs) => {
      if (Number.isFinite(outage.answeredAtMs) || outage.problem !== null || kind !== 'unreachable') return;
      outage = { ...outage, problem: message, nextTryAtMs: clock.monoMs() + waitMs };
      report({ type: 'api-outage', message, waitMs });
    },
    noteDone: () => {
      outage = afterAttempt(outage, clock.monoMs());
    },
    problem: () => outage.problem,
    retryInMs: () => (outage.problem === null ? null : Math.max(0, outage.nextTryAtMs - clock.monoMs())),
    longestWaitMs: () => outage.maxWaitMs,
    limitWaits: (maxWaitMs) => {
      outage = { ...outage, maxWaitMs };
    },
    answeredAtMs: () => outage.answeredAtMs,
  };
}
