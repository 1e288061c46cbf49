/**
 * The command `--backfill`. Alone it does the work itself. If a daemon holds the state, the command leaves a job for
 * the daemon and follows it.
 */

import { realClock } from '../../app/real-clock.ts';
import { type ProcessPorts, repeatWhile, SHOW_EVERY_MS } from '../../app/terminal.ts';
import { withSync } from '../../app/with-sync.ts';
import type { BackfillCommand } from '../../cli/command.ts';
import type { Config } from '../../config/config.ts';
import type { BackfillArgs } from '../../core/state/job-args.ts';
import { counted } from '../../core/text.ts';
import { DAY_NS, msToNs, parseTimestamp } from '../../core/time.ts';
import { type CommandRun, chosenDevices, printAnswer } from '../shared/command.ts';
import { doOrFollow, showProgress } from '../shared/do-or-follow.ts';
import { backfillArgs, readBackfillOptions } from '../shared/options.ts';
import { ratesOfState } from '../shared/state-report.ts';
import { type BackfillSummary, backfillEndText, readBackfillSummary } from './result.ts';
import { type BackfillRun, runBackfill } from './run.ts';

/** How long the command waits for a daemon that restarts. */
const RESTART_MS = 30_000;

/**
 * Runs the command and prints the result.
 *
 * @returns the exit code.
 * @throws UserError with the exit code and the remedy.
 */
export async function runBackfillCommand(
  parts: CommandRun<BackfillCommand, Config>,
  ports: ProcessPorts,
): Promise<number> {
  const { command, config, terminal } = parts;
  const options = readBackfillOptions(command, realClock.nowMs());
  const args = backfillArgs(options, chosenDevices(config.dataDir, command.devices, false), command);
  let isBeside = true;
  const runAlone = async (wanted: BackfillArgs): Promise<BackfillSummary> => {
    const summary = await alone(parts, wanted, ports);
    isBeside = false;
    return summary;
  };
  const request = async (wanted: BackfillArgs, onFound?: () => void): Promise<BackfillSummary> =>
    await doOrFollow(
      {
        kind: 'backfill',
        args: wanted,
        requestedBy: commandText(command, args),
        alone: () => runAlone(wanted),
        read: readBackfillSummary,
        show: showProgress(terminal),
        awaitMs: RESTART_MS,
        ...(onFound === undefined ? {} : { onFound }),
      },
      { dataDir: config.dataDir, terminal },
      ports,
    );
  const summary = await requestWholeRange(request, args);
  printAnswer({ command, terminal }, ports, { object: summary, text: () => backfillEndText(summary, { isBeside }) });
  return summary.exit_code;
}

/**
 * Requests a backfill. If there is an open job of an equal request, it may have begun long before: it ends at an
 * earlier time and does not include newer devices. So after its end the backfill is requested once more; a covered
 * range takes no request. A recheck would read everything again, so only a range of a day or more that follows that
 * job's range is requested.
 *
 * @param request requests the backfill, and calls `onFound` if there is such a job.
 * @returns the summary of that job if the request after it had nothing to read.
 */
export async function requestWholeRange(
  request: (wanted: BackfillArgs, onFound?: () => void) => Promise<BackfillSummary>,
  args: BackfillArgs,
): Promise<BackfillSummary> {
  let isFound = false;
  const found = await request(args, () => {
    isFound = true;
  });
  const rest = isFound && found.outcome !== 'interrupted' ? restAfter(found, args) : null;
  if (rest === null) return found;
  const last = await request(rest);
  return last.requests === 0 && last.exit_code === found.exit_code ? found : last;
}

/** The part of a request that is left after the job that its command has followed; `null` for nothing. */
function restAfter({ to }: BackfillSummary, args: BackfillArgs): BackfillArgs | null {
  if (args.recheck !== true) return args;
  const from = parseTimestamp(to);
  const end = args.to === null ? msToNs(realClock.nowMs()) : BigInt(args.to);
  return from === null || end - from < DAY_NS ? null : { ...args, from: String(from), typed: undefined };
}

/** Device ids that the text of a command shows. */
const IDS_SHOWN = 3;

/** The command for `--status` and the log. If it is typed again, it follows its job. */
function commandText({ from, to, finishBy, maxShare, recheck }: BackfillCommand, { devices }: BackfillArgs): string {
  const flags = { from, to, 'finish-by': finishBy, 'max-share': maxShare };
  const more = devices.length - IDS_SHOWN;
  return [
    '--backfill',
    ...(recheck ? ['--recheck'] : []),
    ...Object.entries(flags).flatMap(([flag, value]) => (value === null ? [] : [`--${flag} ${value}`])),
    ...devices.slice(0, IDS_SHOWN).map((id) => `--device ${id}`),
    ...(more > 0 ? [`and ${counted(more, 'more device')}`] : []),
  ].join(' ');
}

async function alone(
  parts: CommandRun<unknown, Config>,
  args: BackfillArgs,
  ports: ProcessPorts,
): Promise<BackfillSummary> {
  const { config, terminal } = parts;
  return await withSync(parts, ports, async (sync) => {
    let run: BackfillRun | null = null;
    const onStarted = (begun: BackfillRun): void => {
      run = begun;
    };
    const progress = (): void => {
      if (run !== null) terminal.show(run.progress);
    };
    const rates = ratesOfState(config.dataDir, sync.context.settings.filter);
    const work = runBackfill({ ...sync, rates, onStarted }, args, ports.signal);
    return await repeatWhile(work, progress, SHOW_EVERY_MS.figures).finally(terminal.endProgress);
  });
}
