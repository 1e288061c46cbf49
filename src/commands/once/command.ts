/**
 * The command `--once`. Alone it does the work itself. If a daemon holds the state, the command leaves a job for the
 * daemon and follows it.
 */

import { type ProcessPorts, repeatWhile, SHOW_EVERY_MS } from '../../app/terminal.ts';
import { withSync } from '../../app/with-sync.ts';
import type { Config } from '../../config/config.ts';
import { scrubbedJson } from '../../core/secret.ts';
import { countsFromNow } from '../../report/figures.ts';
import type { CommandRun } from '../shared/command.ts';
import { doOrFollow, showProgress } from '../shared/do-or-follow.ts';
import { type OnceSummary, onceProgress, readOnceSummary, reportEnd } from './result.ts';
import { runOnce } from './run.ts';

type OnceRun = CommandRun<{ readonly json: boolean }, Config>;

/**
 * Runs the work, and prints the summary with `--json`.
 *
 * @returns the exit code.
 * @throws UserError with the exit code and the remedy.
 */
export async function runOnceCommand(run: OnceRun, ports: ProcessPorts): Promise<number> {
  const { command, config, terminal } = run;
  const summary = await doOrFollow(
    {
      kind: 'once',
      args: {},
      requestedBy: '--once',
      alone: () => once(run, ports),
      read: readOnceSummary,
      show: showProgress(terminal),
    },
    { dataDir: config.dataDir, terminal },
    ports,
  );
  reportEnd(summary, terminal.logger);
  if (command.json) ports.print(`${scrubbedJson(summary, terminal.scrub)}\n`);
  return summary.exit_code;
}

async function once(run: OnceRun, ports: ProcessPorts): Promise<OnceSummary> {
  const { terminal } = run;
  return await withSync(run, ports, async (sync) => {
    const counts = countsFromNow(sync.context.store);
    const progress = (): void => terminal.show(() => onceProgress(sync.report(), counts()));
    return await repeatWhile(runOnce(sync, ports.signal), progress, SHOW_EVERY_MS.figures).finally(
      terminal.endProgress,
    );
  });
}
