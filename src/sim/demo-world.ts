/**
 * Describes the workspace that `--demo` serves: a food company with four sites and half a year of history. In its first
 * minutes devices appear, change and disappear.
 */
import { DAY_MS, type EpochMs, formatMs, HOUR_MS, MINUTE_MS } from '../core/time.ts';
import { CATALOGUE, sensor } from './devices.ts';
import { mixText, type Seed, seedOf, unit, whole } from './random.ts';
import type { DeviceSpec, SensorSpec } from './spec.ts';
import { createWorld, type World } from './world.ts';

/** The seed, and when the history begins and ends. */
interface Context {
  readonly seed: Seed;
  readonly startMs: EpochMs;
  readonly originMs: EpochMs;
}

interface Site {
  readonly id: string;
  readonly name: string;
  readonly latitude: number;
  readonly longitude: number;
  readonly rooms: readonly (readonly [name: string, kind: RoomKind])[];
}

type RoomKind = 'cold' | 'frozen' | 'room' | 'outside' | 'door' | 'machine';

const SITES: readonly Site[] = [
  {
    id: 'ham',
    name: 'Hamburg warehouse',
    latitude: 53.54127,
    longitude: 9.98391,
    rooms: [
      ['Cold room 1', 'cold'],
      ['Cold room 2', 'cold'],
      ['Freezer A', 'frozen'],
      ['Freezer B', 'frozen'],
      ['Loading dock', 'outside'],
      ['Dock door 3', 'door'],
      ['Packing hall', 'room'],
      ['Compressor', 'machine'],
    ],
  },
  {
    id: 'ber',
    name: 'Berlin kitchen',
    latitude: 52.49732,
    longitude: 13.42986,
    rooms: [
      ['Walk-in fridge', 'cold'],
      ['Pastry fridge', 'cold'],
      ['Blast chiller', 'frozen'],
      ['Kitchen', 'room'],
      ['Dining room', 'room'],
      ['Back door', 'door'],
    ],
  },
  {
    id: 'muc',
    name: 'Munich laboratory',
    latitude: 48.14953,
    longitude: 11.56712,
    rooms: [
      ['Sample fridge', 'cold'],
      ['Ultra-low freezer', 'frozen'],
      ['Clean room', 'room'],
      ['Incubator room', 'room'],
      ['Air handling', 'machine'],
    ],
  },
  {
    id: 'bre',
    name: 'Bremen greenhouse',
    latitude: 53.08742,
    longitude: 8.79915,
    rooms: [
      ['Seedlings', 'room'],
      ['Tomatoes', 'room'],
      ['Weather mast', 'outside'],
      ['Irrigation pump', 'machine'],
      ['Cold store', 'cold'],
    ],
  },
];

const [TEMPERATURE, HUMIDITY, BATTERY, RSSI, CO2, PRESSURE, LIGHT, , , DOOR, FLOW, POWER] = CATALOGUE;

const SENSORS: Record<RoomKind, readonly (SensorSpec | undefined)[]> = {
  cold: [sensor('temperature', { base: 4, swing: 0.8, noise: 0.5, decimals: 2, min: -5, max: 15 }), HUMIDITY, BATTERY],
  frozen: [sensor('temperature', { base: -21, swing: 1.2, noise: 0.8, decimals: 2, min: -90, max: 0 }), BATTERY, RSSI],
  room: [TEMPERATURE, HUMIDITY, CO2, BATTERY],
  outside: [sensor('temperature', { base: 11, swing: 6, noise: 0.6, decimals: 1, min: -25, max: 40 }), PRESSURE, LIGHT],
  door: [DOOR, BATTERY, RSSI],
  machine: [POWER, FLOW, sensor('vibration', { base: 2.1, swing: 0.6, noise: 0.4, decimals: 3, min: 0, max: 50 })],
};

const INTERVALS_MS: Record<RoomKind, number> = {
  cold: 5 * MINUTE_MS,
  frozen: 5 * MINUTE_MS,
  room: 10 * MINUTE_MS,
  outside: 15 * MINUTE_MS,
  door: 2 * MINUTE_MS,
  machine: MINUTE_MS,
};

interface DemoOptions {
  readonly seed?: number | string;
  /** How far back readings go; 180 days by default. */
  readonly historyMs?: number;
}

/**
 * Creates the world of the demo. Its readings depend on the moment at which it begins, so that moment is part of the
 * workspace id: worlds that begin at different moments never share a series in a database.
 *
 * @param originMs the moment at which the demo begins; readings continue from there with the clock.
 */
export function createDemoWorld(
  originMs: EpochMs,
  { seed = 'demo', historyMs = 180 * DAY_MS }: DemoOptions = {},
): World {
  const context = { seed: seedOf(seed), originMs, startMs: originMs - historyMs };
  return createWorld({
    seed,
    originMs,
    historyMs,
    workspaceId: `ws-demo-${formatCompact(originMs)}`,
    name: 'Nordlicht Foods',
    devices: [
      ...SITES.flatMap((site) => createSiteDevices(site, context)),
      ...arrivals(context),
      ...silentOnes(context),
    ],
    alerts: { everyMs: 4 * HOUR_MS, isRare: true },
    precision: 'ms',
  });
}

/** The UTC time in digits: `20260101-000000`. */
function formatCompact(ms: EpochMs): string {
  return formatMs(ms).slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-');
}

