/**
 * Runs a drawn case from its first life to its last and tells everything that is wrong: readings that are missing
 * outside a named gap, points that no reading explains, ends that do not fit, hours miscounted, requests wasted.
 */
import type { OnceSummary } from '../../src/commands/once/result.ts';
import type { AppEvent } from '../../src/core/events.ts';
import { HOUR_MS } from '../../src/core/time.ts';
import type { Bench } from './bench.ts';
import { createDice } from './fuzz-dice.ts';
import { type DrawnRun, drawCase, type FuzzCase } from './fuzz-draw.ts';
import { examineHours } from './fuzz-hours.ts';
import { examineVerdict } from './fuzz-verdict.ts';
import { judge } from './judge.ts';
import { dieAtEffect, Killed, liveOn, mortalCommits, mortalSink, mortalTransport } from './mortality.ts';
import { destinationOf, NOW_MS, openRig, type Rig } from './rig.ts';

/** More requests than any honest run of a drawn case needs. */
const MOST_REQUESTS = 20_000;

/** Where the events of all runs go while a failure is looked into; nowhere otherwise. */
let traceRun: ((index: number, atMs: number, event: AppEvent) => void) | null = null;

export function traceRuns(to: typeof traceRun): void {
  traceRun = to;
}

/** What a run came to, and when, by the simulation's clock. */
interface Lived {
  readonly run: DrawnRun;
  readonly summary: OnceSummary;
  /** When the first claim could be made at the earliest. */
  readonly passedAtMs: number;
  /** When the first page had landed: the wanted span had been fixed by then. */
  readonly landedAtMs: number;
  readonly endedAtMs: number;
  readonly requests: number;
}

/** Runs the case of a seed. @returns what is wrong; an empty list where nothing is. */
export async function runFuzzCase(bench: Bench, seed: number): Promise<string[]> {
  const drawn = drawCase(seed, NOW_MS);
  using _mortal = mortalCommits();
  using rig = await openRig(bench, {
    world: drawn.world,
    settings: drawn.settings,
    historyMs: HOUR_MS,
    concurrency: drawn.concurrency,
    share: drawn.share,
  });
  const wrong: string[] = [];
  let database = rig.database;
  for (const [index, run] of drawn.runs.entries()) {
    await rig.clock.sleep(run.pauseMs);
    Object.assign(rig.simulator.settings.plan, run.plan);
    const isLast = index === drawn.runs.length - 1;
    if (run.movesHouse) {
      database = `${rig.database}_${index}`;
      await bench.influxd.query('', `CREATE DATABASE ${database}`);
    }
    const lived = await live(bench, rig, { drawn, run, index, database });
    if (typeof lived === 'string') wrong.push(`run ${index}: ${lived}`);
    if (lived === null || typeof lived === 'string') continue;
    const found = await examine(bench, rig, { drawn, lived, isLast, database });
    wrong.push(...found.map((text) => `run ${index}: ${text}`));
  }
  return wrong;
}

/** One life. @returns `null` where it was killed, words where it ended as nothing may end. */
async function live(
  bench: Bench,
  rig: Rig,
  { drawn, run, index, database }: { drawn: FuzzCase; run: DrawnRun; index: number; database: string },
): Promise<Lived | string | null> {
  const { simulator, clock } = rig;
  const before = simulator.log.total;
  const dice = createDice(drawn.seed * 31 + index);
  const startedMs = clock.nowMs();
  let passedAtMs: number | null = null;
  let landedAtMs: number | null = null;
  simulator.faults = run.faults;
  bench.proxy.setFaults(
    run.badWrites === 0
      ? null
      : () => (dice.chance(run.badWrites) ? { kind: dice.pick(['cut', 'apply-and-cut'] as const) } : null),
  );
  const to = destinationOf(bench, database, clock);
  const transport = mortalTransport((request, signal) => {
    if (simulator.log.total - before > MOST_REQUESTS) throw new Error(`more than ${MOST_REQUESTS} requests`);
    return simulator.transport(request, signal);
  });
  if (run.killAt !== null) dieAtEffect(run.killAt);
  try {
    const { summary } = await rig.once({
      transport,
      destinations: [{ ...to, sink: mortalSink(to.sink), batchLines: dice.pick([50, 400, 5000]) }],
      settings: {
        ...rig.settings,
        history: { kind: 'age', ageMs: run.historyMs },
        gracePeriodMs: run.gracePeriodMs,
        concurrency: drawn.concurrency,
      },
      random: dice.unit,
      observe: (event: AppEvent) => {
        traceRun?.(index, clock.nowMs(), event);
        // The time is known then, and with it what is wanted.
        if (event.type === 'stream-read' && event.stream === 'telemetry') passedAtMs ??= clock.nowMs();
        if (event.type === 'page-landed') landedAtMs ??= clock.nowMs();
      },
    });
    const endedAtMs = clock.nowMs();
    return {
      run,
      summary,
      passedAtMs: passedAtMs ?? startedMs,
      landedAtMs: landedAtMs ?? endedAtMs,
      endedAtMs,
      requests: simulator.log.total - before,
    };
  } catch (error) {
    if (error instanceof Killed) return null;
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  } finally {
    liveOn();
    simulator.faults = null;
    bench.proxy.setFaults(null);
  }
}

