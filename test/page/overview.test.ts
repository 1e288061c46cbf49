/**
 * The page begins with the status report without its devices, though it is made from sums of an earlier scan.
 */
import { describe, expect, test } from 'vitest';
import { createSnapshots } from '../../src/app/service.ts';
import { HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import { DEVICES, liveAsDaemon, worldOf } from '../support/daemon-rig.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { openBench, openRig } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { REPORT } from './facts.ts';

describe.runIf(influxdAvailable())('the overview', () => {
  const bench = sharedBench(openBench);

  test('is the report at every moment of a first fill and after it', async () => {
    using rig = await openRig(bench, { world: worldOf(DEVICES), historyMs: 48 * HOUR_MS });
    const shares = new Set<number | null>();
    let compared = 0;
    await liveAsDaemon(rig, {
      forMs: 3 * HOUR_MS,
      beside: (sync) => [
        async (signal) => {
          for (;;) {
            const overview = sync.overview();
            const { devices, ...rest } = sync.report();
            expect(overview).toEqual(rest);
            expect('devices' in overview).toBe(false);
            if (devices.length === DEVICES.length) compared += 1;
            shares.add(overview.totals.covered_share);
            await rig.clock.sleep(compared < 100 ? 1000 : 5 * MINUTE_MS, signal);
          }
        },
      ],
    }).then(({ error }) => expect(error).toBeNull());
    expect(compared).toBeGreaterThan(100);
    expect(shares.size, 'it has moved').toBeGreaterThan(3);
  });
});

describe('snapshots', () => {
  test('a report is made once for all requests within a second, and the page contains no secret', () => {
    let [nowMs, made] = [0, 0];
    const { devices: _, ...overview } = { ...REPORT, summary: 'held: token s3cret' };
    const snapshots = createSnapshots({
      report: () => {
        made += 1;
        return { ...REPORT, summary: `${made} s3cret` };
      },
      overview: () => overview,
      ageMs: () => 7400,
      health: () => ({ healthy: true, reasons: [], codes: [] }),
      ready: () => ({ ready: true, reasons: [], codes: [], names: [] }),
      scrub: (text) => text.replaceAll('s3cret', '***'),
      clock: { monoMs: () => nowMs },
    });
    const reported = (): string => {
      nowMs += 400;
      return snapshots.report().summary;
    };
    expect([reported(), reported(), reported(), reported(), reported()]).toEqual([
      '1 ***',
      '1 ***',
      '1 ***',
      '2 ***',
      '2 ***',
    ]);
    expect(snapshots.overview()).toMatchObject({ ageSeconds: 7, report: { summary: 'held: token ***' } });
  });
});
