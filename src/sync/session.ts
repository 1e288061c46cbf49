/**
 * A session: all streams on their schedules, with one key, side by side. It ends with what only somebody else can mend:
 * a key that is refused, another workspace behind it, a state that cannot be written.
 *
 * Promises: the account is read before anything else, so that another workspace behind the key is noticed before
 * anything is written; a stream whose scope is missing is off and the others run; a service that does not answer is
 * waited for. Live work goes before history at the gate of the allowance, by its lane.
 */
import { StateFullError } from '../core/archive-room.ts';
import { ApiFault } from '../core/faults.ts';
import type { Stream } from '../core/ports.ts';
import { backoffMs } from '../core/retry.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../core/time.ts';
import { syncAccount } from './account.ts';
import type { Agenda } from './agenda.ts';
import { syncAlerts } from './alerts.ts';
import type { SyncContext } from './context.ts';
import { noteCoverage } from './coverage-points.ts';
import { syncDevices } from './devices.ts';
import { lookAtTheGone } from './gone.ts';
import { horizonNow } from './horizon.ts';
import { learnTime } from './learn-time.ts';
import type { Puller } from './pull.ts';
import { rereadYesterday } from './reread-yesterday.ts';
import { HISTORY_ROUNDS, LIVE_ROUNDS, syncTelemetry } from './telemetry.ts';
import type { Trouble } from './trouble.ts';

export interface SessionParts {
  readonly context: SyncContext;
  readonly puller: Puller;
  readonly agenda: Agenda;
  readonly trouble: Trouble;
  /** Called once the account and the devices were read: the key is one that works. */
  readonly onBegun?: () => void;
}

/** How long history rests when there is nothing to fill, and how long it may take before it looks anew. */
const HISTORY_REST_MS = MINUTE_MS;
const HISTORY_STRETCH_MS = 10 * MINUTE_MS;

/** How often it is looked whether something is worth another look. */
const REREAD_REST_MS = 10 * MINUTE_MS;

/** How often it is looked whether there is room again. */
const ROOM_LOOK_MS = 5 * SECOND_MS;

/** How long a stream rests after a failure. */
const BACKOFF = { baseMs: 5 * SECOND_MS, maxMs: 2 * MINUTE_MS };

/** How often a stream that is off is tried again: the key may have been given its scope. */
const OFF_REST_MS = HOUR_MS;

/** What a piece of work came to: done, something left to go on with at once, or off, as the key lacks the scope. */
type Outcome = 'done' | 'more' | 'off';

type Work = (signal: AbortSignal) => Promise<Outcome>;

/**
 * Runs until something ends it.
 *
 * @throws ApiFault (`unauthorized`, `no-api-access`, `scope-missing` of the devices) where the key is refused;
 * UserError where a person has to act; the signal's reason when that aborts.
 */
