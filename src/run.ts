/**
 * Runs one command of the program from its configuration to its exit code: opens in order, closes in reverse.
 *
 * The process itself (argv, signals, streams) is handed in, so that tests can run the same program.
 */
import { createHttpTransport } from './api/transport.ts';
import { openSync, type Sync, settingsOf } from './app.ts';
import type { Command } from './cli.ts';
import { type OnceSummary, runOnce } from './commands/once.ts';
import { type Config, loadConfig, loadDemoConfig } from './config.ts';
import { UserError } from './core/faults.ts';
import type { Scrub } from './observe/scrub.ts';
import { realClock, realRandom } from './real-clock.ts';
import { runDaemonCommand } from './run-daemon.ts';
import { openVoice, type ProcessPorts, repeatWhile, type Voice } from './voice.ts';

/** How often the progress is looked at. */
const LOOK_EVERY_MS = 1000;

/** Runs a command. @returns the exit code. @throws UserError with the exit code and what to do. */
export async function runCommand(
  command: Extract<Command, { mode: 'daemon' | 'once' | 'demo' }>,
  ports: ProcessPorts,
): Promise<number> {
  const { environment, readFile } = ports;
  const nowMs = realClock.nowMs();
  if (command.mode === 'demo') {
    const loaded = loadDemoConfig({ readFile, environment, nowMs });
    ports.forget(loaded.secretVariables);
    const { config, secrets } = loaded;
    const voice = openVoice({ ports, log: config.log, level: command.logLevel, secrets });
    // The simulator is loaded by the demo alone.
    const { runDemoCommand } = await import('./run-demo.ts');
    return await concealed(voice.scrub, runDemoCommand(config, voice, ports));
  }
  const { config, secrets, secretVariables } = loadConfig({ file: command.configFile, readFile, environment, nowMs });
  ports.forget(secretVariables);
  const known = [...secrets];
  const voice = openVoice({ ports, log: config.log, level: command.logLevel, secrets: known });
  if (command.mode === 'daemon') {
    return await concealed(voice.scrub, runDaemonCommand({ config, secrets: known, voice }, ports));
  }
  const summary = await concealed(voice.scrub, once(config, voice, ports));
  if (command.json) ports.print(`${voice.scrub(JSON.stringify(summary))}\n`);
  return summary.exit_code;
}

/** The last net below what is thrown: whoever shows it knows no secrets any more. */
async function concealed<T>(scrub: Scrub, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof UserError) throw new UserError(scrub(error.message), error.exitCode);
    throw new Error(scrub(error instanceof Error ? `${error.name}: ${error.message}` : 'unknown'));
  }
}

async function once(config: Config, voice: Voice, ports: ProcessPorts): Promise<OnceSummary> {
  const { url, key, ca, timeoutMs, concurrency } = config.api;
  const http = createHttpTransport({ timeoutMs, connections: concurrency, ...(ca === null ? {} : { ca }) });
  let sync: Sync | null = null;
  try {
    sync = openSync({
      ...settingsOf(config),
      observe: voice.observe,
      clock: realClock,
      random: realRandom,
      transport: http.transport,
      api: { ...config.api, url, key: () => key.reveal() },
      dataDir: config.dataDir,
    });
    const { report } = sync;
    const look = (): void => voice.show(report);
    const summary = await repeatWhile(runOnce(sync, ports.signal), look, LOOK_EVERY_MS).finally(voice.endProgress);
    tellEnd(summary, voice);
    return summary;
  } finally {
    sync?.close();
    await http.close();
  }
}

function tellEnd(summary: OnceSummary, { logger }: Voice): void {
  const { outcome, exit_code, devices, points_archived, gaps, streams_off, rejected_records } = summary;
  const quarantined = summary.destinations.reduce((sum, { quarantined }) => sum + quarantined, rejected_records);
  const facts = { devices, points: points_archived, gaps: gaps.length, exit_code };
  const all = streams_off.length === 0 ? 'all' : 'all that the key may read';
  if (exit_code === 0) logger.info(`${all} is in place`, facts);
  else logger.warn(`ended before it was complete: ${outcome}`, facts);
  if (quarantined > 0) logger.warn(`${quarantined} records or points are in quarantine, with their reasons`);
  for (const { name, pending_points, held } of summary.destinations) {
    if (pending_points === 0) continue;
    logger.warn(
      `${pending_points} points wait in the archive for ${name}: ${held ?? 'not delivered yet'}; run it again`,
    );
  }
  if (streams_off.length > 0) logger.warn(`not read, for lack of a scope: ${streams_off.join(', ')}`);
  const leftOut = gaps.filter(({ reason }) => reason === 'excluded').length;
  if (leftOut > 0) logger.info(`${leftOut} devices are left out by sync.include and sync.exclude`);
  const missed = gaps.filter(({ reason }) => reason !== 'excluded');
  for (const { device_id, from, to, reason } of missed.slice(0, GAPS_TOLD)) {
    logger.warn(`not held: ${device_id} from ${from} to ${to}: ${reason}`);
  }
  if (missed.length > GAPS_TOLD) logger.warn(`and ${missed.length - GAPS_TOLD} more gaps; --json lists them all`);
}

const GAPS_TOLD = 20;
