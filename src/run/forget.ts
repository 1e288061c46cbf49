/**
 * `--forget --device ID` put together: alone under the lock, or by the daemon that holds it.
 */
import { openSync } from '../app.ts';
import { settingsOf } from '../app-settings.ts';
import type { ForgetCommand } from '../cli/command.ts';
import { type ForgetSummary, forgetDevice } from '../commands/forget.ts';
import { forgetText } from '../commands/forget-text.ts';
import { UserError } from '../core/faults.ts';
import type { JobEnd } from '../core/jobs.ts';
import { realClock, realRandom } from '../real-clock.ts';
import { requireState } from '../store/quarantine-reader.ts';
import type { ProcessPorts } from '../voice.ts';
import { doOrFollow } from './do-or-follow.ts';
import { forgetParts, type UpkeepRun } from './upkeep.ts';

/** Runs it and prints what it comes to. @returns the exit code. @throws UserError with the exit code and what to do. */
export async function runForgetCommand(
  { command, config, voice }: UpkeepRun<ForgetCommand>,
  ports: ProcessPorts,
): Promise<number> {
  const { device, json } = command;
  requireState(config.dataDir);
  const { destinations, ...rest } = settingsOf(config);
  const request = {
    kind: 'forget',
    args: { device },
    askedBy: '--forget',
    askedMs: realClock.nowMs(),
  } as const;
  const alone = async (): Promise<ForgetSummary> => {
    const sync = openSync({
      ...rest,
      destinations: [],
      observe: voice.observe,
      clock: realClock,
      random: realRandom,
      transport: () => Promise.reject(new Error('forgetting asks nothing of the API')),
      api: { ...config.api, url: 'http://127.0.0.1/external/v1', key: () => '' },
      dataDir: config.dataDir,
    });
    try {
      return await forgetDevice(forgetParts(sync.context, destinations), { deviceId: device }, ports.signal);
    } finally {
      sync.close();
    }
  };
  const work = { request, alone, summaryOf, show: () => {} };
  const summary = await doOrFollow(work, { dataDir: config.dataDir, voice }, ports);
  const text = json ? `${JSON.stringify({ device_id: device, ...summary })}\n` : forgetText(device, summary);
  ports.print(voice.scrub(text));
  return summary.exit_code;
}

function summaryOf({ exitCode, summary, message }: JobEnd): ForgetSummary {
  if (isSummary(summary)) return summary;
  if (message !== null) throw new UserError(message, exitCode === 0 ? 1 : exitCode);
  throw new UserError('The daemon has left no summary that this version understands.', exitCode === 0 ? 1 : exitCode);
}

function isSummary(value: unknown): value is ForgetSummary {
  if (typeof value !== 'object' || value === null) return false;
  const { outcome, points, exit_code } = value as Partial<Record<string, unknown>>;
  return typeof outcome === 'string' && typeof points === 'number' && typeof exit_code === 'number';
}
