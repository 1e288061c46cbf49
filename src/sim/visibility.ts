/**
 * When the API begins to serve a reading: when it was received, or later, as the settings ask.
 */
import type { EpochMs } from '../core/time.ts';
import { chance, mix, mixText, unit } from './random.ts';
import type { SimSettings } from './settings.ts';
import type { SimReading } from './spec.ts';
import type { World } from './world.ts';

/** The server's time from which on the reading is served; always the same for the same reading and settings. */
export function visibleFromMs(
  reading: SimReading,
  deviceId: string,
  { world, settings }: { readonly world: World; readonly settings: SimSettings },
): EpochMs {
  const { share, maxMs, devices } = settings.lateness;
  if (share === 0 || maxMs === 0 || (devices !== null && !devices.includes(deviceId))) return reading.visibleAtMs;
  const own = mix(mixText(world.seed, `late ${deviceId}`), reading.position);
  return chance(own, share) ? reading.visibleAtMs + Math.ceil(unit(mix(own, 1)) * maxMs) : reading.visibleAtMs;
}
