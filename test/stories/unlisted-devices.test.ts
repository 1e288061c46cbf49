/**
 * The API document leaves open whether the device list shows when a device was seen. A fleet is ready all the time under
 * every reading of it, and a stall shows as soon.
 */
import { describe, expect, test } from 'vitest';
import { MINUTE_MS } from '../../src/core/time.ts';
import { onPath } from '../support/faults.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { openBench, REAL_PROGRAM } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';
import {
  ageAfterFaster,
  CHECK_MS,
  checkFleet,
  type Listing,
  readyForMs,
  reportersOf,
  STARTED_MS,
} from '../support/unlisted-scenarios.ts';

const LISTINGS: readonly Listing[] = ['shown', 'absent', 'stuck'];

describe.runIf(influxdAvailable())('a fleet whose last-seen times are', () => {
  const bench = sharedBench(openBench);

  describe.each(LISTINGS)('%s', (listing) => {
    test.each([[[1]], [[10]], [[60]], [[1, 10, 60]]])(
      'is ready all the time, and nothing is behind: every %j minutes',
      async (minutes) => {
        const fleet = { devices: reportersOf(...minutes), listing };
        // At least two readings of each device in the last run.
        const lastMs = Math.max(2.5 * Math.max(...minutes), 60) * MINUTE_MS;
        // After a restart, a time that is stuck is trusted until the idle poll has disproved it.
        const livesMs = listing === 'stuck' ? [1.5 * lastMs] : [0.5 * lastMs, lastMs];
        const { made, notReady, behind, worstLagSeconds, behindAfterSeconds, polls } = await checkFleet(
          bench,
          REAL_PROGRAM,
          fleet,
          livesMs,
        );
        expect(made).toBeGreaterThan((1.5 * lastMs - livesMs.length * STARTED_MS) / CHECK_MS - 3);
        expect({ notReady, behind }).toEqual({ notReady: 0, behind: 0 });
        expect(worstLagSeconds).toBeLessThanOrEqual(behindAfterSeconds);
        // A poll for each reading, and a few more after the start.
        const readings = minutes.reduce((sum, every) => sum + (livesMs.at(-1) ?? 0) / MINUTE_MS / every, 0);
        expect(polls).toBeLessThan(readings + 8 * minutes.length);
      },
    );
  });

  test('absent is read at the idle poll where a device begins to report more often', async () => {
    expect(await ageAfterFaster(bench, REAL_PROGRAM)).toBeLessThan(30 * MINUTE_MS);
  });

  test('is not ready any more as soon as any other where the API has all requests wait', async () => {
    const [shown = 0, ...others] = await readyTimes([60]);
    expect(shown).toBeLessThan(15 * MINUTE_MS);
    for (const readyMs of others) expect(readyMs).toBeLessThanOrEqual(shown + MINUTE_MS);
  });

  test('is not ready any more as soon as any other where no device answers', async () => {
    const fails = onPath(/telemetry/, () => ({ kind: 'server-error' }));
    const [shown = 0, ...others] = await readyTimes([10, 60], fails);
    expect(shown).toBeLessThan(30 * MINUTE_MS);
    for (const readyMs of others) expect(readyMs).toBeLessThanOrEqual(shown + 5 * MINUTE_MS);
  });

  /** How long fleets with each kind of list are called ready. */
  async function readyTimes(minutes: readonly number[], fails?: Parameters<typeof readyForMs>[3]): Promise<number[]> {
    const times: number[] = [];
    for (const listing of LISTINGS) {
      times.push(await readyForMs(bench, REAL_PROGRAM, { devices: reportersOf(...minutes), listing }, fails));
    }
    return times;
  }
});
