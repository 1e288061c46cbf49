/**
 * `npm run bench`: the compiled program beside a plain client, the floor and an earlier version, all measured in turn
 * in the same run, as one table of ratios (`compared/compare.ts`). `docs/performance.md` keeps its history.
 *
 * Exits 1 where a figure is above the most that it may be. `--quick` uses fewer days and one run of each; `--only NAME`
 * (repeatable) measures other figures instead, against fixed targets: archive, delivery, peak (the memory of a
 * backfill), slow (the same into a database that takes 300 ms or a second to answer a write), idle (processor time and memory beside 30, 500, 2,000 and 10,000 devices), memory (of idle daemons beside
 * 30 and 2,000 devices at once, in containers with 96 and 128 MiB), start, requests, planner, metrics, page, attacks
 * (on the HTTP server), pause (answers of the API that are as large as they may be), export, replay, verify (a million
 * points in a real InfluxDB, and five times as many; `--days 70`: ten million, and fifty), status (on a state of 10,000
 * devices and 100 million readings that it fills first, in minutes; `--quick`: a hundredth of it), grafana (14 million
 * points, in minutes; `--quick`: two million); `--runs N`, `--devices N`, `--days N`, `--minutes N` (of an idle
 * daemon), `--program FILE` set these values.
 *
 * Some figures are ratios to something beside them, in sizes of their own, each in a few minutes: kills (pages that are
 * fetched again after a kill), day (the requests of a live day, in virtual time), backlog (after an outage of an hour,
 * in virtual time), influx (delivery into a real InfluxDB 1.6 beside lines that are ready), growth (ten times the
 * devices, and the history), disk (the state beside zstd), commits (the floor with one, four and eight pages in a
 * commit).
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { MINUTE_MS } from '../../src/core/time.ts';
import { measureAttacked } from './attacked.ts';
import { measureCommits } from './compared/commits.ts';
import { compare, formatRows, isWithin, type Row } from './compared/compare.ts';
import { dashboardBench, measureDashboards } from './dashboards.ts';
import {
  type Backfill,
  type BackfillOptions,
  backfill,
  fewestRequests,
  firstRequestMs,
  newestMsOf,
  requestUse,
} from './figures.ts';
import { measureExport, measureReplay } from './held.ts';
import { measureIdle } from './idle.ts';
import { measureMemory } from './memory.ts';
import { measurePage } from './page.ts';
import { PROGRAM } from './parts.ts';
import { measurePause } from './pause.ts';
import { measurePlanner, plannerBench } from './planner/run.ts';
import { measureRatios, RATIO_NAMES } from './ratios.ts';
import { statusLooks } from './scale/status.ts';
import { measureVerify, type VerifyBench } from './scale/verify.ts';
import { scrapeMs } from './scrape.ts';
import { formatTable, judgeFigure, type Measured } from './table.ts';
import { type Guard, undisturbed } from './undisturbed.ts';
import type { WorkspaceSize } from './workspace.ts';

const FIGURES = [
  'compared',
  'commits',
  'archive',
  'delivery',
  'peak',
  'slow',
  'idle',
  'memory',
  'start',
  'requests',
  'planner',
  'metrics',
  'page',
  'attacks',
  'pause',
  'export',
  'replay',
  'verify',
  'status',
  'grafana',
  ...RATIO_NAMES,
] as const;
type Figure = (typeof FIGURES)[number];

/** The runs, and how often. */
interface Plan {
  readonly figures: ReadonlySet<Figure>;
  readonly runs: number;
  readonly devices: number;
  readonly days: number;
  readonly areDaysGiven: boolean;
  readonly program: string;
  readonly isQuick: boolean;
  /** How long an idle daemon is measured. */
  readonly idleMs: number;
}

const WANTED = {
  archivePerS: 60_000,
  deliveryPerS: 35_000,
  /** Private memory, of any backfill. */
  peakMb: 110,
  /** The peak with ten times the days, divided by the peak with the days. */
  growth: 1.1,
  startMs: 400,
  requestShare: 1.01,
  statusS: 2,
  statusMb: 150,
  scrapeMs: 20,
  healthMs: 300,
};

