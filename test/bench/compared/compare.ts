/**
 * Tidemark beside what runs in the same minutes on the same machine, in turn: a plain client, the floor, and an earlier
 * version of itself. A single figure depends on the machine as much as on the program; a ratio does not.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MINUTE_MS } from '../../../src/core/time.ts';
import { backfill } from '../figures.ts';
import { type Idle, idle, idleFloor, requirePolls } from '../idle.ts';
import { type Ended, runProgram, startNullInflux, startOrigin } from '../parts.ts';
import { median } from '../table.ts';
import type { Guard } from '../undisturbed.ts';
import { oldestMs, SENSORS, type WorkspaceSize } from '../workspace.ts';
import { buildEarlier } from './earlier.ts';

export interface ComparePlan {
  readonly program: string;
  readonly size: WorkspaceSize;
  /** How often each is run. */
  readonly runs: number;
  /** How long idle daemons are measured. */
  readonly idleMs: number;
  readonly say: (text: string) => void;
  readonly guard: Guard;
}

/** One row of the table: a figure, and its ratio to each of those that it is compared with. */
export interface Row {
  readonly figure: string;
  readonly unit: string;
  readonly values: readonly number[];
  readonly beside: Readonly<Record<string, readonly number[]>>;
  /** The most that the median may be: absolute (`own`), or as a ratio to one of those beside it. */
  readonly most: Readonly<Record<string, number>>;
  /** The most that any value may be. */
  readonly mostOfAny?: number;
}

type Used = Pick<Ended, 'cpuMs' | 'wallMs' | 'peakPrivateBytes'>;

/** Measures all rows, CPU first. */
export async function compare(plan: ComparePlan): Promise<Row[]> {
  using earlier = buildEarlier();
  const { size, program, say } = plan;
  const readings = size.devices * size.readings;
  const rows: Row[] = [];
  for (const delivers of [true, false]) {
    const runners: Record<string, () => Promise<Used>> = {
      own: async () => await backfill({ size, delivers, program }),
      ...(delivers ? { 'plain client': async () => await runPlainClient(size) } : {}),
      floor: async () => await runFloor(size, delivers),
      [earlier.version]: async () => await backfill({ size, delivers, program: earlier.program }),
    };
    const used = await inTurn(runners, plan);
    const what = delivers ? 'with delivery' : 'archive alone';
    const most = delivers ? { 'plain client': 1.1, floor: 2.5 } : { floor: 2.5 };
    const usOf = ({ cpuMs }: Used): number => (cpuMs * 1000) / readings;
    rows.push(
      rowOf(`CPU per reading, ${what}`, 'µs', { used, figureOf: usOf, most }),
      rowOf(`wall time per reading, ${what}`, 'µs', { used, figureOf: ({ wallMs }) => (wallMs * 1000) / readings }),
      // A program that waits for its disk needs more wall time than CPU time.
      rowOf(`wall time to CPU, ${what}`, '×', {
        used: { own: used['own'] ?? [] },
        figureOf: ({ wallMs, cpuMs }) => wallMs / cpuMs,
        most: { own: 1.1 },
      }),
      rowOf(`peak private memory, ${what}`, 'MB', {
        used,
        figureOf: ({ peakPrivateBytes }) => peakPrivateBytes / 1e6,
        mostOfAny: 110,
      }),
    );
  }
  say(`${plan.runs} idle daemons of each, side by side`);
  const fleet = { devices: 30, warmMs: 2 * MINUTE_MS, measuredMs: plan.idleMs };
  const each = async (start: () => Promise<Idle>): Promise<Idle[]> =>
    await Promise.all(Array.from({ length: plan.runs }, start));
  const sideBySide = async () =>
    await Promise.all([
      each(async () => await idle({ ...fleet, program })),
      each(async () => await idleFloor(fleet)),
      each(async () => await idle({ ...fleet, program: earlier.program })),
    ]);
  const [own, floor, then] = await plan.guard('idle', sideBySide);
  for (const one of own) requirePolls(one, fleet.devices);
  rows.push(...idleRows({ own, floor, [earlier.version]: then }));
  // CPU first, then what one waits for.
  return rows.toSorted((a, b) => Number(b.figure.includes('CPU')) - Number(a.figure.includes('CPU')));
}

function idleRows(daemons: Readonly<Record<string, readonly Idle[]>>): Row[] {
  const row = (figure: string, unit: string, most: number, of: (each: Idle) => number): Row => {
    const { own = [], ...beside } = Object.fromEntries(
      Object.entries(daemons).map(([name, all]) => [name, all.map(of)]),
    );
    return { figure: `idle, 30 devices: ${figure}`, unit, values: own, beside, most: { own: most } };
  };
  return [
    row('CPU per hour', 's', 15, ({ cpuSPerHour }) => cpuSPerHour),
    row('private memory', 'MB', 42, ({ privateBytes }) => privateBytes / 1e6),
    row('RSS', 'MB', 105, ({ rssBytes }) => rssBytes / 1e6),
    row('bytes received per poll', 'B', 3000, ({ bytesPerPoll }) => bytesPerPoll),
  ];
}

