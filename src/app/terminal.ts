/**
 * The output of a command on standard error (the log, and the progress of long work), and the answers that a person
 * types.
 */
import { StringDecoder } from 'node:string_decoder';
import type { Config } from '../config/config.ts';
import { NEVER_ABORTED, repeat, runUntilFirst } from '../core/async.ts';
import type { Observe } from '../core/events.ts';
import { UserError } from '../core/faults.ts';
import { REPORTED_FROM_MS } from '../core/quota.ts';
import { createScrub, type Scrub, type Secret } from '../core/secret.ts';
import type { ProgressReport } from '../core/status.ts';
import { plainText } from '../core/text.ts';
import { SECOND_MS } from '../core/time.ts';
import { createLogger, type Logger, type LogStream, logEvents } from '../observe/log.ts';
import {
  createProgress,
  createTerminalLine,
  createWorkProgress,
  type ProgressFacts,
  type WorkFacts,
} from '../observe/progress.ts';
import { realClock } from './real-clock.ts';

/** The parts of the process that a command may use. */
export interface ProcessPorts {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Removes variables that contained secrets from the environment. */
  readonly forget: (names: readonly string[]) => void;
  /** Facts about the runtime, for a support bundle. */
  readonly runtime?: () => RuntimeFacts;
  readonly readFile: (path: string) => string;
  /** Writes the result of a command to standard output. */
  readonly print: (text: string) => void;
  /** Standard input, for a command with prompts. */
  readonly stdin?: InputStream;
  /** Standard output for long results that are written piece by piece. */
  readonly stdout: OutputStream;
  readonly stderr: LogStream & { readonly columns?: number };
  /** Aborts when the process receives a signal to stop. */
  readonly signal: AbortSignal;
}

/** The process, for `--check` and the support bundle. */
export interface RuntimeFacts {
  readonly node: string;
  readonly libraries: Readonly<Record<string, string | undefined>>;
  readonly architecture: string;
  /** The memory limit of the container; `null` without one. */
  readonly memoryLimitBytes: number | null;
}

/** An input that a person types into, or a pipe. */
interface InputStream {
  readonly isTTY?: boolean;
  /** Switches the echo of a terminal off. */
  setRawMode?(isRaw: boolean): unknown;
  on(event: 'data' | 'end' | 'error', listener: (chunk: Buffer | string) => void): unknown;
  destroy(): unknown;
}

/** A stream that accepts the next piece once its reader is ready. */
interface OutputStream {
  readonly isTTY: boolean;
  /** The width in characters; absent if the stream is no terminal. */
  readonly columns?: number | undefined;
  /**
   * Writes a piece and resolves when the next one may follow.
   *
   * @returns whether the reader is still there
   */
  write(text: string): Promise<boolean>;
}

/** Everything that a command writes for people: the log and the progress. */
export interface TerminalOutput {
  readonly logger: Logger;
  readonly observe: Observe;
  /** Removes every secret from a text that is not written through the log. */
  readonly scrub: Scrub;
  /** Shows the progress if it is due. It calls `report` only then. */
  show(report: () => ProgressReport): void;
  /**
   * Shows a hint about the current work on a terminal; elsewhere it does nothing.
   *
   * @returns whether standard error is a terminal
   */
  hint(text: string): boolean;
  /**
   * Shows the progress of other long work: a bar on a terminal, a line per minute in the log. It may be called often.
   */
  showWork(progress: () => WorkFacts): void;
  /** Removes the progress line and the hint. */
  endProgress(): void;
}

/** Returns the function that logs a setting, or the file of a setting, that cannot be used as it is. */
export function reportOdd({ logger }: Pick<TerminalOutput, 'logger'>): (message: string) => void {
  return (message) => logger.write({ type: 'configuration-odd', message });
}

/**
 * A report checks every device, so it is made at most this often, and not more often than it takes. A log has at most
 * one line per minute.
 */
