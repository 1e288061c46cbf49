/**
 * The table of events against what is really written: every event in each of its ways.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { FIELDS } from '../../src/observe/event-row.ts';
import { eventLine, SYNC_EVENTS } from '../../src/observe/event-table.ts';
import { createLogger, logEvents } from '../../src/observe/log.ts';
import { PROGRAM_EVENTS } from '../../src/observe/program-events.ts';
import { SAMPLES } from '../support/event-samples.ts';
import { mistakesOfLine, PROGRAM_ROWS, SYNC_ROWS, samplesOf } from '../support/log-lines.ts';

const ROWS = { ...SYNC_ROWS, ...PROGRAM_ROWS };

const ALL = Object.keys(ROWS).flatMap(samplesOf);

describe('the table', () => {
  test.each(ALL.map((event, index) => [`${event.type} ${index}`, event] as const))(
    'has the line of %s',
    (_name, event) => {
      const written: string[] = [];
      const stream = { write: (text: string) => written.push(text) };
      const logger = createLogger({ level: 'debug', format: 'json', secrets: [], clock: { nowMs: () => 0 }, stream });
      logEvents(logger, { monoMs: () => 0 })(event);
      expect(written.flatMap(mistakesOfLine)).toEqual([]);
      expect(written.length).toBeGreaterThan(0);
    },
  );

  test.each(Object.entries(ROWS))('has exactly the levels that the samples of %s have', (type, row) => {
    const reported = samplesOf(type).map((event) => eventLine(event));
    expect(new Set(reported.map(({ level }) => level))).toEqual(new Set(row.levels));
  });

  test('has a sample of every event whose line cannot be distinguished from one of placeholders', () => {
    const tables: readonly [string, object][] = [...Object.entries(SYNC_EVENTS), ...Object.entries(PROGRAM_EVENTS)];
    const varying = tables.filter(([, row]) => 'pattern' in row || ('level' in row && typeof row.level === 'object'));
    expect(varying.length).toBeGreaterThan(10);
    expect(varying.map(([type]) => type).filter((type) => !Object.hasOwn(SAMPLES, type))).toEqual([]);
  });

  test('has the unit of every field, and has no field that no line has', () => {
    const used = Object.values(ROWS).flatMap(({ fields }) => fields);
    expect(used.filter((name) => !Object.hasOwn(FIELDS, name))).toEqual([]);
    expect(
      Object.keys(FIELDS).filter((name) => !name.endsWith('suppressed') && !used.some((each) => each === name)),
    ).toEqual([]);
    expect(Object.keys(FIELDS).filter((name) => !/^[a-z]+(_[a-z]+)*$/.test(name))).toEqual([]);
    expect(Object.keys(FIELDS)).toEqual(Object.keys(FIELDS).toSorted());
  });

  test('has no line that the program never writes', () => {
    const source = readdirSync('src', { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts') && !path.endsWith('events.ts'))
      .map((path) => readFileSync(join('src', path), 'utf8'))
      .join('\n');
    expect(Object.keys(PROGRAM_ROWS).filter((name) => !source.includes(`type: '${name}'`))).toEqual([]);
  });

  test('would be missed by a line that differs from its table', () => {
    const line = {
      level: 'info',
      time: '2026-11-21T00:00:00.000Z',
      event: 'device-gone',
      device_id: 'd',
      msg: 'Device is no longer listed',
    };
    const wrong = (more: Record<string, unknown>): number =>
      mistakesOfLine(JSON.stringify({ ...line, ...more })).length;
    expect(wrong({})).toBe(0);
    for (const more of [
      { event: 'unheard-of' },
      { event: undefined },
      { level: 'error' },
      { time: 'today' },
      { msg: 'another' },
      { device: 'd' },
      { device_id: { id: 'd' } },
      { device_id: 'https://host/x?key=1' },
    ]) {
      expect(wrong(more), JSON.stringify(more)).toBe(1);
    }
    expect(mistakesOfLine('tidemark: text')).toHaveLength(1);
  });
});
