/**
 * Runs one command of the program from its configuration to its exit code: opens in order, closes in reverse.
 *
 * The process itself (argv, signals, streams) is handed in, so that tests can run the same program.
 */

import { realClock } from '../app/real-clock.ts';
import { openVoice, type ProcessPorts, type Voice } from '../app/terminal.ts';
import type { CheckCommand, Command, LogLevel } from '../cli/command.ts';
import type { Config, ConfigInput, Loaded, StateConfig } from '../config/config.ts';
import { ConfigError, isApiGiven, loadConfig, loadDemoConfig, loadStateConfig } from '../config/load.ts';
import { UserError } from '../core/faults.ts';
import type { Secret } from '../core/secret.ts';
import { createLogger } from '../observe/log.ts';

type RunnableCommand = Exclude<Command, { mode: 'help' | 'version' | 'health' }>;
type FileCommand = Exclude<RunnableCommand, { mode: 'demo' | 'check' }>;
type ApiCommand = Extract<FileCommand, { mode: 'daemon' | 'once' | 'plan' | 'backfill' }>;
type StateCommand = Exclude<FileCommand, ApiCommand>;

/** What a command works with, once everything that it needs is known. `secrets` grows as secrets are exchanged. */
export interface CommandParts<C = Config> {
  readonly config: C;
  readonly secrets: Secret[];
  readonly voice: Voice;
}

/** Runs a command. @returns the exit code. @throws UserError with the exit code and what to do. */
export async function runCommand(command: RunnableCommand, ports: ProcessPorts): Promise<number> {
  try {
    return await runConfigured(command, ports);
  } catch (error) {
    if (!(error instanceof ConfigError && error.isJson)) throw error;
    tellMistakes(error, ports);
    return error.exitCode;
  }
}

/** Where the log is to be JSON, so are the mistakes of the configuration; no log is open yet. */
function tellMistakes({ mistakes, exitCode }: ConfigError, { stderr }: ProcessPorts): void {
  const logger = createLogger({ level: 'error', format: 'json', stream: stderr, secrets: [], clock: realClock });
  logger.say({
    type: 'configuration-invalid',
    message: mistakes.join('; '),
    mistakes: mistakes.length,
    exitCode,
  });
}

async function runConfigured(command: RunnableCommand, ports: ProcessPorts): Promise<number> {
  const { environment, readFile } = ports;
  const nowMs = realClock.nowMs();
  if (command.mode === 'demo') {
    const loaded = loadDemoConfig({ readFile, environment, nowMs });
    // The simulator is loaded by the demo alone.
    const { runDemoCommand } = await import('./demo/command.ts');
    const parts = begin(loaded, command, ports);
    return await toldAtItsEnd(parts, runDemoCommand(parts.config, parts.voice, ports));
  }
  const input = { file: command.configFile, readFile, environment, nowMs };
  if (command.mode === 'check') return await checkCommand(command, input, ports);
  if (asksTheApi(command)) {
    const parts = begin(loadConfig(input), command, ports);
    return await toldAtItsEnd(parts, runWithApi(command, parts, ports));
  }
  // What reads again from the API needs its key; sending again does without, and does more with it.
  if (command.mode === 'verify' && (command.sample !== null || (command.repair && isApiGiven(input)))) {
    const parts = begin(loadConfig(input), command, ports);
    return await toldAtItsEnd(parts, verify(command, parts, { api: parts.config, ports }));
  }
  const parts = begin(loadStateConfig(input), command, ports);
  return await toldAtItsEnd(parts, runOnState(command, parts, ports));
}

/** `--check` alone goes on where the configuration cannot be used: to tell of it. */
async function checkCommand(command: CheckCommand, input: ConfigInput, ports: ProcessPorts): Promise<number> {
  const { readForCheck, runCheckCommand } = await import('./check/command.ts');
  const { read, ...loaded } = readForCheck(input);
  const parts = begin(loaded, command, ports);
  const { secretVariables } = loaded;
  return await toldAtItsEnd(parts, runCheckCommand({ command, read, secretVariables, voice: parts.voice }, ports));
}

