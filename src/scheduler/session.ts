/**
 * A session: everything that is read with one key, until something ends it that only somebody else can mend: a key that
 * is refused, another workspace behind it, a state that cannot be written.
 *
 * Promises: the account is read before anything else, so that another workspace behind the key is noticed before
 * anything is written; then the planner has the say (`dispatch.ts`), also where the devices could not be listed but are
 * known from before. Beside it, once a minute, what needs no request; and yesterday is read again while there is
 * allowance to spare.
 */
import { StateFullError } from '../core/archive-room.ts';
import { ApiFault } from '../core/faults.ts';
import type { Stream } from '../core/ports.ts';
import { backoffMs } from '../core/retry.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../core/time.ts';
import { syncAccount } from '../ingest/account.ts';
import { syncAlerts } from '../ingest/alerts.ts';
import type { SyncContext } from '../ingest/context.ts';
import { lookAtTheGone, syncDevices } from '../ingest/devices.ts';
import { horizonNow, learnTime } from '../ingest/horizon.ts';
import { createRereading, type Rereading } from '../ingest/reread.ts';
import { noteCoverage } from './coverage-points.ts';
import { type DispatchParts, endsSession, followPlan } from './dispatch.ts';

export interface SessionParts extends Omit<DispatchParts, 'readRound' | 'rereading'> {
  /** Called once the account and the devices were read: the key is one that works. */
  readonly onBegun?: () => void;
}

/** How often it is looked whether something is worth another look. */
const REREAD_REST_MS = 10 * MINUTE_MS;

/** How often the coverage is looked at: every minute for a few devices, every quarter of an hour for thousands. */
const COVERAGE_MS_A_DEVICE = SECOND_MS;
const LONGEST_COVERAGE_MS = 15 * MINUTE_MS;

/** How often it is looked whether there is room again. */
const ROOM_LOOK_MS = 5 * SECOND_MS;

/** How long a stream rests after a failure. */
const BACKOFF = { baseMs: 5 * SECOND_MS, maxMs: 2 * MINUTE_MS };

/** How often a stream that is off is tried again: the key may have been given its scope. */
const OFF_REST_MS = HOUR_MS;

/** A piece of work. @returns whether the key may read the stream. */
type Work = (signal: AbortSignal) => Promise<boolean>;

/**
 * Runs until something ends it.
 *
 * @throws ApiFault (`unauthorized`, `no-api-access`, `scope-missing` of the devices) where the key is refused;
 * UserError where a person has to act; the signal's reason when that aborts.
 */
export async function runSession(parts: SessionParts, signal: AbortSignal): Promise<never> {
  const { context, planning } = parts;
  const read = roundsOf(parts);
  const knowsDevices = (): boolean => context.store.devices().length > 0;
  await doIt(parts, { stream: 'account', work: read.account }, signal);
  const areListed = await doIt(parts, { stream: 'devices', work: read.devices, isTriedOnce: knowsDevices }, signal);
  const tidy = createTidy(parts);
  // The planner goes by the server's time: that has to be known.
  await doIt(parts, { stream: 'telemetry', work: tidy }, signal);
  planning.begin({ areListed });
  parts.onBegun?.();
  const end = new AbortController();
  const onAbort = (): void => end.abort(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  const rereading = createRereading(context);
  const loops = [
    followPlan({ ...parts, rereading, readRound: (kind, stop) => read[kind](stop) }, end.signal),
    keepDoing(parts, { restMs: MINUTE_MS, work: tidy }, end.signal),
    lookForRereads(parts, rereading, end.signal),
  ];
  try {
    return await Promise.race(loops);
  } finally {
    signal.removeEventListener('abort', onAbort);
    end.abort(new Error('the session has ended'));
    await Promise.allSettled(loops);
  }
}

function roundsOf({ context, scanner }: SessionParts): Readonly<Record<'account' | 'alerts' | 'devices', Work>> {
  return {
    account: (signal) => syncAccount(context, signal),
    alerts: (signal) => syncAlerts(context, signal),
    devices: async (signal) => {
      await syncDevices(context, signal);
      await lookAtTheGone(context, scanner, signal);
      return true;
    },
  };
}

/** What is due now and then beside the requests: the points about coverage, and the time where no answer tells it. */
function createTidy({ context, scanner, planning }: SessionParts): Work {
  const { clock } = context;
  let notedAtMs = Number.NEGATIVE_INFINITY;
  return async (signal) => {
    await learnTime(context, scanner, signal);
    const horizon = horizonNow(context);
    if (horizon === null) return true;
    // A look at every device: the more there are, the less often.
    const everyMs = Math.min(LONGEST_COVERAGE_MS, planning.figures().devices * COVERAGE_MS_A_DEVICE);
    if (clock.monoMs() - notedAtMs >= everyMs) {
      noteCoverage(context, horizon);
      notedAtMs = clock.monoMs();
    }
    if (planning.rest() !== null) context.filterNotes.telemetryRead();
    return true;
  };
}

interface Task {
  readonly stream: Stream;
  readonly work: Work;
  /** Looked at after a failure: whether to go on without. */
  readonly isTriedOnce?: () => boolean;
}

async function lookForRereads(
  { context, planning }: SessionParts,
  rereading: Rereading,
  signal: AbortSignal,
): Promise<never> {
  for (;;) {
    await context.clock.sleep(REREAD_REST_MS, signal);
    // Where the allowance is short it is never its turn, and a look at every device would be for nothing.
    if (planning.rest()?.reason !== 'idle') continue;
    planning.planner().setReread(rereading.look());
    planning.wakeUp.notify();
  }
}

/** Something about telemetry, again and again for as long as the session lasts. */
async function keepDoing(
  parts: SessionParts,
  { restMs, work }: { restMs: number; work: Work },
  signal: AbortSignal,
): Promise<never> {
  for (;;) {
    await parts.context.clock.sleep(restMs, signal);
    const mayRead = await doIt(parts, { stream: 'telemetry', work }, signal);
    if (!mayRead) await parts.context.clock.sleep(OFF_REST_MS, signal);
  }
}

/** Does a piece of work, again and again until it comes to an end. @returns whether the key may read the stream, and it was. */
async function doIt(parts: SessionParts, { stream, work, isTriedOnce }: Task, signal: AbortSignal): Promise<boolean> {
  const { context, trouble } = parts;
  const { clock, random, observe } = context;
  for (let failures = 1; ; failures += 1) {
    // The account is read all the same: it tells whose points are waiting, and delivering these is what makes room.
    if (stream !== 'account') await untilRoom(context, signal);
    await trouble.pass(signal);
    try {
      const mayRead = await work(signal);
      trouble.done();
      observe({ type: 'stream-read', stream });
      return mayRead;
    } catch (error) {
      if (error instanceof StateFullError) {
        context.stateFull(error);
        await clock.sleep(backoffMs({ failures, policy: BACKOFF, random }), signal);
        continue;
      }
      if (!(error instanceof ApiFault) || endsSession(error)) throw error;
      observe({ type: 'stream-failed', stream, message: error.message });
      trouble.note(error);
      if (isTriedOnce?.() === true) return false;
      // Where the others are answered, this stream has a trouble of its own.
      await clock.sleep(backoffMs({ failures, policy: BACKOFF, random }), signal);
    }
  }
}

/** Where the state is full, nothing is asked for that would make it grow; delivery goes on and makes room. */
async function untilRoom({ room, clock }: SyncContext, signal: AbortSignal): Promise<void> {
  while (!room().ok) await clock.sleep(ROOM_LOOK_MS, signal);
}