const TERMINAL_UPDATE_MS = 1000;
const LOG_UPDATE_MS = 30_000;

/** Opens the log and the progress. On a terminal the progress is one line below the log. */
export function openTerminalOutput(options: {
  readonly ports: ProcessPorts;
  readonly log: Config['log'];
  /** The log level of the command line; `null` if it names none. */
  readonly level: Config['log']['level'] | null;
  readonly secrets: readonly Secret[];
}): TerminalOutput {
  const { ports, log, secrets } = options;
  const line = ports.stderr.isTTY === true && log.format !== 'json' ? createTerminalLine(ports.stderr) : null;
  const logger = createLogger({
    level: options.level ?? log.level,
    format: log.format,
    stream: line ?? ports.stderr,
    secrets,
    clock: realClock,
    noColour: (ports.environment['NO_COLOR'] ?? '') !== '',
  });
  const everyMs = line === null ? LOG_UPDATE_MS : TERMINAL_UPDATE_MS;
  let dueMs = Number.NEGATIVE_INFINITY;
  const target = line ?? ((message: string) => logger.write({ type: 'progress', message }));
  const progress = createProgress(target);
  const showWork = createWorkProgress(target);
  return {
    logger,
    observe: logEvents(logger, realClock),
    scrub: createScrub(secrets),
    show: (report) => {
      const nowMs = realClock.monoMs();
      if (nowMs < dueMs) return;
      dueMs = nowMs + everyMs;
      progress.show(progressFacts(report()), nowMs);
    },
    hint: (text) => {
      line?.draw(text);
      return line !== null;
    },
    showWork: (progress) => showWork(progress, realClock.monoMs()),
    endProgress: progress.end,
  };
}

function progressFacts(report: ProgressReport): ProgressFacts {
  const { totals, destinations, allowance: quota, eta, waits = null, unread = null } = report;
  const { requests_per_minute = null, backfill = null } = report;
  const sum = (pick: (destination: ProgressReport['destinations'][number]) => number): number =>
    destinations.reduce((total, destination) => total + pick(destination), 0);
  const { waiting_until: all, history_waiting_until: history = null } = quota;
  const until = all ?? history;
  const waitMs = until === null ? 0 : Math.max(0, Date.parse(until) - realClock.nowMs());
  return {
    devicesDone: totals.devices_complete,
    devicesTotal: totals.devices,
    readings: totals.archived_readings,
    pointsDelivered: sum(({ delivered_points }) => delivered_points ?? 0),
    pointsPending: sum(({ pending_points }) => pending_points),
    requests: totals.requests,
    requestsPerMinute: requests_per_minute,
    coveredShare: totals.covered_share,
    ...(eta === undefined ? {} : { eta: eta === null ? null : { ...eta, ms: eta.seconds * 1000 } }),
    waitsFor: waits === null ? null : plainText(waits),
    unread,
    // Ordinary spacing of requests is not shown as waiting.
    wait: waitMs > REPORTED_FROM_MS ? { ms: waitMs, ofAll: all !== null } : null,
    backfill: backfill === null ? null : progressFacts(backfill),
  };
}

/**
 * How often progress is shown: `figures` of the complete state, which take a while to collect, and `work` that counts
 * its own steps.
 */
export const SHOW_EVERY_MS = { figures: SECOND_MS, work: SECOND_MS / 2 };

/** Calls `progress` at intervals of the real clock until `work` has ended. */
export async function repeatWhile<T>(work: Promise<T>, progress: () => void, everyMs: number): Promise<T> {
  const step = (): number => {
    progress();
    return everyMs;
  };
  const showRepeatedly = async (stop: AbortSignal): Promise<never> => {
    await realClock.sleep(everyMs, stop);
    return await repeat(realClock, step, stop);
  };
  return await runUntilFirst([() => work, showRepeatedly], { signal: NEVER_ABORTED, reason: 'finished' });
}

