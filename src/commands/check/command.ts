/**
 * `--check` put together: configuration, state, API and destinations, one after the other, each as far as the one before
 * allows it.
 *
 * Every request to the API is booked in the state first, so that it counts in every later run; where there is no state
 * yet, one is made for that, and it stays. Beside a daemon that one asks (`commands/check/job.ts`).
 */

import { realClock } from '../../app/real-clock.ts';
import type { ProcessPorts, Voice } from '../../app/terminal.ts';
import { VERSION } from '../../app/version.ts';
import type { CheckCommand } from '../../cli/command.ts';
import type { Config, ConfigInput, Loaded, StateConfig } from '../../config/config.ts';
import { type ConfigTold, tellConfig } from '../../config/describe.ts';
import { ConfigError, DEFAULT_FILE, loadConfig, loadStateConfig } from '../../config/load.ts';
import { inUnits } from '../../core/archive-room.ts';
import { type ApiFindings, type CheckLine, checkReport, createNotes, inTwo } from '../../core/check.ts';
import { UserError } from '../../core/faults.ts';
import type { DestinationKind } from '../../core/lines/dialect.ts';
import { msToNs, nsToMs } from '../../core/time.ts';
import { probeDestination } from '../../influx/probe.ts';
import { wantedFrom } from '../../ingest/horizon.ts';
import { inspectState, isStateHeld, stateBytes } from '../../store/look/inspect.ts';
import { createDisk, lookAtPlace, modeOf } from '../../store/look/place.ts';
import { requireNewFile } from '../../store/open/new-file.ts';
import type { BundleParts } from './bundle.ts';
import { configLines } from './config.ts';
import { type CheckedDestination, destinationLines } from './destination.ts';
import { apiLines } from './run-api.ts';
import { canBeWritten, type StateLook, stateLines } from './state.ts';
import { checkText } from './text.ts';

/** The configuration as far as it can be read. */
export interface ReadForCheck {
  /** With the API; `null` where it cannot be used. */
  readonly config: Config | null;
  /** What the rest goes by; `null` where not even that can be used. */
  readonly state: Config | StateConfig | null;
  readonly mistakes: readonly string[];
  /** As it may be shown to others, whether it can be used or not. */
  readonly told: ConfigTold;
}

/** Reads the configuration; one that cannot be used is no error here. */
export function readForCheck(input: ConfigInput): Loaded<Pick<Config, 'log'>> & { readonly read: ReadForCheck } {
  // Before secrets are taken out of the environment: what is not known to be one could be shown.
  const told = tellConfig(input);
  const whole = tryTo(() => loadConfig(input));
  if (!(whole instanceof ConfigError)) {
    return { ...whole, read: { config: whole.config, state: whole.config, mistakes: [], told } };
  }
  const { mistakes } = whole;
  const part = tryTo(() => loadStateConfig(input));
  if (!(part instanceof ConfigError)) return { ...part, read: { config: null, state: part.config, mistakes, told } };
  const log = { level: 'info', format: 'auto' } as const;
  return { config: { log }, secrets: [], secretVariables: [], read: { config: null, state: null, mistakes, told } };
}

