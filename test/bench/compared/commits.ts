/**
 * The floor with one, four and eight pages in a commit, in turn: what fewer commits would save of a backfill, on the
 * disk of the temporary directory (`TMPDIR`).
 */
import { tmpdir } from 'node:os';
import { type ComparePlan, inTurn, type Row, rowOf, runFloor } from './compare.ts';

/** Rows of the floor without delivery: a page a commit, beside more. */
export async function measureCommits({
  size,
  runs,
  say,
  guard,
}: Omit<ComparePlan, 'program' | 'idleMs'>): Promise<Row[]> {
  say(`commits: in ${tmpdir()}`);
  const of = (pages: number) => async () => await runFloor(size, false, pages);
  const used = await inTurn({ own: of(1), '4 pages': of(4), '8 pages': of(8) }, { runs, say, guard });
  const readings = size.devices * size.readings;
  return [
    rowOf('CPU per reading, a page a commit', 'µs', { used, figureOf: ({ cpuMs }) => (cpuMs * 1000) / readings }),
    rowOf('wall time per reading, a page a commit', 'µs', {
      used,
      figureOf: ({ wallMs }) => (wallMs * 1000) / readings,
    }),
  ];
}
