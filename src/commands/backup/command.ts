/** The command `--backup FILE`: copies the state over a separate connection, with or without a daemon. */

import { realClock, realRandom } from '../../app/real-clock.ts';
import type { ProcessPorts } from '../../app/terminal.ts';
import type { BackupCommand } from '../../cli/command.ts';
import { UserError } from '../../core/faults.ts';
import { byteSize, plainText } from '../../core/text.ts';
import { STATE_FILE } from '../../store/open/database.ts';
import { type Backup, backUpState } from '../../store/views/backup.ts';
import { type CommandRun, printAnswer } from '../shared/command.ts';

/**
 * Makes the backup and prints the result.
 *
 * @returns the exit code.
 * @throws UserError with the exit code and the remedy.
 */
export async function runBackupCommand(run: CommandRun<BackupCommand>, ports: ProcessPorts): Promise<number> {
  const { config, terminal } = run;
  const { file } = run.command;
  const beganMs = realClock.monoMs();
  const onProgress = (share: number, bytes: number): void => {
    const step = share === 1 ? 'copied, checking the copy' : 'copied';
    const rate = { done: bytes, text: (perSecond: number) => `${byteSize(perSecond)}/s` };
    terminal.showWork(() => ({ share: Math.min(share, 0.99), text: `${byteSize(bytes)} ${step}`, rate }));
  };
  const options = { directory: config.dataDir, file, random: realRandom, nowMs: realClock.nowMs(), onProgress };
  let backup: Backup;
  try {
    backup = await backUpState(options, ports.signal).finally(terminal.endProgress);
  } catch (error) {
    if (!ports.signal.aborted || error instanceof UserError) throw error;
    throw new UserError(
      'Stopped before the copy was complete. The partial copy was removed',
      'run --backup again.',
      3,
      { joint: ';' },
    );
  }
  const seconds = Math.round(realClock.monoMs() - beganMs) / 1000;
  const { bytes, stateVersion } = backup;
  printAnswer(run, ports, {
    object: { file, bytes, state_version: stateVersion, seconds },
    text: () => `${plainText(file)}: ${byteSize(bytes)} in ${seconds.toFixed(1)} s, complete and checked.
To restore it, copy it as ${STATE_FILE} into an empty data_dir and start Tidemark.
`,
  });
  return 0;
}
