/**
 * What each kind of panel needs of its answers, whatever they say.
 */
import { expect } from 'vitest';
import { HOUR_MS } from '../../../src/core/time.ts';
import type { Panel } from './boards.ts';
import { type Field, type Frame, joinedNames } from './frames.ts';
import { roomOf, type Viewer } from './viewer.ts';

/** Values of a field, by those of another one of the same row. */
export function column(frame: Frame | undefined, name: string): readonly unknown[] {
  return fieldOf(frame, name).values;
}

export function fieldOf(frame: Frame | undefined, name: string): Field {
  const found = frame?.fields.find((field) => field.name === name);
  if (found === undefined) throw new Error(`no column ${name}`);
  return found;
}

/** What a panel needs of its answers, whatever they say. */
export function expectShape(panel: Panel, frames: readonly Frame[], range: Viewer['range']): void {
  for (const frame of frames) {
    for (const { values } of frame.fields) expect(values).toHaveLength(frame.length);
  }
  SHAPES[panel.type]?.(panel, frames, range);
}

const SHAPES: Readonly<Record<string, (panel: Panel, frames: readonly Frame[], range: Viewer['range']) => void>> = {
  stat: (panel, frames) => {
    for (const frame of frames) {
      expect(frame.fields.at(-1)?.type, panel.title).toBe('number');
      expect(frame.length, panel.title).toBe(1);
    }
  },
  timeseries: expectLines,
  heatmap: expectLines,
  'state-timeline': (panel, frames, range) => {
    expectTimes(panel, frames, range);
    for (const frame of frames) expect(frame.fields[1]?.displayName, panel.title).not.toMatch(/\$tag_(?!device_id)/);
  },
  table: (panel, frames) => {
    expect(frames.length).toBeLessThanOrEqual(panel.targets?.length ?? 0);
    if (frames.length < (panel.targets?.length ?? 0)) return;
    const join = panel.transformations?.find(({ id }) => id === 'joinByField')?.options['byField'];
    const shown = panel.transformations?.find(({ id }) => id === 'organize')?.options['indexByName'] as object;
    const isMerged = panel.transformations?.some(({ id }) => id === 'merge') === true;
    const own = (isMerged ? frames : frames.slice(0, 1)).flatMap(({ fields }) => fields.map(({ name }) => name));
    const names = join === undefined ? [...new Set(own)] : joinedNames(frames, String(join));
    // Every column has its place, and every place a column.
    expect(names.toSorted(), panel.title).toEqual(Object.keys(shown).sort());
    for (const { id, options } of panel.transformations ?? []) {
      if (id !== 'filterByValue') continue;
      for (const { fieldName } of options['filters'] as { fieldName: string }[]) expect(names).toContain(fieldName);
    }
  },
  geomap: (panel, frames) => {
    for (const frame of frames) {
      for (const name of ['latitude', 'longitude', 'online'])
        expect(fieldOf(frame, name).type, panel.title).toBe('number');
    }
  },
  bargauge: (panel, frames) => {
    for (const frame of frames) {
      expect(
        frame.fields.some(({ type }) => type === 'number'),
        panel.title,
      ).toBe(true);
    }
  },
};

function expectLines(panel: Panel, frames: readonly Frame[], range: Viewer['range']): void {
  expectTimes(panel, frames, range);
  for (const frame of frames) expect(frame.fields[1]?.type, panel.title).toBe('number');
  const names = frames.map(({ fields }) => `${fields[1]?.displayName} ${JSON.stringify(fields[1]?.labels)}`);
  expect(new Set(names).size, panel.title).toBe(names.length);
}

/** Ascending times, each once, no more of them than the panel has room for, and a little before its range at most. */
function expectTimes(panel: Panel, frames: readonly Frame[], { fromMs, toMs }: Viewer['range']): void {
  for (const frame of frames) {
    const times = frame.fields[0]?.values as number[];
    expect(frame.fields[0]?.type).toBe('time');
    times.slice(1).forEach((time, index) => {
      expect(time, panel.title).toBeGreaterThan(times[index] ?? 0);
    });
    // Grafana rounds the steps, and so may ask for half as many again as there is room for.
    expect(times.length, panel.title).toBeLessThanOrEqual(roomOf(panel) * 1.5 + 31);
    expect(times[0] ?? fromMs, panel.title).toBeGreaterThanOrEqual(fromMs - 27 * HOUR_MS);
    expect(times.at(-1) ?? toMs, panel.title).toBeLessThanOrEqual(toMs);
  }
}
