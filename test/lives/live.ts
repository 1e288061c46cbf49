/**
 * Runs a story from its first life to its last and reports every error: readings that are lost, duplicated or invented,
 * reports that were false at their moment, wrong exit codes, requests wasted or beyond the budget.
 */
import { rmSync } from 'node:fs';
import type { Sync } from '../../src/app/open-sync.ts';
import { runMaintenance } from '../../src/archive/maintenance.ts';
import type { BackfillSummary } from '../../src/commands/backfill/result.ts';
import type { OnceSummary } from '../../src/commands/once/result.ts';
import { openReplays } from '../../src/commands/replay/job.ts';
import { ratesOfState } from '../../src/commands/shared/state-report.ts';
import type { AppEvent } from '../../src/core/events.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, msToNs } from '../../src/core/time.ts';
import type { KeySource } from '../../src/scheduler/session.ts';
import { replayArgs } from '../support/defaults.ts';
import { dieAtEffect, Killed, liveOn, mortalCommits } from '../support/mortality.ts';
import { type Program, REAL_PROGRAM } from '../support/rig.ts';
import { examineState, examineStatus, localBehindMs } from './claims.ts';
import { examineRun, type Lived, oldestNewestMs } from './examine-run.ts';
import { examineShare } from './share.ts';
import { openStage, type Stage } from './stage.ts';
import { type Life, LONGEST_DEATH_MS, type Story } from './story.ts';
import { rememberUnpacked } from './unpacking.ts';

/** The result of a story. */
export interface StoryResult {
  /** The errors; empty where there are none. */
  readonly wrong: readonly string[];
  readonly sums: Sums;
}

export interface Sums {
  readonly seed: number;
  readonly devices: number;
  readonly days: number;
  readonly lives: number;
  readonly kills: number;
  /** Misfortunes that have hit something. */
  readonly faults: number;
  /** Values that the service has shown by the end. */
  readonly values: number;
  readonly requests: number;
  readonly writes: number;
  /** Covered ranges that were compared with the truth. */
  readonly claims: number;
}

/** Hooks to observe a life. */
export type Watch = (life: Life, atMs: number, event: AppEvent) => void;

/**
 * Runs it.
 *
 * @param program the real one, or a variant that is broken on purpose.
 */
export async function liveStory(
  story: Story,
  program: Program = REAL_PROGRAM,
  watch: Watch | null = null,
): Promise<StoryResult> {
  using _mortal = mortalCommits();
  using _unpacked = rememberUnpacked();
  using stage = openStage(story, program);
  const wrong: string[] = [];
  for (const life of story.lives) {
    const found = await liveOne(stage, life, watch);
    // After the loss of a database, everything is sent again until that is complete.
    if (stage.hasLost) found.push(...(await liveOne(stage, { ...life, ...AGAIN }, watch)));
    wrong.push(...found.map((text) => `${life.name} (${life.kind}): ${text}`));
    // An error by now is an error in every life from here on.
    if (wrong.length > 0) break;
  }
  if (wrong.length === 0) wrong.push(...examineShare(stage));
  return { wrong, sums: sumsOf(stage) };
}

const AGAIN = { kind: 'replay', kill: null, losesFrom: null, movesHouse: false } as const;

function sumsOf({ story, clock, counts, fate, truth, simulator }: Stage): Sums {
  return {
    seed: story.seed,
    devices: story.devices.length,
    days: (clock.nowMs() - story.startMs) / DAY_MS,
    lives: story.lives.length,
    kills: counts.kills,
    faults: fate.hit.size,
    values: truth.shown(simulator.worldNowMs()).values,
    requests: counts.requests,
    writes: counts.writes,
    claims: counts.claims,
  };
}

/** A life that has begun. */
interface Living {
  readonly life: Life;
  readonly startedMs: number;
  readonly stop: AbortController;
  readonly events: { passedAtMs: number | null; committedAtMs: number | null };
  readonly wrong: string[];
  isDead: boolean;
}

