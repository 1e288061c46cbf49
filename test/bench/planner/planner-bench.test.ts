/**
 * The planner's bench in small, and 10,000 devices for some virtual hours through planner and pace alone.
 */
import { describe, expect, test } from 'vitest';
import { DAY_MS } from '../../../src/core/time.ts';
import { computeDemand } from '../../../src/scheduler/demand.ts';
import { figuresOf, PLANS, runCell } from './cells.ts';
import { runPlanner, SETTINGS } from './clients.ts';
import { createFleet, MIXED } from './fleet.ts';
import { plannerBytes } from './memory.ts';
import { createService } from './service.ts';

const SEED = 3;

/** Expects the figures that are counted, not timed. */
function expectMet(result: ReturnType<typeof runCell>): void {
  for (const { figure, unit, better, wanted, values } of figuresOf(result)) {
    if (unit === 'µs') continue;
    if (better === 'less') expect(values[0], figure).toBeLessThanOrEqual(wanted);
    else expect(values[0], figure).toBeGreaterThanOrEqual(wanted);
  }
}

describe('a virtual day through planner and pace', () => {
  test('of 10,000 devices takes a few steps for each decision', () => {
    const result = runCell({ devices: 10_000, plan: 'wide', others: 0 }, { hours: 6, seed: SEED });
    expect(result.run.requests).toBeGreaterThan(37_500);
    expect(result.run.stepsPerDecision, 'steps in heaps, where 10,000 would be a look at all').toBeLessThan(100);
    expectMet(result);
  });

  test.each([
    { devices: 50, plan: 'tight', others: 0 },
    { devices: 50, plan: 'tight', others: 0.3 },
    { devices: 300, plan: 'tight', others: 0 },
    { devices: 1000, plan: 'tight', others: 0.3 },
  ] as const)('of $devices devices in the $plan plan, others at $others, holds the figures', (cell) => {
    const result = runCell(cell, { hours: 48, seed: SEED });
    expectMet(result);
  });

  test.each([
    { devices: 50, plan: 'tight', others: 0 },
    { devices: 300, plan: 'tight', others: 0 },
    { devices: 1000, plan: 'wide', others: 0 },
  ] as const)('of $devices devices in the $plan plan reaches the freshness that was foretold', (cell) => {
    const { run } = runCell(cell, { hours: 24, seed: SEED });
    const intervalsMs = createFleet({ ...MIXED, seed: SEED, devices: cell.devices })
      .filter(({ isSilent }) => !isSilent)
      .map(({ intervalMs }) => intervalMs);
    const quietDevices = cell.devices - intervalsMs.length;
    const limits = { ...PLANS[cell.plan], othersPerDay: 0 };
    const demand = computeDemand({ ...SETTINGS, ...limits, alertRequests: 1, intervalsMs, quietDevices });
    expect(demand.readingsFit).toBe(true);
    expect(run.figures.liveLagMs / demand.lag.p95Ms).toBeGreaterThan(0.8);
    expect(run.figures.liveLagMs / demand.lag.p95Ms).toBeLessThan(1.25);
    expect((run.byLane['live'] ?? 0) / demand.planned.live).toBeGreaterThan(0.9);
    expect((run.byLane['live'] ?? 0) / demand.planned.live).toBeLessThan(1.1);
  });

  test('is refused nothing when alone, whatever the windows and headers, and little beside another client', () => {
    for (const window of ['fixed', 'first-request', 'sliding', 'bucket'] as const) {
      for (const headers of ['minute', 'day', 'tightest'] as const) {
        const run = (others: number) => {
          const service = createService({ plan: PLANS.tight, window, headers, others });
          const fleet = createFleet({ ...MIXED, seed: SEED, devices: 50 });
          return runPlanner({ fleet, service, plan: PLANS.tight, fromMs: 0, untilMs: 2 * DAY_MS, seed: SEED });
        };
        const alone = run(0);
        expect(alone.refused, `${window}, ${headers}`).toBe(0);
        expect(alone.requests / 8000, `${window}, ${headers}`).toBeGreaterThan(0.95);
        if (headers !== 'tightest') continue;
        const beside = run(0.3);
        expect(beside.refused, `${window}, ${headers}`).toBeLessThanOrEqual(10);
        // Others leave 3,500 a day; half of what the share leaves is theirs as well.
        expect(beside.requests / 7000, `${window}, ${headers}`).toBeGreaterThan(0.8);
      }
    }
  });

  test('is the same with the same seed', () => {
    const run = () => runCell({ devices: 20, plan: 'tight', others: 0.3 }, { hours: 6, seed: SEED }).run;
    const [first, second] = [run(), run()];
    expect(first.instantsMs).toEqual(second.instantsMs);
    expect([first.meanAgeMs, first.carried, first.byLane]).toEqual([second.meanAgeMs, second.carried, second.byLane]);
  });

  test('the plan of 10,000 devices takes less than 20 MB', () => {
    expect(plannerBytes(10_000, SEED)).toBeLessThan(20_000_000);
  });
});
