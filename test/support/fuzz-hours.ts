/**
 * The `coverage_hour` points of a fuzz case against the seed: every whole hour that was promised has exactly one point,
 * with the number of readings that the seed has there.
 */

import { HOUR_NS } from '../../src/core/time.ts';
import type { Simulator } from '../../src/sim/simulator.ts';
import type { DeviceSpec } from '../../src/sim/spec.ts';
import type { Row } from './influxd.ts';

export interface HoursAbout {
  readonly simulator: Simulator;
  readonly devices: readonly DeviceSpec[];
  /** When the devices were listed, by the server's clock: what came later is not known. */
  readonly listedAtMs: number;
  /** What the run promised to have. */
  readonly span: { readonly fromNs: bigint; readonly toNs: bigint };
}

/** @returns what is wrong with the hours; the first few of it. */
export function examineHours(about: HoursAbout, rows: readonly Row[]): string[] {
  return about.devices.flatMap((device) => examineDevice(about, device, rows)).slice(0, 5);
}

function examineDevice(
  { simulator, span, listedAtMs }: HoursAbout,
  device: DeviceSpec,
  rows: readonly Row[],
): string[] {
  const { deviceId } = device;
  const wrong: string[] = [];
  const written = new Map<bigint, number>();
  for (const { device_id, time, readings } of rows) {
    if (device_id !== deviceId) continue;
    const at = BigInt(time ?? 0);
    if (written.has(at)) wrong.push(`two hours ${at} of ${deviceId}`);
    written.set(at, Number(readings));
  }
  // Of a device that was away no hour is promised.
  if (device.vanishesAtMs !== undefined || !simulator.world.has(deviceId, listedAtMs)) return wrong;
  const first = (span.fromNs + HOUR_NS - 1n) / HOUR_NS;
  for (let hour = first * HOUR_NS; hour + HOUR_NS <= span.toNs; hour += HOUR_NS) {
    const seed = [...simulator.world.readings(deviceId, hour, hour + HOUR_NS)].length;
    const count = written.get(hour);
    if (count === undefined) wrong.push(`hour ${hour} of ${deviceId} has no point`);
    else if (isCountable(simulator, device) && count !== seed)
      wrong.push(`hour ${hour} of ${deviceId}: ${count} for ${seed}`);
  }
  return wrong;
}

/** Whether every reading is one by itself: ties may be counted in more than one way, and empty ones not at all. */
function isCountable({ world }: Simulator, { traits = [] }: DeviceSpec): boolean {
  return world.precision !== 's' && traits.every((trait) => trait === 'hostile');
}