async function liveOne(stage: Stage, life: Life, watch: Watch | null): Promise<string[]> {
  const { clock } = stage;
  await clock.sleep(life.atMs - clock.nowMs());
  prepare(stage, life);
  stage.lifeStartedMs = clock.nowMs();
  const living: Living = {
    life,
    startedMs: clock.nowMs(),
    stop: new AbortController(),
    events: { passedAtMs: null, committedAtMs: null },
    wrong: [],
    isDead: false,
  };
  const observe = (event: AppEvent): void => {
    watch?.(life, clock.nowMs(), event);
    if (event.type === 'stream-read' && event.stream === 'telemetry') living.events.passedAtMs ??= clock.nowMs();
    if (event.type === 'stream-read' && event.stream === 'account') {
      stage.accountReadMs ??= clock.monoMs();
      stage.planReadMs = clock.nowMs();
    }
    if (event.type === 'page-committed') living.events.committedAtMs ??= clock.nowMs();
  };
  const dataDir = stage.dataDir;
  const execution = scheduleKill(stage, living);
  let sync: Sync | null = null;
  try {
    sync = stage.program.openSync(stage.options(life, observe));
    stage.living = sync;
    if (!stage.hasLost) living.wrong.push(...examineState(stage, sync));
    await WAYS[life.kind](stage, sync, living);
    if (!living.isDead && !stage.hasLost) living.wrong.push(...examineStatus(stage, sync, lookedSinceMs(living)));
  } catch (error) {
    if (!living.isDead && !(error instanceof Killed)) living.wrong.push(...wordsOf(stage, living, error));
  } finally {
    // One that was not killed on the way is killed before it can close its state.
    if (!living.isDead && life.kill !== null && sync !== null) die(stage, living);
    living.stop.abort(new Error('the life is over'));
    await execution;
    // The directory that a kill left behind is closed after it.
    liveOn();
    stage.living = null;
    sync?.close();
    if (living.isDead) rmSync(dataDir, { recursive: true, force: true });
  }
  return living.wrong;
}

/** Since when it has looked for what is new: only a daemon does all the time. */
function lookedSinceMs({ life, startedMs }: Living): number | null {
  return life.kind === 'daemon' ? startedMs : null;
}

/** The events at the database before a life begins. */
function prepare(stage: Stage, { losesFrom, movesHouse }: Life): void {
  const { story, truth } = stage;
  if (movesHouse) stage.moveHouse();
  if (losesFrom === null) return;
  const from = losesFrom < 0 ? 0n : msToNs(Math.floor(story.startMs + losesFrom * (story.endMs - story.startMs)));
  stage.database().lose((at) => at >= from);
  stage.hasLost = true;
  truth.forget();
}

/** Kills the program at its time: from then on it can change nothing. The work that it has left continues. */
async function scheduleKill(stage: Stage, living: Living): Promise<void> {
  const { kill } = living.life;
  if (kill === null) return;
  if (kill.afterMs > 0) await stage.clock.sleep(kill.afterMs, living.stop.signal).catch(() => {});
  if (!living.stop.signal.aborted) dieAtEffect(kill.effect, () => die(stage, living));
}

function die(stage: Stage, living: Living): void {
  living.isDead = true;
  stage.die();
  living.stop.abort(new Killed('killed'));
}

/** An error that ends a life: an error that needs the operator is allowed where the service rejects the key. */
function wordsOf({ story, clock }: Stage, { life, startedMs }: Living, error: unknown): string[] {
  const isRefused = story.misfortunes.some(
    ({ fromMs, toMs, what }) =>
      fromMs <= clock.nowMs() &&
      startedMs < toMs &&
      what.kind === 'settings' &&
      ('key' in what.change || 'plan' in what.change),
  );
  const { exitCode } = { ...(error as { exitCode?: number }) };
  const isLast = life === story.lives.at(-1);
  if ((exitCode === 3 && !isLast) || (exitCode === 77 && isRefused)) return [];
  return [error instanceof Error ? `${error.name}: ${error.message}` : String(error)];
}

type Way = (stage: Stage, sync: Sync, living: Living) => Promise<void>;

const NEVER: KeySource = { isFixed: true, hasChanged: () => false, adopt: () => {} };

