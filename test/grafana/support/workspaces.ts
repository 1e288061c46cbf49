/**
 * Databases as the real daemon fills them, for the queries of the dashboards: simulated workspaces, in virtual time.
 */
import type { SyncOptions } from '../../../src/app/open-sync.ts';
import { HOUR_MS, MINUTE_MS } from '../../../src/core/time.ts';
import { createDemoWorld } from '../../../src/sim/demo-world.ts';
import { sensorsOf } from '../../../src/sim/devices.ts';
import type { ReadingSpec } from '../../../src/sim/spec.ts';
import type { World } from '../../../src/sim/world.ts';
import type { Bench } from '../../support/bench.ts';
import { liveAsDaemon } from '../../support/daemon-rig.ts';
import type { Influxd } from '../../support/influxd.ts';
import { NOW_MS, openRig, type Rig } from '../../support/rig.ts';
import { createWorld, type DeviceSpec } from '../../support/trait-world.ts';

/** A database, and what was in the workspace that it was filled from. */
export interface Filled extends Disposable {
  readonly influxd: Influxd;
  readonly database: string;
  readonly simulator: Rig['simulator'];
  /** Where the range of a viewer who looks now ends. */
  readonly nowMs: number;
}

const PLAN = { planId: 'demo', name: 'Demo', requestsPerMinute: 900, requestsPerDay: 200_000, historyMaxDays: 31 };

interface Filling {
  readonly forMs?: number;
  readonly historyMs?: number;
  /** Where it is written to; by default the database of the rig. */
  readonly destinationsOf?: (rig: Rig) => SyncOptions['destinations'];
}

/** Lets the daemon live in a workspace for a while. */
export async function fill(
  bench: Bench,
  world: (nowMs: number) => World,
  { forMs = 70 * MINUTE_MS, historyMs = 26 * HOUR_MS, destinationsOf }: Filling = {},
): Promise<Filled> {
  const rig = await openRig(bench, { world, historyMs, settings: { plan: PLAN } });
  const destinations = destinationsOf?.(rig);
  const life = await liveAsDaemon(rig, { forMs, ...(destinations === undefined ? {} : { changes: { destinations } }) });
  if (life.error !== null) throw life.error;
  return {
    influxd: bench.influxd,
    database: rig.database,
    simulator: rig.simulator,
    nowMs: rig.clock.nowMs(),
    [Symbol.dispose]: () => rig[Symbol.dispose](),
  };
}

/** The workspace of the demo. */
export const demo = (originMs: number): World => createDemoWorld(originMs);

/**
 * Two sites, of which one falls silent an hour after the beginning: its hub, and all below it.
 */
export const silentHub = (originMs: number): World => {
  const sites = {
    'Berlin kitchen': ['Walk-in fridge', 'Pastry fridge', 'Kitchen'],
    'Hamburg warehouse': ['Cold room 1', 'Cold room 2', 'Freezer A', 'Packing hall'],
  };
  const devices = Object.entries(sites).flatMap(([hub, rooms], at) => {
    const silences = at === 0 ? [] : [{ fromMs: originMs + HOUR_MS, toMs: Infinity }];
    const id = (n: number): string => `${hub.slice(0, 3).toLowerCase()}-${n}`;
    const common = { intervalMs: 5 * MINUTE_MS, silences, firmwareVersion: '4.3.0' };
    return [
      { ...common, deviceId: id(0), name: hub, modelId: 'gateway-lte-2', parentDeviceId: null },
      ...rooms.map((name, n) => ({
        ...common,
        deviceId: id(n + 1),
        name,
        modelId: 'sense-cold',
        parentDeviceId: id(0),
      })),
    ];
  });
  return createWorld({ seed: 9, originMs, historyMs: 40 * 24 * HOUR_MS, name: 'Nordlicht Foods', devices });
};

const NAMES = [
  `O'Brien's "cold" room`,
  'slash / back \\ slash',
  '(brackets) [of] {all} kinds',
  '^start.*end$ | or + what?',
  `$timeFilter $__interval $\{device:raw}`,
  'comma, equals = and space ',
  'Kühlraum №7 🧊 (ганза)',
  '$tag_device_id [[tag_sensor]]',
  '; DROP MEASUREMENT telemetry --',
  '<b>bold</b>',
];

/** Readings of a device that reports no numbers. */
const SWITCHES: readonly ReadingSpec[] = Array.from({ length: 60 }, (_, index) => ({
  recordedAtNs: BigInt(NOW_MS - index * 10 * MINUTE_MS) * 1_000_000n,
  values: [
    ['relay', String(index % 7 === 0)],
    ['mode', index % 9 === 0 ? '"defrost; \\"now\\""' : '"cool"'],
  ],
}));

/** Devices whose names and ids break queries without escaping; the first two share a name. */
export const HOSTILE: readonly DeviceSpec[] = NAMES.map((name, index) => ({
  deviceId: `id-${index}-${name.slice(0, 9)}`,
  name: index === 1 ? (NAMES[0] ?? '') : name,
  modelId: `model/${name.slice(0, 5)}`,
  parentDeviceId: index === 0 ? null : `id-0-${(NAMES[0] ?? '').slice(0, 9)}`,
  intervalMs: 5 * MINUTE_MS,
  location: { latitude: -33.9, longitude: 151.2, updatedAtMs: NOW_MS - 24 * HOUR_MS },
  ...(index === 9 ? { readings: SWITCHES } : { traits: ['hostile', 'ties'] }),
}));

export const hostile = (originMs: number): World =>
  createWorld({
    seed: 5,
    originMs,
    historyMs: 30 * HOUR_MS,
    workspaceId: `w's "own" /id/`,
    name: 'Hostile $workspace',
    devices: HOSTILE,
    alerts: { everyMs: 3 * HOUR_MS },
  });

/** One hub that has hardly begun. */
export const single = (originMs: number): World =>
  createWorld({
    seed: 6,
    originMs,
    historyMs: HOUR_MS,
    devices: [{ deviceId: 'only', parentDeviceId: null, intervalMs: MINUTE_MS, sensors: sensorsOf(1) }],
  });