/** Runs each once, then each again: what the machine does meanwhile falls on all of them alike. */
export async function inTurn(
  runners: Readonly<Record<string, () => Promise<Used>>>,
  { runs, say, guard }: Pick<ComparePlan, 'runs' | 'say' | 'guard'>,
): Promise<Readonly<Record<string, readonly Used[]>>> {
  const used: Record<string, Used[]> = {};
  for (let run = 1; run <= runs; run += 1) {
    const names = Object.keys(runners);
    for (const name of run % 2 === 1 ? names : names.toReversed()) {
      const runner = runners[name];
      if (runner === undefined) continue;
      const one = await guard(name, runner);
      used[name] = [...(used[name] ?? []), one];
      say(`${run}/${runs} ${name}: ${(one.cpuMs / 1000).toFixed(1)} s of CPU, ${(one.wallMs / 1000).toFixed(1)} s`);
    }
  }
  return used;
}

export function rowOf(
  figure: string,
  unit: string,
  {
    used,
    figureOf,
    most = {},
    mostOfAny,
  }: {
    readonly used: Readonly<Record<string, readonly Used[]>>;
    readonly figureOf: (one: Used) => number;
    readonly most?: Readonly<Record<string, number>>;
    readonly mostOfAny?: number;
  },
): Row {
  const { own = [], ...beside } = Object.fromEntries(
    Object.entries(used).map(([name, all]) => [name, all.map(figureOf)]),
  );
  return { figure, unit, values: own, beside, most, ...(mostOfAny === undefined ? {} : { mostOfAny }) };
}

/** @throws Error unless the database was sent every line. */
export async function runPlainClient(size: WorkspaceSize): Promise<Used> {
  const directory = mkdtempSync(join(tmpdir(), 'tidemark-bench-'));
  using origin = await startOrigin(size);
  using sink = await startNullInflux();
  try {
    const args = [origin.url, sink.url, afterOf(size), join(directory, 'checkpoint.json')];
    const ended = await runProgram(args, { env: {}, program: join(import.meta.dirname, 'plain-client.ts') });
    requireWhole(ended, (await sink.counts()).telemetry.lines, size);
    return ended;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/**
 * @param pagesACommit how many pages it writes in one transaction.
 * @throws Error unless the database was sent every line, where it delivers.
 */
export async function runFloor(size: WorkspaceSize, delivers: boolean, pagesACommit = 1): Promise<Used> {
  const directory = mkdtempSync(join(tmpdir(), 'tidemark-bench-'));
  using origin = await startOrigin(size);
  using sink = await startNullInflux();
  try {
    const args = [origin.url, afterOf(size), join(directory, 'floor.db'), String(pagesACommit)];
    if (delivers) args.push(sink.url);
    const ended = await runProgram(args, { env: {}, program: join(import.meta.dirname, 'floor.ts') });
    if (delivers) requireWhole(ended, (await sink.counts()).telemetry.lines, size);
    else requireWhole(ended, size.devices * size.readings * SENSORS.length, size);
    return ended;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function afterOf(size: WorkspaceSize): string {
  return new Date(oldestMs(size) - MINUTE_MS).toISOString();
}

/** @throws Error where the program failed or the database was not sent all lines: then no figure counts. */
function requireWhole({ code, stderr }: Ended, lines: number, size: WorkspaceSize): void {
  const expected = size.devices * size.readings * SENSORS.length;
  if (code !== 0 || lines !== expected) throw new Error(`${lines} lines of ${expected}, exit ${code}: ${stderr}`);
}

/** Whether a figure is at most what it may be, by itself and beside the others. */
export function isWithin({ values, beside, most, mostOfAny = Number.POSITIVE_INFINITY }: Row): boolean {
  if (Math.max(...values) > mostOfAny) return false;
  return Object.entries(most).every(([name, limit]) => {
    const others = beside[name];
    return median(values) / (others === undefined ? 1 : median(others)) <= limit;
  });
}

/** The rows as a table of plain text; `*` marks a figure above the most that it may be. */
export function formatRows(rows: readonly Row[]): string {
  const names = [...new Set(rows.flatMap(({ beside }) => Object.keys(beside)))];
  const head = ['figure', 'median', 'spread', ...names.map((name) => `× ${name}`)];
  const lines = rows.map(({ figure, unit, values, beside, most, mostOfAny }) => {
    const own = median(values);
    const largest = Math.max(...values);
    const spread = `${digits(Math.min(...values))} to ${marked(digits(largest), largest, mostOfAny)}`;
    const ratios = names.map((name) => {
      const others = beside[name];
      if (others === undefined) return '';
      return marked((own / median(others)).toFixed(2), own / median(others), most[name]);
    });
    return [figure, marked(`${digits(own)} ${unit}`, own, most['own']), spread, ...ratios];
  });
  const table = [head, ...lines];
  const widths = head.map((_, column) => Math.max(...table.map((row) => (row[column] ?? '').length)));
  const text = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  return `${table.map(text).join('\n')}\n`;
}

const marked = (text: string, value: number, most = Number.POSITIVE_INFINITY): string =>
  value > most ? `${text} * (${most})` : text;

const digits = (value: number): string => value.toFixed(value < 100 ? 1 : 0);
