/** The settings that the state keeps. */
import { expect, test } from 'vitest';
import { readRunsWith, readSchedules, saveRunsWith, saveSchedules } from '../../src/app/settings.ts';
import { SCHEDULES } from '../support/defaults.ts';

test('settings in the state are read as they were written; a text that was cut there counts as none', () => {
  const facts = new Map<string, string>();
  const store = {
    fact: (key: string): string | null => facts.get(key) ?? null,
    saveFact: (key: string, value: string): void => void facts.set(key, value),
  };
  saveSchedules(store, SCHEDULES);
  saveRunsWith(store, { include: ['a'], exclude: [], excludeSensors: [], includesLocation: true }, [
    { name: 'influx', destinationId: 1 },
  ]);
  expect(readSchedules(store)).toMatchObject({
    devices: { text: SCHEDULES.devices.text },
    telemetry: { text: SCHEDULES.telemetry.text },
  });
  expect(readRunsWith(store)).toEqual({ include: ['a'], exclude: [], destinations: [{ name: 'influx', id: 1 }] });
  for (const [key, text] of facts) facts.set(key, text.slice(0, -1));
  expect([...facts.keys()]).toHaveLength(2);
  expect([readSchedules(store), readRunsWith(store)]).toEqual([null, null]);
});
