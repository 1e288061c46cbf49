/**
 * The daemon as a real process under stress: faults on both sides and a SIGKILL every second, then undisturbed until it
 * reports that it has caught up. The judge is the seed against the database.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { StatusReport } from '../../src/core/status.ts';
import { HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import type { Bench } from '../support/bench.ts';
import { ANSWER_FAULTS, anyOf, atRate, onPath } from '../support/faults.ts';
import type { FaultPlan } from '../support/faulty-simulator.ts';
import type { Verdict } from '../support/judge.ts';
import { seededRandom } from '../support/rig.ts';
import type { DeviceSpec } from '../support/trait-world.ts';
import { openStage, type Run, type Stage, until } from './support.ts';

const DEVICES: readonly DeviceSpec[] = [
  { deviceId: 'every-second', intervalMs: 1000, jitter: 0.3 },
  { deviceId: 'walk', intervalMs: 10_000, jitter: 0.5 },
  { deviceId: 'tied', intervalMs: 20_000, traits: ['ties'] },
  { deviceId: 'burst', intervalMs: MINUTE_MS, traits: ['burst'], burst: { every: 40, size: 230 } },
  { deviceId: 'odd', intervalMs: 30_000, traits: ['oddValues', 'empty'] },
];

/** The faults of the API: a fifth of all requests, a third of those for telemetry. */
const API_FAULTS: FaultPlan = anyOf(
  atRate(0.2, ANSWER_FAULTS, 7),
  onPath(
    /telemetry$/,
    atRate(
      0.15,
      [
        { kind: 'mangle', change: (page) => ({ ...page, records: [], nextCursor: null }) },
        { kind: 'mangle', change: (page) => ({ ...page, records: page.records.toReversed() }) },
        { kind: 'mangle', change: (page) => ({ ...page, records: withoutNewest(page.records) }) },
        { kind: 'mangle', change: (page) => ({ ...page, deviceId: 'another' }) },
      ],
      8,
    ),
  ),
);

/**
 * A page without its newest three, unless these are of one instant with the next: from the middle of an instant that
 * fills pages, their absence cannot be noticed.
 */
function withoutNewest(records: readonly string[]): readonly string[] {
  const instantOf = (record: string | undefined): string => /"recorded_at":"([^"]*)"/.exec(record ?? '')?.[1] ?? '';
  return instantOf(records[0]) === instantOf(records[3]) ? records : records.slice(3);
}

export interface TormentOptions {
  readonly bench: Bench;
  /** How long it is tormented. */
  readonly forMs: number;
  readonly seed: number;
}

export interface TormentResult {
  readonly kills: number;
  readonly requests: number;
  readonly writes: number;
  readonly verdict: Verdict;
  readonly lastReport: StatusReport;
  /** How long it took to catch up once it was left alone. */
  readonly caughtUpMs: number;
  readonly exitCode: number | null;
}

/** Torments it, lets it catch up, stops it and judges. */
export async function torment({ bench, forMs, seed }: TormentOptions): Promise<TormentResult> {
  const random = seededRandom(seed);
  await using stage = await openStage({
    bench,
    devices: DEVICES,
    historyMs: HOUR_MS,
    settings: { plan: { maxDevicesPerPage: 50 }, time: { latencyMs: { min: 1, max: 20 } } },
  });
  const env = {
    TIDEMARK_LISTEN: '127.0.0.1:0',
    TIDEMARK_SYNC_TELEMETRY: '*/2 * * * * *',
    TIDEMARK_SYNC_GRACE_PERIOD: '10s',
  };
  stage.simulator.faults = API_FAULTS;
  bench.proxy.setFaults(({ nth }) => {
    if (nth % 7 === 1) return { kind: 'hang' };
    if (nth % 7 === 3) return { kind: 'apply-and-cut' };
    return nth % 7 === 5 ? { kind: 'answer', status: 503 } : null;
  });
  const startedMs = performance.now();
  const writesBefore = bench.proxy.writes.length;
  let kills = 0;
  while (performance.now() - startedMs < forMs) {
    const run = stage.start([], { env });
    await sleep(500 + random() * 1000);
    run.child.kill('SIGKILL');
    await run.ended;
    kills += 1;
  }
  stage.simulator.faults = null;
  bench.proxy.setFaults(null);
  const calmMs = performance.now();
  const run = stage.start([], { env });
  const last = await caughtUp(stage, run);
  run.child.kill('SIGTERM');
  const { code } = await run.ended;
  return {
    kills,
    requests: stage.simulator.log.total,
    writes: bench.proxy.writes.length - writesBefore,
    // Readings that have left the wanted range while it caught up are not missed.
    verdict: await stage.verdict(last.atMs, Date.now() - HOUR_MS + 5000),
    lastReport: last.report,
    caughtUpMs: performance.now() - calmMs,
    exitCode: code,
  };
}

/** Waits until everything up to a few seconds ago is covered and delivered. */
async function caughtUp(stage: Stage, run: Run): Promise<{ report: StatusReport; atMs: number }> {
  let url = '';
  await until('it serves its page', () => {
    url = /"status_page":"([^"]+)"/.exec(run.stderr())?.[1] ?? '';
    return url !== '' || run.child.exitCode !== null;
  });
  let report: StatusReport | null = null;
  let atMs = 0;
  const isDone = async (): Promise<boolean> => {
    atMs = Date.now() - LAG_MS;
    report = (await (await fetch(`${url}status.json`)).json()) as StatusReport;
    const isHeld = report.devices.every(
      ({ lag_seconds, gaps }) =>
        lag_seconds !== null && lag_seconds < LAG_MS / 1000 && gaps.every(({ from }) => Date.parse(from) > atMs),
    );
    return isHeld && report.devices.length === DEVICES.length && report.destinations[0]?.pending_points === 0;
  };
  await until(`it has caught up (${stage.dataDir})`, isDone);
  if (report === null) throw new Error('no report');
  return { report, atMs };
}

/** Points that may still be undelivered when it reports that it has caught up. */
const LAG_MS = 10_000;
