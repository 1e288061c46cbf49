/**
 * Delivery of an archive into a real InfluxDB 1.6, against the very same bodies sent ready-made on as many connections,
 * and against the minimum work of a delivery (`compared/delivery-floor.ts`), in turn. All of them go through the same
 * front, which counts the time.
 *
 * The delivery is measured twice: after an outage, when the polls of the run have ended, and beside those polls.
 */
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { STATE_FILE } from '../../src/store/open/database.ts';
import { type Influxd, startInfluxd } from '../support/influxd.ts';
import { cpuMsOf } from './idle.ts';
import type { FrontCounts, Spread } from './influx-front.ts';
import { databaseEnv, runProgram, sourceEnv, startInfluxFront, startOrigin, wholeHistory } from './parts.ts';
import { type Measured, median } from './table.ts';
import type { Guard } from './undisturbed.ts';
import { SENSORS, type WorkspaceSize } from './workspace.ts';

export interface InfluxPlan {
  readonly program: string;
  readonly size: WorkspaceSize;
  readonly runs: number;
  readonly say: (text: string) => void;
  readonly guard: Guard;
}

const BUCKET = 'bench';

/** Longer than the polls of a run take. */
const OUTAGE_S = 6;

/** The starting point of each delivery, and the lines that the first one has sent. */
interface Prepared extends Pick<InfluxPlan, 'program' | 'size'> {
  readonly influxd: Influxd;
  readonly api: string;
  readonly directory: string;
  readonly archive: string;
  readonly bodies: string;
  /** How long a server takes that stands for the database; `undefined`: the database itself. */
  readonly waitMs?: number;
}

