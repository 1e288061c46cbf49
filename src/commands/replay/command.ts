/**
 * `--replay` put together: alone it sends the archive itself; where a daemon holds the state, that does it and this
 * follows.
 */

import { realClock, realRandom } from '../../app/real-clock.ts';
import { createSecretReader } from '../../app/secrets.ts';
import { settingsOf } from '../../app/settings.ts';
import { type ProcessPorts, repeatWhile, type Voice } from '../../app/terminal.ts';
import type { ReplayCommand } from '../../cli/command.ts';
import type { StateConfig } from '../../config/config.ts';
import { count, Unfit } from '../../config/values.ts';
import { UserError } from '../../core/faults.ts';
import type { Secret } from '../../core/secret.ts';
import { END_OF_TIME } from '../../core/state/archive.ts';
import type { ReplayArgs } from '../../core/state/job-args.ts';
import {
  type ReplayReport,
  type ReplaySummary,
  readReplayReports,
  readReplaySummary,
} from '../../core/state/replay.ts';
import { createDeliverer } from '../../delivery/deliver.ts';
import { openArchiveView } from '../../store/archive-view.ts';
import { openStore } from '../../store/store.ts';
import { noState, requireKnown } from '../export/command.ts';
import { doOrFollow } from '../shared/do-or-follow.ts';
import { readSpan } from '../shared/range.ts';
import { openReplays, requireDestination } from './replay.ts';
import { replayShare, replayWords, tellReplayEnd } from './text.ts';

interface ReplayRun {
  readonly command: ReplayCommand;
  readonly config: StateConfig;
  readonly secrets: Secret[];
  readonly voice: Voice;
}

const LOOK_EVERY_MS = 500;

/** Runs it. @returns the exit code. @throws UserError with the exit code and what to do. */
export async function runReplayCommand(run: ReplayRun, ports: ProcessPorts): Promise<number> {
  const { command, config, voice } = run;
  const args = readArgs(command);
  lookFirst(config, command);
  const show = createShow(voice);
  const summary = await doOrFollow(
    {
      kind: 'replay',
      args,
      askedBy: '--replay',
      alone: () => replay(run, { args, show }, ports),
      read: readReplaySummary,
      show: (progress) => {
        const reports = readReplayReports(progress);
        if (reports !== null) show(reports);
      },
    },
    { dataDir: config.dataDir, voice },
    ports,
  );
  tellReplayEnd(summary, voice.logger);
  if (command.json) ports.print(`${voice.scrub(JSON.stringify(summary))}\n`);
  return summary.exit_code;
}

/** More a second is no database that there is. */
const MAX_RATE = 100_000_000;

function readArgs({ destination, devices, from, to, maxRate }: ReplayCommand): ReplayArgs {
  const span = readSpan({ from, to }, realClock.nowMs());
  const rate = maxRate === null ? null : count(1, MAX_RATE)(maxRate);
  if (rate instanceof Unfit) throw new UserError(`--max-rate: ${rate.reason} lines a second`, 2);
  return {
    destination,
    devices,
    typed: { from, to },
    from: String(span.from ?? 0n),
    to: String(span.to ?? END_OF_TIME),
    maxRate: rate,
  };
}

/** Mistakes are told before anything is begun. @throws UserError */
function lookFirst(config: StateConfig, { devices, destination }: ReplayCommand): void {
  const names = settingsOf(config).destinations.map(({ sink }) => sink.name);
  requireDestination(names, destination);
  const view = openArchiveView(config.dataDir);
  if (view === null) throw noState(config.dataDir);
  try {
    requireKnown(view, devices);
  } finally {
    view.close();
  }
}

async function replay(
  { config, secrets, voice }: ReplayRun,
  { args, show }: { readonly args: ReplayArgs; readonly show: (reports: readonly ReplayReport[]) => void },
  ports: ProcessPorts,
): Promise<ReplaySummary> {
  const { destinations, archive } = settingsOf(config, createSecretReader({ readFile: ports.readFile, secrets }));
  const opened = openStore(config.dataDir, { maxBytes: archive?.maxBytes ?? null, nowMs: realClock.nowMs });
  try {
    const { store } = opened;
    const parts = { store, clock: realClock, random: realRandom, observe: voice.observe };
    const wanted = destinations.filter(({ sink }) => args.destination === null || sink.name === args.destination);
    const deliverers = wanted.map((options) => createDeliverer(parts, options));
    const replays = openReplays({ ...parts, deliverers, isBeside: false }, args);
    const look = (): void => show(replays.reports());
    return await repeatWhile(replays.run(ports.signal), look, LOOK_EVERY_MS).finally(voice.endProgress);
  } finally {
    opened.close();
  }
}

function createShow({ showWork }: Voice): (reports: readonly ReplayReport[]) => void {
  const beganMs = realClock.monoMs();
  let first: number | null = null;
  return (reports) => {
    const lines = reports.reduce((sum, report) => sum + report.lines, 0);
    first ??= lines;
    const perS = ((lines - first) / Math.max(realClock.monoMs() - beganMs, 1)) * 1000;
    showWork(() => ({ share: replayShare(reports), words: replayWords(reports, perS) }));
  };
}
