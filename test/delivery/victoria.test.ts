/**
 * The main promise with a real VictoriaMetrics: what was simulated is what it exports, numbers, to the millisecond,
 * also after everything was sent to it twice.
 */
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import type { SyncOptions } from '../../src/app/open-sync.ts';
import { type DestinationKind, destinationIdentity } from '../../src/core/lines/dialect.ts';
import type { Sink, UnknownServer } from '../../src/core/ports.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import { createUnknownServer } from '../../src/influx/probe.ts';
import { createInfluxSink } from '../../src/influx/sink.ts';
import type { World } from '../../src/sim/world.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { destinationOf, NOW_MS, openBench, openRig, type Rig } from '../support/rig.ts';
import { sharedBench, sharedVictoria } from '../support/shared-bench.ts';
import { createWorld, type DeviceSpec } from '../support/trait-world.ts';
import { FAULTS } from '../support/v2-proxy.ts';
import { judgeVictoria, victoriaAvailable } from '../support/victoria.ts';
import type { VirtualClock } from '../support/virtual-clock.ts';

const HISTORY_MS = 3 * HOUR_MS;

const bench = sharedBench(openBench);
const victoria = sharedVictoria();

function worldOf(precision: World['precision']): (nowMs: number) => World {
  const devices: DeviceSpec[] = [
    { deviceId: 'tied', intervalMs: MINUTE_MS, traits: ['ties'] },
    { deviceId: 'burst', intervalMs: 5 * MINUTE_MS, traits: ['burst'], burst: { every: 12, size: 230 } },
    { deviceId: 'od,d =d"e\\vice', intervalMs: MINUTE_MS, traits: ['hostile', 'oddValues', 'ties'] },
    { deviceId: 'fast', intervalMs: 10 * SECOND_MS, jitter: 0.9 },
  ];
  return (originMs) => createWorld({ seed: 33, originMs, historyMs: 6 * HOUR_MS, devices, precision });
}

type Destination = SyncOptions['destinations'][number];

/** The real way to the database; virtual time stands still while it is at work. */
function toVictoria(clock: VirtualClock, kind: DestinationKind | 'auto' = 'auto', name = 'influx'): Destination {
  const position = { url: victoria.url, org: '', bucket: '' };
  const options = { name, ...position, token: null, timeoutMs: 30_000 };
  const onClock = (sink: Sink): Sink => ({
    name: sink.name,
    write: (lines, signal) => clock.busy(sink.write(lines, signal)),
  });
  const unknown = createUnknownServer(options);
  const asked: UnknownServer = {
    request: (signal) => clock.busy(unknown.request(signal)),
    sinkFor: (found) => onClock(unknown.sinkFor(found)),
  };
  const sink = onClock(createInfluxSink(options, kind === 'auto' ? 'influxdb' : kind));
  return {
    sink,
    identity: destinationIdentity({ kind, ...position }),
    batchLines: 5000,
    kind: kind === 'auto' ? asked : kind,
  };
}

async function expectExact(rig: Rig, least: number): Promise<void> {
  const { missing, invented, expected } = await judgeVictoria(victoria, rig.simulator, {
    deviceIds: rig.simulator.world.deviceIds(rig.clock.nowMs()),
    fromMs: NOW_MS - HISTORY_MS + 5 * MINUTE_MS,
    toMs: NOW_MS - 3 * MINUTE_MS,
  });
  expect([missing.slice(0, 5), invented.slice(0, 5)], `${missing.length}, ${invented.length}`).toEqual([[], []]);
  expect(expected).toBeGreaterThan(least);
}

/** Sends everything once more, as a lost answer or an older copy of the state would. */
function resetPositions(rig: Rig): void {
  const db = new Database(join(rig.dataDir, 'tidemark.db'));
  db.prepare('DELETE FROM position').run();
  db.close();
}

describe.runIf(influxdAvailable() && victoriaAvailable())('a VictoriaMetrics that is filled', () => {
  test.each(['ms', 'us', 'ns'] as const)(
    'holds what was simulated in %s, also when all is sent twice',
    async (precision) => {
      using rig = await openRig(bench, { world: worldOf(precision), historyMs: HISTORY_MS });
      const destinations = [toVictoria(rig.clock)];
      const { summary, events } = await rig.once({ destinations });
      expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0, gaps: [] });
      expect(summary.destinations).toMatchObject([{ pending_points: 0, quarantined: 0 }]);
      expect(events.filter(({ type }) => type === 'destination-kind')).toEqual([
        { type: 'destination-kind', destination: 'influx', kind: 'victoriametrics' },
      ]);
      await expectExact(rig, 5000);

      resetPositions(rig);
      const again = await rig.once({ destinations: [toVictoria(rig.clock)] });
      expect(again.summary.exit_code).toBe(0);
      expect(again.summary.destinations[0]?.delivered_points).toBeGreaterThan(5000);
      await expectExact(rig, 5000);
    },
  );

  test('beside an InfluxDB that is down half of the time has the same, each in its own terms', async () => {
    using rig = await openRig(bench, { world: worldOf('ns'), historyMs: HISTORY_MS });
    const destinations = [
      destinationOf(bench, rig.database, rig.clock),
      toVictoria(rig.clock, 'victoriametrics', 'second'),
    ];
    bench.proxy.setFaults(({ nth }) => (nth % 2 === 0 ? FAULTS.cut : null));
    const { summary, events } = await rig.once({ destinations });
    bench.proxy.setFaults(null);
    expect(summary).toMatchObject({ exit_code: 0, destinations: [{ name: 'influx' }, { name: 'second' }] });
    const held = events.filter((event) => event.type === 'delivery-blocked').map(({ destination }) => destination);
    expect(new Set(held)).toEqual(new Set(['influx']));
    await expectExact(rig, 5000);
    const { missing, invented } = await rig.verdict(NOW_MS, {
      fromNs: BigInt(NOW_MS - HISTORY_MS + 5 * MINUTE_MS) * 1_000_000n,
    });
    expect([missing.slice(0, 3), invented.slice(0, 3)]).toEqual([[], []]);
  });
});
