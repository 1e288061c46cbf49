/**
 * `--verify` as a real process against a real InfluxDB that holds what the state holds: how fast it compares, and
 * whether its memory stays the same however much that is. The result is checked before the time counts: once where all
 * is equal, once where every second device has lost a range.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DestinationVerdict } from '../../../src/commands/verify/result.ts';
import { END_OF_TIME } from '../../../src/core/state/archive.ts';
import { openArchiveView } from '../../../src/store/archive/reader.ts';
import { type Influxd, startInfluxd } from '../../support/influxd.ts';
import { type Ended, runProgram } from '../parts.ts';
import type { Measured } from '../table.ts';
import { fillState } from './state.ts';

export interface VerifyBench {
  readonly program: string;
  readonly devices: number;
  /** A reading of each device a minute. */
  readonly days: number;
  readonly newestMs: number;
}

export interface VerifyLook {
  readonly points: number;
  /** Where all is equal: by sums alone. */
  readonly equal: Ended;
  /** Where `lost` points are missing: the days of those point by point. */
  readonly different: Ended;
  readonly lost: number;
}

const MINUTES_A_DAY = 1440;
const BUCKET = 'bench';

/**
 * Fills, delivers, compares.
 *
 * @throws Error where a verdict is not right.
 */
export async function lookVerify(of: VerifyBench, say: (text: string) => void): Promise<VerifyLook> {
  const directory = mkdtempSync(join(tmpdir(), 'tidemark-bench-'));
  try {
    await using influx = await startInfluxd({ databases: [BUCKET] });
    const dataDir = join(directory, 'state');
    const { devices, days, newestMs } = of;
    const readings = devices * days * MINUTES_A_DAY;
    const { points } = fillState(dataDir, {
      devices,
      readings,
      days,
      sensors: 1,
      seed: 1,
      influx: influx.url,
      newestMs,
    });
    const beganMs = performance.now();
    await deliver(dataDir, influx);
    say(`verify: ${points} points of ${devices} devices, delivered in ${seconds(performance.now() - beganMs)} s`);
    const equal = await verified(of, { dataDir, url: influx.url });
    check(equal, { points, missing: 0 });
    tell('verify, all equal', equal, { points, say });
    const lost = await loseSome(influx, of);
    const different = await verified(of, { dataDir, url: influx.url });
    check(different, { points, missing: lost });
    tell(`verify, ${lost} points missing`, different, { points, say });
    return { points, equal: equal.ended, different: different.ended, lost };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const STEP_BYTES = 2 * 1024 * 1024;

/** All that is archived, past everything. */
async function deliver(dataDir: string, influx: Influxd): Promise<void> {
  const view = openArchiveView(dataDir);
  if (view === null) throw new Error('nothing was filled');
  const span = { from: 0n, to: END_OF_TIME, devices: [], kinds: 'telemetry' } as const;
  let body = '';
  const send = async (): Promise<void> => {
    const status = body === '' ? 204 : await influx.write(BUCKET, body);
    if (status !== 204) throw new Error(`InfluxDB answered ${status}`);
    body = '';
  };
  try {
    for (let place = view.begin(span); place !== null; ) {
      const piece = view.read(span, place, STEP_BYTES);
      body += piece.lines.map((line) => `${line}\n`).join('');
      if (body.length >= STEP_BYTES) await send();
      place = piece.next;
    }
    await send();
  } finally {
    view.close();
  }
}

/**
 * Half a day of every tenth device.
 *
 * @returns how many points that were.
 */
async function loseSome(influx: Influxd, { newestMs }: VerifyBench): Promise<number> {
  const [from, to] = [newestMs - 84 * 3_600_000, newestMs - 72 * 3_600_000];
  const where = `"device_id" =~ /5$/ AND time >= ${from}000000 AND time < ${to}000000`;
  const [row] = await influx.query(BUCKET, `SELECT count("value") FROM "telemetry" WHERE ${where}`);
  await influx.query(BUCKET, `DELETE FROM "telemetry" WHERE ${where}`);
  return Number(row?.['count'] ?? 0);
}

interface Verified {
  readonly ended: Ended;
  readonly verdict: DestinationVerdict;
}

async function verified(
  { program }: VerifyBench,
  { dataDir, url }: { readonly dataDir: string; readonly url: string },
): Promise<Verified> {
  const env = {
    TIDEMARK_DATA_DIR: dataDir,
    TIDEMARK_INFLUX_URL: url,
    TIDEMARK_INFLUX_KIND: 'influxdb',
    TIDEMARK_INFLUX_ORG: 'bench',
    TIDEMARK_INFLUX_BUCKET: BUCKET,
  };
  const ended = await runProgram(['--verify', '--json'], { env, program });
  if (ended.stdout === '') throw new Error(`--verify ended with ${ended.code}: ${ended.stderr}`);
  const { destinations }: { destinations: readonly DestinationVerdict[] } = JSON.parse(ended.stdout);
  const [verdict] = destinations;
  if (verdict === undefined) throw new Error('no verdict');
  return { ended, verdict };
}

function check({ verdict }: Verified, wanted: { readonly points: number; readonly missing: number }): void {
  const { points_compared, missing, different, extra, outcome } = verdict;
  const isRight = points_compared === wanted.points && missing === wanted.missing && different + extra === 0;
  if (isRight && outcome === (wanted.missing === 0 ? 'equal' : 'different')) return;
  throw new Error(
    `verify: ${outcome}, ${points_compared} points, ${missing} missing of ${wanted.missing}: ${verdict.reason}`,
  );
}

function tell(
  what: string,
  { ended: { wallMs, cpuMs, peakBytes } }: Verified,
  { points, say }: { readonly points: number; readonly say: (text: string) => void },
): void {
  const perS = Math.round((points / wallMs) * 1000).toLocaleString('en-US');
  say(
    `${what}: ${points} points in ${seconds(wallMs)} s (${perS} points/s), ${seconds(cpuMs)} s of processor time, peak ${Math.round(peakBytes / 1e6)} MB`,
  );
}

/** The target of a comparison. */
const WANTED = { perS: 100_000, peakMb: 200, growth: 1.4 };

/** How many times the days the second, larger run has. */
const TIMES = 5;

/** The speed and the memory of a comparison, and whether the memory grows with what is compared. */
export async function measureVerify(of: VerifyBench, say: (text: string) => void): Promise<Measured[]> {
  const few = await lookVerify(of, say);
  const many = await lookVerify({ ...of, days: of.days * TIMES }, say);
  const perS = ({ points, equal }: VerifyLook): number => (points / equal.cpuMs) * 1000;
  const mb = ({ peakBytes }: Ended): number => peakBytes / 1e6;
  const figure = `verify of ${millions(few)} million points`;
  return [
    { figure: `${figure}, of one core`, unit: 'points/s', wanted: WANTED.perS, better: 'more', values: [perS(few)] },
    ...[few, many].map((look): Measured => {
      const values = [Math.max(mb(look.equal), mb(look.different))];
      const name = `peak memory, verify of ${millions(look)} million`;
      return { figure: name, unit: 'MB', wanted: WANTED.peakMb, better: 'less', values };
    }),
    {
      figure: `memory of ${TIMES} times the verify`,
      unit: 'times',
      wanted: WANTED.growth,
      better: 'less',
      values: [mb(many.equal) / mb(few.equal)],
    },
  ];
}

const millions = ({ points }: VerifyLook): string => (points / 1e6).toFixed(1);

const seconds = (ms: number): string => (ms / 1000).toFixed(1);
