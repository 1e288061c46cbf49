/**
 * Logs: lines of JSON or of readable text, and the ear that turns events into them.
 *
 * Promises: no line holds a secret; text from outside is shortened and can neither break a line nor steer a terminal;
 * what repeats itself is told a few times a minute and then counted.
 */
import { createRequire } from 'node:module';
import { pino } from 'pino';
import type * as Pretty from 'pino-pretty';
import type { Clock, Observe } from '../core/ports.ts';
import type { Secret } from '../core/secret.ts';
import { plainText } from '../core/text.ts';
import { describeEvent, type LineLevel } from './event-lines.ts';
import { createRepeats } from './repeats.ts';
import { createScrub } from './scrub.ts';

/** What a line says beside its message. Only plain values: no object from outside can ride along. */
export type LogFields = Readonly<Record<string, string | number | boolean | null>>;

type Write = (message: string, fields?: LogFields) => void;

export type Logger = Readonly<Record<LineLevel, Write>>;

export interface LogStream {
  write(text: string): unknown;
  /** Whether a person looks at it: decides what the format `auto` means. */
  readonly isTTY?: boolean;
}

export interface LoggerOptions {
  readonly level: LineLevel;
  readonly format: 'auto' | 'json' | 'pretty';
  /** Standard error, in the program. */
  readonly stream: LogStream;
  readonly secrets: readonly Secret[];
  readonly clock: Pick<Clock, 'nowMs'>;
}

/** How much of a message is told. */
export const MAX_MESSAGE_LENGTH = 1000;

const require = createRequire(import.meta.url);

/** Loaded where somebody looks on: it is thirty files, and no program reads its lines. */
function layer(): typeof Pretty {
  return require('pino-pretty');
}

/** Opens a log. */
export function createLogger({ level, format, stream, secrets, clock }: LoggerOptions): Logger {
  const scrub = createScrub(secrets);
  const terminal = stream.isTTY === true;
  const pretty = format === 'pretty' || (format === 'auto' && terminal);
  const layOut = pretty
    ? // A person reads the sentence; the name of the event is for programs.
      layer().prettyFactory({
        colorize: terminal,
        singleLine: true,
        translateTime: 'UTC:yyyy-mm-dd HH:MM:ss',
        ignore: 'event',
      })
    : (line: string) => line;
  const sink = pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date(clock.nowMs()).toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (line: string) => stream.write(scrub(layOut(scrub(line)))) },
  );
  // Scrubbed before it is cut, or the head of a secret would be left; and again as a line, before and after its layout.
  const clean = (text: string, maxLength?: number): string => plainText(scrub(text), maxLength);
  const writer =
    (name: LineLevel): Write =>
    (message, fields = {}) => {
      const shown = Object.entries(fields).map(([key, value]) => [
        clean(key),
        typeof value === 'string' ? clean(value) : value,
      ]);
      sink[name](Object.fromEntries(shown), clean(message, MAX_MESSAGE_LENGTH));
    };
  return { error: writer('error'), warn: writer('warn'), info: writer('info'), debug: writer('debug') };
}

/** How many lines of one kind are written within how long, before they are only counted. */
interface Quota {
  readonly lines: number;
  readonly windowMs: number;
}

const QUOTA: Quota = { lines: 10, windowMs: 60_000 };

/** Waiting for allowance is a normal state: once is enough for a good while. */
const WAIT_QUOTA: Quota = { lines: 1, windowMs: 15 * 60_000 };

/**
 * An `Observe` that logs. What goes beyond a quota is written on the level `debug` only, and the next line of its
 * kind tells how many were held back. Each line carries the name of its event, for programs that read them.
 */
export function logEvents(logger: Logger, clock: Pick<Clock, 'monoMs'>): Observe {
  const admit = createQuotas(clock);
  const repeats = createRepeats(clock);
  return (event) => {
    const { level, message, fields } = describeEvent(event);
    const named = { event: event.type, ...fields };
    const repeated = level === 'debug' ? null : repeats(event, level);
    if (repeated === null) return logger.debug(message, named);
    const heldBack =
      event.type === 'allowance-wait'
        ? admit(`${event.type} ${event.reason}`, WAIT_QUOTA)
        : admit(`${event.type} ${level}`, QUOTA);
    if (heldBack === null) return logger.debug(message, named);
    const notTold = repeated + heldBack;
    logger[level](message, notTold > 0 ? { ...named, held_back: notTold } : named);
  };
}

/** @returns a function that lets a line of some kind pass, telling how many were not let before it, or gives `null`. */
function createQuotas(clock: Pick<Clock, 'monoMs'>): (kind: string, quota: Quota) => number | null {
  const windows = new Map<string, { sinceMs: number; written: number; held: number }>();
  return (kind, { lines, windowMs }) => {
    const nowMs = clock.monoMs();
    const current = windows.get(kind);
    if (current === undefined || nowMs - current.sinceMs >= windowMs) {
      windows.set(kind, { sinceMs: nowMs, written: 1, held: 0 });
      return current?.held ?? 0;
    }
    if (current.written < lines) {
      current.written += 1;
      return 0;
    }
    current.held += 1;
    return null;
  };
}
