/** Safety scenarios about pages of so many values that they are committed in parts. Part of `scenarios.ts`. */

import type { AppEvent } from '../../src/core/events.ts';
import { HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import type { World } from '../../src/sim/world.ts';
import { readStateView } from '../../src/store/views/read-state.ts';
import { complaints } from './judge.ts';
import { diesAtEffect, mortalCommits, mortalTransport } from './mortality.ts';
import { NOW_MS, openRig, type Rig } from './rig.ts';
import type { Scenario } from './scenarios.ts';
import { transportOf } from './sim-transport.ts';
import { createWorld } from './trait-world.ts';

const SENSORS = 120;
const READINGS = 180;

/** How many values there are. */
const WIDE_VALUES = SENSORS * READINGS;

/** A device that reports so many sensors that a page of its readings is committed in five parts. */
function wideWorld(originMs: number): World {
  const readings = Array.from({ length: READINGS }, (_, n) => ({
    recordedAtNs: BigInt(NOW_MS - 5 * HOUR_MS + n * MINUTE_MS) * 1_000_000n,
    values: Array.from({ length: SENSORS }, (_, sensor) => [`s${sensor}`, `${n + sensor / 1000}`] as const),
  }));
  const devices = [{ deviceId: 'wide', readings }];
  return createWorld({ seed: 41, originMs, historyMs: 6 * HOUR_MS, devices, alerts: [] });
}

/** The most points that a part may bring: what is more would hold up all other work. */
const MOST_POINTS = 5200;

/** Whether anything counts as covered, by the state itself. */
function isCovered({ dataDir }: Rig): boolean {
  const state = readStateView(dataDir, { day: 0, requestsMs: NOW_MS });
  return (state?.telemetry.get('wide')?.covered ?? []).length > 0;
}

/** A page of very many values comes in parts, the last of which covers it. */
export const committedInParts: Scenario = async (bench, program) => {
  using rig = await openRig(bench, { world: wideWorld, historyMs: 6 * HOUR_MS, program });
  const covered: boolean[] = [];
  const observe = (event: AppEvent): void => {
    if (event.type === 'page-committed' && event.newPoints > 0) covered.push(isCovered(rig));
  };
  const { summary, events } = await rig.once({ observe });
  const commits = events.flatMap((event) => (event.type === 'page-committed' && event.newPoints > 0 ? [event] : []));
  const points = commits.map(({ newPoints }) => newPoints);
  const requests = rig.simulator.log.requests.filter(({ path }) => path.endsWith('/telemetry')).length;
  return [
    ...(summary.outcome === 'complete' && summary.gaps.length === 0 ? [] : [`it ends ${summary.outcome}`]),
    ...(Math.max(...points) < MOST_POINTS ? [] : [`${Math.max(...points)} points at once`]),
    ...(points.reduce((sum, count) => sum + count, 0) === WIDE_VALUES ? [] : [`points: ${points}`]),
    ...(covered.indexOf(true) === commits.length - 1 ? [] : ['covered too early']),
    ...(requests < 4 ? [] : [`${requests} requests`]),
    ...complaints(await rig.verdict(NOW_MS), WIDE_VALUES - 1),
  ];
};

/** @returns whether it was killed at the nth effect. */
async function killedAt(rig: Rig, nth: number): Promise<boolean> {
  return await diesAtEffect(
    nth,
    async () => await rig.once({ transport: mortalTransport(transportOf(rig.simulator)) }),
  );
}

/** Killed again and again between the parts of a page. */
export const killedBetweenParts: Scenario = async (bench, program) => {
  using _mortal = mortalCommits();
  using rig = await openRig(bench, { world: wideWorld, historyMs: 6 * HOUR_MS, program });
  let nth = 20;
  while (await killedAt(rig, nth)) nth += 2;
  const fewest = nth > 30 ? [] : [`killed ${(nth - 20) / 2} times only`];
  return [...fewest, ...complaints(await rig.verdict(NOW_MS), WIDE_VALUES - 1)];
};
