/**
 * A rig for whole-program tests: the simulator in-process on a virtual clock, the real sync, a real InfluxDB behind the
 * path-rewriting proxy. One `run` is one process of the program; a state directory carries over from one to the next.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Sync, SyncOptions } from '../../src/app/open-sync.ts';
import * as app from '../../src/app/open-sync.ts';
import * as history from '../../src/commands/backfill/job.ts';
import * as backfill from '../../src/commands/backfill/run.ts';
import type { OnceSummary } from '../../src/commands/once/result.ts';
import * as once from '../../src/commands/once/run.ts';
import type { AppEvent } from '../../src/core/events.ts';
import { createFilter, type FilterSpec } from '../../src/core/filter.ts';
import type { Sink } from '../../src/core/ports.ts';
import { Secret } from '../../src/core/secret.ts';
import { type EpochMs, type EpochNs, MINUTE_MS } from '../../src/core/time.ts';
import { wrapWrites } from '../../src/delivery/destination.ts';
import { createInfluxSink } from '../../src/influx/sink.ts';
import * as daemon from '../../src/scheduler/session.ts';
import type { SettingsOverrides } from '../../src/sim/settings.ts';
import type { SimReading } from '../../src/sim/spec.ts';
import type { World } from '../../src/sim/world.ts';
import { type Bench, startBench } from './bench.ts';
import { KEEP_ALL, syncSettings } from './defaults.ts';
import { createSimulator, type FaultPlan, type Simulator } from './faulty-simulator.ts';
import { judge, type Verdict } from './judge.ts';
import { transportOf } from './sim-transport.ts';
import { createVirtualClock, type VirtualClock } from './virtual-clock.ts';

export const TOKEN = 'rig-token';

/** Starts the database of a file's tests. */
export async function openBench(): Promise<Bench> {
  return await startBench(TOKEN);
}

/** The program under test: the real one, or a variant of it that is broken on purpose. */
export interface Program {
  readonly openSync: typeof app.openSync;
  readonly runOnce: typeof once.runOnce;
  readonly runBackfill: typeof backfill.runBackfill;
  readonly createAllHistory: typeof history.createAllHistory;
  readonly runDaemon: typeof daemon.runDaemon;
}

export const REAL_PROGRAM: Program = {
  openSync: app.openSync,
  runOnce: once.runOnce,
  runBackfill: backfill.runBackfill,
  createAllHistory: history.createAllHistory,
  runDaemon: daemon.runDaemon,
};

export interface RigOptions {
  readonly program?: Program;
  readonly world: (nowMs: number) => World;
  readonly settings?: SettingsOverrides;
  readonly faults?: FaultPlan;
  readonly historyMs: number;
  /** Where the history begins in place of that. */
  readonly since?: EpochNs;
  readonly gracePeriodMs?: number;
  readonly share?: number;
  readonly concurrency?: number;
  readonly workspaceTag?: string | null;
  /** The excluded devices and sensors; none by default. */
  readonly filter?: Partial<FilterSpec>;
  /** How long a request waits for its answer; 30 s. */
  readonly transportTimeoutMs?: number;
}

export interface Life {
  readonly summary: OnceSummary;
  readonly events: readonly AppEvent[];
}

export interface Rig extends Disposable {
  readonly clock: VirtualClock;
  readonly simulator: Simulator;
  /** Readings that the API has lost: not served while this returns true. */
  hides: ((deviceId: string, reading: SimReading, atMs: EpochMs) => boolean) | null;
  readonly database: string;
  readonly dataDir: string;
  readonly settings: SyncOptions['settings'];
  /** Opens the parts of one run, for tests that drive them themselves. */
  open(changes?: Partial<SyncOptions>): Sync;
  /** One `--once`, from opening to closing. */
  once(changes?: Partial<SyncOptions>, signal?: AbortSignal): Promise<Life>;
  /** The judge's verdict over what `--once` promised when it was started at `startedMs`. */
  verdict(startedMs: number, claim?: { fromNs?: bigint; toNs?: bigint }): Promise<Verdict>;
}

/** When the tests' worlds begin to be watched: neither a whole second nor near a round hour. */
export const NOW_MS = Date.UTC(2026, 5, 15, 12, 34, 56, 789);

