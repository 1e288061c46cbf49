/**
 * A simulated workspace with a fleet that is generated from its seed: hubs with add-ons, with different report
 * behaviour, of any size.
 */
import { DAY_MS, type EpochMs, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import { sensorsOf } from '../../src/sim/devices.ts';
import { chance, mix, mixText, pick, type Seed, seedOf, unit, whole } from '../../src/sim/random.ts';
import type { Change, Lifecycle, LocationSpec, MsRange } from '../../src/sim/spec.ts';
import type { World } from '../../src/sim/world.ts';
import { createWorld, type DeviceSpec, type WorldOptions } from './trait-world.ts';

/** The description of a fleet. Shares are parts of the devices, 0 to 1. */
interface FleetOptions {
  /** Number of devices, hubs included; 0. */
  readonly devices?: number;
  /** Add-ons for each hub; 4. */
  readonly addonsPerHub?: number;
  /** Report intervals, given out by the seed; 1, 5 and 15 minutes. */
  readonly intervalsMs?: readonly number[];
  /** Spread of the report times, as a part of the interval; 0.2. */
  readonly jitter?: number;
  /** Fewest and most sensors of a device; 2 to 5. */
  readonly sensors?: readonly [number, number];
  /** Devices that are silent for hours to days at a time; 0. */
  readonly silentShare?: number;
  /** Devices that are renamed, or move to another hub, or get new firmware; 0. */
  readonly changingShare?: number;
  /** Devices that appear, retire, pause or vanish within the history; 0. */
  readonly comingShare?: number;
}

interface FleetContext {
  readonly seed: Seed;
  readonly startMs: EpochMs;
  readonly originMs: EpochMs;
}

const SITES = ['Cellar', 'North wing', 'South wing', 'Dock', 'Kitchen', 'Laboratory', 'Greenhouse', 'Plant room'];
const THINGS = ['shelf', 'freezer', 'door', 'window', 'ceiling', 'rack', 'tank', 'vent'];

/** Makes a simulated workspace with a fleet by its seed, beside the devices by description. */
export function createSeededWorld({
  fleet,
  ...options
}: WorldOptions & { readonly fleet: FleetOptions; readonly historyMs: number }): World {
  const originMs = Math.floor(options.originMs);
  const startMs = originMs - Math.floor(options.historyMs);
  const seed = mixText(seedOf(options.seed), 'fleet');
  const devices = [...describeFleet(fleet, { seed, startMs, originMs }), ...(options.devices ?? [])];
  return createWorld({ ...options, devices });
}

function describeFleet(options: FleetOptions, context: FleetContext): DeviceSpec[] {
  const { devices = 0, addonsPerHub = 4 } = options;
  const ids = Array.from({ length: devices }, (_, at) => idOf(context.seed, at));
  const isHub = (at: number): boolean => at % (addonsPerHub + 1) === 0;
  const hubIds = ids.filter((_, at) => isHub(at));
  return ids.map((deviceId, at) => {
    const hubId = isHub(at) ? null : (ids[at - (at % (addonsPerHub + 1))] ?? null);
    return describe({ deviceId, at, hubId, hubIds }, options, context);
  });
}

/** Ids in no order of anything, unique by their tail. */
function idOf(seed: Seed, at: number): string {
  const head = (mix(seed, at) >>> 0).toString(16).padStart(8, '0');
  return `dev-${head}-${at.toString(36).padStart(3, '0')}`;
}

interface Place {
  readonly deviceId: string;
  readonly at: number;
  readonly hubId: string | null;
  readonly hubIds: readonly string[];
}

function describe({ deviceId, at, hubId, hubIds }: Place, options: FleetOptions, context: FleetContext): DeviceSpec {
  const seed = mixText(context.seed, deviceId);
  const [fewest, most] = options.sensors ?? [2, 5];
  const name = hubId === null ? `${pick(mix(seed, 1), SITES)} ${at + 1}` : `${pick(mix(seed, 1), THINGS)} ${at + 1}`;
  return {
    deviceId,
    name,
    modelId: hubId === null ? 'hub-2' : pick(mix(seed, 2), ['sense-1', 'sense-2', 'probe-4']),
    firmwareVersion: `2.${whole(mix(seed, 3), 0, 9)}.${whole(mix(seed, 4), 0, 20)}`,
    parentDeviceId: hubId,
    intervalMs: pick(mix(seed, 5), options.intervalsMs ?? [MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS]),
    jitter: options.jitter ?? 0.2,
    sensors: sensorsOf(whole(mix(seed, 6), fewest, most)),
    location: chance(mix(seed, 7), 0.7) ? locationOf(mix(seed, 8), context) : null,
    tags: ['cold-chain', 'critical', 'rented'].filter((_, which) => chance(mix(seed, 40 + which), 0.3)),
    silences: chance(mix(seed, 9), options.silentShare ?? 0) ? silencesOf(mix(seed, 10), context) : [],
    ...(chance(mix(seed, 11), options.changingShare ?? 0)
      ? changesOf({ name, hubIds, hubId }, mix(seed, 12), context)
      : {}),
    ...(chance(mix(seed, 13), options.comingShare ?? 0) ? comingOf(mix(seed, 14), context) : {}),
  };
}

function locationOf(seed: Seed, { startMs }: FleetContext): LocationSpec {
  return {
    latitude: Math.round((47 + unit(mix(seed, 1)) * 6) * 1e5) / 1e5,
    longitude: Math.round((6 + unit(mix(seed, 2)) * 8) * 1e5) / 1e5,
    updatedAtMs: startMs - whole(mix(seed, 3), 1, 300) * DAY_MS,
  };
}

/** Some moment of the history, or of as long a time after it. */
function someTime(seed: Seed, { startMs, originMs }: FleetContext): EpochMs {
  return Math.floor(startMs + unit(seed) * 2 * (originMs - startMs));
}

function silencesOf(seed: Seed, context: FleetContext): MsRange[] {
  return Array.from({ length: whole(seed, 2, 6) }, (_, at) => {
    const fromMs = someTime(mix(seed, at + 1), context);
    return { fromMs, toMs: fromMs + whole(mix(seed, at + 101), 1, 60) * HOUR_MS };
  });
}

interface Changing {
  readonly name: string;
  readonly hubId: string | null;
  readonly hubIds: readonly string[];
}

function changesOf({ name, hubId, hubIds }: Changing, seed: Seed, context: FleetContext): Partial<DeviceSpec> {
  const atMs = someTime(mix(seed, 1), context);
  switch (whole(seed, 0, 2)) {
    case 0:
      return { renames: [{ atMs, value: `${name} (new)` }] };
    case 1:
      return { firmwareChanges: [{ atMs, value: '3.0.0' }] };
    default:
      return hubId === null ? {} : { moves: [{ atMs, value: pick(mix(seed, 2), hubIds) }] };
  }
}

function comingOf(seed: Seed, context: FleetContext): Partial<DeviceSpec> {
  const atMs = someTime(mix(seed, 1), context);
  const lifecycle = (value: Lifecycle): Change<Lifecycle>[] => [{ atMs, value }];
  switch (whole(seed, 0, 3)) {
    case 0:
      return { appearsAtMs: atMs };
    case 1:
      return { lifecycle: lifecycle('retired') };
    case 2:
      return { lifecycle: [...lifecycle('paused'), { atMs: atMs + 2 * DAY_MS, value: 'active' }] };
    default:
      return { vanishesAtMs: atMs, ...(chance(mix(seed, 2), 0.5) ? { returnsAtMs: atMs + DAY_MS } : {}) };
  }
}
