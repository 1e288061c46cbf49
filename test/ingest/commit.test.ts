/**
 * A page of many values is committed in parts, so that other work has its turns in between. The scenario
 * `killedBetweenParts` kills it there.
 */
import { describe, expect, test } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import { HOUR_MS } from '../../src/core/time.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { NOW_MS, openBench, openRig } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { WIDE_VALUES, wideWorld } from '../support/wide-scenarios.ts';

describe.runIf(influxdAvailable())('a page of many values', () => {
  const bench = sharedBench(openBench);

  test('is committed in parts of a few thousand, and covered by the last one', async () => {
    using rig = await openRig(bench, { world: wideWorld, historyMs: 6 * HOUR_MS });
    const { summary, events } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'complete', gaps: [] });
    const commits = events.filter((event): event is Extract<AppEvent, { type: 'page-committed' }> => {
      return event.type === 'page-committed' && event.newPoints > 0;
    });
    expect(commits.reduce((sum, { newPoints }) => sum + newPoints, 0)).toBe(WIDE_VALUES);
    expect(Math.max(...commits.map(({ newPoints }) => newPoints))).toBeLessThan(5200);
    expect(commits.filter(({ extendsCoverage }) => extendsCoverage)).toEqual(commits.slice(-1));
    expect(rig.simulator.log.requests.filter(({ path }) => path.endsWith('/telemetry')).length).toBeLessThan(4);
    const { missing, invented, expected } = await rig.verdict(NOW_MS);
    expect([missing.length, invented.length, expected]).toEqual([0, 0, WIDE_VALUES]);
  });
});
