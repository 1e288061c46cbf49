/**
 * A real VictoriaMetrics for a test: Debian's 1.79.5 on a free port of loopback in a temporary directory, with the
 * deduplication that Tidemark requires, and the judge that compares what it exports with what was simulated.
 *
 * It promises to leave nothing behind, as `influxd.ts` does.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { identityTag } from '../../src/core/lines/line-protocol.ts';
import type { Simulator } from './faulty-simulator.ts';
import { freePort } from './ports.ts';

const BINARY = '/usr/bin/victoria-metrics';

/** As in `influxd.ts`: the shell kills the database when the test process dies, however that happens. */
const KEEPER = 'dir="$1"; shift; "$@" </dev/null & child=$!; read -r word; kill -9 $child; wait $child; rm -rf "$dir"';

/** A series as it is exported: its labels, and its samples by time in milliseconds. */
export interface Exported {
  readonly metric: Readonly<Record<string, string>>;
  readonly values: readonly number[];
  readonly timestamps: readonly number[];
}

export interface Victoria extends AsyncDisposable {
  readonly url: string;
  /** Everything it holds, or what a selector names. */
  exported(selector?: string): Promise<Exported[]>;
  /** Forgets everything. */
  clear(): Promise<void>;
}

/** As `influxdAvailable`: an error in CI where it is missing, elsewhere a word and `false`. */
export function victoriaAvailable(): boolean {
  if (existsSync(BINARY)) return true;
  const advice = `${BINARY} is missing: the tests with a real VictoriaMetrics need it (apt-get install victoria-metrics)`;
  const { CI } = process.env;
  if (CI !== undefined && CI !== '') throw new Error(advice);
  process.stderr.write(`${advice}; they are left out\n`);
  return false;
}