export async function runSession(parts: SessionParts, signal: AbortSignal): Promise<never> {
  const work = streamsOf(parts);
  await doIt(parts, { stream: 'account', work: work.account }, signal);
  parts.agenda.took('account');
  await doIt(parts, { stream: 'devices', work: work.devices }, signal);
  parts.agenda.took('devices');
  parts.onBegun?.();
  const end = new AbortController();
  const onAbort = (): void => end.abort(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  const loops = [
    keepDoing(parts, { stream: 'account', work: work.account }, end.signal),
    keepDoing(parts, { stream: 'devices', work: work.devices }, end.signal),
    keepDoing(parts, { stream: 'alerts', work: work.alerts }, end.signal),
    keepDoing(parts, { stream: 'telemetry', work: work.live }, end.signal),
    keepFilling(parts, work.history, end.signal),
    keepRereading(parts, work.reread, end.signal),
  ];
  try {
    return await Promise.race(loops);
  } finally {
    signal.removeEventListener('abort', onAbort);
    end.abort(new Error('the session has ended'));
    await Promise.allSettled(loops);
  }
}

function streamsOf({
  context,
  puller,
}: SessionParts): Readonly<Record<Exclude<Stream, 'telemetry'> | 'live' | 'history' | 'reread', Work>> {
  return {
    account: async (signal) => ((await syncAccount(context, signal)) ? 'done' : 'off'),
    devices: async (signal) => {
      await syncDevices(context, signal);
      await lookAtTheGone(context, puller, signal);
      return 'done';
    },
    alerts: async (signal) => ((await syncAlerts(context, signal)) ? 'done' : 'off'),
    live: async (signal) => {
      await learnTime(context, puller, signal);
      const horizon = horizonNow(context);
      if (horizon === null) return 'done';
      const plan = { puller, horizon, rounds: LIVE_ROUNDS, isOver: () => false };
      const { off } = await syncTelemetry(context, plan, signal);
      noteCoverage(context, horizon);
      return off ? 'off' : 'done';
    },
    history: async (signal) => {
      const horizon = horizonNow(context);
      if (horizon === null) return 'done';
      const beganMs = context.clock.monoMs();
      // Looked at anew now and then: the horizon moves, and devices come and go.
      const isOver = (): boolean => context.clock.monoMs() - beganMs >= HISTORY_STRETCH_MS;
      const { off } = await syncTelemetry(context, { puller, horizon, rounds: HISTORY_ROUNDS, isOver }, signal);
      if (off) return 'off';
      return isOver() ? 'more' : 'done';
    },
    reread: async (signal) => ((await rereadYesterday(context, signal)) ? 'done' : 'off'),
  };
}

interface Task {
  readonly stream: Stream;
  readonly work: Work;
}

/** One stream on its schedule, for as long as the session lasts. */
async function keepDoing(parts: SessionParts, task: Task, signal: AbortSignal): Promise<never> {
  const { agenda, context } = parts;
  for (;;) {
    await agenda.due(task.stream, signal);
    const outcome = await doIt(parts, task, signal);
    if (outcome === 'off') await context.clock.sleep(OFF_REST_MS, signal);
  }
}

/** History has no schedule: it goes on as long as there is something to fill. */
async function keepFilling(parts: SessionParts, work: Work, signal: AbortSignal): Promise<never> {
  for (;;) {
    const outcome = await doIt(parts, { stream: 'telemetry', work }, signal);
    if (outcome !== 'more') await parts.context.clock.sleep(outcome === 'off' ? OFF_REST_MS : HISTORY_REST_MS, signal);
  }
}

/** Yesterday is read again while there is allowance to spare. */
async function keepRereading(parts: SessionParts, work: Work, signal: AbortSignal): Promise<never> {
  for (;;) {
    await parts.context.clock.sleep(REREAD_REST_MS, signal);
    const outcome = await doIt(parts, { stream: 'telemetry', work }, signal);
    if (outcome === 'off') await parts.context.clock.sleep(OFF_REST_MS, signal);
  }
}

/** Does a piece of work, again and again until it comes to an end. */
async function doIt(parts: SessionParts, { stream, work }: Task, signal: AbortSignal): Promise<Outcome> {
  const { context, trouble } = parts;
  const { clock, random, observe } = context;
  for (let failures = 1; ; failures += 1) {
    // The account is read all the same: it tells whose points are waiting, and delivering these is what makes room.
    if (stream !== 'account') await untilRoom(context, signal);
    await trouble.pass(signal);
    try {
      const outcome = await work(signal);
      trouble.done();
      observe({ type: 'stream-read', stream });
      return outcome;
    } catch (error) {
      if (error instanceof StateFullError) {
        context.stateFull(error);
        await clock.sleep(backoffMs({ failures, policy: BACKOFF, random }), signal);
        continue;
      }
      if (!(error instanceof ApiFault) || endsSession(error)) throw error;
      observe({ type: 'stream-failed', stream, message: error.message });
      trouble.note(error);
      // Where the others are answered, this stream has a trouble of its own.
      await clock.sleep(backoffMs({ failures, policy: BACKOFF, random }), signal);
    }
  }
}

/** Where the state is full, nothing is asked for that would make it grow; delivery goes on and makes room. */
async function untilRoom({ room, clock }: SyncContext, signal: AbortSignal): Promise<void> {
  while (!room().ok) await clock.sleep(ROOM_LOOK_MS, signal);
}

function endsSession({ kind }: ApiFault): boolean {
  return kind === 'unauthorized' || kind === 'no-api-access' || kind === 'scope-missing';
}
