/**
 * The log: lines of JSON or of readable text, and the observer that writes the lines of events.
 *
 * No line contains a secret. Text from outside is shortened, and can neither break a line nor control a terminal.
 * Repetitions are counted instead of written (`repeats.ts`).
 */

import { pino } from 'pino';
import type { AppEvent, Observe, ProgramEvent } from '../core/events.ts';
import { parseJson } from '../core/json.ts';
import type { Clock } from '../core/ports.ts';
import type { Secret } from '../core/secret.ts';
import { createScrub, type Scrub, scrubName, withoutQueries } from '../core/secret.ts';
import { grouped, plainText } from '../core/text.ts';
import { formatMs } from '../core/time.ts';
import type { FieldValues, LineLevel, LogValue } from './event-row.ts';
import { eventLine, findRow, rowOf } from './event-table.ts';
import { createPollSummaries } from './poll-summaries.ts';
import { createAdmission } from './repeats.ts';

/** Takes the line of an event. The log writes it, the status page shows it. */
export type LineWriter = (
  level: LineLevel,
  message: string,
  fields: { readonly event: AppEvent['type'] } & FieldValues,
) => void;

/** Writes the events of the program and its commands. Every line comes from the table of events. */
export interface Logger {
  /** Writes the line of an event, however often the event occurs. */
  write(event: ProgramEvent): void;
}

/** Where the lines of events go. */
interface LineTaker {
  /** Whether lines of a level are written. Lines of other levels are not composed. */
  readonly takes: (level: LineLevel) => boolean;
  /** Writes a line unchanged. Only {@link logEvents} uses it. */
  readonly line: LineWriter;
}

interface Log extends Logger, LineTaker {}

/** The part of a stream that the log needs. */
export interface LogStream {
  write(text: string): unknown;
  /** Whether it is a terminal, for the format `auto`. */
  readonly isTTY?: boolean;
}

/** The format of the log, and the stream that it writes to. */
export interface LoggerOptions {
  readonly level: LineLevel;
  readonly format: 'auto' | 'json' | 'pretty';
  /** In the program: standard error. */
  readonly stream: LogStream;
  readonly secrets: readonly Secret[];
  readonly clock: Pick<Clock, 'nowMs'>;
  /** Whether a terminal gets no colours: the environment variable `NO_COLOR` is set and not empty. */
  readonly noColour?: boolean;
}

/** The longest message, in characters. */
export const MAX_MESSAGE_LENGTH = 1000;

/** The colours of the levels on a terminal, as SGR codes: red, yellow, green, blue. */
const COLOURS: Readonly<Record<string, number>> = { error: 31, warn: 33, info: 32, debug: 34 };

/**
 * Formats a line of JSON for people: time, level, the sentence, and the fields that the sentence does not contain. The
 * name of the event is for programs and is left out.
 */
function prettyLine(json: string, isColoured: boolean): string {
  const line = parseJson(json) as Record<'level' | 'time' | 'event' | 'msg', string> | null;
  if (line === null) return json;
  const { level, time, event, msg, ...fields } = line;
  const label = isColoured ? `\u001b[${COLOURS[level]}m${level.toUpperCase()}\u001b[39m` : level.toUpperCase();
  const row = findRow(event);
  const isWhole = row?.isWhole === true || row?.isRoutine === true;
  const shown = isWhole ? [] : Object.entries(fields).filter(([, value]) => !isIn(msg, value));
  const pairs = shown.map(([key, value]) => ` ${key}=${typeof value === 'string' ? quoted(value) : value}`);
  return `[${time.slice(0, 19).replace('T', ' ')}] ${label}: ${msg}${pairs.join('')}\n`;
}

/** Whether a sentence contains a value as a separate word or number. `null` counts as contained. */
function isIn(sentence: string, value: unknown): boolean {
  if (value === null || value === '') return true;
  const forms = typeof value === 'number' ? [String(value), grouped(value)] : [String(value)];
  return forms.some((form) => isWord(sentence, form));
}

