/**
 * How a command speaks to people: the log, and the progress of long work, both on standard error.
 */
import type { Config } from '../config/config.ts';
import { repeat } from '../core/async.ts';
import type { Observe } from '../core/events.ts';
import type { Secret } from '../core/secret.ts';
import type { ProgressReport } from '../core/status.ts';
import { plainText } from '../core/text.ts';
import { createLogger, type Logger, type LogStream, logEvents } from '../observe/log.ts';
import {
  createProgress,
  createTerminalLine,
  createWorkProgress,
  type ProgressFacts,
  type WorkFacts,
} from '../observe/progress.ts';
import { createScrub, type Scrub } from '../observe/scrub.ts';
import { realClock } from './real-clock.ts';

/** The process, as a command sees it. */
export interface ProcessPorts {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Takes variables that held secrets out of the environment. */
  readonly forget: (names: readonly string[]) => void;
  /** What the program runs on, for a support bundle. */
  readonly runtime?: () => RuntimeFacts;
  readonly readFile: (path: string) => string;
  /** Writes to standard output: what a command was asked for. */
  readonly print: (text: string) => void;
  /** Standard output for what is long and comes piece by piece. */
  readonly stdout: OutputStream;
  readonly stderr: LogStream & { readonly columns?: number };
  /** Aborts when the process is told to stop. */
  readonly signal: AbortSignal;
}

export interface RuntimeFacts {
  readonly node: string;
  readonly libraries: Readonly<Record<string, string | undefined>>;
  readonly architecture: string;
  /** What the container may take; `null` where nothing limits it. */
  readonly memoryLimitBytes: number | null;
}

/** Where pieces are written, each once whoever reads has room for it. */
interface OutputStream {
  readonly isTTY: boolean;
  /** Resolves when the next piece may come. @returns whether anybody reads on. */
  write(text: string): Promise<boolean>;
}

export interface TerminalOutput {
  readonly logger: Logger;
  readonly observe: Observe;
  /** Takes every secret out of a text that goes another way than through the log. */
  readonly scrub: Scrub;
  /** Shows how far the work is, if it is time to; only then the report is asked for. */
  show(report: () => ProgressReport): void;
  /** Says on a terminal what is under way, in words of its own; elsewhere nothing. @returns whether it is a terminal. */
  hint(text: string): boolean;
  /** Shows how far other long work is: a bar on a terminal, a line a minute in the log. Cheap to be called often. */
  showWork(look: () => WorkFacts): void;
  /** Takes progress and hint away. */
  endProgress(): void;
}

/** A report is a look at every device: made no more often than it takes. */
const LOOK_FOR_TERMINAL_MS = 1000;
const LOOK_FOR_LOG_MS = 5000;

/** Opens the log and the progress; on a terminal the progress is one line below the log. */
export function openTerminalOutput(options: {
  readonly ports: ProcessPorts;
  readonly log: Config['log'];
  /** What the command line says of the level. */
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
  });
  const everyMs = line === null ? LOOK_FOR_LOG_MS : LOOK_FOR_TERMINAL_MS;
  let dueMs = Number.NEGATIVE_INFINITY;
  const target = line ?? ((message: string) => logger.say({ type: 'progress', message }));
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
    showWork: (look) => showWork(look, realClock.monoMs()),
    endProgress: progress.end,
  };
}

function progressFacts({ totals, destinations, allowance, eta = null, waits = null }: ProgressReport): ProgressFacts {
  const sum = (of: (destination: ProgressReport['destinations'][number]) => number): number =>
    destinations.reduce((total, destination) => total + of(destination), 0);
  const waitMs =
    allowance.waiting_until === null ? 0 : Math.max(0, Date.parse(allowance.waiting_until) - realClock.nowMs());
  return {
    devicesDone: totals.devices_complete,
    devicesTotal: totals.devices,
    readings: totals.archived_readings,
    pointsDelivered: sum(({ delivered_points }) => delivered_points ?? 0),
    pointsPending: sum(({ pending_points }) => pending_points),
    requests: totals.requests,
    coveredShare: totals.covered_share,
    eta: eta === null ? null : { ms: eta.seconds * 1000, basis: eta.basis },
    waitsFor: waits === null ? null : plainText(waits),
    // The even pace is no waiting that anybody needs to know of.
    waitMs: waitMs > REPORTED_FROM_MS ? waitMs : null,
  };
}

const REPORTED_FROM_MS = 3000;

/** Calls `look` now and again while `work` is under way; looks at the clock only through timers of the real clock. */
export async function repeatWhile<T>(work: Promise<T>, look: () => void, everyMs: number): Promise<T> {
  const stop = new AbortController();
  const step = (): number => {
    look();
    return everyMs;
  };
  const looking = realClock.sleep(everyMs, stop.signal).then(() => repeat(realClock, step, stop.signal));
  try {
    return await Promise.race([work, looking]);
  } finally {
    stop.abort();
    await looking.catch(() => {});
  }
}