const MINUTES_A_DAY = 1440;
const MB = 1_000_000;
const STARTS = 7;
/** The fleet that is scraped. */
const SCRAPED = { devices: 10_000, quick: 1000, readings: 10 };

function readPlan(args: readonly string[]): Plan {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string', multiple: true },
      runs: { type: 'string' },
      devices: { type: 'string', default: '100' },
      days: { type: 'string' },
      minutes: { type: 'string' },
      program: { type: 'string', default: PROGRAM },
    },
  });
  const { quick, only = ['compared'], program } = values;
  const known = FIGURES.filter((figure) => only.includes(figure));
  if (known.length < only.length) throw new Error(`--only: one of ${FIGURES.join(', ')}`);
  return {
    figures: new Set(known),
    runs: count(values.runs ?? (quick ? '1' : only.includes('compared') ? '7' : '3')),
    devices: count(values.devices),
    days: count(values.days ?? (quick ? '3' : only.includes('compared') ? '7' : '30')),
    areDaysGiven: values.days !== undefined,
    program,
    isQuick: quick,
    idleMs: count(values.minutes ?? (quick ? '1' : '10')) * MINUTE_MS,
  };
}

function count(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new Error(`${text}: expected a whole number above 0`);
  return Number(text);
}

/** @param times how many times the days of the plan. */
function sizeOf({ devices, days }: Plan, newestMs: number, times = 1): WorkspaceSize {
  return { devices, readings: days * times * MINUTES_A_DAY, intervalMs: MINUTE_MS, newestMs };
}

/** The program beside what it is compared with, and the floor beside itself. */
async function measureRows(plan: Plan): Promise<Row[]> {
  const { figures } = plan;
  const of = { ...plan, size: sizeOf(plan, newestMsOf(Date.now())), say, guard };
  return [
    ...(figures.has('compared') ? await compare(of) : []),
    ...(figures.has('commits') ? await measureCommits(of) : []),
  ];
}

async function measure(plan: Plan): Promise<Measured[]> {
  const newestMs = newestMsOf(Date.now());
  const size = sizeOf(plan, newestMs);
  const measured: Measured[] = [];
  if (plan.figures.has('start')) measured.push(...(await measureStart(plan.program)));
  const wantsArchive = plan.figures.has('archive') || plan.figures.has('requests') || plan.figures.has('peak');
  const archived = wantsArchive ? await repeat(plan, { size, delivers: false }, 'archive') : [];
  if (plan.figures.has('archive')) measured.push(speed('archive alone', archived, WANTED.archivePerS));
  if (plan.figures.has('requests')) measured.push(...requestFigures(archived, size));
  const delivered =
    plan.figures.has('delivery') || plan.figures.has('peak')
      ? await repeat(plan, { size, delivers: true }, 'delivery')
      : [];
  if (plan.figures.has('delivery')) measured.push(speed('with delivery', delivered, WANTED.deliveryPerS));
  if (plan.figures.has('peak')) {
    measured.push(peak('peak memory, archive alone', archived), peak('peak memory, with delivery', delivered));
    // Once, as it takes ten times as long.
    const long = await repeat({ ...plan, runs: 1 }, { size: sizeOf(plan, newestMs, 10), delivers: false }, 'ten times');
    measured.push(peak(`peak memory, ${plan.days * 10} days`, long), growth(plan, archived, long));
  }
  if (plan.figures.has('slow')) measured.push(...(await measureSlow(plan, size)));
  measured.push(...(await measureHeld(plan, newestMs)));
  if (plan.figures.has('status')) measured.push(...(await measureStatus(plan)));
  if (plan.figures.has('planner')) measured.push(...measurePlanner(plannerBench(plan.isQuick), say));
  if (plan.figures.has('grafana')) measured.push(...(await measureDashboards(dashboardBench(plan.isQuick), say)));
  measured.push(...(await measureAsked(plan, newestMs)));
  if (plan.figures.has('idle'))
    measured.push(...(await measureIdle(plan.program, { measuredMs: plan.idleMs, say, guard })));
  if (plan.figures.has('memory')) measured.push(...(await measureMemory(plan.program, plan.idleMs, say)));
  measured.push(...(await measureRatios({ ...plan, newestMs, say, guard })));
  return measured;
}

