/**
 * `--backfill` put together: what it would cost; alone the work itself; where a daemon holds the state, that does it and
 * this follows.
 */
import { createHttpTransport } from '../api/transport.ts';
import { openSync, type Sync } from '../app.ts';
import { settingsOf } from '../app-settings.ts';
import type { BackfillCommand } from '../cli/command.ts';
import { runBackfill } from '../commands/backfill.ts';
import { type BackfillSummary, readBackfillSummary } from '../commands/backfill-summary.ts';
import { backfillEndText } from '../commands/backfill-text.ts';
import type { BackfillRun } from '../commands/backfill-work.ts';
import { backfillText } from '../commands/plan-text.ts';
import type { BackfillArgs } from '../core/backfill-ask.ts';
import { UserError } from '../core/faults.ts';
import type { JobEnd } from '../core/jobs.ts';
import { realClock, realRandom } from '../real-clock.ts';
import type { CommandParts } from '../run.ts';
import { type ProcessPorts, repeatWhile } from '../voice.ts';
import { argsOf, readBackfillOptions } from './backfill-options.ts';
import { ratesOfState } from './backfill-rates.ts';
import { doOrFollow, showProgress } from './do-or-follow.ts';
import { costOf } from './plan.ts';
import { createSecretReader } from './secrets.ts';

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
  const request = { kind: 'backfill', args: { ...args }, askedBy: '--backfill', askedMs: realClock.nowMs() } as const;
  const show = showProgress(voice);
  const work = { request, alone: () => alone(parts, args, ports), summaryOf, show, awaitMs: RESTART_MS };
  const summary = await doOrFollow(work, { dataDir: config.dataDir, voice }, ports);
  ports.print(voice.scrub(command.json ? `${JSON.stringify(summary)}\n` : backfillEndText(summary)));
  return summary.exit_code;
}

async function alone(
  { config, voice, secrets }: CommandParts,
  args: BackfillArgs,
  ports: ProcessPorts,
): Promise<BackfillSummary> {
  const { url, key, ca, timeoutMs, concurrency } = config.api;
  const http = createHttpTransport({ timeoutMs, connections: concurrency, ...(ca === null ? {} : { ca }) });
  let sync: Sync | null = null;
  try {
    sync = openSync({
      ...settingsOf(config, createSecretReader({ readFile: ports.readFile, secrets })),
      observe: voice.observe,
      clock: realClock,
      random: realRandom,
      transport: http.transport,
      api: { ...config.api, url, key: () => key.reveal() },
      dataDir: config.dataDir,
    });
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
  } finally {
    sync?.close();
    await http.close();
  }
}

function summaryOf({ exitCode, summary, message }: JobEnd): BackfillSummary {
  const read = readBackfillSummary(summary);
  if (read !== null) return read;
  const words = message ?? 'it has left no summary that this version understands';
  throw new UserError(`The daemon did not do it: ${words}`, exitCode === 0 ? 1 : exitCode);
}
