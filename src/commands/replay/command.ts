/**
 * `--replay`: without a daemon it sends the archived points itself. If a daemon is running, the daemon does it as a job
 * and the command follows. At the end it reports the points by outcome, problems first.
 */

import { realClock, realRandom } from '../../app/real-clock.ts';
import { createSecretReader } from '../../app/secret-files.ts';
import { createSyncOptions } from '../../app/settings.ts';
import { type ProcessPorts, repeatWhile, reportOdd, SHOW_EVERY_MS, type TerminalOutput } from '../../app/terminal.ts';
import type { ReplayCommand } from '../../cli/command.ts';
import type { StateConfig } from '../../config/config.ts';
import { InvalidText, wholeNumber } from '../../config/values.ts';
import { UserError } from '../../core/faults.ts';
import { STALLED_AFTER } from '../../core/retry.ts';
import { scrubbedJson } from '../../core/secret.ts';
import { END_OF_TIME } from '../../core/state/archive.ts';
import type { ReplayArgs } from '../../core/state/job-args.ts';
import {
  type ReplayReport,
  type ReplaySummary,
  readReplayReports,
  readReplaySummary,
} from '../../core/state/replay.ts';
import { counted, grouped, plainText, sentence } from '../../core/text.ts';
import { createDeliverer } from '../../delivery/deliver.ts';
import type { Logger } from '../../observe/log.ts';
import { openArchiveView } from '../../store/archive/reader.ts';
import { noState } from '../../store/open/read-only.ts';
import { openStore } from '../../store/store.ts';
import { type CommandRun, chosenDevices } from '../shared/command.ts';
import { doOrFollow } from '../shared/do-or-follow.ts';
import { readRange } from '../shared/options.ts';
import { openReplays, requireDestination } from './job.ts';

type ReplayRun = CommandRun<ReplayCommand>;

/**
 * Sends the archived points to a database again; the daemon does it if it is running.
 *
 * @returns the exit code.
 * @throws UserError with the exit code and the remedy.
 */
export async function runReplayCommand(run: ReplayRun, ports: ProcessPorts): Promise<number> {
  const { command, config, terminal } = run;
  const given = readArgs(command);
  const args = { ...given, devices: resolveDevices(config, command) };
  const show = createShow(terminal);
  const summary = await doOrFollow(
    {
      kind: 'replay',
      args,
      requestedBy: '--replay',
      alone: () => replay(run, { args, show }, ports),
      read: readReplaySummary,
      show: (progress) => {
        const reports = readReplayReports(progress);
        if (reports !== null) show(reports);
      },
    },
    { dataDir: config.dataDir, terminal },
    ports,
  );
  reportReplayEnd(summary, terminal.logger);
  if (command.json) ports.print(`${scrubbedJson(summary, terminal.scrub)}\n`);
  return summary.exit_code;
}

/** No database accepts more lines per second. */
const MAX_RATE = 100_000_000;

function readArgs({ destination, devices, from, to, maxRate }: ReplayCommand): ReplayArgs {
  const range = readRange({ from, to }, realClock.nowMs());
  const rate = maxRate === null ? null : wholeNumber(1, MAX_RATE)(maxRate);
  if (rate instanceof InvalidText) throw new UserError(`--max-rate: ${rate.reason} lines a second`, null, 2);
  return {
    destination,
    devices,
    typed: { from, to },
    from: String(range.from ?? 0n),
    to: String(range.to ?? END_OF_TIME),
    maxRate: rate,
  };
}

/**
 * Reports mistakes before anything starts.
 *
 * @returns the ids of the devices.
 * @throws UserError
 */
function resolveDevices(config: StateConfig, { devices, destination }: ReplayCommand): readonly string[] {
  const names = createSyncOptions(config).destinations.map(({ sink }) => sink.name);
  requireDestination(names, destination);
  const view = openArchiveView(config.dataDir);
  if (view === null) throw noState(config.dataDir);
  view.close();
  return chosenDevices(config.dataDir, devices, true);
}

