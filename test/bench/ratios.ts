/**
 * The figures that are ratios to something beside them, each with a size of its own, for a few minutes.
 */
import { MINUTE_MS } from '../../src/core/time.ts';
import { measureBacklog } from './backlog.ts';
import { measureDisk } from './disk.ts';
import { measureGrowth } from './growth.ts';
import { measureKilled } from './killed.ts';
import { measureLiveDay } from './live-day.ts';
import { measureRealInflux } from './real-influx.ts';
import type { Measured } from './table.ts';
import type { Guard } from './undisturbed.ts';
import type { WorkspaceSize } from './workspace.ts';

export interface RatioPlan {
  readonly program: string;
  readonly newestMs: number;
  readonly runs: number;
  readonly isQuick: boolean;
  readonly say: (text: string) => void;
  readonly guard: Guard;
}

const DAY_READINGS = 1440;

function sizeOf(devices: number, days: number, { newestMs }: RatioPlan): WorkspaceSize {
  return { devices, readings: days * DAY_READINGS, intervalMs: MINUTE_MS, newestMs };
}

/** By the name of each. */
const RATIOS = {
  kills: async (plan: RatioPlan) =>
    await measureKilled({ ...plan, size: sizeOf(20, plan.isQuick ? 2 : 10, plan), kills: plan.isQuick ? 5 : 30 }),
  day: async ({ isQuick, say }: RatioPlan) =>
    await measureLiveDay(isQuick ? { hours: 3, part: 0.2 } : { hours: 24 }, say),
  backlog: async ({ isQuick, say }: RatioPlan) =>
    await measureBacklog({ devices: isQuick ? 60 : 300, outages: isQuick ? 1 : 3 }, say),
  influx: async (plan: RatioPlan) => await measureRealInflux({ ...plan, size: sizeOf(50, plan.isQuick ? 1 : 3, plan) }),
  growth: async (plan: RatioPlan) =>
    await measureGrowth({
      ...plan,
      size: sizeOf(plan.isQuick ? 5 : 20, plan.isQuick ? 1 : 6, plan),
      idleDevices: plan.isQuick ? 10 : 50,
      idleMs: (plan.isQuick ? 0.5 : 2) * MINUTE_MS,
    }),
  disk: async (plan: RatioPlan) =>
    await measureDisk({
      ...plan,
      size: sizeOf(20, plan.isQuick ? 2 : 10, plan),
      live: { devices: plan.isQuick ? 1 : 5, days: plan.isQuick ? 1 : 3 },
    }),
};

export const RATIO_NAMES = Object.keys(RATIOS) as (keyof typeof RATIOS)[];

/** Those of these names. */
export async function measureRatios(plan: RatioPlan & { readonly figures: ReadonlySet<string> }): Promise<Measured[]> {
  const measured: Measured[] = [];
  for (const [name, measure] of Object.entries(RATIOS)) {
    if (plan.figures.has(name)) measured.push(...(await measure(plan)));
  }
  return measured;
}