/** How many rigs each bench has had: what a rig draws by chance does not depend on the files of tests before it. */
const rigsOf = new WeakMap<Bench, number>();

/** Makes a rig on a bench. */
export async function openRig(bench: Bench, options: RigOptions): Promise<Rig> {
  const clock = createVirtualClock(NOW_MS);
  const world = options.world(NOW_MS);
  const simulator = createSimulator({
    world,
    clock,
    ...(options.settings === undefined ? {} : { settings: options.settings }),
    ...(options.faults === undefined ? {} : { faults: options.faults }),
  });
  const nth = (rigsOf.get(bench) ?? 0) + 1;
  rigsOf.set(bench, nth);
  const database = `rig${nth}`;
  // One shard for ten years: by default there is one for each week.
  await bench.influxd.query('', `CREATE DATABASE ${database} WITH SHARD DURATION 520w`);
  const dataDir = mkdtempSync(join(tmpdir(), 'tidemark-rig-'));
  const gracePeriodMs = options.gracePeriodMs ?? 2 * MINUTE_MS;
  const { openSync, runOnce } = options.program ?? REAL_PROGRAM;
  const settings = syncSettings({
    history:
      options.since === undefined ? { kind: 'age', ageMs: options.historyMs } : { kind: 'since', since: options.since },
    gracePeriodMs,
    concurrency: options.concurrency ?? 4,
    workspaceTag: options.workspaceTag ?? null,
    filter: createFilter({ ...KEEP_ALL.spec, ...options.filter }),
  });
  const open = (changes: Partial<SyncOptions> = {}): Sync =>
    openSync({
      transport: transportOf(simulator, options.transportTimeoutMs),
      api: {
        url: 'http://simulator.test/external/v1',
        key: () => simulator.settings.key.secret,
        share: options.share ?? 0.8,
        concurrency: options.concurrency ?? 4,
      },
      settings,
      destinations: [destinationOf(bench, database, clock)],
      dataDir,
      clock,
      random: seededRandom(nth),
      observe: () => {},
      ...changes,
    });
  const rig: Rig = {
    clock,
    simulator,
    hides: null,
    database,
    dataDir,
    settings,
    open,
    once: async (changes = {}, signal = new AbortController().signal) => {
      const events: AppEvent[] = [];
      const observe = (event: AppEvent): void => {
        events.push(event);
        changes.observe?.(event);
      };
      const sync = open({ ...changes, observe });
      try {
        return { summary: await runOnce(sync, signal), events };
      } finally {
        sync.close();
      }
    },
    verdict: async (startedMs, claim = {}) => {
      const ids = world.deviceIds(clock.nowMs());
      const serverMs = Math.floor(startedMs + simulator.settings.time.offsetMs);
      const span = {
        fromNs: claim.fromNs ?? BigInt(serverMs - options.historyMs + 1000) * 1_000_000n,
        // The server's clock has whole seconds, and the coverage limit is one more second below it.
        toNs: claim.toNs ?? BigInt(serverMs - gracePeriodMs - 2500) * 1_000_000n,
      };
      return await judge({ influxd: bench.influxd, database, simulator }, span, ids);
    },
    [Symbol.dispose]: () => rmSync(dataDir, { recursive: true, force: true }),
  };
  const { isVisible } = simulator;
  simulator.isVisible = (deviceId, reading, atMs = simulator.worldNowMs()) =>
    isVisible(deviceId, reading, atMs) && rig.hides?.(deviceId, reading, atMs) !== true;
  return rig;
}

/** The destination of a rig; virtual time stands still while the real database is at work. */
export function destinationOf(
  { proxy }: Bench,
  bucket: string,
  clock: VirtualClock,
): SyncOptions['destinations'][number] {
  const sink = createInfluxSink({
    name: 'influx',
    url: proxy.url,
    connect: proxy.connect,
    token: new Secret(TOKEN),
    org: '',
    bucket,
    timeoutMs: 30_000,
  });
  return { sink: onClock(sink, clock), identity: bucket, batchLines: 5000 };
}

function onClock(sink: Sink, clock: VirtualClock): Sink {
  return wrapWrites(sink, (write) => clock.busy(write()));
}

/** A small generator of numbers, the same for the same seed. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
