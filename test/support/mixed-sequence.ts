/**
 * The order in which the files of tests are run: what waits for real processes beside what computes, the long ones
 * first, so that no core is idle and nothing long is left for the end.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Folders whose tests wait for processes, servers and browsers for most of their time; all others compute. */
const WAITING = ['test/process/', 'test/page/', 'test/commands/verify/', 'test/commands/check/', 'test/observe/'];

/**
 * How many seconds the long files take beside others on two cores. A figure that is not true any more, or
 * missing, leaves a core idle at the end and does no other harm. Those of `test/deploy` are left out: they come late, as
 * CI compiles what they need beside the others.
 */
export const SECONDS: Readonly<Record<string, number>> = {
  'test/lives/lives.test.ts': 212,
  'test/process/kill.test.ts': 182,
  'test/process/jobs.test.ts': 160,
  'test/safety/mutants.test.ts': 133,
  'test/process/daemon.test.ts': 129,
  'test/process/four-ways.test.ts': 105,
  'test/page/browser.test.ts': 102,
  'test/safety/safety.test.ts': 87,
  'test/commands/check/api.test.ts': 82,
  'test/process/logs.test.ts': 78,
  'test/process/memory.test.ts': 74,
  'test/commands/backfill/beside.test.ts': 69,
  'test/page/daemon.test.ts': 57,
  'test/stories/healing.test.ts': 48,
  'test/stories/unlisted-devices.test.ts': 45,
  'test/stories/many-devices.test.ts': 44,
  'test/commands/verify/influx.test.ts': 39,
  'test/process/demo.test.ts': 37,
  'test/process/once.test.ts': 32,
  'test/process/check.test.ts': 31,
  'test/commands/verify/process.test.ts': 30,
  'test/bench/bench.test.ts': 26,
  'test/process/maintenance.test.ts': 25,
  'test/process/first-steps.test.ts': 15,
  'test/safety/borders.test.ts': 25,
  'test/commands/verify/victoria.test.ts': 24,
  'test/process/secrets.test.ts': 24,
  'test/stories/daemon.test.ts': 23,
  'test/grafana/queries.test.ts': 22,
  'test/commands/backfill/recheck.test.ts': 21,
  'test/bench/planner/planner-bench.test.ts': 20,
  'test/fixtures/state.test.ts': 20,
  'test/process/export.test.ts': 20,
  'test/process/replay.test.ts': 20,
  'test/report/history-eta.test.ts': 20,
  'test/scheduler/jobs.test.ts': 20,
  'test/grafana/victoria.test.ts': 19,
  'test/prometheus/rules.test.ts': 19,
  'test/commands/backfill/all.test.ts': 18,
  'test/commands/once/once.test.ts': 18,
  'test/commands/plan/command.test.ts': 18,
  'test/observe/server.test.ts': 18,
  'test/grafana/victoria-odd.test.ts': 17,
  'test/process/documented-runs.test.ts': 35,
  'test/process/documented-commands.test.ts': 8,
  'test/api/rate-limiter-share.test.ts': 16,
  'test/commands/check/state.test.ts': 16,
  'test/stories/empty-device-list.test.ts': 16,
  'test/process/backfill.test.ts': 15,
  'test/stories/database-outage.test.ts': 15,
  'test/architecture.test.ts': 14,
  'test/stories/one-story.test.ts': 14,
  'test/stories/quiet-faults.test.ts': 14,
  'test/support/summary-reporter.test.ts': 14,
  'test/archive/maintenance.test.ts': 13,
  'test/commands/backfill/history-all.test.ts': 13,
  'test/ingest/page-scan.test.ts': 13,
  'test/process/move.test.ts': 13,
  'test/stories/wrong-clocks.test.ts': 13,
  'test/commands/check/startup.test.ts': 12,
  'test/stories/daemon-outages.test.ts': 12,
  'test/stories/devices-come-and-go.test.ts': 12,
  'test/commands/status/truth.test.ts': 11,
  'test/grafana/odd-workspaces.test.ts': 11,
  'test/grafana/sync-health.test.ts': 11,
  'test/process/status.test.ts': 11,
  'test/store/open/processes.test.ts': 11,
  'test/stories/short-outages.test.ts': 11,
  'test/api/rate-limiter.test.ts': 10,
  'test/commands/backfill/eta.test.ts': 10,
  'test/commands/backfill/rate.test.ts': 10,
  'test/process/built.test.ts': 10,
  'test/process/health.test.ts': 10,
  'test/process/newer.test.ts': 10,
  'test/report/page-facts/seed.test.ts': 10,
  'test/store/open/full.test.ts': 10,
  'test/stories/three-ways.test.ts': 10,
  'test/commands/backfill/alone.test.ts': 9,
  'test/delivery/quarantine.test.ts': 9,
  'test/process/other-user.test.ts': 8,
  'test/stories/empty-answers.test.ts': 8,
  'test/stories/health.test.ts': 8,
  'test/stories/late-readings.test.ts': 8,
};

/**
 * One of each in turn, the longest first, then all that is short; last what needs no world, which is short throughout.
 * A process is used again for the next file of its project alone, so those of one project stay together.
 */
export class MixedSequence extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = (await super.sort(files)).toSorted((a, b) => secondsOf(b) - secondsOf(a));
    const real = sorted.filter(({ project }) => project.name !== 'pure');
    const long = real.filter((file) => secondsOf(file) > 0);
    const waiting = long.filter(isWaiting);
    const computing = long.filter((file) => !isWaiting(file));
    const turns = Array.from({ length: Math.max(waiting.length, computing.length) }, (_, turn) => turn);
    return [
      ...turns.flatMap((turn) => [...waiting.slice(turn, turn + 1), ...computing.slice(turn, turn + 1)]),
      ...real.filter((file) => secondsOf(file) === 0),
      ...sorted.filter((file) => !real.includes(file)),
    ];
  }
}

function secondsOf({ moduleId }: TestSpecification): number {
  return SECONDS[moduleId.slice(moduleId.lastIndexOf('/test/') + 1)] ?? 0;
}

function isWaiting({ moduleId }: TestSpecification): boolean {
  return WAITING.some((folder) => moduleId.includes(`/${folder}`));
}
