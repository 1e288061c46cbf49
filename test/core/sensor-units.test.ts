/** The unit of a sensor by its name: whole words in any case, and none where the name has no such word. */
import { expect, test } from 'vitest';
import { unitOf } from '../../src/core/sensor-units.ts';

test.each([
  ['temperature', '°C'],
  ['probe.Temp_2', '°C'],
  ['humidity', '%'],
  ['battery_level', '%'],
  ['battery_voltage', 'V'],
  ['rssi', 'dBm'],
  ['pm2_5', 'μg/m³'],
  // A word within another one is none.
  ['attempt', ''],
  ['occupancy', ''],
  ['door_open', ''],
  ['vibration', ''],
  ['', ''],
])('the unit of %j is %j', (sensor, unit) => {
  expect(unitOf(sensor)).toBe(unit);
});