/** Opens the voice of a command whose configuration is read. */
function begin<C extends Pick<Config, 'log'>>(
  { config, secrets, secretVariables }: Loaded<C>,
  command: { readonly logLevel: LogLevel | null },
  ports: ProcessPorts,
): CommandParts<C> {
  ports.forget(secretVariables);
  const known = [...secrets];
  return {
    config,
    secrets: known,
    voice: openVoice({ ports, log: config.log, level: command.logLevel, secrets: known }),
  };
}

/** Whether a command needs the API's address and key; the others only look at what is held, or send it. */
function asksTheApi(command: FileCommand): command is ApiCommand {
  return API_MODES.has(command.mode);
}

const API_MODES: ReadonlySet<FileCommand['mode']> = new Set(['daemon', 'once', 'plan', 'backfill']);

/** Each command is loaded when it is asked for: whoever only looks starts faster, and smaller. */
async function runWithApi(command: ApiCommand, parts: CommandParts, ports: ProcessPorts): Promise<number> {
  if (command.mode === 'daemon') return await (await import('./daemon/command.ts')).runDaemonCommand(parts, ports);
  if (command.mode === 'once') return await onceAndPrint(parts, command, ports);
  if (command.mode === 'plan') {
    return await (await import('./plan/command.ts')).runPlanCommand({ command, ...parts }, ports);
  }
  return await (await import('./backfill/command.ts')).runBackfillCommand({ command, ...parts }, ports);
}

/** Commands on what is held. */
async function runOnState(
  command: StateCommand,
  parts: CommandParts<StateConfig>,
  ports: ProcessPorts,
): Promise<number> {
  if (command.mode === 'status') {
    return await (await import('./status/command.ts')).runStatusCommand({ command, ...parts }, ports);
  }
  if (command.mode === 'verify') return await verify(command, parts, { api: null, ports });
  if (command.mode === 'export') {
    return await (await import('./export/command.ts')).runExportCommand({ command, ...parts }, ports);
  }
  if (command.mode === 'replay') {
    return await (await import('./replay/command.ts')).runReplayCommand({ command, ...parts }, ports);
  }
  if (command.mode === 'quarantine') {
    return await (await import('./quarantine/command.ts')).runQuarantineCommand({ command, ...parts }, ports);
  }
  if (command.mode === 'backup') {
    return await (await import('./backup/command.ts')).runBackupCommand({ command, ...parts }, ports);
  }
  return await (await import('./forget/command.ts')).runForgetCommand({ command, ...parts }, ports);
}

async function verify(
  command: Extract<Command, { mode: 'verify' }>,
  parts: CommandParts<StateConfig>,
  { api, ports }: { readonly api: Config | null; readonly ports: ProcessPorts },
): Promise<number> {
  const { runVerifyCommand } = await import('./verify/command.ts');
  return await runVerifyCommand({ command, ...parts, api }, ports);
}

/**
 * The last net below what is thrown: whoever shows it knows no secrets any more. Where the log is to be JSON, so is its
 * last line, which says what the program failed by; elsewhere it is left to the process, as plain text.
 */
async function toldAtItsEnd(
  { voice, config: { log } }: CommandParts<Pick<Config, 'log'>>,
  work: Promise<number>,
): Promise<number> {
  try {
    return await work;
  } catch (error) {
    const known = error instanceof UserError;
    const words = known ? error.message : error instanceof Error ? `${error.name}: ${error.message}` : 'unknown';
    const exitCode = known ? error.exitCode : 1;
    if (log.format === 'json') {
      voice.logger.say({ type: 'failed', message: words, isKnown: known, exitCode });
      return exitCode;
    }
    throw known ? new UserError(voice.scrub(words), exitCode) : new Error(voice.scrub(words));
  }
}

async function onceAndPrint(
  { config, voice, secrets }: CommandParts,
  { json }: { readonly json: boolean },
  ports: ProcessPorts,
): Promise<number> {
  const { runOnceCommand } = await import('./once/command.ts');
  const summary = await runOnceCommand(config, { voice, secrets }, ports);
  if (json) ports.print(`${voice.scrub(JSON.stringify(summary))}\n`);
  return summary.exit_code;
}
