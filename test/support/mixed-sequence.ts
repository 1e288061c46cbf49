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
  'test/process/jobs.test.ts': 165,
  'test/process/daemon.test.ts': 157,
  'test/lives/lives.test.ts': 150,
  'test/process/four-ways.test.ts': 132,
  'test/safety/mutants.test.ts': 130,
  'test/page/browser.test.ts': 128,
  'test/safety/safety.test.ts': 118,
  'test/process/kill.test.ts': 113,
  'test/stories/healing.test.ts': 108,
  'test/commands/verify/influx.test.ts': 97,
  'test/commands/backfill/beside.test.ts': 95,
  'test/process/memory.test.ts': 90,
  'test/stories/many-devices.test.ts': 88,
  'test/report/history-eta.test.ts': 82,
  'test/commands/backfill/eta.test.ts': 80,
  'test/stories/daemon-outages.test.ts': 80,
  'test/commands/backfill/alone.test.ts': 78,
  'test/grafana/odd-workspaces.test.ts': 77,
  'test/commands/check/api.test.ts': 76,
  'test/process/logs.test.ts': 73,
  'test/stories/quiet-faults.test.ts': 70,
  'test/commands/once/once.test.ts': 68,
  'test/commands/verify/process.test.ts': 64,
  'test/process/once.test.ts': 64,
  'test/stories/daemon.test.ts': 62,
  'test/page/daemon.test.ts': 60,
  'test/stories/devices-come-and-go.test.ts': 60,
  'test/commands/verify/victoria.test.ts': 59,
  'test/scheduler/jobs.test.ts': 57,
  'test/commands/backfill/all.test.ts': 56,
  'test/grafana/queries.test.ts': 54,
  'test/stories/empty-device-list.test.ts': 54,
  'test/safety/borders.test.ts': 50,
  'test/commands/backfill/rate.test.ts': 48,
  'test/process/upkeep.test.ts': 42,
  'test/stories/wrong-clocks.test.ts': 42,
  'test/grafana/victoria-odd.test.ts': 41,
  'test/bench/bench.test.ts': 40,
  'test/stories/one-story.test.ts': 39,
  'test/commands/backfill/history-all.test.ts': 38,
  'test/process/documented-commands.test.ts': 38,
  'test/bench/planner/planner-bench.test.ts': 37,
  'test/commands/backfill/recheck.test.ts': 35,
  'test/ingest/page-scan.test.ts': 35,
  'test/process/check.test.ts': 34,
  'test/process/export.test.ts': 34,
  'test/stories/three-ways.test.ts': 33,
  'test/commands/plan/command.test.ts': 32,
  'test/process/built.test.ts': 32,
  'test/fixtures/state.test.ts': 30,
  'test/stories/database-outage.test.ts': 30,
  'test/stories/short-outages.test.ts': 30,
  'test/api/rate-limiter-share.test.ts': 27,
  'test/archive/maintenance.test.ts': 26,
  'test/stories/health.test.ts': 25,
  'test/commands/status/truth.test.ts': 24,
  'test/report/page-facts/seed.test.ts': 24,
  'test/grafana/victoria.test.ts': 22,
  'test/process/demo.test.ts': 22,
  'test/stories/late-readings.test.ts': 22,
  'test/support/summary-reporter.test.ts': 21,
  'test/process/replay.test.ts': 20,
  'test/delivery/quarantine.test.ts': 19,
  'test/api/rate-limiter.test.ts': 18,
  'test/observe/server.test.ts': 18,
  'test/process/status.test.ts': 18,
  'test/archive/room.test.ts': 17,
  'test/commands/check/state.test.ts': 17,
  'test/process/health.test.ts': 17,
  'test/process/secrets.test.ts': 17,
  'test/process/backfill.test.ts': 16,
  'test/prometheus/rules.test.ts': 16,
  'test/store/open/full.test.ts': 16,
  'test/architecture.test.ts': 15,
  'test/commands/status/text.test.ts': 15,
  'test/process/newer.test.ts': 15,
  'test/process/progress.test.ts': 15,
  'test/store/archive/years.test.ts': 14,
  'test/page/overview.test.ts': 13,
  'test/process/move.test.ts': 13,
  'test/process/plan.test.ts': 13,
  'test/store/open/processes.test.ts': 13,
  'test/ingest/filter.test.ts': 12,
  'test/process/other-user.test.ts': 12,
  'test/store/archive/cleared-commit.test.ts': 12,
  'test/store/archive/kill.test.ts': 12,
  'test/store/device/forget.test.ts': 12,
  'test/store/views/backup.test.ts': 12,
  'test/stories/empty-answers.test.ts': 12,
  'test/safety/regressions.test.ts': 11,
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
