/**
 * The order in which the files of tests are run: what waits for real processes beside what computes, the long ones first,
 * so that no core is idle and nothing long is left for the end.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Folders whose tests wait for processes, servers and browsers for most of their time. */
const WAITING = ['test/process/', 'test/page/', 'test/commands/verify/', 'test/commands/check/', 'test/prometheus/'];
/** Folders whose tests compute for long. */
const COMPUTING = [
  'test/commands/backfill/',
  'test/scheduler/',
  'test/safety/',
  'test/commands/once/',
  'test/grafana/',
];

/** One of each in turn, then all that is short. */
export class MixedSequence extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = (await super.sort(files)).toSorted((a, b) => rankOf(a) - rankOf(b));
    const waiting = sorted.filter((file) => isIn(file, WAITING));
    const computing = sorted.filter((file) => isIn(file, COMPUTING));
    const short = sorted.filter((file) => !isIn(file, [...WAITING, ...COMPUTING]));
    const turns = Array.from({ length: Math.max(waiting.length, computing.length) }, (_, turn) => turn);
    return [
      ...turns.flatMap((turn) => [...waiting.slice(turn, turn + 1), ...computing.slice(turn, turn + 1)]),
      ...short,
    ];
  }
}

function rankOf(file: TestSpecification): number {
  return [...WAITING, ...COMPUTING].findIndex((folder) => isIn(file, [folder]));
}

function isIn({ moduleId }: TestSpecification, folders: readonly string[]): boolean {
  return folders.some((folder) => moduleId.includes(`/${folder}`));
}
