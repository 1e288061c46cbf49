/**
 * Generates a simulated workspace from a seed: pure, and the same in every process. Only the descriptions of the
 * devices are stored; a year of a thousand devices costs no memory.
 *
 * The world contains everything that ever happens; the simulator decides what the API serves at a moment.
 */
import { DAY_MS, type EpochMs, type EpochNs, HOUR_MS } from '../core/time.ts';
import { type AlertDevice, type AlertPosition, listedAlerts, seededAlerts } from './alerts.ts';
import { createDevice, type ReadingRange, type WorldDevice } from './devices.ts';
import type { Precision } from './instants.ts';
import { mix, mixText, type Seed, seedOf, unit } from './random.ts';
import type { AlertSpec, DeviceSpec, SimAlert, SimDevice, SimReading } from './spec.ts';

/** The input of {@link createWorld}. */
export interface WorldOptions {
  readonly seed: number | string;
  /** The moment that counts as now when the world is begun; time continues from there forever. */
  readonly originMs: EpochMs;
  /** How far back readings reach; 30 days. */
  readonly historyMs?: number;
  readonly workspaceId?: string;
  readonly name?: string;
  /** Devices by description; none by default. */
  readonly devices?: readonly DeviceSpec[];
  /** Alerts by the seed, one about every so often (6 hours), or exactly these. */
  readonly alerts?: { readonly everyMs: number; readonly isRare?: boolean } | readonly AlertSpec[];
  /** The digits of all times that are served; `ms`. */
  readonly precision?: Precision;
}

/** Everything that the API could serve, from a seed. */
export interface World {
  readonly seed: Seed;
  readonly workspaceId: string;
  readonly name: string;
  readonly precision: Precision;
  readonly originMs: EpochMs;
  /** When the world begins. */
  readonly startMs: EpochMs;
  /** Whether the workspace has this device at that moment. */
  has(deviceId: string, atMs: EpochMs): boolean;
  /** The ids of the devices that the workspace has at that moment, ascending. */
  deviceIds(atMs: EpochMs): string[];
  /** These devices as they are at that moment. */
  devices(atMs: EpochMs): SimDevice[];
  /** One device at a moment; `null` where the workspace has none such then. */
  device(deviceId: string, atMs: EpochMs): SimDevice | null;
  /** All alerts at a moment, newest first. */
  alerts(atMs: EpochMs): SimAlert[];
  /** The alerts behind one, newest first, computed as they are taken. */
  alertsBehind(atMs: EpochMs, behind: AlertPosition | null): Iterable<SimAlert>;
  /** How many alerts are not resolved at a moment. */
  unresolvedAlerts(atMs: EpochMs): number;
  /** Every reading that the device ever makes with `fromNs <= time < toNs`, oldest first. */
  readings(deviceId: string, fromNs: EpochNs, toNs: EpochNs): Iterable<SimReading>;
  /** The same, newest first, from any point at the same cost. */
  readingsDescending(deviceId: string, range: ReadingRange): Iterable<SimReading>;
}

/**
 * Makes a world.
 *
 * @throws RangeError where two devices have one id.
 */
export function createWorld(options: WorldOptions): World {
  const { historyMs = 30 * DAY_MS, precision = 'ms', alerts = { everyMs: 6 * HOUR_MS } } = options;
  const seed = seedOf(options.seed);
  const originMs = Math.floor(options.originMs);
  const startMs = originMs - Math.floor(historyMs);
  const devices = indexDevices(options.devices ?? [], (spec) =>
    createDevice(spec, { seed: mixText(seed, 'devices'), startMs, precision }),
  );
  const all = [...devices.values()];
  const alertList = isList(alerts)
    ? listedAlerts(alerts, precision)
    : seededAlerts({
        seed: mixText(seed, 'alerts'),
        startMs,
        everyMs: alerts.everyMs,
        isRare: alerts.isRare,
        precision,
        deviceAt: (chosen, atMs) => presentDevice(all, chosen, atMs),
      });
  const present = (atMs: EpochMs): WorldDevice[] => all.filter((device) => device.isPresent(atMs));
  return {
    seed,
    workspaceId: options.workspaceId ?? 'ws-simulated',
    name: options.name ?? 'Simulated workspace',
    precision,
    originMs,
    startMs,
    has: (deviceId, atMs) => devices.get(deviceId)?.isPresent(atMs) ?? false,
    deviceIds: (atMs) => present(atMs).map(({ spec }) => spec.deviceId),
    devices: (atMs) => present(atMs).map((device) => device.snapshot(atMs)),
    device(deviceId, atMs) {
      const device = devices.get(deviceId);
      return device?.isPresent(atMs) ? device.snapshot(atMs) : null;
    },
    alerts: (atMs) => [...alertList.behind(atMs, null)],
    alertsBehind: alertList.behind,
    unresolvedAlerts: alertList.unresolved,
    readings: (deviceId, fromNs, toNs) => devices.get(deviceId)?.series.ascending(fromNs, toNs) ?? [],
    readingsDescending: (deviceId, range) => devices.get(deviceId)?.series.descending(range) ?? [],
  };
}

function isList(alerts: NonNullable<WorldOptions['alerts']>): alerts is readonly AlertSpec[] {
  return Array.isArray(alerts);
}

function indexDevices(
  specs: readonly DeviceSpec[],
  create: (spec: DeviceSpec) => WorldDevice,
): Map<string, WorldDevice> {
  const sorted = [...specs].sort((a, b) => (a.deviceId < b.deviceId ? -1 : 1));
  const devices = new Map(sorted.map((spec) => [spec.deviceId, create(spec)]));
  if (devices.size !== specs.length) throw new RangeError('two devices of the world have the same device_id');
  return devices;
}

/** A device that is there at that moment; looked for a few times, so that no list has to be made. */
function presentDevice(devices: readonly WorldDevice[], seed: Seed, atMs: EpochMs): AlertDevice | null {
  for (let attempt = 0; attempt < 16; attempt += 1) {
    const device = devices[Math.floor(unit(mix(seed, attempt)) * devices.length)];
    if (device?.isPresent(atMs)) return { ...device, deviceId: device.spec.deviceId };
  }
  return null;
}
