/** The reserve of each lane, the least value of a poll, and whether the readings fit the budget. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Purpose } from '../../src/core/ports.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import {
  bookRequest,
  createCommitment,
  createCredit,
  dueLane,
  findLeast,
  type Load,
  NARROW_RESERVES,
  RESERVED_LANES,
  renewCommitment,
  rulesInForce,
  staleLimitMs,
  USUAL_RESERVES,
} from '../../src/scheduler/reserves.ts';
import { POLLS } from '../support/defaults.ts';

const LANES = ['live', ...RESERVED_LANES] as const;
type Lane = (typeof LANES)[number];

function purposeOfLane(lane: Lane): Pick<Purpose, 'lane' | 'stream'> {
  if (lane === 'account' || lane === 'devices') return { lane: 'inventory', stream: lane };
  return { lane, stream: lane === 'alerts' ? 'alerts' : 'telemetry' };
}

/** Counts how long each has waited with work at hand, and expects that it is no longer than its reserve allows. */
function noteWaits(waits: Map<Lane, number>, lane: Lane, hasWork: (lane: Lane) => boolean): void {
  for (const each of RESERVED_LANES) {
    waits.set(each, each === lane || !hasWork(each) ? 0 : (waits.get(each) ?? 0) + 1);
    // Requests that it got beyond its reserve are subtracted first, up to five.
    const ahead = each === 'devices' ? 200 : 5;
    expect(waits.get(each)).toBeLessThanOrEqual((1 + ahead) / USUAL_RESERVES[each] + RESERVED_LANES.length);
  }
}

describe('reserves', () => {
  test('whatever work comes and goes, a lane with work waits no longer than its reserve allows', () => {
    const work = fc.array(fc.subarray([...RESERVED_LANES]), { minLength: 200, maxLength: 600 });
    const others = fc.infiniteStream(fc.constantFrom(...LANES));
    fc.assert(
      fc.property(work, others, (steps, wanted) => {
        const credit = createCredit();
        const waits = new Map<Lane, number>();
        for (const lanes of steps) {
          const hasWork = (lane: Lane): boolean => lane === 'live' || lanes.includes(lane);
          const owed = dueLane(credit, hasWork);
          const other = wanted.next().value ?? 'live';
          const lane = owed ?? (hasWork(other) ? other : 'live');
          expect(hasWork(lane), 'a lane without work is owed nothing').toBe(true);
          bookRequest(credit, purposeOfLane(lane), hasWork, USUAL_RESERVES);
          noteWaits(waits, lane, hasWork);
        }
      }),
      { numRuns: 30 },
    );
  });

  test('the reserves leave live work the most', () => {
    for (const reserves of [USUAL_RESERVES, NARROW_RESERVES]) {
      expect(Object.values(reserves).reduce((sum, reserve) => sum + reserve, 0)).toBeLessThan(0.2);
    }
  });
});

describe('when a page is worth a request', () => {
  test('the limit of staleness wastes a small part, and falls as requests grow', () => {
    const intervalsMs = Array.from({ length: 500 }, (_, index) => (10 + index * 7) * SECOND_MS);
    const limits = [1000, 4000, 16_000].map((perDay) =>
      staleLimitMs(intervalsMs, { pageSize: 200, requestsPerMs: perDay / DAY_MS }),
    );
    expect(limits).toEqual(limits.toSorted((a, b) => b - a));
    expect(new Set(limits).size).toBe(3);
    expect(staleLimitMs([], { pageSize: 200, requestsPerMs: 1 })).toBe(MINUTE_MS);
  });

  test('the least value of a condition is found to a few millionths', () => {
    fc.assert(
      fc.property(fc.double({ min: 1, max: 1e9, noNaN: true }), (edge) => {
        const found = findLeast({ from: 1, to: 1e9 }, (value) => value >= edge);
        expect(found).toBeGreaterThanOrEqual(edge);
        expect(found / edge).toBeLessThan(1.00001);
      }),
    );
    expect(findLeast({ from: 2, to: 8 }, () => true)).toBe(2);
    expect(findLeast({ from: 2, to: 8 }, () => false)).toBe(8);
  });
});

describe('whether the readings fit the budget', () => {
  const usual = {
    telemetryMs: MINUTE_MS,
    polls: POLLS,
    pageSize: 200,
    gracePeriodMs: 0,
  };
  /** The load of a number of pages a day, and the number that is carried. */
  const load = (made: number, carried: number): Load => ({
    pageSize: 200,
    readingsPerMs: (made * 200 * 0.97) / DAY_MS,
    intervalsMs: () => [10 * SECOND_MS],
    carriedPerMs: carried / DAY_MS,
  });

  test('is checked when it changes, and hourly; it does not flutter', () => {
    const commitment = createCommitment();
    expect(renewCommitment(commitment, load(500, 1000), 0), 'first: the slack is known now').toBe(true);
    expect(renewCommitment(commitment, load(980, 1000), 1), 'it does not fit any more').toBe(true);
    expect(commitment.isOver).toBe(true);
    expect(rulesInForce(commitment, usual)).toMatchObject({
      isInTurn: true,
      slackMs: 0,
      polls: POLLS,
    });
    expect(renewCommitment(commitment, load(950, 1000), 2), 'a little less is not enough to come back').toBe(false);
    expect(commitment.isOver).toBe(true);
    expect(renewCommitment(commitment, load(890, 1000), 3)).toBe(true);
    expect(commitment.isOver).toBe(false);
    expect(rulesInForce(commitment, usual)).toMatchObject({ isInTurn: false, staleMs: Number.POSITIVE_INFINITY });
  });

  test('a small change does not reorder the devices, a large one does once an hour', () => {
    const commitment = createCommitment();
    renewCommitment(commitment, load(100, 1000), 0);
    expect(renewCommitment(commitment, load(100, 3000), HOUR_MS - 1)).toBe(false);
    expect(renewCommitment(commitment, load(100, 1100), HOUR_MS)).toBe(false);
    expect(renewCommitment(commitment, load(100, 3000), 2 * HOUR_MS)).toBe(true);
  });
});