async function examine(
  bench: Bench,
  rig: Rig,
  { drawn, lived, isLast, database }: { drawn: FuzzCase; lived: Lived; isLast: boolean; database: string },
): Promise<string[]> {
  const wrong: string[] = [];
  const { summary } = lived;
  const delivered = summary.destinations.every(({ pending_points }) => pending_points === 0);
  if (isLast) wrong.push(...examineEnd(rig, drawn, lived));
  if (!delivered) return wrong;
  const span = spanOf(rig, drawn, lived);
  const ids = drawn.devices.map(({ deviceId }) => deviceId);
  const all = { fromNs: 0n, toNs: 2n ** 63n };
  const verdict = await judge({ influxd: bench.influxd, database, simulator: rig.simulator }, all, ids);
  const listedAtMs = lived.passedAtMs + rig.simulator.settings.time.offsetMs;
  wrong.push(...examineVerdict(rig, { summary, listedAtMs, verdict, span }));
  if (isLast && summary.exit_code === 0) {
    const rows = await bench.influxd.query(database, 'SELECT * FROM coverage_hour');
    wrong.push(...examineHours({ simulator: rig.simulator, devices: drawn.devices, listedAtMs, span }, rows));
  }
  return wrong;
}

function examineEnd(rig: Rig, drawn: FuzzCase, { summary, run, requests }: Lived): string[] {
  const wrong: string[] = [];
  const { simulator } = rig;
  const { age } = simulator.settings.bounds;
  const { historyMaxDays, maxDevicesPerPage } = simulator.settings.plan;
  const reasons = new Set(summary.gaps.map(({ reason }) => reason));
  if (summary.exit_code !== 0 && !(summary.exit_code === 1 && mayBeHidden(rig, run))) {
    wrong.push(`exit ${summary.exit_code} (${summary.outcome}), gaps ${JSON.stringify(summary.gaps).slice(0, 500)}`);
  }
  reasons.delete('device gone');
  if (summary.exit_code === 1) reasons.delete('beyond plan');
  if (reasons.size > 0 && summary.exit_code !== 3)
    wrong.push(`gaps on exit ${summary.exit_code}: ${[...reasons].join()}`);
  const readings = drawn.devices.reduce((sum, { deviceId }) => {
    const now = BigInt(Math.floor(simulator.serverNowMs())) * 1_000_000n;
    const from = now - BigInt(run.historyMs) * 1_000_000n - 3_600_000_000_000n;
    return sum + [...simulator.world.readings(deviceId, from > 0n ? from : 0n, now)].length;
  }, 0);
  const days = historyMaxDays ?? Number.POSITIVE_INFINITY;
  const windows = Math.ceil(run.historyMs / (days * 24 * HOUR_MS - HOUR_MS)) + 3;
  const most = 10 + drawn.devices.length * (2 + windows * 4) + (readings / maxDevicesPerPage) * 2.5;
  if (requests > most)
    wrong.push(`${requests} requests, at most ${Math.ceil(most)} expected (${readings} readings, age ${age})`);
  return wrong;
}

/** Whether the plan may hide a part of what a run wants. Without `Date` the span is counted from an old reading maybe. */
function mayBeHidden({ simulator }: Rig, { historyMs }: DrawnRun): boolean {
  const { time, plan } = simulator.settings;
  if (plan.historyMaxDays === null) return false;
  return time.date === 'absent' || historyMs >= plan.historyMaxDays * 24 * HOUR_MS - 10 * 60_000;
}

/** What the run promised to have: from the last moment at which its span can begin to the first at which it can end. */
function spanOf(rig: Rig, drawn: FuzzCase, lived: Lived): { fromNs: bigint; toNs: bigint } {
  const { simulator } = rig;
  const { time } = simulator.settings;
  const { run } = lived;
  const toNs = (ms: number): bigint => BigInt(Math.floor(ms)) * 1_000_000n;
  // Without `Date` the span is fixed after a look at the readings, of which the first may have landed.
  const fixedAtMs = time.date === 'absent' ? lived.landedAtMs : lived.passedAtMs;
  // What the plan hides and what has left the wanted span by the end of the run is not missed.
  const beginMs = mayBeHidden(rig, run) ? Math.max(fixedAtMs, lived.endedAtMs + 12_000) : fixedAtMs;
  const fromMs = beginMs + time.offsetMs - run.historyMs + 1000;
  const serverMs = Math.floor(lived.passedAtMs + time.offsetMs);
  const passedMs = time.date === 'absent' ? oldestNewestMs(simulator, drawn, serverMs) : serverMs + time.dateSkewMs;
  return { fromNs: toNs(fromMs), toNs: toNs(passedMs - run.gracePeriodMs - 7500) };
}

/** The newest reading of the device that has been silent the longest: any of them may have told the time. */
function oldestNewestMs({ world, settings }: Rig['simulator'], { devices }: FuzzCase, serverMs: number): number {
  const newest = devices.flatMap(({ deviceId }) => {
    if (!world.has(deviceId, serverMs)) return [];
    const end = BigInt(serverMs - settings.lateness.maxMs) * 1_000_000n;
    // A reading older than the widest window is not among the newest that the service shows.
    const days = settings.plan.historyMaxDays;
    const fromNs = days === null ? 0n : BigInt(serverMs - days * 24 * HOUR_MS) * 1_000_000n;
    for (const { recordedAtNs } of world.readingsDescending(deviceId, { fromNs, toNs: end })) {
      return [Number(recordedAtNs / 1_000_000n)];
    }
    return [];
  });
  return newest.length === 0 ? 0 : Math.min(...newest);
}
