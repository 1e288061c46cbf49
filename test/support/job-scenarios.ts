/**
 * A safety scenario about work that the daemon leaves for itself: all history, through an outage. Part of `scenarios.ts`.
 */

import type { Sync } from '../../src/app/open-sync.ts';
import { createBackfillWorker } from '../../src/commands/backfill/job.ts';
import { ratesOfState } from '../../src/commands/shared/state-report.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import { runJobs } from '../../src/scheduler/jobs.ts';
import { liveAsDaemon, worldOf } from './daemon-rig.ts';
import { betweenTimes } from './faults.ts';
import { complaints } from './judge.ts';
import { NOW_MS, openRig } from './rig.ts';
import type { Scenario } from './scenarios.ts';

const HISTORY_DAYS = 40;

/** `sync.history: all`, and an outage of the API that lasts longer than a job without progress. */
export const allHistoryThroughAnOutage: Scenario = async (bench, program) => {
  const devices = [{ deviceId: 'often', intervalMs: 2 * MINUTE_MS, jitter: 0.5 }];
  using rig = await openRig(bench, { world: worldOf(devices, HISTORY_DAYS * DAY_MS), historyMs: 2 * DAY_MS, program });
  const [fromMs, toMs] = [NOW_MS + 15 * SECOND_MS, NOW_MS + 25 * MINUTE_MS];
  rig.simulator.faults = betweenTimes(fromMs, toMs, { kind: 'server-error', status: 503 });
  const beside = (sync: Sync) => {
    const { context, jobs: queue } = sync;
    const all = program.createAllHistory({ ...context, queue });
    const rates = ratesOfState(rig.dataDir, context.settings.filter);
    const workers = { backfill: createBackfillWorker({ ...sync, rates }) };
    const parts = { ...context, queue, workers, onEnd: all.noteEnded, scrub: (text: string) => text };
    return [all.run, (signal: AbortSignal) => runJobs(parts, signal)];
  };
  await liveAsDaemon(rig, { beside, forMs: 2 * HOUR_MS, program });
  const fromNs = BigInt(NOW_MS - (HISTORY_DAYS + 1) * DAY_MS) * 1_000_000n;
  const toNs = BigInt(NOW_MS - 5 * MINUTE_MS) * 1_000_000n;
  return complaints(await rig.verdict(NOW_MS, { fromNs, toNs }), 20_000);
};
