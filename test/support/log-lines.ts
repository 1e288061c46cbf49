/** The errors of lines of a JSON log, compared with the table of the log. */
import type { AppEvent } from '../../src/core/events.ts';
import { type EventRow, FIELDS, type LineLevel } from '../../src/observe/event-row.ts';
import { SYNC_EVENTS } from '../../src/observe/event-table.ts';
import { PROGRAM_EVENTS } from '../../src/observe/program-events.ts';
import { SAMPLES } from './event-samples.ts';

/** A kind of line, as in the reference page. */
export interface LineRow {
  /** The usual one first. */
  readonly levels: readonly LineLevel[];
  /** `…` stands for what differs. */
  readonly message: string;
  readonly fields: readonly string[];
  readonly note: string | null;
}

export const SYNC_ROWS = rowsOf(SYNC_EVENTS as Readonly<Record<string, EventRow<AppEvent>>>);
export const PROGRAM_ROWS = rowsOf(PROGRAM_EVENTS as Readonly<Record<string, EventRow<AppEvent>>>);

const ROWS: Readonly<Record<string, LineRow>> = { ...SYNC_ROWS, ...PROGRAM_ROWS };

function rowsOf(table: Readonly<Record<string, EventRow<AppEvent>>>): Readonly<Record<string, LineRow>> {
  return Object.fromEntries(Object.entries(table).map(([name, row]) => [name, lineRow(name, row)]));
}

/** An event whose members all are `…`, but for its type where that is given. */
export function placeholder(type = '…'): AppEvent {
  return new Proxy({}, { get: (_, member) => (member === 'type' ? type : '…') }) as AppEvent;
}

/** An event in each of the ways in which its line differs. */
export function samplesOf(type: string): readonly AppEvent[] {
  return SAMPLES[type as AppEvent['type']] ?? [placeholder(type)];
}

/** The row of an event: its message with `…` for what differs, and the fields of all its samples. */
function lineRow(type: string, { level, message, fields, pattern, note }: EventRow<AppEvent>): LineRow {
  return {
    levels: typeof level === 'string' ? [level] : level.any,
    message: pattern ?? (typeof message === 'string' ? message : message(placeholder())),
    fields: [...new Set(samplesOf(type).flatMap((sample) => Object.keys(fields?.(sample) ?? {})))],
    note: note ?? null,
  };
}

/** A pattern of the table as a regular expression. */
export function messagePattern(message: string): RegExp {
  const parts = message.split('…').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`, 's');
}

/** @returns the errors of a line, in words; empty where it matches the table */
export function mistakesOfLine(text: string): string[] {
  const line = parsed(text);
  if (line === null) return [`no JSON: ${text}`];
  const { time, level, event, msg, ...fields } = line;
  const row = typeof event === 'string' && Object.hasOwn(ROWS, event) ? ROWS[event] : undefined;
  if (row === undefined) return [`not in the table: ${text}`];
  const wrong = mistakesOfFields(row, fields);
  if (typeof time !== 'string' || !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(time)) wrong.push('its time');
  // When it is suppressed, any line is written on the level debug.
  if (level !== 'debug' && !row.levels.some((each) => each === level)) wrong.push(`its level ${String(level)}`);
  if (typeof msg !== 'string' || !messagePattern(row.message).test(msg)) wrong.push('its message');
  if (/https?:\/\/[^\s"]*[?@]/.test(text)) wrong.push('a URL with a query or a user');
  return wrong.map((what) => `${what}: ${text}`);
}

function mistakesOfFields(row: LineRow, fields: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(fields).flatMap(([name, value]) => {
    const isKnown = name.endsWith('suppressed') || row.fields.some((each) => each === name);
    if (!isKnown || !Object.hasOwn(FIELDS, name)) return [`the field ${name}`];
    return value !== null && typeof value === 'object' ? [`${name} is no plain value`] : [];
  });
}

function parsed(text: string): Record<string, unknown> | null {
  try {
    const line: unknown = JSON.parse(text);
    return typeof line === 'object' && line !== null ? (line as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
