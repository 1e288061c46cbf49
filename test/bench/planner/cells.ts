/**
 * One cell of the planner's bench: a fleet, a plan, with or without another client; the planner in it and the two that
 * it is measured against; and the figures that apply to it.
 */

import { DAY_MS, HOUR_MS } from '../../../src/core/time.ts';
import type { Measured } from '../table.ts';
import { type PlannerRun, runPlanner, SETTINGS } from './clients.ts';
import { runCron } from './cron.ts';
import { createFleet, MIXED } from './fleet.ts';
import { runOracle } from './oracle.ts';
import { SHARE } from './rate.ts';
import type { RunResult } from './result.ts';
import { createService, type ServicePlan } from './service.ts';

const RUN_IN_MS = 2 * DAY_MS;

export const PLANS = {
  tight: { perMinute: 60, perDay: 5000 },
  wide: { perMinute: 600, perDay: 200_000 },
} as const satisfies Record<string, ServicePlan>;

export type PlanName = keyof typeof PLANS;

export interface Cell {
  readonly devices: number;
  readonly plan: PlanName;
  /** The part of the plan that another client uses. */
  readonly others: number;
}

export interface CellResult {
  readonly cell: Cell;
  readonly run: PlannerRun;
  /** This and the others run at their first use. */
  readonly bound: () => RunResult;
  /** Every device at every tick, until its requests are spent: as many a day as the planner's. */
  readonly cron: () => RunResult;
  /** The same number, spread over the day by longer ticks: what an owner might set by hand. */
  readonly spreadCron: () => RunResult;
  /** Whether all readings would fit into the rest of the quota, if every page were full. */
  readonly fits: boolean;
  /** Requests, as a part of the budget. */
  readonly used: number;
  /** Whether the demand exceeds the budget. */
  readonly isWanting: boolean;
}

const PAGE = SETTINGS.pageSize;

/** Runs a cell. Where the demand exceeds the budget, a warm-up comes before the count: no page is full at first. */
export function runCell(cell: Cell, { hours, seed }: { hours: number; seed: number }): CellResult {
  const plan = PLANS[cell.plan];
  const fleet = createFleet({ ...MIXED, seed, devices: cell.devices });
  const made = fleet.reduce((sum, device) => sum + device.newestAt(hours * HOUR_MS) - device.newestAt(0), 0);
  const days = hours / 24;
  const share = Math.min(plan.perDay, plan.perMinute * 1440) * SHARE;
  const left = Math.min(share, plan.perDay * (1 - cell.others));
  const fits = made / PAGE / days <= left;
  const fromMs = fits ? 0 : RUN_IN_MS;
  const untilMs = fromMs + hours * HOUR_MS;
  const service = (of: ServicePlan, others: number) =>
    createService({ plan: of, window: 'sliding', headers: 'tightest', others });
  const common = { fleet, fromMs, untilMs, seed };
  const run = runPlanner({ ...common, plan, service: service(plan, cell.others) });
  const perDay = Math.ceil(run.requests / days);
  const tickMs = Math.max(SETTINGS.telemetryMs, (DAY_MS * cell.devices) / perDay);
  return {
    cell,
    run,
    bound: once(() => runOracle({ ...common, instantsMs: run.instantsMs, telemetryMs: SETTINGS.telemetryMs })),
    cron: once(() => runCron({ ...common, service: service({ ...plan, perDay }, 0) }, SETTINGS.telemetryMs)),
    spreadCron: once(() => runCron({ ...common, service: service(plan, 0) }, tickMs)),
    fits,
    used: run.requests / days / share,
    isWanting: run.idleMs < (untilMs - fromMs) * 0.01,
  };
}

function once<T extends object>(make: () => T): () => T {
  let made: T | null = null;
  return () => {
    made ??= make();
    return made;
  };
}

const WANTED = { toBound: 1.1, toCron: 3, carried: 0.97, even: 0.97, used: 0.95, empty: 2, decisionUs: 1000, none: 0 };

/** The figures that apply to a cell. */
export function figuresOf({ cell, run, bound, cron, fits, used, isWanting }: CellResult): Measured[] {
  const where = nameOf(cell);
  const figures: Measured[] = [
    less(`${where}: live requests that bring nothing`, '%', WANTED.empty, (100 * run.liveEmpty) / run.livePolls),
    less(`${where}: decision, 99th of 100`, 'µs', WANTED.decisionUs, run.deciding.p99Us),
  ];
  if (fits)
    figures.push(less(`${where}: age to the bound`, 'times', WANTED.toBound, run.meanAgeMs / bound().meanAgeMs));
  if (fits && cell.plan === 'tight')
    figures.push(more(`${where}: age of cron to ours`, 'times', WANTED.toCron, cron().meanAgeMs / run.meanAgeMs));
  if (!fits) {
    figures.push(
      more(`${where}: carried of full pages`, 'times', WANTED.carried, run.carried / (run.requests * PAGE)),
      more(`${where}: spread evenly`, 'times', WANTED.even, run.evenness),
    );
  }
  // With others, what they leave is less than the share.
  if (cell.others === 0 && isWanting) figures.push(more(`${where}: share used`, 'times', WANTED.used, used));
  if (cell.others === 0) figures.push(less(`${where}: refusals`, '429', WANTED.none, run.refused));
  return figures;
}

export function nameOf({ devices, plan, others }: Cell): string {
  return `${devices} ${plan}${others > 0 ? ` -${others * 100} %` : ''}`;
}

function less(figure: string, unit: string, wanted: number, value: number): Measured {
  return { figure, unit, wanted, better: 'less', values: [value] };
}

function more(figure: string, unit: string, wanted: number, value: number): Measured {
  return { figure, unit, wanted, better: 'more', values: [value] };
}
