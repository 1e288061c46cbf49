#!/usr/bin/env node
/**
 * The process: argv, environment, signals, standard output, exit code. The only file that touches `process`.
 *
 * The program is loaded after the signal handlers are set: a signal while it loads stops it in good order.
 */
import { readFileSync } from 'node:fs';
import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import type { ProcessPorts } from './app/terminal.ts';
import { internalErrorText, UserError } from './core/faults.ts';
import { plainText } from './core/text.ts';

/** Signals this close to the first count as the same one: npm passes on signals that the terminal has already sent. */
const SAME_SIGNAL_MS = 1000;

const stop = new AbortController();
let stoppedAtMs: number | null = null;

function onSignal(name: NodeJS.Signals): void {
  const nowMs = performance.now();
  if (stoppedAtMs === null) {
    stoppedAtMs = nowMs;
    stop.abort(new Error(`Received ${name}`));
  } else if (nowMs - stoppedAtMs > SAME_SIGNAL_MS) {
    process.exit(stopExitCode);
  }
}

/** The exit code after a second signal: a one-off that was interrupted has unfinished work. */
let stopExitCode = 0;

// A reader that closes the pipe is no failure. Any other error, such as a full disk, is one.
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
  if (code === 'EPIPE') return;
  process.stderr.write(`tidemark: cannot write to standard output (${code ?? 'unknown'}).\n`);
  process.exit(1);
});
process.stderr.on('error', () => {});
process.umask(0o077);
process.on('SIGTERM', onSignal);
process.on('SIGINT', onSignal);

/**
 * V8 uses memory to gain speed, but a small machine has little of it. So both limits are below those of V8, which reads
 * them again whenever it decides how far the heap may grow.
 */
const YOUNG_BYTES = 5 * 1024 * 1024;
/**
 * How far the heap may grow beyond the memory in use. A daemon waits for its quota anyway; a one-off should finish
 * early. Collecting the whole heap takes 25 ms. With more than 120 percent a backfill takes more memory and hardly less
 * processor time.
 */
const GROWTH_PERCENT = { daemon: 40, oneOff: 120 };

setFlagsFromString(`--heap-growing-percent=${GROWTH_PERCENT.oneOff}`);
// A collection is so small that waking other threads for it takes longer than the work.
setFlagsFromString('--no-parallel-scavenge');
// The space for new objects grows with a collection, and doubles without a limit. Limited from the start, it would be
// far too small. A timer for this would wake an idle daemon more often than all its work does.
const growth = new PerformanceObserver(() => {
  const young = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space');
  if ((young?.space_size ?? 0) < YOUNG_BYTES) return;
  growth.disconnect();
  setFlagsFromString('--semi-space-growth-factor=1');
});
growth.observe({ entryTypes: ['gc'] });

const ports: ProcessPorts = {
  environment: process.env,
  forget: (names) => {
    for (const name of names) delete process.env[name];
  },
  runtime: () => ({
    node: process.version,
    libraries: { v8: process.versions.v8, openssl: process.versions.openssl, uv: process.versions.uv },
    architecture: `${process.platform} ${process.arch}`,
    memoryLimitBytes: process.constrainedMemory() || null,
  }),
  readFile: (path) => readFileSync(path, 'utf8'),
  get stdin() {
    return process.stdin;
  },
  print: (text) => void process.stdout.write(text),
  stdout: { isTTY: process.stdout.isTTY, columns: process.stdout.columns, write: writeOut },
  stderr: process.stderr,
  signal: stop.signal,
};

async function main(): Promise<number> {
  try {
    const { parseArguments } = await import('./cli/argv.ts');
    const command = parseArguments(process.argv.slice(2));
    if (command.mode === 'help') return printTo((await import('./cli/help.ts')).helpText(command.topic));
    if (command.mode === 'version') return printTo(`${(await import('./core/status.ts')).VERSION}\n`);
    if (command.mode === 'health')
      return await (await import('./commands/health/command.ts')).runHealthCommand(command, ports);
    const isDaemon = command.mode === 'daemon' || command.mode === 'demo';
    stopExitCode = isDaemon ? 0 : 3;
    if (isDaemon) {
      setFlagsFromString(`--heap-growing-percent=${GROWTH_PERCENT.daemon}`);
      // Saves a quarter of a daemon's memory. A one-off would need a quarter more processor time.
      setFlagsFromString('--optimize-for-size');
      // Code that runs a few times per minute is not worth optimizing, so it is optimized only after ten times as many
      // calls.
      setFlagsFromString('--invocation-count-for-maglev=4000');
      setFlagsFromString('--invocation-count-for-turbofan=30000');
      // Such code is not compiled by the baseline compiler either: that takes 6 to 11 MB more and saves a twentieth of
      // the processor time.
      setFlagsFromString('--no-sparkplug');
    } else {
      // Compiling functions into their callers takes 7 MB at the peak of a backfill and saves no processor time.
      setFlagsFromString('--no-maglev-inlining');
    }
    const { runCommand } = await import('./commands/run.ts');
    return await runCommand(command, ports);
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    process.stderr.write(`tidemark: ${error.message}\n`);
    return error.exitCode;
  }
}

/**
 * Writes a piece of output and waits until the reader has received it.
 *
 * @returns whether there is still a reader.
 */
async function writeOut(text: string): Promise<boolean> {
  return await new Promise((resolve) => {
    // Any other error of standard output ends the process, above.
    process.stdout.write(text, (error) => resolve(error === undefined || error === null));
  });
}

function printTo(text: string): number {
  process.stdout.write(text);
  return 0;
}

main().then(
  async (code) => {
    // A pipe takes output as fast as its reader reads. After a signal, the process does not wait for a reader.
    const stopped = new Promise((resolve) => stop.signal.addEventListener('abort', resolve, { once: true }));
    if (!stop.signal.aborted) await Promise.race([writeOut(''), stopped]);
    process.exit(code);
  },
  (error: unknown) => {
    const message = error instanceof Error ? error.message : 'unknown';
    process.stderr.write(`tidemark: ${internalErrorText(plainText(message))}\n`);
    process.exit(1);
  },
);
