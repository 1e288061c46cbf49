/**
 * Safety scenarios about the budget: it is respected across restarts, from the first request on, with any headers. Part
 * of `scenarios.ts`.
 */
import type { SyncOptions } from '../../src/app/open-sync.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import type { Bench } from './bench.ts';
import { openRig, type Program, type Rig } from './rig.ts';
import type { Scenario } from './scenarios.ts';
import { transportOf } from './sim-transport.ts';
import { createWorld } from './trait-world.ts';

const PLAN = { requestsPerMinute: 24, requestsPerDay: 100_000 };
const SHARE = 0.5;
const MOST_A_MINUTE = PLAN.requestsPerMinute * SHARE;

async function rigFor(bench: Bench, program: Program): Promise<Rig> {
  const devices = Array.from({ length: 12 }, (_, index) => ({
    deviceId: `often-${index}`,
    intervalMs: 20 * SECOND_MS,
  }));
  const world = (originMs: number) => createWorld({ seed: 31, originMs, historyMs: 30 * HOUR_MS, devices });
  return await openRig(bench, { world, historyMs: 24 * HOUR_MS, program, share: SHARE, settings: { plan: PLAN } });
}

/** One run of so many seconds. What it ends with does not matter. */
async function live(rig: Rig, seconds: number, changes: Partial<SyncOptions> = {}): Promise<void> {
  const stop = new AbortController();
  const life = rig.once(changes, stop.signal);
  await rig.clock.sleep(seconds * SECOND_MS);
  stop.abort(new Error('the life is over'));
  await life;
}

/** The excess requests: any minute in which there were more than the share allows. */
function tooMany({ simulator }: Rig, least: number): string[] {
  const atMs = simulator.log.requests.map((request) => request.atMs);
  let most = 0;
  for (let to = 0, from = 0; to < atMs.length; to += 1) {
    while ((atMs[to] ?? 0) - (atMs[from] ?? 0) >= MINUTE_MS) from += 1;
    most = Math.max(most, to - from + 1);
  }
  const few = atMs.length >= least ? [] : [`only ${atMs.length} requests`];
  return [...few, ...(most <= MOST_A_MINUTE ? [] : [`${most} requests within a minute, ${MOST_A_MINUTE} may be`])];
}

/** Started again and again: what was sent before a restart counts after it, for the first request too. */
export const restartedWithinAMinute: Scenario = async (bench, program) => {
  using rig = await rigFor(bench, program);
  await live(rig, 30);
  for (let lives = 0; lives < 40; lives += 1) await live(rig, 2);
  return tooMany(rig, 15);
};

/** The headers report far more than the plan has: a proxy, another service behind the same name. */
export const generousHeaders: Scenario = async (bench, program) => {
  using rig = await rigFor(bench, program);
  const transport = transportOf(rig.simulator);
  const generous: typeof transport = async (request, signal) => {
    const answer = await transport(request, signal);
    const headers = { ...answer.headers, 'x-ratelimit-limit': '90000', 'x-ratelimit-remaining': '89999' };
    return { ...answer, headers };
  };
  await live(rig, 240, { transport: generous });
  return tooMany(rig, 30);
};
