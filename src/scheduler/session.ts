/**
 * The sessions of a daemon, one after the other, until it is stopped. A session is all work with one key. It ends when
 * a person has to act: the API rejects the key or the plan, the key belongs to another workspace, or the state cannot
 * be written.
 *
 * Promises: the account is read first, so that another workspace is noticed before anything is written. Then the
 * dispatch loop follows the planner (`dispatch.ts`), even if the devices could not be listed but are known from before.
 * Two more loops run: one checks once a minute whether the server's time is known, and sends requests only while it is
 * not; the other schedules rereads of yesterday while there is quota to spare. The key is exchanged only between two
 * sessions. While the key is rejected, the daemon is not ready: it delivers the archived points, checks whether the key
 * was exchanged, and tries the API again now and then.
 *
 * A one-off runs the same session with one goal and without these two loops.
 */
import { runUnlessFull } from '../core/archive-room.ts';
import { repeat, runUntilFirst } from '../core/async.ts';
import { ApiFault, rejectionText } from '../core/faults.ts';
import type { Stream } from '../core/ports.ts';
import { backoffMs } from '../core/retry.ts';
import { MINUTE_MS, SECOND_MS } from '../core/time.ts';
import { syncAccount } from '../ingest/account.ts';
import { syncAlerts } from '../ingest/alerts.ts';
import { pollGoneDevices, syncDevices } from '../ingest/devices.ts';
import { createEmptyChecks, createRereading, type Rereading } from '../ingest/reread.ts';
import { learnTime } from '../ingest/server-time.ts';
import { wantedNow } from '../ingest/wanted-range.ts';
import { noteAccepted, noteFailed, noteRead, noteRejected, noteStreamFailed, noteWorked } from './api-state.ts';
import { writeCoveragePoints } from './coverage-points.ts';
import { type DispatchParts, followPlan, surviveFault, waitForRoom } from './dispatch.ts';
import { setReread } from './planner.ts';
import type { StreamDecision } from './planner-types.ts';
import { beginOneOff, beginPlanning, checkDemand, ONE_OFF_REST_MS, type OneOff } from './planning.ts';

export type SessionParts = Omit<DispatchParts, 'readStream' | 'rereading'>;

/** How often to check whether something is due to be read again. */
const REREAD_REST_MS = 10 * MINUTE_MS;

/** How long a stream rests after a failure. */
const BACKOFF = { baseMs: 5 * SECOND_MS, maxMs: 2 * MINUTE_MS };

/** The key of the API, which may be exchanged while the program runs. */
export interface KeySource {
  /** Whether there can never be another key. Then no check looks for one. */
  readonly isFixed?: boolean;
  /**
   * Checks whether the file of the key has a usable one. The file may be incomplete for a moment, so the second check
   * in a row reports the problem. Only the session calls it, every ten seconds.
   */
  checkFile?(): void;
  /** Whether there is another key than the one in use. Only reads. */
  hasChanged(): boolean;
  /** Continues with the current key of the source. */
  adopt(): void;
}

/** Everything that `runDaemon` needs: the parts of a session, the key, and the other loops. */
export interface DaemonParts extends SessionParts {
  readonly key: KeySource;
  /** The other loops, which run until the signal aborts: the deliveries, the maintenance, the jobs. */
  readonly beside: readonly ((signal: AbortSignal) => Promise<unknown>)[];
}

/** How often to check whether the key was exchanged. */
const KEY_CHECK_MS = 10 * SECOND_MS;

/** How long it waits between two attempts with a rejected key. */
const KEY_RETRY = { baseMs: MINUTE_MS, maxMs: 15 * MINUTE_MS };

type Work = (signal: AbortSignal) => Promise<boolean>;

/**
 * The daemon's main loop: reads by its schedules until the signal aborts.
 *
 * @returns when `signal` aborts.
 * @throws UserError if a person has to act and a restart would not help.
 */
