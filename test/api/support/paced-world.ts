/**
 * The quota of a workspace on the server's side, and a program that sends requests through a limiter, in virtual time.
 *
 * The record is the truth: when each request left by a clock that nobody can move, and how it was answered.
 */
import { createRateLimiter, type RateLimiter } from '../../../src/api/rate-limiter.ts';
import type { AppEvent } from '../../../src/core/events.ts';
import type { Clock, Purpose, Random } from '../../../src/core/ports.ts';
import type { PlanFigures } from '../../../src/core/quota.ts';
import { createServerClock } from '../../../src/core/server-clock.ts';
import { createSimQuota, type WindowState } from '../../../src/sim/quota.ts';
import type { SimSettings } from '../../../src/sim/settings.ts';
import { createVirtualClock, withWallOffset } from '../../support/virtual-clock.ts';
import { createMemoryLedger } from './memory-ledger.ts';

export type Headers = SimSettings['quota']['headers'];
export type Windows = SimSettings['quota']['window'];

export interface WorldOptions {
  readonly plan: { readonly perMinute: number; readonly perDay: number };
  readonly windows?: Windows;
  readonly headers?: Headers;
  readonly share?: number;
  readonly random: Random;
  readonly concurrency?: number;
  /** The plan that the program assumes; by default the real one. */
  readonly known?: () => PlanFigures | null;
  readonly sendsDate?: boolean;
}

export const LIVE: Purpose = { lane: 'live', stream: 'telemetry' };
export const START_MS = Date.UTC(2026, 10, 21, 12, 0, 17);
const FOREVER = new AbortController().signal;

export interface Sent {
  /** By the true clock, in ms since the start of the simulation. */
  readonly atMs: number;
  readonly status: number;
}

export function createPacedWorld(options: WorldOptions) {
  const { plan, random, windows = 'fixed', headers = 'minute', share = 0.8, sendsDate = true } = options;
  const truth = createVirtualClock(START_MS);
  let wallOffsetMs = 0;
  const clock: Clock = withWallOffset(truth, () => wallOffsetMs);
  const ledger = createMemoryLedger();
  const events: AppEvent[] = [];
  const sent: Sent[] = [];
  const rejectedOthers = { asked: 0, rejected: 0 };
  const settings = {
    quota: { window: windows, headers, rejections: 'free' as const },
    plan: { requestsPerMinute: plan.perMinute, requestsPerDay: plan.perDay },
  } as Pick<SimSettings, 'quota' | 'plan'>;
  const quota = createSimQuota(settings);

  const start = () => {
    const serverClock = createServerClock(clock);
    const limiter = createRateLimiter({
      ledger,
      plan: options.known ?? (() => plan),
      share,
      clock,
      serverClock,
      random,
      observe: (event) => events.push(event),
      ...(options.concurrency === undefined ? {} : { concurrency: options.concurrency }),
    });
    return { limiter, serverClock };
  };

  /** The server's side of one request. */
  const serve = (): { status: number; reported: WindowState; waitMs: number | null } => {
    const atMs = truth.nowMs();
    const before = quota.state(atMs);
    const isRejected = before.minute.left < 1 || before.day.left < 1;
    if (!isRejected) quota.spend(1, atMs);
    const { minute, day } = quota.state(atMs);
    const tighter = minute.left / minute.limit <= day.left / day.limit ? minute : day;
    const reported = headers === 'minute' ? minute : headers === 'day' ? day : tighter;
    const waitMs = isRejected
      ? Math.max(1, Math.ceil(Math.max(before.minute.waitMs, before.day.waitMs) / 1000)) * 1000
      : null;
    return { status: isRejected ? 429 : 200, reported, waitMs };
  };

  /** One request through the gate, over a slow wire, to the server and back. */
  const ask = async (run: ReturnType<typeof start>, purpose = LIVE, signal = FOREVER): Promise<number> => {
    const requestId = await run.limiter.acquire(purpose, signal);
    const sentMonoMs = truth.monoMs();
    await truth.sleep(5 + 200 * random());
    const { status, reported, waitMs } = serve();
    sent.push({ atMs: sentMonoMs, status });
    const dateMs = sendsDate ? Math.floor(truth.nowMs() / 1000) * 1000 : null;
    await truth.sleep(5 + 200 * random());
    run.serverClock.noteDate({ dateMs, sentMonoMs, receivedMonoMs: truth.monoMs() });
    const fault = status === 429 ? 'throttled' : null;
    run.limiter.noteAnswered({ requestId, status, fault, limit: reported.limit, remaining: reported.left, waitMs });
    return status;
  };

  return {
    truth,
    ledger,
    events,
    sent,
    settings,
    start,
    ask,
    rejectedOthers,
    moveWall: (ms: number) => {
      wallOffsetMs += ms;
    },
    /** The program's workers, each with one request after the other, for so much simulated time. */
    askUntil: async (
      run: { limiter: RateLimiter } & ReturnType<typeof start>,
      endMs: number,
      askers = 4,
    ): Promise<void> => {
      const ended = new AbortController();
      const clerk = truth.sleep(Math.max(0, endMs - truth.monoMs())).then(() => ended.abort());
      const keepAsking = async (): Promise<void> => {
        while (!ended.signal.aborted) await ask(run, LIVE, ended.signal).catch(() => 0);
      };
      await Promise.all([clerk, ...Array.from({ length: askers }, keepAsking)]);
    },
    /** The requests of other clients before the program started. */
    spendAsOther: (count: number) => quota.spend(count, truth.nowMs()),
    /** Another client of the workspace: sends one request. */
    askAsOther: () => {
      rejectedOthers.asked += 1;
      if (serve().status === 429) rejectedOthers.rejected += 1;
    },
  };
}

/** The most requests that left within any range of that length. */
export function mostWithin(sent: readonly Sent[], windowMs: number): number {
  const times = sent.map(({ atMs }) => atMs).sort((a, b) => a - b);
  let most = 0;
  let from = 0;
  for (const [index, atMs] of times.entries()) {
    while ((times[from] ?? 0) <= atMs - windowMs) from += 1;
    most = Math.max(most, index - from + 1);
  }
  return most;
}

/** Numbers that look random and are the same every time. */
export function seededRandom(seed: number): Random {
  let state = (seed * 2654435761) >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 2 ** 32;
  };
}
