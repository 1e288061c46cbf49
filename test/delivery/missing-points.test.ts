/** The points that a database will never get, reported by the complete program. */
import { describe, expect, test } from 'vitest';
import { HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { destinationOf, openBench, openRig } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { createWorld } from '../support/trait-world.ts';

const bench = sharedBench(openBench);

describe.runIf(influxdAvailable())('a database that comes late', () => {
  test('gets cleared points as missing points, in the summary and in the report', async () => {
    using rig = await openRig(bench, {
      world: (originMs) =>
        createWorld({ seed: 5, originMs, historyMs: 6 * HOUR_MS, devices: [{ deviceId: 'd', intervalMs: MINUTE_MS }] }),
      historyMs: 3 * HOUR_MS,
    });
    const archive = { retentionMs: HOUR_MS, maxBytes: null };
    const first = await rig.once({ archive });
    expect(first.summary.destinations).toMatchObject([{ pending_points: 0, missing: [] }]);
    await rig.clock.sleep(2 * HOUR_MS);
    await rig.once({ archive });

    const late = destinationOf(bench, rig.database, rig.clock);
    const changes = { archive, destinations: [{ ...late, identity: 'another' }] };
    const { summary } = await rig.once(changes);
    expect(summary.destinations).toMatchObject([
      { pending_points: 0, missing: [{ reason: 'cleared', devices: 1, from: expect.any(String) }] },
    ]);
    const lacks = summary.destinations[0]?.missing ?? [];
    const archived = first.summary.points_archived;
    expect(lacks.reduce((sum, { points }) => sum + points, 0)).toBeGreaterThanOrEqual(archived);
    const sync = rig.open(changes);
    try {
      expect(sync.report().destinations[0]?.missing).toEqual(lacks);
    } finally {
      sync.close();
    }
  });
});