export async function runDaemon(parts: DaemonParts, signal: AbortSignal): Promise<void> {
  const { observe } = parts.context;
  const onAbort = (): void => {
    const { reason } = signal;
    observe({ type: 'stopping', reason: reason instanceof Error ? reason.message : 'Stop requested' });
  };
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  const sessions = async (stop: AbortSignal): Promise<never> => await runSessions(parts, stop);
  const writeCoverage = async (stop: AbortSignal): Promise<never> => await writeCoveragePoints(parts.context, stop);
  try {
    await runUntilFirst<unknown>([sessions, writeCoverage, ...parts.beside], {
      signal,
      reason: 'the daemon has ended',
    });
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

async function runSessions(parts: DaemonParts, signal: AbortSignal): Promise<never> {
  const { key, apiState, context } = parts;
  const { observe, noteWorkspaceUnknown, clock, random } = context;
  for (let rejections = 1; ; rejections += 1) {
    const { end, wasAnswered } = await runSessionToEnd(parts, signal);
    if (wasAnswered) rejections = 1;
    if (end !== 'key exchanged') {
      const waitMs = backoffMs({ failures: rejections, policy: KEY_RETRY, random, leastMs: end.facts.waitMs ?? 0 });
      noteWorkspaceUnknown();
      noteRejected(apiState, end, rejectionText(end), waitMs);
      const waits = [
        async (stop: AbortSignal): Promise<unknown> => await clock.sleep(waitMs, stop),
        async (stop: AbortSignal): Promise<unknown> => await watchKey(parts, stop),
      ];
      await runUntilFirst(waits, { signal, reason: 'the API is tried again' });
    }
    if (!key.hasChanged()) continue;
    key.adopt();
    // The waits because of the previous key do not apply to this one.
    rejections = 0;
    apiState.hasOtherKey = true;
    observe({ type: 'key-changed' });
  }
}

interface SessionEnd {
  readonly end: ApiFault | 'key exchanged';
  /** Whether the key was accepted at all. */
  readonly wasAnswered: boolean;
}

/** Runs one session, from reading the account to the error that ends it, or until there is another key. */
async function runSessionToEnd(parts: DaemonParts, signal: AbortSignal): Promise<SessionEnd> {
  const { apiState } = parts;
  let wasAnswered = false;
  const onStarted = (): void => {
    wasAnswered = true;
    noteAccepted(apiState);
  };
  const session = async (stop: AbortSignal): Promise<never> => await runSession(parts, onStarted, stop);
  const watch = async (stop: AbortSignal): Promise<'key exchanged'> => await watchKey(parts, stop);
  try {
    const end = await runUntilFirst([session, watch], { signal, reason: 'the session has ended' });
    return { end, wasAnswered };
  } catch (error) {
    if (error instanceof ApiFault) return { end: error, wasAnswered };
    throw error;
  }
}

/** Resolves when there is another key. */
async function watchKey({ key, context: { clock } }: DaemonParts, signal: AbortSignal): Promise<'key exchanged'> {
  const everyMs = key.isFixed === true ? Number.POSITIVE_INFINITY : KEY_CHECK_MS;
  while (!key.hasChanged()) {
    // The file is not checked at once: the watch before this one may have ended just after its check.
    await clock.sleep(everyMs, signal);
    key.checkFile?.();
  }
  return 'key exchanged';
}

/**
 * The daemon's session: runs until an error ends it.
 *
 * @param onStarted called once the account and the devices were read: the key works.
 * @throws ApiFault (`unauthorized`, `no-api-access`, `scope-missing` of the devices) if the API rejects the key;
 * UserError if a person has to act; the signal's reason when that aborts.
 */
export async function runSession(parts: SessionParts, onStarted: () => void, signal: AbortSignal): Promise<never> {
  const { context, planning } = parts;
  const areListed = await readFirst(parts, true, signal);
  const everyMinute = createMinuteWork(parts);
  // The planner uses the server's time, so that must be known first.
  await persist(parts, { stream: 'telemetry', work: everyMinute }, signal);
  beginPlanning(planning, { areListed });
  // A shortage is reported at once, before the rates are measured.
  runUnlessFull(() => checkDemand(planning), context.noteStateFull);
  onStarted();
  const rereading = createRereading(context);
  return await runUntilFirst(
    [
      async (stop) => await followPlan({ ...parts, rereading, readStream: readStream(parts) }, stop),
      async (stop) => await runEveryMinute(parts, everyMinute, stop),
      async (stop) => await runRereads(parts, rereading, stop),
    ],
    { signal, reason: 'the session has ended' },
  );
}

/** How a session with a goal starts: what it works off, and whether it may start without a device list. */
interface OneOffStart {
  /** Whether the devices known from before are enough if they cannot be listed. */
  readonly mayGoUnlisted: boolean;
  /**
   * Returns the work of the session.
   *
   * @param areListed whether the devices were just listed.
   */
  readonly begin: (areListed: boolean) => OneOff;
}

/**
 * A one-off's session: works off one goal, and runs until the signal aborts or something ends it.
 *
 * @param begin how it begins, once the account, the devices and the time are known.
 * @throws what `runSession` throws, and what `begin` throws.
 */
export async function runOneOff(
  parts: SessionParts,
  { begin, mayGoUnlisted }: OneOffStart,
  signal: AbortSignal,
): Promise<never> {
  const { context, planning, scanner, outage } = parts;
  outage.limitWaits(ONE_OFF_REST_MS);
  const areListed = await readFirst(parts, mayGoUnlisted, signal);
  const work: Work = async (stop) => {
    await learnTime(context, scanner, stop);
    return true;
  };
  await persist(parts, { stream: 'telemetry', work }, signal);
  const alone = begin(areListed);
  beginOneOff(planning, alone);
  const rereading = createEmptyChecks(context);
  if (alone.lane === 'first-history') {
    rereading.refresh(false);
    setReread(planning.planner, rereading.isDue(), rereading.isOwed());
  }
  return await followPlan({ ...parts, rereading, readStream: readStream(parts) }, signal);
}

/**
 * Reads the account and the devices.
 *
 * @param mayGoUnlisted whether the known devices are enough if they cannot be listed.
 * @returns whether the devices were listed, and need not be listed again.
 */
async function readFirst(parts: SessionParts, mayGoUnlisted: boolean, signal: AbortSignal): Promise<boolean> {
  const read = readStream(parts);
  const hasDevices = (): boolean => mayGoUnlisted && parts.context.store.devices().length > 0;
  const { serverClock } = parts.context;
  await persist(parts, { stream: 'account', work: (stop) => read('account', stop) }, signal);
  const wasUnconfirmed = serverClock.unconfirmed() !== null;
  const work: Work = (stop) => read('devices', stop);
  const areListed = await persist(parts, { stream: 'devices', work, isTriedOnce: hasDevices }, signal);
  if (!wasUnconfirmed) return areListed;
  // No points are made while the server's time is unconfirmed. The streams are read again afterwards.
  if (serverClock.unconfirmed() !== null) return false;
  await persist(parts, { stream: 'account', work: (stop) => read('account', stop) }, signal);
  return areListed;
}

/**
 * Reads a complete stream.
 *
 * @returns whether the key may read it.
 */
function readStream(parts: SessionParts): (kind: StreamDecision['kind'], signal: AbortSignal) => Promise<boolean> {
  const { context, scanner } = parts;
  const read = {
    account: (signal: AbortSignal) => syncAccount(context, signal),
    alerts: (signal: AbortSignal) => syncAlerts(context, signal),
    devices: async (signal: AbortSignal) => {
      await syncDevices(context, signal);
      await pollGoneDevices({ context, scanner }, signal);
      return true;
    },
  };
  return async (kind, signal) => await read[kind](signal);
}

/**
 * Work that is due once a minute in addition to the requests: learning the server's time, and reports about the filter.
 */
function createMinuteWork({ context, scanner, planning }: SessionParts): Work {
  return async (signal) => {
    await learnTime(context, scanner, signal);
    if (wantedNow(context) !== null && planning.rest !== null) context.filterNotes.noteTelemetryRead();
    return true;
  };
}

async function runEveryMinute(parts: SessionParts, everyMinute: Work, signal: AbortSignal): Promise<never> {
  const { clock } = parts.context;
  await clock.sleep(MINUTE_MS, signal);
  const step = async (): Promise<number> => {
    await persist(parts, { stream: 'telemetry', work: everyMinute }, signal);
    return MINUTE_MS;
  };
  return await repeat(clock, step, signal);
}

async function runRereads(
  { context, planning }: SessionParts,
  rereading: Rereading,
  signal: AbortSignal,
): Promise<never> {
  const step = (): number => {
    // While the quota is short, a reread never gets a turn, and checking every device would be wasted.
    rereading.refresh(planning.rest?.reason === 'idle');
    setReread(planning.planner, rereading.isDue(), rereading.isOwed());
    planning.wakeUp.notify();
    return REREAD_REST_MS;
  };
  await context.clock.sleep(REREAD_REST_MS, signal);
  return await repeat(context.clock, step, signal);
}

interface Task {
  readonly stream: Stream;
  readonly work: Work;
  /** Decides after a failure whether to continue without the stream. */
  readonly isTriedOnce?: () => boolean;
}

/**
 * Retries a piece of work until it succeeds.
 *
 * @returns whether the key may read the stream and it was read.
 */
async function persist(
  parts: SessionParts,
  { stream, work, isTriedOnce }: Task,
  signal: AbortSignal,
): Promise<boolean> {
  const { context, outage, apiState } = parts;
  const { clock, random } = context;
  for (let failures = 1; ; failures += 1) {
    // The account is read even then: deliveries start once the workspace is known, and they free space.
    if (stream !== 'account') await waitForRoom(context, signal);
    await outage.waitUntilOver(signal);
    try {
      const mayRead = await work(signal);
      outage.noteDone();
      noteWorked(apiState, 'inventory');
      noteRead(apiState, stream);
      return mayRead;
    } catch (error) {
      recordFailure(parts, stream, error);
      if (error instanceof ApiFault && isTriedOnce?.() === true) return false;
      // If other streams are answered, this stream has its own problem.
      const maxMs = Math.min(BACKOFF.maxMs, outage.longestWaitMs());
      await clock.sleep(backoffMs({ failures, policy: { ...BACKOFF, maxMs }, random }), signal);
    }
  }
}

/**
 * Records a failure that may pass.
 *
 * @throws the error that ends a session.
 */
function recordFailure({ context, outage, apiState }: SessionParts, stream: Stream, error: unknown): void {
  const fault = surviveFault(context, error);
  if (fault === null) return;
  context.noteWorkspaceUnknown();
  noteStreamFailed(apiState, stream, fault.message);
  noteFailed(apiState, { lane: 'inventory', fault, isService: true });
  outage.note(fault);
}