/** @throws Error unless the database has every value. */
export async function measureRealInflux({ program, size, runs, say, guard }: InfluxPlan): Promise<Measured[]> {
  const directory = mkdtempSync(join(tmpdir(), 'tidemark-bench-'));
  try {
    await using influxd = await startInfluxd({ databases: [] });
    using origin = await startOrigin(size);
    const archive = join(directory, 'archive');
    const bodies = join(directory, 'bodies');
    mkdirSync(bodies);
    const prepared = { program, size, influxd, api: origin.url, directory, archive, bodies };
    await fill(prepared);
    // Not counted: it keeps what it sends.
    await deliver(prepared, { bodies });
    const compared = await compareInTurn(prepared, { runs, say, guard });
    // Without the work of a database on the same cores.
    const waiting = { ...prepared, waitMs: Math.round(compared.answerMs) };
    say(`influx: the same before a server that takes ${waiting.waitMs} ms for each write, and no processor time`);
    const alone = await compareInTurn(waiting, { runs, say, guard });
    return [...figuresOf(compared, 'InfluxDB 1.6'), ...figuresOf(alone, 'a server that only waits')];
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** The delivery first: the others open as many connections. */
const KINDS = ['delivery', 'beside polls', 'floor', 'ready-made'] as const;
type Kind = (typeof KINDS)[number];

/** The lines a second of each run, by what sends them. */
type Rates = Readonly<Record<Kind, readonly number[]>>;

async function compareInTurn(
  prepared: Prepared,
  { runs, say, guard }: Pick<InfluxPlan, 'runs' | 'say' | 'guard'>,
): Promise<{ readonly rates: Rates; readonly answerMs: number }> {
  const lines = prepared.size.devices * prepared.size.readings * SENSORS.length;
  const rates: Record<Kind, number[]> = { delivery: [], 'beside polls': [], floor: [], 'ready-made': [] };
  const answersMs: number[] = [];
  // As many as the delivery has opened, which depends on how soon the database answers.
  let connections = 1;
  const senders: Readonly<Record<Kind, () => Promise<Sent>>> = {
    delivery: async () => await deliver(prepared, { refusesForS: OUTAGE_S }),
    'beside polls': async () => await deliver(prepared),
    floor: async () => await sendFloor(prepared, connections),
    'ready-made': async () => await sendReady(prepared, connections),
  };
  for (let run = 1; run <= runs; run += 1) {
    for (const kind of KINDS) {
      const sent = await guard(kind, senders[kind]);
      if (kind === 'delivery') connections = sent.most;
      rates[kind].push((lines / sent.tookMs) * 1000);
      if (kind === 'ready-made') answersMs.push(sent.answer.median);
      say(`influx ${run}/${runs} ${kind}: ${lines} lines, ${describe(sent, lines)}`);
    }
  }
  return { rates, answerMs: median(answersMs) };
}

/** Each run of the delivery and of the floor beside that of the ready-made bodies, and of each other. */
function figuresOf({ rates }: { readonly rates: Rates }, before: string): Measured[] {
  const figure = (name: string, kind: Kind, other: Kind): Measured => ({
    figure: `${before}: rate of ${name}`,
    unit: 'times',
    wanted: 0.9,
    better: 'more',
    values: rates[kind].map((rate, run) => rate / (rates[other][run] ?? Number.NaN)),
  });
  return [
    figure('delivery to that of ready-made bodies', 'delivery', 'ready-made'),
    figure('delivery beside polls to that of ready-made bodies', 'beside polls', 'ready-made'),
    figure('the floor to that of ready-made bodies', 'floor', 'ready-made'),
    figure('delivery to that of the floor', 'delivery', 'floor'),
  ];
}

function describe(
  { writes, most, tookMs, answer, rest, cpuMs, frontCpuMs, databaseCpuMs }: Sent,
  lines: number,
): string {
  const perS = Math.round((lines / tookMs) * 1000);
  const seconds = (ms: number): string => (ms / 1000).toFixed(2);
  return `${perS} a second; ${writes} writes, at most ${most} at once, in ${seconds(tookMs)} s; ${spread(answer)} to an answer, ${spread(rest)} to the next body; s of CPU: sender ${seconds(cpuMs)}, front ${seconds(frontCpuMs)}, database ${seconds(databaseCpuMs)}`;
}

const spread = ({ median: middle, mean, p95 }: Spread): string =>
  `${middle.toFixed(1)} ms (mean ${mean.toFixed(1)}, p95 ${p95.toFixed(1)})`;

/** Reads the workspace into an archive, without a destination. */
async function fill({ program, size, api, archive }: Prepared): Promise<void> {
  await once(program, envOf({ size, api }, archive));
}

function envOf({ size, api }: Pick<Prepared, 'size' | 'api'>, dataDir: string): Readonly<Record<string, string>> {
  return { ...sourceEnv(api, dataDir), ...wholeHistory(size) };
}

/** @returns the processor time that it took, in ms */
async function once(program: string, env: Readonly<Record<string, string>>): Promise<number> {
  const { code, stderr, cpuMs } = await runProgram(['--once'], { program, env });
  if (code !== 0) throw new Error(stderr.slice(-2000));
  return cpuMs;
}

/** The counts of the database's front, and the processor time of the sender and of the database, in ms. */
interface Sent extends FrontCounts {
  readonly cpuMs: number;
  readonly databaseCpuMs: number;
}

/** The tasks of the front of a database besides passing writes on. */
interface FrontTasks {
  /** Where it keeps the bodies. */
  readonly bodies?: string;
  readonly refusesForS?: number;
}

/** The program with a destination that is new to its archive: all of it is sent. */
async function deliver(prepared: Prepared, front: FrontTasks = {}): Promise<Sent> {
  const dataDir = join(prepared.directory, 'state');
  cpSync(prepared.archive, dataDir, { recursive: true });
  try {
    return await intoDatabase(prepared, front, async (url) => {
      const destination = {
        ...databaseEnv(url),
        TIDEMARK_INFLUX_KIND: 'influxdb',
        TIDEMARK_INFLUX_BUCKET: BUCKET,
      };
      return await once(prepared.program, { ...envOf(prepared, dataDir), ...destination });
    });
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** The minimum work of a delivery, from a copy of the same archive. */
async function sendFloor(prepared: Prepared, connections: number): Promise<Sent> {
  const state = join(prepared.directory, 'floor');
  cpSync(prepared.archive, state, { recursive: true });
  try {
    return await sendBy(prepared, 'compared/delivery-floor.ts', (write) => [
      join(state, STATE_FILE),
      write,
      String(connections),
    ]);
  } finally {
    rmSync(state, { recursive: true, force: true });
  }
}

async function sendReady(prepared: Prepared, connections: number): Promise<Sent> {
  return await sendBy(prepared, 'ready-made.ts', (write) => [write, prepared.bodies, String(connections)]);
}

/** Lets a program of the bench write to the database. */
async function sendBy(prepared: Prepared, file: string, argsFor: (write: string) => readonly string[]): Promise<Sent> {
  return await intoDatabase(prepared, {}, async (url) => {
    const args = argsFor(`${url}/api/v2/write?bucket=${BUCKET}`);
    const { code, stderr, cpuMs } = await runProgram(args, { program: join(import.meta.dirname, file), env: {} });
    if (code !== 0) throw new Error(stderr.slice(-2000));
    return cpuMs;
  });
}

/**
 * Has something written to a database that is empty before and has all values afterwards.
 *
 * @param send returns the processor time of the sender, in ms
 */
async function intoDatabase(
  { influxd, size, waitMs }: Prepared,
  { bodies, refusesForS = 0 }: FrontTasks,
  send: (url: string) => Promise<number>,
): Promise<Sent> {
  if (waitMs !== undefined) {
    using front = await startInfluxFront(`wait:${waitMs}`, { refusesForS });
    const cpuMs = await send(front.url);
    return { ...(await front.counts()), cpuMs, databaseCpuMs: 0 };
  }
  await influxd.query('', `CREATE DATABASE ${BUCKET} WITH SHARD DURATION 520w`);
  try {
    using front = await startInfluxFront(influxd.url, { refusesForS, directory: bodies });
    const before = cpuMsOf(influxd.pid());
    const cpuMs = await send(front.url);
    const databaseCpuMs = cpuMsOf(influxd.pid()) - before;
    const counts = await front.counts();
    const [row] = await influxd.query(BUCKET, 'SELECT count("value") FROM "telemetry"');
    const expected = size.devices * size.readings * SENSORS.length;
    if (counts.failed > 0 || Number(row?.['count']) !== expected) {
      throw new Error(`${row?.['count']} of ${expected} values, ${counts.failed} writes failed`);
    }
    return { ...counts, cpuMs, databaseCpuMs };
  } finally {
    await influxd.query('', `DROP DATABASE ${BUCKET}`);
  }
}
