/**
 * The order in which the files of tests are run: what waits for real processes beside what computes, the long ones
 * first, so that no core is idle and nothing long is left for the end.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Folders whose tests wait for processes, servers and browsers for most of their time; all others compute. */
const WAITING = ['test/process/', 'test/page/', 'test/commands/verify/', 'test/commands/check/', 'test/observe/'];

/**
 * How many seconds the long files take beside others on two cores. A figure that is not true any more, or
 * missing, leaves a core idle at the end and does no other harm. Those of `test/deploy` are left out: they come after
 * these, as CI compiles what they need beside the others.
 */
export const SECONDS: Readonly<Record<string, number>> = {
  'test/process/kill.test.ts': 178,
  'test/process/four-ways.test.ts': 142,
  'test/process/jobs.test.ts': 140,
  'test/lives/lives.test.ts': 132,
  'test/process/daemon.test.ts': 119,
  'test/page/browser.test.ts': 101,
  'test/process/logs.test.ts': 74,
  'test/safety/safety.test.ts': 74,
  'test/process/memory.test.ts': 72,
  'test/page/daemon.test.ts': 63,
  'test/commands/check/api.test.ts': 60,
  'test/safety/mutants.test.ts': 53,
  'test/commands/backfill/beside.test.ts': 45,
  'test/process/once.test.ts': 36,
  'test/commands/verify/process.test.ts': 30,
  'test/stories/healing.test.ts': 30,
  'test/process/check.test.ts': 29,
  'test/commands/verify/influx.test.ts': 25,
  'test/process/first-steps.test.ts': 25,
  'test/process/documented-runs.test.ts': 24,
  'test/process/maintenance.test.ts': 22,
  'test/safety/borders.test.ts': 22,
  'test/process/demo.test.ts': 20,
  'test/bench/bench.test.ts': 19,
  'test/observe/server.test.ts': 18,
  'test/process/export.test.ts': 18,
  'test/commands/verify/victoria.test.ts': 17,
  'test/stories/quiet-faults.test.ts': 17,
  'test/commands/check/startup.test.ts': 15,
  'test/stories/empty-device-list.test.ts': 15,
  'test/stories/unlisted-devices.test.ts': 15,
  'test/commands/check/state.test.ts': 14,
  'test/process/documented-commands.test.ts': 14,
  'test/process/secrets.test.ts': 14,
  'test/prometheus/password.test.ts': 14,
  'test/commands/backfill/all.test.ts': 13,
  'test/commands/backfill/alone.test.ts': 13,
  'test/process/move.test.ts': 13,
  'test/commands/backfill/recheck.test.ts': 12,
  'test/process/replay.test.ts': 12,
  'test/stories/daemon.test.ts': 12,
  'test/grafana/queries.test.ts': 11,
  'test/grafana/victoria-odd.test.ts': 11,
  'test/process/backfill.test.ts': 11,
  'test/commands/check/quota.test.ts': 10,
  'test/commands/check/reach.test.ts': 10,
  'test/commands/once/once.test.ts': 10,
  'test/delivery/quarantine.test.ts': 10,
  'test/grafana/sync-health.test.ts': 10,
  'test/commands/plan/output.test.ts': 9,
  'test/fixtures/state.test.ts': 9,
  'test/grafana/odd-workspaces.test.ts': 9,
  'test/process/status.test.ts': 9,
  'test/report/history-eta.test.ts': 9,
  'test/scheduler/jobs.test.ts': 9,
  'test/stories/many-devices.test.ts': 9,
  'test/stories/one-story.test.ts': 9,
  'test/process/built.test.ts': 8,
  'test/process/health.test.ts': 8,
  'test/process/other-user.test.ts': 8,
  'test/prometheus/rules.test.ts': 8,
  'test/store/open/processes.test.ts': 8,
  'test/bench/planner/planner-bench.test.ts': 7,
  'test/commands/status/text.test.ts': 7,
  'test/commands/status/truth.test.ts': 7,
  'test/process/newer.test.ts': 7,
  'test/store/open/full.test.ts': 7,
  'test/stories/database-outage.test.ts': 7,
  'test/support/summary-reporter.test.ts': 7,
  'test/api/rate-limiter-share.test.ts': 6,
  'test/commands/backfill/eta.test.ts': 6,
  'test/commands/backfill/history-all.test.ts': 6,
  'test/commands/plan/command.test.ts': 6,
  'test/process/plan.test.ts': 6,
  'test/process/used-up.test.ts': 6,
  'test/stories/daemon-outages.test.ts': 6,
  'test/stories/health.test.ts': 6,
  'test/stories/wrong-clocks.test.ts': 6,
  'test/archive/maintenance.test.ts': 5,
  'test/commands/backfill/rate.test.ts': 5,
  'test/commands/check/destination.test.ts': 5,
  'test/ingest/filter.test.ts': 5,
  'test/safety/regressions.test.ts': 5,
  'test/store/open/database-place.test.ts': 5,
  'test/stories/devices-come-and-go.test.ts': 5,
  'test/stories/empty-answers.test.ts': 5,
  'test/stories/late-readings.test.ts': 5,
  'test/stories/short-outages.test.ts': 5,
  'test/api/rate-limiter.test.ts': 4,
  'test/architecture.test.ts': 4,
  'test/commands/quarantine/job.test.ts': 4,
  'test/ingest/alerts.test.ts': 4,
  'test/ingest/page-scan.test.ts': 4,
  'test/report/page-facts/seed.test.ts': 4,
};

/**
 * One of each in turn, the longest first, then those of `test/deploy`, then all that is short. What needs no world is a
 * group of its own (`vitest.config.ts`), and only computes: the longest first.
 */
export class MixedSequence extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = (await super.sort(files)).toSorted((a, b) => secondsOf(b) - secondsOf(a));
    const real = sorted.filter(({ project }) => project.name !== 'pure');
    const long = real.filter((file) => secondsOf(file) > 0);
    const short = real.filter((file) => secondsOf(file) === 0);
    const waiting = long.filter(isWaiting);
    const computing = long.filter((file) => !isWaiting(file));
    const turns = Array.from({ length: Math.max(waiting.length, computing.length) }, (_, turn) => turn);
    return [
      ...sorted.filter(({ project }) => project.name === 'pure'),
      ...turns.flatMap((turn) => [...waiting.slice(turn, turn + 1), ...computing.slice(turn, turn + 1)]),
      ...short.filter(isOfDeploy),
      ...short.filter((file) => !isOfDeploy(file)),
    ];
  }
}

function secondsOf({ moduleId }: TestSpecification): number {
  return SECONDS[moduleId.slice(moduleId.lastIndexOf('/test/') + 1)] ?? 0;
}

function isWaiting({ moduleId }: TestSpecification): boolean {
  return WAITING.some((folder) => moduleId.includes(`/${folder}`));
}

function isOfDeploy({ moduleId }: TestSpecification): boolean {
  return moduleId.includes('/test/deploy/');
}