function createSiteDevices(site: Site, context: Context): DeviceSpec[] {
  const hub: DeviceSpec = {
    deviceId: `hub-${site.id}-1`,
    name: site.name,
    modelId: 'gateway-lte-2',
    firmwareVersion: '4.2.1',
    firmwareChanges: [{ atMs: context.originMs - 20 * DAY_MS, value: '4.3.0' }],
    intervalMs: 5 * MINUTE_MS,
    jitter: 0.05,
    sensors: listSensors([RSSI, POWER]),
    location: { latitude: site.latitude, longitude: site.longitude, updatedAtMs: context.startMs - 12 * DAY_MS },
    tags: ['gateway', site.id],
  };
  return [hub, ...site.rooms.map((_, at) => createAddon(site, at, context))];
}

function createAddon(site: Site, at: number, context: Context): DeviceSpec {
  const [name, kind] = site.rooms[at] ?? ['Spare', 'room'];
  const deviceId = `add-${site.id}-${String(at + 1).padStart(2, '0')}`;
  const seed = mixText(context.seed, deviceId);
  return {
    deviceId,
    name,
    modelId: `sense-${kind}`,
    firmwareVersion: `1.${whole(seed, 4, 8)}.0`,
    parentDeviceId: `hub-${site.id}-1`,
    intervalMs: INTERVALS_MS[kind],
    jitter: 0.1,
    sensors: listSensors(SENSORS[kind]),
    location: { latitude: site.latitude, longitude: site.longitude, updatedAtMs: context.startMs },
    tags: kind === 'cold' || kind === 'frozen' ? ['cold-chain', site.id] : [site.id],
    ...deviceStory(deviceId, name, context),
    ...(unit(mixText(seed, 'outage')) < 0.3 ? { silences: outages(seed, context) } : {}),
  };
}

/** Events of single devices, most of them in the first minutes, when somebody watches. */
function deviceStory(deviceId: string, name: string, { originMs }: Context): Partial<DeviceSpec> {
  switch (deviceId) {
    case 'add-ham-02':
      return { renames: [{ atMs: originMs + 2 * MINUTE_MS, value: `${name} (dairy)` }] };
    case 'add-ber-05':
      return { lifecycle: [{ atMs: originMs + 4 * MINUTE_MS, value: 'retired' }] };
    case 'add-bre-02':
      return { moves: [{ atMs: originMs + 6 * MINUTE_MS, value: 'hub-muc-1' }] };
    case 'add-muc-05':
      return { lifecycle: [{ atMs: originMs - 9 * DAY_MS, value: 'paused' }] };
    default:
      return {};
  }
}

function outages(seed: number, { startMs, originMs }: Context): DeviceSpec['silences'] & object {
  return Array.from({ length: whole(seed, 1, 4) }, (_, at) => {
    const own = mixText(seed, `outage ${at}`);
    const fromMs = Math.floor(startMs + unit(own) * (originMs - startMs));
    return { fromMs, toMs: fromMs + whole(mixText(own, 'length'), 2, 40) * HOUR_MS };
  });
}

/** A trial device that reports fastest, and a device that joins. */
function arrivals({ originMs }: Context): DeviceSpec[] {
  const place = { latitude: 53.54127, longitude: 9.98391, updatedAtMs: originMs - 14 * DAY_MS };
  return [
    {
      deviceId: 'add-ham-20',
      name: 'Conveyor drive',
      modelId: 'sense-fast',
      parentDeviceId: 'hub-ham-1',
      intervalMs: 20_000,
      jitter: 0.02,
      sensors: listSensors([POWER, TEMPERATURE]),
      appearsAtMs: originMs - 25 * DAY_MS,
      location: place,
      tags: ['ham', 'trial'],
    },
    {
      deviceId: 'add-ham-21',
      name: 'Cold room 4',
      modelId: 'sense-cold',
      parentDeviceId: 'hub-ham-1',
      intervalMs: MINUTE_MS,
      jitter: 0.1,
      sensors: listSensors(SENSORS.cold),
      appearsAtMs: originMs + 3 * MINUTE_MS,
      location: place,
      tags: ['cold-chain', 'ham'],
    },
  ];
}

/** A device that is silent for good, and one that will report again. */
function silentOnes({ originMs }: Context): DeviceSpec[] {
  return [
    {
      deviceId: 'add-ber-20',
      name: 'Wine cellar',
      modelId: 'sense-room',
      parentDeviceId: 'hub-ber-1',
      intervalMs: 15 * MINUTE_MS,
      jitter: 0.1,
      sensors: listSensors([TEMPERATURE, HUMIDITY, BATTERY]),
      silences: [{ fromMs: originMs - 11 * DAY_MS, toMs: Infinity }],
      tags: ['ber'],
    },
    {
      deviceId: 'add-bre-20',
      name: 'Frost alarm',
      modelId: 'sense-outside',
      parentDeviceId: 'hub-bre-1',
      intervalMs: 5 * MINUTE_MS,
      jitter: 0.1,
      sensors: listSensors(SENSORS.outside),
      silences: [{ fromMs: originMs - 3 * HOUR_MS, toMs: originMs + 8 * MINUTE_MS }],
      tags: ['bre'],
    },
  ];
}

function listSensors(sensors: readonly (SensorSpec | undefined)[]): SensorSpec[] {
  return sensors.filter((spec) => spec !== undefined);
}