const WORD = /[\p{L}\p{N}_]/u;

function isWord(sentence: string, form: string): boolean {
  for (let at = sentence.indexOf(form); at >= 0; at = sentence.indexOf(form, at + 1)) {
    const [before = ' ', after = ' '] = [sentence[at - 1], sentence[at + form.length]];
    if (!WORD.test(before) && !WORD.test(after)) return true;
  }
  return false;
}

function quoted(text: string): string {
  return /[\s="]/.test(text) ? JSON.stringify(text) : text;
}

/**
 * Prepares a text for a line: plain, short, without secrets. A secret is removed before the text is cut, because its
 * head would remain otherwise, and again from the plain text, in which no invisible character divides it.
 */
export function cleanerOf(scrub: Scrub): (text: string, maxLength?: number) => string {
  return (text, maxLength) => scrub(plainText(withoutQueries(scrub(text)), maxLength));
}

/** Creates a log that writes JSON or, for people, text; secrets are removed from every line. */
export function createLogger({ level, format, stream, secrets, clock, noColour = false }: LoggerOptions): Log {
  const scrub = createScrub(secrets);
  const terminal = stream.isTTY === true;
  const isColoured = terminal && !noColour;
  const pretty = format === 'pretty' || (format === 'auto' && terminal);
  const layOut = (line: string): string => (pretty ? prettyLine(line, isColoured) : line);
  const sink = pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${formatMs(clock.nowMs())}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (line: string) => stream.write(layOut(line)) },
  );
  const clean = cleanerOf(scrub);
  const line: LineWriter = (level, message, fields) => {
    const shown = Object.entries(fields).map(([key, value]): [string, LogValue] => [
      scrubName(key, clean),
      typeof value === 'string' ? clean(value) : value,
    ]);
    sink[level](Object.fromEntries(shown), clean(message, MAX_MESSAGE_LENGTH));
  };
  const write = (event: ProgramEvent): void => {
    const { level, message, fields } = eventLine(event);
    line(level, message, { event: event.type, ...fields });
  };
  return { takes: (each) => sink.isLevelEnabled(each), line, write };
}

/**
 * Creates an `Observe` that logs. Suppressed events (`repeats.ts`) are written only on the level `debug`. The next line
 * of their kind, or the line about the end of the problem, has their number. Each line has the name of its event, for
 * programs that read the log.
 */
export function logEvents(log: LineTaker, clock: Pick<Clock, 'monoMs'>): Observe {
  const admit = createAdmission(clock);
  const summaries = createPollSummaries(clock);
  const write = (event: AppEvent): void => {
    const level = levelOf(event);
    const suppressed = level === 'debug' ? null : admit(event, level);
    const shownAs = suppressed === null ? 'debug' : level;
    if (!log.takes(shownAs)) return;
    const { message, fields } = eventLine(event);
    const named = { event: event.type, ...fields };
    const counted = { [countNameOf(event)]: suppressed };
    log.line(shownAs, message, suppressed === null || suppressed === 0 ? named : { ...named, ...counted });
  };
  return (event) => {
    write(event);
    for (const report of summaries(event)) write(report);
  };
}

/**
 * The field with the number of suppressed lines. Lines that were suppressed before the end of a problem are not about
 * its end.
 */
function countNameOf({ type }: AppEvent): 'suppressed' | 'problem_lines_suppressed' {
  const { repeats } = rowOf(type);
  return repeats !== undefined && 'ends' in repeats ? 'problem_lines_suppressed' : 'suppressed';
}

/**
 * The level of an event's line, without composing the line: most events have the level `debug`, and their lines are not
 * needed.
 */
function levelOf(event: AppEvent): LineLevel {
  const { level } = rowOf(event.type);
  return typeof level === 'string' ? level : level.choose(event);
}
