/**
 * Runs one command of the program from its configuration to its exit code: opens in order, closes in reverse.
 *
 * The process itself (argv, signals, streams) is handed in, so that tests can run the same program.
 */
import type { Command } from './cli.ts';
import { type Config, loadConfig, loadDemoConfig } from './config.ts';
import { UserError } from './core/faults.ts';
import type { Secret } from './core/secret.ts';
import { realClock } from './real-clock.ts';
import { runDaemonCommand } from './run-daemon.ts';
import { runOnceCommand } from './run-once.ts';
import { runPlanCommand } from './run-plan.ts';
import { openVoice, type ProcessPorts, type Voice } from './voice.ts';

type RunnableCommand = Extract<Command, { mode: 'daemon' | 'once' | 'demo' | 'plan' }>;

/** Runs a command. @returns the exit code. @throws UserError with the exit code and what to do. */
export async function runCommand(command: RunnableCommand, ports: ProcessPorts): Promise<number> {
  const { environment, readFile } = ports;
  const nowMs = realClock.nowMs();
  if (command.mode === 'demo') {
    const loaded = loadDemoConfig({ readFile, environment, nowMs });
    ports.forget(loaded.secretVariables);
    const { config, secrets } = loaded;
    const voice = openVoice({ ports, log: config.log, level: command.logLevel, secrets });
    // The simulator is loaded by the demo alone.
    const { runDemoCommand } = await import('./run-demo.ts');
    return await toldAtItsEnd({ voice, log: config.log }, runDemoCommand(config, voice, ports));
  }
  const { config, secrets, secretVariables } = loadConfig({ file: command.configFile, readFile, environment, nowMs });
  ports.forget(secretVariables);
  const known = [...secrets];
  const voice = openVoice({ ports, log: config.log, level: command.logLevel, secrets: known });
  return await toldAtItsEnd({ voice, log: config.log }, commandOf({ command, config, secrets: known, voice }, ports));
}

/** What the command does, once everything that it needs is known. */
async function commandOf(
  {
    command,
    config,
    secrets,
    voice,
  }: {
    command: Exclude<RunnableCommand, { mode: 'demo' }>;
    config: Config;
    secrets: Secret[];
    voice: Voice;
  },
  ports: ProcessPorts,
): Promise<number> {
  if (command.mode === 'daemon') return await runDaemonCommand({ config, secrets, voice }, ports);
  if (command.mode === 'plan') return await runPlanCommand({ command, config, voice }, ports);
  return await onceAndPrint(config, { voice, secrets, json: command.json }, ports);
}

/**
 * The last net below what is thrown: whoever shows it knows no secrets any more. Where the log is to be JSON, so is its
 * last line, which says what the program failed by; elsewhere it is left to the process, as plain text.
 */
async function toldAtItsEnd(
  { voice, log }: { voice: Voice; log: Config['log'] },
  work: Promise<number>,
): Promise<number> {
  try {
    return await work;
  } catch (error) {
    const known = error instanceof UserError;
    const words = known ? error.message : error instanceof Error ? `${error.name}: ${error.message}` : 'unknown';
    const exitCode = known ? error.exitCode : 1;
    if (log.format === 'json') {
      voice.logger.error(known ? words : `an error that should not happen: ${words}`, { exit_code: exitCode });
      return exitCode;
    }
    throw known ? new UserError(voice.scrub(words), exitCode) : new Error(voice.scrub(words));
  }
}

async function onceAndPrint(
  config: Config,
  { voice, secrets, json }: { voice: Voice; secrets: Secret[]; json: boolean },
  ports: ProcessPorts,
): Promise<number> {
  const summary = await runOnceCommand(config, { voice, secrets }, ports);
  if (json) ports.print(`${voice.scrub(JSON.stringify(summary))}\n`);
  return summary.exit_code;
}
