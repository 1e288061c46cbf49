/**
 * The order in which the files of tests are run: what waits for real processes beside what computes, the long ones first,
 * so that no core is idle and nothing long is left for the end.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Folders whose tests wait for processes, servers and browsers for most of their time; all others compute. */
const WAITING = ['test/process/', 'test/page/', 'test/commands/verify/', 'test/commands/check/'];

/**
 * How many seconds the long files take on two cores that have nothing else to do. A figure that is not true any more, or
 * missing, leaves a core idle at the end and does no other harm.
 */
export const SECONDS: Readonly<Record<string, number>> = {
  'test/process/four-ways.test.ts': 140,
  'test/process/jobs.test.ts': 130,
  'test/process/daemon.test.ts': 85,
  'test/page/browser.test.ts': 80,
  'test/process/logs.test.ts': 75,
  'test/process/once.test.ts': 60,
  'test/commands/check/api.test.ts': 60,
  'test/commands/verify/victoria.test.ts': 50,
  'test/commands/verify/process.test.ts': 47,
  'test/page/daemon.test.ts': 46,
  'test/commands/verify/influx.test.ts': 45,
  'test/process/kill.test.ts': 33,
  'test/process/check.test.ts': 26,
  'test/process/upkeep.test.ts': 25,
  'test/process/export.test.ts': 20,
  'test/process/demo.test.ts': 20,
  'test/process/built.test.ts': 17,
  'test/process/secrets.test.ts': 16,
  'test/process/replay.test.ts': 15,
  'test/process/backfill.test.ts': 12,
  'test/process/move.test.ts': 12,
  'test/stories/healing.test.ts': 55,
  'test/stories/quiet-faults.test.ts': 55,
  'test/stories/many-devices.test.ts': 22,
  'test/commands/backfill/beside.test.ts': 50,
  'test/stories/daemon.test.ts': 45,
  'test/stories/daemon-outages.test.ts': 45,
  'test/commands/backfill/alone.test.ts': 44,
  'test/safety/safety.test.ts': 42,
  'test/scheduler/jobs.test.ts': 35,
  'test/safety/mutants.test.ts': 31,
  'test/commands/backfill/all.test.ts': 28,
  'test/commands/once/once.test.ts': 25,
  'test/commands/plan/command.test.ts': 24,
  'test/lives/lives.test.ts': 65,
  'test/commands/backfill/pace.test.ts': 22,
  'test/commands/backfill/history-all.test.ts': 21,
  'test/stories/empty-device-list.test.ts': 20,
  'test/stories/health.test.ts': 17,
  'test/stories/devices-come-and-go.test.ts': 17,
  'test/observe/server.test.ts': 17,
  'test/bench/planner/planner-bench.test.ts': 22,
  'test/api/rate-limiter-share.test.ts': 17,
  'test/api/rate-limiter.test.ts': 10,
  'test/archive/maintenance.test.ts': 10,
};

/**
 * One of each in turn, the longest first, then all that is short; last what needs no world, which is short throughout. A
 * process is used again for the next file of its project alone, so those of one project stay together.
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
