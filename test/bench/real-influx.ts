/**
 * Delivery of an archive into a real InfluxDB 1.6, against the very same bodies sent ready-made on as many connections,
 * in turn. Both go through the same front, which counts the time.
 */
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Influxd, startInfluxd } from '../support/influxd.ts';
import { cpuMsOf } from './idle.ts';
import type { FrontCounts } from './influx-front.ts';
import { databaseEnv, runProgram, sourceEnv, startInfluxFront, startOrigin, wholeHistory } from './parts.ts';
import { type Measured, median } from './table.ts';
import { SENSORS, type WorkspaceSize } from './workspace.ts';

export interface InfluxPlan {
  readonly program: string;
  readonly size: WorkspaceSize;
  readonly runs: number;
  readonly say: (text: string) => void;
}

const BUCKET = 'bench';

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
export async function measureRealInflux({ program, size, runs, say }: InfluxPlan): Promise<Measured[]> {
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
    const { most } = await deliver(prepared, bodies);
    say(`influx: at most ${most} writes at once`);
    const compared = await compareInTurn(prepared, most, { runs, say });
    // Without the work of a database on the same cores.
    const waiting = { ...prepared, waitMs: Math.round(compared.answerMs) };
    say(`influx: the same before a server that takes ${waiting.waitMs} ms for each write, and no processor time`);
    const alone = await compareInTurn(waiting, most, { runs, say });
    const figure = { unit: 'times', wanted: 0.9, better: 'more' } as const;
    return [
      { ...figure, figure: 'rate of delivery to that of ready-made lines', values: compared.values },
      { ...figure, figure: 'the same before a server that only waits', values: alone.values },
    ];
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function compareInTurn(
  prepared: Prepared,
  connections: number,
  { runs, say }: Pick<InfluxPlan, 'runs' | 'say'>,
): Promise<{ readonly values: readonly number[]; readonly answerMs: number }> {
  const lines = prepared.size.devices * prepared.size.readings * SENSORS.length;
  const perS: Record<'delivery' | 'ready-made', number[]> = { delivery: [], 'ready-made': [] };
  const answersMs: number[] = [];
  for (let run = 1; run <= runs; run += 1) {
    const kinds = ['delivery', 'ready-made'] as const;
    for (const kind of run % 2 === 1 ? kinds : kinds.toReversed()) {
      const sent = kind === 'delivery' ? await deliver(prepared) : await sendReady(prepared, connections);
      perS[kind].push((lines / sent.tookMs) * 1000);
      if (kind === 'ready-made') answersMs.push(sent.answerMs);
      say(`influx ${run}/${runs} ${kind}: ${lines} lines, ${describe(sent, lines)}`);
    }
  }
  const values = perS.delivery.map((own, run) => own / (perS['ready-made'][run] ?? Number.NaN));
  return { values, answerMs: median(answersMs) };
}

function describe({ writes, tookMs, answerMs, restMs, cpuMs, frontCpuMs, databaseCpuMs }: Sent, lines: number): string {
  const perS = Math.round((lines / tookMs) * 1000);
  const seconds = (ms: number): string => (ms / 1000).toFixed(2);
  return `${perS} a second; ${writes} writes in ${seconds(tookMs)} s; medians: ${answerMs.toFixed(1)} ms to an answer, ${restMs.toFixed(1)} ms to the next body; s of CPU: sender ${seconds(cpuMs)}, front ${seconds(frontCpuMs)}, database ${seconds(databaseCpuMs)}`;
}

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

/** The program with a destination that is new to its archive: all of it is sent. */
async function deliver(prepared: Prepared, bodies?: string): Promise<Sent> {
  const dataDir = join(prepared.directory, 'state');
  cpSync(prepared.archive, dataDir, { recursive: true });
  try {
    return await intoDatabase(prepared, bodies, async (url) => {
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

async function sendReady(prepared: Prepared, connections: number): Promise<Sent> {
  return await intoDatabase(prepared, undefined, async (url) => {
    const write = `${url}/api/v2/write?bucket=${BUCKET}`;
    const program = join(import.meta.dirname, 'ready-made.ts');
    const args = [write, prepared.bodies, String(connections)];
    const { code, stderr, cpuMs } = await runProgram(args, { program, env: {} });
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
  bodies: string | undefined,
  send: (url: string) => Promise<number>,
): Promise<Sent> {
  if (waitMs !== undefined) {
    using front = await startInfluxFront(`wait:${waitMs}`);
    const cpuMs = await send(front.url);
    return { ...(await front.counts()), cpuMs, databaseCpuMs: 0 };
  }
  await influxd.query('', `CREATE DATABASE ${BUCKET} WITH SHARD DURATION 520w`);
  try {
    using front = await startInfluxFront(influxd.url, bodies);
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