const WAYS: Readonly<Record<Life['kind'], Way>> = {
  daemon: async (stage, sync, { life, stop, wrong, startedMs }) => {
    const { clock, program } = stage;
    const beside = [
      ...sync.deliverers.map(({ run }) => run),
      ...(life.maintains ? [(signal: AbortSignal) => runMaintenance(sync.maintenance, signal)] : []),
    ];
    const failure: { error: unknown } = { error: null };
    const running = program.runDaemon({ ...sync, key: NEVER, beside }, stop.signal).catch((error: unknown) => {
      failure.error = error;
      stop.abort(error);
    });
    try {
      for (const part of [...life.looks, 1]) {
        await clock.sleep(startedMs + part * life.forMs - clock.nowMs(), stop.signal);
        if (!stage.hasLost) wrong.push(...examineStatus(stage, sync, startedMs));
      }
      await untilDead(stage, { life, stop });
    } catch (error) {
      if (!stop.signal.aborted) throw error;
    }
    stop.abort(new Error('Stopped'));
    await running;
    if (failure.error !== null) throw failure.error;
  },
  once: async (stage, sync, living) => {
    const { stop } = living;
    const before = stage.counts.requests;
    const summary: OnceSummary = await within(stage, living, (signal) => stage.program.runOnce(sync, signal));
    if (stop.signal.aborted || living.isDead) return;
    const endedAtMs = stage.clock.nowMs();
    const { passedAtMs, committedAtMs } = living.events;
    const lived: Lived = {
      life: living.life,
      startedMs: living.startedMs,
      summary,
      passedAtMs,
      committedAtMs: committedAtMs ?? endedAtMs,
      endedAtMs,
      requests: stage.counts.requests - before,
    };
    if (!stage.hasLost) living.wrong.push(...examineRun(stage, sync, lived));
  },
  backfill: async (stage, sync, living) => {
    const { program, clock } = stage;
    const from = String(msToNs(Math.max(0, Math.floor(knownMs(stage, living.life) - living.life.reachMs))));
    const args = { from, to: null, devices: [], maxShare: null, finishByMs: null };
    const rates = ratesOfState(stage.dataDir, sync.context.settings.filter);
    const startedMs = clock.nowMs();
    const summary: BackfillSummary = await within(stage, living, (signal) =>
      program.runBackfill({ ...sync, rates }, args, signal),
    );
    if (summary.exit_code === 1 && !mayBeHidden(stage))
      living.wrong.push(`exit 1 after ${clock.nowMs() - startedMs} ms`);
  },
  replay: async (stage, sync, living) => {
    const { clock } = stage;
    for (let attempt = 0; attempt < 12; attempt += 1) {
      const parts = { ...sync.context, deliverers: sync.deliverers, isBeside: false };
      const replays = openReplays(parts, replayArgs());
      const { outcome } = await replays.run(living.stop.signal);
      if (living.isDead) return;
      if (outcome === 'complete') {
        stage.hasLost = false;
        return;
      }
      await clock.sleep(HOUR_MS);
    }
    living.wrong.push('a replay that does not come to its end within half a day');
  },
};

/**
 * The latest time that has certainly passed for a life: a backfill from a later time on is refused. While answers have
 * no `Date`, that is no later than the local clock and the newest readings; else the clock of the service may be
 * behind.
 */
function knownMs(stage: Stage, { atMs, forMs }: Life): number {
  const nowMs = stage.simulator.worldNowMs();
  const during = stage.story.misfortunes.filter(({ fromMs, toMs }) => fromMs <= atMs + forMs && atMs < toMs);
  const isUndated = during.some(({ what }) => what.kind === 'undated');
  const behind = during.map(({ what }) =>
    what.kind === 'server clock' || what.kind === 'server clock and stamps' ? -what.byMs : 0,
  );
  if (stage.simulator.settings.time.date !== 'absent' && !isUndated) return nowMs - Math.max(0, ...behind);
  const behindMs = localBehindMs(stage, { fromMs: atMs, toMs: atMs + forMs });
  return Math.min(nowMs - behindMs, oldestNewestMs(stage, Math.floor(nowMs)));
}

/** Whether the plan may hide what a backfill wants. */
function mayBeHidden({ simulator }: Stage): boolean {
  return simulator.settings.plan.historyMaxDays !== null;
}

/** A daemon that is to be killed runs on until it is. */
async function untilDead({ clock, story }: Stage, { life, stop }: Pick<Living, 'life' | 'stop'>): Promise<void> {
  if (life.kill === null) return;
  const untilMs = clock.nowMs() + LONGEST_DEATH_MS;
  while (clock.nowMs() < untilMs && clock.nowMs() < story.endMs) await clock.sleep(MINUTE_MS, stop.signal);
}

/** Work that is interrupted when its time is over. */
async function within<T>(
  { clock }: Stage,
  { life, stop }: Living,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const onStop = (): void => over.abort(stop.signal.reason);
  stop.signal.addEventListener('abort', onStop, { once: true });
  const timer = clock.sleep(life.forMs, over.signal).then(
    () => over.abort(new Error('interrupted')),
    () => {},
  );
  try {
    return await work(over.signal);
  } finally {
    stop.signal.removeEventListener('abort', onStop);
    over.abort();
    await timer;
  }
}
