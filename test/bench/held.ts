/**
 * The figures for stored data: `--export` and `--replay` of a state that is filled here, with compacted blocks as
 * the program writes them. Each is one run of the real program; the result is checked for completeness before the time
 * counts.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { databaseEnv, type Ended, runProgram, startNullInflux } from './parts.ts';
import { fillState } from './scale/state.ts';
import type { Measured } from './table.ts';

/** The measured commands, and how often they run. */
export interface HeldPlan {
  readonly runs: number;
  readonly devices: number;
  readonly days: number;
  readonly program: string;
  readonly newestMs: number;
}

const WANTED = { perS: 100_000, peakMb: 200, growth: 1.1 };

const MINUTES_A_DAY = 1440;
const MB = 1_000_000;
const NEWLINE = 10;

interface Held extends Disposable {
  readonly dataDir: string;
  readonly points: number;
}

/** A state of so many devices and days, a reading a minute. */
function fill({ devices, days, newestMs }: HeldPlan, influx: string): Held {
  const directory = mkdtempSync(join(tmpdir(), 'tidemark-bench-'));
  const dataDir = join(directory, 'state');
  const readings = devices * days * MINUTES_A_DAY;
  const { points } = fillState(dataDir, { devices, readings, days, sensors: 1, seed: 1, influx, newestMs });
  return { dataDir, points, [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }) };
}

/**
 * Exports it.
 *
 * @throws Error if it is not complete
 */
async function exported({ dataDir, points }: Held, format: string, program: string): Promise<Ended> {
  let lines = 0;
  const onOutput = (chunk: Buffer): void => {
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, at + 1)) lines += 1;
  };
  const ended = await runProgram(['--export', format], { env: { TIDEMARK_DATA_DIR: dataDir }, program, onOutput });
  const wanted = points + (format === 'csv' ? 1 : 0);
  if (ended.code !== 0 || lines !== wanted) throw new Error(`${lines} lines of ${wanted}: ${ended.stderr}`);
  return ended;
}

/** The speed and the memory of each format, and whether the memory grows with what is exported. */
export async function measureExport(plan: HeldPlan, say: (text: string) => void): Promise<Measured[]> {
  using held = fill(plan, 'http://127.0.0.1:1');
  const measured: Measured[] = [];
  let most = 0;
  for (const format of ['csv', 'ndjson', 'lp']) {
    const runs: Ended[] = [];
    for (let run = 0; run < plan.runs; run += 1) runs.push(await exported(held, format, plan.program));
    measured.push(speed(`export ${format}`, held, runs), peak(`peak memory, export ${format}`, runs));
    tell(`export ${format}`, held, { runs, say });
    if (format === 'csv') most = Math.max(...runs.map(({ peakBytes }) => peakBytes));
  }
  using large = fill({ ...plan, days: plan.days * 10 }, 'http://127.0.0.1:1');
  const long = await exported(large, 'csv', plan.program);
  tell('export csv, ten times', large, { runs: [long], say });
  return [...measured, ...growth('export', plan, { long, most })];
}

/** The speed and the memory of a replay into a database that keeps nothing. */
export async function measureReplay(plan: HeldPlan, say: (text: string) => void): Promise<Measured[]> {
  const runs: Ended[] = [];
  let points = 0;
  for (let run = 0; run < plan.runs; run += 1) {
    const one = await replayed(plan);
    runs.push(one);
    points = one.points;
  }
  tell('replay', { points }, { runs, say });
  const long = await replayed({ ...plan, days: plan.days * 10 });
  tell('replay, ten times', long, { runs: [long], say });
  const most = Math.max(...runs.map(({ peakBytes }) => peakBytes));
  return [
    speed('replay', { points }, runs),
    peak('peak memory, replay', runs),
    ...growth('replay', plan, { long, most }),
  ];
}

async function replayed(plan: HeldPlan): Promise<Ended & { readonly points: number }> {
  using sink = await startNullInflux();
  using held = fill(plan, sink.url);
  const env = {
    ...databaseEnv(sink.url),
    TIDEMARK_DATA_DIR: held.dataDir,
    TIDEMARK_INFLUX_KIND: 'influxdb',
  };
  const ended = await runProgram(['--replay', '--json'], { env, program: plan.program });
  const { telemetry } = await sink.counts();
  if (ended.code !== 0 || telemetry.lines !== held.points) {
    throw new Error(`${telemetry.lines} lines of ${held.points} sent: ${ended.stderr}`);
  }
  return { ...ended, points: held.points };
}

function speed(figure: string, { points }: Pick<Held, 'points'>, runs: readonly Ended[]): Measured {
  // By the time of the processor: what one core does, whatever else this machine has to do.
  const values = runs.map(({ cpuMs }) => (points / cpuMs) * 1000);
  return { figure: `${figure}, of one core`, unit: 'values/s', wanted: WANTED.perS, better: 'more', values };
}

function peak(figure: string, runs: readonly Ended[]): Measured {
  const values = runs.map(({ peakBytes }) => peakBytes / MB);
  return { figure, unit: 'MB', wanted: WANTED.peakMb, better: 'less', values };
}

/** Below so many days the shorter run is over before its memory has grown to its maximum. */
const GROWN_DAYS = 30;

function growth(
  of: string,
  { days }: HeldPlan,
  { long, most }: { readonly long: Ended; readonly most: number },
): Measured[] {
  const peaks = peak(`peak memory, ${of} of ten times`, [long]);
  const figure = `memory of ten times the ${of}`;
  const values = [long.peakBytes / most];
  return days < GROWN_DAYS
    ? [peaks]
    : [peaks, { figure, unit: 'times', wanted: WANTED.growth, better: 'less', values }];
}

function tell(
  what: string,
  { points }: Pick<Held, 'points'>,
  { runs, say }: { runs: readonly Ended[]; say: (text: string) => void },
): void {
  for (const { wallMs, cpuMs, peakBytes } of runs) {
    say(
      `${what}: ${points} values in ${(wallMs / 1000).toFixed(1)} s, ${(cpuMs / 1000).toFixed(1)} s of processor time, peak ${Math.round(peakBytes / MB)} MB`,
    );
  }
}
