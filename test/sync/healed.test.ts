/**
 * The daemon left alone after a fault: half an hour later every gap is closed and nothing is in quarantine, and each gap
 * that was named meanwhile is of the device that the fault was of.
 */
import { describe, expect, test } from 'vitest';
import { msToNs } from '../../src/core/time.ts';
import { always, anyOf, atRate, type Fault, type FaultPlan, onPath } from '../../src/sim/faults.ts';
import { falselyEmpty, twoExchanged, upsideDown } from '../../src/sim/quiet-faults.ts';
import { DEVICES, liveAsDaemon, told, worldOf } from '../support/daemon-rig.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { NOW_MS, openBench, openRig } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const bench = sharedBench(openBench);

const often = (plan: FaultPlan): FaultPlan => onPath(/\/often\/telemetry/, plan);
const halfOf = (fault: Fault): FaultPlan => often(atRate(0.5, [fault], 3));

const ofAnother: Fault = { kind: 'mangle', change: (page) => ({ ...page, deviceId: 'another' }) };

/** What is wrong with one device for two hours. */
const FAULTS: readonly [string, FaultPlan][] = [
  ['every second answer is empty', halfOf(falselyEmpty)],
  ['two readings are exchanged', halfOf(twoExchanged)],
  ['pages are of another device', often(always(ofAnother))],
  ['pages are cut off', often(always({ kind: 'truncated' }))],
  ['a device is answered with 500', often(always({ kind: 'server-error' }))],
  ['several at once', anyOf(halfOf(falselyEmpty), often(atRate(0.3, [upsideDown, { kind: 'html' }], 4)))],
];

const SELDOM = [{ deviceId: 'often', intervalMs: 2 * MINUTE }];

describe.runIf(influxdAvailable())('half an hour after the last fault nothing is open', () => {
  test.each(FAULTS)('%s', { timeout: 60_000 }, async (_, plan) => {
    using rig = await openRig(bench, { world: worldOf(DEVICES), historyMs: 2 * DAY });
    await liveAsDaemon(rig, { forMs: HOUR });
    const life = await liveAsDaemon(rig, {
      forMs: 2.5 * HOUR,
      meanwhile: async () => {
        rig.simulator.faults = plan;
        await rig.clock.sleep(2 * HOUR);
        rig.simulator.faults = null;
      },
    });
    expect(life.error).toBeNull();
    expect(told(life, 'gap-named').filter(({ deviceId }) => deviceId !== 'often')).toEqual([]);
    const { devices, destinations } = life.lastReport;
    // What is younger may be on its way.
    const endMs = rig.clock.nowMs() - 5 * MINUTE;
    expect(devices.flatMap(({ gaps }) => gaps).filter(({ from }) => Date.parse(from) < endMs)).toEqual([]);
    expect(destinations).toMatchObject([{ quarantined: 0 }]);
    const { missing, invented, expected } = await rig.verdict(endMs, { fromNs: msToNs(NOW_MS - 2 * DAY + 4 * HOUR) });
    expect([missing.slice(0, 5), invented.slice(0, 5)]).toEqual([[], []]);
    expect(expected).toBeGreaterThan(1000);
  });

  test('though every answer is empty for hours, all is there when the day is read again', {
    timeout: 60_000,
  }, async () => {
    using rig = await openRig(bench, { world: worldOf(SELDOM), historyMs: 2 * DAY });
    await liveAsDaemon(rig, { forMs: HOUR });
    const life = await liveAsDaemon(rig, {
      forMs: 18 * HOUR,
      meanwhile: async () => {
        rig.simulator.faults = often(always(falselyEmpty));
        await rig.clock.sleep(2 * HOUR);
        rig.simulator.faults = null;
      },
    });
    for (const { deviceId } of told(life, 'restatement')) expect(deviceId).toBe('often');
    const endMs = rig.clock.nowMs() - 5 * MINUTE;
    const { missing, invented } = await rig.verdict(endMs, { fromNs: msToNs(NOW_MS - 12 * HOUR) });
    expect([missing.slice(0, 5), invented.slice(0, 5)]).toEqual([[], []]);
  });
});
