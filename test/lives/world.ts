/**
 * The simulated workspace of a story, whose readings may arrive late. All readings are made once, so that
 * every look at them is a search in a list.
 */
import { type EpochNs, msToNs } from '../../src/core/time.ts';
import { formatInstant, instantToNs, nsToInstant, type Precision, truncate } from '../../src/sim/instants.ts';
import type { MsRange, SimDevice, SimReading } from '../../src/sim/spec.ts';
import type { World } from '../../src/sim/world.ts';
import { createWorld } from '../support/trait-world.ts';
import type { DeviceLife, Story } from './story.ts';

/** Readings handed in at once arrive in this distance, by the service's clock. */
const HAND_IN_MS = 20;

/** All readings of a device until the end of the story. */
interface Reported {
  /** By time. */
  readonly readings: readonly SimReading[];
  /** The latest moments of receipt, ascending, and the newest `recorded_at` known then. */
  readonly received: readonly { readonly atMs: number; readonly newest: string; readonly newestNs: EpochNs }[];
}

/** Makes the simulated workspace of a story. */
export function worldOf(story: Story): World {
  const { seed, startMs, world: options, devices } = story;
  const specs = devices.map(({ spec }) => spec);
  const base = createWorld({ seed, originMs: startMs, devices: specs, ...options });
  const offsetMs = story.api.time?.offsetMs ?? 0;
  const restamps = story.misfortunes.flatMap(({ fromMs, toMs, what }) =>
    what.kind === 'server clock and stamps'
      ? [{ fromMs: fromMs + offsetMs, toMs: toMs + offsetMs, byMs: what.byMs }]
      : [],
  );
  const reported = new Map(
    devices.map((device) => [device.spec.deviceId, tell(base, device, { untilMs: story.endMs, restamps })] as const),
  );
  const look = (device: SimDevice, atMs: number): SimDevice =>
    withLastSeen(device, reported.get(device.deviceId), atMs);
  return {
    ...base,
    devices: (atMs) => base.devices(atMs).map((device) => look(device, atMs)),
    device: (deviceId, atMs) => {
      const device = base.device(deviceId, atMs);
      return device === null ? null : look(device, atMs);
    },
    readings: (deviceId, fromNs, toNs) => {
      const { readings = [] } = reported.get(deviceId) ?? {};
      return readings.slice(firstAt(readings, fromNs), firstAt(readings, toNs));
    },
    *readingsDescending(deviceId, { fromNs, toNs, belowPosition = Number.POSITIVE_INFINITY }) {
      const { readings = [] } = reported.get(deviceId) ?? {};
      for (let index = Math.min(firstAt(readings, toNs), belowPosition) - 1; index >= 0; index -= 1) {
        const reading = readings[index];
        if (reading === undefined || reading.recordedAtNs < fromNs) return;
        yield reading;
      }
    },
  };
}

interface Telling {
  readonly untilMs: number;
  readonly restamps: readonly (MsRange & { readonly byMs: number })[];
}

function tell(base: World, device: DeviceLife, { untilMs, restamps }: Telling): Reported {
  const { deviceId } = device.spec;
  let handedIn = 0;
  let buffer: MsRange | null = null;
  const arrived = [...base.readings(deviceId, 0n, msToNs(untilMs))].flatMap((reading): SimReading[] => {
    const within = device.buffers.find(
      ({ fromMs, toMs }) => fromMs <= reading.visibleAtMs && reading.visibleAtMs < toMs,
    );
    const restamp = restamps.find(({ fromMs, toMs }) => fromMs <= reading.visibleAtMs && reading.visibleAtMs < toMs);
    if (within !== undefined) {
      handedIn = within === buffer ? handedIn + 1 : 0;
      buffer = within;
      const atMs = within.toMs + handedIn * HAND_IN_MS;
      if (device.stamps === 'device') return [{ ...reading, visibleAtMs: atMs }];
      // Nobody stamps what a device hands in that has left the workspace.
      return isAway(device, atMs) ? [] : [stampedAt({ ...reading, visibleAtMs: atMs }, atMs, base.precision)];
    }
    return [restamp === undefined ? reading : stampedAt(reading, reading.visibleAtMs + restamp.byMs, base.precision)];
  });
  const readings = arrived
    .toSorted((a, b) => (a.recordedAtNs < b.recordedAtNs ? -1 : Number(a.recordedAtNs > b.recordedAtNs)))
    .map((reading, position) => ({ ...reading, position }));
  const received: { atMs: number; newest: string; newestNs: EpochNs }[] = [];
  for (const { visibleAtMs, recordedAt, recordedAtNs } of arrived.toSorted((a, b) => a.visibleAtMs - b.visibleAtMs)) {
    const last = received.at(-1);
    const isNewer = last === undefined || recordedAtNs > last.newestNs;
    received.push({
      atMs: visibleAtMs,
      newest: isNewer ? recordedAt : last.newest,
      newestNs: isNewer ? recordedAtNs : last.newestNs,
    });
  }
  return { readings, received };
}

/** Whether the device has left the workspace at that moment, and is not back. */
function isAway({ spec: { vanishesAtMs, returnsAtMs = Infinity } }: DeviceLife, atMs: number): boolean {
  return vanishesAtMs !== undefined && vanishesAtMs <= atMs && atMs < returnsAtMs;
}

function stampedAt(reading: SimReading, atMs: number, precision: Precision): SimReading {
  const served = truncate(nsToInstant(msToNs(Math.floor(atMs))), precision);
  return { ...reading, recordedAtNs: instantToNs(served), recordedAt: formatInstant(served, precision) };
}

/** The device as it is listed: what it has handed in by then counts. */
function withLastSeen(device: SimDevice, reported: Reported | undefined, atMs: number): SimDevice {
  const last = reported?.received[lastBy(reported.received, atMs)];
  if (last === undefined) return { ...device, lastSeenAt: null };
  return { ...device, lastSeenAt: last.newest };
}

/** The index of the first reading that is not before that time. */
function firstAt(readings: readonly SimReading[], ns: EpochNs): number {
  return search(readings.length, (index) => (readings[index]?.recordedAtNs ?? 0n) >= ns);
}

/** The index of the last one received by then; -1 where there is none. */
function lastBy(received: Reported['received'], atMs: number): number {
  return search(received.length, (index) => (received[index]?.atMs ?? 0) > atMs) - 1;
}

/** The first of so many indices for which it holds, as it does for all behind it. */
function search(length: number, holds: (index: number) => boolean): number {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
