/**
 * The daemon command: connects the API over HTTP, a key that may be replaced in its file, the sync and the status
 * page.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Sync } from '../../app/open-sync.ts';
import { createKeySource, createPasswordSource } from '../../app/secret-files.ts';
import { runService } from '../../app/service.ts';
import { type ProcessPorts, reportOdd, type TerminalOutput } from '../../app/terminal.ts';
import { withSync } from '../../app/with-sync.ts';
import type { Config } from '../../config/config.ts';
import { beatingClock } from '../../core/heartbeats.ts';
import type { Secret } from '../../core/secret.ts';
import { VERSION } from '../../core/status.ts';
import { requireFree } from '../../observe/server.ts';
import { type JobParts, runJobs } from '../../scheduler/jobs.ts';
import { STATE_FILE } from '../../store/open/database.ts';
import { createAllHistory, createBackfillWorker } from '../backfill/job.ts';
import { createCheckWorker } from '../check/job.ts';
import { createForgetWorker, forgetParts } from '../forget/job.ts';
import { createOnceWorker } from '../once/job.ts';
import { createQuarantineWorkers, quarantineParts } from '../quarantine/job.ts';
import { createReplayWorker } from '../replay/job.ts';
import { ratesOfState } from '../shared/state-report.ts';

/**
 * Runs the daemon until it is stopped.
 *
 * @param secrets the texts that must not be shown; a new key is added to them.
 * @returns the exit code.
 */
export async function runDaemonCommand(
  { config, secrets, terminal }: { config: Config; secrets: Secret[]; terminal: TerminalOutput },
  ports: ProcessPorts,
): Promise<number> {
  // Nothing is created for a daemon that cannot serve its page. If there is a state, an error about another process
  // that uses it is more helpful.
  if (!existsSync(join(config.dataDir, STATE_FILE))) await requireFree(config.listen);
  const files = { readFile: ports.readFile, secrets, onUnusable: reportOdd(terminal) };
  const key = createKeySource(config.api, files);
  const password = createPasswordSource(config.statusPage, files);
  return await withSync({ config, terminal, secrets, key: key.inUse }, ports, async (sync) => {
    const onServed = (statusPage: string): void =>
      terminal.logger.write({ type: 'started', version: VERSION, statusPage });
    const { timeoutMs } = config.api;
    const jobs = createJobParts(sync, terminal, { timeoutMs, dataDir: config.dataDir, hasOtherKey: key.hasChanged });
    const wantsAll = config.sync.history.kind === 'age' && config.sync.history.isAll === true;
    const all = wantsAll ? createAllHistory({ ...sync.context, queue: sync.jobs }) : null;
    const beside = [(stop: AbortSignal) => runJobs({ ...jobs, onEnd: all?.noteEnded }, stop)];
    if (all !== null) beside.push(all.run);
    const { perDevice } = config.metrics;
    await runService({ ...config, sync, terminal, key, password, perDevice, beside, onServed }, ports.signal);
    terminal.logger.write({ type: 'stopped' });
    return 0;
  });
}

/** The settings of jobs, in addition to the sync. */
interface JobSettings {
  readonly timeoutMs: number;
  readonly dataDir: string;
  /** Whether the file of the API key contains another key than the one in use. */
  readonly hasOtherKey: () => boolean;
}

/** The functions that the daemon offers to commands. */
function createJobParts(sync: Sync, { scrub }: TerminalOutput, place: JobSettings): JobParts {
  const { observe } = sync.context;
  const clock = beatingClock(sync.context.clock, sync.heartbeats.openPulse('jobs'));
  const rates = ratesOfState(place.dataDir, sync.context.settings.filter);
  const workers = {
    once: createOnceWorker(sync),
    check: createCheckWorker({ ...sync, ...place }),
    backfill: createBackfillWorker({ ...sync, rates }),
    repair: loadOnFirstUse(async () => (await import('../verify/job.ts')).createRepairWorker(sync)),
    sample: loadOnFirstUse(async () => (await import('../verify/job.ts')).createSampleWorker(sync, place.dataDir)),
    replay: createReplayWorker({ ...sync.context, deliverers: sync.deliverers }),
    ...createQuarantineWorkers(quarantineParts(sync)),
    forget: createForgetWorker(forgetParts(sync)),
  };
  return { queue: sync.jobs, workers, clock, observe, scrub, onProgress: sync.noteJob };
}

type Worker = JobParts['workers'][string];

/** A worker whose code is loaded when there is work for it, so that a daemon without such work starts faster. */
function loadOnFirstUse(load: () => Promise<Worker>): Worker {
  return (args, signal, save) => {
    let work: ReturnType<Worker> | null = null;
    const end = load().then(async (begin) => {
      work = begin(args, signal, save);
      return await work.end;
    });
    return { end, progress: () => work?.progress() ?? null };
  };
}
