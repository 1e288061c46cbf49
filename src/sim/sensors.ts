/**
 * The values that simulated devices measure: a daily curve, a slow drift and noise, with the digits of a real sensor.
 */
import { DAY_MS, type EpochMs } from '../core/time.ts';
import { mix, mixText, type Seed, unit, whole } from './random.ts';
import type { SensorSpec, SimValue } from './spec.ts';

/** Sensible sensors; the first ones are the commonest. */
export const CATALOGUE: readonly SensorSpec[] = [
  sensor('temperature', { base: 19, swing: 4, noise: 0.4, decimals: 2, min: -40, max: 85 }),
  sensor('humidity', { base: 48, swing: 9, noise: 2, decimals: 1, min: 0, max: 100 }),
  sensor('battery_voltage', { base: 2.95, swing: 0.02, noise: 0.01, decimals: 3, min: 1.8, max: 3.6, every: 6 }),
  sensor('rssi', { base: -71, swing: 4, noise: 9, decimals: 0, min: -120, max: -20 }),
  sensor('co2', { base: 640, swing: 210, noise: 40, decimals: 0, min: 380, max: 5000 }),
  sensor('pressure', { base: 1013.2, swing: 3, noise: 0.3, decimals: 1, min: 870, max: 1085 }),
  sensor('illuminance', { base: 260, swing: 300, noise: 20, decimals: 0, min: 0, max: 100_000 }),
  sensor('pm2_5', { base: 8, swing: 4, noise: 2, decimals: 1, min: 0, max: 1000 }),
  sensor('noise_level', { base: 44, swing: 8, noise: 5, decimals: 1, min: 20, max: 130 }),
  sensor('door_open', { base: 0.1, swing: 0.3, noise: 0.9, decimals: 0, min: 0, max: 1 }),
  sensor('flow_rate', { base: 1.7, swing: 1.4, noise: 0.2, decimals: 2, min: 0, max: 40 }),
  sensor('power', { base: 310, swing: 220, noise: 60, decimals: 1, min: 0, max: 3680 }),
];

/** A sensor with its key and curve; it is in every reading unless `every` is given. */
export function sensor(
  key: string,
  curve: Omit<SensorSpec, 'key' | 'every'> & { readonly every?: number },
): SensorSpec {
  return { every: 1, ...curve, key };
}

/** The first `count` sensors of the catalogue; beyond its end numbered ones (`temperature_2`). */
export function sensorsOf(count: number): SensorSpec[] {
  return Array.from({ length: count }, (_, at) => {
    const known =
      CATALOGUE[at % CATALOGUE.length] ??
      sensor('value', { base: 0, swing: 1, noise: 0, decimals: 1, min: -1, max: 1 });
    const round = Math.floor(at / CATALOGUE.length) + 1;
    return round === 1 ? known : { ...known, key: `${known.key}_${round}` };
  });
}

/** The level around which a sensor of a device goes up and down, by the seed of the device. */
export function baseLevel({ key, base, swing }: SensorSpec, seed: Seed): number {
  return base + (unit(mix(mixText(seed, key), 1)) - 0.5) * swing;
}

/** The values of the sensors of one device. */
type Measure = (index: number, atMs: EpochMs) => SimValue[];

/** Prepares the sensors of a device: each has a phase and a level of its own, by the seed. */
export function createMeasure(sensors: readonly SensorSpec[], seed: Seed): Measure {
  const prepared = sensors.map((spec) => {
    const own = mixText(seed, spec.key);
    return {
      spec,
      own,
      level: baseLevel(spec, seed),
      phase: unit(mix(own, 2)) * 0.2,
      driftDays: whole(mix(own, 3), 5, 30),
      scale: 10 ** spec.decimals,
      turn: whole(mix(own, 4), 0, spec.every - 1),
    };
  });
  return (index, atMs) => {
    const day = atMs / DAY_MS;
    const values: SimValue[] = [];
    for (const { spec, own, level, phase, driftDays, scale, turn } of prepared) {
      if (spec.every > 1 && index % spec.every !== turn) continue;
      const daily = Math.sin(2 * Math.PI * (day - 0.375 + phase)) * spec.swing;
      const drift = Math.sin((2 * Math.PI * day) / driftDays) * spec.swing * 0.3;
      const noise = (unit(mix(own, index + 16)) - 0.5) * spec.noise;
      const value = Math.min(spec.max, Math.max(spec.min, level + daily + drift + noise));
      values.push([spec.key, String(Math.round(value * scale) / scale)]);
    }
    return values;
  };
}