/** Prompts a person for answers. */
export interface Prompter extends Disposable {
  /** Whether a person can answer prompts. */
  readonly isTerminal: boolean;
  /**
   * Prompts for a line of text.
   *
   * @returns the line without the blanks around it
   * @throws UserError (exit 3) if the input ends, or the person cancels
   */
  prompt(question: string, options?: { readonly isSecret?: boolean }): Promise<string>;
  /**
   * The next line of a pipe, without a prompt.
   *
   * @throws UserError (exit 2) if there is none
   */
  line(what: string): Promise<string>;
}

const INTERRUPT = '\u0003';
const END = '\u0004';
const ERASE = new Set(['\u007f', '\b']);
const ENDS = new Set(['\r', '\n', INTERRUPT, END]);

/**
 * Opens the prompter.
 *
 * @param write shows a prompt.
 * @param signal aborts every prompt
 */
export function createPrompter(
  input: InputStream | undefined,
  write: (text: string) => void,
  signal: AbortSignal,
): Prompter {
  const isTerminal = input?.isTTY === true;
  const reader = createLineReader(input, signal);
  return {
    isTerminal,
    prompt: async (question, { isSecret = false } = {}) => {
      // Before the prompt is shown, because a secret may be pasted as soon as it appears.
      input?.setRawMode?.(isSecret);
      try {
        write(question);
        const line = await reader();
        if (line !== null) return line.trim();
        // The prompt got no answer, and so no line break that would end its line.
        if (!isSecret) write('\n');
        throw new UserError('Stopped before every prompt was answered. Nothing was written', 'Run init again.', 3);
      } finally {
        input?.setRawMode?.(false);
        if (isSecret) write('\n');
      }
    },
    line: async (what) => {
      const line = await reader();
      if (line === null || line.trim() === '')
        throw new UserError(`${what}: expected the secret as a line of standard input.`, null, 2);
      return line.trim();
    },
    [Symbol.dispose]: () => void input?.destroy(),
  };
}

/**
 * Reads line after line.
 *
 * @returns `null` at the end of the input, and if the person cancels
 */
function createLineReader(input: InputStream | undefined, signal: AbortSignal): () => Promise<string | null> {
  const decoder = new StringDecoder('utf8');
  let text = '';
  let hasEnded = input === undefined;
  let wake = (): void => {};
  const end = (): void => {
    hasEnded = true;
    wake();
  };
  input?.on('data', (chunk: Buffer | string) => {
    text += typeof chunk === 'string' ? chunk : decoder.write(chunk);
    wake();
  });
  input?.on('end', end);
  input?.on('error', end);
  signal.addEventListener('abort', end, { once: true });
  return async () => {
    for (;;) {
      const taken = takeLine(text, hasEnded);
      if (taken !== null) {
        text = taken.rest;
        return signal.aborted ? null : taken.line;
      }
      if (hasEnded || text.length > MAX_LINE) return null;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
}

/**
 * Removes the first line from the typed text.
 *
 * @returns `null` if there is no complete line yet; a line of `null` if the person cancels
 */
function takeLine(text: string, hasEnded: boolean): { readonly line: string | null; readonly rest: string } | null {
  const end = text.split('').findIndex((letter) => ENDS.has(letter));
  if (end === -1) return hasEnded && text !== '' ? { line: erased(text), rest: '' } : null;
  if (text[end] === INTERRUPT || text[end] === END) return { line: null, rest: '' };
  const rest = text.slice(text.startsWith('\r\n', end) ? end + 2 : end + 1);
  return { line: erased(text.slice(0, end)), rest };
}

/** Applies the backspaces in a typed line. */
function erased(typed: string): string {
  let line = '';
  for (const letter of typed) line = ERASE.has(letter) ? line.slice(0, -1) : line + letter;
  return line;
}

/** The most characters of a typed line. */
const MAX_LINE = 10_000;
