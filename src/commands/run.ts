/**
 * The table of the commands, and how a command runs from its configuration to its exit code.
 *
 * The process itself (argv, signals, streams) is an argument, so that tests can run the same program.
 */

import { realClock } from '../app/real-clock.ts';
import { openTerminalOutput, type ProcessPorts } from '../app/terminal.ts';
import type { CheckCommand, Command } from '../cli/command.ts';
import { type Config, ConfigError, type ConfigInput, type Loaded, type StateConfig } from '../config/config.ts';
import { isApiGiven, loadConfig, loadDemoConfig, loadStateConfig } from '../config/load.ts';
import { mistakeText } from '../config/sources.ts';
import type { LogLevel } from '../core/events.ts';
import { UserError } from '../core/faults.ts';
import { counted, shortened } from '../core/text.ts';
import { createLogger, MAX_MESSAGE_LENGTH } from '../observe/log.ts';
import type { CommandRun } from './shared/command.ts';

type RunnableCommand = Exclude<Command, { mode: 'help' | 'version' | 'health' }>;
type FileCommand = Exclude<RunnableCommand, { mode: 'demo' | 'check' | 'init' }>;
type FileMode = FileCommand['mode'];
type CommandOf<M extends FileMode> = Extract<FileCommand, { mode: M }>;
type StateMode = keyof typeof ON_STATE;

/** Loads a command when it is needed, so that read-only commands start faster and use less memory. */
type Load<M extends FileMode, C> = () => Promise<Run<CommandOf<M>, C>>;
type Run<Given, C> = (run: CommandRun<Given, C>, ports: ProcessPorts) => number | Promise<number>;
type Loads<M extends FileMode, C> = { readonly [Each in M]: Load<Each, C> };

/** Commands that need the address and the key of the API. */
const WITH_API: Loads<'daemon' | 'once' | 'plan' | 'backfill', Config> = {
  daemon: async () => (await import('./daemon/command.ts')).runDaemonCommand,
  once: async () => (await import('./once/command.ts')).runOnceCommand,
  plan: async () => (await import('./plan/command.ts')).runPlanCommand,
  backfill: async () => (await import('./backfill/command.ts')).runBackfillCommand,
};

/** Commands that check, change or send the archived data. */
const ON_STATE: Loads<Exclude<FileMode, keyof typeof WITH_API>, StateConfig> = {
  status: async () => (await import('./status/command.ts')).runStatusCommand,
  verify: async () => (await import('./verify/command.ts')).runVerifyCommand,
  export: async () => (await import('./export/command.ts')).runExportCommand,
  replay: async () => (await import('./replay/command.ts')).runReplayCommand,
  quarantine: async () => (await import('./quarantine/command.ts')).runQuarantineCommand,
  backup: async () => (await import('./backup/command.ts')).runBackupCommand,
  forget: async () => (await import('./forget/command.ts')).runForgetCommand,
};

/** All commands, for a configuration that has the API. */
const ALL: Loads<FileMode, Config> = { ...ON_STATE, ...WITH_API };

/**
 * Runs a command.
 *
 * @returns the exit code.
 * @throws UserError with the exit code and the remedy.
 */
export async function runCommand(command: RunnableCommand, ports: ProcessPorts): Promise<number> {
  try {
    return await runConfigured(command, ports);
  } catch (error) {
    if (!(error instanceof ConfigError && isJsonLog(error.format, command, ports))) throw error;
    reportMistakes(error, ports);
    return error.exitCode;
  }
}

/** Whether the last line is JSON, like the log. A command that ends by itself prints it for a person or a script. */
function isJsonLog(
  format: Config['log']['format'],
  { mode }: Pick<RunnableCommand, 'mode'>,
  { stderr }: Pick<ProcessPorts, 'stderr'>,
): boolean {
  return format === 'json' || (format === 'auto' && mode === 'daemon' && stderr.isTTY !== true);
}

/** Reports the mistakes of the configuration: as JSON if the log will be JSON. No log is open yet. */
function reportMistakes({ mistakes, exitCode }: ConfigError, { stderr }: ProcessPorts): void {
  const logger = createLogger({ level: 'error', format: 'json', stream: stderr, secrets: [], clock: realClock });
  logger.write({
    type: 'configuration-invalid',
    message: mistakesText(mistakes.map(mistakeText)),
    mistakes: mistakes.length,
    exitCode,
  });
}

/** The log cuts a longer message; the words before the mistakes need the rest. */
const MAX_MISTAKES_LENGTH = MAX_MESSAGE_LENGTH - 'The configuration is invalid: '.length;