function tryTo<T>(work: () => T): T | ConfigError {
  try {
    return work();
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
}

export interface CheckParts {
  readonly command: CheckCommand;
  readonly read: ReadForCheck;
  readonly secretVariables: readonly string[];
  readonly voice: Voice;
}

/** Checks all, prints it, and gives the exit code. @throws UserError (exit 3) where it is told to stop. */
export async function runCheckCommand(parts: CheckParts, ports: ProcessPorts): Promise<number> {
  const { command, voice } = parts;
  if (command.bundle !== null) requireNewFile('--bundle', command.bundle);
  try {
    const { requests, checks } = await bundledWhereItFails(parts, ports);
    const report = checkReport(VERSION, requests, checks);
    // Before the report: on a terminal its first line would stand behind the hint.
    voice.endProgress();
    ports.print(voice.scrub(command.json ? `${JSON.stringify(report)}\n` : checkText(report)));
    await bundled(parts, report, ports);
    return report.exit_code;
  } catch (error) {
    if (ports.signal.aborted) throw new UserError('Stopped before everything was looked at. Run it again.', 3);
    throw error;
  } finally {
    voice.endProgress();
  }
}

/** A check that fails where it should not is what a bundle is needed for most: then it is written, and says so. */
async function bundledWhereItFails(parts: CheckParts, ports: ProcessPorts): Promise<ApiFindings> {
  try {
    return await checkAll(parts, ports.signal);
  } catch (error) {
    if (!ports.signal.aborted && !(error instanceof UserError)) {
      await bundled(parts, { unavailable: error instanceof Error ? error.message : 'unknown' }, ports);
    }
    throw error;
  }
}

async function bundled(parts: CheckParts, check: BundleParts['check'], ports: ProcessPorts): Promise<void> {
  const { bundle } = parts.command;
  if (bundle === null) return;
  const { writeSupportBundle } = await import('./bundle.ts');
  await writeSupportBundle(bundle, { ...parts, check }, ports);
}

async function checkAll(parts: CheckParts, signal: AbortSignal): Promise<ApiFindings> {
  const { command, read, secretVariables, voice } = parts;
  const { config, state, mistakes } = read;
  const file = command.configFile ?? (modeOf(DEFAULT_FILE) === null ? null : DEFAULT_FILE);
  const checks: CheckLine[] = configLines({ file, mistakes, config: state, secretVariables });
  if (state === null) return { requests: 0, checks };
  voice.hint(`looking at the state (${inUnits(stateBytes(state.dataDir))}) …`);
  const look = lookAt(state.dataDir);
  const hasDestinations = state.influx !== null || state.destinations.length > 0;
  const { maxBytes } = state.archive;
  checks.push(...stateLines(look, { maxBytes, hasDestinations, workspaceId: state.workspaceId }));
  let requests = 0;
  if (config !== null) {
    const found = await apiLines({ config, voice, canBook: canBeWritten(look) }, signal);
    requests = found.requests;
    checks.push(...found.checks);
  }
  checks.push(...(await askDestinations(parts, state, signal)));
  return { requests, checks };
}

function lookAt(dataDir: string): StateLook {
  const place = lookAtPlace(dataDir);
  return {
    place,
    found: orTrouble(() => inspectState(dataDir)),
    held: orTrouble(() => isStateHeld(dataDir)),
    diskFreeBytes: place.nearest === null ? null : createDisk(place.nearest.path).freeBytes(),
  };
}

function orTrouble<T>(look: () => T): T | { readonly trouble: string } {
  try {
    return look();
  } catch (error) {
    if (error instanceof UserError) return { trouble: error.message };
    throw error;
  }
}

const NO_DESTINATION: CheckLine = {
  area: 'destination',
  destination: null,
  name: 'none',
  status: 'ok',
  message: 'no database is configured: the archive alone is filled, up to archive.max_size',
  remedy: null,
  exit_code: 0,
};

async function askDestinations(
  { command, voice }: CheckParts,
  config: Config | StateConfig,
  signal: AbortSignal,
): Promise<CheckLine[]> {
  const databases = [...(config.influx === null ? [] : [{ name: 'influx', ...config.influx }]), ...config.destinations];
  const nowMs = realClock.nowMs();
  const historyMs = nowMs - nsToMs(wantedFrom(config.sync, nowMs));
  const lines: CheckLine[] = [];
  for (const database of databases) {
    voice.hint(`asking ${database.name} …`);
    const to: CheckedDestination = { ...database, historyMs };
    const point = command.writeProbe ? probePoint(config.workspaceId, nowMs) : null;
    const options = { ...database, ca: database.ca ?? undefined, proxies: config.proxies, point };
    lines.push(...(await linesOf(to, options, signal)));
  }
  return databases.length === 0 ? [NO_DESTINATION] : lines;
}

async function linesOf(
  to: CheckedDestination,
  options: Parameters<typeof probeDestination>[0],
  signal: AbortSignal,
): Promise<readonly CheckLine[]> {
  try {
    return destinationLines(to, await probeDestination(options, signal));
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    const exitCode = error.exitCode === 78 ? 78 : 1;
    const notes = createNotes('destination', to.name);
    return [notes.fail('asking', { ...inTwo(error.message), exitCode })];
  }
}

/** A point of a measurement of its own, which no dashboard of ours reads. */
function probePoint(workspace: string | null, nowMs: number): Readonly<Record<DestinationKind, string>> {
  const tag = workspace !== null && /^[\w.-]+$/.test(workspace) ? `,workspace_id=${workspace}` : '';
  const line = `tidemark_probe${tag} value=1`;
  return { influxdb: `${line} ${msToNs(nowMs)}`, victoriametrics: `${line} ${Math.floor(nowMs)}` };
}