/** The memory of a backfill into databases that answer slowly, so that many batches are under way at once. */
async function measureSlow(plan: Plan, size: WorkspaceSize): Promise<Measured[]> {
  const measured: Measured[] = [];
  for (const answersAfterMs of [300, 1000]) {
    const what = `into a database that answers after ${answersAfterMs} ms`;
    const runs = await repeat(plan, { size, delivers: true, answersAfterMs }, what);
    measured.push(peak(`peak memory, ${what}`, runs));
  }
  return measured;
}

/** Work on stored data. */
async function measureHeld(plan: Plan, newestMs: number): Promise<Measured[]> {
  const measured: Measured[] = [];
  const archiveOf = { ...plan, newestMs };
  if (plan.figures.has('export')) measured.push(...(await measureExport(archiveOf, say)));
  if (plan.figures.has('replay')) measured.push(...(await measureReplay(archiveOf, say)));
  if (plan.figures.has('verify')) measured.push(...(await measureVerify(verifyBench(plan, newestMs), say)));
  return measured;
}

/** A week of a fleet by default, which a real database has to store first. */
function verifyBench({ program, devices, days, areDaysGiven, isQuick }: Plan, newestMs: number): VerifyBench {
  return { program, devices, days: areDaysGiven ? days : isQuick ? 4 : 7, newestMs };
}

/** The fleet for the requests of metrics and pages. */
function scrapedFleet({ isQuick }: Pick<Plan, 'isQuick'>, newestMs: number): WorkspaceSize {
  const devices = isQuick ? SCRAPED.quick : SCRAPED.devices;
  return { devices, readings: SCRAPED.readings, intervalMs: MINUTE_MS, newestMs };
}

/** The requests to a daemon with very many devices. */
async function measureAsked(plan: Plan, newestMs: number): Promise<Measured[]> {
  const page = plan.figures.has('page') ? await measurePage(plan.program, scrapedFleet(plan, newestMs)) : [];
  const metrics = plan.figures.has('metrics') ? await measureMetrics(plan, newestMs) : [];
  const seconds = plan.isQuick ? 5 : 15;
  const attacks = plan.figures.has('attacks') ? await measureAttacked(plan.program, newestMs, seconds) : [];
  const pause = plan.figures.has('pause') ? await measurePause(plan.program, newestMs, seconds) : [];
  return [...page, ...metrics, ...attacks, ...pause];
}

async function measureMetrics({ program, isQuick }: Plan, newestMs: number): Promise<Measured[]> {
  const size = scrapedFleet({ isQuick }, newestMs);
  const { scrapes, perDevice, healthChecks } = await scrapeMs(program, size);
  const figure = { unit: 'ms', wanted: WANTED.scrapeMs, better: 'less' } as const;
  const fleet = `${size.devices.toLocaleString('en-US')} devices`;
  return [
    { ...figure, figure: `a scrape of ${fleet}`, values: scrapes },
    { ...figure, figure: 'the same with metrics.per_device', values: perDevice },
    { ...figure, figure: '--health', wanted: WANTED.healthMs, values: healthChecks },
  ];
}

async function repeat(
  { runs, program }: Plan,
  what: Pick<BackfillOptions, 'size' | 'delivers' | 'answersAfterMs'>,
  name: string,
): Promise<readonly Backfill[]> {
  const results: Backfill[] = [];
  for (let run = 1; run <= runs; run += 1) {
    const result = await guard(name, async () => await backfill({ ...what, program }));
    results.push(result);
    const { readings, wallMs, cpuMs, peakPrivateBytes } = result;
    say(
      `${name} ${run}/${runs}: ${readings} readings in ${(wallMs / 1000).toFixed(1)} s, ${(cpuMs / 1000).toFixed(1)} s of processor time, peak ${Math.round(peakPrivateBytes / MB)} MB private`,
    );
  }
  return results;
}

