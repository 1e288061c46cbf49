/**
 * `--backfill` put together: what it would cost; alone the work itself; where a daemon holds the state, that does it and
 * this follows.
 */

import { realClock } from '../../app/real-clock.ts';
import { type ProcessPorts, repeatWhile } from '../../app/terminal.ts';
import { withSync } from '../../app/with-sync.ts';
import type { BackfillCommand } from '../../cli/command.ts';
import type { BackfillArgs } from '../../core/state/job-args.ts';
import { costOf } from '../plan/command.ts';
import { backfillText } from '../plan/text.ts';
import type { CommandParts } from '../run.ts';
import { argsOf, readBackfillOptions } from '../shared/backfill-options.ts';
import { ratesOfState } from '../shared/backfill-rates.ts';
import { doOrFollow, showProgress } from '../shared/do-or-follow.ts';
import { runBackfill } from './backfill.ts';
import { type BackfillSummary, readBackfillSummary } from './summary.ts';
import { backfillEndText } from './text.ts';
import type { BackfillRun } from './work.ts';

/** How often the progress is looked at. */
const LOOK_EVERY_MS = 1000;

/** For so long a daemon that is restarted is waited for. */
const RESTART_MS = 30_000;

/** Runs it and prints what came of it. @returns the exit code. @throws UserError with the exit code and what to do. */
export async function runBackfillCommand(
  parts: CommandParts & { readonly command: BackfillCommand },
  ports: ProcessPorts,
): Promise<number> {
  const { command, config, voice } = parts;
  const asked = readBackfillOptions(command, realClock.nowMs());
  if (command.dryRun) {
    const plan = await costOf({ command: { ...command, whatIf: [] }, config, voice }, ports);
    const { basis, backfill } = plan;
    ports.print(voice.scrub(command.json ? `${JSON.stringify({ basis, backfill })}\n` : backfillText(plan)));
    return 0;
  }
  const args = argsOf(asked, command.devices);
  const summary = await doOrFollow(
    {
      kind: 'backfill',
      args,
      askedBy: '--backfill',
      alone: () => alone(parts, args, ports),
      read: readBackfillSummary,
      show: showProgress(voice),
      awaitMs: RESTART_MS,
    },
    { dataDir: config.dataDir, voice },
    ports,
  );
  ports.print(voice.scrub(command.json ? `${JSON.stringify(summary)}\n` : backfillEndText(summary)));
  return summary.exit_code;
}

async function alone(parts: CommandParts, args: BackfillArgs, ports: ProcessPorts): Promise<BackfillSummary> {
  const { config, voice } = parts;
  return await withSync(parts, ports, async (sync) => {
    let run: BackfillRun | null = null;
    const onBegun = (begun: BackfillRun): void => {
      run = begun;
    };
    const look = (): void => {
      if (run !== null) voice.show(run.progress);
    };
    const rates = ratesOfState(config.dataDir, sync.context.settings.filter);
    const work = runBackfill({ ...sync, rates, onBegun }, args, ports.signal);
    return await repeatWhile(work, look, LOOK_EVERY_MS).finally(voice.endProgress);
  });
}