/** Starts a VictoriaMetrics and waits until it answers. */
export async function startVictoria(...more: readonly string[]): Promise<Victoria> {
  const dir = mkdtempSync(join(tmpdir(), 'tidemark-victoria-'));
  const address = `127.0.0.1:${await freePort()}`;
  const flags = [
    `-httpListenAddr=${address}`,
    `-storageDataPath=${dir}`,
    '-retentionPeriod=100y',
    '-search.latencyOffset=0s',
    '-search.disableCache',
    '-dedup.minScrapeInterval=1ms',
    '-loggerLevel=ERROR',
    ...more,
  ];
  const child = spawn('/bin/sh', ['-c', KEEPER, 'sh', dir, BINARY, ...flags], { stdio: ['pipe', 'ignore', 'ignore'] });
  const url = `http://${address}`;
  await untilReady(url, child);
  const exported = async (selector = '{__name__!=""}'): Promise<Exported[]> => {
    await (await fetch(`${url}/internal/force_flush`)).text();
    const text = await (await fetch(`${url}/api/v1/export?${new URLSearchParams({ 'match[]': selector })}`)).text();
    const lines = text.split('\n').filter((line) => line !== '');
    return lines.map((line) => JSON.parse(line) as Exported);
  };
  return {
    url,
    exported,
    clear: async () => {
      await exported();
      const query = new URLSearchParams({ 'match[]': '{__name__!=""}' });
      await (await fetch(`${url}/api/v1/admin/tsdb/delete_series?${query}`)).text();
    },
    [Symbol.asyncDispose]: async () => {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.stdin?.end();
      await ended;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function untilReady(url: string, child: ChildProcess): Promise<void> {
  for (let attempt = 0; attempt < 15_000; attempt += 1) {
    if (child.exitCode !== null) throw new Error('victoria-metrics ended at once');
    const answer = await fetch(`${url}/health`).catch(() => null);
    if (answer?.status === 200) return;
    await sleep(20);
  }
  throw new Error('victoria-metrics does not answer');
}

/** The findings of the judge: missing samples, and unexplained ones. */
export interface VictoriaVerdict {
  readonly missing: readonly string[];
  readonly invented: readonly string[];
  /** The number of samples of the seed in the range. */
  readonly expected: number;
}

/** A sample as it should be there; `null` where a text has its place. */
type Wanted = { readonly metric: string; readonly value: number } | null;

/** The different values of the sensors of a device: by sensor, instant and value. */
type Seed = Map<string, Map<bigint, Map<string, Wanted>>>;

/** Samples by their series and their time. */
type Samples = Map<string, Map<number, number>>;

export interface VictoriaClaim {
  readonly deviceIds: readonly string[];
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * Compares the telemetry of devices with the seed: numbers, to the millisecond. The values of one instant stand on it
 * and on the milliseconds right behind it; texts have a place there and no sample.
 */
export async function judgeVictoria(
  victoria: Victoria,
  simulator: Simulator,
  { deviceIds, fromMs, toMs }: VictoriaClaim,
): Promise<VictoriaVerdict> {
  const left = samplesOf(await victoria.exported('{__name__=~"telemetry_.*"}'));
  const missing: string[] = [];
  let expected = 0;
  for (const { device, sensor, instant, wanted } of deviceIds.flatMap((id) => flatSeed(simulator, id))) {
    const ms = Number(instant / 1_000_000n);
    const isClaimed = fromMs <= ms && ms < toMs;
    for (const each of wanted) {
      if (each === null) continue;
      const key = seriesKey(each.metric, device, sensor);
      const isThere = takeSample(left.get(key), { ms, places: wanted.length, value: each.value });
      if (isClaimed) expected += 1;
      if (isClaimed && !isThere) missing.push(`${key} ${ms} ${each.value}`);
    }
  }
  const invented = [...left].flatMap(([key, samples]) => [...samples].map(([at, value]) => `${key} ${at} ${value}`));
  return { missing, invented, expected };
}

const seriesKey = (metric: string, device: string, sensor: string): string => `${metric} ${device} ${sensor}`;

function samplesOf(exported: readonly Exported[]): Samples {
  const samples: Samples = new Map();
  for (const { metric, values, timestamps } of exported) {
    const { __name__: name = '', device_id: device = '', sensor = '' } = metric;
    const key = seriesKey(name, device, sensor);
    const own = samples.get(key) ?? new Map<number, number>();
    timestamps.forEach((at, index) => {
      if (own.has(at)) throw new Error(`two samples of ${key} at ${at}: is the deduplication on?`);
      own.set(at, values[index] ?? Number.NaN);
    });
    samples.set(key, own);
  }
  return samples;
}

/**
 * Removes the sample of a value, at any offset of its instant.
 *
 * @returns whether it was there.
 */
function takeSample(
  samples: Map<number, number> | undefined,
  { ms, places, value }: { ms: number; places: number; value: number },
): boolean {
  for (let at = ms; at < ms + places; at += 1) {
    if (isSame(samples?.get(at), value)) return samples?.delete(at) ?? false;
  }
  return false;
}

/** VictoriaMetrics keeps some twelve digits of a number, and fewer of one that is tiny beside its neighbours. */
function isSame(stored: number | undefined, wanted: number): boolean {
  return stored !== undefined && Math.abs(stored - wanted) <= Math.abs(wanted) * 1e-11 + 1e-15;
}

function flatSeed(simulator: Simulator, deviceId: string) {
  const device = identityTag(deviceId);
  return [...seedOf(simulator, deviceId)].flatMap(([sensor, instants]) =>
    [...instants].map(([instant, values]) => ({ device, sensor, instant, wanted: [...values.values()] })),
  );
}

function seedOf(simulator: Simulator, deviceId: string): Seed {
  const seed: Seed = new Map();
  const now = BigInt(Math.floor(simulator.serverNowMs())) * 1_000_000n;
  for (const reading of simulator.world.readings(deviceId, 0n, now + 1n)) {
    for (const [name, json] of reading.values ?? []) {
      for (const [sensor, text, wanted] of wantedOf(name, JSON.parse(json))) {
        const instants = seed.get(sensor) ?? new Map<bigint, Map<string, Wanted>>();
        const values = instants.get(reading.recordedAtNs) ?? new Map<string, Wanted>();
        seed.set(sensor, instants.set(reading.recordedAtNs, values.set(text, wanted)));
      }
    }
  }
  return seed;
}

/** The values that have a place, flattened: sensor, a text that is equal for equal values, and the sample. */
function wantedOf(name: string, value: unknown): (readonly [string, string, Wanted])[] {
  if (value === null || (typeof value === 'number' && !Number.isFinite(value))) return [];
  if (typeof value === 'object') {
    return Object.entries(value).flatMap(([key, inner]) => wantedOf(`${name}.${key}`, inner));
  }
  const sensor = identityTag(name);
  if (typeof value === 'string') return [[sensor, JSON.stringify(value), null]];
  const metric = typeof value === 'boolean' ? 'telemetry_flag' : 'telemetry_value';
  return [[sensor, `${metric} ${String(Number(value))}`, { metric, value: Number(value) }]];
}