function speed(figure: string, runs: readonly Backfill[], wanted: number): Measured {
  const values = runs.map(({ readings, wallMs }) => (readings / wallMs) * 1000);
  return { figure, unit: 'readings/s', wanted, better: 'more', values };
}

function peak(figure: string, runs: readonly Backfill[]): Measured {
  const values = runs.map(({ peakPrivateBytes }) => peakPrivateBytes / MB);
  return { figure, unit: 'MB', wanted: WANTED.peakMb, better: 'less', values, isLargest: true };
}

function growth({ days }: Plan, short: readonly Backfill[], long: readonly Backfill[]): Measured {
  const most = Math.max(...short.map(({ peakPrivateBytes }) => peakPrivateBytes));
  const values = long.map(({ peakPrivateBytes }) => peakPrivateBytes / most);
  return {
    figure: `memory of ${days * 10} days to ${days}`,
    unit: 'times',
    wanted: WANTED.growth,
    better: 'less',
    values,
  };
}

function requestFigures(runs: readonly Backfill[], size: WorkspaceSize): Measured[] {
  const uses = runs.map(({ counts }) => requestUse(counts.windows));
  const fewest = fewestRequests(size);
  return [
    {
      figure: 'requests to the fewest possible',
      unit: 'times',
      wanted: WANTED.requestShare,
      better: 'less',
      values: uses.map(({ requests }) => requests / fewest),
    },
    {
      figure: 'most requests of a window to ceil(n/196)+2',
      unit: 'times',
      wanted: 1,
      better: 'less',
      values: uses.map(({ worst }) => worst),
    },
  ];
}

async function measureStart(program: string): Promise<Measured[]> {
  const values = { empty: [] as number[], kept: [] as number[] };
  const dataDir = mkdtempSync(join(tmpdir(), 'tidemark-bench-'));
  try {
    for (let start = 0; start < STARTS; start += 1) {
      values.empty.push(await firstRequestMs(program, join(dataDir, String(start))));
      values.kept.push(await firstRequestMs(program, join(dataDir, String(start))));
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
  const figure = { unit: 'ms', wanted: WANTED.startMs, better: 'less' } as const;
  return [
    { ...figure, figure: 'first request, no state yet', values: values.empty },
    { ...figure, figure: 'first request, with a state', values: values.kept },
  ];
}

async function measureStatus({ program, runs, isQuick }: Plan): Promise<Measured[]> {
  const looks = await statusLooks({ program, runs: Math.max(runs, 3), part: isQuick ? 0.01 : 1, say });
  return looks.flatMap(({ name, wallMs, peakBytes }): Measured[] => [
    {
      figure: `${name}, time`,
      unit: 's',
      wanted: WANTED.statusS,
      better: 'less',
      values: wallMs.map((ms) => ms / 1000),
    },
    {
      figure: `${name}, peak memory`,
      unit: 'MB',
      wanted: WANTED.statusMb,
      better: 'less',
      values: peakBytes.map((each) => each / MB),
    },
  ]);
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

const guard: Guard = async (what, measure) => await undisturbed(what, measure, { say });

const [cpu] = cpus();
say(
  `${cpus().length} cores (${cpu?.model.trim() ?? 'unknown'}), ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}`,
);
const plan = readPlan(process.argv.slice(2));
say(`${plan.devices} devices, ${plan.days} days, a reading a minute of 3 values; ${plan.runs} runs, the middle counts`);
const rows = await measureRows(plan);
const verdicts = (await measure(plan)).map(judgeFigure);
if (rows.length > 0) process.stdout.write(formatRows(rows));
if (verdicts.length > 0) process.stdout.write(formatTable(verdicts));
process.exitCode = verdicts.every(({ isMet }) => isMet) && rows.every(isWithin) ? 0 : 1;