/** The mistakes for one line of the log: as many as fit, and the number of the others. */
function mistakesText([first = '', ...others]: readonly string[]): string {
  const more = (count: number): string =>
    count === 0 ? '' : `; and ${counted(count, 'more mistake')}; tidemark --check lists all`;
  let text = shortened(first, MAX_MISTAKES_LENGTH - more(others.length).length);
  for (const [index, other] of others.entries()) {
    const longer = `${text}; ${other}`;
    if (longer.length + more(others.length - index - 1).length > MAX_MISTAKES_LENGTH) {
      return `${text}${more(others.length - index)}`;
    }
    text = longer;
  }
  return text;
}

async function runConfigured(command: RunnableCommand, ports: ProcessPorts): Promise<number> {
  const { environment, readFile } = ports;
  const nowMs = realClock.nowMs();
  if (command.mode === 'demo') {
    const loaded = loadDemoConfig({ readFile, environment, nowMs });
    // Only the demo loads the simulator.
    const { runDemoCommand } = await import('./demo/command.ts');
    const run = begin(loaded, command, ports);
    return await withFinalReport(run, ports, () => runDemoCommand(run, ports));
  }
  if (command.mode === 'init') return await (await import('./init/command.ts')).runInitCommand(command, ports);
  const input = { file: command.configFile, readFile, environment, nowMs };
  if (command.mode === 'check') return await checkCommand(command, input, ports);
  if (command.mode === 'backfill' && command.dryRun) {
    const { runDryRun } = await import('./plan/command.ts');
    const run = begin(loadConfig(input), command, ports);
    return await withFinalReport(run, ports, () => runDryRun(run, ports));
  }
  return isOnState(command, input)
    ? await runLoaded(loadStateConfig(input), { mode: command.mode, command, loads: ON_STATE }, ports)
    : await runLoaded(loadConfig(input), { mode: command.mode, command, loads: ALL }, ports);
}

/**
 * A command that reads from the API again needs its key. Sending again works without the key, but does more with it.
 */
function isOnState(command: FileCommand, input: ConfigInput): command is CommandOf<StateMode> {
  if (command.mode !== 'verify') return Object.hasOwn(ON_STATE, command.mode);
  return command.sample === null && !(command.repair && isApiGiven(input));
}

async function runLoaded<M extends FileMode, C extends StateConfig>(
  loaded: Loaded<C>,
  { mode, command, loads }: { readonly mode: M; readonly command: CommandOf<M>; readonly loads: Loads<M, C> },
  ports: ProcessPorts,
): Promise<number> {
  const begun = begin(loaded, command, ports);
  const isSync = mode === 'daemon' || mode === 'once';
  for (const warning of isSync ? loaded.warnings : [])
    begun.terminal.logger.write({ type: 'configuration-odd', message: mistakeText(warning) });
  const run = await loads[mode]();
  return await withFinalReport(begun, ports, () => run(begun, ports));
}

/** Only `--check` continues without a usable configuration: it reports the mistakes. */
async function checkCommand(command: CheckCommand, input: ConfigInput, ports: ProcessPorts): Promise<number> {
  const [{ runCheckCommand }, { readForCheck }] = await Promise.all([
    import('./check/command.ts'),
    import('./check/config.ts'),
  ]);
  const { read, ...loaded } = readForCheck(input);
  const run = begin(loaded, command, ports);
  const { secretVariables, warnings } = loaded;
  return await withFinalReport(run, ports, () =>
    runCheckCommand({ command, read, secretVariables, warnings, terminal: run.terminal }, ports),
  );
}

/** Opens the log of a command whose configuration was read. */
function begin<Given extends { readonly logLevel: LogLevel | null }, C extends Pick<Config, 'log'>>(
  { config, secrets, secretVariables }: Loaded<C>,
  command: Given,
  ports: ProcessPorts,
): CommandRun<Given, C> {
  ports.forget(secretVariables);
  const known = [...secrets];
  const terminal = openTerminalOutput({ ports, log: config.log, level: command.logLevel, secrets: known });
  return { command, config, secrets: known, terminal };
}

/**
 * The last error handler. After it there are no more secrets to remove. If the log is JSON, the last line is JSON too
 * and contains the error; otherwise the process prints the error as plain text.
 */
async function withFinalReport(
  { command, terminal, config: { log } }: CommandRun<Pick<RunnableCommand, 'mode'>, Pick<Config, 'log'>>,
  ports: ProcessPorts,
  work: () => number | Promise<number>,
): Promise<number> {
  try {
    return await work();
  } catch (error) {
    const known = error instanceof UserError;
    const message = known ? error.message : error instanceof Error ? `${error.name}: ${error.message}` : 'unknown';
    const exitCode = known ? error.exitCode : 1;
    if (isJsonLog(log.format, command, ports)) {
      terminal.logger.write({ type: 'failed', message, isKnown: known, exitCode });
      return exitCode;
    }
    throw known ? new UserError(terminal.scrub(message), null, exitCode) : new Error(terminal.scrub(message));
  }
}
