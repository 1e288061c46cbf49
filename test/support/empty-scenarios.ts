/**
 * Safety scenarios about answers that are empty, with 200, for as long as a fault lasts. Part of `scenarios.ts`.
 */

import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import type { FaultPlan } from '../../src/sim/faults.ts';
import type { DeviceSpec } from '../../src/sim/spec.ts';
import { createWorld } from '../../src/sim/world.ts';
import type { Bench } from './bench.ts';
import { complaints } from './complaints.ts';
import { always, falselyEmpty, onPath } from './faults.ts';
import { NOW_MS, openRig, type Program, type Rig } from './rig.ts';
import type { Scenario } from './scenarios.ts';

const HISTORY_MS = 12 * HOUR_MS;
/** What is wanted moves with the time that the lives take. */
const FROM_MS = NOW_MS - 6 * HOUR_MS;

/** More readings an hour than a page holds: what a life has missed of it, the next one does not find by chance. */
const OFTEN: DeviceSpec = { deviceId: 'often', intervalMs: 10 * SECOND_MS };

const EMPTY: FaultPlan = onPath(/telemetry/, always(falselyEmpty));

interface World {
  readonly device: DeviceSpec;
  readonly historyMs: number;
}

async function rigFor(bench: Bench, program: Program, { device, historyMs }: World): Promise<Rig> {
  const world = (originMs: number) =>
    createWorld({ seed: 29, originMs, historyMs: historyMs + 3 * HOUR_MS, devices: [device], alerts: [] });
  return await openRig(bench, { world, historyMs, program });
}

/** A last life, an hour later, in which all answers are true. */
async function finish(rig: Rig, { fromMs, least }: { fromMs: number; least: number }): Promise<string[]> {
  rig.simulator.faults = null;
  await rig.clock.sleep(HOUR_MS);
  const startedMs = rig.clock.nowMs();
  await rig.once();
  return complaints(await rig.verdict(startedMs, { fromNs: BigInt(fromMs) * 1_000_000n }), least);
}

/** Three lives in which every answer is empty, though readings are held that each must show. */
export const emptyForHours: Scenario = async (bench, program) => {
  using rig = await rigFor(bench, program, { device: OFTEN, historyMs: HISTORY_MS });
  await rig.once();
  rig.simulator.faults = EMPTY;
  for (let life = 1; life <= 3; life += 1) {
    await rig.clock.sleep(HOUR_MS);
    await rig.once();
  }
  return await finish(rig, { fromMs: FROM_MS, least: 1000 });
};

/** A first life in which every answer is empty, so that nothing is held that could be missed. */
export const emptyFromTheFirst: Scenario = async (bench, program) => {
  using rig = await rigFor(bench, program, { device: OFTEN, historyMs: HISTORY_MS });
  rig.simulator.faults = EMPTY;
  await rig.once();
  return await finish(rig, { fromMs: FROM_MS, least: 1000 });
};

/** More history is wanted, in several windows, and every answer is empty: the deeper windows reach nothing held. */
export const emptyFurtherDown: Scenario = async (bench, program) => {
  const device: DeviceSpec = { deviceId: 'ten', intervalMs: 10 * MINUTE_MS };
  using rig = await rigFor(bench, program, { device, historyMs: 12 * DAY_MS });
  rig.simulator.settings.plan.historyMaxDays = 3;
  const { settings } = rig;
  await rig.once({ settings: { ...settings, history: { kind: 'age', ageMs: 4 * DAY_MS } } });
  rig.simulator.faults = EMPTY;
  await rig.clock.sleep(HOUR_MS);
  await rig.once();
  return await finish(rig, { fromMs: NOW_MS - 11 * DAY_MS, least: 1000 });
};

/** Empty answers twice, more than a day apart, and true ones between: what was shown meanwhile is not gone. */
export const emptyOnceMore: Scenario = async (bench, program) => {
  const spoken = (fromMs: number) =>
    Array.from({ length: 300 }, (_, index) => ({
      recordedAtNs: BigInt(fromMs + index * 10 * SECOND_MS) * 1_000_000n,
      values: [['level', String(index)] as const],
    }));
  const readings = [...spoken(NOW_MS - 2 * HOUR_MS), ...spoken(NOW_MS + 26 * HOUR_MS)];
  using rig = await rigFor(bench, program, { device: { deviceId: 'quiet', readings }, historyMs: 2 * DAY_MS });
  await rig.once();
  for (const waitMs of [HOUR_MS, 26 * HOUR_MS]) {
    await rig.clock.sleep(waitMs);
    rig.simulator.faults = EMPTY;
    await rig.once();
    rig.simulator.faults = null;
    await rig.clock.sleep(HOUR_MS);
    if (waitMs === HOUR_MS) await rig.once();
  }
  return await finish(rig, { fromMs: FROM_MS, least: 500 });
};
