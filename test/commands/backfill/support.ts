/**
 * Backfills on a rig: alone, and as a job of a daemon, in virtual time.
 */
import Database from 'better-sqlite3';
import type { Sync, SyncOptions } from '../../../src/app/open-sync.ts';
import { createBackfillWorker } from '../../../src/commands/backfill/job.ts';
import { type BackfillSummary, readBackfillSummary } from '../../../src/commands/backfill/result.ts';
import { runBackfill } from '../../../src/commands/backfill/run.ts';
import { createOnceWorker } from '../../../src/commands/once/job.ts';
import { ratesOfState } from '../../../src/commands/shared/state-report.ts';
import type { AppEvent } from '../../../src/core/events.ts';
import type { BackfillArgs } from '../../../src/core/state/job-args.ts';
import type { JobRequest } from '../../../src/core/state/jobs.ts';
import type { ProgressReport } from '../../../src/core/status.ts';
import { SECOND_MS } from '../../../src/core/time.ts';
import { type JobParts, runJobs } from '../../../src/scheduler/jobs.ts';
import { type Followed, follow } from '../../support/follow-job.ts';
import type { Rig } from '../../support/rig.ts';

/** The requested ranges; times in ms. */
export interface Asked {
  readonly fromMs: number | 'all';
  readonly toMs?: number;
  readonly devices?: readonly string[];
  readonly maxShare?: number;
  readonly finishByMs?: number;
  readonly recheck?: boolean;
  /** `--from` as typed. */
  readonly typed?: string;
}

const ns = (ms: number): string => String(BigInt(Math.round(ms)) * 1_000_000n);

export function argsOf(asked: Asked): BackfillArgs {
  return {
    from: asked.fromMs === 'all' ? 'all' : ns(asked.fromMs),
    to: asked.toMs === undefined ? null : ns(asked.toMs),
    devices: asked.devices ?? [],
    maxShare: asked.maxShare ?? null,
    finishByMs: asked.finishByMs ?? null,
    ...(asked.recheck === true ? { recheck: true } : {}),
    ...(asked.typed === undefined ? {} : { typed: { from: asked.typed, to: null, finishBy: null } }),
  };
}

export interface AloneLife {
  readonly summary: BackfillSummary;
  readonly events: readonly AppEvent[];
  readonly progress: readonly ProgressReport[];
}

/** One `--backfill` without a daemon, from opening to closing. */
export async function backfillAlone(
  rig: Rig,
  asked: Asked,
  {
    changes = {},
    signal = new AbortController().signal,
    everyMs = null,
  }: { changes?: Partial<SyncOptions>; signal?: AbortSignal; everyMs?: number | null } = {},
): Promise<AloneLife> {
  const events: AppEvent[] = [];
  const progress: ProgressReport[] = [];
  const observe = (event: AppEvent): void => {
    events.push(event);
    changes.observe?.(event);
  };
  const sync = rig.open({ ...changes, observe });
  const over = new AbortController();
  try {
    const onStarted = (run: { progress(): ProgressReport }): void => {
      if (everyMs === null) return;
      void (async () => {
        while (!over.signal.aborted) {
          await rig.clock.sleep(everyMs, over.signal);
          progress.push(run.progress());
        }
      })().catch(() => {});
    };
    const rates = ratesOfState(rig.dataDir, sync.context.settings.filter);
    return { summary: await runBackfill({ ...sync, rates, onStarted }, argsOf(asked), signal), events, progress };
  } finally {
    over.abort();
    sync.close();
  }
}

/** The loop of jobs as the daemon has it. */
export function takingJobs(
  rig: Rig,
  onEnd?: JobParts['onEnd'],
): (sync: Sync) => readonly ((signal: AbortSignal) => Promise<unknown>)[] {
  return (sync) => {
    const { clock, observe } = sync.context;
    const rates = ratesOfState(rig.dataDir, sync.context.settings.filter);
    const workers = { once: createOnceWorker(sync), backfill: createBackfillWorker({ ...sync, rates }) };
    const parts = { queue: sync.jobs, workers, clock, observe, onEnd, scrub: (text: string) => text };
    return [(signal: AbortSignal) => runJobs(parts, signal)];
  };
}

/** A command that follows its job, over a connection of its own. */
export async function followBackfill(
  rig: Rig,
  asked: Asked | 'once',
  signal = new AbortController().signal,
): Promise<Followed> {
  if (asked === 'once') return await follow(rig, signal, { awaitMs: 30 * SECOND_MS });
  const request: JobRequest = {
    kind: 'backfill',
    args: { ...argsOf(asked) },
    requestedBy: '--backfill',
    requestedMs: rig.clock.nowMs(),
  };
  return await follow(rig, signal, { request, awaitMs: 30 * SECOND_MS });
}

export function summaryOf({ end }: Pick<Followed, 'end'>): BackfillSummary {
  const summary = readBackfillSummary(end?.summary);
  if (summary === null) throw new Error(`no summary: ${JSON.stringify(end)}`);
  return summary;
}

/** Looks into the state, as a third process does. */
export function inState<T>(rig: Rig, work: (db: Database.Database) => T): T {
  const db = new Database(`${rig.dataDir}/tidemark.db`);
  try {
    return work(db);
  } finally {
    db.close();
  }
}

/** The covered ranges of a device, in ms. */
export function coverageOf(rig: Rig, deviceId: string): [fromMs: number, toMs: number][] {
  return inState(rig, (db) =>
    db
      .prepare<[string], { from_ns: bigint; to_ns: bigint }>(
        'SELECT from_ns, to_ns FROM coverage WHERE device_id = ? ORDER BY from_ns',
      )
      .safeIntegers()
      .all(deviceId)
      .map(({ from_ns, to_ns }) => [Number(from_ns / 1_000_000n), Number(to_ns / 1_000_000n)]),
  );
}

/** The telemetry requests so far. */
export function telemetryRequests(rig: Rig, deviceId = ''): number {
  return rig.simulator.log.requests.filter(({ path }) => path.includes(`${deviceId}/telemetry`)).length;
}
