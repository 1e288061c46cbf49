/**
 * `--forget --device ID` put together: alone under the lock, or by the daemon that holds it.
 */

import { settingsOf } from '../../app/settings.ts';
import { type ProcessPorts, repeatWhile } from '../../app/terminal.ts';
import type { ForgetCommand } from '../../cli/command.ts';
import { UserError } from '../../core/faults.ts';
import { requireState } from '../../store/open/read-only.ts';
import { doOrFollow } from '../shared/do-or-follow.ts';
import { forgetParts, type UpkeepRun, withState } from '../shared/upkeep.ts';
import { type ForgetSummary, forgetDevice } from './forget.ts';
import { forgetText } from './text.ts';

/** How often it is looked how far it is. */
const LOOK_EVERY_MS = 500;

/** Runs it and prints what it comes to. @returns the exit code. @throws UserError with the exit code and what to do. */
export async function runForgetCommand(
  { command, config, voice }: UpkeepRun<ForgetCommand>,
  ports: ProcessPorts,
): Promise<number> {
  const { device, json } = command;
  requireState(config.dataDir);
  const { destinations } = settingsOf(config);
  const show = (progress: unknown): void => {
    const { share } = { ...(progress as { readonly share?: unknown } | null) };
    if (typeof share === 'number') voice.showWork(() => ({ share: Math.min(share, 0.99), words: 'removing it' }));
  };
  const alone = async (): Promise<ForgetSummary> =>
    await withState({ config, voice }, async ({ context }) => {
      const progress = { share: 0 };
      const order = { deviceId: device, progress };
      const work = forgetDevice(forgetParts(context, destinations), order, ports.signal);
      return await repeatWhile(work, () => show(progress), LOOK_EVERY_MS).finally(voice.endProgress);
    });
  const summary = await doOrFollow(
    {
      kind: 'forget',
      args: { device },
      askedBy: '--forget',
      alone,
      read: (found) => (isSummary(found) ? found : null),
      failed: ({ exitCode, message }) =>
        new UserError(message ?? 'The daemon has left no summary that this version understands.', exitCode || 1),
      show,
    },
    { dataDir: config.dataDir, voice },
    ports,
  );
  const text = json ? `${JSON.stringify({ device_id: device, ...summary })}\n` : forgetText(device, summary);
  ports.print(voice.scrub(text));
  return summary.exit_code;
}

function isSummary(value: unknown): value is ForgetSummary {
  if (typeof value !== 'object' || value === null) return false;
  const { outcome, points, exit_code } = value as Partial<Record<string, unknown>>;
  return typeof outcome === 'string' && typeof points === 'number' && typeof exit_code === 'number';
}
