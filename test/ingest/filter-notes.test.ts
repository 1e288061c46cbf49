/**
 * The notes on a device filter: applying it changes nothing, and a pattern that matches nothing is reported once.
 */
import { describe, expect, test } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import { createFilter, type FilterSpec } from '../../src/core/filter.ts';
import type { DeviceRecord } from '../../src/core/records.ts';
import { createFilterNotes, type FilterNotes } from '../../src/ingest/filter.ts';
import { readingAt } from '../core/support/readings.ts';

function notesOf(spec: Partial<FilterSpec>): { notes: FilterNotes; patterns: () => string[] } {
  const events: AppEvent[] = [];
  const facts = new Map<string, string>();
  const store = {
    fact: (key: string) => facts.get(key) ?? null,
    saveFact: (key: string, value: string) => void facts.set(key, value),
  };
  const filter = createFilter({ include: [], exclude: [], excludeSensors: [], includesLocation: true, ...spec });
  const notes = createFilterNotes(filter, { store, observe: (event) => void events.push(event) });
  const patterns = (): string[] =>
    events.flatMap((event) => (event.type === 'filter-matches-nothing' ? [event.pattern] : []));
  return { notes, patterns };
}

describe('a sensor pattern that matches nothing', () => {
  test('is reported once, after the first telemetry', () => {
    const { notes, patterns } = notesOf({ excludeSensors: ['temperature', 'door.*', 'temprature'] });
    notes.noteTelemetryRead();
    expect(patterns()).toEqual([]);
    notes.noteSensorsRead([readingAt(1n, { temperature: 1, door: { open: true } })]);
    notes.noteTelemetryRead();
    notes.noteTelemetryRead();
    expect(patterns()).toEqual(['temprature']);
  });

  test('is reported although the filter was already applied to a sensor that it matches', () => {
    const { notes, patterns } = notesOf({ excludeSensors: ['temperature'] });
    expect(notes.filter.includesSensor('temperature')).toBe(false);
    notes.noteSensorsRead([readingAt(1n, { humidity: 1 })]);
    notes.noteTelemetryRead();
    expect(patterns()).toEqual(['temperature']);
  });
});

test('a device pattern that matches nothing is reported with the first listing alone', () => {
  const { notes, patterns } = notesOf({ exclude: ['hub', 'hubb'] });
  const hub = { deviceId: 'hub', name: null, modelId: null, tags: [] as string[] } as unknown as DeviceRecord;
  notes.noteDevicesListed([hub]);
  notes.noteDevicesListed([]);
  expect(patterns()).toEqual(['hubb']);
});