async function replay(
  { config, secrets, terminal }: ReplayRun,
  { args, show }: { readonly args: ReplayArgs; readonly show: (reports: readonly ReplayReport[]) => void },
  ports: ProcessPorts,
): Promise<ReplaySummary> {
  const readSecret = createSecretReader({ readFile: ports.readFile, secrets, onUnusable: reportOdd(terminal) });
  const { destinations, archive } = createSyncOptions(config, readSecret);
  const opened = openStore(config.dataDir, { maxBytes: archive?.maxBytes ?? null, nowMs: realClock.nowMs });
  try {
    const { store, upgrade } = opened;
    if (upgrade !== null) terminal.observe({ type: 'state-upgraded', ...upgrade });
    const parts = { store, clock: realClock, random: realRandom, observe: terminal.observe };
    const wanted = destinations.filter(({ sink }) => args.destination === null || sink.name === args.destination);
    const deliverers = wanted.map((options) => createDeliverer(parts, options));
    const replays = openReplays({ ...parts, deliverers, isBeside: false }, args);
    const progress = (): void => show(replays.reports());
    return await repeatWhile(replays.run(ports.signal), progress, SHOW_EVERY_MS.work).finally(terminal.endProgress);
  } finally {
    opened.close();
  }
}

function createShow({ showWork }: TerminalOutput): (reports: readonly ReplayReport[]) => void {
  const beganMs = realClock.monoMs();
  let first: number | null = null;
  return (reports) => {
    const lines = reports.reduce((sum, report) => sum + report.lines, 0);
    first ??= lines;
    const perS = ((lines - first) / Math.max(realClock.monoMs() - beganMs, 1)) * 1000;
    showWork(() => ({ share: replayShare(reports), text: replayText(reports, perS) }));
  };
}

/** The progress, 0 to 1: by devices, over all destinations. */
function replayShare(reports: readonly ReplayReport[]): number | null {
  const sum = (pick: (report: ReplayReport) => number): number =>
    reports.reduce((total, each) => total + pick(each), 0);
  const devices = sum((report) => report.devices);
  return devices === 0 ? null : Math.min(1, sum((report) => report.devices_done) / devices);
}

/** The progress in one line, most important first, because a narrow terminal cuts off the end. */
function replayText(reports: readonly ReplayReport[], linesPerS: number): string {
  const texts = reports.map(({ name, lines, devices_done, devices, blocked_reason }) => {
    const where = reports.length > 1 ? `${name}: ` : '';
    const why = blocked_reason === null ? '' : `, blocked: ${plainText(blocked_reason, 40)}`;
    return `${where}${grouped(lines)} points sent, ${grouped(devices_done)}/${grouped(devices)} devices${why}`;
  });
  return `${texts.join('; ')}, ${grouped(Math.round(linesPerS))}/s`;
}

/** Logs the end of each replay, and the counts of points that were not accepted. */
function reportReplayEnd({ destinations }: ReplaySummary, { write }: Logger): void {
  const reportLine: Report = (isWell, message) => write({ type: 'replay-report', message, isWell });
  for (const report of destinations) {
    reportOutcome(report, reportLine);
    reportCounts(report, reportLine);
  }
}

/** Prints a line: whether the replay succeeded, and the text. */
type Report = (isWell: boolean, message: string) => void;

const CONTINUE_REMEDY = 'run the same command again to continue';

function reportOutcome({ name, outcome, lines, accepted, blocked_reason }: ReplayReport, report: Report): void {
  const sums = `${counted(lines, 'point')} sent to ${name}, ${grouped(accepted)} accepted`;
  if (outcome === 'interrupted') report(false, `Replay interrupted: ${sums}; ${CONTINUE_REMEDY}`);
  else if (outcome === 'stalled') {
    report(
      false,
      `Replay stopped after ${STALLED_AFTER} without progress: ${sums}. ${sentence(plainText(blocked_reason ?? ''))} Fix that, then ${CONTINUE_REMEDY}`,
    );
  } else if (lines > 0) report(true, sums);
  else report(false, `Nothing was sent to ${name}: the archive has no points of these devices in this range`);
}

function reportCounts({ name, refused, known, beyond, released }: ReplayReport, report: Report): void {
  if (refused > 0) report(false, `${name} rejected ${counted(refused, 'point')}; they are in quarantine now`);
  if (known > 0) report(false, `${name} rejected ${counted(known, 'point')} again; they were in quarantine before`);
  if (beyond > 0)
    report(false, `${counted(beyond, 'point')} older than the retention of ${name}; it does not keep them`);
  if (released > 0) report(true, `${name} accepted ${counted(released, 'point')} from quarantine`);
}
