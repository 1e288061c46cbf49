/**
 * The planner's bench: fleets and plans in virtual time, against a cron loop and a bound.
 *
 * `node test/bench/planner/run.ts` prints a table of the runs and one of the figures, and exits 1 on a miss. `--fleet
 * N` (repeatable) selects fleets, `--plan tight|wide` one plan, `--hours N` and `--seed N` set these values;
 * `--quick` simulates 24 hours, one other client less and no fleet above 1,000.
 */
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { formatTable, judgeFigure, type Measured } from '../table.ts';
import { type Cell, type CellResult, figuresOf, nameOf, type PlanName, runCell } from './cells.ts';
import { plannerBytes } from './memory.ts';

/** The runs. */
export interface PlannerBench {
  readonly cells: readonly Cell[];
  readonly hours: number;
  readonly seed: number;
}

const FLEETS = [50, 1000, 10_000];
const PLAN_NAMES: readonly PlanName[] = ['tight', 'wide'];
const OTHERS = [0, 0.3];
const MEMORY_DEVICES = 10_000;
const MEMORY_MB = 20;
const MB = 1_000_000;

/** The default runs. */
export function plannerBench(isQuick: boolean): PlannerBench {
  const fleets = isQuick ? FLEETS.filter((devices) => devices <= 1000) : FLEETS;
  return { cells: cellsOf(fleets, PLAN_NAMES, isQuick ? [0] : OTHERS), hours: isQuick ? 24 : 48, seed: 7 };
}

function cellsOf(fleets: readonly number[], plans: readonly PlanName[], others: readonly number[]): readonly Cell[] {
  return fleets.flatMap((devices) =>
    plans.flatMap((plan) => others.map((part): Cell => ({ devices, plan, others: part }))),
  );
}

/**
 * Runs it.
 *
 * @param say gets a line for each cell
 * @returns the figures.
 */
export function measurePlanner({ cells, hours, seed }: PlannerBench, say: (line: string) => void): Measured[] {
  const measured: Measured[] = [];
  say(row(HEAD));
  for (const cell of cells) {
    const result = runCell(cell, { hours, seed });
    say(row(lineOf(result)));
    measured.push(...figuresOf(result));
  }
  const bytes = plannerBytes(MEMORY_DEVICES, seed);
  const figure = `memory of the plan, ${MEMORY_DEVICES} devices`;
  return [...measured, { figure, unit: 'MB', wanted: MEMORY_MB, better: 'less', values: [bytes / MB] }];
}

const HEAD = [
  'devices plan',
  'fits',
  'age',
  'bound',
  'to it',
  'cron',
  'spread cron',
  'requests',
  'of share',
  'readings',
  'carried',
  'of pages',
  'even',
  'empty',
  '429',
  'mean / worst',
];
const WIDTHS = [18, 5, 9, 9, 6, 10, 11, 9, 9, 11, 8, 9, 6, 7, 4, 18];

function lineOf(result: CellResult): readonly string[] {
  const { cell, run, bound, cron, spreadCron, fits, used } = result;
  return [
    nameOf(cell),
    fits ? 'yes' : 'no',
    age(run.meanAgeMs),
    age(bound().meanAgeMs),
    (run.meanAgeMs / bound().meanAgeMs).toFixed(3),
    age(cron().meanAgeMs),
    age(spreadCron().meanAgeMs),
    String(run.requests),
    used.toFixed(3),
    String(run.made),
    (run.carried / run.made).toFixed(3),
    (run.carried / run.requests / 200).toFixed(3),
    run.evenness.toFixed(3),
    `${((100 * run.liveEmpty) / run.livePolls).toFixed(2)} %`,
    String(run.refused),
    `${run.deciding.meanUs.toFixed(0)} / ${run.deciding.worstUs.toFixed(0)} µs`,
  ];
}

function age(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

function row(cells: readonly string[]): string {
  return cells
    .map((cell, column) => cell.padEnd(WIDTHS[column] ?? 0))
    .join(' ')
    .trimEnd();
}

function readArgs(args: readonly string[]): PlannerBench {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      fleet: { type: 'string', multiple: true },
      plan: { type: 'string', multiple: true },
      hours: { type: 'string' },
      seed: { type: 'string' },
    },
  });
  const bench = plannerBench(values.quick);
  const fleets = values.fleet?.map(Number) ?? [...new Set(bench.cells.map(({ devices }) => devices))];
  const plans = PLAN_NAMES.filter((plan) => values.plan?.includes(plan) ?? true);
  const numbers = { hours: Number(values.hours ?? bench.hours), seed: Number(values.seed ?? bench.seed) };
  if ([...fleets, ...Object.values(numbers)].some((number) => !Number.isSafeInteger(number) || number < 1))
    throw new Error('--fleet, --hours, --seed: expected whole numbers above 0');
  if (plans.length === 0) throw new Error(`--plan: one of ${PLAN_NAMES.join(', ')}`);
  return { cells: cellsOf(fleets, plans, values.quick ? [0] : OTHERS), ...numbers };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const say = (line: string): void => void process.stdout.write(`${line}\n`);
  const verdicts = measurePlanner(readArgs(process.argv.slice(2)), say).map(judgeFigure);
  process.stdout.write(`\n${formatTable(verdicts)}`);
  process.exitCode = verdicts.every(({ isMet }) => isMet) ? 0 : 1;
}
