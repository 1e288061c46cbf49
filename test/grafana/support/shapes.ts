/**
 * The answers that each kind of panel needs, independent of their values.
 */
import { expect } from 'vitest';
import { HOUR_MS } from '../../../src/core/time.ts';
import type { Panel } from './boards.ts';
import type { Field, Frame } from './frames.ts';
import { type Picture, pictureOf, valuesOf } from './grafana.ts';
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

/** The answers that a panel needs, independent of their values, and how Grafana shows them. */
export async function expectShape(panel: Panel, frames: readonly Frame[], range: Viewer['range']): Promise<void> {
  for (const frame of frames) {
    for (const { values } of frame.fields) expect(values).toHaveLength(frame.length);
  }
  SHAPES[panel.type]?.(panel, frames, range);
  if (frames.length > 0) await expectReadable(panel, frames);
}

/** A name for which something was not put in. */
const RAW = /\$\{__(?:field|url)|\|from=/;

/** Names and words as a person can read them; a table with its columns, each once and in their order. */
async function expectReadable(panel: Panel, frames: readonly Frame[]): Promise<void> {
  const sentence = panel.fieldConfig?.defaults['noValue'];
  if (panel.type === 'stat' || panel.type === 'bargauge') {
    for (const { title } of await valuesOf(panel, frames)) expect(title, panel.title).not.toMatch(RAW);
    return;
  }
  const { fields } = await pictureOf(panel, frames);
  if (isPutTogether(panel)) expectDrawable(panel, fields);
  for (const { title, cells } of fields) {
    expect(title, panel.title).not.toMatch(RAW);
    expect(cells.find(({ text }) => text === sentence)?.text, panel.title).toBeUndefined();
  }
  // Where a query was answered nothing, what is joined is the rest as it came.
  if (panel.type === 'table' && frames.length === panel.targets?.length) {
    const titles = fields.map(({ title }) => title);
    expect(titles, panel.title).toEqual(columnsOf(panel).filter((title) => titles.includes(title)));
  }
}

/** Whether Grafana makes the lines of a chart from several answers. */
function isPutTogether({ type, transformations = [] }: Panel): boolean {
  return type === 'timeseries' && transformations.length > 0;
}

/** Ascending times, each once, and numbers. */
function expectDrawable(panel: Panel, [times, ...lines]: Picture['fields']): void {
  const at = (times?.cells ?? []).map(({ value }) => Number(value));
  expect(at, panel.title).toEqual([...new Set(at)].sort((a, b) => a - b));
  expect(at.length, panel.title).toBeLessThanOrEqual(roomOf(panel) * 1.5 + 31);
  expect(lines.length, panel.title).toBeGreaterThan(0);
  const values = lines.flatMap(({ cells }) => cells.map(({ value }) => value));
  expect(values.filter((value) => value !== null && typeof value !== 'number' && value !== undefined)).toEqual([]);
}

/** The columns that a table shows, in their order. */
export function columnsOf(panel: Panel): string[] {
  const { options = {} } = panel.transformations?.findLast(({ id }) => id === 'organize') ?? {};
  const hidden = options['excludeByName'] as Record<string, boolean>;
  const renamed = Object.entries(options['renameByName'] as Record<string, string>);
  return renamed.filter(([name]) => hidden[name] !== true).map(([, title]) => title);
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
  geomap: (panel, frames) => {
    for (const frame of frames.filter(({ refId }) => refId === 'A')) {
      for (const name of ['latitude', 'longitude', 'online'])
        expect(fieldOf(frame, name).type, panel.title).toBe('number');
    }
  },
  bargauge: (panel, frames) => {
    const numbers = frames.filter(({ fields }) => fields.some(({ type }) => type === 'number'));
    expect(numbers.length > 0, panel.title).toBe(frames.length > 0);
  },
};

function expectLines(panel: Panel, frames: readonly Frame[], range: Viewer['range']): void {
  if (isPutTogether(panel)) return;
  // Values carried on from long before the range are cut by the panel.
  const carried = panel.targets?.filter(({ query = '' }) => query.includes('fill(previous)')).map(({ refId }) => refId);
  expectTimes(
    panel,
    frames.filter(({ refId }) => carried?.includes(refId) !== true),
    range,
  );
  for (const frame of frames) expect(frame.fields[1]?.type, panel.title).toBe('number');
  const names = frames.map(
    ({ refId, fields }) => `${refId} ${fields[1]?.displayName} ${JSON.stringify(fields[1]?.labels)}`,
  );
  expect(names).toEqual([...new Set(names)]);
}

/** Ascending times, each once, no more of them than the panel has room for, and a little before its range at most. */
function expectTimes(panel: Panel, frames: readonly Frame[], { fromMs, toMs }: Viewer['range']): void {
  for (const frame of frames) {
    const times = frame.fields[0]?.values as number[];
    expect(frame.fields[0]?.type).toBe('time');
    times.slice(1).forEach((time, index) => {
      expect(time, panel.title).toBeGreaterThan(times[index] ?? 0);
    });
    // Grafana rounds the steps, so it may request half as many again as there is room for.
    expect(times.length, panel.title).toBeLessThanOrEqual(roomOf(panel) * 1.5 + 31);
    // A day and a step, at whose beginning the first of them stands.
    const earliest = fromMs - 27 * HOUR_MS - (toMs - fromMs) / 60;
    expect(times[0] ?? fromMs, panel.title).toBeGreaterThanOrEqual(earliest);
    expect(times.at(-1) ?? toMs, panel.title).toBeLessThanOrEqual(toMs);
  }
}
