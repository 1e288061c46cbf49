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
  'test/lives/lives.test.ts': 207,
  'test/process/jobs.test.ts': 164,
  'test/process/four-ways.test.ts': 145,
  'test/process/daemon.test.ts': 131,
  'test/process/kill.test.ts': 128,
  'test/safety/mutants.test.ts': 126,
  'test/safety/safety.test.ts': 101,
  'test/page/browser.test.ts': 98,
  'test/process/logs.test.ts': 87,
  'test/page/daemon.test.ts': 75,
  'test/commands/check/api.test.ts': 73,
  'test/process/memory.test.ts': 73,
  'test/commands/verify/process.test.ts': 55,
  'test/stories/healing.test.ts': 54,
  'test/commands/backfill/beside.test.ts': 53,
  'test/stories/unlisted-devices.test.ts': 49,
  'test/process/once.test.ts': 47,
  'test/grafana/odd-workspaces.test.ts': 36,
  'test/report/history-eta.test.ts': 36,
  'test/commands/verify/victoria.test.ts': 35,
  'test/process/maintenance.test.ts': 35,
  'test/process/documented-runs.test.ts': 35,
  'test/commands/backfill/eta.test.ts': 34,
  'test/commands/once/once.test.ts': 32,
  'test/stories/daemon-outages.test.ts': 31,
  'test/process/check.test.ts': 30,
  'test/stories/quiet-faults.test.ts': 30,
  'test/process/first-steps.test.ts': 29,
  'test/process/secrets.test.ts': 27,
  'test/stories/many-devices.test.ts': 27,
  'test/commands/verify/influx.test.ts': 26,
  'test/stories/devices-come-and-go.test.ts': 25,
  'test/stories/wrong-clocks.test.ts': 25,
  'test/commands/backfill/alone.test.ts': 23,
  'test/safety/borders.test.ts': 23,
  'test/stories/empty-device-list.test.ts': 23,
  'test/commands/backfill/all.test.ts': 22,
  'test/grafana/victoria-odd.test.ts': 22,
  'test/grafana/victoria.test.ts': 21,
  'test/process/demo.test.ts': 21,
  'test/process/export.test.ts': 21,
  'test/prometheus/rules.test.ts': 20,
  'test/commands/check/state.test.ts': 19,
  'test/commands/backfill/rate.test.ts': 18,
  'test/observe/server.test.ts': 18,
  'test/scheduler/jobs.test.ts': 18,
  'test/commands/backfill/recheck.test.ts': 17,
  'test/commands/status/truth.test.ts': 17,
  'test/grafana/queries.test.ts': 17,
  'test/stories/daemon.test.ts': 17,
  'test/bench/bench.test.ts': 16,
  'test/delivery/quarantine.test.ts': 16,
  'test/commands/check/startup.test.ts': 15,
  'test/commands/plan/command.test.ts': 15,
  'test/process/backfill.test.ts': 15,
  'test/process/built.test.ts': 15,
  'test/stories/short-outages.test.ts': 15,
  'test/report/page-facts/seed.test.ts': 14,
  'test/fixtures/state.test.ts': 13,
  'test/process/move.test.ts': 13,
  'test/process/newer.test.ts': 13,
  'test/process/other-user.test.ts': 13,
  'test/process/replay.test.ts': 13,
  'test/process/status.test.ts': 13,
  'test/store/open/processes.test.ts': 13,
  'test/commands/backfill/history-all.test.ts': 12,
  'test/process/health.test.ts': 12,
  'test/store/open/full.test.ts': 12,
  'test/stories/database-outage.test.ts': 12,
  'test/stories/health.test.ts': 12,
  'test/stories/one-story.test.ts': 12,
  'test/support/summary-reporter.test.ts': 12,
  'test/grafana/sync-health.test.ts': 10,
  'test/ingest/filter.test.ts': 10,
  'test/process/plan.test.ts': 10,
  'test/safety/regressions.test.ts': 10,
  'test/stories/empty-answers.test.ts': 10,
  'test/stories/late-readings.test.ts': 10,
  'test/ingest/page-scan.test.ts': 9,
  'test/commands/forget/job.test.ts': 8,
  'test/ingest/alerts.test.ts': 8,
  'test/process/documented-commands.test.ts': 8,
  'test/bench/planner/planner-bench.test.ts': 7,
  'test/commands/check/destination.test.ts': 7,
  'test/commands/quarantine/job.test.ts': 7,
  'test/stories/three-ways.test.ts': 7,
  'test/api/rate-limiter-share.test.ts': 6,
  'test/commands/init/init.test.ts': 6,
  'test/delivery/victoria.test.ts': 6,
  'test/page/overview.test.ts': 6,
  'test/stories/named-gaps.test.ts': 6,
  'test/architecture.test.ts': 5,
  'test/archive/maintenance.test.ts': 5,
  'test/archive/room.test.ts': 5,
  'test/commands/status/text.test.ts': 5,
  'test/influx/influxdb3.test.ts': 5,
  'test/page/page.test.ts': 5,
  'test/api/rate-limiter.test.ts': 4,
  'test/process/progress.test.ts': 2,
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
